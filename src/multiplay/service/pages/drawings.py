"""Drawings of costs for pages: a chart of days, bars of weeks, and lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import NamedTuple

import numpy as np

from multiplay._support.words import Words, money_text
from multiplay.types import FloatArray

WIDTH, HEIGHT = 360.0, 150.0  # as wide as a phone: text keeps its size there
WIDE, TALL = 720.0, 300.0  # of the chart of costs; on a phone its text is twice as large
TOP, BOTTOM, RIGHT = 8.0, 20.0, 6.0  # margins; the left one has the labels of the axis
CHARACTER = 6.4  # width of a character of a label
MOST_WEEKS = 53  # bars: more are not legible
MOST_POINTS = 200  # of a line
MOST_LABELS = 4  # below the bars
STEPS = (1.0, 2.0, 5.0, 10.0)
MARKS = 4  # of an axis, about
LONGEST_LABEL = 10  # characters


class Mark(NamedTuple):
    """A label of an axis, its place, and which of its ends is there."""

    at: float
    text: str
    anchor: str = "end"


class WeekBar(NamedTuple):
    """A bar from 0 to what was saved in a week, and its interval, as places."""

    x: float
    width: float
    y: float
    height: float
    middle: float
    low: float
    high: float
    loss: bool
    text: str


class WeekBars(NamedTuple):
    """A drawing of what was saved, with a bar for each week."""

    width: float
    height: float
    left: float
    zero: float
    bars: list[WeekBar]
    marks: list[Mark]
    labels: list[Mark]
    left_out: int


class CostLines(NamedTuple):
    """A drawing of cumulative costs: of the plans, and of the most that is permitted."""

    width: float
    height: float
    left: float
    zero: float
    plan: str
    most: str
    doubt: str
    marks: list[Mark]
    labels: list[Mark]


def week_bars(weeks: Sequence[tuple[str, float, float, float]]) -> WeekBars | None:
    """Return bars for weeks: their names, what was saved, and the ends of its interval.

    Only the last ``MOST_WEEKS`` weeks are drawn. None without weeks.

    Examples
    --------
    >>> drawn = week_bars([("2026-11-02", -20.0, -60.0, 20.0), ("2026-11-09", 80.0, 40.0, 120.0)])
    >>> [bar.loss for bar in drawn.bars], [mark.text for mark in drawn.marks]
    ([True, False], ['-100', '-50', '0', '50', '100', '150'])
    >>> drawn.bars[1].y + drawn.bars[1].height == drawn.zero == drawn.bars[0].y
    True
    """
    shown = weeks[-MOST_WEEKS:]
    if not shown:
        return None
    axis = _Axis([0.0, *(value for _, *values in shown for value in values)])
    step = (WIDTH - RIGHT - axis.left) / len(shown)
    wide = round(min(0.7 * step, 26.0), 1)
    bars = []
    for place, (name, saved, low, high) in enumerate(shown):
        middle = round(axis.left + (place + 0.5) * step, 1)
        ends = sorted((axis.place(0.0), axis.place(saved)))
        height = round(ends[1] - ends[0], 1)
        text = f"{name}: {money_text(saved)}, {money_text(low)} to {money_text(high)}"
        bars.append(
            WeekBar(
                x=round(middle - wide / 2, 1),
                width=wide,
                y=ends[0],
                height=height,
                middle=middle,
                low=axis.place(low),
                high=axis.place(high),
                loss=saved < 0,
                text=text,
            )
        )
    every = -(-len(shown) // MOST_LABELS)
    labels = [
        Mark(bar.middle, _short(shown[place][0]), "middle") for place, bar in enumerate(bars)
    ][::every]
    left_out = len(weeks) - len(shown)
    return WeekBars(WIDTH, HEIGHT, axis.left, axis.place(0.0), bars, axis.marks, labels, left_out)


def cost_lines(
    days: Sequence[str], plan: FloatArray, most: FloatArray, doubt: FloatArray
) -> CostLines | None:
    """Return lines of cumulative costs: of the plans, and of the most that is permitted.

    ``doubt`` is the half width of the interval of the difference between the two, which is drawn
    around the line of the plans. None for fewer than two days.

    Examples
    --------
    >>> two = np.array([100.0, 210.0]), np.array([103.0, 206.0]), np.array([5.0, 8.0])
    >>> drawn = cost_lines(["2026-11-02", "2026-11-03"], *two)
    >>> drawn.plan.split()[0] > drawn.most.split()[0], [label.text for label in drawn.labels]
    (True, ['2026-11-02', '2026-11-03'])
    """
    if len(days) < 2:
        return None
    kept = np.unique(np.linspace(0, len(days) - 1, min(len(days), MOST_POINTS)).round().astype(int))
    plan, most, doubt = plan[kept], most[kept], doubt[kept]
    low, high = plan - doubt, plan + doubt
    axis = _Axis([0.0, *low.tolist(), *high.tolist(), *most.tolist()])
    across = np.linspace(axis.left, WIDTH - RIGHT, len(kept))

    def path(values: FloatArray, x: FloatArray = across) -> str:
        places = zip(x.tolist(), values.tolist(), strict=True)
        return " ".join(f"{a:.1f},{axis.place(b):.1f}" for a, b in places)

    around = f"{path(high)} {path(low[::-1], across[::-1])}"
    ends = [
        Mark(round(float(across[at]), 1), _short(days[kept[at]]), anchor)
        for at, anchor in ((0, "start"), (-1, "end"))
    ]
    lines = path(plan), path(most), around
    return CostLines(WIDTH, HEIGHT, axis.left, axis.place(0.0), *lines, axis.marks, ends)


def _short(name: str) -> str:
    """Return the name of a week or day as a label: its last word.

    Examples
    --------
    >>> _short("2026-11-02"), _short("plans 8 to 14"), _short("Monday")
    ('2026-11-02', '14', 'Monday')
    """
    return name.rpartition(" ")[2][-LONGEST_LABEL:]


class _Axis:
    """A vertical axis that has some values, with round numbers as its marks."""

    def __init__(
        self,
        values: Sequence[float],
        height: float = HEIGHT,
        character: float = CHARACTER,
        marks: int = MARKS,
    ) -> None:
        self._height = height
        low, high = min(values), max(values)
        rough = (high - low or 1.0) / marks
        size = 10.0 ** np.floor(np.log10(rough))
        step = size * next(one for one in STEPS if one * size >= rough * 0.999)
        first = np.floor(low / step)
        last = max(np.ceil(high / step), first + 1)
        self._low, self._high = first * step, last * step
        numbers = [float(k * step) for k in np.arange(first, last + 1)]
        digits = max(-int(np.floor(np.log10(step))), 0)  # the same for all marks
        texts = [f"{one + 0.0:,.{digits}f}" for one in numbers]
        self.left = round(max(map(len, texts)) * character + 8, 1)
        self.marks = [Mark(self.place(n), text) for n, text in zip(numbers, texts, strict=True)]

    def place(self, value: float) -> float:
        """Return the height of a value in the drawing."""
        share = (value - self._low) / (self._high - self._low)
        bottom = self._height * BOTTOM / HEIGHT
        return round(float(self._height - bottom - share * (self._height - TOP - bottom)), 1)


# ---------------------------------------------------------------- the chart of days


class ChartDay(NamedTuple):
    """A day of the chart, with NaN for what is not known.

    Attributes
    ----------
    when : float
        Its time in seconds; days without one come first.
    name : str
        Its name: a date, or the key of its plan.
    play : int or None
        The id of its plan; None for an external plan and an imported day.
    cost, trend, expected : float
        What it cost, the trend of the costs, and what was expected.
    tried : bool
        Whether its plan was expected to cost more than the best plan.
    """

    when: float
    name: str
    play: int | None
    cost: float
    trend: float = np.nan
    expected: float = np.nan
    tried: bool = False


class Dot(NamedTuple):
    """The cost of a day: its place, its kind, its date or "", and the day as a sentence."""

    x: float
    y: float
    kind: str
    date: str
    text: str


class CostChart(NamedTuple):
    """A chart of the costs of days; ``best`` has the heights of its mean and its two ends."""

    width: float
    height: float
    left: float
    dots: list[Dot]
    trend: list[str]
    expected: list[str]
    best: tuple[float, ...] | None
    marks: list[Mark]
    labels: list[Mark]

    @property
    def kinds(self) -> set[str]:
        """What the chart shows, for its legend."""
        lines = {"trend": self.trend, "expected": self.expected, "best": self.best}
        return {dot.kind for dot in self.dots} | {name for name, drawn in lines.items() if drawn}


def cost_chart(
    days: Sequence[ChartDay],
    words: Words,
    best: tuple[float, ...] | None = None,
) -> CostChart | None:
    """Return the chart of days, with the total, the low and the high of the best plan.

    None if no cost is known.

    Examples
    --------
    >>> days = [ChartDay(0, "2026-11-02", 1, 90, 95, 80), ChartDay(1, "2026-11-03", None, 110)]
    >>> drawn = cost_chart(days, Words("EUR"))
    >>> [(dot.kind, dot.text) for dot in drawn.dots]  # doctest: +NORMALIZE_WHITESPACE
    [('realised', '2026-11-02, plan 1: 90 EUR, expected 80 EUR'),
     ('external', '2026-11-03: 110 EUR')]
    >>> [mark.text for mark in drawn.marks][:2], drawn.dots[0].date
    (['80', '85'], '1970-01-01')
    """
    if not any(one.cost == one.cost for one in days):
        return None
    values = [x for one in days for x in (one.cost, one.trend, one.expected) if x == x]
    known = best if best is not None and np.isfinite(best).all() else None
    axis = _Axis([*values, *(known or ())], TALL, 2 * CHARACTER, 2 * MARKS)
    across = np.linspace(axis.left + 10, WIDE - RIGHT - 10, len(days)).round(1).tolist()
    if len(days) == 1:
        across = [WIDE / 2]
    dots = [
        Dot(x, axis.place(one.cost), _kind(one), date_of(one.when), _sentence(one, words))
        for x, one in zip(across, days, strict=True)
        if one.cost == one.cost
    ]

    def lines(values: Sequence[float]) -> list[str]:
        """Return a line; a gap where no value is known does not end it."""
        places = [f"{x},{axis.place(y)}" for x, y in zip(across, values, strict=True) if y == y]
        return [" ".join(places)] if len(places) > 1 else []

    every = -(-len(days) // MOST_LABELS)
    labels = [
        Mark(across[at], days[at].name[-LONGEST_LABEL:], "start" if at == 0 else "middle")
        for at in range(0, len(days) - every // 2, every)
    ]
    trend, expected = (
        lines([getattr(one, name) for one in days]) for name in ("trend", "expected")
    )
    band = None if known is None else tuple(axis.place(one) for one in known)
    return CostChart(WIDE, TALL, axis.left, dots, trend, expected, band, axis.marks, labels)


def date_of(when: float) -> str:
    """Return the date of a time in seconds; "" if it is not known."""
    return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d}" if isfinite(when) else ""


def _kind(day: ChartDay) -> str:
    if day.play is None:
        return "external"
    return "tried" if day.tried else "realised"


def _sentence(day: ChartDay, words: Words) -> str:
    plan = "" if day.play is None or day.name == f"plan {day.play}" else f", plan {day.play}"
    expected = "" if day.expected != day.expected else f", expected {words.money(day.expected)}"
    return f"{day.name}{plan}: {words.money(day.cost)}{expected}"
