"""Switching costs of a learner: the last plan, and plays that weigh a change of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from multiplay._support import deadline
from multiplay.errors import InvalidInput
from multiplay.learner.plays import PendingState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.round_set import RoundSet
from multiplay.policies import Play
from multiplay.policies.switching import SWITCHING, calm_plans, charged, checked_change
from multiplay.policies.wrapped import check_index
from multiplay.random import Streams
from multiplay.types import Arrays, IntArray

LAST, HELD, ORDER = "switching/last", "switching/held", "switching/order"  # in a memo


class SwitchingState:
    """The last plan of a learner, and the play for which a change costs something.

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
    def given(cls, change: Any, others: bool) -> SwitchingState | None:
        """Return the state of a new learner; ``others``: it has an allowance or promises."""
        if change is None:
            return None
        cost = checked_change(change)
        if others:
            raise with_others()
        return cls(cost)

    def check(self, state: PolicyState) -> None:
        """Raise ``InvalidInput`` unless a switching cost fits the policy."""
        check_index(state.policy, state.usual.actions, state.arms.arrays, SWITCHING)

    def play(
        self,
        state: PolicyState,
        round_set: RoundSet,
        play: Play,
        pending: Iterable[PendingState],
        number: int,
        rng: Streams,
        until: float,
    ) -> Play:
        """Return a play of the policy with the least sum of both costs; its memo has the last plan.

        ``rng`` are the random numbers before the policy drew some; ``number`` is that of the play.
        """
        actions, places = round_set.actions, state.arms.places(round_set.actions.names)
        all_units, held = self._last(state, pending)
        last = (all_units if places is None else all_units[places])[None]
        action = play.action
        if held:
            theta = state.policy.index(actions, state.arms.cut(places), rng)
            assert theta is not None  # see check
            charge = charged(self.change / state.ranges.scale, np.array([held]))
            with deadline.before(until):
                action = calm_plans(actions, theta, action, last, charge)
        else:
            last = action
        same = held > 0 and bool((action == last).all())
        own = {LAST: last, HELD: np.array([held + 1 if same else 1]), ORDER: np.array([number])}
        return Play(action, play.memo | own, play.cache)

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


def with_others() -> InvalidInput:
    """Return the error of a switching cost beside an allowance or promises."""
    return InvalidInput(
        "change",
        "no switching cost with a baseline or promises: each of them decides on the plan",
        "both",
        "Leave out change, or the baseline and the promises.",
    )
