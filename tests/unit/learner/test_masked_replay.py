"""Forget by a replay in which reports are hidden: policies without sums of arms, and features."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multiplay as mp
from multiplay import InvalidInput, Learner, Policy
from multiplay.random import Streams
from multiplay.storage import MemoryStore
from multiplay.studies import synced

LANES = ("Lyon->north", "Lyon->south", "Lille->north", "Lille->south")
PLANS = mp.Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
DAYS = 8
FEATURES = mp.Features(rain=mp.Flag(), km=mp.Number())
KM = {"km": dict(zip(LANES, [450.0, 120.0, 90.0, 700.0], strict=True))}
MASKED = (
    mp.COSV(),
    mp.FPLIX(),
    mp.GLRCUCB(),
    mp.GenAdaINF(),
    mp.GenLBINFV(),
    mp.Hybrid(),
    mp.LBINF(horizon=100),
    mp.OLSUCBC(),
    mp.RandomAction(),
    mp.BootstrapCTS(unit_means="ordered"),
    mp.GenCTS(unit_means="ordered"),
)
FEATURED = (
    mp.FeatureCTS(),
    mp.FeatureCTS(discount=0.9),
    mp.FeatureCTS(memory=mp.Changes()),
    mp.FeatureCTS(optimism=2.0),
)


def options(policy: Policy) -> dict[str, Any]:
    """Return the options of a learner: with features for a policy that reads them."""
    return {"features": FEATURES, "arm_features": KM} if policy.reads_features else {}


def today(policy: Policy, day: int) -> dict[str, Any]:
    return {"features": {"rain": day % 3 == 0}} if policy.reads_features else {}


def costs_of(plan: dict[str, int], day: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(day)
    return {lane: rng.uniform(0, 1, units).tolist() for lane, units in plan.items()}


def without(costs: dict[str, list[float]], lanes: tuple[str, ...]) -> dict[str, Any]:
    """Return costs in which the units of some lanes are missing."""
    return {lane: [None] * len(own) if lane in lanes else own for lane, own in costs.items()}


def twin_of(
    policy: Policy, hidden: Callable[[int, int], tuple[str, ...]], days: int = DAYS
) -> tuple[Learner, Learner]:
    """Return a learner, and one that was told the same plays without the units that are hidden.

    ``hidden`` has the lanes of a day that are hidden, and of the external plan after it (1).
    """
    learner, twin = (Learner(PLANS, policy, seed=3, **options(policy)) for _ in range(2))
    for day in range(1, days + 1):
        play = learner.ask(**today(policy, day))
        pending, state = learner.engine.pending[play.id], learner.policy_state
        twin.engine.keep(play.id, pending, pending.round_set, ())
        costs = costs_of(play.plan, day)
        twin.policy_state.rng = Streams(state.rng.state.copy())
        learner.tell(play, costs)
        twin.tell(play.id, without(costs, hidden(day, 0)), missing="ignore")
        if policy.absorbs and day % 3 == 0:
            plan = {"Lyon->north": 1, "Lyon->south": 1, "Lille->south": 1}
            costs = costs_of(plan, day + 100)
            own = today(policy, day + 1)
            twin.policy_state.rng = Streams(state.rng.state.copy())
            learner.learn(plan, costs, **own)
            twin.learn(plan, without(costs, hidden(day, 1)), missing="ignore", **own)
    return learner, twin


def assert_equal(one: Learner, twin: Learner) -> None:
    """The states are equal bit for bit, and so are the next plays."""
    warm = one.policy_state.policy.warm(PLANS)
    assert one.state.keys() - {*warm} == twin.state.keys() - {*warm}
    for name in one.state.keys() - {*warm}:
        np.testing.assert_array_equal(one.state[name], twin.state[name], err_msg=name)
    features, others = (each.policy_state.features for each in (one, twin))
    if features is not None and others is not None:
        for name, array in features.arrays.items():
            other = others.arrays[name]
            np.testing.assert_array_equal(array, other, err_msg=name)
    twin.policy_state.rng = Streams(one.rng.state.copy())
    for day in range(DAYS + 1, DAYS + 4):
        plays = [each.ask(**today(one.policy_state.policy, day)) for each in (one, twin)]
        assert plays[0].plan == plays[1].plan
        for each, play in zip((one, twin), plays, strict=True):
            each.tell(play, costs_of(play.plan, day))


@pytest.mark.parametrize("policy", MASKED + FEATURED, ids=repr)
def test_forget_gives_the_state_of_units_that_were_missing(policy: Policy) -> None:
    """An external plan belongs to the play told before it."""
    learner, twin = twin_of(policy, lambda day, _: LANES[1:2] if day < 6 else ())
    left = learner.forget(LANES[1], before=6)
    assert left.since == 6
    assert_equal(learner, twin)


@pytest.mark.parametrize("policy", MASKED + FEATURED, ids=repr)
def test_each_lane_has_the_round_that_was_said_last(policy: Policy) -> None:
    since = dict(zip(LANES, [4, 7, 3, 0], strict=True))
    learner, twin = twin_of(
        policy, lambda day, _: tuple(lane for lane in LANES if day < since[lane])
    )
    everything = learner.unforget(since=0).units
    learner.forget(before=4)
    learner.forget(LANES[1], before=9)
    learner.unforget(LANES[1], since=7)
    learner.forget(LANES[2], before=2)  # forgets no less than before
    learner.unforget(LANES[2], since=3)
    learner.unforget(LANES[3], since=0)
    assert_equal(learner, twin)
    assert learner.unforget(since=0).units == everything + 9  # of three more plays


@pytest.mark.parametrize("policy", MASKED + FEATURED, ids=repr)
def test_unforget_undoes_forget(policy: Policy) -> None:
    learner, twin = twin_of(policy, lambda *_: ())
    learner.forget(before=DAYS + 1)
    assert learner.unforget(since=0).since == 0
    assert_equal(learner, twin)


@pytest.mark.parametrize("policy", [mp.GenLBINFV(), mp.FeatureCTS()], ids=repr)
def test_a_saved_learner_forgets_bit_for_bit(policy: Policy, tmp_path: Path) -> None:
    learner, _ = twin_of(policy, lambda *_: ())
    learner.forget(LANES[0], before=4)
    learner.save(tmp_path / "learner.npz")
    other = Learner.load(tmp_path / "learner.npz")
    for one in (learner, other):
        assert one.policy_state.log is None  # the journal has all reports
        one.unforget(LANES[0])
        one.forget(LANES[2], before=6)
    assert_equal(learner, other)


@pytest.mark.parametrize("policy", [mp.COSV(), mp.FeatureCTS()], ids=repr)
def test_arms_that_come_later_and_logged_data_are_forgotten(policy: Policy) -> None:
    """Costs that do not count may be any; there is one plan for each day."""
    more = mp.Transport([2, 1], [1, 2], names=(["Lyon", "Metz"], ["north", "south"]))
    learners = []
    for wrong in (0.0, 0.5):
        learner = Learner(PLANS, policy, seed=3, **options(policy))
        if learner.features is not None:
            learner.set_arm_features({"km": {"Metz->north": 80.0, "Metz->south": 300.0}})
        table: dict[str, Any] = {"arm": LANES[:2], "round": [1, 2], "loss": [0.2, 0.3 + wrong]}
        table |= {"rain": [1, 0]} if learner.features is not None else {}
        learner.learn_table(table)
        for day in range(1, 7):
            play = learner.ask(more, fixed={"Lyon->south": 2}, **today(policy, day))
            costs = costs_of(play.plan, day)
            if day < 4:
                costs |= {"Metz->north": [0.1 + wrong], "Lyon->south": [0.4 - wrong / 2] * 2}
            learner.tell(play, costs)
        for lane in ("Lyon->south", "Metz->north"):
            learner.forget(lane, before=4)
        learners.append(learner)
    assert_equal(*learners)


@pytest.mark.parametrize(
    "policy",
    [mp.LinTS(), mp.Duplicated(mp.GenLBINFV()), mp.LinUCB()],
    ids=lambda one: type(one).__name__,
)
def test_a_policy_that_needs_all_units_is_refused(policy: Policy) -> None:
    learner = Learner(mp.Budget(2, [1, 1, 1]), policy)
    acts: list[Callable[[], Any]] = [
        lambda: learner.forget(before=1),
        lambda: learner.unforget(since=0),
    ]
    for act in acts:
        with pytest.raises(InvalidInput) as error:
            act()
        assert error.value.argument == "policy"


# ---------------------------------------------------------------- studies


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a snapshot after every few entries."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 5)


def study_of(policy: Policy, store: Any) -> mp.Study:
    return mp.Study.create("lanes", PLANS, policy, seed=5, store=store, **options(policy))


def state_of(study: mp.Study) -> dict[str, bytes]:
    with study._turn() as replica:
        arrays = replica.record().arrays
    return {name: array.tobytes() for name, array in arrays.items() if "/warm" not in name}


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("policy", [mp.GenLBINFV(), mp.Hybrid(), *FEATURED[:2]], ids=repr)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_study_forgets_verifies_and_copies(policy: Policy, kind: str, tmp_path: Path) -> None:
    """With corrections before, between and after; another handle follows."""
    store: Any = MemoryStore() if kind == "memory" else tmp_path / "lanes.db"
    study = study_of(policy, store)
    other = mp.Study.open("lanes", store=study.store)
    plans = dict[int, dict[str, int]]()
    for day in range(1, 15):
        play = study.ask(key=f"day {day}", **today(policy, day))
        plans[day] = play.plan
        study.tell(play, costs_of(play.plan, day))
        if day == 4:
            study.correct("day 2", costs_of(plans[2], 50))
        if day == 6:
            assert study.forget(LANES[1], before=4, key="k").since == 4
            assert study.forget(LANES[1], before=4, key="k").since == 4
        if day == 8:
            study.retract("day 3")
        if day == 10:
            study.unforget(LANES[1])
            assert state_of(other) == state_of(study)
        if day == 12:
            study.forget(before=9)
    assert state_of(other) == state_of(study)
    assert study.verify().ok
    study.backup(tmp_path / "copy.db")
    study.export(tmp_path / "lanes.jsonl")
    copied = mp.Study.open("lanes", store=tmp_path / "copy.db")
    read = mp.Study.import_journal("lanes", tmp_path / "lanes.jsonl", store=MemoryStore())
    for one in (copied, read):
        assert one.verify().ok
        assert state_of(one) == state_of(study)


def test_a_replay_that_takes_too_long_changes_nothing() -> None:
    study = study_of(mp.GenLBINFV(), MemoryStore())
    for day in range(1, 4):
        play = study.ask()
        study.tell(play, costs_of(play.plan, day))
    before, head = state_of(study), study.head
    study.replay_limit = 0.0
    with pytest.raises(InvalidInput) as error:
        study.forget(before=3)
    assert error.value.argument == "study"
    assert (study.head, state_of(study)) == (head, before)
    study.replay_limit = np.inf
    assert study.forget(before=3).since == 3
    assert state_of(study) != before


@pytest.mark.parametrize("policy", [mp.GenLBINFV(), mp.FeatureCTS()], ids=repr)
def test_reports_from_before_an_import_cannot_be_hidden(policy: Policy, tmp_path: Path) -> None:
    learner, _ = twin_of(policy, lambda *_: ())
    learner.save(tmp_path / "learner.npz")
    path = tmp_path / "learner.npz"
    study = mp.Study.import_learner("lanes", path, store=MemoryStore())
    acts: list[Callable[[], Any]] = [
        lambda: study.forget(before=DAYS + 1),
        lambda: study.unforget(since=0),
    ]
    for act in acts:
        with pytest.raises(InvalidInput) as error:
            act()
        assert error.value.argument == "policy"
    assert study.verify().ok
