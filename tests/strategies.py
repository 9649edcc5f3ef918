"""Instances that hypothesis builds, degenerate ones among them."""

import numpy as np
from hypothesis import strategies as st

from multiplay import Transport


@st.composite
def transports(draw: st.DrawFn, side: int = 8, most: int = 10**9) -> Transport:
    """Draw a transport problem with 1..side suppliers and demanders, zero rows among them."""
    scale = draw(st.sampled_from([1, 3, 20, most // side]))
    units = st.integers(0, scale)
    supply = draw(st.lists(units, min_size=1, max_size=side))
    if sum(supply) == 0:
        supply[0] = 1
    cuts = sorted(draw(st.lists(st.integers(0, sum(supply)), max_size=side - 1)))
    demand = np.diff([0, *cuts, sum(supply)])
    return Transport(supply, demand)


def random_transport(rng: np.random.Generator, rows: int, cols: int, units: int) -> Transport:
    """Return a transport problem in which every node has at least one unit."""

    def side(nodes: int) -> list[int]:
        cuts = np.sort(rng.choice(np.arange(1, units), nodes - 1, replace=False))
        return [int(part) for part in np.diff([0, *cuts, units])]

    return Transport(side(rows), side(cols))
