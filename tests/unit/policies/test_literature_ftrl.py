"""Policies of others that follow a regularised leader, and the square root in the FTRL step."""

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multiplay.policies
from multiplay import (
    ActionSet,
    Bernoulli,
    Budget,
    Duplicated,
    Explicit,
    Feedback,
    GenLBINFV,
    InvalidInput,
    Knapsack,
    Network,
    Play,
    Policy,
    Stochastic,
    Transport,
    simulate,
)
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import describe
from multiplay.hull import Regulariser
from multiplay.policies.hybrid import Hybrid
from multiplay.policies.lbinf import LBINF
from multiplay.testing import check_policy, optimality_gap
from multiplay.testing.strategies import explicits, networks, random_transport
from multiplay.theory import realised_bound
from multiplay.types import FloatArray, IntArray

PAPER = Transport([1, 4, 5], [4, 6])
M_SET = Budget(3, np.ones(7))
FREE_ARCS = Network(
    [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d"), ("c", "d")],
    {"a": 3, "b": 1, "c": 0, "d": -4},
    [3, 2, 2, 3, 2, 1],
    free=[1, 2],
)
CHOICES = Explicit(np.random.default_rng(2).integers(0, 6, (30, 6)))
SETS: dict[str, ActionSet] = {
    "transport": PAPER,
    "wide transport": Transport([3, 2], [1, 1, 2, 1]),
    "slack transport": Transport([2, 3, 2], [3, 2], slack=True),
    "surplus transport": Transport([2, 3, 2], [3, 2], surplus=True),
    "free arcs": FREE_ARCS,
    "at most": Budget(4, [2, 1, 3, 1], at_most=True),
    "explicit": CHOICES,
    "explicit, forced and empty arms": Explicit([[1, 2, 0, 3], [4, 2, 0, 1], [2, 2, 0, 0]]),
}
sets = pytest.mark.parametrize("name", SETS)


def weights(*parts: float, trials: int = 1) -> Regulariser:
    return Regulariser(*(np.full(trials, weight) for weight in parts))


def slow_twin(
    actions: ActionSet, costs: FloatArray, beta: FloatArray, phi: FloatArray
) -> FloatArray:
    """Minimise over the weights of all actions by cvxpy and Clarabel; phi is (d, 4)."""
    rows = actions.enumerate()
    n = actions.n.astype(float)
    free = np.flatnonzero(rows.min(axis=0) < n)
    mixture = cp.Variable(len(rows), nonneg=True)
    x = rows[:, free].T @ mixture
    u = cp.multiply(x, 1 / n[free])
    barrier, entropy, root, shannon = (beta * n * phi.T * np.ones((4, 1)))[:, free]
    objective = costs[free] @ x + entropy @ (u - cp.entr(1 - u)) - root @ cp.sqrt(u)
    if barrier.any():
        objective += barrier @ (u - 1 - cp.log(u))
    if shannon.any():
        objective += shannon @ (1 - u - cp.entr(u))
    cp.Problem(cp.Minimize(objective), [cp.sum(mixture) == 1]).solve(solver=cp.CLARABEL)
    answer = n.copy()
    answer[free] = np.asarray(x.value)
    return answer


@sets
@pytest.mark.parametrize("parts", [(0.0, 1.0, 1.0), (0.0, 0.3, 1.0), (1.0, 9.0, 5.0)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_step_equals_cvxpy(name: str, parts: tuple[float, float, float], scale: float) -> None:
    actions, rng = SETS[name], np.random.default_rng(0)
    costs, beta = scale * rng.normal(size=(1, actions.d)), 1 + rng.random((1, actions.d))
    hull = actions.hull
    point = hull.minimise(costs, beta, weights(*parts), hull.start(1))
    twin = slow_twin(actions, costs[0], beta[0], weights(*parts).phi[0])
    # Clarabel stops at a relative gap of 1e-8, so x is right to about its square root
    assert np.allclose(point["x"][0], twin, atol=2e-4 * actions.n.max())
    assert optimality_gap(actions, costs, beta, weights(*parts), point).max() < 1e-11


@sets
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_weights_of_each_arm_and_shannon_equal_cvxpy(name: str, scale: float) -> None:
    actions, rng = SETS[name], np.random.default_rng(1)
    shape = (2, actions.d)
    costs, beta = scale * rng.normal(size=shape), np.ones(shape)
    parts = Regulariser(
        barrier=0.1 + rng.random(shape),
        entropy=np.array([0.3, 2.0]),
        root=rng.random(shape),
        shannon=0.5 + rng.random(shape),
    )
    point = actions.hull.minimise(costs, beta, parts, actions.hull.start(2))
    assert optimality_gap(actions, costs, beta, parts, point).max() < 1e-11
    for k, phi in enumerate(parts.phi):
        twin = slow_twin(actions, costs[k], beta[k], phi)
        assert np.allclose(point["x"][k], twin, atol=2e-4 * actions.n.max())


@st.composite
def any_sets(draw: st.DrawFn) -> ActionSet:
    """Draw one set for each of the three kernels."""
    kind = draw(st.sampled_from(["transport", "network", "explicit"]))
    if kind != "transport":
        return draw(networks() if kind == "network" else explicits())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    plans = random_transport(rng, int(rng.integers(2, 8)), int(rng.integers(2, 8)), 20)
    unit = draw(st.sampled_from([1, 1000, 10**8]))
    return Transport(plans.supply * unit, plans.demand * unit)


@pytest.mark.slow
@given(
    actions=any_sets(),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1.0, 100.0, 1e4, 1e5]),
    entropy=st.sampled_from([0.3, 1.0, 9.0]),
)
def test_gap_is_tiny_at_any_scale(
    actions: ActionSet, seed: int, scale: float, entropy: float
) -> None:
    rng = np.random.default_rng(seed)
    costs, beta = scale * rng.normal(size=(1, actions.d)), 0.5 + 5 * rng.random((1, actions.d))
    parts = weights(0.0, entropy, 1.0)
    point = actions.hull.minimise(costs, beta, parts, actions.hull.start(1))
    assert (point["x"][0][actions.n > 0] > 0).all()
    assert optimality_gap(actions, costs, beta, parts, point).max() < 1e-10


@pytest.mark.slow
@given(actions=any_sets(), seed=st.integers(0, 2**32), scale=st.sampled_from([1.0, 100.0, 1e4]))
def test_tiny_entropies_of_many_units(actions: ActionSet, seed: int, scale: float) -> None:
    """Weights such as those of GenAdaINF: a barrier of a unit or so, however large n_i is."""
    rng = np.random.default_rng(seed)
    costs, beta = scale * rng.normal(size=(1, actions.d)), np.ones((1, actions.d))
    w = rng.uniform(0.1, 2.0, (1, actions.d)) / np.maximum(actions.n, 1)
    v = np.array([0.01])
    parts = Regulariser(barrier=w, entropy=v, shannon=v)
    point = actions.hull.minimise(costs, beta, parts, actions.hull.start(1))
    assert (point["x"][0][actions.n > 0] > 0).all()
    assert optimality_gap(actions, costs, beta, parts, point).max() < 1e-10


@pytest.mark.slow
@sets
def test_warm_steps_stay_optimal(name: str) -> None:
    """400 rounds of Hybrid; the gap is that of the objective in its docstring."""
    actions, rng, trials = SETS[name], np.random.default_rng(3), 5
    policy, parts = Hybrid(), weights(0.0, 1.0, 1.0, trials=trials)
    state, means = policy.start(actions, None, trials), rng.random(actions.d)
    for _ in range(400):
        play = policy.choose(actions, state, rng)
        beta = np.sqrt(state["t"])[:, None] / 2 * np.ones(actions.d)
        costs = actions.sign * state["L"] - beta
        assert optimality_gap(actions, costs, beta, parts, play.memo).max() < 1e-10
        assert set(play.memo) == {"x", "rest", "q"}
        losses = play.action * (rng.random(actions.d) < means).astype(float)
        policy.update(actions, state, play, Feedback(play.action, losses), rng)


@sets
def test_a_root_of_nothing_is_no_root(name: str) -> None:
    actions, rng = SETS[name], np.random.default_rng(0)
    hull, one = actions.hull, np.ones(1)
    costs, beta = rng.normal(size=(1, actions.d)), np.ones((1, actions.d))
    without = hull.minimise(costs, beta, Regulariser(barrier=one, entropy=one), hull.start(1))
    for root, same in [(0.0, True), (1e-12, True), (1.0, False)]:
        point = hull.minimise(costs, beta, weights(1.0, 1.0, root), hull.start(1))
        assert np.allclose(point["x"], without["x"], rtol=1e-9, atol=0) == same
        gap = optimality_gap(actions, costs, beta, weights(1.0, 1.0, root), without)
        assert (gap.max() < 1e-10) == same


def test_few_digits_are_left_for_tiny_arms() -> None:
    # rounding on full lanes is a part 1e-4 of the flow of others: no step can be small
    plans = Transport([3, 1, 16], [3, 2, 15])
    parts = weights(0.0, 0.3, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        costs, beta = 1e5 * rng.normal(size=(1, plans.d)), np.full((1, plans.d), 0.5)
        point = plans.hull.minimise(costs, beta, parts, plans.hull.start(1))
        assert optimality_gap(plans, costs, beta, parts, point).max() < 1e-10


CONTRACT: list[ActionSet] = [
    PAPER,
    Transport([2, 0, 3], [0, 4, 1]),
    Transport([1], [1]),
    M_SET,
    Budget(4, [2, 1, 3, 1], at_most=True),
    Knapsack([3, 4, 5], 12, [2, 2, 1]),
    Explicit([[0, 3, 1], [2, 0, 1], [1, 2, 0]], sense="max"),
]


@pytest.mark.parametrize("actions", CONTRACT, ids=repr)
@pytest.mark.parametrize("policy", [Hybrid(), Hybrid(gamma=0.3), LBINF(), LBINF(eta=0.1)], ids=repr)
@pytest.mark.parametrize("wrap", [lambda policy: policy, Duplicated], ids=["native", "duplicated"])
def test_contract(wrap: type[Duplicated], policy: Policy, actions: ActionSet) -> None:
    check_policy(wrap(policy), actions)


def play_some(policy: Policy, actions: ActionSet, rounds: int) -> tuple[list[Play], list[Feedback]]:
    rng = np.random.default_rng(0)
    state = policy.start(actions, 1000, 1)
    plays, told = [], []
    for _ in range(rounds):
        play = policy.choose(actions, state, rng)
        seen = Feedback(play.action, play.action * rng.random(actions.d))
        policy.update(actions, state, play, seen, rng)
        plays.append(play)
        told.append(seen)
    return plays, told


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("gamma", [1.0, 0.4])
def test_hybrid_follows_the_formulas_over_whole_histories(sense: str, gamma: float) -> None:
    """On a budget all arms share one multiplier: the gradient of the objective is constant."""
    actions = Budget(6, [1, 2, 4, 3, 1], sense=sense)
    sign, q = (1, 0) if sense == "min" else (-1, 1)
    plays, told = play_some(Hybrid(gamma=gamma), actions, 40)
    L = np.zeros(actions.d)
    for t, (play, seen) in enumerate(zip(plays, told, strict=True), start=1):
        x = play.memo["x"][0]
        u, v = x / actions.n, play.memo["rest"][0] / actions.n
        phi1 = -gamma * (1 + np.log(v)) - 1 / (2 * np.sqrt(u))
        gradient = sign * L + math.sqrt(t) / 2 * phi1
        assert np.ptp(gradient) < 1e-8 * (1 + np.abs(L).max())
        estimate = [
            q + a / at * (total / max(a, 1) - q)
            for a, at, total in zip(seen.count[0], x, seen.total[0], strict=True)
        ]
        assert min(sign * value for value in estimate) >= min(sign, 0)
        L += estimate


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("policy", [Hybrid(), LBINF()], ids=repr)
def test_estimates_are_unbiased(policy: Policy, sense: str) -> None:
    """Mean of the estimates over draws equals the losses: level 1e-6 by the sample's own error."""
    draws, rng = 40_000, np.random.default_rng(2)
    actions = Budget(6, [1, 2, 4, 3, 1], sense=sense)
    state = policy.start(actions, 1000, draws)
    state["L"] += rng.random(actions.d)
    before, losses = state["L"].copy(), rng.random(actions.d)
    play = policy.choose(actions, state, rng)
    policy.update(actions, state, play, Feedback(play.action, play.action * losses), rng)
    estimate = state["L"] - before
    error = estimate.std(axis=0) / math.sqrt(draws)
    assert (np.abs(estimate.mean(axis=0) - losses) < 5.3 * error).all()


@pytest.mark.parametrize("sense", ["min", "max"])
def test_lbinf_follows_the_formulas_over_whole_histories(sense: str) -> None:
    actions = Budget(6, [1, 2, 4, 3, 1], sense=sense)
    sign, g, n = (1 if sense == "min" else -1), math.log(1000), actions.n
    plays, told = play_some(LBINF(eta=0.2), actions, 40)
    L, q, beta2 = np.zeros(actions.d), np.full(actions.d, 0.25), np.full(actions.d, 2.0)
    for play, seen in zip(plays, told, strict=True):
        a, x = seen.count[0], play.memo["x"][0]
        u, v = x / n, play.memo["rest"][0] / n
        gradient = sign * (q + L) + np.sqrt(beta2) * (-1 / u - g * (1 + np.log(v)))
        assert np.ptp(gradient) < 1e-8 * (1 + np.abs(L).max())
        for i in range(actions.d):
            L[i] += q[i]
            if a[i] >= 1:
                error = seen.total[0, i] / a[i] - q[i]
                L[i] += a[i] / x[i] * error
                beta2[i] += (a[i] / n[i] * error) ** 2 * min(1, 2 * v[i] / (u[i] ** 2 * g)) / g
                q[i] += 0.2 * error


@pytest.mark.parametrize("policy", [Hybrid(), LBINF()], ids=repr)
def test_equal_problems_on_any_scale(policy: Policy) -> None:
    """Supplies times 10^9: the same fractions x / n after the same average losses."""
    k, points = np.linspace(0.1, 0.9, PAPER.d), []
    for scale in (10, 10**10):
        actions = Transport(PAPER.supply * scale, PAPER.demand * scale)
        rng, state = np.random.default_rng(0), policy.start(actions, 1000, 1)
        for _ in range(5):
            play = policy.choose(actions, state, rng)
            # feedback of a plan in proportion to x, so that both problems see the same
            x = play.memo["x"]
            policy.update(actions, state, Play(x, play.memo), Feedback(x, x * k), rng)
        points.append(policy.choose(actions, state, rng).memo["x"] / actions.n)
    assert np.allclose(points[0], points[1], rtol=1e-9)


def gap_means(d: int, m: int, g: float) -> FloatArray:
    return np.where(np.arange(d) < m, (1 - g) / 2, (1 + g) / 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "m", "means", "regret", "error"),
    [
        # programs of the authors, whose gamma at m = d / 2 is 1 / sqrt(log m); 30 and 3 runs
        (Hybrid(gamma=math.log(2) ** -0.5), 2, gap_means(4, 2, 0.25), 67.0, 22 / 30**0.5),
        (Hybrid(gamma=math.log(5) ** -0.5), 5, gap_means(10, 5, 0.125), 286.0, 57 / 30**0.5),
        (LBINF(), 2, np.array([0.5, 0.5, 0.9, 0.9, 0.9]), 56.0, 6.2 / 3**0.5),
    ],
    ids=["Hybrid, 2 of 4", "Hybrid, 5 of 10", "LBINF, 2 of 5"],
)
def test_regret_on_m_sets(
    policy: Policy, m: int, means: FloatArray, regret: float, error: float
) -> None:
    """Within 4 combined standard errors: a right program fails for one seed in 16,000."""
    result = simulate(
        Budget(m, np.ones(len(means))),
        Stochastic(Bernoulli(means)),
        {"policy": policy},
        horizon=10_000,
        trials=100,
        seed=0,
        record=1,
    )
    final = result.final("policy")
    assert abs(final.mean() - regret) < 4 * np.hypot(final.std(ddof=1) / 10, error)


@pytest.mark.parametrize("gamma", [0.0, -1.0, math.nan, math.inf, "1", True])
def test_hybrid_refuses(gamma: float) -> None:
    with pytest.raises(InvalidInput, match="gamma: expected a positive weight"):
        Hybrid(gamma=gamma)


def test_hybrid_needs_no_horizon() -> None:
    state = Hybrid().start(PAPER, None, 1)
    play = Hybrid().choose(PAPER, state, np.random.default_rng(0))
    assert PAPER.contains(play.action).all()


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"eta": 0.5}, "eta: expected a step"), ({"horizon": 0}, "horizon: expected a whole number")],
)
def test_lbinf_refuses(settings: dict[str, float], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        LBINF(**settings)  # type: ignore[arg-type]


def test_lbinf_has_one_prediction_and_refuses_short_horizons() -> None:
    with pytest.raises(TypeError, match="prediction"):
        LBINF(prediction="ls")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match=r"at least max\(55, d\) = 55 rounds, got 54"):
        LBINF().start(PAPER, 54, 1)
    with pytest.raises(InvalidInput, match="horizon: expected a number of rounds, got none"):
        LBINF().start(PAPER, None, 1)
    assert LBINF(any_horizon=True).start(PAPER, 54, 1)["beta2"].min() == 2.0


