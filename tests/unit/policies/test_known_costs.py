"""Known costs in policies, simulations and bounds, against lists of all actions."""

from typing import Any

import numpy as np
import pytest
from facilities import facility, listed

from multiplay import (
    ESCB,
    FPLIX,
    OLSUCBC,
    Adversarial,
    BestOfThreeWorlds,
    Explicit,
    ExplorationByOptimisation,
    GenAdaINF,
    GenCTS,
    InvalidInput,
    Learner,
    LinTS,
    LinUCB,
    Model,
    ScaledScribble,
    Streams,
    simulate,
)
from multiplay.feedback import Feedback
from multiplay.policies import Policy
from multiplay.policies.fplix import exponential
from multiplay.policies.regression import estimate
from multiplay.theory import Gaussian, lower_bound

OPENING = [0.6, 0.5, 1.2]
ARMS = [0.05, 0.2, 0.0]


def with_arm_costs(sense: str = "min") -> Model:
    """Return depots that cost to open, with known costs of their units as well."""
    model = facility(OPENING, sense=sense)
    columns = model.columns | {"cost": [*ARMS, *OPENING]}
    return facility(OPENING, sense=sense, columns=columns)


def known_of(sense: str) -> tuple[Any, Any]:
    """Return all actions, in the order of the model's list, and all their known costs."""
    actions, opened = listed(OPENING)
    heights = opened if sense == "min" else np.full(len(actions), sum(OPENING))
    return actions, actions @ np.array(ARMS) + heights


def told(policy: Policy, actions: Model, rounds: int, total_only: bool) -> Any:
    """Return the state of a policy after some rounds, one trial, and a stream."""
    rng, chance = Streams.spawn(3, 0, range(1)), np.random.default_rng(8)
    state = policy.start(actions, None, 1)
    for _ in range(rounds):
        play = policy.choose(actions, state, rng)
        losses = chance.uniform(size=play.action.shape) * play.action
        feedback = Feedback(play.action, losses)
        policy.update(actions, state, play, feedback.round_only() if total_only else feedback, rng)
    return state, rng


@pytest.mark.parametrize("sense", ["min", "max"])
def test_known_costs_are_added_to_the_index_of_each_action(
    sense: str,
) -> None:
    model, (actions, known) = with_arm_costs(sense), known_of(sense)
    everything = model.enumerate()
    order = [np.flatnonzero((actions == a).all(axis=1))[0] for a in everything]
    bare = Explicit(everything.tolist(), sense=sense)
    policies: list[tuple[ESCB | LinUCB | OLSUCBC, bool]]
    policies = [(ESCB(), False), (LinUCB(), True), (OLSUCBC(), False)]
    for policy, total_only in policies:
        state, rng = told(policy, model, 6, total_only)
        index = policy.indices(bare, state) + known[order]
        assert np.allclose(policy.indices(model, state), index)
        best = (model.sign * index[0]).argmin()
        chosen = policy.choose(model, state, rng).action[0]
        assert chosen.tolist() == everything[best].tolist()


@pytest.mark.parametrize("sense", ["min", "max"])
def test_lints_plays_the_best_action_of_its_draw_with_known_costs(sense: str) -> None:
    model, (actions, known), policy = with_arm_costs(sense), known_of(sense), LinTS(sigma=0.5)
    state, _ = told(policy, model, 10, True)
    for seed in range(6):
        rng, same = (Streams.spawn(seed, 0, range(1)) for _ in range(2))
        values = actions @ policy.draw(model, state, same)[0] + known
        chosen = policy.choose(model, state, rng).action[0]
        assert chosen.tolist() == actions[(model.sign * values).argmin()].tolist()
    fitted = estimate(model, state, np.zeros_like(state["z"]))[0]
    assert np.isfinite(fitted).all()


@pytest.mark.parametrize("sense", ["min", "max"])
def test_fplix_counts_known_costs_once_for_each_round(sense: str) -> None:
    model, (actions, known), policy = with_arm_costs(sense), known_of(sense), FPLIX(cap=5)
    state, _ = told(policy, model, 4, False)
    for seed in range(6):
        rng, same = (Streams.spawn(seed, 0, range(1)) for _ in range(2))
        eta, bonus = policy.rate(state)[0], exponential(same.random((1, 3)))[0]
        sums = actions @ state["L"][0] + state["t"][0] * known
        values = model.sign * eta * sums - actions @ bonus
        play = policy.choose(model, state, rng)
        assert play.action[0].tolist() == actions[values.argmin()].tolist()


def test_policies_that_cannot_use_known_costs_are_refused() -> None:
    for policy in (GenAdaINF(), ScaledScribble(horizon=100), BestOfThreeWorlds(horizon=100)):
        with pytest.raises(InvalidInput, match="linear objective"):
            Learner(facility(OPENING), policy)
    free = with_arm_costs()
    columns = free.columns | {"cost": [*ARMS, 0, 0, 0]}
    of_arms = facility(OPENING, columns=columns)
    for bandit in (ScaledScribble(horizon=100), ExplorationByOptimisation(horizon=100)):
        with pytest.raises(InvalidInput, match="without known costs of arms"):
            Learner(of_arms, bandit)


