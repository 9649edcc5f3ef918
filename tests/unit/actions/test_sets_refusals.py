"""What action sets refuse, and what they say."""

from typing import Any

import numpy as np
import pytest
from refusal import refused

import multiplay
from multiplay import (
    ActionSet,
    Bernoulli,
    Corrupted,
    Coverage,
    Duplicated,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Learner,
    OracleSet,
    simulate,
)
from multiplay.types import FloatArray

ARC = [("s", "t")]
mp: Any = multiplay  # wrong types are the point


@pytest.mark.parametrize(
    ("argument", "build"),
    [
        ("arcs", lambda: mp.Network([], {})),
        ("arcs", lambda: mp.Network("roads", {})),
        ("arcs", lambda: mp.Network([("s", "s")], {})),
        ("arcs", lambda: mp.Network([("s",)], {})),
        ("arcs", lambda: mp.Network([(1.5, 2)], {})),
        ("supplies", lambda: mp.Network(ARC, {"s": 1})),
        ("supplies", lambda: mp.Network(ARC, {"s": 1, "x": -1})),
        ("supplies", lambda: mp.Network(ARC, 3)),
        ("supplies", lambda: mp.Network(ARC, [3])),
        ("supplies of 's'", lambda: mp.Network(ARC, {"s": 1.5, "t": -1.5})),
        ("supplies of 's'", lambda: mp.Network(ARC, {"s": float("nan"), "t": -1})),
        ("capacities", lambda: mp.Network(ARC, {"s": 2, "t": -2}, [-1])),
        ("capacities", lambda: mp.Network(ARC, {"s": 2, "t": -2}, [1.5])),
        ("capacities", lambda: mp.Network(ARC, {"s": 2, "t": -2}, [1])),
        ("capacities", lambda: mp.Network(ARC, {"s": 2, "t": -2}, [1, 1])),
        ("capacities", lambda: mp.Network([*ARC, ("u", "v")], {"s": 2, "v": -2})),  # disconnected
        ("capacities", lambda: mp.Network([*ARC, ("t", "s")], {"s": 2, "t": -2})),  # a free cycle
        ("free", lambda: mp.Network(ARC, {"s": 1, "t": -1}, free=[0])),
        ("free", lambda: mp.Network(ARC, {"s": 1, "t": -1}, free=[7])),
        ("names", lambda: mp.Network(ARC, {"s": 1, "t": -1}, names=["a", "b"])),
        ("sense", lambda: mp.Network(ARC, {"s": 1, "t": -1}, sense="best")),
        ("supply, demand", lambda: mp.Transport([3], [2])),
        ("supply, demand", lambda: mp.Transport([3], [4], slack=True)),
        ("capacities", lambda: mp.Transport([3], [3], capacities=[[2]])),
        ("capacities", lambda: mp.Transport([3], [3], capacities=[3])),
        ("capacities", lambda: mp.Transport([3], [3], capacities=[[-1]])),
        ("rows", lambda: mp.Assignment(0)),
        ("cols", lambda: mp.Assignment(2, 2.5)),
        ("total", lambda: mp.Budget(-1, [1])),
        ("total", lambda: mp.Budget(4, [1, 2])),
        ("total", lambda: mp.Budget(1.5, [1, 2])),
        ("total", lambda: mp.Budget(2**53, [2**53])),
        ("caps", lambda: mp.Budget(1, [])),
        ("caps", lambda: mp.Budget(1, [0, 0])),
        ("caps", lambda: mp.Budget(1, [0.5])),
        ("caps", lambda: mp.Budget(1, [-1, 3])),
        ("caps", lambda: mp.Budget(1, [np.nan])),
        ("arcs", lambda: mp.Path([("a", "b"), ("b", "c"), ("c", "a")], "a", "c")),
        ("source", lambda: mp.Path(ARC, "x", "t")),
        ("target", lambda: mp.Path(ARC, "s", None)),
        ("source, target", lambda: mp.Path(ARC, "t", "s")),
        ("source, target", lambda: mp.Path(ARC, "s", "s")),
        ("units", lambda: mp.Path(ARC, "s", "t", units=-1)),
        ("units", lambda: mp.Path(ARC, "s", "t", units=2**60)),
        ("weights", lambda: mp.Knapsack([], 3)),
        ("weights", lambda: mp.Knapsack([-1], 3)),
        ("weights", lambda: mp.Knapsack([np.inf], 3)),
        ("weights, capacity", lambda: mp.Knapsack([[1, 2]], 3)),
        ("weights, capacity", lambda: mp.Knapsack([1e-30, 1.0], 1e10)),
        ("capacity", lambda: mp.Knapsack([4], -3)),
        ("limits", lambda: mp.Knapsack([0, 1], 3)),
        ("limits", lambda: mp.Knapsack([1, 1], 3, limits=1.5)),
        ("limits", lambda: mp.Knapsack([1, 1], 3, limits=[1])),
        ("A, b, bounds", lambda: mp.IntegerProgram([[1, 1]], [-1])),
        ("A, b, bounds", lambda: mp.IntegerProgram([[1, -1]], [1])),
        ("A, b", lambda: mp.IntegerProgram([1, 1], [1])),
        ("A, b", lambda: mp.IntegerProgram([[1, 1]], [1, 2])),
        ("A, b", lambda: mp.IntegerProgram([], [], [])),
        ("A", lambda: mp.IntegerProgram([[1e15, 1]], [3], (0, 3))),
        ("b", lambda: mp.IntegerProgram([[1, 1]], [1e308], (0, 3))),
        ("b", lambda: mp.IntegerProgram([[1, 1]], [-1e308], (0, 3))),
        ("bounds", lambda: mp.IntegerProgram([[1, 1]], [3], 4)),
        ("bounds", lambda: mp.IntegerProgram([[1, 1]], [3], (0.5, 2))),
        ("bounds", lambda: mp.IntegerProgram([[1, 1]], [3], (-1, 2))),
        ("bounds", lambda: mp.IntegerProgram([[1, 1]], [3], (2, 1))),
        ("bounds", lambda: mp.IntegerProgram([[1, 1]], [3], ([0, 0, 0], 1))),
        ("sense", lambda: mp.IntegerProgram([[1, 1]], [3], (0, 1), "maximal")),
        ("actions", lambda: mp.Explicit([])),
        ("actions", lambda: mp.Explicit([1, 2])),
        ("actions", lambda: mp.Explicit([[1, -2]])),
        ("actions", lambda: mp.Explicit([[1, 0.5]])),
        ("actions", lambda: mp.Explicit([[1, 2], [3]])),
        ("edges", lambda: mp.SpanningTree([])),
        ("edges", lambda: mp.SpanningTree([("a", "b"), ("c", "d")])),
        ("edges", lambda: mp.Matching([("a", "b"), ("b", "c")])),
        ("budget", lambda: mp.Coverage(-1, [1])),
        ("weights", lambda: mp.Coverage(2, [-1])),
        ("weights", lambda: mp.Coverage(2, [])),
        ("means", lambda: mp.Coverage(2, [1, 1]).best([0.5, 1.5])),
        ("actions", lambda: mp.Coverage(10**8, [1, 1]).duplicate()),
        ("weights, capacity", lambda: mp.Knapsack([5e-324, 2.0], 4.5)),
        ("names", lambda: mp.Budget(2, [1, 2], names=5)),
        ("names", lambda: mp.Budget(2, [1, 2], names="ab")),
        ("names", lambda: mp.Transport([2], [1, 1], names=5)),
        ("names", lambda: mp.Transport([2], [1, 1], names=[1, 2])),
        ("names", lambda: mp.Transport([2], [1, 1], names=(["a"], None))),
        ("names", lambda: mp.Assignment(2, names={"a": 1, "b": 2})),
    ],
)
def test_bad_input(argument: str, build: Any) -> None:
    with refused(argument):
        build()


