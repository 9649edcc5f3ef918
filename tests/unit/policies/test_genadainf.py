"""GenAdaINF against a plain twin, its identity, its bound and the numbers that it is known by."""

import numpy as np
import pytest
from known import check_known
from refusal import refused

from multiplay import (
    ActionSet,
    Adversarial,
    Bernoulli,
    Budget,
    Corrupted,
    Environment,
    Feedback,
    GenAdaINF,
    GenLBINFV,
    Knapsack,
    Learner,
    Network,
    Policy,
    RandomWalk,
    Stochastic,
    Transport,
    simulate,
)
from multiplay.experiments import paper
from multiplay.policies.genadainf import minimiser
from multiplay.random import POLICY, Streams
from multiplay.theory import genadainf_realised, realised_bound
from multiplay.theory.adainf import psi
from multiplay.types import Arrays, FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
MANY = Transport([8, 32, 40], [32, 48])
AT_MOST = Budget(4, [2, 1, 3, 1], at_most=True, sense="max")
FREE_ARCS = Network(
    [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("c", "d")],
    {"a": 3, "b": 1, "c": 0, "d": -4},
    [3, 2, 2, 3, 2, 1],
    free=[1, 2],
)
PACKINGS = Knapsack([3, 4, 5, 6], 16)
FORCED = Transport([3, 0], [1, 2])
SETS: dict[str, ActionSet] = {
    "transport": PAPER,
    "many units": MANY,
    "rewards": AT_MOST,
    "free arcs": FREE_ARCS,
    "knapsack": PACKINGS,
    "forced": FORCED,
    "budget": Budget(5, [3, 2, 4, 1]),
}
sets = pytest.mark.parametrize("name", SETS)


# ---------------------------------------------------------------- a plain twin of steps 1 to 6


def twin_weights(policy: GenAdaINF, actions: ActionSet, state: Arrays) -> dict[str, FloatArray]:
    q = (0.5 + state["sum"]) / (1 + state["count"])
    risk = q if actions.sense == "min" else 1 - q
    whole = isinstance(actions, Knapsack)
    r = actions.n.astype(float) ** (1.0 if whole else policy.caution)
    return {"q": q, "w": np.sqrt((policy.c * risk * r) ** 2 + state["S"])}


def twin_update(
    actions: ActionSet, state: Arrays, memo: Arrays, y: Arrays, losses: FloatArray
) -> dict[str, FloatArray]:
    """Return S and v after one round, written as in the definition."""
    n, S, v = actions.n, state["S"].copy(), state["v"].copy()
    for k, i in np.argwhere((y["x"] > 0) & (y["rest"] > 0)):
        x, rest, w, old_v = memo["x"][k, i], memo["rest"][k, i], memo["w"][k, i], memo["v"][k]
        z, rest_z = y["x"][k, i], y["rest"][k, i]
        shannon = x * np.log(x / z) - x + z + rest * np.log(rest / rest_z) - rest + rest_z
        D = w * (x / z - 1 - np.log(x / z)) + old_v * shannon
        kappa = 1 - x / n[i] if isinstance(actions, Knapsack) else max(0, 1 - x)
        S[k, i] += 2 * w * kappa * D / (1 + np.log(state["t"][k]))
        slope = w * (1 / n[i] - 1 / z) + old_v * (np.log(z / n[i]) - np.log(rest_z / n[i]))
        v[k] += ((1 - kappa) * D + (losses[k, i] + slope) * (x - z)) / (actions.M / 2)
    return {"S": S, "v": v}


@sets
def test_steps_equal_their_twin(name: str) -> None:
    actions, rng, policy = SETS[name], np.random.default_rng(4), GenAdaINF(caution=0.25)
    state, means = policy.start(actions, None, 3), rng.random(actions.d)
    for _ in range(60):
        play = policy.choose(actions, state, rng)
        for entry, expected in twin_weights(policy, actions, state).items():
            assert np.allclose(play.memo[entry], expected, rtol=1e-13)
        losses = rng.binomial(play.action, means).astype(float)
        feedback = Feedback(play.action, losses)
        played, q = play.action > 0, play.memo["q"]
        k = np.where(played, losses / np.maximum(play.action, 1), q)
        ratio = np.where(played, play.action / np.maximum(play.memo["x"], 1e-300), 0.0)
        e = q + ratio * (k - q)
        losses_then = actions.sign * (play.memo["L"] + e)
        y = minimiser(actions, losses_then, play.memo, actions.hull.start(3))
        after = twin_update(actions, state, play.memo, y, losses_then)
        L = state["L"] + e
        policy.update(actions, state, play, feedback, rng)
        assert np.allclose(state["L"], L, rtol=1e-12, atol=1e-12)
        assert np.allclose(state["S"], after["S"], rtol=1e-6, atol=1e-11)
        assert np.allclose(state["v"], after["v"], rtol=1e-6, atol=1e-11)


