"""Policies against the formulas of the paper, computed here in another way, and the contract."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from refusal import refused

import multiplay.policies
from multiplay import (
    Bernoulli,
    Duplicated,
    Feedback,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Play,
    Policy,
    Stochastic,
    Transport,
    simulate,
)
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import pack, unpack
from multiplay.hull import Regulariser
from multiplay.testing import check_policy, optimality_gap
from multiplay.types import Arrays, FloatArray

PAPER = Transport([1, 4, 5], [4, 6])
SETS = [
    PAPER,
    Transport([1, 3, 4], [1, 1, 2, 4]),
    Transport([3], [1, 2]),
    Transport([1], [1]),
    Transport([2, 0, 3], [0, 4, 1]),
    Transport([1, 1, 1], [1, 1, 1]),
]
POLICIES: list[Policy] = [
    GenCTS(),
    GenLBINFV(),
    GenLBINFV(prediction="gd", epsilon=0.5, eta=0.1),
    GenLBINFV(anytime=True),
    Duplicated(GenCTS()),
    Duplicated(GenLBINFV()),
    Duplicated(GenLBINFV(prediction="gd")),
    Duplicated(GenLBINFV(anytime=True)),
]


@pytest.mark.parametrize("actions", SETS, ids=repr)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_contract(policy: Policy, actions: Transport) -> None:
    check_policy(policy, actions)


def feedback(actions: Transport, action: np.ndarray, rng: np.random.Generator) -> Feedback:
    """Return random losses for one trial."""
    first = np.concatenate([[0], np.cumsum(actions.n)])
    units = rng.random((1, first[-1]))
    total = [units[0, f : f + a].sum() for f, a in zip(first, action[0], strict=False)]
    return Feedback(action, np.array([total]), units, first)


def test_gencts_counts_every_unit() -> None:
    policy, rng = GenCTS(), np.random.default_rng(0)
    state = policy.start(PAPER, None, 1)
    played = np.zeros(PAPER.d)
    for _ in range(50):
        play = policy.choose(PAPER, state, rng)
        policy.update(PAPER, state, play, feedback(PAPER, play.action, rng), rng)
        played += play.action[0]
    assert (state["p"] + state["q"] - 2 == played).all()


def test_gencts_flips_coins_of_the_losses() -> None:
    policy, rng = GenCTS(), np.random.default_rng(0)
    state = policy.start(PAPER, None, 1)
    action = PAPER.argmin(np.zeros((1, PAPER.d)))
    certain = np.array([[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]])
    first = np.concatenate([[0], np.cumsum(PAPER.n)])
    units = np.repeat(certain, PAPER.n, axis=1)
    policy.update(
        PAPER,
        state,
        Play(action),
        Feedback(action, action * certain, units, first),
        rng,
    )
    assert (state["p"] - 1 == action * certain).all()
    assert (state["q"] - 1 == action * (1 - certain)).all()


@pytest.mark.parametrize(
    "policy",
    [
        GenLBINFV(epsilon=0.3),
        GenLBINFV(prediction="gd", eta=0.2),
        GenLBINFV(epsilon=0.3, anytime=True),
        GenLBINFV(prediction="gd", epsilon=0.1, anytime=True),
        GenLBINFV(epsilon=[0.1, 0.2, 0.3, 0.4, 0.5, 0.2]),
        GenLBINFV(epsilon=[0.1, 0.2, 0.3, 0.4, 0.5, 0.2], anytime=True),
    ],
)
def test_genlbinfv_follows_the_formulas_over_whole_histories(policy: GenLBINFV) -> None:
    """Every quantity from its sum over all rounds, not from its recursion."""
    T, rng = 100, np.random.default_rng(0)
    epsilon = np.array(0.2 if policy.epsilon is None else policy.epsilon)
    n = PAPER.n
    state = policy.start(PAPER, T, 1)
    q, estimates, alphas = [np.full(PAPER.d, 0.5)], [], []
    samples: list[list[float]] = [[] for _ in range(PAPER.d)]
    for t in range(1, 71):
        g = gamma(t, epsilon) if policy.anytime else math.log(T)
        play = policy.choose(PAPER, state, rng)
        seen = feedback(PAPER, play.action, rng)
        policy.update(PAPER, state, play, seen, rng)
        a, x, u = play.action[0], play.memo["x"][0], play.memo["x"][0] / n
        estimate, alpha, prediction = q[-1].copy(), np.zeros(PAPER.d), q[-1].copy()
        for i in range(PAPER.d):
            assert seen.units is not None
            assert seen.first is not None
            losses = seen.units[0, seen.first[i] : seen.first[i] + a[i]]
            samples[i] += losses.tolist()
            if a[i] >= 1:
                k, share = float(losses.mean()), float(a[i] / n[i])
                error, bound = k - float(q[-1][i]), min(1, 2 * (1 - u[i]) / (u[i] ** 2 * g))
                estimate[i] += a[i] / x[i] * error
                alpha[i] = share**2 * error**2 * bound / g
                if policy.prediction == "gd":
                    prediction[i] = (1 - policy.eta) * q[-1][i] + policy.eta * k
            if policy.prediction == "ls":
                prediction[i] = (0.5 + sum(samples[i])) / (1 + len(samples[i]))
        q.append(prediction)
        estimates.append(estimate)
        alphas.append(alpha)
    assert np.allclose(state["L"][0], np.sum(estimates, axis=0), rtol=1e-12)
    assert np.allclose(state["q"][0], q[-1], rtol=1e-12)
    assert np.allclose(state["beta2"][0], (1 + epsilon) ** 2 + np.sum(alphas, axis=0))


def gamma(t: int, epsilon: FloatArray | float) -> float:
    """Return what replaces log T in round t where T is not known."""
    return max(4, 3 / 2 + np.max((1 + epsilon) / (3 * epsilon)), math.log(t))


def test_epsilon_by_arm() -> None:
    """Equal fractions are the same bits as a number; too many or too few are refused."""
    world = Stochastic(Bernoulli([0.1, 0.4, 0.2, 0.3, 0.3, 0.2]))
    policies = {"one": GenLBINFV(), "each": GenLBINFV(epsilon=np.full(6, 0.2).tolist())}
    result = simulate(PAPER, world, policies, horizon=200, trials=3)
    assert (result.final("one") == result.final("each")).all()
    policy = GenLBINFV(epsilon=[0.1] * 6)
    assert policy == GenLBINFV(epsilon=(0.1,) * 6)
    header, arrays = pack(policy)
    assert unpack(header, arrays, Builder(classes_of(multiplay.policies))) == policy
    for fractions in ([0.1] * 5, [0.1]):
        with refused("epsilon"):
            GenLBINFV(epsilon=fractions).start(PAPER, 100, 1)


@pytest.mark.parametrize(
    ("t", "epsilon", "weight"),
    [
        (1, 0.2, 4.0),
        (54, 0.2, 4.0),
        (55, 0.2, 4.007333185232471),
        (1000, 0.2, 6.907755278982137),
        (1, 0.1, 1.5 + 11 / 3),
        (176, 0.1, 5.170483995038151),
    ],
)
def test_without_a_horizon_the_step_has_the_weight_of_its_round(
    t: int, epsilon: float, weight: float
) -> None:
    """Numbers by hand; the oracle certifies the step."""
    policy, rng = GenLBINFV(epsilon=epsilon), np.random.default_rng(t)
    state = policy.start(PAPER, None, 2)
    assert "g" not in state
    state["t"][:] = t
    state["L"] += 10 * rng.random((2, PAPER.d))
    state["beta2"] += rng.random((2, PAPER.d))
    play = policy.choose(PAPER, state, rng)
    assert np.allclose(play.memo["g"], weight, rtol=1e-14)
    phi = Regulariser(barrier=np.ones(2), entropy=np.full(2, weight))
    costs, beta = state["q"] + state["L"], np.sqrt(state["beta2"])
    assert optimality_gap(PAPER, costs, beta, phi, play.memo).max() < 1e-10
    other = Regulariser(barrier=np.ones(2), entropy=np.full(2, weight + 0.1))
    assert optimality_gap(PAPER, costs, beta, other, play.memo).max() > 1e-6


def test_who_knows_the_horizon_is_asked_first() -> None:
    known = [
        GenLBINFV().start(PAPER, 100, 2),
        GenLBINFV(horizon=100).start(PAPER, None, 2),
        GenLBINFV(horizon=100).start(PAPER, 1000, 2),
    ]
    for state in known:
        assert (state["g"] == math.log(100)).all()
        assert "t" not in state
    play = GenLBINFV().choose(PAPER, known[0], np.random.default_rng(0))
    assert play.memo.keys() == {"x", "rest", "q"}
    for T in (None, 1, 100):  # and there is none that is too short
        assert (GenLBINFV(anytime=True).start(PAPER, T, 2)["t"] == 1).all()
    with refused("anytime"):
        GenLBINFV(anytime=True, horizon=100)
    with refused("anytime"):
        GenLBINFV(anytime="yes")  # type: ignore[arg-type]


def test_genlbinfv_estimates_are_unbiased() -> None:
    """Mean of lhat over draws equals the losses: level 1e-6 by the sample's own error."""
    draws, rng = 40_000, np.random.default_rng(2)
    policy = GenLBINFV()
    state = policy.start(PAPER, 1000, draws)
    state["L"] += 8 * rng.random(PAPER.d)
    before = state["L"].copy()
    losses = rng.random(PAPER.d)
    play = policy.choose(PAPER, state, rng)
    policy.update(PAPER, state, play, Feedback(play.action, play.action * losses), rng)
    estimate = state["L"] - before
    error = estimate.std(axis=0) / math.sqrt(draws)
    assert (np.abs(estimate.mean(axis=0) - losses) < 5.3 * error).all()


