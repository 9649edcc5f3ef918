"""What one may ask of a learner without changing anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from multiplay._support.checks import probability
from multiplay.actions import ActionSet
from multiplay.learner import belief_tables
from multiplay.learner.engine import Core, Units
from multiplay.learner.plays import Estimate, PendingPlay, Plan
from multiplay.learner.round_set import Today, action_of
from multiplay.types import IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

LEVEL = "Write 0.95, for example."


class Adviser(ABC):
    """Beliefs, plans and what waits, by what is known when one asks."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Core]:
        """Give all that is known now; nobody changes it within the block."""

    @property
    def unit(self) -> str:
        """The unit of all that is told and shown: "losses from 0 to 250", for example."""
        with self._reading() as core:
            return str(core.mind.ranges)

    @property
    def summary(self) -> str:
        """How it learns, and how much was done, in one line."""
        with self._reading() as core:
            return str(core)

    @property
    def known_arms(self) -> tuple[str, ...]:
        """All arms ever met."""
        with self._reading() as core:
            return core.mind.roster.names

    @property
    def open_plays(self) -> int:
        """How many plays wait for their losses."""
        with self._reading() as core:
            return len(core.pending)

    def pending(self) -> list[PendingPlay]:
        """Return the plays that wait for their losses, oldest first."""
        with self._reading() as core:
            return [self._pending_play(core, id) for id in core.pending]

    def arms(self, level: float = 0.95) -> pd.DataFrame:
        r"""Return a table of all arms: units seen, mean, interval, last seen, share of plans.

        For Thompson policies the interval is that of the posterior. For the others it is an
        empirical Bernstein interval: with N losses of an arm, in [0, 1], their average
        :math:`\bar{k}`, their sample variance V and :math:`c = \ln(4 / (1 - \text{level}))`,

        .. math::

            \bar{k} \pm \Bigl(\sqrt{\frac{2 V c}{N}} + \frac{7 c}{3 (N - 1)}\Bigr).

        It is to hold the true mean with probability ``level``. Where a policy forgets, mean and
        interval are of what it still remembers. All is in the user's unit.

        Parameters
        ----------
        level
            The probability.

        Returns
        -------
        DataFrame
            One row for each arm ever met: arm, seen, mean (NaN if nothing was seen), low, high,
            last_seen, and share, the part of the told plays that played it.
        """
        with self._reading() as core:
            return belief_tables.arms(core.mind, probability("level", level, LEVEL))

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

        Parameters
        ----------
        actions, at_most, exclude, fixed
            The set of a day and its limits, as in ``ask``.

        Returns
        -------
        Plan
            The action of the least believed cost, or the largest believed reward.
        """
        with self._reading() as core:
            today = core.day(actions, at_most, exclude, fixed)
            core.check_believes(today)
            action = today.actions.best(core.mind.mean(today))
        return Plan(action, today.plan(action), lambda: self._expected(today, action))

    def expect(
        self, plan: Units, *, actions: ActionSet | None = None, level: float = 0.95
    ) -> Estimate:
        """Say what a plan of yours should cost, with an interval.

        Refused where ``best`` is.

        Parameters
        ----------
        plan
            Units by the names of arms, or for all arms in order.
        actions
            The set of a day, as in ``ask``.
        level
            The probability with which the interval is to hold the expected cost.

        Returns
        -------
        Estimate
            The total and the ends of the interval.
        """
        with self._reading() as core:
            today = core.mind.day(actions)
            action = action_of("plan", plan, today.given)
            core.check_believes(today)
            return core.mind.expected(today, action, probability("level", level, LEVEL))

    def drift(self, level: float = 0.05) -> pd.DataFrame:
        r"""Return the arms whose recent losses do not fit the old ones: no rows if all is well.

        The n losses of an arm, in [0, 1], are split after the first s. With
        :math:`\bar{k}_{1:s}` and :math:`\bar{k}_{s+1:n}` the averages of both parts,
        :math:`\bar{k}` that of all, and
        :math:`\operatorname{kl}(x, y) = x \ln \frac{x}{y} + (1 - x) \ln \frac{1 - x}{1 - y}`,

        .. math::

            G(s, n) = s \operatorname{kl}(\bar{k}_{1:s}, \bar{k})
                + (n - s) \operatorname{kl}(\bar{k}_{s+1:n}, \bar{k})

        says how clearly the parts differ. With d arms, an arm is in the table if for some s

        .. math::

            G(s, n) > \ln \frac{12\, s^2 \sqrt{n - s}\; d}{\text{level}}.

        While nothing changes, this table stays empty for ever with a probability of at least
        1 - ``level``, however often it is asked for.

        Parameters
        ----------
        level
            The probability of a false alarm in the whole life of the learner.

        Returns
        -------
        DataFrame
            arm, since (the round after which the recent losses begin), before and after (their
            averages in the user's unit), and units, how many are recent.
        """
        with self._reading() as core:
            return belief_tables.drift(core.mind, level)

    def _expected(self, today: Today, action: IntArray) -> Estimate:
        with self._reading() as core:
            return core.mind.expected(today, action)

    def _pending_play(self, core: Core, id: int) -> PendingPlay:
        """Return a play that waits, as its caller sees it."""
        play = core.pending[id]
        today, action = play.today, play.action[0].copy()

        def expect() -> Estimate:
            return self._expected(today, play.action[0])

        return PendingPlay(id, action, today.plan(action), play.key, expect, play.truncated)