@pytest.mark.parametrize("value", ["no", 0, 1, None, [True]], ids=repr)
def test_flags_are_bools(value: Any) -> None:
    with refused("slack"):
        mp.Transport([3, 3], [2, 2], slack=value)
    with refused("surplus"):
        mp.Transport([3, 3], [2, 2], slack=True, surplus=value)
    with refused("at_most"):
        mp.Budget(2, [1, 1, 1], at_most=value)
    with refused("any_horizon"):
        GenLBINFV(any_horizon=value)


def test_flags_of_numpy_are_bools() -> None:
    assert mp.Transport([3, 3], [2, 2], slack=np.True_).slack is True
    assert mp.Budget(2, [1, 1, 1], at_most=np.False_).at_most is False
    yes: Any = np.True_
    assert GenLBINFV(any_horizon=yes).any_horizon


class Own(OracleSet):
    """An oracle that answers what it was given."""

    def __init__(self, answer: Any, **options: Any) -> None:
        self.answer = answer
        super().__init__(d=2, **options)

    def solve(self, costs: FloatArray) -> Any:
        return self.answer(costs) if callable(self.answer) else self.answer


class Checked(Own):
    def contains(self, action: Any) -> Any:
        return np.asarray(action).sum(axis=-1) == 1


class Pairs(ActionSet):
    """Two units of up to two kinds; what it says about membership is what it is given."""

    def __init__(self, rule: Any) -> None:
        self.n, self.rule = np.array([2, 2, 1]), rule
        super().__init__()

    def oracle(self, costs: FloatArray) -> Any:
        raise NotImplementedError

    def contains(self, action: Any) -> Any:
        return self.rule(action)


