"""Switching cost of a learner: the last plan, and how long it has stayed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import numpy as np

from multiplay.constraints.switching import Changes, SwitchingCost, charged
from multiplay.learner.plays import PendingState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.round_set import RoundSet
from multiplay.policies import Play
from multiplay.types import Arrays, IntArray

MEMO = LAST, HELD, ORDER = "switching/last", "switching/held", "switching/order"  # in a memo
CHANGED = "changed"  # in a record, since switching costs can begin at any time


class LastPlan(NamedTuple):
    """The last plan: what changes of it cost, and how many plays in a row had it."""

    changes: Changes
    held: int

    def memo(self, plan: IntArray, number: int) -> Arrays:
        """Return what is remembered of the play of a number; the first one changes nothing."""
        if not self.held:
            return first_memo(plan, number)
        last = self.changes.last
        held = np.array([self.held + 1 if (plan == last).all() else 1])
        return {LAST: last, HELD: held, ORDER: np.array([number])}


def first_memo(plan: IntArray, number: int) -> Arrays:
    """Return what is remembered of the play of a number that changes nothing."""
    return {LAST: plan, HELD: np.array([1]), ORDER: np.array([number])}


class SwitchingReport(NamedTuple):
    """What changes of the plans have cost.

    Attributes
    ----------
    name : str
        Its name, "switching cost".
    constraint : SwitchingCost
        Its settings.
    changed : int
        The units that differed from the plan before, of all plays that were not cancelled.
    spent : float
        What they cost, in the user's unit.

    Examples
    --------
    >>> from multiplay import Budget, Learner, SwitchingCost
    >>> plans = Budget(2, [2, 2], names=["air", "sea"])
    >>> learner = Learner(plans, loss_range=(0, 9), constraints=[SwitchingCost(0.5)])
    >>> for arm in ("air", "sea"):
    ...     play = learner.ask(exclude=[arm])
    >>> learner.constraints()[0].changed, learner.constraints()[0].spent
    (4, 2.0)
    """

    name: str
    constraint: SwitchingCost
    changed: Annotated[int, "Units that differed from the plan before."]
    spent: Annotated[float, "What they cost."]


class SwitchingState:
    """The last plan of a learner, of which a change costs something.

    The last plan is that of the newest play that was not cancelled, told or not. An external plan
    is none.

    Attributes
    ----------
    settings : SwitchingCost
        The cost of each unit that differs from the last plan, in the user's unit.
    order, held, units
        Of the newest closed play: its number, how many plays in a row had its plan, and its units
        by the place of each arm.
    changed : int
        The units that differed from the plan before, of all plays.
    """

    def __init__(self, settings: SwitchingCost) -> None:
        self.settings = settings
        self.order = self.held = self.changed = 0
        self.units = np.zeros(0, dtype=np.int64)

    def begin(self, units: IntArray, order: int) -> None:
        """Continue after a plan that was played before changes cost something."""
        self.units, self.order, self.held = units, order, 1

    def before(
        self, state: PolicyState, round_set: RoundSet, pending: Iterable[PendingState]
    ) -> LastPlan:
        """Return the last plan, for the arms of a round."""
        places = state.arms.places(round_set.actions.names)
        units, held = self._last(state, pending)
        charge = charged(self.settings.cost / state.ranges.scale, np.array([held]))
        return LastPlan(Changes((units if places is None else units[places])[None], charge), held)

    def _last(self, state: PolicyState, pending: Iterable[PendingState]) -> tuple[IntArray, int]:
        """Return the units of all arms in the last plan, and for how many plays it has stayed."""
        arms = len(state.arms.names)
        units = np.pad(self.units, (0, arms - len(self.units)))
        order, held = self.order, self.held
        for one in pending:
            if ORDER in one.memo and int(one.memo[ORDER][0]) > order:
                order, held = int(one.memo[ORDER][0]), int(one.memo[HELD][0])
                units = self._units(state, one)
        return units, held

    def _units(self, state: PolicyState, play: PendingState) -> IntArray:
        places = state.arms.places(play.round_set.actions.names)
        units = np.zeros(len(state.arms.names), dtype=np.int64)
        units[slice(None) if places is None else places] = play.action[0]
        return units

    def count(self, play: PendingState, times: int = 1) -> None:
        """Count the changes of a play that was asked for; -1 ``times`` if it was cancelled."""
        self.changed += times * changed_units(play.play)

    def close(self, state: PolicyState, play: PendingState) -> None:
        """Keep the plan of a play that is closed, if it is the newest one."""
        if ORDER in play.memo and int(play.memo[ORDER][0]) > self.order:
            self.order, self.held = int(play.memo[ORDER][0]), int(play.memo[HELD][0])
            self.units = self._units(state, play)

    def record(self) -> tuple[dict[str, Any], Arrays]:
        """Return the state as plain data and arrays."""
        header = {"change": self.settings.cost, "order": self.order, "held": self.held}
        return header | {CHANGED: self.changed}, {"units": self.units}

    @classmethod
    def restored(cls, header: dict[str, Any], arrays: Arrays) -> SwitchingState:
        """Return the state of a record."""
        state = cls(SwitchingCost(header["change"]))
        state.order, state.held = header["order"], header["held"]
        state.changed = header.get(CHANGED, 0)
        state.units = arrays["units"].astype(np.int64)
        return state

    def report(self) -> SwitchingReport:
        """Return what changes have cost so far."""
        spent = self.settings.cost * self.changed
        return SwitchingReport(self.settings.name, self.settings, self.changed, spent)

    def cost_of(self, play: Play) -> float:
        """Return what the changes of a play cost, in the user's unit."""
        return self.settings.cost * changed_units(play)


def changed_units(play: Play) -> int:
    """Return how many units of a play differ from the plan before it."""
    if LAST not in play.memo:
        return 0
    return int(np.abs(play.action - play.memo[LAST]).sum())
