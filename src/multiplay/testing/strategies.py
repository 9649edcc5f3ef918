"""Instances that hypothesis builds, degenerate ones among them.

``pip install multiplay[testing]`` brings hypothesis.

Examples
--------
>>> from hypothesis import given, settings
>>> from multiplay.testing import check_actions
>>> @given(budgets())
... @settings(max_examples=5, database=None, deadline=None)
... def test_budgets(actions):
...     check_actions(actions)
>>> test_budgets()
"""

import numpy as np

from multiplay.actions import (
    ActionSet,
    Assignment,
    Budget,
    Coverage,
    Explicit,
    IntegerProgram,
    Knapsack,
    Matching,
    Network,
    Path,
    SpanningTree,
    Transport,
)
from multiplay.environments import Bernoulli, Beta, Constant, Distribution, Uniform
from multiplay.errors import InvalidInput

try:
    from hypothesis import assume
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "multiplay.testing.strategies needs hypothesis. Install it: pip install multiplay[testing]",
        name="hypothesis",
    ) from error

SENSES = st.sampled_from(["min", "max"])


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


@st.composite
def loose_transports(draw: st.DrawFn) -> Transport:
    """Draw a transport problem with capacities, with slack, or with both; some with a surplus."""
    plain = draw(transports(side=3, most=12))
    slack, capped = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    supply = plain.supply.copy()
    if slack:
        supply += draw(st.lists(st.integers(0, 2), min_size=len(supply), max_size=len(supply)))
    lanes = None
    if capped:
        # wide enough for one plan, and a little wider
        some = plain.argmin(draw(_costs(plain.d))).tolist()
        lanes = np.reshape(
            [units + draw(st.integers(0, 2)) for units in some], (len(supply), len(plain.demand))
        )
    surplus, sense = slack and draw(st.booleans()), draw(SENSES)
    return Transport(
        supply, plain.demand, capacities=lanes, slack=slack, sense=sense, surplus=surplus
    )


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Draw a graph, with cycles, parallel and free arcs, and a flow that makes it feasible."""
    nodes = draw(st.integers(2, 5))
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    arcs = draw(st.lists(pair.filter(lambda arc: arc[0] != arc[1]), min_size=1, max_size=7))
    flow = [draw(st.integers(0, 2)) for _ in arcs]
    supplies = dict.fromkeys(np.unique(arcs).tolist(), 0)
    for (tail, head), units in zip(arcs, flow, strict=True):
        supplies[tail] += units
        supplies[head] -= units
    capacities = [units + draw(st.integers(0, 2)) for units in flow]
    free = draw(st.lists(st.integers(0, len(arcs) - 1), max_size=len(arcs) // 2))
    assume(len(set(free)) < len(arcs))
    return Network(arcs, supplies, capacities, free=free, sense=draw(SENSES))


@st.composite
def assignments(draw: st.DrawFn) -> Assignment:
    """Draw 1 to 4 rows and columns."""
    return Assignment(draw(st.integers(1, 4)), draw(st.integers(1, 4)), sense=draw(SENSES))


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    """Draw up to six arms, some of which cannot be played."""
    caps = draw(st.lists(st.integers(0, draw(st.sampled_from([1, 4]))), min_size=1, max_size=6))
    assume(sum(caps) > 0)
    at_most = draw(st.booleans())
    total = draw(st.integers(1, sum(caps) + (2 if at_most else 0)))
    return Budget(total, caps, at_most, sense=draw(SENSES))


@st.composite
def path_sets(draw: st.DrawFn) -> Path:
    """Draw an acyclic graph with at least one way through it."""
    nodes = draw(st.integers(2, 5))
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    arcs = draw(st.lists(pair.filter(lambda arc: arc[0] < arc[1]), max_size=8))
    arcs.append((0, nodes - 1))
    return Path(arcs, 0, nodes - 1, draw(st.integers(1, 3)), sense=draw(SENSES))


@st.composite
def knapsacks(draw: st.DrawFn) -> Knapsack:
    """Draw weights, fractions and zeros among them."""
    weights = draw(st.lists(st.integers(0, 9), min_size=1, max_size=5))
    limits = draw(st.lists(st.integers(0, 3), min_size=len(weights), max_size=len(weights)))
    scale = draw(st.sampled_from([1, 0.1, 2.5]))
    scaled = [weight * scale for weight in weights]
    try:
        return Knapsack(scaled, draw(st.integers(0, 20)) * scale, limits)
    except InvalidInput:  # nothing fits
        return Knapsack([*scaled, 1], 3, [*limits, 2])


@st.composite
def programs(draw: st.DrawFn) -> IntegerProgram:
    """Draw up to two constraints around a point that keeps them."""
    d = draw(st.integers(1, 3))
    rows = draw(st.integers(0, 2))
    A = [[draw(st.integers(-2, 3)) for _ in range(d)] for _ in range(rows)]
    inside = [draw(st.integers(0, 2)) for _ in range(d)]
    b = [np.dot(row, inside) + draw(st.integers(0, 2)) for row in A]
    lo = [draw(st.integers(0, units)) for units in inside]
    hi = [units + draw(st.integers(0, 1)) for units in inside]
    hi[0] = max(hi[0], 1)
    return IntegerProgram(np.reshape(A, (rows, d)), b, (lo, hi), draw(SENSES))


@st.composite
def explicits(draw: st.DrawFn) -> Explicit:
    """Draw up to twelve actions."""
    d = draw(st.integers(1, 4))
    action = st.lists(st.integers(0, 3), min_size=d, max_size=d)
    actions = draw(st.lists(action, min_size=1, max_size=12))
    actions[0][0] = max(actions[0][0], 1)
    return Explicit(actions, sense=draw(SENSES))


@st.composite
def spanning_trees(draw: st.DrawFn) -> SpanningTree:
    """Draw a tree, and more edges, parallel ones among them."""
    nodes = draw(st.integers(2, 5))
    tree = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    more = draw(st.lists(pair.filter(lambda edge: edge[0] != edge[1]), max_size=5))
    return SpanningTree(tree + more, sense=draw(SENSES))


@st.composite
def matchings(draw: st.DrawFn) -> Matching:
    """Draw up to eight pairs, the same one twice among them."""
    edge = st.tuples(st.integers(0, 3), st.sampled_from("abcd"))
    return Matching(draw(st.lists(edge, min_size=1, max_size=8)), sense=draw(SENSES))


@st.composite
def coverages(draw: st.DrawFn) -> Coverage:
    """Draw weights, zeros among them."""
    weights = draw(st.lists(st.sampled_from([0, 1, 2.5]), min_size=1, max_size=4))
    return Coverage(draw(st.integers(1, 4)), weights)


def action_sets() -> st.SearchStrategy[ActionSet]:
    """Draw any set that is quick to solve: all but integer programs."""
    return st.one_of(
        loose_transports(),
        networks(),
        assignments(),
        budgets(),
        path_sets(),
        knapsacks(),
        explicits(),
        spanning_trees(),
        matchings(),
        coverages(),
    )


@st.composite
def distributions(draw: st.DrawFn, d: int) -> Distribution:
    """Draw a distribution for each of d arms, at the edges of [0, 1] too."""

    def numbers(least: float, most: float) -> list[float]:
        return draw(st.lists(st.floats(least, most), min_size=d, max_size=d))

    kind = draw(st.sampled_from([Bernoulli, Beta, Constant, Uniform]))
    if kind is Beta:
        return Beta(numbers(0.1, 10), numbers(0.1, 10))
    if kind is Uniform:
        return Uniform(*np.sort([numbers(0, 1), numbers(0, 1)], axis=0))
    made: Distribution = Bernoulli(numbers(0, 1)) if kind is Bernoulli else Constant(numbers(0, 1))
    return made


def _costs(d: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=d, max_size=d)