@sets
def test_the_cost_of_the_round_is_paid(name: str) -> None:
    """sum_i D_i + B = <L, x> + Psi(x) - min, to rounding."""
    actions, rng, policy = SETS[name], np.random.default_rng(5), GenAdaINF()
    state, means = policy.start(actions, None, 4), rng.random(actions.d)
    for _ in range(200):
        play = policy.choose(actions, state, rng)
        memo, S, v, g = play.memo, state["S"].copy(), state["v"].copy(), 1 + np.log(state["t"])
        feedback = Feedback(play.action, rng.binomial(play.action, means).astype(float))
        policy.update(actions, state, play, feedback, rng)
        w = np.where(actions.n > 0, memo["w"], 1.0)
        paid = (g[:, None] * (state["S"] - S) / (2 * w)).sum(axis=1)
        paid += (state["v"] - v) * actions.M / 2
        L = actions.sign * state["L"]
        y = minimiser(actions, L, memo, {entry: memo[entry] for entry in actions.hull.point})
        delta = ((memo["x"] - y["x"]) * L).sum(axis=1)
        delta += psi(actions, memo, memo) - psi(actions, memo, y)
        size = (np.abs(L) * actions.n).sum(axis=1) + psi(actions, memo, memo)
        assert np.allclose(paid, delta, rtol=1e-6, atol=1e-12 * size.max())


@pytest.mark.parametrize("name", ["transport", "many units"])
def test_where_equations_bind_the_divergences_are_all_of_it(name: str) -> None:
    """On transports B = 0, so S and v are those of the definition without it."""
    actions, rng, policy = SETS[name], np.random.default_rng(8), GenAdaINF()
    state, means = policy.start(actions, None, 4), rng.random(actions.d)
    for _ in range(100):
        play = policy.choose(actions, state, rng)
        memo, v, old = play.memo, state["v"].copy(), state["L"].copy()
        feedback = Feedback(play.action, rng.binomial(play.action, means).astype(float))
        policy.update(actions, state, play, feedback, rng)
        y = minimiser(actions, state["L"], memo, {one: memo[one] for one in actions.hull.point})
        x, z, rest = memo["x"], y["x"], memo["rest"]
        shannon = x * np.log(x / z) + rest * np.log(rest / y["rest"])
        D = memo["w"] * (x / z - 1 - np.log(x / z)) + memo["v"][:, None] * shannon
        common = (np.minimum(x, 1) * D).sum(axis=1) / (actions.M / 2)
        assert np.allclose(state["v"] - v, common, rtol=1e-6, atol=1e-12)
        assert (state["L"] != old).any()


@sets
def test_weights_grow_but_for_what_they_expect(name: str) -> None:
    """S and v never decrease: w falls only where the risk does."""
    actions, rng, policy = SETS[name], np.random.default_rng(6), GenAdaINF()
    state = policy.start(actions, None, 2)
    for t in range(100):
        play = policy.choose(actions, state, rng)
        before = state["S"].copy(), state["v"].copy()
        losses = play.action * (rng.random(actions.d) if t < 50 else 1 - rng.random(actions.d))
        policy.update(actions, state, play, Feedback(play.action, losses), rng)
        assert (state["S"] >= before[0]).all()
        assert (state["v"] >= before[1]).all()


# ---------------------------------------------------------------- what is proved


WORLDS = ("stochastic", "flipped", "random walk", "reacts")


def world(kind: str, actions: ActionSet) -> Environment:
    means = np.random.default_rng(7).uniform(0.1, 0.5, actions.d)
    match kind:
        case "stochastic":
            return Stochastic(Bernoulli(means))
        case "flipped":
            return Corrupted(Bernoulli(means), Bernoulli(1 - means), at=60)
        case "random walk":
            return Adversarial(RandomWalk(0.05))
    return Adversarial(lambda t, past: 0.2 + 0.6 * (past[-1] > 0 if len(past) else means))


@pytest.mark.slow
@sets
@pytest.mark.parametrize("kind", WORLDS)
def test_no_run_exceeds_what_it_paid_for(name: str, kind: str) -> None:
    """The bound is an inequality of numbers, not of means: it holds in every trial."""
    actions = SETS[name]
    for caution in (0.0, 1.0):
        run = genadainf_realised(actions, world(kind, actions), 300, 4, 1, GenAdaINF(caution))
        assert (run.estimated <= run.bound + 1e-9 * (1 + np.abs(run.bound))).all()
        assert (run.paid >= 0).all()
        assert (run.shrunk >= 0).all()


