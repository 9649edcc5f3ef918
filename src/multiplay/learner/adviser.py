"""What one may ask of a learner without changing anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from multiplay.actions import ActionSet
from multiplay.checks import probability
from multiplay.learner import beliefs
from multiplay.learner.core import Core, Units
from multiplay.learner.plays import Expected, PendingPlay, Plan
from multiplay.learner.today import action_of

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

LEVEL = "Write 0.95, for example."


class Adviser(ABC):
    """Beliefs, plans and what waits, by what is known when one asks."""

    @abstractmethod
    def _now(self) -> Core:
        """Return all that is known now."""

    def waiting(self) -> list[PendingPlay]:
        """Return the plays that wait for their losses, oldest first."""
        core = self._now()
        return [core.pending_play(id) for id in core.pending]

    def arms(self, level: float = 0.95) -> pd.DataFrame:
        """Return a table of all arms: units seen, mean with an interval, last seen, share of plans.

        The interval is that of the posterior for Thompson policies, an empirical Bernstein interval
        for the others; it is to hold the true mean with probability ``level``. Where a policy
        forgets, mean and interval are of what it still remembers.
        """
        return beliefs.arms(self._now().mind, probability("level", level, LEVEL))

    def best(
        self,
        actions: ActionSet | None = None,
        *,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
    ) -> Plan:
        """Return the best plan by what is known now, without exploration; it is no play.

        Where nothing but totals of rounds was told, ``LinTS`` and ``LinUCB`` know what plans cost
        after a few of them. Other policies do not, and then this is refused.
        """
        core = self._now()
        mind, today = core.mind, core.day(actions, at_most, exclude, fixed)
        core.check_believes(today)
        action = today.actions.best(mind.mean(today))
        return Plan(action, today.plan(action), lambda: mind.expected(today, action))

    def expect(
        self, plan: Units, *, actions: ActionSet | None = None, level: float = 0.95
    ) -> Expected:
        """Say what a plan of yours should cost, with an interval; ``actions`` as in ``ask``.

        Refused where ``best`` is.
        """
        core = self._now()
        today = core.mind.day(actions)
        action = action_of("plan", plan, today.given)
        core.check_believes(today)
        return core.mind.expected(today, action, probability("level", level, LEVEL))

    def drift(self, level: float = 0.05) -> pd.DataFrame:
        """Return the arms whose recent losses do not fit the old ones: no rows if all is well.

        While nothing changes, this table stays empty for ever with a probability of at least
        1 - ``level``, however often it is asked for.
        """
        return beliefs.drift(self._now().mind, level)
