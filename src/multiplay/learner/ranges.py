"""Ranges of losses: conversion between the user's unit and losses in [0, 1]."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.checks import is_list, is_number
from multiplay._support.hints import LEARNER, Hint, Option
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.kernels import units as kernels
from multiplay.policies import Policy
from multiplay.types import FloatArray, IntArray

OTHERS = "*"  # stands for all arms without a range of their own
GROW = "grow"
OUTSIDE = ("refuse", "clip", GROW)
ARGUMENT = "loss_range"
NOUN = {"min": "losses", "max": "rewards"}  # by the sense of a set, and in files
UNIT = (0.0, 1.0)
LARGEST = 1e100  # loss of a unit, so that sums and squares of many are finite
ROUNDING = 1e-9  # tolerance of a total, relative to the width of the range and the units
OUTSIDE_HINT = Hint(
    "Correct it, or create the {} with {}.", LEARNER, Option("reports", "Reports(outside='clip')")
)


NO_SHIFT = np.zeros(0)
ByName = dict[str, tuple[float, float]]


class OutsideRange(InvalidInput):
    """A loss is outside a range that grows; ``wider`` are ranges that it is in."""

    def __init__(self, argument: str, got: str, wider: ByName) -> None:
        super().__init__(argument, "a loss in a range that grows", got, "Call set_range.")
        self.wider = wider


class Bounds(NamedTuple):
    """The smallest and largest loss of a unit of each arm, in the user's unit."""

    low: FloatArray
    high: FloatArray


class Ranges:
    """Ranges [low_i, high_i] of the losses of a unit; policies see (loss - low_i) / scale.

    The scale is one number, the width of the widest range, so that losses of all arms have one
    unit. The rest, offset_i = low_i / scale, is a known part of the loss. Beliefs see shares of the
    range of all arms, (loss - origin) / span, which has one origin.

    Examples
    --------
    >>> euros = Ranges("losses", {"air": (50, 250), "*": (0, 100)}, "refuse", ["air", "sea"])
    >>> euros.scale
    200.0
    >>> euros.of(["sea", "air"]).low
    array([ 0., 50.])
    """

    def __init__(self, noun: str, given: Any, outside: str, names: Sequence[str]) -> None:
        self.noun, self.outside = noun, outside
        if not isinstance(outside, str) or outside not in OUTSIDE:
            raise InvalidInput(
                "outside", "'refuse', 'clip' or 'grow'", repr(outside), "Leave it out for 'refuse'."
            )
        pairs = given if isinstance(given, Mapping) else {OTHERS: given}
        self.by_name = {str(k): _range(_of(k), pair) for k, pair in pairs.items()}
        _check_names(self.by_name, names)
        if OTHERS not in self.by_name:  # for arms that are not known yet
            ranges = self.by_name.values()
            self.by_name[OTHERS] = min(r[0] for r in ranges), max(r[1] for r in ranges)
        self.scale = max(high - low for low, high in self.by_name.values())
        self.plain = set(self.by_name.values()) == {UNIT}
        lows, highs = zip(*self.by_name.values(), strict=True)
        self.origin, self.span = min(lows), max(highs) - min(lows)
        self.alike = len(set(self.by_name.values())) == 1

    def __str__(self) -> str:
        low, high = self.by_name[OTHERS]
        text = f" from {low:g} to {high:g}" if self.alike else " with ranges by arm"
        return self.noun + text

    @classmethod
    def chosen(cls, given: Any, outside: str, actions: ActionSet) -> "Ranges":
        """Return the ranges of the losses, or rewards, of a set; [0, 1] if none are given."""
        noun, pairs = NOUN[actions.sense], UNIT if given is None else given
        ranges = cls(noun, pairs, outside, actions.names)
        if not actions.affine:
            ranges.check_plain(actions)
        return ranges

    def same(self, other: "Ranges") -> bool:
        """Return whether other ranges are the same, and treat losses outside in the same way."""
        return (self.by_name, self.outside) == (other.by_name, other.outside)

    def check_plain(self, actions: ActionSet) -> None:
        """Raise ``InvalidInput`` if there are ranges, for a set whose units have probabilities."""
        if not self.plain:
            raise InvalidInput(
                ARGUMENT,
                f"no range for {actions!r}, whose units have probabilities from 0 to 1",
                f"{self}",
                "Create the learner without a range.",
            )

    def of(self, names: Iterable[str]) -> Bounds:
        """Return the ranges of these arms."""
        others, names = self.by_name[OTHERS], tuple(names)
        if len(self.by_name) == 1:  # the usual case, which every round of a journal reads
            return Bounds(*(np.full(len(names), float(end)) for end in others))
        pairs = np.array([self.by_name.get(name, others) for name in names]).reshape(-1, 2)
        return Bounds(*np.ascontiguousarray(pairs.T))

    def offset_of(self, names: Iterable[str]) -> FloatArray:
        """Return the known part of the loss of a unit of these arms, as policies see losses."""
        offset: FloatArray = self.of(names).low / self.scale
        return offset

    def shares(self, bounds: Bounds) -> tuple[FloatArray, float]:
        """Return the shift of each arm and the factor: a policy's loss as a share of the span."""
        if self.alike:
            return NO_SHIFT, 1.0
        return (bounds.low - self.origin) / self.span, self.scale / self.span

    def from_shares(self, shares: FloatArray) -> FloatArray:
        """Return shares of the span in the user's unit."""
        values: FloatArray = self.origin + self.span * shares
        return values

    def offset(self, bounds: Bounds, actions: ActionSet, policy: Policy) -> FloatArray | None:
        """Return low / scale; None if it has no effect.

        A part that is equal for all actions of a round matters where the set may change: sums of
        losses of arms that are not in the set grow by their offsets, and are compared later.
        """
        offset = bounds.low / self.scale
        if not offset.any():
            return None
        if policy.changing:
            return offset
        ends = np.stack([actions.argmin(offset), actions.argmin(-offset)]) * offset
        least, most = ends.sum(axis=1)
        if most - least <= ROUNDING * np.abs(ends).sum():
            return None
        raise InvalidInput(
            ARGUMENT,
            f"ranges from 0 for {type(policy).__name__}",
            f"a range from {bounds.low[bounds.low != 0][0]:g}",
            "Use 0 as the lower end of every range.",
        )

    def learned(
        self, names: Sequence[str], bounds: Bounds, length: IntArray, losses: FloatArray
    ) -> tuple[FloatArray, int]:
        """Return losses of units as policies see them, and the number clipped; NaN is kept.

        The losses are ordered by arm; arm i has ``length[i]`` of them.
        """
        if self.plain and not kernels.any_outside(losses, 0.0, 1.0):  # the usual case
            return losses, 0
        low, high = bounds.low.repeat(length), bounds.high.repeat(length)
        outside = (losses < low) | (losses > high)
        clipped = 0
        if outside.any():
            if self.outside != "clip":
                worst, arms = int(outside.argmax()), np.arange(len(length)).repeat(length)
                if self.outside == GROW:
                    pairs = zip(arms[outside].tolist(), losses[outside].tolist(), strict=True)
                    raise self._grows((names[arm], loss) for arm, loss in pairs)
                i = int(arms[worst])
                raise self._outside(names[i], bounds.low[i], bounds.high[i], losses[worst])
            losses, clipped = np.clip(losses, low, high), int(outside.sum())
        return (losses if self.plain else (losses - low) / self.scale), clipped

    def learned_total(
        self, argument: str, total: float, least: float, most: float, units: int
    ) -> tuple[float, int]:
        """Return a total in [least, most] as policies see it, and 1 if it was clipped, else 0."""
        allowed = ROUNDING * self.scale * units
        outside = not least - allowed <= total <= most + allowed
        if outside and self.outside == GROW and units:
            raise self._grows((name, total / units) for name in self.by_name)
        if outside and self.outside != "clip":
            raise self._total_outside(argument, total, least, most, units)
        return (min(max(total, least), most) - least) / self.scale, int(outside)

    def _grows(self, found: Iterable[tuple[str, float]]) -> InvalidInput:
        """Return the error of losses by arm that are outside: ranges twice as wide, as needed.

        Twice as wide each time, so that a journal is replayed few times.
        """
        wider, worst = dict(self.by_name), 0.0
        for name, loss in found:
            worst = max(worst, loss, key=abs)
            key = name if name in wider else OTHERS
            low, high = wider[key]
            while loss < low and low >= -LARGEST:
                low -= high - low
            while loss > high and high <= LARGEST:
                high += high - low
            wider[key] = low, high
        if not -LARGEST <= worst <= LARGEST:
            hint = "Check the unit of the loss."
            return InvalidInput("losses", f"numbers up to {LARGEST:g}", f"{worst:g}", hint)
        return OutsideRange("losses", f"{worst:g}", wider)

    def _total_outside(
        self, argument: str, total: float, least: float, most: float, units: int
    ) -> InvalidInput:
        of = " with losses in [0, 1]" if self.plain else ""
        return InvalidInput(
            argument,
            f"a total in [{least:g}, {most:g}] for {units} units{of}",
            f"{float(total)!r}",
            "Divide it by the largest possible loss of a unit." if self.plain else OUTSIDE_HINT,
        )

    def _outside(self, name: str, low: float, high: float, loss: float) -> InvalidInput:
        return InvalidInput(
            f"losses of {name!r}",
            f"numbers in [{low:g}, {high:g}]",
            f"{loss:g}",
            Hint(
                "Divide losses and rewards by the largest possible one, or set their range: {}, "
                "for example.",
                Option("loss_range", "(0, 250)", "Learner(..., {})"),
            )
            if self.plain
            else OUTSIDE_HINT,
        )


