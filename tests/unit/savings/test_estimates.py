"""Savings against a rule: exact parts, refusals, off-policy estimates and simulated lives."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from multiplay import (
    Budget,
    Coverage,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Policy,
    Streams,
)
from multiplay._support.words import Words
from multiplay.savings import (
    Bills,
    PlayedDay,
    cost_of_learning,
    estimate,
    simulated,
)
from multiplay.savings.days import DAY
from multiplay.savings.estimates import History
from multiplay.types import FloatArray, IntArray

RANGE = 0.0, 100.0
SET = Budget(3, [2, 2, 3], names=["air", "sea", "rail"])
MEANS = np.array([60.0, 30.0, 45.0])


def day_of(t: int, action: Any, bills: FloatArray, actions: Any = SET, **more: Any) -> PlayedDay:
    """Return a day whose units of arm i cost bills[i, 0], bills[i, 1], ..."""
    units = np.asarray(action)
    seen = np.where(np.arange(bills.shape[1]) < units[:, None], bills, 0.0)
    sums = seen.sum(axis=1), (seen**2).sum(axis=1)
    return PlayedDay(DAY * t, "", actions, units, units, *sums, **more)


def days_of(count: int = 28, seed: int = 0, noise: float = 5.0) -> list[PlayedDay]:
    """Return days with random plans and bills around ``MEANS``."""
    rng, all_plans = np.random.default_rng(seed), SET.enumerate()
    return [
        day_of(t, rng.choice(all_plans), MEANS[:, None] + rng.normal(0, noise, (3, 3)))
        for t in range(count)
    ]


def plans_of(days: Sequence[PlayedDay], plan: Sequence[int] = (1, 1, 1)) -> list[IntArray | None]:
    return [np.array(plan) for _ in days]


def test_the_saving_is_found_and_its_parts_add_up() -> None:
    days = days_of()
    saved = estimate(days, [], plans_of(days), RANGE, rule="one of each", words=Words("EUR"))
    true = sum((np.ones(3) - day.action) @ MEANS for day in days)
    assert saved.low < true < saved.high
    assert saved.high - saved.low < 150
    assert saved.weeks.saved.sum() == pytest.approx(saved.total)
    assert saved.weeks.days.tolist() == [7, 7, 7, 7]
    assert saved.paid == pytest.approx(sum(day.total.sum() for day in days))
    assert saved.share == pytest.approx(saved.total / (saved.paid + saved.total))
    assert (saved.agrees, saved.trust, saved.left_out, saved.thin) == (None, "", 0, 0.0)
    rows = {row.arm: row for row in saved.evidence}
    assert rows["sea"].rule_units == 28
    assert rows["sea"].bills == rows["sea"].played_units == sum(day.action[1] for day in days)
    wider = estimate(days, [], plans_of(days), RANGE, level=0.99)
    assert wider.high - wider.low > saved.high - saved.low
    assert "against one of each" in str(saved)


def test_numbers_of_orders_are_not_dates() -> None:
    """ "10000725" is no day of the year 1000: the time of the play counts."""
    numbers = [replace(day, key=f"{10000725 + t}") for t, day in enumerate(days_of(14))]
    saved = estimate(numbers, [], plans_of(numbers), RANGE)
    assert saved == estimate(days_of(14), [], plans_of(numbers), RANGE)
    assert saved.weeks.week.tolist() == ["1970-01-01", "1970-01-08"]


def test_plans_that_agree_save_exactly_nothing() -> None:
    days = days_of()
    saved = estimate(days, [], [day.action for day in days], RANGE)
    assert (saved.total, saved.low, saved.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("trend", [-0.2, 0.2])
def test_a_common_trend_is_no_saving(trend: float) -> None:
    """All prices move by a fifth in 45 days, and the dear arms are played in the first ten only.

    Where 95 % of intervals contain the truth, four of 14 miss it in one of 200 seeds.
    """
    actions, means = Budget(6, [6] * 4), np.array([60.0, 80.0, 110.0, 150.0])
    level, inside = 1 + trend * np.arange(45) / 44, 0
    for seed in range(14):
        rng, days, true = np.random.default_rng([3, seed]), [], 0.0
        for t in range(45):
            plan = rng.multinomial(6, [0.25] * 4 if t < 10 else [0.6, 0.4, 0, 0])
            bills = level[t] * means[:, None] * rng.uniform(0.6, 1.4, (4, 6))
            days.append(day_of(t, plan, bills, actions))
            true += level[t] * float((np.array([1, 1, 2, 2]) - plan) @ means)
        saved = estimate(days, [], plans_of(days, [1, 1, 2, 2]), (0.0, 250.0))
        inside += saved.low < true < saved.high
    assert inside >= 11


def test_a_price_that_follows_a_feature_is_explained() -> None:
    """The cost of an arm is its distance times a price that doubles after the arm was left."""
    rng, distance, days, true = np.random.default_rng(8), np.array([0.2, 0.4, 1.0]), [], 0.0
    for t in range(40):
        plan, price = ([1, 1, 1], 40.0) if t < 10 else ([2, 1, 0], 80.0)
        bills = 10 + price * distance[:, None] + rng.normal(0, 2, (3, 3))
        phi = np.stack([np.ones(3), distance * price / 40], axis=1)
        days.append(day_of(t, plan, bills, phi=phi))
        true += float((1 - np.array(plan)) @ (10 + price * distance))
    saved = estimate(days, [], plans_of(days), RANGE)
    assert saved.low < true < saved.high < 1.1 * true
    blind = estimate([replace(day, phi=None) for day in days], [], plans_of(days), RANGE)
    assert abs(saved.total - true) < abs(blind.total - true) / 3


def with_a_clause(seed: int, days: int = 40) -> tuple[list[PlayedDay], float]:
    """Return days on which a clause adds up to 60 % to all prices, and what was saved.

    A dear arm is left at the beginning, and Saturdays cost 25 % more. phi is an intercept, the
    clause, and whether it is a Saturday.
    """
    rng, prices, made, true = np.random.default_rng(seed), np.array([30.0, 60.0, 180.0]), [], 0.0
    for t in range(days):
        clause, saturday = min(max(t - 8, 0) / 12, 1.0), float(t % 7 == 5)
        factor = 1.6**clause * 1.25**saturday
        plan = [1, 1, 1] if t < 10 else [2, 1, 0] if t % 2 else [1, 2, 0]
        bills = factor * prices[:, None] * (1 + rng.normal(0, 0.08, (3, 3)))
        phi = np.tile([1.0, clause, saturday], (3, 1))
        made.append(day_of(t, plan, bills, phi=phi))
        true += factor * float((1 - np.array(plan)) @ prices)
    return made, true


def test_a_clause_that_multiplies_is_a_percentage() -> None:
    """Where the clause is an amount, it is that of the cheap arms, also for the dear one."""
    inside, errors = 0, np.zeros((2, 2))
    for seed in range(2):
        days, true = with_a_clause(seed)
        for way, factors in enumerate((2, 0)):
            saved = estimate(days, [], plans_of(days), (0.0, 400.0), factors=factors)
            errors[way, seed] = saved.total / true - 1
            inside += saved.low < true < saved.high if factors else 0
    assert inside == 2
    assert np.abs(errors[0]).max() < 0.1
    assert errors[1].max() < -0.25
    lost = cost_of_learning(days, [], (0.0, 400.0), factors=2)
    assert lost.total >= 0
    other = simulated(days, [], GenCTS(), (0.0, 400.0), lives=20, factors=2)
    assert other.low < other.total < other.high


def test_units_are_arbitrary_and_rewards_change_the_sign() -> None:
    """Bills in cents are 100 times those in euros, and rewards are gains of the same size."""
    days = days_of()
    euros = estimate(days, [], plans_of(days), RANGE)
    cents = [replace(day, total=100 * day.total, squares=1e4 * day.squares) for day in days]
    hundred = estimate(cents, [], plans_of(days), (0.0, 1e4))
    assert hundred.total == pytest.approx(100 * euros.total)
    assert hundred.high == pytest.approx(100 * euros.high)
    best = Budget(3, [2, 2, 3], names=SET.names, sense="max")
    gained = estimate([replace(day, actions=best) for day in days], [], plans_of(days), RANGE)
    assert gained.total == pytest.approx(-euros.total)
    assert gained.low == pytest.approx(-euros.high)
    assert str(gained).startswith("gained")


def test_days_left_out_external_bills_and_missing_units() -> None:
    days = days_of()
    some: list[IntArray | None] = [None if t < 7 else np.ones(3, int) for t in range(28)]
    saved = estimate(days, [], some, RANGE)
    assert (saved.left_out, saved.days, len(saved.weeks)) == (7, 21, 3)
    before = estimate(days[7:], [day.bills for day in days[:7]], some[7:], RANGE)
    assert before.total == pytest.approx(saved.total), "days left out count as bills"
    hidden = [replace(day, units=0 * day.units, total=0 * day.total) for day in days[:3]]
    part = estimate([*hidden, *days[3:]], [], plans_of(days), RANGE)
    assert part.paid == pytest.approx(sum(day.total.sum() for day in days), rel=0.05)
    assert part.high - part.low > 0


class Rented(Budget):
    """A set where using "air" costs a rent of 500, which is known."""

    has_known = True

    def known_cost(self, action: Any) -> FloatArray:
        """Return the rent."""
        return np.asarray(500.0 * (np.asarray(action)[..., 0] > 0))


def test_known_costs_are_exact() -> None:
    days, rented = days_of(), Rented(3, [2, 2, 3], names=SET.names)
    plain = estimate(days, [], plans_of(days, [0, 2, 1]), RANGE)
    known = estimate(
        [replace(day, actions=rented) for day in days], [], plans_of(days, [0, 2, 1]), RANGE
    )
    rents = 500.0 * sum(day.action[0] > 0 for day in days)
    assert known.total == pytest.approx(plain.total - rents)
    assert known.high - known.low == pytest.approx(plain.high - plain.low)
    assert known.paid == pytest.approx(plain.paid + rents)


def test_the_cost_of_learning_is_never_below_zero() -> None:
    learning = cost_of_learning(days_of(), [], RANGE)
    best = sum((day.action - np.array([0, 2, 1])) @ MEANS for day in days_of())
    assert learning.low < best < learning.high
    assert learning.total > 0
    assert learning.learning
    assert str(learning).startswith("learning cost")
    assert cost_of_learning([*days_of(12)], [], RANGE).total >= 0
    dear = [day_of(t, [1 + t % 2, 2 - t % 2, 0], np.full((3, 3), 90.0) + t % 3) for t in range(20)]
    assert cost_of_learning(dear, [], RANGE).never == 0.0, "rail was never seen"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "few plays": ({"days": days_of(9)}, "study: expected at least 10 plays told, got 9"),
    "no x": ({"method": "dr"}, "method: expected plays with a logged x"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_said_is_refused(given: dict[str, Any], message: str) -> None:
    days = given.pop("days", days_of())
    plans = given.pop("plans", plans_of(days))
    with pytest.raises(InvalidInput, match=message):
        estimate(days, [], plans, RANGE, **given)


def test_arms_never_played_are_refused_and_thin_ones_are_said() -> None:
    """The rule uses "air" only, which was played never, or three times long ago."""
    rng = np.random.default_rng(0)
    bills = [MEANS[:, None] + rng.normal(0, 5, (3, 3)) for _ in range(60)]
    without = [day_of(t, [0, 2, 1], bills[t]) for t in range(60)]
    with pytest.raises(InvalidInput, match=r"67 % on items that were never played: 120.air"):
        estimate(without, [], plans_of(without, [2, 0, 1]), RANGE)
    few = [day_of(t, [1, 1, 1], bills[t]) for t in range(3)] + without[3:]
    saved = estimate(few, [], plans_of(few, [2, 0, 1]), RANGE)
    assert saved.thin == saved.stale == pytest.approx(2 / 3)
    assert "67 % of the rule's units are on items with fewer than 5 bills." in str(saved)
    assert saved.trust == ""
    idle = few[:3] + [day_of(t, [0, 0, 3], bills[t]) for t in range(3, 60)]
    stale = estimate(idle, [], plans_of(idle, [2, 1, 0]), RANGE)
    assert stale.stale == 1.0
    assert "in the last 4 weeks" in stale.trust
    dearer = [replace(day, total=day.total + np.array([0, 0, 30.0])) for day in few[56:]]
    jumped = estimate([*few[:56], *dearer], [], plans_of(few, [0, 2, 1]), RANGE)
    assert jumped.trust == "prices have moved on items that were not used"
    early = [replace(day, total=day.total + np.array([0, 30.0, 0])) for day in few[:20]]
    long = estimate([*early, *few[20:]], [], plans_of(few, [0, 2, 1]), RANGE)
    assert long.trust == "prices of single items have jumped, and may have on others"
    assert estimate(few, [], plans_of(few, [0, 2, 1]), RANGE).trust == ""


def test_sets_that_are_not_linear_and_reports_without_arms_are_refused() -> None:
    covers = Coverage.example()
    nothing = np.zeros(covers.d, int)
    odd = [PlayedDay(DAY * t, "", covers, nothing, *[nothing] * 3) for t in range(10)]
    with pytest.raises(InvalidInput, match="the sum of their units"):
        estimate(odd, [], [nothing] * 10, RANGE)
    blind = [replace(day, units=0 * day.units, total=0 * day.total) for day in days_of()]
    with pytest.raises(InvalidInput, match="only totals of rounds"):
        estimate(blind, [], plans_of(blind), RANGE)


# ------------------------------------------------------------ off-policy


def logged_days(policy: Policy, count: int = 60, m: int = 2) -> list[PlayedDay]:
    """Return plays of an FTRL policy on an m-set, with their x."""
    actions = Budget(m, [1] * 5)
    rng, streams = np.random.default_rng(4), Streams.spawn(0, 0, range(1))
    learner, means = policy.start(actions, None, 1), rng.uniform(20, 80, 5)
    days = []
    for t in range(count):
        play = policy.choose(actions, learner, streams)
        days.append(day_of(t, play.action[0], means[:, None] * rng.uniform(0.6, 1.4, (5, 1))))
        days[-1] = replace(days[-1], actions=actions, x=play.memo["x"][0].copy())
    return days


def test_ips_equals_the_independent_ips_of_the_open_bandit_pipeline() -> None:
    """Its formula: the mean over rounds of sum over slots of reward * pi_e / pi_b of the item.

    A slate of m items has m slots. The logged probability of the item in a slot is x, and a
    deterministic rule has probability 1 for its own items and 0 for others.
    """
    days, rule = logged_days(GenLBINFV()), [0, 1, 0, 1, 0]
    saved = estimate(days, [], plans_of(days, rule), RANGE, method="ips")
    assert saved.method == "ips"
    rounds = []
    for day in days:
        assert day.x is not None
        slots = [item for item in range(5) if day.action[item]]
        reward = {item: day.total[item] for item in slots}
        evaluation = {item: 1.0 if rule[item] else 0.0 for item in slots}
        behaviour = {item: day.x[item] for item in slots}
        rounds.append(sum(reward[k] * evaluation[k] / behaviour[k] for k in slots))
    cost = math.fsum(rounds) / len(rounds) * len(days)
    assert saved.total + saved.paid == pytest.approx(cost, rel=1e-12)


def test_doubly_robust_agrees_and_an_impossible_x_is_refused() -> None:
    days = logged_days(GenLBINFV())
    plans = plans_of(days, [0, 1, 0, 1, 0])
    model = estimate(days, [], plans, RANGE)
    robust = estimate(days, [], plans, RANGE, method="dr")
    weighted = estimate(days, [], plans, RANGE, method="ips")
    assert model.agrees is True
    assert robust.high - robust.low < weighted.high - weighted.low
    assert abs(robust.total - model.total) < robust.high - robust.low
    certain = [replace(day, x=day.action.astype(float)) for day in days]
    assert estimate(certain, [], plans, RANGE).agrees is None
    with pytest.raises(InvalidInput, match="logged mean is 0"):
        estimate(certain, [], plans, RANGE, method="dr")


def test_a_logged_x_that_is_wrong_does_not_agree() -> None:
    """With a tenth of x, the bills of the rule count ten times."""
    days = logged_days(GenLBINFV())
    rule = plans_of(days, [0, 1, 0, 1, 0])
    tenth = [replace(day, x=day.x / 10) for day in days if day.x is not None]
    saved = estimate(tenth, [], rule, RANGE, method="ips")
    assert saved.total > estimate(days, [], rule, RANGE).high


# ------------------------------------------------------------ another policy


@pytest.mark.slow
def test_another_policy_is_simulated_the_same_way_each_time() -> None:
    days = days_of(40)
    saved = simulated(days, [], GenCTS(), RANGE, lives=60)
    again = simulated(days, [], GenCTS(), RANGE, lives=60)
    assert saved.simulated
    assert "GenCTS (simulated)" in str(saved)
    assert (saved.total, saved.low, saved.high) == (again.total, again.low, again.high)
    learning = cost_of_learning(days, [], RANGE)
    assert -learning.total < saved.total < 0, "better than random plans, not better than the best"
    history = [day.bills for day in days_of(60, seed=9)]
    warm = simulated(days, history, GenCTS(), RANGE, lives=60)
    assert warm.total < saved.total, "a policy with a history is cheaper"


def test_sets_with_other_arms_are_played() -> None:
    """Half of the days have no "air"; the policy meets it late."""
    small = Budget(3, [2, 3], names=["sea", "rail"])
    days = days_of(40)
    rng = np.random.default_rng(0)
    bills = MEANS[1:, None] + rng.normal(0, 5, (2, 3))
    days = [day_of(t, [2, 1], bills, small) if t % 2 == 0 else day for t, day in enumerate(days)]
    for policy in (GenCTS(), GenLBINFV()):
        saved = simulated(days, [], policy, RANGE, lives=20)
        assert math.isfinite(saved.total)


def test_draws_have_the_moments_of_contrasts() -> None:
    days = days_of(21)
    history = History(days, [], RANGE, Words())
    weights = np.random.default_rng(2).integers(-2, 3, (21, 3)).astype(float)
    drawn = history.smoothed.draw(4000, np.random.default_rng(0))
    sums = (weights * drawn).sum(axis=(1, 2))
    mean, deviation = history.smoothed.contrast(weights, history.calendar.week).total
    assert abs(sums.mean() - mean) < 4 * deviation / math.sqrt(4000)
    assert sums.std() == pytest.approx(deviation, rel=0.06)


def test_bills_alone_widen_what_is_known() -> None:
    """Bills of an arm that was not played make the rule comparable."""
    rng = np.random.default_rng(0)
    days = [day_of(t, [0, 2, 1], MEANS[:, None] + rng.normal(0, 5, (3, 3))) for t in range(20)]
    told = np.array([3, 0, 0]), np.array([180.0, 0, 0]), np.array([10850.0, 0, 0])
    table = [Bills(math.nan, "", SET.names, *told)] * 3
    saved = estimate(days, table, plans_of(days, [2, 0, 1]), RANGE)
    assert saved.low < 20 * 2 * 30 < saved.high
    assert saved.never == 0.0
    assert saved.weeks.week.tolist() == ["1970-01-01", "1970-01-08", "1970-01-15"]
    assert next(row for row in saved.evidence if row.arm == "air").last_seen == ""
