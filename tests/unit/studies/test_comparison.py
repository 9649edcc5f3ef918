"""Played days of journals and learners, and the verbs savings, cost_of_learning and versus."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from multiplay import (
    Coverage,
    FeatureCTS,
    Features,
    FixedPlan,
    FollowTheLeader,
    GenCTS,
    GenLBINFV,
    InProportion,
    Learner,
    LinTS,
    Number,
    Play,
    PriceList,
    RandomAction,
    Reports,
    Study,
    Transport,
)
from multiplay._support import deadline
from multiplay.actions import Rule
from multiplay.errors import Conflict, InvalidInput
from multiplay.learner import comparison
from multiplay.learner.comparison import PlayedDays
from multiplay.savings import PlayedDay
from multiplay.storage import MemoryStore
from multiplay.studies.comparison import days_since, read_days

LANES = Transport([3, 2], [2, 3], names=(["Lyon", "Lille"], ["north", "south"]))
SMALL = Transport([1, 2], [2, 1], names=(["Lyon", "Lille"], ["north", "south"]))
MEANS = {"Lyon->north": 60.0, "Lyon->south": 120.0, "Lille->north": 90.0, "Lille->south": 150.0}
SPLIT = {"Lyon->north": 2, "Lyon->south": 1, "Lille->south": 2}
SETTINGS: dict[str, Any] = {
    "loss_range": (20, 250),
    "reports": Reports(outside="clip", missing="ignore"),
}


def costs(plan: dict[str, int], day: int) -> dict[str, Any]:
    """Return a loss for each unit, which depends on the day."""
    rng = np.random.default_rng([7, day])
    return {arm: (MEANS[arm] * rng.uniform(0.6, 1.4, n)).tolist() for arm, n in plan.items() if n}


def study_of(policy: Any = None, **settings: Any) -> Study:
    """Return a new study in memory."""
    return Study.create("lanes", LANES, policy, store=MemoryStore(), **SETTINGS | settings)


def played(study: Any, days: int = 21) -> Any:
    """Return a study or learner that was told some days."""
    for day in range(days):
        play = study.ask(key=f"2026-03-{day + 1:02}")
        study.tell(play, costs(play.plan, day))
    return study


def of_learner(learner: Learner) -> PlayedDays:
    """Return the played days of a learner."""
    first = learner.replica.beginning(learner.journal)
    return days_since(learner.journal, first, len(learner.journal))


def of_study(study: Study) -> PlayedDays:
    """Return the played days of a study."""
    return read_days(study._journal, study.head.number + 1)


def same(one: PlayedDays, other: PlayedDays) -> bool:
    """Return whether two histories are equal, bit for bit."""
    both = zip([*one.days, *one.bills], [*other.days, *other.bills], strict=True)
    return all(_plain(a) == _plain(b) for a, b in both)


def _plain(day: Any) -> str:
    own = (*day.bills, *day.action, day.actions, day.x) if isinstance(day, PlayedDay) else (*day,)
    return repr([one.tolist() if isinstance(one, np.ndarray) else one for one in own])


def eventful(study: Any) -> None:
    """Let a study or learner go through all kinds of reports."""
    when = 86_400.0 * 20_000
    for day in range(4):  # complete reports, on different sets, one of them limited
        actions = SMALL if day % 2 else None
        limits: dict[str, Any] = {"at_most": {"Lyon->north": 1}} if day == 2 else {}
        play = study.ask(actions, key=f"day {day}", at=when + day, **limits)
        study.tell(play, costs(play.plan, day), at=when + day + 0.5)
    parts = study.ask(at=when + 5)
    losses = costs(parts.plan, 5)
    first, *rest = losses
    study.tell(parts, {first: losses[first]}, final=False)
    study.tell(parts, {arm: losses[arm] for arm in rest})
    gaps = study.ask(at=when + 4, key="2030-01-02 early")  # a date in the key
    study.tell(gaps, {arm: [None, *of_arm[1:]] for arm, of_arm in costs(gaps.plan, 6).items()})
    totals = study.ask(at=when + 7)
    study.tell(totals, {arm: sum(of_arm) for arm, of_arm in costs(totals.plan, 7).items()})
    closed = study.ask(at=when + 8)
    study.tell(closed, dict([next(iter(costs(closed.plan, 8).items()))]), final=False)
    study.close(closed)
    study.close(study.ask(at=when + 9))  # nothing is known of it
    study.cancel(study.ask(at=when + 10))
    outside = study.ask(at=when + 11)
    study.tell(outside, {arm: [900.0] * n for arm, n in outside.plan.items() if n})  # clipped
    late, later = study.ask(at=when + 12), study.ask(at=when + 13)
    study.tell(later, costs(later.plan, 13))
    study.tell(late, costs(late.plan, 12))
    study.ask(at=when + 14)  # pending
    study.learn(SPLIT, costs(SPLIT, 15), at=when - 100)
    table = {"arm": ["Lyon->north", "Lyon->north", "Calais->south"], "loss": [70.0, 71.0, np.nan]}
    study.learn_table(table | {"round": ["2026-01-01", "2026-01-01", "2026-01-02"]})
    study.learn_table(table | {"round": [1, 2, 2]})


def test_a_study_and_a_learner_have_the_same_played_days() -> None:
    study = study_of(FollowTheLeader(), varying_set=True)  # which uses no random numbers
    learner = Learner(LANES, FollowTheLeader(), varying_set=True, **SETTINGS)
    eventful(study)
    eventful(learner)
    found = of_study(study)
    assert same(found, of_learner(learner))
    assert (len(found.days), len(found.bills)) == (12, 5)
    assert [day.time for day in found.days] == sorted(day.time for day in found.days)
    assert found.days[-1].key == "2030-01-02 early"
    assert "Limited" in repr(found.days[2].actions)
    plans = study.plans().query("status == 'told'")
    told = plans.groupby("id")[["units", "seen", "loss"]].sum().to_numpy()
    sums = [(d.action.sum(), d.units.sum(), d.total.sum()) for d in _by_ask(found.days)]
    np.testing.assert_allclose(np.delete(sums, 9, axis=0), np.delete(told, 9, axis=0))
    assert sums[9] == (5, 5, 5 * 250.0)  # 900 is outside the range
    totals = _by_ask(found.days)[6]
    assert np.isnan(totals.squares).tolist() == (totals.units > 1).tolist()
    complete = found.days[0]
    squares = [sum(x**2 for x in of_arm) for of_arm in costs(_plan(complete), 0).values()]
    np.testing.assert_allclose(complete.squares[complete.action > 0], squares)


def _by_ask(days: list[PlayedDay]) -> list[PlayedDay]:
    """Return the days of ``eventful`` in the order in which they were asked."""
    return [*days[:5], days[-1], *days[5:-1]]


def _plan(day: PlayedDay) -> dict[str, int]:
    return dict(zip(day.actions.names, day.action.tolist(), strict=True))


def test_the_mean_of_a_play_is_logged_where_the_policy_draws_it() -> None:
    study = study_of(GenLBINFV())
    play = study.ask()
    with study._current() as engine:
        x = engine.pending[play.id].memo["x"][0]
    study.tell(play, costs(play.plan, 0))
    study.learn(SPLIT, costs(SPLIT, 1), key="1970-01-02", at=0)
    (day,), (bills,) = of_study(study)
    assert bills.time == 86_400.0
    assert day.x is not None
    assert day.x.tolist() == x.tolist()


def test_corrected_losses_are_those_that_were_told_right_from_the_beginning() -> None:
    plan, wrong = SPLIT, {"Lyon->north": [33.0]}
    right, twin = study_of(RandomAction()), study_of(RandomAction())  # plans depend on no losses
    for study in (right, twin):
        told = study is right
        for day in range(16):
            play = study.ask(key=f"2026-03-{day + 1:02}")
            losses = costs(play.plan, day)
            if told or day % 4 == 3:
                study.tell(play, losses)
            elif day % 4 == 0:
                study.tell(play, wrong if play.plan["Lyon->north"] else {}, missing="ignore")
                study.correct(play, losses)
            elif day % 4 == 1:
                study.tell(play, dict([next(iter(losses.items()))]), final=False)
                study.close(play)
                study.correct(play, {arm: [0.5 * x for x in of] for arm, of in losses.items()})
                study.correct(play, losses)
            else:
                study.tell(play, {}, missing="ignore")
                study.retract(play)
                study.tell(play, losses)
        study.learn(plan, costs(plan, 99) if told else costs(plan, 98), key="past", at=0)
        bad = {"arm": ["Lyon->north"], "round": ["2026-01-01"], "loss": [99.0]}
        if not told:
            study.correct("past", costs(plan, 99))
            study.learn_table(bad, key="bad")
            study.retract("bad")
    assert same(of_study(right), of_study(twin))
    assert _answers(right) == _answers(twin)


def _answers(study: Any) -> list[str]:
    """Return savings as text, without the last entry."""
    found = [
        study.savings(InProportion()),
        study.savings(PriceList(MEANS)),
        study.cost_of_learning(),
    ]
    return [repr(replace(one, entry=None)) for one in found]


def test_a_study_and_a_learner_save_the_same_in_the_period() -> None:
    learner = Learner(LANES, FollowTheLeader(), **SETTINGS)
    study = study_of(FollowTheLeader())
    for one in (learner, study):
        plan = {"Lyon->north": 1, "Lyon->south": 2, "Lille->north": 1, "Lille->south": 1}
        for day in range(6):
            one.learn(plan, costs(plan, 50 + day), at=86_400.0 * (20_000 + day))
        played(one)
    assert _answers(study) == _answers(learner)
    assert study.savings(InProportion()).entry == study.head.number
    whole = learner.savings(InProportion())
    part = learner.savings(InProportion(), since="2026-03-03", until=date(2026, 3, 14))
    assert (whole.days, part.days) == (21, 12)
    assert part.rests_on.bills.equals(whole.rests_on.bills)
    at = datetime(2026, 3, 14, tzinfo=UTC)
    assert learner.savings(InProportion(), since="2026-03-03", until=at) == part
    assert learner.savings(InProportion(), until="2026-03-14T00:00").days == 14


def test_plans_by_key_are_read_from_dicts_tables_and_files(tmp_path: Path) -> None:
    learner = played(Learner(LANES, RandomAction(), **SETTINGS))
    plan = SPLIT
    keys = [f"2026-03-{day + 1:02}" for day in range(21)]
    rows = [(key, arm, units) for key in keys for arm, units in plan.items()]
    table = pd.DataFrame(rows, columns=["key", "arm", "units"])
    table.to_csv(tmp_path / "split.csv", index=False)
    dates = table.assign(key=pd.to_datetime(table["key"]))
    expected = replace(learner.savings(FixedPlan(plan)), rule="the given plans")
    for given in (dict.fromkeys(keys, plan), table, dates, tmp_path / "split.csv"):
        assert learner.savings(given) == expected
    of_function = learner.savings(lambda actions: [plan.get(name, 0) for name in actions.names])
    assert of_function == replace(expected, rule="the given function")
    some = learner.savings(dict.fromkeys(keys[:15], plan))
    assert (some.days, some.left_out) == (15, 6)


def _fails(actions: Any) -> Any:
    raise ZeroDivisionError("no plan")


@pytest.mark.parametrize(
    ("versus", "argument", "got"),
    [
        (None, "versus", "None"),
        (InProportion, "versus", "<class"),
        (7, "versus", "7"),
        ([1, 2], "versus", "[1, 2]"),
        (SPLIT, "versus['Lyon->north']", "2"),
        ({"2026-03-01": {"Lyon->north": 1.5}}, "versus['2026-03-01']['Lyon->north']", "1.5"),
        ({"2026-03-01": {"Lyon->nord": 1}}, "versus['2026-03-01']", "'Lyon->nord'"),
        ({}, "versus", "none for 12 of 12 plays (none with the key '2026-03-01')"),
        ({"other": SPLIT}, "versus", "none for 12 of 12 plays (none with the key '2026-03-01')"),
        (FixedPlan({"Lyon->north": 1}), "versus", "none for 12 of 12 plays"),
        (PriceList({"Lyon->north": 1.0}), "versus", "none for 12 of 12 plays"),
        (lambda actions: actions.n * 9, "versus", "none for 12 of 12 plays (the set of play"),
        (_fails, "versus", "ZeroDivisionError: no plan"),
        (lambda actions: [0.5] * 4, "versus", "InvalidInput: plan"),
        (lambda actions: [1], "versus", "an array of shape (1,)"),
        (lambda actions: "all", "versus", "InvalidInput: plan"),
        ("nowhere.csv", "versus", "nowhere.csv"),
        (pd.DataFrame({"key": ["a"], "arm": ["b"]}), "versus", "'key', 'arm'"),
        (
            pd.DataFrame({"key": ["a"] * 2, "arm": ["b"] * 2, "units": [1, 1]}),
            "versus, row 1",
            "'b' of 'a' again",
        ),
        (
            pd.DataFrame({"key": ["a"], "arm": ["b"], "units": [-1]}),
            "versus, row 0, units",
            "-1",
        ),
    ],
)
def test_bad_rules_are_refused(learner: Learner, versus: Any, argument: str, got: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        learner.savings(versus)
    assert refused.value.argument == argument
    assert str(refused.value.got).startswith(got)


@pytest.fixture(scope="module")
def learner() -> Learner:
    """Return a learner that was told 12 days."""
    found: Learner = played(Learner(LANES, RandomAction(), **SETTINGS), 12)
    return found


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"level": 1.0}, "level"),
        ({"method": "magic"}, "method"),
        ({"since": "March"}, "since"),
        ({"until": "2026-02-31"}, "until"),
        ({"until": True}, "until"),
        ({"since": "2026-03-05", "until": "2026-03-04"}, "since"),
        ({"since": "2027-01-01"}, "since"),  # no plays
        ({"until": "2026-03-08"}, "until"),  # 8 plays
    ],
)
def test_bad_periods_and_levels_are_refused(
    learner: Learner, options: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        learner.savings(InProportion(), **options)
    assert refused.value.argument == argument


def test_totals_of_rounds_and_other_costs_are_refused() -> None:
    by_round = Learner(LANES, LinTS(), loss_range=(0, 250))
    for _ in range(12):
        by_round.tell(by_round.ask(), 500.0)
    with pytest.raises(InvalidInput, match="totals of rounds"):
        by_round.savings(InProportion())
    covered = Learner(Coverage.example(), GenCTS())
    for _ in range(12):
        play = covered.ask()
        covered.tell(play, {arm: [0.5] * n for arm, n in play.plan.items()})
    with pytest.raises(InvalidInput, match="sum"):
        covered.cost_of_learning()


def test_a_study_refuses_a_function_and_names_the_rule_that_it_needs() -> None:
    study = played(study_of(RandomAction()), 10)
    with pytest.raises(InvalidInput, match="A journal cannot keep a function"):
        study.savings(lambda actions: actions.n)
    with pytest.raises(InvalidInput, match=r"study.versus = InProportion\(\)"):
        study.savings()
    study.versus = InProportion()
    assert study.savings().rule == InProportion().text


def test_the_rule_of_a_study_is_kept_by_the_journal(tmp_path: Path) -> None:
    store, rules = MemoryStore(), [PriceList(MEANS), FixedPlan(SPLIT, nearest=True), InProportion()]
    study = Study.create("lanes", LANES, RandomAction(), store=store, loss_range=(0, 250))
    assert study.versus is None
    for rule in rules:
        study.set_versus(rule, key=rule.text)
        assert Study.open("lanes", store=store).versus == rule
    entries = study.head.number
    study.set_versus(rules[0], key=rules[0].text)  # the same request again
    assert study.head.number == entries
    assert study.versus == rules[-1]
    with pytest.raises(Conflict):
        study.set_versus(rules[1], key=rules[0].text)
    for wrong in (InProportion, "in proportion", lambda actions: actions.n, Mine()):
        with pytest.raises(InvalidInput) as refused:
            study.versus = wrong
        assert refused.value.argument == "versus"
    assert study.head.number == entries
    study.export(tmp_path / "lanes.jsonl")
    copied = Study.import_journal("copy", tmp_path / "lanes.jsonl", store=store)
    assert copied.versus == rules[-1]
    assert copied.verify().ok
    study.versus = None
    assert (study.versus, copied.versus) == (None, rules[-1])


class Mine(Rule):
    """A rule of a user."""

    @classmethod
    def example(cls) -> Mine:
        """Return a rule."""
        return cls()

    @property
    def text(self) -> str:
        """Its text."""
        return "mine"

    def plan(self, actions: Any) -> Any:
        """Return the plan of another rule."""
        return InProportion().plan(actions)


@pytest.mark.slow
def test_a_comparison_is_cached_and_does_not_lock_the_study(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study, seen = played(study_of(RandomAction()), 12), list[int]()
    plans_of = comparison.plans_of

    def meanwhile(*given: Any) -> Any:  # another thread uses the same handle
        other = threading.Thread(target=lambda: seen.append(study.asked))
        other.start()
        other.join(timeout=10)
        return plans_of(*given)

    monkeypatch.setattr(comparison, "plans_of", meanwhile)
    found = study.savings(InProportion())
    assert seen == [12]
    assert study.savings(InProportion()) is found
    assert study.savings(InProportion(), level=0.9).level == 0.9
    study.ask()
    assert replace(study.savings(InProportion()), entry=found.entry) == found
    assert study.savings(Mine()).total == study.savings(Mine()).total == found.total
    assert seen == [12, 12, *[13] * 3]
    with deadline.before(1e9) as until:
        until.truncated = True  # the plans of the rule may not be the best
        study.savings(InProportion(), level=0.8)
    study.savings(InProportion(), level=0.8)
    assert len(seen) == 7


EARLY = {"Lyon->south": 3, "Lille->north": 2}


TODAY = {"plan": EARLY}  # what ``Scripted`` plays


@dataclass(frozen=True, repr=False)
class Scripted(FeatureCTS):
    """Plays the plan of today, and learns as ``FeatureCTS``, with features or without."""

    def choose(self, actions: Any, state: Any, rng: Any) -> Play:
        action = np.array([[TODAY["plan"].get(arm, 0) for arm in actions.names]])
        return Play(action, self.memo(actions, action))


def test_logged_rows_without_a_bill_have_features() -> None:
    """A row whose cost is missing counts for nothing, and the others for their own features."""
    arm_features = {"km": dict(zip(LANES.names, (100.0, 0.0, 300.0, 0.0), strict=True))}
    rows = pd.DataFrame(
        {
            "arm": ["Lyon->south", "Lyon->north", "Lille->south"],
            "round": 1,
            "loss": [70.0, 50.0, np.nan],
        }
    )
    found = []
    for table in (rows[:2], rows):
        learner = Learner(
            LANES,
            Scripted(),
            loss_range=(0, 300),
            features=Features(km=Number(centre=100, scale=100)),
            arm_features=arm_features,
            reports=Reports(missing="ignore"),
        )
        learner.learn_table(table)
        TODAY["plan"] = SPLIT
        for _ in range(10):
            play = learner.ask()
            learner.tell(play, {arm: [60.0] * n for arm, n in play.plan.items()})
        saved = learner.savings(FixedPlan(EARLY))
        found.append((saved.total, saved.low, saved.high))
    assert found[0] == pytest.approx(found[1])


def test_declared_features_say_what_a_lane_that_was_left_would_have_cost() -> None:
    """The price of one lane follows fuel three times as much as any lane that is still used."""
    km = {"Lyon->north": 100.0, "Lyon->south": 0.0, "Lille->north": 300.0, "Lille->south": 0.0}
    features = Features(
        km=Number(centre=100, scale=100),
        fuel=Number(centre=1.2, scale=0.2),
        products=[("km", "fuel")],
    )
    given: dict[str, Any] = {"features": features, "arm_features": {"km": km}}
    declared = Learner(LANES, Scripted(), loss_range=(0, 300), **given)
    plain, true = Learner(LANES, Scripted(), loss_range=(0, 300)), 0.0
    rng = np.random.default_rng(5)
    for day in range(42):
        fuel = 1.0 + 0.02 * max(day - 13, 0)
        price = {arm: 40.0 + 0.3 * far * fuel for arm, far in km.items()}
        TODAY["plan"] = EARLY if day < 14 and day % 2 else SPLIT
        play, same = declared.ask(features={"fuel": fuel}), plain.ask()
        bills = {arm: price[arm] * rng.uniform(0.95, 1.05, n) for arm, n in play.plan.items()}
        declared.tell(play, bills)
        plain.tell(same, bills)
        true += sum(price[arm] * (EARLY.get(arm, 0) - n) for arm, n in play.plan.items())
    found, without = (one.savings(FixedPlan(EARLY)) for one in (declared, plain))
    assert found.low < true < found.high
    assert found.total == pytest.approx(true, rel=0.1)
    assert without.high < true
