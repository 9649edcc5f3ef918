"""Reports of constraints by their class."""

from typing import Any

from multiplay import BaselineReport, PromiseReport


def promise_reports(owner: Any) -> list[PromiseReport]:
    """Return the reports of all promises of a learner or a study."""
    return [one for one in owner.constraints() if isinstance(one, PromiseReport)]


def baseline_report(owner: Any) -> BaselineReport:
    """Return the report of the baseline of a learner or a study."""
    (found,) = (one for one in owner.constraints() if isinstance(one, BaselineReport))
    return found