def test_late_feedback_is_judged_by_the_memo_of_its_own_play() -> None:
    policy, rng = GenLBINFV(), np.random.default_rng(0)
    state = policy.start(PAPER, 100, 1)
    early = policy.choose(PAPER, state, rng)
    for _ in range(30):
        play = policy.choose(PAPER, state, rng)
        policy.update(PAPER, state, play, feedback(PAPER, play.action, rng), rng)
    before = state["L"].copy()
    k = 0.9
    policy.update(PAPER, state, early, Feedback(early.action, early.action * np.full(6, k)), rng)
    a, x = early.action, early.memo["x"]
    assert np.allclose(state["L"] - before, 0.5 + np.where(a >= 1, a / x * (k - 0.5), 0))


def test_late_feedback_has_the_weight_of_its_own_round() -> None:
    """g was 4 in round 1, and would be log 1000 when its losses come."""
    policy, rng = GenLBINFV(), np.random.default_rng(0)
    state = policy.start(PAPER, None, 1)
    early = policy.choose(PAPER, state, rng)
    state["t"][:] = 1000
    before, losses = state["beta2"].copy(), np.full((1, PAPER.d), 0.9)
    policy.update(PAPER, state, early, Feedback(early.action, early.action * losses), rng)
    u, played = early.memo["x"] / PAPER.n, early.action / PAPER.n
    alpha = (played * 0.4) ** 2 * np.minimum(1, 2 * (1 - u) / (u**2 * 4)) / 4
    assert np.allclose(state["beta2"] - before, alpha)
    assert state["t"] == 1001