@pytest.mark.parametrize("answer", [[True, False, True], 1, "yes", None], ids=repr)
def test_a_membership_that_is_no_bool(answer: Any) -> None:
    with refused("contains"):
        Pairs(lambda action: answer).enumerate()
    with pytest.raises(InvalidInput, match="must return one bool"):
        Pairs(lambda action: action <= 2).enumerate()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([0.5, 0.5], "whole numbers"),
        ([1, -1], "whole numbers"),
        ([1, 0, 0], "shape"),
        ([1, np.nan], "finite"),
        ("north", "numbers"),
        (lambda costs: np.random.default_rng().integers(0, 10**9, 2), "the same action"),
    ],
)
def test_an_oracle_that_answers_nonsense(answer: Any, says: str) -> None:
    with refused("solve"):
        Own(answer)
    with pytest.raises(InvalidInput, match=says):
        Own(answer)


@pytest.mark.parametrize("options", [{}, {"n": [3, 3]}, {"sense": "max"}], ids=repr)
def test_an_oracle_that_maximises(options: dict[str, Any]) -> None:
    def dearest(costs: FloatArray) -> Any:
        return [3, 0] if costs[0] > costs[1] else [0, 3]

    with refused("solve"):
        Own(dearest, **options)
    with pytest.raises(InvalidInput, match=r"which costs more than .* Return the cheapest action"):
        Own(dearest, **options)


class Late(OracleSet):
    """It sets an attribute that its solver needs after super().__init__()."""

    def __init__(self) -> None:
        super().__init__(d=2)
        self.units = 3

    def solve(self, costs: FloatArray) -> Any:
        return self.units * (np.arange(2) == costs.argmin())


class Nameless(Late):
    def solve(self, costs: FloatArray) -> Any:
        return np.no_such_function(costs)  # type: ignore[attr-defined]


class Unset(ActionSet):
    """It sets n after super().__init__()."""

    def __init__(self) -> None:
        super().__init__()
        self.n = np.array([1, 1])

    def oracle(self, costs: FloatArray) -> Any:
        raise NotImplementedError

    def contains(self, action: Any) -> Any:
        raise NotImplementedError


def test_attributes_come_before_super() -> None:
    with refused("solve"):
        Late()
    with pytest.raises(InvalidInput, match=r"Set self.units before super\(\).__init__\(...\)"):
        Late()
    with refused("Unset.n"):
        Unset()
    with pytest.raises(InvalidInput, match=r"Write self.n = np.array\(\[...\]\) first"):
        Unset()
    with pytest.raises(AttributeError, match="no_such_function"):
        Nameless()


def test_an_oracle_that_leaves_the_set() -> None:
    with refused("solve"):
        Checked([1, 1])
    assert Checked([1, 0]).n.tolist() == [1, 0]


def test_an_oracle_that_exceeds_its_n() -> None:
    with refused("solve"):
        Own([3, 0], n=[2, 2])
    with refused("n"):
        Own([3, 0], n=[3])


def test_an_oracle_that_is_not_the_best() -> None:
    """It forgets about costs above 50: the hull notices what it loses."""

    def forgetful(costs: FloatArray) -> Any:
        if costs.sum() < 0 or costs.max() > 50:
            return [5, 5]
        return [3, 0] if costs[0] < costs[1] else [0, 3]

    actions = Own(forgetful)
    policy, rng = GenLBINFV(any_horizon=True), np.random.default_rng(0)
    state = policy.start(actions, 100, 1)
    state["L"] += 100.0
    with pytest.raises(ArithmeticError, match="oracle"):
        policy.choose(actions, state, rng)


def test_ftrl_refuses_a_reward_that_is_not_linear() -> None:
    for policy in (GenLBINFV(horizon=100), Duplicated(GenLBINFV(horizon=100))):
        with refused("actions"):
            Learner(Coverage(2, [1, 1]), policy)
    with pytest.raises(InvalidInput, match="linear objective"):
        Learner(Coverage(2, [1, 1]), GenLBINFV(horizon=100))


def test_changing_means_of_a_reward_that_is_not_linear() -> None:
    change = Corrupted(Bernoulli([0.1, 0.2]), Bernoulli([0.8, 0.3]), at=5)
    with refused("environment"):
        simulate(Coverage(2, [1, 1]), change, {"GenCTS": GenCTS()}, horizon=10, trials=1)


def test_a_set_of_integers_without_copies() -> None:
    three = Own(lambda costs: [3, 0] if costs[0] < costs[1] else [0, 3])
    with refused("actions"):
        Learner(three, Duplicated(GenCTS()))
