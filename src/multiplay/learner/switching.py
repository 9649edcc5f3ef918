"""Switching cost of a learner: the last plan, and how long it has stayed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from multiplay.constraints.switching import Changes, charged, checked_change
from multiplay.learner.plays import PendingState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.round_set import RoundSet
from multiplay.policies import Play
from multiplay.policies.wrapped import check_index
from multiplay.types import Arrays, IntArray

SWITCHING = "the switching cost"  # in errors
LAST, HELD, ORDER = "switching/last", "switching/held", "switching/order"  # in a memo


class LastPlan(NamedTuple):
    """The last plan: what changes of it cost, and how many plays in a row had it."""

    changes: Changes
    held: int

    def memo(self, plan: IntArray, number: int) -> Arrays:
        """Return what is remembered of the play of a number; the first one changes nothing."""
        last = self.changes.last if self.held else plan
        same = self.held > 0 and bool((plan == last).all())
        held = np.array([self.held + 1 if same else 1])
        return {LAST: last, HELD: held, ORDER: np.array([number])}


class SwitchingState:
    """The last plan of a learner, of which a change costs something.

    The last plan is that of the newest play that was not cancelled, told or not. An external plan
    is none.

    Attributes
    ----------
    change : float
        The cost of each unit that differs from the last plan, in the user's unit.
    order, held, units
        Of the newest closed play: its number, how many plays in a row had its plan, and its units
        by the place of each arm.
    """

    def __init__(self, change: float) -> None:
        self.change = change
        self.order = self.held = 0
        self.units = np.zeros(0, dtype=np.int64)

    @classmethod
    def given(cls, change: Any) -> SwitchingState | None:
        """Return the state of a new learner; None without a switching cost."""
        return None if change is None else cls(checked_change(change))

    def check(self, state: PolicyState) -> None:
        """Raise ``InvalidInput`` unless a switching cost fits the policy."""
        check_index(state.policy, state.has_index, SWITCHING)

    def before(
        self, state: PolicyState, round_set: RoundSet, pending: Iterable[PendingState]
    ) -> LastPlan:
        """Return the last plan, for the arms of a round."""
        places = state.arms.places(round_set.actions.names)
        units, held = self._last(state, pending)
        charge = charged(self.change / state.ranges.scale, np.array([held]))
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

    def close(self, state: PolicyState, play: PendingState) -> None:
        """Keep the plan of a play that is closed, if it is the newest one."""
        if ORDER in play.memo and int(play.memo[ORDER][0]) > self.order:
            self.order, self.held = int(play.memo[ORDER][0]), int(play.memo[HELD][0])
            self.units = self._units(state, play)

    def record(self) -> tuple[dict[str, Any], Arrays]:
        """Return the state as plain data and arrays."""
        header = {"change": self.change, "order": self.order, "held": self.held}
        return header, {"units": self.units}

    @classmethod
    def restored(cls, header: dict[str, Any], arrays: Arrays) -> SwitchingState:
        """Return the state of a record."""
        state = cls(header["change"])
        state.order, state.held = header["order"], header["held"]
        state.units = arrays["units"].astype(np.int64)
        return state

    def fresh(self) -> SwitchingState:
        """Return the state before the first play."""
        return SwitchingState(self.change)

    def cost_of(self, play: Play) -> float:
        """Return what the changes of a play cost, in the user's unit."""
        return self.change * changed_units(play)


def changed_units(play: Play) -> int:
    """Return how many units of a play differ from the plan before it."""
    if LAST not in play.memo:
        return 0
    return int(np.abs(play.action - play.memo[LAST]).sum())
