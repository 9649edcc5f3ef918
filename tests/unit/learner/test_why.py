"""Why a play differs from the best plan: compared with enumeration, on sets of every class."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from examples_of_sets import SETS

from multiplay import (
    ActionSet,
    BootstrapCTS,
    Budget,
    EpsilonGreedy,
    FeatureCTS,
    Features,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Learner,
    LinTS,
    Number,
    Policy,
    PooledCTS,
    Study,
    Transport,
    Why,
    Words,
)
from multiplay.storage import MemoryStore

LANES = (["Lyon", "Lille"], ["north", "south", "coast"])
PLANS = Transport([3, 3], [2, 2, 2], names=LANES)
EUROS: dict[str, Any] = {"words": Words("EUR", "truck")}


def random_learner(actions: ActionSet, **settings: Any) -> Learner:
    """Return a learner that plays at random, after a few reports of different means."""
    low, high = (20.0, 120.0) if actions.linear else (0.0, 1.0)
    if actions.linear:
        settings["loss_range"] = low, high
    learner = Learner(actions, EpsilonGreedy(1.0), seed=3, **settings)
    for _ in range(4):
        play = learner.ask()
        learner.tell(play, losses_of(actions, play.plan, low, high))
    return learner


def losses_of(actions: ActionSet, plan: dict[str, int], low: float, high: float) -> Any:
    """Return losses that differ between arms, by their numbers."""
    share = {name: (1 + 7 * i % 5) / 6 for i, name in enumerate(actions.names)}
    return {
        name: [low + (high - low) * share[name]] * units
        for name, units in plan.items()
        if units and name in share
    }


def expected_of(learner: Learner, actions: ActionSet, action: Any, **features: Any) -> float:
    return learner.expect(dict(zip(actions.names, action.tolist(), strict=True)), **features).total


def check(why: Why, play: Any, totals: dict[tuple[int, ...], float], actions: ActionSet) -> None:
    """Compare an explanation with the expected totals of all plans that were possible."""
    mine = totals[tuple(play.action.tolist())]
    best = actions.sign * min(actions.sign * total for total in totals.values())
    assert why.expected.total == pytest.approx(mine)
    assert why.best.total == pytest.approx(best)
    assert why.extra == pytest.approx(abs(mine - best), abs=1e-9)
    assert why.explores == (abs(mine - best) > 1e-9)
    rows = {row.arm: row for row in why.rows}
    assert {arm: row.units for arm, row in rows.items() if row.units} == {
        arm: units for arm, units in play.plan.items() if units
    }
    of_best = tuple(rows[arm].best_units if arm in rows else 0 for arm in actions.names)
    assert totals[of_best] == pytest.approx(best)  # a plan, and the best one
    for row in why.rows:
        assert np.isnan(row.low) or row.low <= row.mean <= row.high
        if row.reason == "to learn":
            assert row.units > row.best_units
            assert why.explores
        if row.units < row.best_units:
            assert row.reason == "instead"
        if row.units == row.best_units:
            assert row.reason in ("", "fixed", "closed", "at most")
    if why.explores:
        assert "expected extra cost" in str(why).lower() or actions.sense == "max"
    else:
        assert all(row.units == row.best_units for row in why.rows)


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_extra_cost_is_that_of_enumeration(actions: ActionSet) -> None:
    learner = random_learner(actions)
    for _ in range(3):
        play = learner.ask()
        plans = actions.enumerate()
        totals = {tuple(one.tolist()): expected_of(learner, actions, one) for one in plans}
        check(play.why(), play, totals, actions)
        learner.cancel(play)


def test_limits_of_the_day_are_reasons_and_not_part_of_the_extra_cost() -> None:
    sides = (["Lyon", "Lille", "Paris"], LANES[1])
    actions = Transport([3, 3, 2], [2, 3, 3], names=sides)
    learner = random_learner(actions, **EUROS)
    limits: dict[str, Any] = {
        "at_most": {"Lyon->north": 1},
        "exclude": ["Lille->coast"],
        "fixed": {"Lille->south": 1},
    }
    explored = set()
    for _ in range(8):
        play = learner.ask(**limits)
        plans = [one for one in actions.enumerate() if one[0] <= 1 and one[4:6].tolist() == [1, 0]]
        totals = {tuple(one.tolist()): expected_of(learner, actions, one) for one in plans}
        why = play.why()
        check(why, play, totals, actions)
        reasons = {row.arm: row.reason for row in why.rows}
        assert (reasons["Lille->coast"], reasons["Lille->south"]) == ("closed", "fixed")
        at_limit = play.plan["Lyon->north"] == 1 and not why.explores
        assert (reasons.get("Lyon->north") == "at most") >= at_limit
        assert "Fixed: Lille->south. Closed: Lille->coast." in str(why)
        explored.add(why.explores)
        learner.cancel(play)
    assert explored == {True, False}


def test_new_arms_are_believed_to_be_like_the_others() -> None:
    learner = random_learner(PLANS, **EUROS)
    today = Transport([3, 3], [2, 4], names=(["Lyon", "Paris"], ["north", "west"]))
    play = learner.ask(today)
    means = learner.arms().set_index("arm")["mean"][list(today.names)].to_numpy()
    totals = {tuple(one.tolist()): float(one @ means) for one in today.enumerate()}
    why = play.why()
    check(why, play, totals, today)
    assert {row.seen for row in why.rows if "Paris" in row.arm} == {0}


@pytest.mark.slow
def test_features_are_those_of_the_day_of_the_play(tmp_path: Any) -> None:
    """The best plan depends on the day; a saved learner knows the day of a pending play."""
    plans = Budget(2, [2, 2], names=["air", "sea"])
    features = Features(km=Number(centre=0, scale=1))
    learner = Learner(plans, FeatureCTS(), seed=1, features=features, loss_range=(0, 100))
    rng = np.random.default_rng(0)
    for _ in range(40):
        km = {arm: float(rng.uniform(-1, 1)) for arm in plans.names}
        euros = {arm: [50 + 20 * km[arm]] for arm in plans.names}
        learner.learn({"air": 1, "sea": 1}, euros, features={"km": km})
    days = [{"km": {"air": -1.0, "sea": 1.0}}, {"km": {"air": 1.0, "sea": -1.0}}]
    plays = [learner.ask(fixed={"air": 1}, features=day) for day in days]
    plays += [learner.ask(features=day) for day in days]
    learner.save(tmp_path / "learner.npz")
    for known in (learner, Learner.load(tmp_path / "learner.npz")):
        for play, day in zip(plays, days * 2, strict=True):
            why = known.why(play.id)
            possible = plans.enumerate() if play.id > 2 else np.array([[1, 1]])
            totals = {
                tuple(one.tolist()): expected_of(known, plans, one, features=day)
                for one in possible
            }
            check(why, play, totals, plans)
            assert why.expected.total == pytest.approx(play.expected.total)


def test_sentences_use_the_words_of_the_user() -> None:
    learner = Learner(PLANS, GenCTS(), seed=4, loss_range=(0, 250), **EUROS)
    for _ in range(12):
        learner.learn([2, 1, 0, 0, 1, 2], [240.0, 150.0, 0.0, 0.0, 130.0, 300.0])
    why = learner.why(learner.ask())
    assert why.explores
    assert "trucks on Lyon->coast to learn" in str(why)
    assert "0 bills so far" in str(why)
    assert f"expected extra cost of learning today {why.extra:.3g} EUR." in str(why)
    learner.set_words(learner.words._replace(round="week", currency=""))
    again = str(learner.why(1))
    assert "0 reports so far" in again
    assert "learning this week" in again


@pytest.mark.parametrize("sense", ["min", "max"])
def test_other_arms_teach_what_an_arm_never_tried_may_cost(sense: Any) -> None:
    """At ``worth`` the plan costs as much as the best one; ``share`` is a level of intervals."""
    plans = Budget(4, [2] * 8, names=[*"abcdefgh"], sense=sense)
    learner = Learner(plans, EpsilonGreedy(1.0), seed=2, loss_range=(0, 250), words=Words("EUR"))
    for day in range(12):
        learner.learn([1, 1, 1, 1, 0, 0, 0, 0], [90.0 + day % 3, 100.0, 110.0, 160.0, 0, 0, 0, 0])
    sign, found = plans.sign, set()
    for _ in range(40):
        play = learner.ask()
        why = play.why()
        learned = [row for row in why.rows if row.reason == "to learn"]
        new = [row.arm for row in learned if row.arm in "efgh"]
        learner.cancel(play)
        assert (why.untried is not None) == bool(new)
        if why.untried is None:
            continue
        found.add(len(new))
        arms, low, high, worth, share = why.untried
        table = learner.arms(level=1 - 2 * share).set_index("arm")
        assert list(arms) == new
        assert table["low" if sense == "min" else "high"][new[0]] == pytest.approx(worth, rel=1e-4)
        assert (low, high) == tuple(learner.arms().set_index("arm").loc[new[0], ["low", "high"]])
        if len(learned) == len(new):
            costs = table["mean"].to_dict() | dict.fromkeys(new, worth)
            best = sum(row.best_units * costs[row.arm] for row in why.rows)
            assert sum(row.units * costs[row.arm] for row in why.rows) == pytest.approx(best)
        less = "less" if sense == "min" else "more"
        assert (
            f"{less} than {why.words.money(worth)}, which 1 of {round(1 / share)} items does"
            in (str(why))
        )
        assert 0 < share < 0.5
        assert sign * worth < sign * table["mean"][new[0]]
    assert found >= {1, 2}


@pytest.mark.parametrize("forgets", ["forget", "window"])
def test_an_arm_whose_reports_no_longer_count_was_tried(forgets: str) -> None:
    """It is believed to be like the others, and the sentence says why."""
    plans = Budget(4, [2] * 6, names=[*"abcdef"])
    policy = GenCTS(window=20) if forgets == "window" else GenCTS()
    learner = Learner(plans, policy, seed=3, loss_range=(0, 250), words=Words("EUR", "truck"))
    for day in range(25):
        units = [1, 1, 1, 1, 0, 0] if day < 3 else [2, 1, 1, 0, 0, 0]
        prices = [90.0, 100.0, 110.0, 160.0]
        bills = {arm: [price] * n for arm, price, n in zip("abcd", prices, units[:4], strict=True)}
        play = learner.ask(fixed=dict(zip("abcdef", units, strict=True)))
        learner.tell(play, bills)
    if forgets == "forget":
        learner.forget("d", before=26)
    found = set[str]()
    for _ in range(60):
        play = learner.ask()
        why = play.why()
        learner.cancel(play)
        if why.untried is not None:
            found.add(str(why))
            assert {row.seen for row in why.rows if row.arm in why.untried.arms} <= {0, 3}
            assert ("d was never tried" in str(why)) is False
            assert ("d no longer count." in str(why)) == ("d" in why.untried.arms)
    assert any("The 3 bills of d no longer count. Items cost" in text for text in found)
    assert any("e was never tried. The 3 bills of d no longer count." in text for text in found)


def test_nothing_is_taught_where_arms_are_not_alike() -> None:
    """Neither before the first report, nor with ranges by arm, nor with features."""
    given: tuple[dict[str, Any], ...] = (
        {"loss_range": {"sea": (0, 90), "*": (0, 100)}},
        {"loss_range": (0, 100), "features": Features(km=Number(centre=0, scale=1))},
    )
    plans = Budget(2, [2, 2, 2], names=["air", "sea", "rail"])
    for settings in given:
        policy = FeatureCTS() if "features" in settings else EpsilonGreedy(1.0)
        learner = Learner(plans, policy, seed=1, **settings)
        day: dict[str, Any] = {"features": {"km": 1.0}} if "features" in settings else {}
        for _ in range(20):
            learner.learn({"air": 1, "sea": 1}, {"air": 20.0, "sea": 30.0}, **day)
        explained = [learner.ask(**day).why() for _ in range(30)]
        assert {why.untried for why in explained} == {None}
    ordered = Learner(plans, BootstrapCTS(unit_means="ordered"), seed=1, loss_range=(0, 100))
    ordered.learn({"air": 2}, {"air": [20.0, 40.0]})
    assert {ordered.ask().why().untried for _ in range(30)} == {None}
    fresh = Learner(plans, EpsilonGreedy(1.0), seed=1, loss_range=(0, 100))
    assert fresh.ask().why().untried is None


def test_a_plan_is_certain_where_nothing_else_can_be_learned() -> None:
    """Of two arms with more units, only the one with a wide interval is there to learn."""
    plans = Transport([2, 2], [2, 2], names=(["A", "B"], ["x", "y"]))
    learner = Learner(plans, EpsilonGreedy(1.0), seed=0, loss_range=(0, 100))
    for i in range(400):
        learner.learn([2, 0, 0, 2], [20.0 + i % 2, 0.0, 0.0, 20.0 + i % 2])
        learner.learn([0, 2, 2, 0], {"A->y": 60.0 + i % 2, "B->x": [None, None]}, missing="ignore")
    while (why := learner.ask().why()).explores is False:
        pass
    reasons = {row.arm: row.reason for row in why.rows}
    assert (reasons["A->y"], reasons["B->x"]) == ("instead", "to learn")


def test_a_plan_that_avoids_doubtful_arms_says_so() -> None:
    """Nothing is learned of arms with narrow intervals: the others may be worse than believed."""
    learner = Learner(PLANS, EpsilonGreedy(1.0), seed=1, loss_range=(0, 250), **EUROS)
    for day in range(200):
        cost = 120.0 + day % 2
        learner.learn([1, 2, 0, 1, 0, 2], [cost, 2 * cost, 0.0, cost, 0.0, 2 * cost])
    learner.learn(
        [2, 0, 1, 0, 2, 1], {"Lyon->coast": 90.0, "Lille->south": 180.0}, missing="ignore"
    )
    while (play := learner.ask()).plan["Lyon->coast"] or play.plan["Lille->south"]:
        pass
    why = play.why()
    assert why.explores
    assert "to learn" not in {row.reason for row in why.rows}
    assert "0 trucks on Lille->south, 2 fewer than in the best plan: 2 bills so far" in str(why)


def test_a_play_that_ended_is_explained_by_the_beliefs_of_its_time() -> None:
    """Also where a report from before was corrected in the meantime, or hidden later."""
    learner = Learner(PLANS, loss_range=(0, 250), seed=2)
    then = {}
    for day in range(10):
        play = learner.ask(fixed={"Lyon->coast": day % 2})
        then[play.id] = play.why()
        costs = {arm: [100.0 + 10 * day] * units for arm, units in play.plan.items()}
        learner.cancel(play) if day == 4 else learner.tell(play.id, costs)
    learner.retract(2)
    learner.forget("Lyon->coast", before=5)
    del then[2]  # pending again
    for id, why in then.items():
        found = learner.why(id)
        assert found.asked is not None
        assert dataclasses.replace(found, asked=None) == why
    play = learner.ask()
    learner.tell(play.id, {arm: 100.0 * units for arm, units in play.plan.items()})
    assert play.why().rows != learner.why(3).rows


@pytest.mark.parametrize("policy", [PooledCTS(), GenLBINFV()], ids=repr)
@pytest.mark.parametrize("stored", [False, True])
def test_a_past_play_is_explained_after_costs_were_forgotten_and_corrected(
    policy: Policy, stored: bool
) -> None:
    """Also by policies that learn the past again for that."""
    given: dict[str, Any] = {"loss_range": (0, 250), "seed": 2}
    owner: Learner | Study
    if stored:
        owner = Study.create("lanes", PLANS, policy, store=MemoryStore(), **given)
    else:
        owner = Learner(PLANS, policy, **given)
    then = {}
    for day in range(8):
        play = owner.ask()
        then[play.id] = play.why()
        costs = {arm: [100.0 + 10 * day] * units for arm, units in play.plan.items()}
        owner.tell(play.id, costs)
        if day == 4:
            owner.forget("Lyon->coast", before=3)
        if day == 5:
            owner.correct(2, {row.arm: 90.0 * row.units for row in then[2].rows if row.units})
    for id, why in then.items():
        assert dataclasses.replace(owner.why(id), asked=None) == why


def test_refusals() -> None:
    learner = random_learner(PLANS)
    play = learner.ask()
    learner.cancel(play)
    for wrong in (99, "x", None, True):
        with pytest.raises(
            InvalidInput, match=r"play: expected (a pending play|the key of a play)"
        ):
            learner.why(wrong)  # type: ignore[arg-type]
    rounds = Learner(Budget(2, [1, 1, 1]), LinTS(), seed=0)
    with pytest.raises(InvalidInput, match="too few totals of rounds"):
        rounds.why(rounds.ask())


def test_the_journal_says_which_plays_explored() -> None:
    study = Study.create(
        "lanes", PLANS, EpsilonGreedy(0.5), loss_range=(0, 250), store="memory://why"
    )
    for _ in range(12):
        play = study.ask()
        said, why = next(e for e in study.entries() if e.labels.play == play.id), play.why()
        assert (said.record.header["best"] < said.record.header["expected"]) == why.explores
        assert said.record.header["best"] == pytest.approx(why.best.total)
        study.tell(play, {arm: [40.0 + len(arm)] * units for arm, units in play.plan.items()})
    assert study.verify().ok