LEADERS: list[Policy] = [GenLBINFV(), GenLBINFV(prediction="gd"), LBINF(), Hybrid()]


def test_no_leader_is_a_child_of_another() -> None:
    assert not issubclass(LBINF, GenLBINFV)
    with pytest.raises(InvalidInput, match="policy: expected a GenLBINFV"):
        realised_bound(PAPER, LBINF(), {"beta2": np.full((1, PAPER.d), 2.0)}, 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [*LEADERS, LBINF(0.1, 99, any_horizon=True)], ids=repr)
def test_settings_make_the_round_trip(policy: Policy) -> None:
    classes = classes_of(multiplay.policies)
    assert Builder(classes).build("policy", describe(policy)) == policy


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("policy", LEADERS, ids=repr)
@pytest.mark.parametrize("wrap", [lambda policy: policy, Duplicated], ids=["native", "duplicated"])
def test_a_play_carries_what_the_algorithm_needs_and_no_solver(
    wrap: type[Duplicated], policy: Policy, sense: str
) -> None:
    for actions in (
        Transport([1, 4, 5], [4, 6], sense=sense),
        Explicit([[0, 3], [2, 0], [1, 2]], sense=sense),
    ):
        inner = actions.duplicate().actions if wrap is Duplicated else actions
        played, rng = wrap(policy), np.random.default_rng(0)
        play = played.choose(actions, played.start(actions, 1000, 2), rng)
        assert set(play.memo) - {"copies"} == {"x", "rest", "q"}
        assert {array.shape for array in play.memo.values()} == {(2, inner.d)}
        assert set(play.cache) == set(inner.hull.point)