def test_the_weights_pay_for_the_costs_up_to_the_ratio() -> None:
    """kappa D, summed over the rounds, is at most a factor of the ratio times log T sqrt(S)."""
    policy, T, trials = GenAdaINF(), 200, 3
    environment = world("flipped", PAPER)
    rng = Streams.spawn(5, POLICY, range(trials))
    losses = environment.open(PAPER, T, range(trials), seed=5)
    state = policy.start(PAPER, T, trials)
    costs, ratio = np.zeros((trials, PAPER.d)), np.zeros(trials)
    for t in range(1, T + 1):
        play, S = policy.choose(PAPER, state, rng), state["S"].copy()
        policy.update(PAPER, state, play, losses.observe(play.action).feedback, rng)
        paid = (1 + np.log(t)) * (state["S"] - S) / (2 * play.memo["w"])
        costs += paid
        ratio = np.maximum(ratio, (paid / play.memo["w"] / (1 + np.log(t))).max(axis=1))
    factor = (1 + np.sqrt(1 + 2 * ratio)) / 2
    assert (costs <= (factor * (1 + np.log(T)))[:, None] * np.sqrt(state["S"]) * (1 + 1e-9)).all()
    run = genadainf_realised(PAPER, environment, T, trials, seed=5)
    assert run.ratio == pytest.approx(ratio)


def test_the_regret_of_the_bound_is_that_of_a_simulation() -> None:
    environment = world("flipped", PAPER)
    run = genadainf_realised(PAPER, environment, 100, 3, seed=5)
    twin = simulate(PAPER, environment, {"GenAdaINF": GenAdaINF()}, 100, 3, seed=5)
    assert np.allclose(run.regret, twin.final("GenAdaINF"))


def test_what_the_bound_refuses() -> None:
    with refused("policy"):
        genadainf_realised(PAPER, world("flipped", PAPER), 10, policy=GenLBINFV())  # type: ignore[arg-type]
    with refused("horizon"):
        genadainf_realised(PAPER, world("flipped", PAPER), 0)
    with refused("trials"):
        genadainf_realised(PAPER, world("flipped", PAPER), 10, trials=0)


# ---------------------------------------------------------------- known numbers


KNOWN = {  # mean and standard error at T = 10^4, 480 trials: scale, regime, caution
    (1, "stochastic", 0.0): (20.6, 0.7),
    (1, "stochastic", 0.5): (23.2, 0.6),
    (1, "stochastic", 1.0): (30.3, 0.6),
    (1, "corrupted", 0.0): (-19, 54),
    (1, "corrupted", 0.5): (5, 41),
    (1, "corrupted", 1.0): (21, 35),
    (8, "stochastic", 0.0): (32.2, 1.2),
    (8, "stochastic", 0.5): (53.2, 1.1),
    (8, "stochastic", 1.0): (172, 3),
    (8, "corrupted", 0.0): (-843, 428),
    (8, "corrupted", 0.5): (22, 270),
    (8, "corrupted", 1.0): (259, 114),
    (64, "stochastic", 0.0): (82, 2),
    (64, "stochastic", 0.5): (163, 3),
    (64, "stochastic", 1.0): (1313, 21),
    (64, "corrupted", 0.0): (-10_700, 3500),
    (64, "corrupted", 0.5): (-462, 1301),
    (64, "corrupted", 1.0): (2000, 300),
}


def check_numbers(scale: int, regime: str, cautions: tuple[float, ...], trials: int) -> None:
    plans = Transport(scale * PAPER.supply, scale * PAPER.demand)
    policies: dict[str, Policy] = {f"{one}": GenAdaINF(one) for one in cautions}
    environment = paper.environments(10_000, trials, seed=1)[regime]
    result = simulate(plans, environment, policies, 10_000, trials, seed=1, record=1)
    for one in cautions:
        check_known(result.final(f"{one}"), *KNOWN[scale, regime, one], f"caution {one}:")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "regime"), [(1, "stochastic"), (1, "corrupted"), (64, "stochastic")]
)
def test_known_numbers(scale: int, regime: str) -> None:
    check_numbers(scale, regime, (0.5,), trials=40)


@pytest.mark.soak
@pytest.mark.parametrize("regime", ["stochastic", "corrupted"])
@pytest.mark.parametrize("scale", [1, 8, 64])
def test_all_known_numbers(scale: int, regime: str) -> None:
    check_numbers(scale, regime, (0.0, 0.5, 1.0), trials=300)


# ---------------------------------------------------------------- late feedback


def late_regret(
    policy: Policy, scale: int, delays: IntArray, trials: int, horizon: int
) -> FloatArray:
    """Regret where the losses of round t come after delays[t] more rounds have begun."""
    plans = Transport(scale * PAPER.supply, scale * PAPER.demand)
    environment = paper.environments(horizon, trials, seed=2)["stochastic"]
    late = delays.tolist()
    return simulate(plans, environment, {"it": policy}, horizon, trials, 2, delay=late).final("it")


