"""All action sets: oracles compared with dedicated solvers, rounds, and a knapsack's hull."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import cvxpy as cp
import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint, linear_sum_assignment, linprog, milp
from scipy.sparse import csgraph

from benchmarks.harness import Section, Target, compare, measure
from benchmarks.instances import Game, Step, recorded_steps
from multiplay import (
    ActionSet,
    Assignment,
    Budget,
    Coverage,
    Explicit,
    GenCTS,
    GenLBINFV,
    IntegerProgram,
    Knapsack,
    Matching,
    Network,
    Path,
    SpanningTree,
    Transport,
)
from multiplay.types import FloatArray, IntArray

ONE, BATCH = "multiplay, one at a time", "multiplay, 1 of 100"
T = 10_000
FRESH = 3000  # cost vectors, more than an OracleSet caches
Solve = Callable[[FloatArray], Any]  # a cost vector to an action
Case = tuple[ActionSet, str, Callable[[Any], Solve]]


def run(quick: bool) -> list[Section]:
    """Measure the oracles, the rounds, and two FTRL steps over the hull of a knapsack."""
    budget = 0.4 if quick else 3.0
    return [oracles(budget), rounds(budget), knapsack_hull(budget)]


def big_knapsack() -> Knapsack:
    """Return a knapsack of 200 items with weights up to 1000, and a capacity of 10^4."""
    return Knapsack(np.random.default_rng(0).integers(1, 1001, 200), 10_000)


def small_knapsack() -> Knapsack:
    """Return a knapsack of 20 items with weights up to 30, and a capacity of 100."""
    return Knapsack(np.random.default_rng(0).integers(1, 31, 20), 100)


def layered_path(layers: int, width: int) -> Path:
    """Return paths through layers of nodes, with all arcs from each layer to the next."""
    arcs: list[tuple[str, str]] = [("s", f"0,{v}") for v in range(width)]
    for layer in range(layers - 1):
        arcs += [(f"{layer},{v}", f"{layer + 1},{w}") for v in range(width) for w in range(width)]
    arcs += [(f"{layers - 1},{v}", "t") for v in range(width)]
    return Path(arcs, "s", "t")


def some_edges(nodes: int, edges: int) -> list[tuple[int, int]]:
    """Return the edges of a connected graph: a path, and random pairs."""
    rng = np.random.default_rng(0)
    pairs = [(v, v + 1) for v in range(nodes - 1)]
    while len(pairs) < edges:
        v, w = (int(node) for node in np.sort(rng.choice(nodes, 2, replace=False)))
        if (v, w) not in pairs:
            pairs.append((v, w))
    return pairs


def oracles(budget: float, cases: Sequence[Case] | None = None) -> Section:
    """Compare the oracle of each set with a dedicated solver for that set."""
    rows = []
    for actions, name, make in dedicated() if cases is None else cases:
        costs = np.random.default_rng(0).random((FRESH, actions.d)) - (actions.sense == "max")
        batches = iter(range(10**9))
        contenders: dict[str, Solve] = {
            ONE: actions.argmin,
            BATCH: lambda _, c=costs, b=batches, a=actions: a.argmin(  # type: ignore[misc]
                c[100 * (next(b) % (FRESH // 100)) :][:100]
            )[0],
            name: make(actions),
        }
        timings, answers = compare(contenders, list(costs), budget)
        ours, theirs = (float(np.ravel(answers[key]) @ costs[0]) for key in (ONE, name))
        if not np.isclose(ours, theirs, rtol=1e-6, atol=1e-9):
            raise ArithmeticError(f"{actions!r}: {ours} against {theirs} by {name}")
        row: dict[str, Any] = {"set": _short(actions), "arms": actions.d}
        row |= {ONE: 1e6 * timings[ONE].median, BATCH: 1e4 * timings[BATCH].median}
        row |= {"against": name, "µs": 1e6 * timings[name].median}
        row["times faster"] = row["µs"] / row[BATCH]
        rows.append(row)
    shows = (
        "µs per cost vector, fresh uniform costs. The other solver is called once for each "
        "vector, and its result is converted to an action; times faster: than 1 of 100."
    )
    return Section("Oracles of all sets", shows, rows)


def _short(actions: ActionSet) -> str:
    if isinstance(actions, Budget):
        return f"{type(actions).__name__}, {actions.total} of {actions.n.sum()}"
    return repr(actions) if len(repr(actions)) < 40 else type(actions).__name__


def dedicated() -> list[Case]:
    """Return sets, each with the name and the factory of a dedicated solver."""
    partition, assignment = "numpy argpartition", "scipy linear_sum_assignment"
    return [
        (Budget(5, [1] * 10), partition, _selection),
        (Budget(50, [1] * 100), partition, _selection),
        (Budget(500, [1] * 1000), partition, _selection),
        (Assignment(10), assignment, _assignment),
        (Assignment(50), assignment, _assignment),
        (Assignment(10, 50), assignment, _assignment),
        (layered_path(4, 5), "scipy dijkstra", _dijkstra),
        (layered_path(11, 10), "scipy dijkstra", _dijkstra),
        (SpanningTree(some_edges(30, 100)), "scipy minimum_spanning_tree", _tree),
        (_capacitated(), "scipy linprog", _linprog),
        (small_knapsack(), "scipy milp", _milp),
        (big_knapsack(), "scipy milp", _milp),
    ]


def _capacitated() -> Transport:
    return Transport([5] * 10, [4] * 10, capacities=np.full((10, 10), 2), surplus=True)


def _selection(actions: Budget) -> Solve:
    def solve(costs: FloatArray) -> IntArray:
        action = np.zeros(len(costs), dtype=np.int64)
        action[np.argpartition(costs, actions.total)[: actions.total]] = 1
        return action

    return solve


def _assignment(actions: Assignment) -> Solve:
    def solve(costs: FloatArray) -> IntArray:
        action = np.zeros((actions.rows, actions.cols), dtype=np.int64)
        action[linear_sum_assignment(costs.reshape(action.shape))] = 1
        return action

    return solve


def _dijkstra(actions: Path) -> Solve:
    nodes = len(actions.graph.balance)
    # scipy before 1.14 accepts no 64-bit integers
    tail, head = (ends.astype(np.int32) for ends in (actions.graph.tail, actions.graph.head))
    number = {(v, w): arc for arc, (v, w) in enumerate(zip(tail, head, strict=True))}
    source, target = int(np.argmax(actions.graph.balance)), int(np.argmin(actions.graph.balance))
    shortest = cast(Any, csgraph.dijkstra)

    def solve(costs: FloatArray) -> IntArray:
        graph = sparse.csr_array((costs, (tail, head)), shape=(nodes, nodes))
        _, before = shortest(graph, indices=source, return_predecessors=True)
        action, node = np.zeros(len(costs), dtype=np.int64), target
        while node != source:
            action[number[before[node], node]] = 1
            node = before[node]
        return action

    return solve


def _tree(actions: SpanningTree) -> Solve:
    edges = np.array(actions.edges)
    number = {tuple(edge): e for e, edge in enumerate(edges.tolist())}
    nodes = edges.max() + 1

    def solve(costs: FloatArray) -> IntArray:
        graph = sparse.csr_array((costs, tuple(edges.T)), shape=(nodes, nodes))
        tree = cast(Any, csgraph.minimum_spanning_tree)(graph).tocoo()
        action = np.zeros(len(costs), dtype=np.int64)
        action[
            [number[edge] for edge in zip(tree.row.tolist(), tree.col.tolist(), strict=True)]
        ] = 1
        return action

    return solve


def _linprog(actions: Transport) -> Solve:
    graph, arcs = actions.graph, np.arange(len(actions.capacity))
    sign = np.repeat([1.0, -1.0], len(arcs))
    nodes = np.concatenate([graph.tail, graph.head])
    A = sparse.csr_array((sign, (nodes, np.tile(arcs, 2))))
    bounds = np.column_stack([0 * arcs, actions.capacity])
    solver = cast(Any, linprog)

    def solve(costs: FloatArray) -> FloatArray:
        all_costs = np.zeros(len(arcs))
        all_costs[actions.arms] = costs
        answer = solver(all_costs, A_eq=A, b_eq=graph.balance, bounds=bounds, method="highs")
        return np.asarray(answer.x)[actions.arms]

    return solve


def _milp(actions: Knapsack) -> Solve:
    constraint = LinearConstraint(actions.weights[None], ub=[actions.capacity])
    solver, whole = cast(Any, milp), np.ones(actions.d)
    options = {"mip_rel_gap": 0.0}
    return lambda costs: solver(costs, integrality=whole, constraints=constraint, options=options).x


def all_sets() -> Sequence[ActionSet]:
    """Return a set of every kind."""
    return [
        Transport([1, 4, 5], [4, 6]),
        _capacitated(),
        Assignment(5),
        Assignment(3, 6),
        Budget(5, [1] * 10),
        Budget(20, [5] * 10),
        Budget(20, [5] * 10, at_most=True, sense="max"),
        layered_path(4, 5),
        Network([(v, w) for v in range(5) for w in range(5) if v != w], {0: 3, 4: -3}, [2] * 20),
        small_knapsack(),
        big_knapsack(),
        IntegerProgram([[1, 1, 1, 1], [-2, -1, 0, -1]], [6, -4], (0, 3)),
        Explicit(Budget(3, [1] * 6).enumerate()),
        SpanningTree(some_edges(8, 14)),
        Matching([(v, f"w{w}") for v in range(4) for w in range(4)]),
        Coverage(10, np.ones(8)),
    ]


def rounds(budget: float, sets: Sequence[ActionSet] | None = None) -> Section:
    """Measure rounds of both policies, with one trial and with a hundred."""
    rows, targets = [], []
    for actions in all_sets() if sets is None else sets:
        row: dict[str, Any] = {"set": _short(actions), "arms": actions.d}
        games: dict[str, Callable[[], object]] = {}
        for policy in (GenCTS(), GenLBINFV(horizon=T)):
            if not actions.linear and isinstance(policy, GenLBINFV):
                continue
            for trials in (1, 100):
                slow = trials > 1 and isinstance(policy, GenLBINFV)
                if slow and (isinstance(actions, IntegerProgram) or actions.d > 100):
                    continue
                games[f"{type(policy).__name__}, {trials}"] = _warm(actions, policy, trials)
        for name, timing in measure(games, budget).items():
            row[name] = 1e6 * timing.median / int(name.split(", ")[1])
        rows.append(row)
        if isinstance(actions, Knapsack):
            if actions.d == 200:
                what = "GenCTS, knapsack of 200 items, capacity 10^4, per trial and round"
                targets.append(Target(what, row["GenCTS, 100"], 100, "µs"))
            else:
                what = "GenLBINFV, knapsack of 20 items, capacity 100, a round"
                targets.append(Target(what, 1e-3 * row["GenLBINFV, 1"], 5, "ms"))
    shows = "µs per trial and round, after 100 rounds, with 1 trial and with 100 at once."
    return Section("Rounds on all sets", shows, rows, targets)


def _warm(actions: ActionSet, policy: Any, trials: int) -> Game:
    game = Game(actions, policy, trials)
    for _ in range(100 if actions.d <= 100 else 10):
        game()
    return game


def knapsack_hull(
    budget: float, sizes: Sequence[tuple[int, int]] = ((5, 30), (20, 100), (20, 400))
) -> Section:
    """Compare the FTRL step by decomposition with the flow formulation on the DP's graph."""
    ours, flow = "decomposition", "flow on the DP's graph, Clarabel"
    rows = []
    for items, capacity in sizes:
        sack = Knapsack(np.random.default_rng(0).integers(1, 31, items), capacity)
        steps = recorded_steps(sack)[:50]
        contenders = {
            ours: lambda step, hull=sack.hull: hull.minimise(  # type: ignore[misc]
                step.costs, step.beta, step.regulariser, step.warm
            )["x"][0],
            flow: _flow_formulation(sack, steps[0]),
        }
        with warnings.catch_warnings(action="ignore"):  # Clarabel warns of inaccurate solutions
            timings, answers = compare(contenders, steps, budget)
        row: dict[str, Any] = {"items": items, "capacity": capacity}
        row |= {f"{name}, ms": 1e3 * timing.median for name, timing in timings.items()}
        row["times faster"] = timings[flow].median / timings[ours].median
        row["x differs by"] = f"{np.abs(answers[ours] - answers[flow]).max():.0e}"
        rows.append(row)
    shows = (
        "One FTRL step, warm, over consecutive rounds of GenLBINFV. The flow formulation has a "
        "variable for each item and load; Clarabel solves the problem, which is built once."
    )
    return Section("FTRL step over the hull of a knapsack", shows, rows)