@sets
@pytest.mark.parametrize("policy", LEADERS, ids=repr)
def test_without_caches_x_is_the_same_but_for_rounding(policy: Policy, name: str) -> None:
    """One history of plays, for a state that keeps its warm start and one that never has any."""
    actions, trials = SETS[name], 3
    rng, means = np.random.default_rng(3), np.linspace(0.1, 0.9, actions.d)
    state = policy.start(actions, 1000, trials)
    bare = policy.start(actions, 1000, trials)
    for _ in range(60):
        play, cold = (policy.choose(actions, one, rng) for one in (state, bare))
        assert np.allclose(cold.memo["x"], play.memo["x"], rtol=1e-6, atol=0)
        told = Feedback(play.action, rng.binomial(play.action, means).astype(float))
        policy.update(actions, state, play, told, rng)
        policy.update(actions, bare, Play(play.action, play.memo), told, rng)
        for entry in play.cache:
            bare.pop(entry, None)
    for entry in bare:
        assert (bare[entry] == state[entry]).all()


@pytest.mark.parametrize("policy", LEADERS, ids=repr)
@pytest.mark.parametrize("wrap", [lambda policy: policy, Duplicated], ids=["native", "duplicated"])
def test_a_late_play_brings_no_old_warm_start_back(wrap: type[Duplicated], policy: Policy) -> None:
    """Once its cache is dropped, a play leaves the warm start of the state alone."""
    played, rng = wrap(policy), np.random.default_rng(0)
    state = played.start(PAPER, 1000, 1)
    early = played.choose(PAPER, state, rng)
    early = Play(early.action, early.memo)
    for _ in range(10):
        play = played.choose(PAPER, state, rng)
        played.update(PAPER, state, play, units(PAPER, play.action, rng), rng)
    warm = {name: state[name].copy() for name in play.cache}
    assert all((warm[name] == play.cache[name]).all() for name in warm)
    assert not np.allclose(warm["x"], early.memo["x"], rtol=1e-3)
    played.update(PAPER, state, early, units(PAPER, early.action, rng), rng)
    assert all((state[name] == warm[name]).all() for name in warm)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_plays_of_hybrid_that_were_saved_without_q_teach_the_same(sense: str) -> None:
    actions, rng = Budget(6, [1, 2, 4, 3, 1], sense=sense), np.random.default_rng(0)
    new, old = (Hybrid().start(actions, None, 2) for _ in range(2))
    play = Hybrid().choose(actions, new, rng)
    point = dict(play.cache)
    told = Feedback(play.action, play.action * rng.random(actions.d))
    Hybrid().update(actions, new, play, told, rng)
    Hybrid().update(actions, old, Play(play.action, point), told, rng)
    assert (new["L"] == old["L"]).all()


def units(actions: Transport, action: IntArray, rng: np.random.Generator) -> Feedback:
    """Return random losses of every unit, for one trial."""
    first = np.append(0, np.cumsum(actions.n))
    losses = rng.random((1, first[-1]))
    total = [losses[0, f : f + a].sum() for f, a in zip(first[:-1], action[0], strict=True)]
    return Feedback(action, np.array([total]), losses, first)
