"""Constraints of a learner: what its plans must keep or pay, and what became of that so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from multiplay._support.builder import Builder
from multiplay._support.hints import Hint, Verb
from multiplay._support.serialization import pack, unpack, with_prefix, without_prefix
from multiplay._support.suggestions import suggestion
from multiplay.actions import ActionSet
from multiplay.constraints import Baseline, Constraint, Promise, SwitchingCost
from multiplay.constraints.constraint import EXAMPLE, checked_constraint
from multiplay.errors import InvalidInput, NotFound
from multiplay.learner import allowance, switching
from multiplay.learner.allowance import AllowanceState, BaselineReport
from multiplay.learner.beliefs import Beliefs
from multiplay.learner.plays import PendingState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.promises import PromiseBook, PromiseReport
from multiplay.learner.round_set import RoundSet
from multiplay.learner.switching import SwitchingReport, SwitchingState
from multiplay.policies.wrapped import check_index
from multiplay.types import Arrays, IntArray

ConstraintReport: TypeAlias = BaselineReport | SwitchingReport | PromiseReport

# In a header, and before the names of arrays.
ALLOWANCE, CHANGE, PROMISES, INITIAL = "allowance", "change", "promises", "initial"


class Before(NamedTuple):
    """The plays before a constraint was added, as far as it needs them.

    Attributes
    ----------
    sets : sequence of ActionSet
        The sets of the last plays.
    plan : dict or None
        The plan of the last play that is told, by arm.
    pending : tuple of int
        The ids of the pending plays after it, oldest first.
    """

    sets: tuple[ActionSet, ...] = ()
    plan: Mapping[str, int] | None = None
    pending: tuple[int, ...] = ()


Plays: TypeAlias = MutableMapping[int, PendingState]


class LearnerConstraints:
    """The constraints of a learner: at most one baseline, one switching cost, and promises.

    Attributes
    ----------
    allowance : AllowanceState or None
        What the plays may cost more than a baseline.
    switching : SwitchingState or None
        The cost of units that differ from the last plan.
    promises : PromiseBook
        What the plays may use in total, or have to.
    """

    allowance: AllowanceState | None = None
    switching: SwitchingState | None = None

    def __init__(self, initial: Iterable[Constraint] = (), arms: int = 0) -> None:
        given = tuple(initial)
        self.promises = PromiseBook(one for one in given if isinstance(one, Promise))
        self._initial = [one for one in given if not isinstance(one, Promise)]
        for one in self._initial:
            self._start(one, arms)

    def __iter__(self) -> Iterator[Constraint]:
        states = (self.allowance, self.switching, *self.promises.kept.values())
        return (one.settings for one in states if one is not None)

    @property
    def initial(self) -> list[Constraint]:
        """The constraints of the new learner."""
        return [*self._initial, *self.promises.initial]

    # ------------------------------------------------------------ beginning and end

    def check(self, state: PolicyState, given: Any, strict: bool = False) -> Constraint:
        """Return a constraint, after checking that it fits the parts of a learner.

        ``strict``: patterns of a promise must fit arms, because the set does not change.
        """
        made = checked_constraint(given, [one.name for one in self])
        if isinstance(made, Promise):
            self.promises.check(state, made, strict)
        elif isinstance(made, Baseline):
            AllowanceState(made, 0).check(state)
        elif isinstance(made, SwitchingCost):
            check_index(state.policy, state.has_index, "the switching cost")
        else:
            expected = "SwitchingCost, Baseline, AtMost or AtLeast"
            raise InvalidInput("constraints", expected, f"{made!r}", f"Use {EXAMPLE}, for example.")
        pack(made, "constraints")  # raises if it cannot be saved
        return made

    def add(
        self, made: Constraint, names: Sequence[str], before: Before, pending: Plays, asked: int
    ) -> None:
        """Add a constraint for the plays from now on.

        ``names`` are those of all arms, and ``asked`` is the number of plays so far.
        """
        if isinstance(made, Promise):
            self.promises.start(made, before.sets)
            return
        self._start(made, len(names))
        if isinstance(made, SwitchingCost) and self.switching is not None:
            first = asked - len(before.pending)
            if before.plan is not None:
                units = [before.plan.get(arm, 0) for arm in names]
                self.switching.begin(np.array(units, dtype=np.int64), first)
            for number, id in enumerate(before.pending, start=first + 1):
                one = pending[id]
                pending[id] = one.with_memo(one.memo | switching.first_memo(one.action, number))

    def _start(self, made: Constraint, arms: int) -> None:
        if isinstance(made, Baseline):
            self.allowance = AllowanceState(made, arms)
        elif isinstance(made, SwitchingCost):
            self.switching = SwitchingState(made)

    def end(self, name: Any, pending: Plays) -> None:
        """End a constraint by its name; it does not count for pending plays any more."""
        names = [one.name for one in self]
        if not isinstance(name, str) or name not in names:
            hint = Hint("See {}.", Verb("constraints")) + suggestion(name, names)
            raise NotFound("name", "the name of a constraint", repr(name), hint)
        if name in self.promises.kept:
            return self.promises.end(name)
        if self.allowance is not None and name == self.allowance.settings.name:
            self.allowance, memo = None, {*allowance.MEMO}
        else:
            self.switching, memo = None, {*switching.MEMO}
        for id, play in pending.items():
            kept = {name: array for name, array in play.memo.items() if name not in memo}
            pending[id] = play.with_memo(kept)
        return None

    def fresh(self) -> LearnerConstraints:
        """Return the constraints before the first play."""
        return LearnerConstraints(self.initial)

    # ------------------------------------------------------------ reports

    def reports(self, state: PolicyState, beliefs: Beliefs) -> list[ConstraintReport]:
        """Return what became of each constraint so far."""
        found = list[ConstraintReport]()
        if self.allowance is not None:
            found.append(self.allowance.report(state))
        if self.switching is not None:
            found.append(self.switching.report())
        return [*found, *self.promises.report(state, beliefs)]

    # ------------------------------------------------------------ plays

    def keep(
        self,
        state: PolicyState,
        play: PendingState,
        round_set: RoundSet,
        when: float,
        ahead: tuple[ActionSet, ...],
    ) -> None:
        """Count a play that was asked for at a time, with known sets of the plays after it."""
        if self.allowance is not None:
            self.allowance.add(state, round_set, play.play)
        if self.switching is not None:
            self.switching.count(play)
        if self.promises:
            self.promises.add(state, round_set, play.play, when, ahead)

    def cancel(self, state: PolicyState, play: PendingState) -> None:
        """Leave out a play that was cancelled."""
        if self.allowance is not None and allowance.FOUND in play.memo:
            self.allowance.remove(state, play.round_set, play.play)
        if self.switching is not None:
            self.switching.count(play, -1)
        self.promises.remove(state, play.round_set, play.play)

    def close(self, state: PolicyState, play: PendingState, used: IntArray | None) -> None:
        """Count the units that a final report says were used; None for those of the plan."""
        if self.switching is not None:
            self.switching.close(state, play)
        if used is not None:
            self.promises.told(state, play.round_set, play.play, used)

    # ------------------------------------------------------------ records

    def record(self) -> tuple[dict[str, Any], Arrays]:
        """Return the state as plain data and arrays, without the sets of promises."""
        header, arrays = dict[str, Any](), dict[str, Any]()
        states = {ALLOWANCE: self.allowance, CHANGE: self.switching}
        for name, one in {**states, PROMISES: self.promises or None}.items():
            if one is not None:
                header[name], own = one.record()
                arrays |= with_prefix(f"{name}/", own)
        if self._initial != [one for one in self if not isinstance(one, Promise)]:
            header[INITIAL], own = pack(self._initial, "constraints")
            arrays |= with_prefix(f"{INITIAL}/", own)
        return header, arrays

    @classmethod
    def restored(
        cls, header: dict[str, Any], arrays: Arrays, sets: list[RoundSet], builder: Builder
    ) -> LearnerConstraints:
        """Return the state of a record; promises refer to some sets by their numbers."""
        made = cls()
        if ALLOWANCE in header:
            own = without_prefix(f"{ALLOWANCE}/", arrays)
            made.allowance = AllowanceState.restored(header[ALLOWANCE], own, builder)
        if CHANGE in header:
            own = without_prefix(f"{CHANGE}/", arrays)
            made.switching = SwitchingState.restored(header[CHANGE], own)
        made._initial = [*made]
        if INITIAL in header:
            own = without_prefix(f"{INITIAL}/", arrays)
            made._initial = unpack(header[INITIAL], own, builder)
        if PROMISES in header:
            plain, own = header[PROMISES], without_prefix(f"{PROMISES}/", arrays)
            of_plays = ([sets[k].given for k in plain[name]] for name in ("past", "ahead"))
            made.promises = PromiseBook.restored(plain, own, *of_plays)
        return made
