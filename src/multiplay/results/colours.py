"""Colours and dashes that tell policies apart."""

from typing import Any

import numpy as np
from matplotlib.colors import to_hex

# Okabe and Ito's colours, told apart by every kind of eye, and then those that stay farthest apart
# for every kind of eye and can be seen on white and on black; the dashes survive a grey print
COLOURS = [
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8648FD"),
    *("#BAB567", "#95572D", "#4D6668", "#7F88F5", "#634ECF", "#DA9FA3", "#6F608C", "#C5605E"),
    *("#B08341", "#82B87E", "#C740C0", "#7DBCCE", "#FE9043", "#AC82C0", "#A14F07", "#FC88F4"),
]
DASHES: list[Any] = [
    *("-", "--", "-."),
    (0, (1, 1)),
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (5, 3, 1, 3)),
]

EVENLY = (0.7548776662466927, 0.5698402909980532)  # their multiples modulo 1 fill a square evenly
DARKEST, LIGHTEST, CHROMA = 0.5, 0.74, 0.1  # in Oklab: seen on white and on black


def style(number: int) -> tuple[str, Any]:
    """Return colour and dashes of a policy: no colour comes twice, neighbours differ in dashes.

    Examples
    --------
    >>> style(0), style(7), style(30)
    (('#0072B2', '-'), ('#8648FD', '--'), ('#14938e', (0, (5, 3, 1, 3))))
    """
    turn = number // len(DASHES)
    dashes = DASHES[(number + turn) % len(DASHES)]
    more = number - len(COLOURS)
    return (_generated(more) if more >= 0 else COLOURS[number]), dashes


def _generated(number: int) -> str:
    """Return one of many colours of about the same strength (B. Ottosson, Oklab, 2020)."""
    turn, height = (number * step % 1 for step in EVENLY)
    hue, lightness = 2 * np.pi * turn, DARKEST + (LIGHTEST - DARKEST) * height
    a, b = CHROMA * np.cos(hue), CHROMA * np.sin(hue)
    cones = np.array(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.2914855480 * b,
        ]
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    light = np.clip(to_rgb @ cones**3, 0, 1)
    return to_hex(np.where(light > 0.0031308, 1.055 * light ** (1 / 2.4) - 0.055, 12.92 * light))
