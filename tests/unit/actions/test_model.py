"""Models as action sets: against enumeration, other sets, and in a learner and a study."""

import itertools
import math
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facilities import facility, listed

from multiplay import (
    LBINF,
    Bernoulli,
    BootstrapCTS,
    CombUCB,
    GenCTS,
    GenLBINFV,
    IntegerProgram,
    InvalidInput,
    Learner,
    Model,
    Stochastic,
    Study,
    Transport,
    simulate,
)
from multiplay._support import deadline
from multiplay._support.serialization import pack, unpack
from multiplay.actions import limited
from multiplay.actions.milp import Answer, MixedProgram, Status
from multiplay.learner.snapshot import builder_of
from multiplay.types import FloatArray

OPENING = [0.6, 0.5, 1.2]


def transport_model() -> Model:
    """Return Transport([1, 4, 5], [4, 6]) as a model with five equations."""
    right = [1, 4, 5, 4, 6]
    places = [(i // 2, i) for i in range(6)] + [(3 + i % 2, i) for i in range(6)]
    return Model(
        columns={"lower": [0] * 6, "upper": [None] * 6, "integer": [True] * 6},
        rows={"lower": right, "upper": right},
        matrix={
            "row": [row for row, _ in places],
            "column": [column for _, column in places],
            "value": [1] * 12,
        },
        arms=list(range(6)),
        names=Transport([1, 4, 5], [4, 6]).names,
    )


# ---------------------------------------------------------------- against a list


@pytest.mark.parametrize("sense", ["min", "max"])
def test_actions_known_costs_and_best_are_those_of_the_list(sense: str) -> None:
    model = facility(OPENING, sense=sense)
    actions, opened = listed(OPENING)
    assert np.array_equal(np.unique(model.enumerate(), axis=0), actions)
    # for rewards, helpers may be wasted: every depot can be open
    heights = opened if sense == "min" else np.full(len(actions), sum(OPENING))
    assert np.allclose(model.known(actions), heights)
    assert model.contains(actions).all()
    outside = np.array([[1, 1, 1], [5, -1, 0], [4, 1, 0], [0.5, 3.5, 0]])
    assert not model.contains(outside).any()
    assert np.isnan(model.known([1, 1, 1]))
    assert model.n.tolist() == [4, 4, 4]
    assert (model.M, model.m) == (4, 3)
    rng = np.random.default_rng(5)
    for means in rng.uniform(-1, 1, (12, 3)):
        values = actions @ means + heights
        assert np.allclose(model.value(actions, means), values)
        found = model.value(model.best(means), means)
        assert found == pytest.approx(values.min() if sense == "min" else values.max())
        costs = model.argmin(means) @ means
        assert costs == pytest.approx((actions @ means).min())


def test_tables_of_answers_are_bounded_and_answer_without_a_solve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("multiplay.actions.model.REMEMBERED", 4)
    model, (actions, opened) = facility(OPENING), listed(OPENING)
    means = np.random.default_rng(3).uniform(0, 1, (9, 3))
    best = [model.best(row) for row in means]
    values = means @ actions.T + opened
    assert np.array_equal(best, actions[values.argmin(axis=1)])
    assert np.allclose(model.known(actions[:9]), opened[:9])
    tables = model._answers, model._inside, model._heights
    assert [len(table) for table in tables[::2]] == [4, 4]
    assert len(tables[1]) <= 4
    monkeypatch.setattr(MixedProgram, "solve", None)
    assert np.array_equal(model.best(means[-4:]), best[-4:])
    assert np.allclose(model.known(actions[5:9]), opened[5:9])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_random_models_are_those_of_brute_force(seed: int) -> None:
    """Four arms of 0 to 2 units, 81 vectors, and three binary helpers; rows are random."""
    rng = np.random.default_rng(seed)
    boxes = [range(3)] * 4 + [range(2)] * 3
    points = np.array(list(itertools.product(*boxes)))
    A = rng.integers(-2, 4, (3, 7)) * (rng.uniform(size=(3, 7)) < 0.7)
    low, high = np.quantile(points @ A.T, [0.35, 0.65], axis=0).round()
    cost = np.concatenate([rng.uniform(0, 0.3, 4), rng.uniform(0.2, 1.0, 3)])
    row, column = A.nonzero()
    model = Model(
        columns={
            "lower": [0] * 7,
            "upper": [len(box) - 1 for box in boxes],
            "integer": [True] * 7,
            "cost": cost.tolist(),
        },
        rows={"lower": low.tolist(), "upper": high.tolist()},
        matrix={"row": row.tolist(), "column": column.tolist(), "value": A[row, column].tolist()},
        arms=list(range(4)),
    )
    inside = ((points @ A.T >= low) & (points @ A.T <= high)).all(axis=1)
    heights: dict[tuple[int, ...], float] = {}
    for point in points[inside]:
        arms, height = tuple(point[:4].tolist()), float(cost[4:] @ point[4:])
        heights[arms] = min(height, heights.get(arms, math.inf))
    actions, h = np.array(list(heights)), np.array(list(heights.values()))
    box = np.array(list(itertools.product(range(3), repeat=4)))
    assert model.contains(box).tolist() == [tuple(a) in heights for a in box.tolist()]
    assert 10 < len(actions) < 81
    assert np.array_equal(np.unique(model.enumerate(), axis=0), np.unique(actions, axis=0))
    assert np.allclose(model.known(actions), h)
    assert model.n.tolist() == actions.max(axis=0).tolist()
    assert (model.M, model.m) == (actions.sum(axis=1).max(), (actions > 0).sum(axis=1).max())
    assert model.duplicate().actions.M == model.M
    for means in rng.uniform(-0.5, 1.0, (6, 4)):
        values = actions @ (means + cost[:4]) + h
        assert model.value(model.best(means), means) == pytest.approx(values.min())
    most = np.maximum(actions[h.argmin()], 1)
    kept = (actions <= most).all(axis=1)
    less = limited(model, most, np.full(4, -1))
    assert np.array_equal(np.unique(less.enumerate(), axis=0), np.unique(actions[kept], axis=0))
    values = (actions @ (means + cost[:4]) + h)[kept]
    assert less.value(less.best(means), means) == pytest.approx(values.min())


def test_limits_are_those_of_the_list() -> None:
    model, (actions, opened) = facility(OPENING), listed(OPENING)
    learner = Learner(model)
    asked = learner.best(at_most={"depot 1": 1}, fixed={"depot 2": 2})
    kept = (actions[:, 0] <= 1) & (actions[:, 1] == 2)
    values = (actions @ np.full(3, 0.5) + opened)[kept]
    assert asked.expected.total == pytest.approx(values.min())
    assert learner.ask(exclude=["depot 1", "depot 2"]).plan == {
        "depot 1": 0,
        "depot 2": 0,
        "depot 3": 4,
    }
    with pytest.raises(InvalidInput, match="fixed"):
        learner.ask(fixed={"depot 1": 3, "depot 2": 3})


def test_lower_bounds_of_arms_hold_in_contains_known_and_limits() -> None:
    """An action below a lower bound is in no set, also where no row says so."""
    bounds = [1, 0, 0], [3, 2, 1]  # the last column is a helper
    model = Model(
        {"lower": bounds[0], "upper": bounds[1], "integer": [True] * 3, "cost": [0, 0, 5]},
        {"lower": [0], "upper": [None]},
        {"row": [0, 0], "column": [1, 2], "value": [-1, 2]},  # x_1 <= 2 h
        arms=[0, 1],
    )
    box = np.array(list(itertools.product(range(4), range(3))))
    np.testing.assert_array_equal(model.contains(box), box[:, 0] >= 1)
    np.testing.assert_array_equal(np.isnan(model.known(box)), box[:, 0] < 1)
    program = IntegerProgram(np.ones((1, 2)), [5], ([1, 0], [3, 2]))
    for actions in (model, program):
        with pytest.raises(InvalidInput, match=r"^fixed: .*leave no action"):
            limited(actions, actions.n, [0, -1])
        with pytest.raises(InvalidInput, match=r"^at_most: .*leave no action"):
            limited(actions, [0, 2], [-1, -1])
        assert limited(actions, actions.n, [2, -1]).enumerate().tolist() == [[2, 0], [2, 1], [2, 2]]


def test_integer_columns_may_have_fractional_bounds() -> None:
    """HiGHS itself returns h = 0 as the optimum of the program with h <= 1.5."""
    model = Model(
        {"lower": [0, 0, -0.5], "upper": [3, 2, 1.5], "integer": [True] * 3, "cost": [0, 0, -2]},
        {"lower": [None], "upper": [0]},
        {"row": [0, 0, 0], "column": [0, 1, 2], "value": [-1, 1, 1]},  # h <= x_0 - x_1
        arms=[0, 1],
    )
    actions = model.enumerate()
    np.testing.assert_array_equal(
        model.known(actions), -2.0 * np.minimum(1, actions[:, 0] - actions[:, 1])
    )


def test_copies_have_the_same_actions_and_known_costs() -> None:
    model = facility([0.6, 0.5], demand=3)
    copied, owner = model.duplicate()
    everything = copied.enumerate()
    sums = np.stack([everything[:, owner == i].sum(axis=1) for i in range(2)], axis=1)
    assert np.array_equal(np.unique(sums, axis=0), np.unique(model.enumerate(), axis=0))
    assert np.allclose(copied.known(everything), model.known(sums))
    assert copied.M == model.M


def test_continuous_helpers_are_solved_exactly() -> None:
    """A level of stock z >= 2.5 - a, at 0.4 a unit: h(a) = 0.4 max(2.5 - a, 0)."""
    model = Model(
        columns={
            "lower": [0, 0],
            "upper": [4, None],
            "integer": [True, False],
            "cost": [0.1, 0.4],
        },
        rows={"lower": [2.5], "upper": [None]},
        matrix={"row": [0, 0], "column": [0, 1], "value": [1, 1]},
        arms=[0],
    )
    units = np.arange(5)[:, None]
    assert np.allclose(model.known(units), 0.4 * np.maximum(2.5 - units[:, 0], 0))
    assert np.allclose(model.known_cost(units), model.known(units) + 0.1 * units[:, 0])
    assert model.best([0.0]).tolist() == [3]
    assert model.best([0.5]).tolist() == [0]


# ---------------------------------------------------------------- transport as a model


def test_a_transport_as_a_model_is_the_same_set() -> None:
    model, transport = transport_model(), Transport([1, 4, 5], [4, 6])
    own, others = (np.unique(one.enumerate(), axis=0) for one in (model, transport))
    assert np.array_equal(own, others)
    assert (model.M, model.m, model.n.tolist()) == (10, transport.m, transport.n.tolist())


@pytest.mark.slow
def test_thompson_sampling_on_a_model_plays_as_on_the_transport() -> None:
    model, transport = transport_model(), Transport([1, 4, 5], [4, 6])
    learners = [Learner(one, GenCTS()) for one in (model, transport)]
    rng = np.random.default_rng(1)
    for _ in range(150):
        plays = [learner.ask() for learner in learners]
        assert plays[0].plan == plays[1].plan
        losses = {arm: rng.integers(0, 2, units).tolist() for arm, units in plays[0].plan.items()}
        for learner, play in zip(learners, plays, strict=True):
            learner.tell(play, losses)


@pytest.mark.slow
def test_ftrl_on_a_model_has_the_regret_of_the_transport() -> None:
    """Means of 50 trials of 60 rounds; they differ by less than 4 of their deviations."""
    world = Stochastic(Bernoulli([0.1, 0.4, 0.2, 0.3, 0.3, 0.2]))
    final = []
    for actions in (transport_model(), Transport([1, 4, 5], [4, 6])):
        result = simulate(actions, world, {"GenLBINFV": GenLBINFV()}, horizon=60, trials=50)
        final.append(result.final("GenLBINFV"))
    deviation = math.sqrt(sum(one.var() / len(one) for one in final))
    assert abs(final[0].mean() - final[1].mean()) < 4 * deviation


# ---------------------------------------------------------------- the unit of known costs


def test_known_costs_are_in_the_unit_of_the_losses() -> None:
    euros = Learner(facility([50.0, 40.0, 90.0]), loss_range=(50, 250))
    shares = Learner(facility([0.25, 0.2, 0.45]), loss_range=(0.25, 1.25))
    rng = np.random.default_rng(2)
    for _ in range(25):
        plays = euros.ask(), shares.ask()
        assert plays[0].plan == plays[1].plan
        bills = {arm: rng.uniform(50, 250, units) for arm, units in plays[0].plan.items()}
        euros.tell(plays[0], bills)
        shares.tell(plays[1], {arm: bill / 200 for arm, bill in bills.items()})
    plan = {"depot 1": 2, "depot 2": 2, "depot 3": 0}
    estimate, mean = euros.expect(plan), euros.arms()["mean"]
    assert estimate.total == pytest.approx(2 * mean[0] + 2 * mean[1] + 90.0)
    assert estimate.total == pytest.approx(200 * shares.expect(plan).total)
    last = euros.plays().iloc[-1]
    opened = sum(np.array([50.0, 40.0, 90.0])[np.array(list(plays[0].plan.values())) > 0])
    assert last["realised"] == pytest.approx(sum(map(sum, bills.values())) + opened)


def test_known_costs_that_hide_the_losses_are_refused() -> None:
    with pytest.raises(InvalidInput, match="known costs of the model"):
        Learner(facility([1e8, 1e8, 1e8]))


# ---------------------------------------------------------------- policies


@pytest.mark.slow
def test_policies_that_know_the_opening_costs_beat_those_that_do_not() -> None:
    means = [0.3, 0.25, 0.2]
    result = simulate(
        facility(OPENING),
        Stochastic(Bernoulli(means)),
        {"GenCTS": GenCTS(), "BootstrapCTS": BootstrapCTS(), "CombUCB": CombUCB()},
        horizon=60,
        trials=2,
    )
    actions, opened = listed(OPENING)
    values = actions @ np.array(means) + opened
    blind = actions[(actions @ np.array(means)).argmin()]
    loss = blind @ np.array(means) + opened[(actions == blind).all(axis=1)][0] - values.min()
    assert loss > 0.3
    for name in ("GenCTS", "BootstrapCTS"):
        assert result.final(name).mean() < 60 * loss


@pytest.mark.parametrize("policy", [GenLBINFV(any_horizon=True), LBINF(horizon=100)])
def test_ftrl_plays_on_the_lifted_set(policy: Any) -> None:
    """E a = x, and the known costs count: with equal losses the cheapest depot wins."""
    learner = Learner(facility([0.9, 0.1, 0.9]), policy, seed=4)
    for _ in range(40):
        play = learner.ask()
        learner.tell(play, {arm: [0.5] * units for arm, units in play.plan.items()})
    memo = learner.engine.state.arms.arrays
    mean = (memo["weights"][0][:, None] * memo["atoms"][0]).sum(axis=0)
    assert np.allclose(mean, memo["x"][0])
    assert mean[1] > 2.0
    assert memo["known"][0] == 40.0


# ---------------------------------------------------------------- stored and in other processes


def test_a_model_is_packed_and_unpacked_without_a_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    model = facility(OPENING)
    packed = pack(model, "actions")
    monkeypatch.setattr("multiplay.actions.milp.MixedProgram.solve", None)
    again = unpack(*packed, builder_of())
    assert again.n.tolist() == model.n.tolist()
    assert again.columns == model.columns
    assert again.names == model.names


def test_a_model_whose_hull_was_used_is_pickled_for_other_processes() -> None:
    model = facility(OPENING)
    start = model.hull.start(1)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.hull.start(1)["atoms"], start["atoms"])
    assert np.array_equal(again.best([0.3, 0.2, 0.1]), model.best([0.3, 0.2, 0.1]))


VERIFY = """
import sys
from multiplay import Study
study = Study.open("depots", store=sys.argv[1])
study.best()
print(study.verify())
"""


def test_a_study_verifies_in_a_new_process(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/studies.db"
    study = Study.create("depots", facility([30.0, 20.0, 60.0]), loss_range=(0, 100), store=store)
    for day in range(6):
        play = study.ask(exclude=["depot 2"] if day == 3 else [])
        study.tell(play, {arm: [40.0 + day] * units for arm, units in play.plan.items()})
    assert study.verify().ok
    command = [sys.executable, "-c", VERIFY, store]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "all entries are intact and replay to the same state" in printed


def test_verify_names_the_solver_of_the_creation_if_it_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import scipy

    study = Study.create("solver", Model.example(), store="memory://solver")
    study.ask()
    assert study.verify().solvers is None
    monkeypatch.setattr("multiplay.studies.replica.solver_version", lambda: "scipy 9.0")
    found, then = study.verify(), f"scipy {scipy.__version__}"
    assert (found.ok, found.solvers) == (True, (then, "scipy 9.0"))
    assert f"created with {then}, verified with scipy 9.0" in str(found)
    other = Study.create("none", Transport([1], [1]), store="memory://solver")
    assert other.verify().solvers is None


def depots_and_customers(depots: int, customers: int, unit: float = 1.0) -> Model:
    """Return flows from depots with opening costs and capacities to customers; 0/1 arms."""
    rng = np.random.default_rng(0)
    flows = [(i, j) for i in range(depots) for j in range(customers)]
    arms, capacity = len(flows), 1 + 3 * customers // depots
    return Model(
        columns={
            "lower": [0] * (arms + depots),
            "upper": [1] * (arms + depots),
            "integer": [True] * (arms + depots),
            "cost": [0.0] * arms + (unit * rng.uniform(2, 3, depots)).tolist(),
        },
        rows={
            "lower": [1] * customers + [None] * depots,
            "upper": [1] * customers + [0] * depots,
        },
        matrix={
            "row": [
                *(j for _, j in flows),
                *(customers + i for i, _ in flows),
                *range(customers, customers + depots),
            ],
            "column": [*range(arms), *range(arms), *range(arms, arms + depots)],
            "value": [1] * (2 * arms) + [-capacity] * depots,
        },
        arms=list(range(arms)),
        n=[1] * arms,
    )


def test_an_answer_after_the_time_limit_is_an_action_with_a_gap(tmp_path: Path) -> None:
    """10 depots and 50 customers: the proof takes seconds, an action a moment.

    The gap bounds what is lost at the draw; the linear relaxation is an independent bound.
    """
    model = depots_and_customers(10, 50, unit=100.0)
    store = f"sqlite:///{tmp_path}/studies.db"
    study = Study.create("depots", model, GenCTS(), loss_range=(0, 100), seed=1, store=store)
    play = study.ask(key="today", time_limit=0.05)
    assert play.truncated
    assert model.contains(play.action)
    assert play.action.sum() == 50
    assert play.gap is not None
    assert 0 < play.gap <= 100.0 * (50 + 30)  # all losses, and all depots
    again = Study.open("depots", store=store)
    assert again.ask(key="today").gap == play.gap
    assert again.verify().ok


@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_gap_bounds_the_distance_from_the_best_action(
    sense: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that stops at once with a point of the list and the bound of the relaxation."""
    model, (actions, opened) = facility(OPENING, sense=sense), listed(OPENING)
    heights = opened if sense == "min" else np.full(len(actions), sum(OPENING))
    model = model.shifted(np.zeros(3), scale=2.0)
    means = np.array([0.3, 0.9, 0.2])
    values = model.sign * (actions @ means + heights / 2.0)
    solve = MixedProgram.solve

    def late(program: MixedProgram, costs: FloatArray, limit: float, gap: float = 0.0) -> Answer:
        whole = program.integer
        relaxed = solve(program._replace(integer=np.zeros_like(whole)), costs)
        worst = solve(program, -costs)
        assert relaxed.x is not None
        return Answer(Status.OUT_OF_TIME, worst.x, "late", float(relaxed.x @ costs))

    with deadline.before(time.monotonic() - 1.0) as limit:
        monkeypatch.setattr(MixedProgram, "solve", late)
        action = model.best(means)
    value = values[(actions == action).all(axis=1)][0]
    assert limit.truncated
    assert value - values.min() > 0.1
    assert value - values.min() <= limit.gap + 1e-9


def test_a_gap_is_in_the_unit_of_the_user() -> None:
    """Losses of 0 to 200 instead of 0 to 1, and opening costs in the same unit."""
    gaps = []
    for unit in (1.0, 200.0):
        learner = Learner(depots_and_customers(4, 8, unit), GenCTS(), loss_range=(0, unit), seed=2)
        until = time.monotonic() - 1.0  # no time at all: the bounds of the columns are all there is
        play = learner.engine.ask(
            1, learner.engine.round_set(None, None, (), None), 0.0, None, until
        )
        gaps.append(play.gap)
    assert gaps[0] is not None
    assert gaps[1] == pytest.approx(200.0 * gaps[0])


# ---------------------------------------------------------------- errors

GOOD: dict[str, Any] = {
    "columns": {"lower": [0, 0], "upper": [2, 1], "integer": [True, True], "cost": [0, 1]},
    "rows": {"lower": [1], "upper": [2]},
    "matrix": {"row": [0, 0], "column": [0, 1], "value": [1, 1]},
    "arms": [0],
}


def columns(**changes: Any) -> dict[str, Any]:
    return {"columns": GOOD["columns"] | changes}


BAD: list[tuple[dict[str, Any], str, str]] = [
    (columns(upper=[2]), "columns.upper", "2 entries, as lower has"),
    (columns(upper="two"), "columns.upper", "a list"),
    (columns(kind=[1, 2]), "columns.kind", "one of lower, upper, integer, cost"),
    ({"columns": [1, 2]}, "columns", "a dict with"),
    ({"matrix": GOOD["matrix"] | {"column": [0, 2]}}, "matrix", "columns below 2"),
    ({"matrix": GOOD["matrix"] | {"row": [0, -1]}}, "matrix", "rows below 1"),
    ({"matrix": GOOD["matrix"] | {"column": [0, 0]}}, "matrix", "every nonzero once"),
    ({"matrix": GOOD["matrix"] | {"value": [1, math.nan]}}, "matrix.value", "finite numbers"),
    (columns(cost=[0, math.inf]), "columns.cost", "finite numbers"),
    (columns(lower=[0, math.nan]), "columns.lower", "numbers, or None for no limit"),
    (columns(lower=[0, "x"]), "columns.lower", "numbers, or None for no limit"),
    (columns(upper=[2, 1e16]), "columns.upper", "bounds below 1e15, or None"),
    (columns(lower=[3, 0]), "columns", "lower <= upper"),
    (columns(integer=[True, 1]), "columns.integer", "True or False"),
    ({"arms": []}, "arms", "different columns, at least one"),
    ({"arms": [0, 0]}, "arms", "different columns, at least one"),
    ({"arms": [2]}, "arms", "columns below 2"),
    ({"arms": "x"}, "arms", "different columns, at least one"),
    (columns(integer=[False, True]), "arms", "integer columns"),
    (
        columns(lower=[-2, 0]) | {"rows": {"lower": [-2], "upper": [2]}},
        "arms",
        "units from 0 on",
    ),
    ({"rows": {"lower": [5], "upper": [9]}}, "model", "at least one action"),
    (
        columns(upper=[None, 1]) | {"rows": {"lower": [1], "upper": [None]}},
        "model",
        "a finite set of actions",
    ),
    ({"constant": math.nan}, "constant", "a number"),
    ({"sense": "least"}, "sense", "'min'"),
    ({"names": ["a", "b"]}, "names", "1 names"),
    ({"n": [1.5]}, "n", "1 whole numbers"),
    ({"n": [3]}, "n", "at most 2 units of arm 1"),
    ({"matrix": GOOD["matrix"] | {"value": [1e16, 1]}}, "matrix.value", "numbers below 1e15"),
    (
        columns(lower=[0, None], cost=[0, 1]) | {"rows": {"lower": [None], "upper": [2]}},
        "model",
        "known costs with a best value",
    ),
]


@pytest.mark.parametrize(("changes", "argument", "expected"), BAD)
def test_bad_data_is_refused(changes: dict[str, Any], argument: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Model(**(GOOD | changes))
    assert caught.value.argument == argument
    assert expected in caught.value.expected


def test_a_continuous_arm_is_named() -> None:
    with pytest.raises(InvalidInput, match="'tonnes', which is continuous"):
        Model(**(GOOD | columns(integer=[False, True]) | {"names": ["tonnes"]}))


def test_rounding_that_breaks_a_row_is_refused() -> None:
    """x <= 1e9 y with y integer: y = 1e-9 is 0 for HiGHS, and rounding it breaks the row."""
    model = Model(
        columns={
            "lower": [0, 0],
            "upper": [100, 1],
            "integer": [True, True],
            "cost": [0.0, 1.0],
        },
        rows={"lower": [1, None], "upper": [None, 0]},
        matrix={"row": [0, 1, 1], "column": [0, 0, 1], "value": [1, 1, -1e9]},
        arms=[0],
        n=[100],
    )
    try:
        action = model.best([0.5])
    except InvalidInput as refused:
        found = refused.argument, "big-M" in refused.hint
    else:  # some builds of HiGHS solve it: then the action must be right
        found = "model", bool(model.contains(action)) and float(model.known(action)) == 1.0
    assert found == ("model", True)
