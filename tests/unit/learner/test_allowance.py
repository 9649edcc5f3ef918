"""Allowance of learners and studies: what counts, what is kept, and what is refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from constraint_reports import baseline_report
from feature_twin import FeatureTwin

from multiplay import (
    ESCB,
    Baseline,
    BootstrapCTS,
    Budget,
    FeatureCTS,
    Features,
    Flag,
    GenCTS,
    GenLBINFV,
    InProportion,
    InvalidInput,
    Learner,
    PendingPlay,
    PriceList,
    Study,
    Transport,
    Words,
)
from multiplay.constraints.baseline import z_of

EUROS = (0.0, 250.0)
PLANS = Transport([5, 6, 7], [6, 7, 5])
MEANS = dict(zip(PLANS.names, np.random.default_rng(1).uniform(40, 160, PLANS.d), strict=True))
MONDAY = datetime(2026, 11, 16, 8, tzinfo=UTC)
SHARE = Baseline(InProportion(), 0.05)
SETTINGS: dict[str, Any] = {"loss_range": EUROS, "constraints": [SHARE]}
WEEKLY: dict[str, Any] = SETTINGS | {"constraints": [replace(SHARE, per="week")]}
Live = Learner | Study
STORE = "memory://allowance"


def bills(play: PendingPlay) -> dict[str, list[float]]:
    """Return costs that depend on the play only."""
    rng = np.random.default_rng(play.id % 1000)
    return {a: (MEANS[a] * rng.uniform(0.6, 1.4, k)).tolist() for a, k in play.plan.items() if k}


def day(live: Live, number: int, **given: Any) -> PendingPlay:
    """Ask for the play of a day, and tell its costs."""
    play = live.ask(key=f"day {number}", **given)
    live.tell(play, bills(play))
    return play


def by_hand(live: Live, plays: list[PendingPlay], share: float, sure: float) -> tuple[float, ...]:
    """Compute the allowance from plays and the losses told, arm by arm."""
    table = live.arms().set_index("arm")
    spent = left = square = tail = 0.0
    risk = math.log(1 / (1 - sure))
    for arm in MEANS:
        played = sum(play.plan[arm] for play in plays)
        base = sum(play.baseline[arm] for play in plays if play.baseline is not None)
        told = [loss for play in plays for loss in bills(play).get(arm, [])]
        assert len(told) == table["seen"][arm]
        losses, weight = np.array([*EUROS, *told]), (1 + share) * base - played
        m, v = losses.mean(), losses.var() / (len(losses) + 1)
        seen = np.var(told) * len(told) / len(losses) / (len(losses) + 1) if told else 0.0
        spent += (played - base) * m
        left += weight * m
        square += (z_of(sure) ** 2 * (v - seen) + 2 * risk * seen) * weight**2
        units = m * (250 - m) / v - 1  # of a beta distribution with these moments
        tail = max(tail, -weight * risk * (250 - 2 * m) / (units + 2))
    restricted = sum(play.restricted for play in plays)
    return (spent, left, left - square**0.5 - tail, len(plays), restricted)


def test_allowance_by_hand_and_first_play() -> None:
    learner = Learner(
        PLANS, BootstrapCTS(), **SETTINGS | {"constraints": [replace(SHARE, sure=0.9)]}
    )
    plays = [day(learner, k) for k in range(12)]
    first = plays[0]
    assert (
        first.plan
        == first.baseline
        == dict(zip(PLANS.names, InProportion().plan(PLANS).tolist(), strict=True))
    )
    assert first.explores == 0
    assert plays[-1].explores == sum(max(plays[-1].plan[a] - first.plan[a], 0) for a in MEANS) > 0
    assert baseline_report(learner)[2:] == pytest.approx(by_hand(learner, plays, 0.05, 0.9))


def test_the_policy_is_free_again_with_its_own_random_numbers() -> None:
    """A huge allowance changes nothing, and a tiny one begins with the baseline."""
    for policy in (GenCTS(), BootstrapCTS(), None):
        free = Learner(PLANS, policy, loss_range=EUROS)
        huge = Learner(PLANS, policy, loss_range=EUROS, constraints=[Baseline(InProportion(), 1e6)])
        tiny = Learner(
            PLANS, policy, loss_range=EUROS, constraints=[Baseline(InProportion(), 1e-9)]
        )
        for k in range(5):
            ours, theirs, none = (day(one, k) for one in (huge, free, tiny))
            assert ours.plan == theirs.plan
            assert not ours.restricted
            assert none.plan == none.baseline or k
            assert (theirs.baseline, theirs.explores) == (None, None)


def make_learner(**settings: Any) -> Learner:
    return Learner(PLANS, **settings)


def make_study(**settings: Any) -> Study:
    if "allowed" in Study.names(store=STORE):
        Study.delete("allowed", store=STORE)
    return Study.create("allowed", PLANS, store=STORE, **settings)


BOTH = pytest.mark.parametrize("make", [make_learner, make_study])


@BOTH
def test_pending_plays_count_cancelled_ones_do_not(make: Callable[..., Live]) -> None:
    live = make(**SETTINGS)
    for k in range(4):
        day(live, k)
    before = baseline_report(live)
    waiting = [live.ask() for _ in range(3)]
    assert baseline_report(live).days == before.days + 3
    assert baseline_report(live) != before
    live.cancel(waiting[0])
    live.expire(0.0)
    assert baseline_report(live) == before
    live.learn(waiting[0].plan, bills(waiting[0]))  # an external plan is not counted
    assert baseline_report(live).days == before.days
    play = live.ask()
    live.tell(play, {}, missing="ignore")  # of which nothing was seen: it was played
    assert baseline_report(live).days == before.days + 1


@BOTH
def test_corrections_change_beliefs_and_not_the_units(make: Callable[..., Live]) -> None:
    live, twin = make(**SETTINGS), Learner(PLANS, **SETTINGS)
    plays = [day(live, k) for k in range(8)]
    before = baseline_report(live)
    wrong = {arm: [200.0] * len(losses) for arm, losses in bills(plays[3]).items()}
    live.correct("day 3", wrong)
    assert baseline_report(live).days == before.days
    assert baseline_report(live).spent != before.spent
    live.correct("day 3", bills(plays[3]))
    assert baseline_report(live)[2:] == pytest.approx(before[2:])
    live.retract("day 7")
    assert baseline_report(live).days == before.days  # it is pending again
    live.cancel("day 7")
    assert baseline_report(live).days == before.days - 1
    assert [day(twin, k).baseline for k in range(2)] == [play.baseline for play in plays[:2]]
    assert live.ask(key="day 2").restricted == plays[2].restricted  # of a closed play
    assert live.ask(key="day 2").baseline == plays[2].baseline


def test_weeks_begin_on_monday() -> None:
    learner = Learner(PLANS, **WEEKLY)
    second = 86_400.0
    for k in range(6):
        day(learner, k, at=MONDAY.timestamp() + k * second)
    monday = learner.ask(at=MONDAY.timestamp() + 7 * second)
    assert baseline_report(learner).days == 7
    dated = Learner(PLANS, **WEEKLY)  # asked at any time: the dates of keys count
    for k in (*range(6), 7):
        play = dated.ask(key=f"{MONDAY + timedelta(k):%Y-%m-%d}")
        if k < 6:
            dated.tell(play, bills(play))
    assert baseline_report(dated) == baseline_report(learner)
    state, base = learner.engine.constraints.allowance, monday.baseline
    assert state is not None
    assert base is not None
    assert state.units[1].tolist() == list(base.values())
    learner.cancel(monday)
    assert not state.units.any()
    assert baseline_report(learner)[2:5] == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("rule", [InProportion(), PriceList(MEANS), "each day"])
def test_study_verifies_reopens_and_follows(rule: Any) -> None:
    settings = {**SETTINGS, "constraints": [Baseline(rule, per="week")]}
    given: dict[str, Any] = {}
    if rule == "each day":
        given["baseline"] = dict(zip(PLANS.names, InProportion().plan(PLANS).tolist(), strict=True))
    study = make_study(**settings, varying_set=True)
    other = Study.open("allowed", store=STORE)
    small = Transport([2, 6, 7], [5, 5, 5])
    for k in range(40):  # snapshots are written on the way
        live = (study, other)[k % 2]
        own = dict(given)
        if rule == "each day" and k % 5 == 4:
            own["baseline"] = dict(zip(small.names, InProportion().plan(small), strict=True))
        play = live.ask(small if k % 5 == 4 else None, at=MONDAY.timestamp() + k * 86_400.0, **own)
        if k % 7 == 3:
            live.cancel(play)
        else:
            live.tell(play, bills(play))
    assert baseline_report(study) == baseline_report(other)
    assert baseline_report(study).days == 34
    verified = study.verify()
    assert verified.ok, verified
    again = Study.open("allowed", store=STORE)
    assert baseline_report(again) == baseline_report(study)
    assert again.ask(**given).plan == study.pending()[-1].plan


def test_save_and_load_continue(tmp_path: Path) -> None:
    learner = Learner(PLANS, **WEEKLY)
    for k in range(5):
        day(learner, k)
    waiting = learner.ask()
    learner.save(tmp_path / "learner")
    loaded = Learner.load(tmp_path / "learner")
    assert baseline_report(loaded) == baseline_report(learner)
    assert loaded.ask().plan == learner.ask().plan
    loaded.cancel(waiting.id)
    learner.cancel(waiting.id)
    learner.correct(
        "day 3", {a: [90.0] * len(k) for a, k in bills(learner.ask(key="day 3")).items()}
    )
    loaded.correct("day 3", {a: [90.0] * len(k) for a, k in bills(loaded.ask(key="day 3")).items()})
    assert baseline_report(loaded) == baseline_report(learner)


def test_rewards_and_other_sets() -> None:
    """With rewards the plan may bring a little less; on sets without flows, plan or baseline."""
    plans = Budget(20, [20, 20], names=["air", "sea"], sense="max")
    learner = Learner(plans, loss_range=(0, 100), constraints=[Baseline(InProportion(), 0.1)])
    for _ in range(15):
        play = learner.ask()
        learner.tell(play, {"air": [30.0] * play.plan["air"], "sea": [60.0] * play.plan["sea"]})
    assert play.plan["sea"] > 15
    assert baseline_report(learner).spent < 0 < baseline_report(learner).left


def test_why_says_what_the_policy_wanted() -> None:
    learner = Learner(PLANS, **SETTINGS, words=Words(unit="truck", arm="lane"))
    play = learner.ask()
    assert play.restricted
    text = str(play.why())
    assert "The allowance changed this plan. Without it: " in text
    assert " trucks on " in text or " truck on " in text


BAD_BASELINES: list[tuple[Callable[[], Any], str]] = [
    (lambda: Baseline(InProportion(), 0), "allowance"),
    (lambda: Baseline(InProportion(), -0.1), "allowance"),
    (lambda: Baseline(InProportion(), float("nan")), "allowance"),
    (lambda: Baseline(InProportion(), float("inf")), "allowance"),
    (lambda: Baseline(InProportion(), "3 %"), "allowance"),  # type: ignore[arg-type]
    (lambda: Baseline(InProportion(), True), "allowance"),
    (lambda: Baseline(None), "rule"),  # type: ignore[arg-type]
    (lambda: Baseline(lambda actions: actions.n), "rule"),  # type: ignore[arg-type]
    (lambda: Baseline("every day"), "rule"),
    (lambda: Baseline(InProportion), "rule"),  # type: ignore[arg-type]
    (lambda: Baseline({"s1->d1": 3}), "rule"),  # type: ignore[arg-type]
    (lambda: Baseline(InProportion(), sure=1), "sure"),
    (lambda: Baseline(InProportion(), sure=0.2), "sure"),
    (lambda: Baseline(InProportion(), sure="yes"), "sure"),  # type: ignore[arg-type]
    (lambda: Baseline(InProportion(), per="month"), "per"),
    (lambda: Baseline(InProportion(), per=["week"]), "per"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "argument"), BAD_BASELINES)
def test_bad_baselines_are_refused(make: Callable[[], Any], argument: str) -> None:
    with pytest.raises(InvalidInput) as error:
        make()
    assert error.value.argument == argument


BAD: list[tuple[dict[str, Any], str]] = [
    ({"constraints": [Baseline(PriceList({"s1->d1": 3.0}))]}, "baseline"),
    ({"loss_range": (-10, 250)}, "loss_range"),
    ({"loss_range": {"s1->d1": (-10, 250), "*": (0, 250)}}, "loss_range"),
    ({"policy": GenLBINFV()}, "policy"),
    ({"policy": ESCB()}, "policy"),
    ({"features": Features(rain=Flag()), "per": "week"}, "per"),
]


@pytest.mark.parametrize(("given", "argument"), BAD, ids=[str(k) for k in range(len(BAD))])
def test_bad_settings_are_refused(given: dict[str, Any], argument: str) -> None:
    for make in (make_learner, make_study):
        with pytest.raises(InvalidInput) as error:
            make(**SETTINGS | given)
        assert error.value.argument == argument


FAR = {arm: bool(k % 2) for k, arm in enumerate(PLANS.names)}
FEATURED: dict[str, Any] = SETTINGS | {
    "policy": FeatureCTS(),
    "features": Features(rain=Flag(), far=Flag(), products=[("rain", "far")]),
    "arm_features": {"far": FAR},
}


def bills_in(rain: bool, play: PendingPlay) -> dict[str, list[float]]:
    """Return costs that depend on the weather, and on the arm."""
    return {a: [c + 40 * rain * FAR[a] for c in costs] for a, costs in bills(play).items()}


def test_an_allowance_with_features_is_that_of_dense_matrices() -> None:
    """The cost of all plays is linear in coefficients and effects of arms, with their joint law."""
    learner, twin, z = Learner(PLANS, **FEATURED), FeatureTwin(PLANS.d, 4), z_of(0.99)
    total, far = np.zeros((2, 4 + PLANS.d)), np.array([FAR[arm] for arm in PLANS.names], float)
    between = 0
    for number in range(25):
        rain = float(number % 3 == 0)
        play = learner.ask(features={"rain": bool(rain)})
        assert play.baseline is not None
        phi = np.column_stack([far**0, 0 * far + rain, far, rain * far])
        plans = np.array([[*play.plan.values()], [*play.baseline.values()]])
        total += plans @ twin.rows(phi)
        mean, deviation = twin.posterior((1.05 * total[1] - total[0])[None])
        safe = mean[0] - z * deviation[0] >= -1e-9
        assert safe or play.plan == play.baseline
        between += safe and play.plan != play.baseline
        used, ends = (
            baseline_report(learner),
            twin.posterior(np.stack([total[0] - total[1], total[1]])),
        )
        spent = 250 * ends[0][0]
        left = 0.05 * 250 * ends[0][1] - spent
        assert np.allclose(used[2:5], [spent, left, left - 250 * z * deviation[0]], atol=1e-6)
        costs = bills_in(bool(rain), play)
        learner.tell(play, costs)
        arms = np.flatnonzero(plans[0])
        told = [np.array(costs[PLANS.names[i]]) / 250 for i in arms]
        y, scatter = ([f(one) for one in told] for f in (np.mean, lambda x: x.var() * len(x)))
        twin.learn(arms, phi[arms], plans[0][arms], np.array(y), np.array(scatter))
    assert between > 5
    assert used.restricted > 0


def test_a_study_with_features_and_an_allowance_verifies(tmp_path: Path) -> None:
    store, file = tmp_path / "plans.db", tmp_path / "a.npz"
    study, learner = Study.create("a", PLANS, store=store, **FEATURED), Learner(PLANS, **FEATURED)
    for live in (study, learner):
        for number in range(6):
            play = live.ask(features={"rain": number % 3 == 0})
            if number == 2:
                before = baseline_report(live)[2:]
                live.cancel(live.ask(features={"rain": True}))
                assert np.allclose(before, baseline_report(live)[2:])
            live.tell(play, bills_in(number % 3 == 0, play))
    learner.save(file)
    assert baseline_report(Study.open("a", store=store)) == baseline_report(study)
    again = Learner.load(file)
    assert baseline_report(again) == baseline_report(learner)
    sunny = {"rain": False}
    assert again.ask(features=sunny).plan == learner.ask(features=sunny).plan
    assert Study.open("a", store=store).verify().ok


@BOTH
def test_bad_baselines_of_a_day_change_nothing(make: Callable[..., Live]) -> None:
    usual = dict(zip(PLANS.names, InProportion().plan(PLANS).tolist(), strict=True))
    live = make(**SETTINGS | {"constraints": [Baseline("each day")]})
    bad: list[Any] = [
        None,
        {},
        {"Lyon": 3},
        {**usual, "s1->d1": 9},
        {**usual, "s1->d1": 1.5},
        [1, 2],
        "usual",
    ]
    for one in [*bad, {name: -k for name, k in usual.items()}, float("nan")]:
        with pytest.raises(InvalidInput) as error:
            live.ask(baseline=one)
        assert error.value.argument.startswith("baseline")
    assert (live.asked, baseline_report(live).days) == (0, 0)
    assert live.ask(baseline=usual).plan == usual
    for settings in (SETTINGS, {"loss_range": EUROS}):
        with pytest.raises(InvalidInput, match="baseline"):
            Learner(PLANS, **settings).ask(baseline=usual)
