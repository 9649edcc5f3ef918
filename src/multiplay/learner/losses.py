"""What people tell of a play, read arm by arm."""

import hashlib
import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.checks import is_list, is_number, numbers
from multiplay.errors import InvalidInput
from multiplay.kernels import units as kernels
from multiplay.policies import Policy
from multiplay.types import FloatArray, IntArray

EXACT = {Decimal, Fraction}  # numbers that numpy does not know
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
    """Say whether a digest is one of those that stand one after the other."""
    if not digests:
        return False
    return digest in [digests[k : k + DIGEST] for k in range(0, len(digests), DIGEST)]


def read(losses: Any, names: Sequence[str], policy: Policy, also: Collection[str] = ()) -> Reading:
    """Return what was told, after checking that it is numbers for arms; ``also`` may be named."""
    if type(losses) is not dict:
        losses = unwrapped(losses)
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
        if entry is None:
            units.append(())
            continue
        if hasattr(entry, "__array__"):
            entry = out_of_array(losses_of(names[i]), entry)
        if is_missing(entry):
            entry = ()
        elif is_number(entry) or type(entry) in EXACT:
            totals[i] = as_float(losses_of(names[i]), entry)
            entry = ()
        elif not is_list(entry):
            expected = "a list with the loss of every unit, or their total"
            hint = "Give the loss of every unit, or one number."
            raise InvalidInput(losses_of(names[i]), expected, repr(entry), hint)
        units.append(entry)
    flat, gaps = _numbers(units, names)
    return Reading(flat, [len(entry) for entry in units], totals, gaps=gaps)


def unwrapped(losses: Any) -> Any:
    """Return what was told, out of a Series or an array without axes."""
    losses = by_label(losses)
    return out_of_array("losses", losses) if getattr(losses, "ndim", None) == 0 else losses


def _round_total(total: Any, policy: Policy) -> float:
    """Return the total of all units."""
    if policy.learns_from != "round":
        raise InvalidInput(
            "losses",
            f"the losses of each arm, which {type(policy).__name__} learns from",
            "one number",
            "Give a dict by arm name, or use a policy that learns from the round, such as LinTS.",
        )
    return as_float("losses", total)


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
        flat = np.concatenate([with_gaps(losses_of(name), entry) for name, entry in some])
        gaps = True
    if flat.ndim > 1:
        raise InvalidInput(
            "losses", "one number for each unit", "lists", "Give a flat list for each arm."
        )
    return flat, gaps


def losses_of(name: str) -> str:
    """Say in an error whose losses are meant."""
    return f"losses of {name!r}"


def out_of_array(argument: str, entry: Any) -> Any:
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


def with_gaps(argument: str, losses: Any) -> FloatArray:
    """Return losses as floats, NaN where one is missing."""
    missing = [is_missing(loss) for loss in losses]
    present = [loss for loss, gap in zip(losses, missing, strict=True) if not gap]
    known = numbers(argument, _plain(present)) if present else np.zeros(0)
    if known.ndim > 1:
        raise InvalidInput(
            argument, "one number for each unit", "lists", "Give a flat list for each arm."
        )
    flat = np.full(len(missing), math.nan)
    flat[~np.array(missing, dtype=bool)] = known
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
    hint = "Give the losses that were seen, and None in a list for a unit that is missing."
    raise InvalidInput(argument, "a finite number", got, hint)