@dataclass(frozen=True)
class Remember(Policy):
    """A policy that plays a fixed action and writes down what it is told."""

    def start(self, actions: Transport, horizon: int | None, trials: int) -> Arrays:  # type: ignore[override]
        return {"losses": np.zeros((trials, actions.d))}

    def choose(self, actions: Transport, state: Arrays, rng: object) -> Play:  # type: ignore[override]
        return Play(actions.argmin(np.zeros((1, actions.d))))

    def update(  # type: ignore[override]
        self, actions: Transport, state: Arrays, play: Play, feedback: Feedback, rng: object
    ) -> None:
        state["losses"] += feedback.total


def test_duplicated_hands_the_samples_to_the_played_copies_in_order() -> None:
    policy, rng = Duplicated(Remember()), np.random.default_rng(0)
    state = policy.start(PAPER, None, 1)
    play = policy.choose(PAPER, state, rng)
    seen = feedback(PAPER, play.action, rng)
    policy.update(PAPER, state, play, seen, rng)
    copies, owner = PAPER.duplicate()
    chosen = play.memo["copies"][0]
    assert seen.units is not None
    assert seen.first is not None
    for arm in range(PAPER.d):
        of_copies = state["losses"][0, (owner == arm) & (chosen > 0)]
        assert (of_copies == seen.units[0, seen.first[arm] :][: play.action[0, arm]]).all()
    assert (state["losses"][0, chosen == 0] == 0).all()
    assert copies.M == PAPER.M