def check_delays(scales: tuple[int, ...], trials: int, horizon: int) -> None:
    out_of_order = np.random.default_rng(3).exponential(20, horizon).round().astype(int)
    delays = {"ten": (np.full(horizon, 10), 2), "hundred": (np.full(horizon, 100), 5)}
    delays["out of order"] = (out_of_order, 2)
    for scale in scales:
        prompt = late_regret(
            GenAdaINF(), scale, np.zeros(horizon, dtype=int), trials, horizon
        ).mean()
        for name, (late, times) in delays.items():
            regret = late_regret(GenAdaINF(), scale, late, trials, horizon).mean()
            rival = late_regret(GenLBINFV(), scale, late, trials, horizon).mean()
            assert regret < rival, (name, scale)
            assert scale > 1 or regret < times * prompt, (name, regret, prompt)


@pytest.mark.slow
def test_late_feedback_costs_little() -> None:
    check_delays((1,), trials=20, horizon=4000)


@pytest.mark.slow
@pytest.mark.soak
def test_late_feedback_costs_little_at_every_scale() -> None:
    check_delays((1, 8, 64), trials=60, horizon=4000)


# ---------------------------------------------------------------- long runs, live use, refusals


@pytest.mark.soak
def test_a_million_rounds() -> None:
    """No NaN, no warning, no infeasible plan: every action is checked by the simulation."""
    environment = Stochastic(Bernoulli(np.random.default_rng(1).uniform(0.1, 0.5, 6)))
    result = simulate(PAPER, environment, {"GenAdaINF": GenAdaINF()}, 10**6, 1, record=1000)
    assert np.isfinite(result.regret.values).all()


def test_many_rounds_on_ten_by_ten() -> None:
    rng = np.random.default_rng(2)
    supply = rng.integers(1, 50, 10)
    plans = Transport(supply, rng.permutation(supply))
    environment = Corrupted(
        Bernoulli(rng.uniform(0.1, 0.5, 100)), Bernoulli(rng.uniform(0.5, 0.9, 100)), at=1000
    )
    result = simulate(plans, environment, {"GenAdaINF": GenAdaINF()}, 3000, 1, record=10)
    assert np.isfinite(result.regret.values).all()


@pytest.mark.soak
def test_very_many_rounds_on_ten_by_ten() -> None:
    rng = np.random.default_rng(2)
    supply = rng.integers(1, 50, 10)
    plans = Transport(supply, rng.permutation(supply))
    environment = Stochastic(Bernoulli(rng.uniform(0.1, 0.5, 100)))
    result = simulate(plans, environment, {"GenAdaINF": GenAdaINF()}, 10**5, 1, record=100)
    assert np.isfinite(result.regret.values).all()


@pytest.mark.slow
def test_an_arm_that_is_as_good_as_always_played() -> None:
    """A sack with room for all: x_i is n_i to the last digit, and its complement is 0."""
    learner = Learner(Knapsack([1] * 26, 26, limits=1), GenAdaINF(), seed=0)
    for _ in range(5):
        play = learner.ask()
        learner.tell(play.id, play.action * np.linspace(0, 1, 26))
    assert learner.ask().action.sum() > 20
    assert all(np.isfinite(array).all() for array in learner.state.values())


def test_a_learner_needs_no_horizon() -> None:
    learner = Learner(PAPER, GenAdaINF(), seed=1)
    plays = [learner.ask() for _ in range(3)]
    for play in reversed(plays):
        learner.tell(play.id, (play.action * 0.5).tolist())
    assert learner.ask().action.sum() == 10


@pytest.mark.parametrize(
    "settings",
    [{"caution": -0.1}, {"caution": 1.1}, {"c": 1.0}, {"v0": 0.0}, {"c": "much"}, {"v0": np.nan}],
    ids=str,
)
def test_bad_settings(settings: dict[str, float]) -> None:
    with refused(next(iter(settings))):
        GenAdaINF(**settings)


# ---------------------------------------------------------------- the cheap sibling


def test_initial_weights_by_units() -> None:
    state = GenLBINFV(initial="units").start(PAPER, 100, 2)
    assert np.allclose(np.sqrt(state["beta2"]), 1.2 / PAPER.n)
    ones = Budget(2, [1, 1, 1])
    first, second = (
        simulate(ones, Stochastic(Bernoulli([0.2, 0.5, 0.6])), {"one": policy}, 60, 2)
        for policy in (GenLBINFV(), GenLBINFV(initial="units"))
    )
    assert np.array_equal(first.regret, second.regret), "with n = 1 nothing changes"
    with refused("initial"):
        GenLBINFV(initial="trucks")
    with refused("policy"):
        realised_bound(PAPER, GenLBINFV(initial="units"), state, 1000)