# ---------------------------------------------------------------- simulations


def test_regret_in_a_changing_regime_has_the_known_costs_of_the_best_fixed_action() -> None:
    """A table of losses, and a function that returns it: what was played, against the list."""
    model, (actions, known) = with_arm_costs(), known_of("min")
    rounds, played = 12, dict[int, list[int]]()
    table = (
        np.random.default_rng(6).uniform(0, 1, (rounds, 3)) * np.linspace(0.2, 1.0, rounds)[:, None]
    )

    def losses(t: int, past: Any) -> Any:
        played.update({s + 1: past[s, 0].tolist() for s in range(t - 1)})
        return table[t - 1]

    values = table @ actions.T + known
    best = values.sum(axis=0).argmin()
    for world in (Adversarial(losses), Adversarial(table)):
        result = simulate(model, world, {"": GenCTS()}, horizon=rounds, trials=1, record=rounds)
        curve = result.dataset["regret"].values.ravel()
        place = [np.flatnonzero((actions == played[t]).all(axis=1))[0] for t in range(1, rounds)]
        of_rounds = values[np.arange(rounds - 1), place] - values[: rounds - 1, best]
        assert curve[: rounds - 1] == pytest.approx(of_rounds.cumsum())
        assert result.dataset["realised"].values.ravel() == pytest.approx(curve)
        assert result.dataset["L_star"].values.ravel() == pytest.approx(values.sum(axis=0)[best])


# ---------------------------------------------------------------- the lower bound


def test_the_lower_bound_of_two_actions_with_known_costs_is_the_closed_form() -> None:
    """One unit from one of two depots: c = 2 variance / gap, the gap with the opening costs."""
    model = facility([0.3, 0.1], demand=1)
    bound = lower_bound(model, [0.2, 0.5], Gaussian(0.25))
    gap = (0.5 + 0.1) - (0.2 + 0.3)
    assert bound.best.tolist() == [1, 0]
    assert bound.constant == pytest.approx(2 * 0.25 / gap)
    other = lower_bound(facility([0.9, 0.1], demand=1), [0.2, 0.5], Gaussian(0.25))
    assert other.best.tolist() == [0, 1]
    assert other.constant == pytest.approx(2 * 0.25 / 0.5)


def test_the_lower_bound_counts_known_costs_of_arms_as_losses_without_noise() -> None:
    """Known costs of arms are the same as higher means, for Gaussian losses."""
    model = facility([0.0, 0.0, 0.0], columns=with_arm_costs().columns | {"cost": [*ARMS, 0, 0, 0]})
    plain = facility([0.0, 0.0, 0.0])
    means = np.array([0.3, 0.25, 0.5])
    one = lower_bound(model, means, Gaussian(0.1))
    two = lower_bound(plain, means + np.array(ARMS), Gaussian(0.1))
    assert one.constant == pytest.approx(two.constant)
    assert one.rates == pytest.approx(two.rates)


def test_the_lower_bound_is_the_program_over_all_actions() -> None:
    """Known costs that single arms could have are those of a lifted list with a certain arm."""
    from scipy.optimize import minimize

    means, variance = np.array([0.3, 0.25, 0.2]), 0.1
    model, (actions, opened) = facility(OPENING), listed(OPENING)
    bound = lower_bound(model, means, Gaussian(variance))
    values = actions @ means + opened
    best = actions[values.argmin()]
    assert bound.best.tolist() == best.tolist()
    others = np.delete(np.arange(len(actions)), values.argmin())
    gaps = values[others] - values.min()
    steps = actions[others] - best
    free = best == 0

    def evidence(w: Any) -> Any:
        plays = np.maximum(w @ steps, 1e-12)
        spread = (np.where(free, actions[others], 0) ** 2 * variance / plays).sum(axis=1)
        return np.where(spread > 0, gaps**2 / (2 * np.maximum(spread, 1e-12)), np.inf).min() - 1.0

    settings: Any = {
        "constraints": [{"type": "ineq", "fun": evidence}],
        "bounds": [(0, None)] * len(gaps),
        "options": {"maxiter": 500},
    }
    found = []

    def total(w: Any) -> Any:
        return w @ gaps

    for seed in range(4):
        start = np.random.default_rng(seed).uniform(0.1, 1.0, len(gaps))
        start *= 1.0 / min(1.0, max(evidence(start) + 1.0, 1e-3))
        answer = minimize(
            total,
            start,
            **settings,
        )
        if evidence(answer.x) > -1e-6:
            found.append(answer.fun)
    assert found
    assert bound.constant <= min(found) * (1 + 1e-4)
    assert bound.constant == pytest.approx(min(found), rel=0.05)
