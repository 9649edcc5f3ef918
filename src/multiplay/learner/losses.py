"""What people tell of a play, read arm by arm, and turned into feedback."""

import hashlib
import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from multiplay.checks import is_list, is_number, numbers
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import units as kernels
from multiplay.learner.ranges import Bounds, Ranges
from multiplay.policies import Policy
from multiplay.types import FloatArray, IntArray

EXACT = {Decimal, Fraction}  # numbers that numpy does not know
NOBODY: frozenset[int] = frozenset()
NOTHING = np.zeros(0)
FLOAT = {float, np.float64}
ORDINARY = {float, int, np.float64}
DIGEST = 16  # bytes
NOT_A_NUMBER = ("NAType", "NaTType")  # how pandas writes that a value is missing


class Reading(NamedTuple):
    """One report, arm by arm, in the user's unit.

    Attributes
    ----------
    units : array
        The losses of single units, arm after arm; NaN for a unit that did not report.
    length : list of d integers
        How many of them arm i has.
    totals : dict
        By arm, the total, where one number was told for it.
    round : float or None
        The total of all units, where nothing else was told.
    gaps : bool
        Whether there may be NaN among the units.
    """

    units: FloatArray
    length: list[int]
    totals: dict[int, float]
    round: float | None = None
    gaps: bool = False

    def digest(self, played: IntArray | None) -> bytes:
        """16 bytes that tell reports with different contents apart, whatever their form.

        A total of 0 for an arm that was not played says nothing; where it is not known any more
        what was played, that is taken of every total of 0.
        """
        content = self.units.tobytes()
        if not self.totals:
            content += array("q", self.length).tobytes()
        else:
            told = self.totals
            if 0 in told.values():
                told = {i: x for i, x in told.items() if x or (played is not None and played[i])}
            content += array("q", chain(self.length, told)).tobytes()
            content += array("d", told.values()).tobytes()
        if self.round is not None:
            content += array("d", [self.round]).tobytes()
        return hashlib.blake2b(content, digest_size=DIGEST).digest()


def read(losses: Any, names: Sequence[str], policy: Policy, also: Collection[str] = ()) -> Reading:
    """Return what was told, after checking that it is numbers for arms; ``also`` may be named."""
    if type(losses) is not dict:
        losses = by_label(losses)
        if getattr(losses, "ndim", None) == 0:
            losses = _out_of_array("losses", losses)
        if is_number(losses) or type(losses) in EXACT:
            return Reading(np.zeros(0), [], {}, _round_total(losses, policy))
    totals: dict[int, float] = {}
    units: list[Any] = []
    for i, entry in enumerate(_by_arm(losses, names, policy, also)):
        if type(entry) is list:  # as a rule
            units.append(entry)
            continue
        if type(entry) in FLOAT and math.isfinite(entry):
            totals[i] = entry
            units.append(())
            continue
        if hasattr(entry, "__array__"):
            entry = _out_of_array(losses_of(names[i]), entry)
        if is_missing(entry):
            entry = ()
        elif is_number(entry) or type(entry) in EXACT:
            totals[i] = _as_float(losses_of(names[i]), entry)
            entry = ()
        elif not is_list(entry):
            expected = "a list with the loss of every unit, or their total"
            hint = "Give the loss of every unit, or one number."
            raise InvalidInput(losses_of(names[i]), expected, repr(entry), hint)
        units.append(entry)
    flat, gaps = _numbers(units, names)
    return Reading(flat, [len(entry) for entry in units], totals, gaps=gaps)


def _round_total(total: Any, policy: Policy) -> float:
    """Return the total of all units."""
    if policy.learns_from != "round":
        raise InvalidInput(
            "losses",
            f"the losses of each arm, which {type(policy).__name__} learns from",
            "one number",
            "Give a dict by arm name, or use a policy that learns from the round, such as LinTS.",
        )
    return _as_float("losses", total)