def test_duplicated_refuses_totals() -> None:
    policy, rng = Duplicated(GenCTS()), np.random.default_rng(0)
    state = policy.start(PAPER, None, 1)
    play = policy.choose(PAPER, state, rng)
    with pytest.raises(InvalidInput, match="the loss of every unit"):
        policy.update(PAPER, state, play, Feedback(play.action, play.action / 2), rng)


def test_equal_problems_on_any_scale() -> None:
    """Supplies times 10^9: the same fractions x / n after the same average losses."""
    small, large = (Transport(PAPER.supply * s, PAPER.demand * s) for s in (10, 10**10))
    policy, k = GenLBINFV(prediction="gd"), np.linspace(0.1, 0.9, PAPER.d)
    points = []
    for actions in (small, large):
        rng = np.random.default_rng(0)
        state = policy.start(actions, 1000, 1)
        for _ in range(5):
            play = policy.choose(actions, state, rng)
            # feedback of a plan in proportion to x, so that both problems see the same
            even = Play(play.memo["x"], play.memo)
            told = Feedback(play.memo["x"], play.memo["x"] * k)
            policy.update(actions, state, even, told, rng)
        points.append(policy.choose(actions, state, rng).memo["x"] / actions.n)
    assert np.allclose(points[0], points[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"prediction": "lms"}, "prediction: expected 'ls'"),
        ({"epsilon": 0.0}, "epsilon: expected a fraction"),
        ({"epsilon": 0.6}, "epsilon: expected a fraction"),
        ({"epsilon": math.nan}, "epsilon: expected a fraction"),
        ({"epsilon": [0.1, 0.6]}, "epsilon: expected a fraction"),
        ({"epsilon": []}, "epsilon: expected a fraction"),
        ({"epsilon": "0.1"}, "epsilon: expected a fraction"),
        ({"eta": 0.5}, "eta: expected a step"),
        ({"eta": -1}, "eta: expected a step"),
        ({"horizon": 0}, "horizon: expected a whole number"),
        ({"horizon": 99.5}, "horizon: expected a whole number"),
    ],
)
def test_bad_settings(settings: dict[str, float], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        replace(GenLBINFV(), **settings)  # type: ignore[arg-type]


def test_short_horizons_are_refused_unless_asked_for() -> None:
    with pytest.raises(InvalidInput, match=r"at least max\(55, d\) = 55 rounds, got 54"):
        GenLBINFV().start(PAPER, 54, 1)
    with pytest.raises(InvalidInput, match="= 100 rounds"):
        GenLBINFV().start(Transport([5] * 10, [5] * 10), 99, 1)
    short = GenLBINFV(any_horizon=True)
    for T in (1, 2, 54):
        state = short.start(PAPER, T, 1)
        play = short.choose(PAPER, state, np.random.default_rng(0))
        assert PAPER.contains(play.action).all()


def test_duplicated_wants_a_policy() -> None:
    with pytest.raises(InvalidInput, match="policy: expected a Policy"):
        Duplicated("GenCTS")  # type: ignore[arg-type]
