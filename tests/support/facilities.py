"""Models with depots that cost something when they are open, and lists of their actions."""

from itertools import product
from typing import Any

import numpy as np

from multiplay import Model
from multiplay.types import FloatArray, IntArray


def facility(opening: list[float], demand: int = 4, sense: str = "min", **changes: Any) -> Model:
    """Return a model of depots that serve a demand together; each costs to open."""
    d = len(opening)
    settings: dict[str, Any] = {
        "columns": {
            "lower": [0] * (2 * d),
            "upper": [demand] * d + [1] * d,
            "integer": [True] * (2 * d),
            "cost": [0.0] * d + opening,
        },
        "rows": {"lower": [demand] + [None] * d, "upper": [demand] + [0] * d},
        "matrix": {
            "row": [0] * d + [1 + i for i in range(d)] * 2,
            "column": [*range(d), *range(d), *range(d, 2 * d)],
            "value": [1] * d + [1] * d + [-demand] * d,
        },
        "arms": list(range(d)),
        "sense": sense,
        "names": [f"depot {i + 1}" for i in range(d)],
    }
    return Model(**(settings | changes))


def listed(opening: list[float], demand: int = 4) -> tuple[IntArray, FloatArray]:
    """Return all actions of ``facility`` and their known costs."""
    boxes = product(range(demand + 1), repeat=len(opening))
    actions = np.array([a for a in boxes if sum(a) == demand])
    return actions, (actions > 0) @ np.array(opening)