def _by_arm(
    losses: Any, names: Sequence[str], policy: Policy, also: Collection[str]
) -> Sequence[Any]:
    """Return one entry for each arm, in order; None where nothing was told."""
    if isinstance(losses, Mapping):
        if len(losses) != sum(map(losses.__contains__, names)):
            unknown = losses.keys() - set(names) - set(also)
            if unknown:
                got = repr(unknown.pop())
                expected = f"names such as {names[0]!r}"
                raise InvalidInput("losses", expected, got, "Check the spelling.")
        return [losses.get(name) for name in names]
    if not is_list(losses):
        of_round = "the total of all units, " if policy.learns_from == "round" else ""
        raise InvalidInput(
            "losses",
            f"{of_round}a dict by arm name, or a list",
            repr(losses),
            'Write {"name of the arm": [loss of a unit, ...], ...}'
            + (", or one number." if of_round else "."),
        )
    if len(losses) != len(names):
        raise InvalidInput(
            "losses",
            f"{len(names)} entries, one for each arm",
            f"{len(losses)}",
            "Give a list for each arm (empty where nothing was played), or totals.",
        )
    return list(losses)


def _numbers(units: list[Any], names: Sequence[str]) -> tuple[FloatArray, bool]:
    """Return all losses in one list, or name the arm with a bad one; say if there may be gaps.

    A loss that is missing is NaN.
    """
    gaps, together = False, list(chain.from_iterable(units))
    if not together:
        return NOTHING, False
    if ORDINARY.issuperset(map(type, together)):
        flat = np.array(together, dtype=float)
        if kernels.all_finite(flat):  # as a rule
            return flat, False
    try:
        flat = numbers("losses", _plain(together))
    except InvalidInput:  # rarely: something is missing, or cannot be
        some = [(name, entry) for name, entry in zip(names, units, strict=True) if len(entry)]
        flat = np.concatenate([_with_gaps(losses_of(name), entry) for name, entry in some])
        gaps = True
    if flat.ndim > 1:
        raise InvalidInput(
            "losses", "one number for each unit", "lists", "Give a flat list for each arm."
        )
    return flat, gaps


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

    @classmethod
    def first_of(
        cls,
        count: IntArray,
        reading: Reading,
        ranges: Ranges,
        bounds: Bounds,
        names: Sequence[str],
        partly: bool,
    ) -> "Report":
        """Return a reading as a report of these units, if it fits.

        ``partly`` says whether arms and units may be left out.
        """
        if reading.round is not None:
            least, most = (float(count @ end) for end in bounds)
            told, units_played = reading.round, int(count.sum())
            learned, clipped = ranges.learned_total("losses", told, least, most, units_played)
            return cls.empty(count)._replace(round=learned, clipped=clipped, whole=True)
        units, length, gaps = reading.units, reading.length, reading.gaps
        if not reading.totals and length == count.tolist():  # as a rule
            units, clipped = ranges.learned(names, bounds, count, units)
            excused = frozenset(range(len(length))) if gaps else NOBODY
            return cls(count, count, units, {}, None, gaps, clipped, excused, not gaps)
        if reading.totals and len(units) == 0:
            return cls._by_totals(count, reading, ranges, bounds, names, partly)
        return cls._loose(count, reading, ranges, bounds, names, partly)

    @classmethod
    def _by_totals(
        cls,
        count: IntArray,
        reading: Reading,
        ranges: Ranges,
        bounds: Bounds,
        names: Sequence[str],
        partly: bool,
    ) -> "Report":
        """Return a reading that has nothing but totals."""
        totals: dict[int, float] = {}
        clipped, whole = 0, True
        for i, units in enumerate(count.tolist()):
            told = reading.totals.get(i)
            if told is None:
                whole &= units == 0
                if units and not partly:
                    raise _wrong_length(i, count, np.zeros_like(count), names, partly)
                continue
            if not (ranges.plain and 0.0 <= told <= units):
                least, most = units * float(bounds.low[i]), units * float(bounds.high[i])
                told, outside = ranges.learned_total(losses_of(names[i]), told, least, most, units)
                clipped += outside
            if units:
                totals[i] = told
        return cls(count, _zeros(len(count)), NOTHING, totals, None, False, clipped, NOBODY, whole)

    @classmethod
    def _loose(
        cls,
        count: IntArray,
        reading: Reading,
        ranges: Ranges,
        bounds: Bounds,
        names: Sequence[str],
        partly: bool,
    ) -> "Report":
        """Return a reading that has units and totals, or does not have all."""
        length = np.array(reading.length, dtype=np.int64)
        wrong = (length > count) if partly else (length != count)
        wrong[list(reading.totals)] = False
        if wrong.any():
            raise _wrong_length(int(wrong.argmax()), count, length, names, partly)
        units, clipped = ranges.learned(names, bounds, length, reading.units)
        by_total = reading._replace(units=NOTHING)
        told = cls._by_totals(count, by_total, ranges, bounds, names, partly=True)
        slots, gaps = np.where(length > 0, count, 0), reading.gaps
        if (length < slots).any():
            units, gaps = _spread(units, length, slots), True
        in_full = (length == slots) & (length > 0)
        excused = frozenset(np.flatnonzero(in_full).tolist()) if gaps else NOBODY
        clipped += told.clipped
        return cls(count, slots, units, told.totals, None, gaps, clipped, excused).judged()

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