def _of(name: object) -> str:
    return ARGUMENT if name == OTHERS else f"{ARGUMENT}[{name!r}]"


def _range(argument: str, pair: Any) -> tuple[float, float]:
    """Return (low, high) after checking that it is a range."""
    if not is_list(pair) or len(pair) != 2 or not all(is_number(end) for end in pair):
        raise InvalidInput(
            argument,
            "a pair (low, high)",
            repr(pair),
            Hint("Use {}, for example.", Option("loss_range", "(0, 250)")),
        )
    low, high = float(pair[0]), float(pair[1])
    if not -LARGEST <= low < high <= LARGEST:
        raise InvalidInput(
            argument,
            f"two finite numbers up to {LARGEST:g}, low < high",
            f"({low:g}, {high:g})",
            "Use the smallest and the largest value of a unit.",
        )
    return low, high


def _check_names(by_name: Mapping[str, Any], names: Sequence[str]) -> None:
    known = {*names, OTHERS}
    unknown = [name for name in by_name if name not in known]
    if unknown:
        raise InvalidInput(
            ARGUMENT,
            f"names such as {names[0]!r}",
            repr(unknown[0]),
            f"Check the spelling; {OTHERS!r} stands for all other arms, also for new ones.",
        )
    missing = [name for name in names if name not in by_name]
    if missing and OTHERS not in by_name:
        raise InvalidInput(
            ARGUMENT,
            "a range for every arm",
            f"no range for {missing[0]!r}",
            f"Add it, or use {OTHERS!r} for all other arms.",
        )
