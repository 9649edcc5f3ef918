"""Promises of learners and studies: what counts, replay, prices, and refusals."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from constraint_reports import promise_reports

from multiplay import (
    AtLeast,
    AtMost,
    BootstrapCTS,
    Budget,
    CombUCB,
    Features,
    Flag,
    FollowTheLeader,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Learner,
    Model,
    PendingPlay,
    Study,
    Transport,
)
from multiplay.constraints.prices import RemainingSet, shadow_prices

NAMES = (["Lyon", "Lille", "Paris"], ["north", "south", "coast"])
CO2 = {"*": 80.0, "Lyon->*": 120.0, "Lyon->coast": 20.0, "Paris->south": 150.0}
CARRIER = {"*": 0.0, "Paris->north": 1.0}
PLAYS = 8


def random_days(seed: int, days: int = PLAYS) -> list[Transport]:
    rng, found = np.random.default_rng(seed), list[Transport]()
    for _ in range(days):
        demand = rng.integers(2, 7, 3)
        supply = rng.multinomial(demand.sum(), [1 / 3] * 3)
        found.append(Transport(supply, demand, names=NAMES))
    return found


def least_use(days: list[Transport], amounts: dict[str, float], share: float) -> float:
    """Return a limit between the least that the days can use (0) and the most (1)."""
    costs = AtMost(0, amounts, plays=1).amounts(days[0].names)
    low, high = (sum(float(day.argmin(s * costs) @ costs) for day in days) for s in (1, -1))
    return low + share * (high - low)


def two_promises(days: list[Transport], **rest: Any) -> list[Any]:
    co2 = AtMost(least_use(days, CO2, 0.3), CO2, plays=len(days), name="CO2", **rest)
    most = int(least_use(days, CARRIER, 0.6))
    return [co2, AtLeast(most, CARRIER, plays=len(days), name="carrier B", **rest)]


def bills(play: PendingPlay, fewer: str | None = None) -> dict[str, list[float]]:
    """Return bills of all units of a plan; one fewer of an arm."""
    units = {arm: k - (arm == fewer) for arm, k in play.plan.items()}
    return {arm: [50.0 + 7 * i + k for k in range(n)] for i, (arm, n) in enumerate(units.items())}


def used(plans: list[dict[str, int]], amounts: dict[str, float]) -> float:
    promise = AtMost(0, amounts, plays=1)
    return sum(float(promise.amounts(list(plan)) @ np.array(list(plan.values()))) for plan in plans)


def month(learner: Any, days: list[Transport]) -> list[dict[str, int]]:
    """Play days with a cancellation, a correction, a retraction and an external plan.

    Return the plans that count.
    """
    driven = list[dict[str, int]]()
    for t, day in enumerate(days[:6]):
        play = learner.ask(actions=day, ahead=days[t + 1 :] if t != 4 else None)
        if t == 1:
            learner.cancel(play)
            play = learner.ask(actions=day, ahead=days[t + 1 :])
        most = max(play.plan, key=lambda arm: play.plan[arm])
        if t == 0:  # late: a unit was not driven
            learner.tell(play, bills(play, most), missing="ignore")
            driven.append({**play.plan, most: play.plan[most] - 1})
            continue
        driven.append(dict(play.plan))
        if t == 5:  # told later, or never
            continue
        learner.tell(play, bills(play))
        if t == 2:
            learner.correct(play, bills(play, most), missing="ignore")
            driven[-1][most] -= 1
        if t == 3:
            learner.retract(play)
    plan = dict(zip(days[6].names, days[6].argmin(np.arange(9.0)).tolist(), strict=True))
    learner.learn(plan, {arm: [60.0] * k for arm, k in plan.items()}, actions=days[6])
    return [*driven, plan]


@pytest.mark.parametrize("hard", [True, False])
def test_used_amounts_are_right_after_replay(tmp_path: Path, hard: bool) -> None:
    """The same calls of a learner and a study; saved, loaded, opened again and verified."""
    days = random_days(1)
    promises = two_promises(days, hard=hard)
    settings: dict[str, Any] = {
        "loss_range": (0, 250),
        "varying_set": True,
        "constraints": promises,
    }
    learner = Learner(days[0], **settings)
    store = f"sqlite:///{tmp_path / 'study.db'}"
    study = Study.create("lanes", days[0], store=store, **settings)
    for one in (learner, study):
        plans = month(one, days)
        co2, carrier = promise_reports(one)
        assert co2.used == used(plans, CO2)
        assert carrier.used == used(plans, CARRIER)
        assert (co2.external, carrier.left_plays) == (used(plans[-1:], CO2), 1)
    assert "replay to the same state" in str(study.verify())
    learner.save(tmp_path / "learner")
    loaded, opened = Learner.load(tmp_path / "learner"), Study.open("lanes", store=store)
    assert promise_reports(loaded) == promise_reports(learner)
    assert promise_reports(opened) == promise_reports(study)
    live, then = (x.ask(actions=days[7], key="last") for x in (learner, loaded))
    assert (live.plan, live.prices, live.held) == (then.plan, then.prices, then.held)
    asked = opened.ask(actions=days[7], key="last")
    study.tell("last", bills(asked))
    again = study.ask(actions=days[7], key="last")
    assert (again.prices, again.held) == (asked.prices, asked.held)
    study.end_constraint("CO2")
    study.add_constraint(AtMost(9, CO2, plays=2, name="CO2"), key="new")
    study.add_constraint(AtMost(9, CO2, plays=2, name="CO2"), key="new")
    assert [row.used for row in promise_reports(opened) if row.name == "CO2"] == [0]
    assert "replay to the same state" in str(Study.open("lanes", store=store).verify())


@pytest.mark.parametrize("policy", [BootstrapCTS(), CombUCB()])
def test_a_sure_promise_is_kept(policy: Any) -> None:
    """Sets known, means learned; seeds 0 to 4."""
    for seed in range(5):
        days = random_days(seed)
        promises = two_promises(days)
        learner = Learner(
            days[0], policy, seed=seed, loss_range=(0, 250), varying_set=True, constraints=promises
        )
        for t, day in enumerate(days):
            play = learner.ask(actions=day, ahead=days[t + 1 :])
            learner.tell(play, bills(play))
            assert {row.holds for row in promise_reports(learner)} == {"sure"}
        co2, carrier = promise_reports(learner)
        assert co2.used <= co2.constraint.limit
        assert carrier.used >= carrier.constraint.limit


def test_the_price_is_the_shadow_price_of_the_remaining_plays() -> None:
    """A policy without random numbers: the costs of its program are the averages."""
    days = random_days(3)
    promises = two_promises(days)
    learner = Learner(days[0], FollowTheLeader(), seed=0, loss_range=(0, 250), varying_set=True)
    means = np.random.default_rng(3).uniform(40, 160, 9)
    for day in days:
        plan = dict(zip(day.names, day.argmin(-means).tolist(), strict=True))
        bill = dict(zip(day.names, means.tolist(), strict=True))
        learner.learn(plan, {arm: [bill[arm]] * k for arm, k in plan.items()}, actions=day)
    for one in promises:
        learner.add_constraint(one)
    seen = learner.arms().set_index("arm")["average"].reindex(days[0].names).fillna(0.0)
    amounts = np.stack([one.sign * one.amounts(days[0].names) for one in promises])
    sets = [RemainingSet(day, 1.0, seen.to_numpy(), amounts) for day in days]
    limits = np.array([one.sign * one.limit for one in promises])
    found = shadow_prices(sets, limits).prices
    assert found[0] > 0
    prices = learner.ask(actions=days[0], ahead=days[1:]).prices
    assert list(prices.values()) == pytest.approx([found[0], -found[1]])


@pytest.mark.slow
def test_a_budget_is_not_spent_too_early() -> None:
    """One unit a play, dear arms as good as cheap ones at first; seeds 0 to 2, 60 plays.

    Prices are those at which the draws of the policy use what is left. With prices of means, which
    are equal at first and then 0, the first half of the plays used about 62 %.
    """
    costs = dict(zip("abcdef", (1, 2, 3, 4, 6, 8), strict=True))
    plans = Budget(1, [1] * 6, at_most=True, names=list(costs), sense="max")
    money = AtMost(180, costs, plays=60, name="money")
    chance = dict(zip("abcdef", (0.08, 0.22, 0.3, 0.5, 0.62, 0.7), strict=True))
    used = list[float]()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        learner = Learner(plans, GenCTS(), seed=seed, loss_range=(0, 1), constraints=[money])
        for _ in range(30):
            play = learner.ask()
            arms = [arm for arm, units in play.plan.items() if units]
            learner.tell(play, {arm: [float(rng.random() < chance[arm])] for arm in arms})
        used.append(promise_reports(learner)[0].used / money.limit)
    assert 0.4 < np.mean(used) < 0.56


@pytest.mark.slow
def test_known_costs_and_features(tmp_path: Path) -> None:
    """A model with known costs, and a policy with features: kept, and replayed."""
    model = Model.example()
    model = Model(
        {**model.columns, "cost": [1.0, 0.0, 40.0, 0.0]}, model.rows, model.matrix, [0, 1]
    )
    costs = {"arm 1": 5.0, "arm 2": 1.0}
    lanes = Budget(4, [4, 4], names=["arm 1", "arm 2"])
    cases: list[tuple[Any, dict[str, Any], list[Any]]] = [
        (model, {"policy": BootstrapCTS()}, [None] * 6),
        (lanes, {"features": Features(rain=Flag())}, [{"rain": t % 2 == 0} for t in range(6)]),
    ]
    for k, (plans, settings, days) in enumerate(cases):
        share = least_use([plans] * 6, costs, 0.5)
        promises = [AtMost(share, costs, plays=6, name="CO2")]
        store = f"sqlite:///{tmp_path / f'{k}.db'}"
        settings |= {"loss_range": (0, 100), "constraints": promises, "store": store}
        study = Study.create("days", plans, **settings)
        for t, today in enumerate(days):
            given = {} if today is None else {"features": today}
            ahead = [plans] * (5 - t) if t > 2 else None
            play = study.ask(ahead=ahead, **given)
            assert plans.contains(list(play.plan.values()))
            dear = 90.0 if today and today["rain"] else 30.0
            bill = {"arm 1": 20.0, "arm 2": dear}
            study.tell(play, {arm: [bill[arm]] * units for arm, units in play.plan.items()})
        (row,) = promise_reports(study)
        assert row.used <= row.constraint.limit
        assert "replay to the same state" in str(study.verify())


def test_without_a_binding_promise_plays_are_the_same() -> None:
    """The policy draws the same random numbers."""
    days = random_days(4)
    loose = [AtMost(1e9, CO2, plays=PLAYS, name="CO2")]
    plans = []
    for promises in ([], loose):
        learner = Learner(days[0], loss_range=(0, 250), varying_set=True, constraints=promises)
        plays = []
        for day in days:
            plays.append(learner.ask(actions=day))
            learner.tell(plays[-1], bills(plays[-1]))
        plans.append([play.plan for play in plays])
    assert plans[0] == plans[1]


def test_prices_alone_move_a_policy_that_draws_its_plans() -> None:
    plans = Budget(10, [10, 10], names=["air", "sea"])
    co2 = AtMost(30, {"air": 9, "sea": 1}, plays=3, name="CO2", hard=False)
    given: dict[str, Any] = {"loss_range": (0, 100), "store": "memory://soft-promise"}
    study = Study.create("boxes", plans, GenLBINFV(), **given)
    for _ in range(20):
        study.learn({"air": 5, "sea": 5}, {"air": [20.0] * 5, "sea": [60.0] * 5})
    study.add_constraint(co2)
    play = study.ask()
    assert play.prices["CO2"] > 0
    assert not play.held
    assert "a unit of CO2 costs" in str(play.why())
    study.tell(play, {arm: [30.0] * units for arm, units in play.plan.items()})
    assert "replay to the same state" in str(study.verify())
    study.end_constraint("CO2")
    assert study.ask().prices == {}


def test_promises_of_different_lengths() -> None:
    """A week and a month: the first ends, and the other continues; seeds 0 to 3."""
    for seed in range(4):
        days = random_days(seed)
        long, _ = two_promises(days)
        short = AtMost(least_use(days[:4], CARRIER, 0.2), CARRIER, plays=4, name="week")
        learner = Learner(days[0], loss_range=(0, 250), varying_set=True, constraints=[long, short])
        for t, day in enumerate(days):
            if t == 4:
                learner.end_constraint("week")
            play = learner.ask(actions=day, ahead=days[t + 1 :])
            learner.tell(play, bills(play))
            assert all(
                row.holds == "sure" and row.used <= row.constraint.limit
                for row in promise_reports(learner)
            )


def test_plans_of_the_user_are_played_and_said() -> None:
    plans = Budget(4, [4, 4], names=["air", "sea"])
    co2 = AtMost(12, {"air": 5, "sea": 1}, plays=3, name="CO2")
    learner = Learner(plans, loss_range=(0, 100), constraints=[co2])
    play = learner.ask(fixed={"air": 2}, ahead=[plans] * 2)
    assert play.plan == {"air": 2, "sea": 2}
    (row,) = promise_reports(learner)
    assert row.holds == "no: at best 20"
    for _ in range(2):
        assert learner.ask(ahead=[plans]).plan == {"air": 0, "sea": 4}
    with pytest.warns(UserWarning, match="promised for 3 plays"):
        learner.ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.ask()


def test_a_promise_ends_with_its_date() -> None:
    plans = Budget(4, [4, 4], names=["air", "sea"])
    co2 = AtMost(4, {"air": 5, "sea": 1}, plays=3, until="2026-11-30", name="CO2")
    learner = Learner(plans, loss_range=(0, 100), constraints=[co2])
    assert learner.ask(key="2026-11-30").plan["air"] == 0
    assert learner.ask(key="2026-12-01").prices == {}
    (row,) = promise_reports(learner)
    assert (row.used, row.left_plays, row.holds) == (4, 0, "sure")


def test_bad_input() -> None:
    plans = Budget(4, [4, 4], names=["air", "sea"])
    good = AtMost(12, {"*": 1}, plays=3, name="CO2")

    def learner(*promises: Any, **rest: Any) -> Learner:
        return Learner(plans, loss_range=(0, 100), constraints=list(promises), **rest)

    cases: list[tuple[Any, str]] = [
        (lambda: learner(good, good), "one constraint of the name"),
        (lambda: learner("CO2 <= 3"), "a Constraint"),
        (lambda: Learner(plans, constraints=good), "a list of constraints"),  # type: ignore[arg-type]
        (lambda: learner(AtMost(3, {"air": 1}, plays=3, name="CO2")), "CO2.*none for 'sea'"),
        (lambda: learner(AtMost(3, {"*": 1, "aire": 2}, plays=3)), "Did you mean 'air'"),
        (lambda: AtMost(3, {"*": -1}, plays=3), "0 or more"),
        (lambda: AtMost(float("nan"), {"*": 1}, plays=3), "0 or more"),
        (lambda: AtMost(3, {}, plays=3), "amounts by arm"),
        (lambda: AtMost(3, {"*": 1}, plays=0), "plays"),
        (lambda: AtMost(3, {"*": 1}, plays=3, until="30.11."), "a date"),
        (lambda: learner(good, policy=GenLBINFV()), "hard=False for GenLBINFV"),
        (lambda: learner().ask(ahead=[plans]), "no sets without promises"),
        (
            lambda: learner(good).ask(ahead=plans),  # type: ignore[arg-type]
            "a list of sets",
        ),
        (lambda: learner(good).ask(ahead=["Tuesday"]), r"ahead\[0\]"),  # type: ignore[list-item]
        (lambda: learner(good).end_constraint("C02"), "Did you mean 'CO2'"),
        (lambda: learner(good).add_constraint(good), "one constraint of the name"),
        (
            lambda: learner(AtMost(11, {"*": 1}, plays=3, name="CO2")).ask(ahead=[plans] * 2),
            "at least 12 of CO2 for these 3 plays.*Raise it",
        ),
        (
            lambda: learner(AtLeast(13, {"*": 1}, plays=3, name="B")).ask(ahead=[plans] * 2),
            "at most 12 of B for these 3 plays.*Lower it.* missed by as little",
        ),
    ]
    for act, words in cases:
        with pytest.raises(InvalidInput, match=f"(?s){words}"):
            act()
    known = learner(AtMost(99, {"air": 1, "sea": 2}, plays=3, name="CO2"), varying_set=True)
    new = Budget(4, [4, 4, 4], names=["air", "sea", "rail"])
    with pytest.raises(InvalidInput, match=r"CO2.*'rail'"):
        known.ask(actions=new)
    assert (known.asked, known.known_arms) == (0, ("air", "sea"))


def test_a_soft_promise_is_overshot_least() -> None:
    plans = Budget(4, [4, 4], names=["air", "sea"])
    co2 = AtMost(5, {"air": 5, "sea": 1}, plays=3, name="CO2", hard=False)
    learner = Learner(plans, loss_range=(0, 100), constraints=[co2])
    for k in range(3):
        learner.ask(ahead=[plans] * (2 - k))
    assert promise_reports(learner)[0].holds == "no: at best 12"
