"""What people tell of a play, checked and turned into feedback."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from multiplay.checks import is_list, is_number, numbers, unit_interval
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies import Policy
from multiplay.types import FloatArray, IntArray

EXACT = (Decimal, Fraction)  # numbers that numpy does not know
ROUNDING = 1e-9  # by which a total may miss its range, relative to the number of units


def feedback_of(action: IntArray, losses: Any, names: Sequence[str], policy: Policy) -> Feedback:
    """Return the feedback of one play, after all of it was checked."""
    if getattr(losses, "ndim", None) == 0:
        losses = _out_of_array("losses", losses)
    if is_number(losses) or type(losses) in EXACT:
        return _of_round(action, losses, policy)
    counts, total = action.tolist(), np.zeros(len(action))
    units: list[Any] = []
    per_unit = True
    for i, entry in enumerate(_by_arm(losses, names, policy)):
        if entry is None and counts[i] == 0:
            entry = ()
        elif hasattr(entry, "__array__"):
            entry = _out_of_array(_losses_of(names[i]), entry)
        if is_number(entry) or type(entry) in EXACT:
            total[i] = _total(_losses_of(names[i]), entry, counts[i])
            per_unit &= counts[i] == 0
            entry = ()
        elif not is_list(entry) or len(entry) != counts[i]:
            got = len(entry) if is_list(entry) else repr(entry)
            expected = f"a list of {counts[i]} losses, or their total"
            raise InvalidInput(
                _losses_of(names[i]), expected, got, "Give the loss of every unit, or one number."
            )
        units.append(entry)
    flat = _in_unit_interval(units, names)
    arm = np.repeat(np.arange(len(action)), [len(entry) for entry in units])
    total += np.bincount(arm, weights=flat, minlength=len(action))
    if not per_unit:
        return Feedback(action[None], total[None])
    return Feedback(action[None], total[None], flat[None], np.append(0, np.cumsum(action)))


def _of_round(action: IntArray, total: Any, policy: Policy) -> Feedback:
    """Return the feedback of a play of which only the total of all units is known."""
    if policy.learns_from != "round":
        raise InvalidInput(
            "losses",
            f"the losses of each arm, which {type(policy).__name__} learns from",
            "one number",
            "Give a dict by arm name, or use a policy that learns from the round, such as LinTS.",
        )
    return Feedback(action[None], np.array([[_total("losses", total, int(action.sum()))]]))


def _out_of_array(argument: str, entry: Any) -> Any:
    """Return the number in an array without axes, and other arrays as those of numpy."""
    array = np.asarray(entry)
    if isinstance(entry, np.ma.MaskedArray):
        array = numbers(argument, entry)  # refuses what is masked: it is missing, not 0
    return array if array.ndim else array.item()


def _by_arm(losses: Any, names: Sequence[str], policy: Policy) -> list[Any]:
    """Return one entry for each arm, in order; None where nothing was told."""
    losses = _without_pandas(losses)
    if isinstance(losses, Mapping):
        unknown = losses.keys() - set(names)
        if unknown:
            raise InvalidInput(
                "losses", f"names such as {names[0]!r}", repr(unknown.pop()), "Check the spelling."
            )
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


def _without_pandas(losses: Any) -> Any:
    """Return a Series as a dict by arm name, or as a list if it is only numbered."""
    if type(losses).__name__ != "Series" or not hasattr(losses, "index"):
        return losses
    labels = list(losses.index)
    if labels == list(range(len(labels))):
        return list(losses)
    told = dict(zip(labels, losses, strict=True))
    if len(told) < len(labels):
        raise InvalidInput(
            "losses",
            "one entry for each arm",
            "a Series that names an arm twice",
            "Collect the units of an arm: series.groupby(level=0).agg(list).",
        )
    return told


def _total(argument: str, total: Any, count: int) -> float:
    value, allowed = _as_float(argument, total), ROUNDING * count
    if not -allowed <= value <= count + allowed:
        raise InvalidInput(
            argument,
            f"a total in [0, {count}] for {count} units with losses in [0, 1]",
            f"{value!r}",
            "Divide by the largest possible loss of a unit.",
        )
    return min(max(value, 0.0), float(count))


def _in_unit_interval(units: list[Any], names: Sequence[str]) -> FloatArray:
    """Return all losses in one list, or name the arm with one that cannot be."""
    try:
        flat = unit_interval("losses", _plain([loss for entry in units for loss in entry]))
    except InvalidInput:
        for name, entry in zip(names, units, strict=True):
            unit_interval(_losses_of(name), _plain(entry))
        raise
    if flat.ndim > 1:
        raise InvalidInput(
            "losses", "one number for each unit", "lists", "Give a flat list for each arm."
        )
    return flat


def _plain(losses: Any) -> Any:
    """Return losses as numbers that numpy knows."""
    if not any(type(loss) in EXACT for loss in losses):
        return losses
    return [_as_float("losses", loss) if type(loss) in EXACT else loss for loss in losses]


def _as_float(argument: str, number: Any) -> float:
    try:
        return float(number)
    except (ValueError, OverflowError) as error:  # a signalling NaN, or too large
        got = f"a number of type {type(number).__name__} ({error})"
        raise InvalidInput(
            argument, "a finite number", got, "Give the losses that were seen."
        ) from None


def _losses_of(name: str) -> str:
    return f"losses of {name!r}"
