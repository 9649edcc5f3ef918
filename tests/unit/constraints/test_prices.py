"""Prices, thrifty plans and lists of promises, against HiGHS, enumeration and whole months."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog

from multiplay import Budget, Model, Transport
from multiplay.constraints.prices import Master, RemainingSet, averaged_prices, shadow_prices
from multiplay.constraints.reserve import (
    Known,
    LikelyReserve,
    Reserve,
    ThriftyPlans,
    used_by,
    weights,
)
from multiplay.types import FloatArray, IntArray


def random_days(rng: np.random.Generator, days: int) -> list[Transport]:
    found = []
    for _ in range(days):
        demand = rng.integers(2, 8, 3)
        found.append(Transport(rng.multinomial(demand.sum(), [1 / 3] * 3), demand))
    return found


def costs_of(one: RemainingSet, plans: IntArray) -> FloatArray:
    """Return what plans cost, where each unit may have a mean of its own."""
    if one.means.ndim == 1:
        costs: FloatArray = plans @ one.means
        return costs
    return np.array([sum(m[:k].sum() for m, k in zip(one.means, a, strict=True)) for a in plans])


def listed_program(sets: list[RemainingSet], limits: FloatArray) -> float:
    """Return the optimal cost of the same program over all actions, by HiGHS; NaN if infeasible."""
    actions = [one.actions.all_actions() for one in sets]
    parts = list(zip(sets, actions, strict=True))
    cost = np.concatenate(
        [
            one.weight * one.actions.sign * (costs_of(one, all_) + one.actions.known_cost(all_))
            for one, all_ in parts
        ]
    )
    use = np.concatenate([one.weight * used_by(all_, one.amounts) for one, all_ in parts])
    owner = np.repeat(np.arange(len(sets)), [len(all_) for all_ in actions])
    sums = (owner == np.arange(len(sets))[:, np.newaxis]).astype(float)
    solved = linprog(cost, use.T, limits, sums, np.ones(len(sets)))
    return np.nan if solved.fun is None or solved.status else float(solved.fun)


@pytest.mark.parametrize("seed", range(30))
def test_prices_are_those_of_the_whole_program(seed: int) -> None:
    """Limits on both sides of what is possible; the value is that of HiGHS up to the gap."""
    rng = np.random.default_rng(seed)
    promises = int(rng.integers(1, 4))
    means = rng.uniform(40, 160, 9)
    amounts = rng.uniform(10, 100, (promises, 9)) * rng.choice([1, -1], (promises, 1))
    sets = [
        RemainingSet(day, float(rng.integers(1, 6)), means, amounts) for day in random_days(rng, 3)
    ]
    least = [sum(o.weight * (o.actions.argmin(c) @ c) for o in sets) for c in amounts]
    free = [sum(o.weight * (o.actions.argmin(means) @ c) for o in sets) for c in amounts]
    limits = free + rng.uniform(0.1, 1.3, promises) * np.subtract(least, free)
    found, optimal = shadow_prices(sets, limits), listed_program(sets, limits)
    assert bool(found.over.any()) == bool(np.isnan(optimal))
    if not np.isnan(optimal):
        assert found.cost == pytest.approx(optimal, rel=2e-4)
        assert (found.use <= limits + 1e-6 * np.abs(limits)).all()
        bound = sum(
            one.weight * (one.actions.argmin(means + found.prices @ amounts) @ paid)
            for one in sets
            for paid in [means + found.prices @ amounts]
        )
        assert bound - found.prices @ limits == pytest.approx(optimal, rel=2e-4)  # duality


@pytest.mark.parametrize("seed", range(10))
def test_prices_where_each_unit_has_a_cost_of_its_own(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    sense = "min" if seed % 2 else "max"
    plans = Budget(5, [3, 4, 4], sense=sense)
    means = plans.sign * np.sort(plans.sign * rng.uniform(1, 9, (3, 3, 5)))
    amounts = np.array([rng.uniform(1, 9, 3)])
    sets = [RemainingSet(plans, float(k + 1), means[k], amounts) for k in range(3)]
    used = [used_by(plans.all_actions(), amounts)[:, 0] for _ in sets]
    ends = [sum((k + 1) * end(one) for k, one in enumerate(used)) for end in (np.min, np.max)]
    limits = np.array([ends[0] + rng.uniform(0.1, 0.6) * (ends[1] - ends[0])])
    found, optimal = shadow_prices(sets, limits), listed_program(sets, limits)
    assert found.cost == pytest.approx(optimal, rel=2e-4)
    assert (found.use <= limits + 1e-6).all()


def depots(sense: str, costs: list[float]) -> Model:
    """Six units from two depots; a depot that is used and each unit have a known cost."""
    return Model(
        {"lower": [0] * 4, "upper": [6, 6, 1, 1], "integer": [True] * 4, "cost": costs},
        {"lower": [6, None, None], "upper": [6, 0, 0]},
        {
            "row": [0, 0, 1, 1, 2, 2],
            "column": [0, 1, 0, 2, 1, 3],
            "value": [1, 1, 1, -6, 1, -6],
        },
        arms=[0, 1],
        sense=sense,
    )


@pytest.mark.parametrize("seed", range(8))
def test_known_costs_of_a_model_count(seed: int) -> None:
    """The value and the prices are those of HiGHS over all actions, with known costs."""
    rng = np.random.default_rng([2, seed])
    sense = "min" if seed % 2 else "max"
    sets = [
        RemainingSet(
            depots(sense, rng.uniform(0, 9, 4).tolist()),
            float(rng.integers(1, 6)),
            rng.uniform(0, 5, 2),
            np.array([[rng.uniform(3, 9), 1.0]]),
        )
        for _ in range(3)
    ]
    ends = [
        sum(o.weight * (o.actions.argmin(s * c) @ c) for o in sets for c in o.amounts)
        for s in (1, -1)
    ]
    limits = np.array([ends[0] + rng.uniform(0.1, 0.9) * (ends[1] - ends[0])])
    found, optimal = shadow_prices(sets, limits), listed_program(sets, limits)
    assert found.cost == pytest.approx(optimal, rel=2e-4, abs=1e-6)
    step = 0.01 * np.abs(limits)
    slopes = [
        (listed_program(sets, limits + a) - listed_program(sets, limits + b)) / float((a - b)[0])
        for a, b in ((0 * step, -step), (step, 0 * step))
    ]
    assert -slopes[1] - 1e-3 <= found.prices[0] <= -slopes[0] + 1e-3  # a subgradient


@pytest.mark.parametrize("promises", [1, 2, 3])
def test_a_likely_reserve_says_what_can_be_kept(promises: int) -> None:
    """Ten days like the past ones: against HiGHS over all actions; seeds 0 to 9.

    Past sets are equal, so that nothing varies; then the margin is positive where mixtures of plans
    keep the promises, and negative where even 5 % more would not be enough.
    """
    seen = set[bool]()
    for seed in range(10):
        rng = np.random.default_rng([3, promises, seed])
        (day,) = random_days(rng, 1)
        amounts = rng.uniform(1, 9, (promises, 9))
        one, scale = RemainingSet(day, 10.0, np.zeros(9), amounts), amounts.max(axis=1)
        use = ThriftyPlans.of(one, scale).use
        hard, plays = np.ones(promises, dtype=bool), np.full(promises, 10)
        reserve = LikelyReserve([], [use, use], plays, scale, hard)
        rest = 10 * use.min(axis=0) * rng.uniform(1.0, 1.4 if promises > 1 else 1.1, promises)
        rest *= 0.97 if seed % 2 else 1.0
        feasible = [not np.isnan(listed_program([one], factor * rest)) for factor in (1, 1.05)]
        margin = float(reserve.margin(rest))
        assert margin >= 0 or not feasible[0]
        assert margin < 0 or feasible[1]
        seen.add(margin >= 0)
        more = LikelyReserve([use], [use, use], plays, scale, hard)
        assert more.margin(rest) < margin
        assert more.without(use).margin(rest) == pytest.approx(margin, rel=1e-9)
    assert seen == {True, False}


def test_averaged_prices_lie_between_those_of_their_limits() -> None:
    """Prices fall with what is left, and are convex in it here: so their mean is larger."""
    day = Budget(4, [4, 4, 4])
    one = RemainingSet(day, 10, np.array([1.0, 2.0, 6.0]), np.array([[5.0, 3.0, 1.0]]))
    limits, deviation = np.array([125.0]), np.array([15.0])
    prices = [shadow_prices([one], limits + k * deviation).prices[0] for k in (-1.282, 0, 1.282)]
    (found,) = averaged_prices([one], limits, deviation).prices
    assert prices == pytest.approx([2.0, 0.5, 0.5])
    assert found == pytest.approx((2.0 + 2.0 + 3 * 0.5) / 5)
    assert averaged_prices([one], limits, 0 * deviation).prices == pytest.approx([0.5])


def test_rewards_are_maximised() -> None:
    day = Budget(4, [4, 4], sense="max")
    one = RemainingSet(day, 10, np.array([3.0, 1.0]), np.array([[5.0, 1.0]]))
    found = shadow_prices([one], np.array([120.0]))
    assert found.prices == pytest.approx([0.5])
    assert found.cost == pytest.approx(-80.0)


@pytest.mark.parametrize("seed", range(20))
def test_the_master_problem(seed: int) -> None:
    rng = np.random.default_rng([1, seed])
    k, columns = int(rng.integers(1, 6)), int(rng.integers(1, 12))
    costs, use = rng.normal(0, 10, columns), rng.normal(0, 5, (columns, k))
    limits, penalties = rng.normal(0, 4, k), rng.uniform(1, 50, k)
    master = Master(limits.tolist(), penalties.tolist(), costs[0], use[0].tolist())
    for j in range(1, columns):
        master.add(costs[j], use[j].tolist())
        if rng.random() < 0.3:
            master.solve()
    duals = master.solve()
    solved = linprog(
        np.concatenate([costs, penalties]),
        np.hstack([use.T, -np.eye(k)]),
        limits,
        np.concatenate([np.ones(columns), np.zeros(k)])[np.newaxis],
        [1.0],
    )
    value = np.dot(duals.shares, costs) + np.dot(duals.over, penalties)
    assert value == pytest.approx(solved.fun, abs=1e-7)
    assert duals.value - np.dot(duals.prices, limits) == pytest.approx(solved.fun, abs=1e-7)


def test_thrifty_plans_use_the_least_of_all() -> None:
    day = Transport([5, 6, 7], [6, 7, 5])
    amounts = np.random.default_rng(0).uniform(1, 9, (2, 9))
    thrifty = ThriftyPlans.of(RemainingSet(day, 1.0, np.zeros(9), amounts), np.ones(2))
    everything = used_by(day.all_actions(), amounts) @ weights(2).T
    np.testing.assert_allclose((thrifty.use * weights(2)).sum(axis=1), everything.min(axis=0))


def priced(one: RemainingSet, theta: FloatArray, prices: FloatArray) -> IntArray:
    return one.actions.argmin(theta + prices @ one.amounts)


@pytest.mark.parametrize("promises", [1, 2, 3])
def test_a_list_that_stands_on_the_first_day_is_kept(promises: int) -> None:
    """Twelve days, plans for random costs, limits close to what is possible; seeds 0 to 9."""
    stood = 0
    for seed in range(10):
        rng = np.random.default_rng([promises, seed])
        days, means = random_days(rng, 12), rng.uniform(40, 160, 9)
        amounts = rng.uniform(1, 9, (promises, 9))
        scale, hard = amounts.max(axis=1), np.ones(promises, dtype=bool)
        sets = [RemainingSet(day, 1.0, means, amounts) for day in days]
        thrifty = [ThriftyPlans.of(one, scale) for one in sets]
        even = Reserve(np.stack([one.use for one in thrifty]), scale, hard)
        limits = even.needed(np.full(12, len(weights(promises)) // 2)) * 1.02
        used, before, first = np.zeros(promises), None, None
        for t, one in enumerate(sets):
            plan_at = partial(priced, one, rng.uniform(0, 250, 9))
            reserve = Reserve(even.use[t + 1 :], scale, hard)
            prices = shadow_prices(sets[t:], limits - used).prices
            today = Known(thrifty[t], reserve, limits - used, amounts, before)
            made = today.decide(plan_at, prices, 250)
            before = made.chosen
            first = made.stands if first is None else first
            assert one.actions.contains(made.plan)
            used += used_by(made.plan, amounts)
        stood += bool(first)
        assert not first or (used <= limits + 1e-6).all()
    assert stood >= 8
