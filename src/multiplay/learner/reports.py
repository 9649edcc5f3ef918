"""All that was told of one play so far, and the feedback that comes of it."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from multiplay.errors import Conflict, InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import units as kernels
from multiplay.learner.losses import NOTHING, Reading, losses_of
from multiplay.learner.ranges import Bounds, Ranges
from multiplay.types import FloatArray, IntArray

NOBODY: frozenset[int] = frozenset()


class Report(NamedTuple):
    """All that was told of one play so far, as policies see losses: in [0, 1].

    Attributes
    ----------
    played : array of shape (d,)
        How many units of each arm were played.
    slots : array of shape (d,)
        For how many of them there is room in ``units``: all, where single units were told; or none.
    units : array
        The losses of single units, arm after arm; NaN where one was not told.
    totals, round, gaps
        As in ``Reading``.
    clipped : int
        How many of the numbers told were outside their range.
    excused : frozenset
        The arms with gaps that were told by a full list: somebody said which units are missing.
    whole : bool
        Whether every unit was told, single or in a total.
    """

    played: IntArray
    slots: IntArray
    units: FloatArray
    totals: dict[int, float]
    round: float | None = None
    gaps: bool = False
    clipped: int = 0
    excused: frozenset[int] = frozenset()
    whole: bool = False

    @classmethod
    def empty(cls, count: IntArray) -> "Report":
        """Nothing was told yet."""
        return cls(count, _zeros(len(count)), NOTHING, {})

    def judged(self) -> "Report":
        """Return the same, after looking whether every unit was told."""
        return self._replace(whole=bool((self.seen == self.played).all()))

    @property
    def arm(self) -> IntArray:
        """The arm of every entry of ``units``."""
        return np.arange(len(self.slots)).repeat(self.slots)

    def joined(self, part: "Report", told: list[int], names: Sequence[str]) -> "Report":
        """Add a part: a full list says unit by unit, a shorter one fills what is free.

        ``told`` says how many entries each arm had in the part.
        """
        if self.round is not None or part.round is not None:
            if self.round is None and not self.seen.any():
                return part
            if self.round != part.round:
                raise _conflict("losses")
            return self
        slots, totals = np.maximum(self.slots, part.slots), dict(self.totals)
        units = _spread(self.units, self.slots, slots)
        first, of_part = _starts(slots), _starts(part.slots)
        for i, length in enumerate(told):
            if not length and i not in part.totals:
                continue
            slot = units[first[i] : first[i + 1]]
            new = part.units[of_part[i] : of_part[i + 1]]
            known = ~np.isnan(slot)
            if i in self.totals or i in part.totals:  # a total goes with nothing else
                if length or known.any() or totals.setdefault(i, part.totals[i]) != part.totals[i]:
                    raise _conflict(losses_of(names[i]))
            elif length == len(slot):
                both = known & ~np.isnan(new)
                if (slot[both] != new[both]).any():
                    raise _conflict(losses_of(names[i]))
                slot[~known] = new[~known]
            else:
                free = np.flatnonzero(~known)
                if length > len(free):
                    raise InvalidInput(
                        losses_of(names[i]),
                        f"at most {len(free)} losses, for the units that have none yet",
                        f"{length}",
                        "Give a list with None for the units that were told before.",
                    )
                slot[free[:length]] = new[:length]
        gaps, clipped = bool(np.isnan(units).any()), self.clipped + part.clipped
        excused = self.excused | part.excused
        joined = Report(self.played, slots, units, totals, None, gaps, clipped, excused)
        return joined.judged()

    @property
    def seen(self) -> IntArray:
        """How many units of each arm have reported, (d,)."""
        if self.whole or self.round is not None:
            return self.played
        seen = self.slots.copy()
        if self.gaps:
            silent = np.bincount(self.arm, weights=np.isnan(self.units), minlength=len(seen))
            seen -= silent.astype(np.int64)
        if self.totals:
            which = list(self.totals)
            seen[which] = self.played[which]
        return seen

    def check_gaps(self, names: Sequence[str]) -> None:
        """Raise ``InvalidInput`` if units are missing of which nobody said that they are."""
        if self.whole:
            return
        silent = self.seen < self.played
        silent[list(self.excused)] = False
        if silent.any():
            i = int(silent.argmax())
            raise InvalidInput(
                losses_of(names[i]),
                f"those of {self.played[i] - self.seen[i]} units that have not reported",
                "none",
                "Tell them, write None in the list for each that is missing, or write "
                "missing='ignore'.",
            )

    def feedback(self) -> Feedback:
        """Return what a policy may learn from."""
        played, units, d = self.played[None], self.units, len(self.played)
        if self.round is not None:
            return Feedback(played, np.array([[self.round]]))
        if self.totals and self.whole and len(units) == 0:
            total = np.array([self.totals.get(i, 0.0) for i in range(d)])
            return Feedback(played, total[None])
        if self.gaps:
            missing = np.isnan(units)
            order = np.lexsort((missing, self.arm))  # those seen of an arm stand first
            units = np.where(missing, 0.0, units)[order]
        first, total = np.empty(d + 1, dtype=np.int64), np.empty(d)
        kernels.split(units, self.slots, first, total)
        seen = played if self.whole else self.seen[None]
        if self.totals:
            total[list(self.totals)] = list(self.totals.values())
            return Feedback(played, total[None], seen=seen)
        return Feedback(played, total[None], units[None], first, seen)


class Terms(NamedTuple):
    """What a reading is judged by, and what makes a report of it.

    Attributes
    ----------
    played : array of shape (d,)
        How many units of each arm were played.
    names, bounds
        What the arms are called, and what a unit of each can lose.
    ranges
        The user's unit.
    """

    played: IntArray
    names: Sequence[str]
    bounds: Bounds
    ranges: Ranges

    def report(self, reading: Reading, partly: bool) -> Report:
        """Return a reading as a report, if it fits.

        ``partly`` says whether arms and units may be left out.
        """
        played, gaps = self.played, reading.gaps
        if reading.round is not None:
            return self._of_round(reading.round)
        if not reading.totals and reading.length == played.tolist():  # as a rule
            units, clipped = self.ranges.learned(self.names, self.bounds, played, reading.units)
            excused = frozenset(range(len(played))) if gaps else NOBODY
            return Report(played, played, units, {}, None, gaps, clipped, excused, not gaps)
        if reading.totals and len(reading.units) == 0:
            return self._of_totals(reading, partly)
        return self._of_units(reading, partly)

    def _of_round(self, told: float) -> Report:
        least, most = (float(self.played @ end) for end in self.bounds)
        units = int(self.played.sum())
        learned, clipped = self.ranges.learned_total("losses", told, least, most, units)
        return Report.empty(self.played)._replace(round=learned, clipped=clipped, whole=True)

    def _of_totals(self, reading: Reading, partly: bool) -> Report:
        """Take the totals of a reading, and nothing else of it."""
        totals: dict[int, float] = {}
        clipped, whole = 0, True
        for i, units in enumerate(self.played.tolist()):
            told = reading.totals.get(i)
            if told is None:
                whole &= units == 0
                if units and not partly:
                    raise self._wrong_length(i, 0, partly)
                continue
            if not (self.ranges.plain and 0.0 <= told <= units):
                least, most = (units * float(end[i]) for end in self.bounds)
                argument = losses_of(self.names[i])
                told, outside = self.ranges.learned_total(argument, told, least, most, units)
                clipped += outside
            if units:
                totals[i] = told
        slots, rest = _zeros(len(self.played)), (None, False, clipped, NOBODY, whole)
        return Report(self.played, slots, NOTHING, totals, *rest)

    def _of_units(self, reading: Reading, partly: bool) -> Report:
        """Take a reading that has units and totals, or does not have all."""
        played, length = self.played, np.array(reading.length, dtype=np.int64)
        wrong = (length > played) if partly else (length != played)
        wrong[list(reading.totals)] = False
        if wrong.any():
            i = int(wrong.argmax())
            raise self._wrong_length(i, int(length[i]), partly)
        units, clipped = self.ranges.learned(self.names, self.bounds, length, reading.units)
        told = self._of_totals(reading, partly=True)
        slots, gaps = np.where(length > 0, played, 0), reading.gaps
        if (length < slots).any():
            units, gaps = _spread(units, length, slots), True
        in_full = (length == slots) & (length > 0)
        excused = frozenset(np.flatnonzero(in_full).tolist()) if gaps else NOBODY
        clipped += told.clipped
        return Report(played, slots, units, told.totals, None, gaps, clipped, excused).judged()

    def _wrong_length(self, i: int, length: int, partly: bool) -> InvalidInput:
        units, most, hint = self.played[i], "", "Give the loss of every unit, or one number."
        if partly:
            most, hint = "at most ", "Give one loss for each unit that was played."
        elif length < units:
            hint += " Write missing='ignore' if the others never come."
        expected = f"a list of {most}{units} losses, or their total"
        return InvalidInput(losses_of(self.names[i]), expected, f"{length}", hint)


@lru_cache(maxsize=16)
def _zeros(d: int) -> IntArray:
    return np.zeros(d, dtype=np.int64)  # writable, as kernels are compiled for; nobody writes


def _starts(length: IntArray) -> IntArray:
    """Return where the entries of each arm begin, and the end of all."""
    first = np.zeros(len(length) + 1, dtype=np.int64)
    length.cumsum(out=first[1:])
    return first


def _spread(units: FloatArray, length: IntArray, slots: IntArray) -> FloatArray:
    """Return units with more room for each arm: NaN behind those that it has."""
    wide = np.full(int(slots.sum()), math.nan)
    before = np.cumsum(slots) - slots - (np.cumsum(length) - length)
    wide[np.arange(len(units)) + np.repeat(before, length)] = units
    return wide


def _conflict(argument: str) -> Conflict:
    return Conflict(
        argument,
        "what was told before, or units that were not told yet",
        "other losses for the same units",
        "Tell each unit once. A loss that was told cannot be changed.",
    )
