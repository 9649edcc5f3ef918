"""Rules and costs that increase with the units of an arm, against a search through all actions."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from examples_of_sets import SETS
from refusal import refused

import multiplay as mp
from multiplay import ActionSet, Budget, FixedPlan, InProportion, PriceList, Transport
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import pack, unpack
from multiplay.actions import limited

MORE = [
    Transport([3, 4, 2], [4, 3], slack=True),
    Transport([3, 2], [4, 3], shortage=1.0),
    Transport([5, 6, 7], [6, 7, 5], capacities=[[2, 5, 5], [5, 3, 5], [5, 5, 2]]),
    limited(Transport([5, 6, 7], [6, 7, 5]), [5] * 9, [-1, 2, -1, -1, 0, -1, -1, -1, 1]),
    limited(Budget(5, [4, 4, 2]), [4, 3, 2], [-1, -1, 1]),
]


def can_be_copied(one: ActionSet) -> bool:
    try:
        one._interchangeable  # noqa: B018
    except mp.InvalidInput:
        return False
    return True


COPIED = [one for one in [*SETS, *MORE] if one.n.max() <= 1 or can_be_copied(one)]


@pytest.mark.parametrize("one", COPIED, ids=repr)
def test_costs_that_increase_by_unit(one: ActionSet) -> None:
    """The action is the best one of all, for costs drawn by seed 0."""
    rng, everything = np.random.default_rng(0), one.all_actions()
    steps = [rng.normal(size=(8, k)) for k in one.n]
    costs = np.concatenate([np.sort(step, axis=1) for step in steps], axis=1)
    totals = np.zeros((8, len(everything)))
    for i, step in enumerate(steps):
        sums = np.concatenate([np.zeros((8, 1)), np.sort(step, axis=1).cumsum(axis=1)], axis=1)
        totals += sums[:, everything[:, i]]
    found = one.argmin_increasing(costs)
    assert one.contains(found).all()
    places = [int((everything == row).all(axis=1).argmax()) for row in found]
    np.testing.assert_allclose(totals[range(8), places], totals.min(axis=1), atol=1e-9)


def test_all_arms_of_a_limited_set_fixed() -> None:
    one = limited(Budget(5, [4, 4, 2]), [4, 4, 2], [2, 2, 1])
    assert one.argmin_increasing(np.arange(5.0)).tolist() == [2, 2, 1]


@pytest.mark.parametrize(("supply", "demand"), [([8, 9, 10], [12, 7, 8]), ([5, 6, 7], [6, 7, 5])])
def test_in_proportion_rounds_each_lane(supply: list[int], demand: list[int]) -> None:
    """Each lane is rounded up or down, at the least sum of squares of all such plans."""
    plans = Transport(supply, demand)
    split = np.outer(supply, demand).ravel() / sum(supply)
    plan = InProportion().plan(plans)
    assert plans.contains(plan)
    assert (np.abs(plan - split) < 1).all()
    everything = plans.all_actions()
    rounded = everything[(np.abs(everything - split) < 1).all(axis=1)]
    least = ((rounded - split) ** 2).sum(axis=1).min()
    assert ((plan - split) ** 2).sum() == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("one", MORE[:3], ids=repr)
def test_in_proportion_on_other_transport_sets(one: Transport) -> None:
    plan = InProportion().plan(one)
    assert one.contains(plan)
    split = np.outer(one.supply, one.demand).ravel() / max(one.supply.sum(), one.demand.sum())
    least = ((one.all_actions() - split) ** 2).sum(axis=1).min()
    assert ((plan - split) ** 2).sum() == pytest.approx(least, abs=1e-9)


def test_in_proportion_of_a_million_units() -> None:
    plans = Transport([10**6, 2 * 10**6], [10**6 + 1, 2 * 10**6 - 1])
    assert plans.contains(InProportion().plan(plans))


def test_fixed_plan_moves_the_fewest_units() -> None:
    plans = Transport([5, 6, 7], [6, 7, 5])
    usual = np.array([6, 0, 0, 0, 6, 1, 0, 1, 4])
    rule = FixedPlan(dict(zip(plans.names, usual.tolist(), strict=True)), nearest=True)
    moved = np.abs(plans.all_actions() - usual).sum(axis=1).min()
    assert np.abs(rule.plan(plans) - usual).sum() == moved
    other = Transport([2], [1, 1], names=(["Lyon"], ["north", "south"]))
    assert rule.plan(other).tolist() == [1, 1]


def test_price_list_follows_the_sense() -> None:
    prices = {"air": 9.0, "sea": 4.0}
    for sense, plan in (("min", [1, 2]), ("max", [2, 1])):
        budget = Budget(3, [2, 2], names=["air", "sea"], sense=sense)
        assert PriceList(prices).plan(budget).tolist() == plan


@pytest.mark.parametrize(
    "rule", [InProportion(), PriceList({"type": 1, "é": 2}), FixedPlan({"a": 2})], ids=repr
)
def test_rules_are_plain_data(rule: mp.Rule) -> None:
    assert unpack(*pack(rule), Builder(classes_of(mp.actions))) == rule
    assert rule.text


@pytest.mark.parametrize(
    ("kind", "given", "argument"),
    [
        (PriceList, {}, "prices"),
        (PriceList, [1.0, 2.0], "prices"),
        (PriceList, {1: 2.0}, "prices"),
        (PriceList, {"a": float("nan")}, "prices['a']"),
        (PriceList, {"a": "4"}, "prices['a']"),
        (FixedPlan, {"a": 1.5}, "units['a']"),
        (FixedPlan, {"a": -1}, "units['a']"),
        (FixedPlan, {"a": True}, "units['a']"),
    ],
)
def test_settings_that_are_refused(kind: type, given: Any, argument: str) -> None:
    with refused(argument):
        kind(given)


@pytest.mark.parametrize(
    ("rule", "argument"),
    [
        (PriceList({"r1": 1}), "prices"),
        (FixedPlan({"Lyon": 1}), "units"),
        (FixedPlan({"Lyon": 0}), "units"),
    ],
)
def test_sets_without_a_plan_of_the_rule(rule: mp.Rule, argument: str) -> None:
    with refused(argument):
        rule.plan(Budget(1, [1, 1]))


def test_series_are_read_by_label() -> None:
    prices: Any = pd.Series({"a": 1, "b": 2.5})
    assert PriceList(prices).prices == {"a": 1.0, "b": 2.5}
