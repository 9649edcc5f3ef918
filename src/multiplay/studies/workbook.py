"""Workbook of a study: an Excel file with sheets of plans, bills and arms, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay._support.formatting import plural
from multiplay._support.words import Words
from multiplay._support.xlsx import AMOUNT, DAY, SHARE, TIME, WHOLE, Column, Workbook
from multiplay.studies.play_history import PlayedPlan, rows_of

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

ARMS = ("arm", "seen", "mean", "low", "high", "average", "spread", "last_seen", "share", "long_run")
TOTALS = ("id", "key", "status", "units", "seen", "expected", "realised", "difference")


class Overview(NamedTuple):
    """What an export of plans says of a study in addition to its plays.

    Attributes
    ----------
    words : Words
        The words of the user.
    rewards : bool
        Whether units bring rewards, rather than losses.
    facts : function
        Returns texts, numbers and times by name, for the summary.
    arms
        ``Study.arms``.
    """

    words: Words
    rewards: bool
    facts: Callable[[], Mapping[str, Any]]
    arms: Callable[[], pd.DataFrame]

    @property
    def money(self) -> str:
        """The currency, as a header has it; empty if there is none."""
        return f" ({self.words.currency})" if self.words.currency else ""


def write_workbook(
    draft: Path,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Any]],
    plans: Callable[[], Iterator[PlayedPlan]],
    overview: Overview,
) -> None:
    """Write all sheets; ``columns`` and ``rows`` are those of the sheet of plans."""
    known = columns_of(overview)
    arms = [tuple(row.values()) for row in rows_of(overview.arms())]
    longest = max((len(row[0]) for row in arms), default=0)
    arm, wide = known["arm"], known["arm"]._replace(width=longest + 2)
    known["arm"] = wide
    with Workbook(draft) as book:
        heads = [wide if column == arm else column for column in columns]
        book.write("plans", heads, rows, fixed=2)
        heads = [known[name] for name in ("id", "key", "told", "arm", "units", "loss")]
        book.write("bills", heads, _bills(plans()), fixed=2)
        heads = [known[name] for name in ARMS]
        book.write(plural(overview.words.arm), heads, arms, fixed=1)
        heads = [known[name] for name in TOTALS]
        book.write("summary", heads, _totals(plans()), facts=overview.facts())


def columns_of(overview: Overview) -> dict[str, Column]:
    """Return the columns of exported plans, by the names that they have in tables of Python."""
    words, money = overview.words, overview.money
    what, units = "reward" if overview.rewards else "cost", plural(words.unit)
    return {
        "id": Column("plan", WHOLE),
        "key": Column("key", DAY),
        "status": Column("status"),
        "asked": Column("asked (UTC)", TIME),
        "told": Column("told (UTC)", TIME),
        "arm": Column(words.arm),
        "units": Column(units, WHOLE),
        "seen": Column(f"{units} told", WHOLE),
        "clipped": Column("clipped", WHOLE),
        "loss": Column(f"{what}{money}", AMOUNT),
        "expected": Column(f"expected {what} of the plan{money}", AMOUNT),
        "realised": Column(f"actual {what} of the plan{money}", AMOUNT),
        "difference": Column(f"difference{money}", AMOUNT),
        "mean": Column(f"{what} of a {words.unit}{money}", AMOUNT),
        "low": Column("from", AMOUNT),
        "high": Column("to", AMOUNT),
        "average": Column("average so far", AMOUNT),
        "spread": Column("spread", AMOUNT),
        "last_seen": Column("last seen (UTC)", TIME),
        "share": Column("share of the plans", SHARE),
        "long_run": Column(f"{what} of a {words.unit} in the long run{money}", AMOUNT),
        "held": Column("changed by promises"),
    }


def _bills(plans: Iterable[PlayedPlan]) -> Iterator[Sequence[Any]]:
    """Yield a row for each loss that was told: of one unit, or of all units of an arm."""
    for row, plan, losses, *_ in plans:
        about = row["id"], row["key"], row["told"]
        for arm, told in losses.items():
            if isinstance(told, list):
                yield from ((*about, arm, 1, loss) for loss in told if loss is not None)
            else:
                yield *about, arm, plan[arm], told


def _totals(plans: Iterable[PlayedPlan]) -> Iterator[Sequence[Any]]:
    """Yield a row for each play: its totals, and their difference if all units were told."""
    for row, *_ in plans:
        expected, realised = row["expected"], row["realised"]
        known = row["seen"] == row["units"] and None not in (expected, realised)
        yield *(row[name] for name in TOTALS[:-1]), realised - expected if known else None
