"""Charts of letters."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from multiplay._support.formatting import number
from multiplay.types import FloatArray

HEIGHT = 5  # lines of a chart
MARGIN = 10  # letters of the scale to its left
FROM_0 = 0.6  # a scale begins at 0, if the smallest number is below this part of the largest
EIGHTHS = " ▁▂▃▄▅▆▇█"


def bar(low: float, mean: float, high: float, scale: tuple[float, float], room: int) -> str:
    """Draw an interval in so many letters, with a dot for the mean if there is one.

    Examples
    --------
    >>> bar(20, 50, 70, (0, 100), 21)
    '    ├─────●───┤      '
    >>> bar(0, float("nan"), 100, (0, 100), 5)
    '├───┤'
    """
    width = scale[1] - scale[0] or 1.0
    letters = [" "] * room

    def place(value: float) -> int:
        return round((value - scale[0]) / width * (room - 1))

    first, last = place(low), place(high)
    letters[first : last + 1] = "─" * (last + 1 - first)
    letters[first], letters[last] = ("├", "┤") if first < last else ("│", "│")
    if not np.isnan(mean):
        letters[place(mean)] = "●"
    return "".join(letters)


def chart(values: Sequence[float], levels: Mapping[str, float]) -> Iterator[str]:
    """Draw a column for each value, NaN for none; beside them the names of some levels.

    Examples
    --------
    >>> print(*chart([1, 2.5, 4.5, np.nan, 5], {"best": 2}), sep=chr(10))
           5 ┤  ▄ █
             │  █ █
             │ ▄█ █ ◂ best
             │ ██ █
             │███ █
           0 └─────
    """
    known = {name: level for name, level in levels.items() if not np.isnan(level)}
    everything = np.array([*values, *known.values()])
    bottom, top = scale_of(everything[~np.isnan(everything)])

    def height(value: FloatArray) -> FloatArray:
        return (value - bottom) / (top - bottom) * HEIGHT

    heights = height(np.array(values))
    at = {name: min(int(height(np.array(level))), HEIGHT - 1) for name, level in known.items()}
    for line in reversed(range(HEIGHT)):
        label, edge = (number(top), "┤") if line == HEIGHT - 1 else ("", "│")
        beside = ", ".join(name for name, place in at.items() if place == line)
        aside = f" ◂ {beside}" if beside else ""
        yield f"{label:>{MARGIN - 2}} {edge}{line_of(heights - line)}{aside}"
    yield f"{number(bottom):>{MARGIN - 2}} └{'─' * len(values)}"


def line_of(heights: FloatArray) -> str:
    """Return one line of a chart: what stands in it of columns of these heights, in lines.

    Examples
    --------
    >>> line_of(np.array([-1, 0, 0.5, 1, 7, np.nan]))
    '  ▄██ '
    """
    eighths = np.nan_to_num(np.ceil(8 * np.clip(heights, 0, 1))).astype(int)
    return "".join(EIGHTHS[k] for k in eighths)


def scale_of(values: FloatArray) -> tuple[float, float]:
    """Return the ends of a scale: from 0, if that leaves room enough to see differences.

    Examples
    --------
    >>> scale_of(np.array([3.0, 10.0])), scale_of(np.array([90.0, 100.0]))
    ((0.0, 10.0), (88.0, 100.0))
    """
    low, high = float(values.min()), float(values.max())
    if 0 <= low <= FROM_0 * high:
        return 0.0, high or 1.0
    below = (high - low) / HEIGHT or abs(high) / HEIGHT or 1.0
    return low - below, high