def _flow_formulation(sack: Knapsack, example: Step) -> Callable[[Step], FloatArray]:
    """Return a solver over paths from load 0 to the capacity.

    An arc packs an item, or leaves one unit of the capacity unused.
    """
    capacity, n = int(sack.capacity), sack.n.astype(float)
    arcs = [(load, load + int(w), i) for i, w in enumerate(sack.weights)
            for load in range(capacity - int(w) + 1)]  # fmt: skip
    arcs += [(load, load + 1, -1) for load in range(capacity)]
    tail, head, item = (np.array(column) for column in zip(*arcs, strict=True))
    number = np.arange(len(arcs))
    ends = (np.concatenate([tail, head]), np.tile(number, 2))
    conserve = sparse.csr_array((np.repeat([1.0, -1.0], len(arcs)), ends))
    packs = np.flatnonzero(item >= 0)
    count = sparse.csr_array((np.ones(len(packs)), (item[packs], packs)), shape=(sack.d, len(arcs)))
    balance = np.zeros(capacity + 1)
    balance[[0, capacity]] = 1.0, -1.0
    costs, weights = cp.Parameter(sack.d), cp.Parameter(sack.d, nonneg=True)
    flow, x = cp.Variable(len(arcs), nonneg=True), cp.Variable(sack.d)
    u = cp.multiply(x, 1 / n)
    phi = u - 1 - cp.log(u) + float(example.regulariser.entropy[0]) * (u - cp.entr(1 - u))
    problem = cp.Problem(
        cp.Minimize(costs @ x + cp.sum(cp.multiply(weights, phi))),
        [conserve @ flow == balance, x == count @ flow],
    )

    def solve(step: Step) -> FloatArray:
        costs.value, weights.value = step.costs[0], step.beta[0] * n
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:  # Clarabel fails on some steps
            return np.full(sack.d, np.nan)
        return np.asarray(x.value)

    with warnings.catch_warnings(action="ignore"):
        solve(example)
    return solve
