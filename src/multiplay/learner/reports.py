"""Reports of a play: losses as users give them, checked and turned into feedback."""

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

from multiplay._support.checks import is_list, is_number, numbers
from multiplay._support.hints import Hint, Option, Term
from multiplay._support.suggestions import suggestion
from multiplay.actions.base import unit_numbers
from multiplay.errors import Conflict, InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import units as kernels
from multiplay.learner.ranges import Bounds, Ranges
from multiplay.policies import Policy
from multiplay.types import FloatArray, IntArray

EXACT = {Decimal, Fraction}  # number types that numpy does not convert
NOTHING = np.zeros(0)
FLOAT = {float, np.float64}
ORDINARY = {float, int, np.float64}
DIGEST = 16  # bytes
NOT_A_NUMBER = ("NAType", "NaTType")  # types of missing values in pandas
NOT_REPORTED = Term("None", "missing unit")
IGNORED = Option("missing", "'ignore'")
REST_HINT = Hint(
    " Use {} if the rest will not be reported, {} (in tell) if it will.",
    IGNORED,
    Option("final", "False"),
)


class ParsedLosses(NamedTuple):
    """The losses of one report by arm, in the user's unit.

    Attributes
    ----------
    units : array
        The losses of single units, ordered by arm; NaN for a missing one.
    length : list of d integers
        The number of entries of each arm in ``units``.
    totals : dict
        The total of an arm, where one number was told for it.
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

    def seen(self, played: IntArray) -> int:
        """Return the number of units of a play whose losses are known."""
        if self.round is not None:
            return int(played.sum())
        return int((~np.isnan(self.units)).sum()) + sum(int(played[i]) for i in self.totals)

    @property
    def total(self) -> float:
        """The sum of all losses."""
        if self.round is not None:
            return self.round
        return float(np.nansum(self.units)) + sum(self.totals.values())

    def digest(self, played: IntArray | None) -> bytes:
        """Return a digest of 16 bytes that is equal for reports of equal content in any form.

        A total of 0 for an arm that was not played has no content; where the action is no longer
        known, that is assumed of every total of 0.
        """
        content = self.units.tobytes() + array("q", self.length).tobytes()
        if self.totals:
            told = self.totals
            content += array("d", [told.get(i, 0.0) for i in range(len(self.length))]).tobytes()
            if played is not None and 0 in told.values():
                units = played.tolist()
                nothing = [i for i, total in told.items() if total == 0 and units[i]]
                content += array("q", nothing).tobytes()
        if self.round is not None:
            content += array("d", [self.round]).tobytes()
        return hashlib.blake2b(content, digest_size=DIGEST).digest()


def is_among(digest: bytes, digests: bytes) -> bool:
    """Return whether a digest is one of the concatenated ``digests``."""
    if not digests:
        return False
    return digest in [digests[k : k + DIGEST] for k in range(0, len(digests), DIGEST)]


def parse_losses(
    losses: Any, names: Sequence[str], policy: Policy, also: Collection[str] = ()
) -> ParsedLosses:
    """Return losses after checking that they are numbers for arms; ``also`` may be named."""
    if type(losses) is not dict:
        losses = unwrapped(losses)
        if is_number(losses) or type(losses) in EXACT:
            return ParsedLosses(np.zeros(0), [], {}, _round_total(losses, policy))
    totals: dict[int, float] = {}
    units: list[Any] = []
    for i, entry in enumerate(_by_arm(losses, names, policy, also)):
        if type(entry) is list:  # the usual case
            units.append(entry)
            continue
        if type(entry) in FLOAT and math.isfinite(entry):
            totals[i] = entry
            units.append(())
            continue
        told = None if entry is None else losses_of_arm(losses_argument(names[i]), entry)
        if isinstance(told, float):
            totals[i] = told
        units.append(() if told is None or isinstance(told, float) else told)
    flat, gaps = _numbers(units, names)
    return ParsedLosses(flat, [len(entry) for entry in units], totals, gaps=gaps)


def losses_of_arm(argument: str, entry: Any) -> Any:
    """Return what was told of an arm: a list of losses, their total as a float, or None."""
    if hasattr(entry, "__array__"):
        entry = out_of_array(argument, entry)
    if is_missing(entry):
        return None
    if is_number(entry) or type(entry) in EXACT:
        return as_float(argument, entry)
    if is_list(entry):
        return entry
    expected = "a list with the loss of every unit, or their total"
    hint = "Use a list with one loss for each unit, or one number."
    raise InvalidInput(argument, expected, repr(entry), hint)


def unwrapped(losses: Any) -> Any:
    """Return the losses in a Series or in an array without axes."""
    losses = by_label(losses)
    return out_of_array("losses", losses) if getattr(losses, "ndim", None) == 0 else losses


def _round_total(total: Any, policy: Policy) -> float:
    """Return the total of all units."""
    if policy.learns_from != "round":
        raise InvalidInput(
            "losses",
            f"the losses of each arm, for {type(policy).__name__}",
            "one number",
            "Use a dict by arm name, or a policy that learns from totals of rounds, such as LinTS.",
        )
    return as_float("losses", total)


def _by_arm(
    losses: Any, names: Sequence[str], policy: Policy, also: Collection[str]
) -> Sequence[Any]:
    """Return one entry for each arm in order; None where nothing was told."""
    if isinstance(losses, Mapping):
        if len(losses) != sum(map(losses.__contains__, names)):
            known = {*names, *also}
            unknown = [name for name in losses if name not in known]
            if unknown:
                expected = f"names such as {names[0]!r}"
                hint = f"Check the spelling.{suggestion(unknown[0], names)}"
                raise InvalidInput("losses", expected, repr(unknown[0]), hint)
        return [losses.get(name) for name in names]
    if not is_list(losses):
        of_round = "the total of all units, " if policy.learns_from == "round" else ""
        raise InvalidInput(
            "losses",
            f"{of_round}a dict by arm name, or a list",
            repr(losses),
            'Use {"name of the arm": [loss of a unit, ...], ...}'
            + (", or one number." if of_round else "."),
        )
    if len(losses) != len(names):
        raise InvalidInput(
            "losses",
            f"{len(names)} entries, one for each arm",
            f"{len(losses)}",
            "Use a list for each arm (empty where nothing was played), or totals.",
        )
    return list(losses)


def _numbers(units: list[Any], names: Sequence[str]) -> tuple[FloatArray, bool]:
    """Return all losses in one array, NaN where one is missing, and whether there may be gaps.

    An error names the arm of a bad loss.
    """
    gaps, together = False, list(chain.from_iterable(units))
    if not together:
        return NOTHING, False
    if ORDINARY.issuperset(map(type, together)):
        flat = np.array(together, dtype=float)
        if kernels.all_finite(flat):  # the usual case
            return flat, False
    try:
        flat = numbers("losses", _plain(together))
    except InvalidInput:  # rarely: a loss is missing or wrong
        some = [(name, entry) for name, entry in zip(names, units, strict=True) if len(entry)]
        flat = np.concatenate([with_gaps(losses_argument(name), entry) for name, entry in some])
        gaps = True
    if flat.ndim > 1:
        raise InvalidInput(
            "losses", "one number for each unit", "lists", "Use a flat list for each arm."
        )
    return flat, gaps


def losses_argument(name: str) -> str:
    """Return the name of the losses of an arm in an error."""
    return f"losses of {name!r}"


def out_of_array(argument: str, entry: Any) -> Any:
    """Return the number in an array without axes, and other arrays as numpy arrays."""
    array = np.asarray(entry)
    if isinstance(entry, np.ma.MaskedArray):  # a masked value is missing, not 0
        if array.ndim and array.dtype.kind in "biuf":
            array = np.ma.filled(entry.astype(float), math.nan)
        else:
            array = numbers(argument, entry)
    return array if array.ndim else array.item()


def by_label(given: Any) -> Any:
    """Return a pandas Series as a dict by arm name, or as a list if its index is 0, 1, 2, ..."""
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
            "a Series with an arm that occurs twice",
            "Collect the units of an arm: series.groupby(level=0).agg(list).",
        )
    return told


def with_gaps(argument: str, losses: Any) -> FloatArray:
    """Return losses as floats, NaN where one is missing."""
    missing = [is_missing(loss) for loss in losses]
    present = [loss for loss, gap in zip(losses, missing, strict=True) if not gap]
    known = numbers(argument, _plain(present)) if present else np.zeros(0)
    if known.ndim > 1:
        raise InvalidInput(
            argument, "one number for each unit", "lists", "Use a flat list for each arm."
        )
    flat = np.full(len(missing), math.nan)
    flat[~np.array(missing, dtype=bool)] = known
    return flat


def is_missing(loss: Any) -> bool:
    """Return whether a value means a missing loss: None, NaN, or NA and NaT of pandas."""
    if loss is None or type(loss).__name__ in NOT_A_NUMBER:
        return True
    return isinstance(loss, float | np.floating) and bool(loss != loss)


def _plain(losses: Any) -> Any:
    """Return losses as numbers that numpy converts."""
    if EXACT.isdisjoint(map(type, losses)):
        return losses
    return [as_float("losses", loss) if type(loss) in EXACT else loss for loss in losses]


def as_float(argument: str, number: Any) -> float:
    """Return a number of any type as a finite float."""
    try:
        value = float(number)
    except (ValueError, OverflowError) as error:  # a signalling NaN, or too large
        got = f"a number of type {type(number).__name__} ({error})"
    else:
        if math.isfinite(value):
            return value
        got = f"{value}"
    hint = Hint("Use finite numbers, and {} in a list for a missing unit.", NOT_REPORTED)
    raise InvalidInput(argument, "a finite number", got, hint)


NO_ARMS: frozenset[int] = frozenset()


class Reports(NamedTuple):
    """How a learner or study treats reports with losses out of range, or without some units.

    Attributes
    ----------
    outside : "refuse", "clip", "grow" or None
        The treatment of a loss outside its range: refuse it, move it to the nearest end, or make
        the range wider. None: "grow" if no range is given and the policy needs none, otherwise
        "refuse".
    missing : "refuse" or "ignore"
        The treatment of units that a final report leaves out. None or NaN in a list always marks a
        missing unit.

    Examples
    --------
    >>> from multiplay import Budget, Learner, Reports
    >>> plans = Budget(2, [2, 2], names=["air", "sea"])
    >>> learner = Learner(plans, reports=Reports(outside="clip", missing="ignore"))
    >>> learner.learn({"air": 1, "sea": 1}, {"air": [1.5]}).clipped
    1
    """

    outside: str | None = None
    missing: str = "refuse"


REFUSED = Reports()


class Report(NamedTuple):
    """All losses told of one play so far, in [0, 1] as policies see them.

    Attributes
    ----------
    played : array of shape (d,)
        The number of units of each arm that were played.
    slots : array of shape (d,)
        The number of entries of each arm in ``units``: all units of an arm whose single units were
        told, and otherwise 0.
    units : array
        The losses of single units, ordered by arm; NaN where one was not told.
    totals, round, gaps
        As in ``ParsedLosses``.
    clipped : int
        The number of losses outside their range.
    excused : frozenset
        The arms with gaps that were told by a full list, which marks the missing units.
    whole : bool
        Whether every unit was told, alone or in a total.
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
        """Return the report of a play of which nothing was told."""
        return cls(count, _zeros(len(count)), NOTHING, {})

    def judged(self) -> "Report":
        """Return the report with ``whole`` computed."""
        return self._replace(whole=bool((self.seen == self.played).all()))

    @property
    def arm(self) -> IntArray:
        """The arm of every entry of ``units``."""
        return np.arange(len(self.slots)).repeat(self.slots)

    def joined(self, part: "Report", told: list[int], names: Sequence[str]) -> "Report":
        """Return the report with a part added.

        A list with an entry for every unit is added unit by unit; a shorter one is for units not
        told before. ``told`` is the number of entries of each arm in the part.
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
            if i in self.totals or i in part.totals:  # a total cannot be combined with other losses
                if length or known.any() or totals.setdefault(i, part.totals[i]) != part.totals[i]:
                    raise _conflict(losses_argument(names[i]))
            elif length == len(slot):
                both = known & ~np.isnan(new)
                if (slot[both] != new[both]).any():
                    raise _conflict(losses_argument(names[i]))
                slot[~known] = new[~known]
            else:
                free = np.flatnonzero(~known)
                if length > len(free):
                    raise InvalidInput(
                        losses_argument(names[i]),
                        f"at most {len(free)} losses, for the units not told before",
                        f"{length}",
                        Hint(
                            "Use a list with {} for the units that were told before.", NOT_REPORTED
                        ),
                    )
                slot[free[:length]] = new[:length]
        gaps, clipped = bool(np.isnan(units).any()), self.clipped + part.clipped
        excused = self.excused | part.excused
        joined = Report(self.played, slots, units, totals, None, gaps, clipped, excused)
        return joined.judged()

    def without(self, arms: Sequence[int]) -> "Report":
        """Return the report in which nothing was told of these arms."""
        if not arms:
            return self
        units, totals = self.units.copy(), {k: v for k, v in self.totals.items() if k not in arms}
        units[np.isin(self.arm, arms)] = np.nan
        gaps = bool(np.isnan(units).any())
        return self._replace(units=units, totals=totals, gaps=gaps, whole=False).judged()

    @property
    def seen(self) -> IntArray:
        """The number of units of each arm that were told, (d,)."""
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
        """Raise ``InvalidInput`` if units are missing that were not marked as missing."""
        if self.whole:
            return
        silent = self.seen < self.played
        silent[list(self.excused)] = False
        if silent.any():
            i = int(silent.argmax())
            raise InvalidInput(
                losses_argument(names[i]),
                f"{self.played[i] - self.seen[i]} more losses, one for each unit",
                "no losses for these units",
                Hint(
                    "Tell them, use {} in the list for each missing unit, or use {}.",
                    NOT_REPORTED,
                    IGNORED,
                ),
            )

    def feedback(self) -> Feedback:
        """Return the feedback for a policy."""
        played, units, d = self.played[None], self.units, len(self.played)
        if self.round is not None:
            return Feedback(played, np.array([[self.round]]))
        if self.totals and self.whole and len(units) == 0:
            total = np.array([self.totals.get(i, 0.0) for i in range(d)])
            return Feedback(played, total[None])
        number = None
        if self.gaps:
            missing, place = np.isnan(units), unit_numbers(self.slots)
            order = np.lexsort((missing, self.arm))  # the units seen of an arm come first
            units, number = np.where(missing, 0.0, units)[order], place[order][None]
        first, total = np.empty(d + 1, dtype=np.int64), np.empty(d)
        kernels.split(units, self.slots, first, total)
        seen = played if self.whole else self.seen[None]
        if self.totals:
            total[list(self.totals)] = list(self.totals.values())
            return Feedback(played, total[None], seen=seen)
        return Feedback(played, total[None], units[None], first, seen, number)


class ReportBuilder(NamedTuple):
    """Checks of parsed losses against a play, and their conversion to a report.

    Attributes
    ----------
    played : array of shape (d,)
        The number of units of each arm that were played.
    names, bounds
        The names of the arms, and the range of losses of a unit of each.
    ranges
        The user's unit.
    """

    played: IntArray
    names: Sequence[str]
    bounds: Bounds
    ranges: Ranges

    def report(self, parsed: ParsedLosses, partly: bool) -> Report:
        """Return parsed losses as a report, after checking that they fit the play.

        With ``partly``, arms and units may be left out.
        """
        played, gaps = self.played, parsed.gaps
        if parsed.round is not None:
            return self._of_round(parsed.round)
        if not parsed.totals and parsed.length == played.tolist():  # the usual case
            units, clipped = self.ranges.learned(self.names, self.bounds, played, parsed.units)
            excused = frozenset(range(len(played))) if gaps else NO_ARMS
            return Report(played, played, units, {}, None, gaps, clipped, excused, not gaps)
        if parsed.totals and len(parsed.units) == 0:
            return self._of_totals(parsed, partly)
        return self._of_units(parsed, partly)

    def _of_round(self, told: float) -> Report:
        least, most = (float(self.played @ end) for end in self.bounds)
        units = int(self.played.sum())
        learned, clipped = self.ranges.learned_total("losses", told, least, most, units)
        return Report.empty(self.played)._replace(round=learned, clipped=clipped, whole=True)

    def _of_totals(self, parsed: ParsedLosses, partly: bool) -> Report:
        """Return the report of the totals only."""
        totals: dict[int, float] = {}
        clipped, whole = 0, True
        for i, units in enumerate(self.played.tolist()):
            told = parsed.totals.get(i)
            if told is None:
                whole &= units == 0
                if units and not partly:
                    raise self._wrong_length(i, 0, partly)
                continue
            if not (self.ranges.plain and 0.0 <= told <= units):
                least, most = (units * float(end[i]) for end in self.bounds)
                argument = losses_argument(self.names[i])
                told, outside = self.ranges.learned_total(argument, told, least, most, units)
                clipped += outside
            if units:
                totals[i] = told
        slots, rest = _zeros(len(self.played)), (None, False, clipped, NO_ARMS, whole)
        return Report(self.played, slots, NOTHING, totals, *rest)

    def _of_units(self, parsed: ParsedLosses, partly: bool) -> Report:
        """Return the report of losses with units and totals, or with gaps."""
        played, length = self.played, np.array(parsed.length, dtype=np.int64)
        wrong = (length > played) if partly else (length != played)
        wrong[list(parsed.totals)] = False
        if wrong.any():
            i = int(wrong.argmax())
            raise self._wrong_length(i, int(length[i]), partly)
        units, clipped = self.ranges.learned(self.names, self.bounds, length, parsed.units)
        told = self._of_totals(parsed, partly=True)
        slots, gaps = np.where(length > 0, played, 0), parsed.gaps
        if (length < slots).any():
            units, gaps = _spread(units, length, slots), True
        in_full = (length == slots) & (length > 0)
        excused = frozenset(np.flatnonzero(in_full).tolist()) if gaps else NO_ARMS
        clipped += told.clipped
        return Report(played, slots, units, told.totals, None, gaps, clipped, excused).judged()

    def _wrong_length(self, i: int, length: int, partly: bool) -> InvalidInput:
        units, most, hint = self.played[i], "", "Use one loss for each unit, or one number."
        if partly:
            most, hint = "at most ", "Use one loss for each unit that was played."
        elif length < units:
            hint += REST_HINT
        expected = f"a list of {most}{units} losses, or their total"
        return InvalidInput(losses_argument(self.names[i]), expected, f"{length}", hint)


@lru_cache(maxsize=16)
def _zeros(d: int) -> IntArray:
    return np.zeros(d, dtype=np.int64)  # writable, as kernels are compiled for, but never written


def _starts(length: IntArray) -> IntArray:
    """Return the start of the entries of each arm, and the end of all."""
    first = np.zeros(len(length) + 1, dtype=np.int64)
    length.cumsum(out=first[1:])
    return first


def _spread(units: FloatArray, length: IntArray, slots: IntArray) -> FloatArray:
    """Return units with more entries for each arm: NaN after those it has."""
    wide = np.full(int(slots.sum()), math.nan)
    before = np.cumsum(slots) - slots - (np.cumsum(length) - length)
    wide[np.arange(len(units)) + np.repeat(before, length)] = units
    return wide


def _conflict(argument: str) -> Conflict:
    return Conflict(
        argument,
        "the same losses as before, or units not told before",
        "different losses for the same units",
        "Tell each unit once: a reported loss cannot be changed.",
    )
