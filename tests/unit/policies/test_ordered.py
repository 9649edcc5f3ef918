"""Means by unit: estimates, draws, plans and regret against slow versions of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples_of_sets import SETS
from scipy.optimize import isotonic_regression

import multiplay as mp
from multiplay import ActionSet, BootstrapCTS, Budget, Changes, GenCTS, Learner, Transport
from multiplay.feedback import Feedback
from multiplay.policies.index import IndexPolicy
from multiplay.posteriors.by_unit import SUMS, OrderedUnits
from multiplay.random import POLICY, Streams
from multiplay.testing import check_environment, check_policy
from multiplay.types import Arrays, FloatArray

PLANS = Transport([1, 4, 5], [4, 6])
ORDERED: list[IndexPolicy] = [GenCTS(unit_means="ordered"), BootstrapCTS(unit_means="ordered")]
WIDE = Budget(6, caps=[4, 4, 3])
REWARDS = Budget(6, caps=[4, 4, 3], sense="max")


def units_of(policy: IndexPolicy) -> OrderedUnits:
    assert isinstance(policy.posterior, OrderedUnits)
    return policy.posterior


def told(policy: IndexPolicy, actions: ActionSet, seed: int, rounds: int, slope: float) -> Arrays:
    """Return the state after random actions, whose units lose more by number."""
    rng, streams = np.random.default_rng(seed), Streams.spawn(seed, POLICY, [0])
    state = policy.start(actions, None, 1)
    everything, start = actions.all_actions(), 0.3 if actions.sense == "min" else 0.75
    for _ in range(rounds):
        action = rng.choice(everything)[None]
        k = np.concatenate([np.arange(a) for a in action[0]])
        noise = rng.uniform(-0.1, 0.1, len(k))
        units = (start + actions.sign * slope * k + noise)[None]
        first = np.append(0, action[0].cumsum())
        total = np.array(
            [[units[0, f : f + a].sum() for f, a in zip(first, action[0], strict=False)]]
        )
        policy.absorb(actions, state, Feedback(action, total, units, first), streams)
    return state


def twin(policy: IndexPolicy, sums: FloatArray, sign: float) -> tuple[FloatArray, FloatArray]:
    """Return mean vectors and covariances of all units of each arm, by dense matrices."""
    n, mean, squares = np.moveaxis(sums, -1, 0)
    w = units_of(policy).w
    if units_of(policy).coins:
        m = (n * mean + 1) / (n + 2)
        variance = m * (1 - m)
    else:
        free = np.where(n > 1, n - 1, 0)
        together = (squares[n > 1].sum() + w / 2) / (free.sum() + 2 * w)
        own = (np.where(n > 1, squares, 0).sum(axis=1) + 2 * w * together) / (
            free.sum(axis=1) + 2 * w
        )
        variance = np.repeat(own[:, None], n.shape[1], axis=1)
    r = np.where(n > 0, variance / np.maximum(n, 1), np.inf)
    return dense(sign * mean, r, sign)


def dense(y: FloatArray, r: FloatArray, sign: float) -> tuple[FloatArray, FloatArray]:
    """Return means and covariances of all units of each arm, by averages y of variance r."""
    seen = np.isfinite(r)
    both = seen[:, 1:] & seen[:, :-1]
    doubt = (r[:, 1:] + r[:, :-1])[both]
    step, share = np.diff(y, axis=1)[both], 0.01 / (0.01 + doubt)
    g = max(float((share * step).sum() / (share.sum() + 0.05)), 0.0)
    tau2 = ((share * ((step - g) ** 2 - doubt)).sum() + 0.1 * 0.01) / (share.sum() + 0.1)
    return along(y, r, sign, g, max(float(tau2), (g / 2) ** 2, 0.02**2))


def along(
    y: FloatArray, r: FloatArray, sign: float, g: float, tau2: float
) -> tuple[FloatArray, FloatArray]:
    """Return means and covariances of the units of each arm, for steps of mean g."""
    k, seen = np.arange(y.shape[1]), np.isfinite(r)
    prior = 1 / 12 + tau2 * np.minimum.outer(k, k)
    centre = sign * 0.5 + g * k
    means, covariances = [], []
    for i in range(len(y)):
        precision = np.linalg.inv(prior) + np.diag(1 / r[i])
        covariance = np.linalg.inv(precision)
        data = np.where(seen[i], y[i] / np.where(seen[i], r[i], 1), 0)
        means.append(covariance @ (np.linalg.inv(prior) @ centre + data))
        covariances.append(covariance)
    return np.array(means), np.array(covariances)


@pytest.mark.parametrize("actions", [WIDE, REWARDS], ids=repr)
@pytest.mark.parametrize("policy", ORDERED, ids=repr)
@pytest.mark.parametrize("rounds", [0, 1, 3, 40])
def test_estimates_are_those_of_dense_matrices(
    policy: IndexPolicy, actions: ActionSet, rounds: int
) -> None:
    state = told(policy, actions, seed=rounds, rounds=rounds, slope=0.02)
    found, sign = units_of(policy).believed_units(actions, state), actions.sign
    means, covariances = twin(policy, state[SUMS][0], sign)
    for i, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        nearest = isotonic_regression(mean, weights=1 + state[SUMS][0, i, :, 0]).x
        low, high = sorted([0, sign])
        np.testing.assert_allclose(found.mean[0, i], sign * np.clip(nearest, low, high), atol=1e-9)
        np.testing.assert_allclose(found.variance[0, i], np.diag(covariance), rtol=1e-6)
        sums = [covariance[:k, :k].sum() for k in range(1, len(mean) + 1)]
        np.testing.assert_allclose(found.sum_variance[0, i], sums, rtol=1e-6)


@pytest.mark.parametrize("actions", [WIDE, REWARDS], ids=repr)
@pytest.mark.parametrize("policy", ORDERED, ids=repr)
def test_draws_have_the_means_and_covariances_of_dense_matrices(
    policy: IndexPolicy, actions: ActionSet
) -> None:
    """Steps of 0.15 are so large that the projection changes nothing; 5 standard errors, seed 3."""
    draws = 20_000
    state = told(policy, actions, seed=1, rounds=3000, slope=0.15)
    many = {SUMS: np.repeat(state[SUMS], draws, axis=0)}
    theta = actions.sign * units_of(policy).draw(
        actions, many, Streams.spawn(3, POLICY, range(draws))
    )
    means, covariances = twin(policy, state[SUMS][0], actions.sign)
    for i, n in enumerate(actions.n):
        mean, covariance = means[i, :n], covariances[i, :n, :n]
        deviation = np.sqrt(np.diag(covariance))
        assert (np.diff(mean) > 5 * deviation[1:]).all()  # the projection changes nothing
        errors = (theta[:, i, :n].mean(axis=0) - mean) / deviation
        assert np.abs(errors).max() < 5 / np.sqrt(draws)
        correlation = np.cov(theta[:, i, :n].T) / np.outer(deviation, deviation)
        off = correlation - covariance / np.outer(deviation, deviation)
        assert np.abs(off).max() < 5 * np.sqrt(2 / draws)


@pytest.mark.parametrize("policy", ORDERED, ids=repr)
def test_draws_do_not_decrease_and_unseen_units_are_above_those_below(policy: IndexPolicy) -> None:
    state = told(policy, WIDE, seed=2, rounds=5, slope=0.0)
    many = {SUMS: np.repeat(state[SUMS], 500, axis=0)}
    theta = units_of(policy).draw(WIDE, many, Streams.spawn(0, POLICY, range(500)))
    assert (np.diff(theta, axis=2) >= 0).all()
    assert theta.min() >= 0
    assert theta.max() <= 1


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("actions", [one for one in SETS if one.affine], ids=repr)
def test_the_best_action_by_unit_is_the_best_of_all(actions: ActionSet, sign: int) -> None:
    """Means of seed 0 that increase (and that decrease), with fewer columns than units."""
    rng, everything = np.random.default_rng(0), actions.all_actions()
    K = max(1, int(actions.n.max()) - 1)
    means = np.sort(rng.random((5, actions.d, K)), axis=2)[:, :, :: sign * int(actions.sign)]
    found = actions.best_by_unit(means)
    assert actions.contains(found).all()
    for row, best in zip(means, found, strict=True):
        values = [slow_value(actions, action, row) for action in everything]
        assert slow_value(actions, best, row) * actions.sign == pytest.approx(
            min(actions.sign * value for value in values), abs=1e-9
        )


def slow_value(actions: ActionSet, action: Sequence[int], means: FloatArray) -> float:
    """Return the sum of the means of the units of one action, and what is known of it."""
    value = float(actions.known(np.array(action))) if actions.extra else 0.0
    for i, units in enumerate(action):
        offset = 0.0 if actions.offset is None else float(actions.offset[i])
        value += sum(means[i, min(k, means.shape[1] - 1)] + offset for k in range(units))
    return value


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_best_action_by_unit_has_known_costs_of_helpers(sense: str) -> None:
    columns = {"lower": [0] * 4, "upper": [6, 4, 1, 1], "integer": [True] * 4}
    rows = {"lower": [6, None, None], "upper": [6, 0, 0]}
    matrix = {
        "row": [0, 0, 1, 1, 2, 2],
        "column": [0, 1, 0, 2, 1, 3],
        "value": [1, 1, 1, -6, 1, -6],
    }
    model = mp.Model(columns | {"cost": [0.1, 0, 2, 1]}, rows, matrix, arms=[0, 1], sense=sense)
    rng, everything = np.random.default_rng(1), model.enumerate()
    for actions in (model, model.shifted(np.array([0.2, 0.0]), 1.5)):
        means = actions.sign * np.sort(actions.sign * rng.random((20, 2, 5)))
        found = actions.best_by_unit(means)
        for own, row in zip(found, means, strict=True):
            values = actions.sign * actions.value_by_unit(everything, row)
            assert actions.sign * actions.value_by_unit(own, row) == pytest.approx(values.min())
        assert len(np.unique(found, axis=0)) > 2


def test_an_offset_counts_for_every_unit() -> None:
    means = [[0.1, 0.2, 0.3, 0.4], [0.15, 0.15, 0.15, 0.15], [0.0, 0.1, 0.2, 0.2]]
    shifted = WIDE.shifted(np.array([0.3, 0.0, 0.0]))
    assert WIDE.best_by_unit(means).tolist() == [1, 3, 2]
    assert shifted.best_by_unit(means).tolist() == [0, 4, 2]
    assert shifted.value_by_unit([2, 4, 0], means) == pytest.approx(0.3 + 0.6 + 0.6)


def test_regret_is_that_of_enumeration() -> None:
    """Both regrets of a random policy, round by round, from all losses of the same seeds."""
    rng, trials, horizon = np.random.default_rng(5), 3, 12
    means = np.sort(rng.random((trials, WIDE.d, 4)), axis=2)
    world, policy = mp.ByUnit(mp.Bernoulli(means)), mp.RandomAction()
    result = mp.simulate(WIDE, world, {"random": policy}, horizon, trials, seed=2, record=horizon)
    everything, streams = WIDE.all_actions(), Streams.spawn(2, POLICY, range(trials))
    opened, state = world.open(WIDE, horizon, range(trials), 2), policy.start(WIDE, horizon, trials)
    first = np.append(0, WIDE.n.cumsum())
    pseudo, paid = np.zeros(trials), np.zeros(trials)
    for t in range(horizon):
        play = policy.choose(WIDE, state, streams)
        seen = opened.observe(play.action)
        policy.update(WIDE, state, play, seen.feedback, streams)
        units = seen.feedback.units
        assert units is not None
        for k, action in enumerate(play.action):
            values = [slow_value(WIDE, one, means[k]) for one in everything]
            best = everything[int(np.argmin(values))]
            pseudo[k] += slow_value(WIDE, action, means[k]) - min(values)
            for one, sign in ((action, 1), (best, -1)):
                spans = zip(first, one, strict=False)
                paid[k] += sign * sum(units[k, f : f + a].sum() for f, a in spans)
        now = result.dataset.isel(policy=0, round=t)
        np.testing.assert_allclose(now["regret"], pseudo, atol=1e-9)
        np.testing.assert_allclose(now["realised"], paid, atol=1e-9)


@pytest.mark.parametrize("policy", ORDERED, ids=repr)
def test_contract(policy: IndexPolicy) -> None:
    for actions in (PLANS, WIDE, REWARDS, mp.Knapsack([3, 4, 5], 10)):
        check_policy(policy, actions)


def test_contract_of_the_environment_with_rows_for_trials() -> None:
    means = np.linspace(0.05, 0.9, 3 * 3 * 4).reshape(3, 3, 4)
    check_environment(mp.ByUnit(mp.Uniform(0, means)), WIDE)


@pytest.mark.slow
def test_at_most_half_the_regret_of_copies() -> None:
    """Jumps of 0.4 after a random unit, 24 trials of 1,500 rounds, seed 0; measured 0.33."""
    rng, trials = np.random.default_rng(1), 24
    after = rng.integers(1, 5, (trials, 6, 1))
    means = rng.uniform(0.05, 0.4, (trials, 6, 1)) + 0.4 * (np.arange(5) >= after)
    policies = {"ordered": ORDERED[1], "copies": mp.Duplicated(GenCTS()), "plain": GenCTS()}
    world = mp.ByUnit(mp.Bernoulli(means))
    result = mp.simulate(PLANS, world, policies, 1500, trials, seed=0)
    final = {name: float(np.mean(result.final(name))) for name in policies}
    assert final["ordered"] < final["copies"] / 2
    assert final["plain"] > 3 * final["copies"]


# ------------------------------------------------------------ live use

CITIES = (["a", "b"], ["n", "s"])
LANES = Transport([3, 4], [4, 3], names=CITIES)
PRICE = np.array([40.0, 55.0, 70.0, 60.0])[:, None] + 25.0 * np.arange(6)


def bills(plan: dict[str, int], rng: np.random.Generator) -> dict[str, list[float | None]]:
    return {lane: list(rng.normal(PRICE[i, :n], 8.0)) for i, (lane, n) in enumerate(plan.items())}


@pytest.mark.parametrize("policy", ORDERED, ids=repr)
def test_a_learner_finds_the_best_plan_by_unit(policy: IndexPolicy, tmp_path: Any) -> None:
    """60 days, seed 1; saved and loaded in the middle."""
    learner, rng = Learner(LANES, policy, loss_range=(0, 300), seed=1), np.random.default_rng(1)
    for day in range(60):
        play = learner.ask()
        learner.tell(play.id, bills(play.plan, rng))
        if day == 30:
            learner.save(tmp_path / "learner.npz")
            learner = Learner.load(tmp_path / "learner.npz")
    best = LANES.best_by_unit(PRICE / 300)
    found = learner.best()
    assert found.action.tolist() == best.tolist()
    expected = learner.expect(found.plan, level=0.999)
    truth = float(300 * LANES.value_by_unit(best, PRICE / 300))
    assert expected.low < truth < expected.high
    assert expected.total == pytest.approx(truth, rel=0.05)
    play = learner.ask()
    why = learner.why(play)
    assert why.expected.total == pytest.approx(learner.expect(play.plan).total)
    for row in why.rows:
        i, units = LANES.names.index(row.arm), max(row.units, row.best_units)
        assert row.low <= row.mean <= row.high
        if row.units == row.best_units:
            assert row.mean == pytest.approx(PRICE[i, :units].mean(), rel=0.25)


def test_missing_units_keep_the_numbers_of_the_others() -> None:
    """None stands for a unit; a shorter list has the first units; totals of several are refused."""
    learner = Learner(
        LANES, ORDERED[1], loss_range=(0, 300), seed=0, reports=mp.Reports(missing="ignore")
    )
    lane = "b->n"
    plan = {"a->n": 1, "a->s": 2, lane: 3, "b->s": 1}

    def numbers() -> FloatArray:
        return learner.engine.state.arms.arrays[SUMS][0, :, :, 0]

    learner.learn(plan, {lane: [None, 90.0, 120.0]})
    assert numbers()[2].tolist() == [0, 1, 1, 0]
    learner.learn(plan, {lane: [40.0]})
    assert numbers()[2].tolist() == [1, 1, 1, 0]
    before = numbers().copy()
    with pytest.raises(mp.InvalidInput, match="the loss of every unit"):
        learner.learn(plan, {"a->n": 50.0, "a->s": 140.0, lane: 300.0, "b->s": 60.0})
    assert (numbers() == before).all()
    learner.learn(plan, {"a->n": 50.0})  # one unit: its total is its loss
    assert numbers()[0].tolist() == [1, 0, 0, 0]


def test_sets_may_change_and_grow() -> None:
    """A new depot, and more units than the first set: these count as the last position."""
    learner = Learner(LANES, ORDERED[0], loss_range=(0, 300), seed=0)
    larger = Transport([3, 9, 2], [8, 6], names=(["a", "b", "c"], ["n", "s"]))
    for actions in (None, larger, LANES, larger):
        play = learner.ask(actions=actions)
        told = {lane: [50.0 + 10 * k for k in range(n)] for lane, n in play.plan.items()}
        learner.tell(play.id, told)
        state = learner.engine.state
        total = int(state.statistics.columns["units"].sum())
        assert state.arms.arrays[SUMS][..., 0].sum() == total
    closed = learner.ask(exclude=["a->n"])
    assert closed.plan["a->n"] == 0


def test_a_study_verifies(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/ordered.db"
    policy = BootstrapCTS(unit_means="ordered", discount=0.99)
    study = mp.Study.create("lanes", LANES, policy, store=store, loss_range=(0, 300))
    rng = np.random.default_rng(0)
    for day in range(4):
        play = study.ask(key=str(day))
        study.tell(play.id, bills(play.plan, rng))
    again = mp.Study.open("lanes", store=store)
    assert again.policy == policy
    assert again.best().plan == study.best().plan
    assert again.verify()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: GenCTS(units="ordered"), "units"),  # type: ignore[call-arg]
        (lambda: GenCTS(unit_means="sorted"), "unit_means"),
        (lambda: GenCTS(unit_means=2), "unit_means"),  # type: ignore[arg-type]
        (lambda: GenCTS(unit_means="ordered", window=9), "window"),
        (lambda: GenCTS(unit_means="ordered", shared_seed=True), "shared_seed"),
        (lambda: BootstrapCTS(unit_means="ordered", memory=Changes()), "memory"),
        (lambda: Learner(mp.Coverage.example(), GenCTS(unit_means="ordered")), "actions"),
        (
            lambda: Learner(LANES, ORDERED[0], constraints=[mp.Baseline(mp.InProportion())]),
            "policy",
        ),
        (lambda: mp.ByUnit(mp.Bernoulli([0.1, 0.2])), "distribution"),
        (lambda: mp.ByUnit(mp.Bernoulli([[0.1] * 3] * 3)).check(WIDE, 5, 2), "distribution"),
        (lambda: mp.ByUnit(mp.Bernoulli([[0.1] * 4] * 2)).check(WIDE, 5, 2), "distribution"),
        (lambda: mp.ByUnit.example().check(Budget(2500, [2500] * 6), 5, 2), "distribution"),
        (lambda: WIDE.best_by_unit([0.1, 0.2, 0.3]), "means"),
        (lambda: WIDE.best_by_unit([[float("nan")] * 4] * 3), "means"),
        (lambda: WIDE.best_by_unit(np.zeros((3, 0))), "means"),
    ],
)
def test_bad_input_is_refused(make: Any, argument: str) -> None:
    with pytest.raises(mp.InvalidInput) as refused:
        make()
    assert refused.value.argument == argument
