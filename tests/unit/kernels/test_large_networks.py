"""What large networks do in another way than small ones: the same answers, in less time."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))  # the benchmarks are not installed

from benchmarks.instances import network

import multiplay.actions.flow as flow_sets
from multiplay import ActionSet, InvalidInput, Network, Transport
from multiplay.hull import Regulariser
from multiplay.hull.graph import Graph
from multiplay.kernels import network_newton
from multiplay.kernels.cycles import cancel_short_cycles
from multiplay.testing import optimality_gap
from multiplay.types import Arrays

LOG_T = np.log(10**4)


def some_network(rng: np.random.Generator, kind: int) -> dict[str, list[object]]:
    """Return the arguments of a network that has a flow, unless a cycle has no limit."""
    nodes, arcs = int(rng.integers(2, 9)), int(rng.integers(2, 25))
    tail = rng.integers(0, nodes, arcs)
    head = (tail + rng.integers(1, nodes, arcs)) % nodes
    if kind == 2:  # no cycles
        tail, head = np.minimum(tail, head), np.maximum(tail, head)
    capacity = rng.integers(0, 7, arcs) * rng.choice([1, 50], arcs)
    flow = np.minimum(rng.integers(0, 3, arcs), capacity)
    balance = np.bincount(tail, flow, nodes) - np.bincount(head, flow, nodes)
    unlimited = rng.random(arcs) < (0.0, 0.3, 1.0)[kind]
    used = np.union1d(tail, head)
    return {
        "arcs": list(zip(tail.tolist(), head.tolist(), strict=True)),
        "supplies": [(int(v), int(balance[v])) for v in used],
        "capacities": [None if u else int(c) for u, c in zip(unlimited, capacity, strict=True)],
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_one_flow_finds_the_extremes_of_all_arcs(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(kind)
    compared = 0
    for _ in range(60):
        given = some_network(rng, kind)
        both: list[flow_sets.Extremes | str] = []
        for many in (1000, -1):
            monkeypatch.setattr(flow_sets, "MANY_ARCS", many)
            try:
                both.append(Network(**given).extremes)  # type: ignore[arg-type]
            except InvalidInput as error:
                both.append(str(error))
        searched, widened = both
        if isinstance(searched, str) or isinstance(widened, str):
            assert searched == widened
            continue
        assert np.array_equal(searched.low, widened.low)
        assert np.array_equal(searched.high, widened.high)
        loose, graph = searched.low < searched.high, Network(**given).graph  # type: ignore[arg-type]
        assert (widened.low < widened.centre)[loose].all()
        assert (widened.centre < widened.high)[loose].all()
        assert np.allclose(net(graph, widened.centre), graph.balance)
        compared += 1
    assert compared > 20


def net(graph: Graph, flow: np.ndarray) -> np.ndarray:
    """Return what leaves each node minus what enters it."""
    nodes = len(graph.balance)
    out: np.ndarray = np.bincount(graph.tail, flow, nodes) - np.bincount(graph.head, flow, nodes)
    return out


def roads() -> ActionSet:
    return network(400, 40)


def lanes_with_slack() -> ActionSet:
    """Some arcs are free: what is left over goes to a node of its own."""
    rng = np.random.default_rng(1)
    return Transport(rng.integers(3, 9, 12), rng.integers(1, 3, 10), slack=True)


@pytest.mark.parametrize("make", [roads, lanes_with_slack])
def test_conjugate_gradients_find_what_elimination_finds(
    make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = make()  # type: ignore[operator]
    hull = direct.hull
    monkeypatch.setattr(network_newton, "MOST_MESH", -1)
    monkeypatch.setattr(network_newton, "MOST_DENSE", 0)
    other = make().hull  # type: ignore[operator]
    assert network_newton.Pattern(*other._problem[:7]).too_large
    assert not network_newton.Pattern(*hull._problem[:7]).too_large
    rng, regulariser = np.random.default_rng(0), Regulariser(np.ones(2), np.full(2, LOG_T))
    warm: Arrays = hull.start(2)
    again: Arrays = other.start(2)
    means = rng.random((2, direct.d))
    for t in (1.0, 2.0, 10.0, 100.0, 1e3, 1e4):
        costs = t * means + rng.normal(size=means.shape)
        beta = np.full(means.shape, 1.2 * np.sqrt(t))
        warm = hull.minimise(costs, beta, regulariser, warm)
        again = other.minimise(costs, beta, regulariser, again)
        assert np.allclose(again["x"], warm["x"], rtol=1e-7, atol=1e-12)
        assert np.allclose(again["rest"], warm["rest"], rtol=1e-7, atol=1e-12)
        assert optimality_gap(direct, costs, beta, regulariser, again).max() < 1e-9
        flow = np.empty(len(direct.capacity))
        flow[other.arms], flow[other.free] = again["x"][0], again["slack"][0, 0]
        assert np.abs(net(direct.graph, flow) - direct.graph.balance).max() < 1e-9
        assert direct.contains(other.draw(again, rng)).all()


def test_a_graph_that_fills_too_much_is_not_eliminated() -> None:
    rng, nodes = np.random.default_rng(0), 500
    tail, head = rng.integers(0, nodes, (2, 40 * nodes))
    _, pattern = network_newton.eliminate(nodes, tail, head)
    assert pattern.too_large
    assert network_newton.entries(pattern, nodes) == 0
    complete = np.triu_indices(network_newton.MOST_DENSE + 1, 1)
    assert network_newton.eliminate(network_newton.MOST_DENSE + 1, *complete)[1].too_large
    path = np.arange(nodes)
    assert not network_newton.eliminate(nodes + 1, path, path + 1)[1].too_large


def test_short_cycles_keep_balances_and_means() -> None:
    """The mean of 4000 roundings: no arc of 300 is off by 5 standard errors (level 2e-4)."""
    rng = np.random.default_rng(0)
    nodes, arcs, draws = 20, 300, 4000
    tail, head = rng.integers(0, nodes, (2, arcs))
    x = rng.random(arcs)
    graph = Graph(tail, head, np.zeros(nodes, np.int64))
    total, fewest = np.zeros(arcs), arcs
    for _ in range(draws):
        fraction, flow, need = x.copy(), np.zeros(arcs, np.int64), np.zeros(nodes, np.int64)
        coins = rng.random(arcs)
        pushes = cancel_short_cycles(tail, head, *graph.incidence, coins, fraction, flow, need)
        assert 0 < pushes < arcs
        now = flow + fraction
        assert np.allclose(net(graph, now), net(graph, x))
        assert np.array_equal(net(graph, flow), -need)
        assert ((now >= 0) & (now <= 1)).all()
        total += now
        fewest = min(fewest, int((fraction > 0).sum()))
    assert fewest < 2 * nodes
    assert np.abs(total / draws - x).max() < 5 * 0.5 / np.sqrt(draws)


@pytest.mark.slow
def test_a_large_network_is_rounded_into_flows() -> None:
    roads, rng = network(6000, 700), np.random.default_rng(0)
    point = roads.hull.start(20)
    drawn = roads.hull.draw(point, rng)
    assert roads.contains(drawn).all()
    assert (np.abs(drawn - point["x"]) < 1).all()
    assert len(np.unique(drawn, axis=0)) == 20


def test_arcs_as_an_array_are_those_of_a_list() -> None:
    pairs = np.random.default_rng(0).choice(100, (50, 2))
    pairs = np.vstack([pairs[pairs[:, 0] != pairs[:, 1]], pairs[:1, ::-1]])
    ones = np.ones(len(pairs), int)
    fast, slow = Network(pairs, {}, ones), Network(pairs.tolist(), {}, ones)
    assert fast.arcs == slow.arcs
    assert fast.names == slow.names
    assert fast.supplies == slow.supplies
    assert np.array_equal(fast.graph.tail, slow.graph.tail)
    assert np.array_equal(fast.graph.head, slow.graph.head)
    with pytest.raises(InvalidInput, match="two different nodes"):
        Network(np.array([[1, 1]]), {})


PLAY = """
import json, resource
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
from benchmarks.instances import Game
from benchmarks.lanes import POLICIES, large_set
actions = large_set({kind!r}, 10**6)
game = Game(actions, POLICIES[{policy!r}])
for _ in range(20):
    game()
play = game.policy.choose(actions, game.state, game.rng)
inside = bool(actions.contains(play.action).all())
print(json.dumps([actions.d, inside]))
"""


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["GenCTS", "GenLBINFV"])
@pytest.mark.parametrize("kind", ["Transport", "Network"])
def test_a_million_lanes_in_eight_gigabytes(kind: str, policy: str) -> None:
    code = PLAY.format(kind=kind, policy=policy)
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [10**6, True]