def _wrong_length(
    i: int, count: IntArray, length: IntArray, names: Sequence[str], partly: bool
) -> InvalidInput:
    most, hint = "", "Give the loss of every unit, or one number."
    if partly:
        most, hint = "at most ", "Give one loss for each unit that was played."
    elif length[i] < count[i]:
        hint += " Write missing='ignore' if the others never come."
    expected = f"a list of {most}{count[i]} losses, or their total"
    return InvalidInput(losses_of(names[i]), expected, f"{length[i]}", hint)


def losses_of(name: str) -> str:
    """Say in an error whose losses are meant."""
    return f"losses of {name!r}"


def _conflict(argument: str) -> InvalidInput:
    return InvalidInput(
        argument,
        "what was told before, or units that were not told yet",
        "other losses for the same units",
        "Tell each unit once. A loss that was told cannot be changed.",
    )


def _out_of_array(argument: str, entry: Any) -> Any:
    """Return the number in an array without axes, and other arrays as those of numpy."""
    array = np.asarray(entry)
    if isinstance(entry, np.ma.MaskedArray):  # what is masked is missing, and not 0
        if array.ndim and array.dtype.kind in "biuf":
            array = np.ma.filled(entry.astype(float), math.nan)
        else:
            array = numbers(argument, entry)
    return array if array.ndim else array.item()


def by_label(given: Any) -> Any:
    """Return a pandas Series as a dict by arm name, or as a list if it is only numbered."""
    if type(given).__name__ != "Series" or not hasattr(given, "index"):
        return given
    labels = list(given.index)
    if labels == list(range(len(labels))):
        return list(given)
    told = dict(zip(labels, given, strict=True))
    if len(told) < len(labels):
        raise InvalidInput(
            "losses",
            "one entry for each arm",
            "a Series that names an arm twice",
            "Collect the units of an arm: series.groupby(level=0).agg(list).",
        )
    return told


def _with_gaps(argument: str, losses: Any) -> FloatArray:
    """Return losses as floats, NaN where one is missing."""
    missing = [is_missing(loss) for loss in losses]
    present = [loss for loss, gap in zip(losses, missing, strict=True) if not gap]
    known = numbers(argument, _plain(present)) if present else np.zeros(0)
    if known.ndim > 1:
        raise InvalidInput(
            argument, "one number for each unit", "lists", "Give a flat list for each arm."
        )
    flat = np.full(len(missing), math.nan)
    flat[~np.array(missing)] = known
    return flat


def is_missing(loss: Any) -> bool:
    """Say whether this stands for a loss that did not come: None, NaN, or pandas' own signs."""
    if loss is None or type(loss).__name__ in NOT_A_NUMBER:
        return True
    return isinstance(loss, float | np.floating) and bool(loss != loss)


def _plain(losses: Any) -> Any:
    """Return losses as numbers that numpy knows."""
    if EXACT.isdisjoint(map(type, losses)):
        return losses
    return [_as_float("losses", loss) if type(loss) in EXACT else loss for loss in losses]


def _as_float(argument: str, number: Any) -> float:
    try:
        value = float(number)
    except (ValueError, OverflowError) as error:  # a signalling NaN, or too large
        got = f"a number of type {type(number).__name__} ({error})"
    else:
        if math.isfinite(value):
            return value
        got = f"{value}"
    hint = "Give the losses that were seen, and None in a list for a unit that is missing."
    raise InvalidInput(argument, "a finite number", got, hint)
