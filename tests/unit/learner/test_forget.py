"""Learner.forget and Learner.unforget: reports that no longer count, or count again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from multiplay import (
    ESCB,
    BootstrapCTS,
    Budget,
    Changes,
    CombUCB,
    Duplicated,
    FollowTheLeader,
    GaussianCTS,
    GenCTS,
    InvalidInput,
    Learner,
    LinTS,
    Policy,
    PooledCTS,
)
from multiplay.kernels.hypotheses import CHANGES, LENGTH, START, WEIGHT
from multiplay.kernels.moments import COLUMNS

NAMES = ["air", "sea", "rail"]
FIRST_DAY = datetime(2026, 6, 1, tzinfo=UTC)
EXACT = (
    PooledCTS(),
    BootstrapCTS(),
    BootstrapCTS(window=12),
    BootstrapCTS(discount=0.9),
    GaussianCTS(),
    CombUCB(window=8),
    CombUCB(discount=0.9),
    ESCB(),
    FollowTheLeader(),
)
FOLLOWING = PooledCTS(memory=Changes()), BootstrapCTS(memory=Changes())
ALL = (*EXACT, *FOLLOWING, GenCTS(), GenCTS(window=12), GenCTS(discount=0.9))
RANGES = {"air": (0, 100), "*": (20, 60)}


def learner_of(policy: Policy) -> Learner:
    return Learner(Budget(4, [2, 2, 2], names=NAMES), policy, seed=1, loss_range=RANGES)


def tell(learner: Learner, days: range, doubles: int = 20) -> None:
    """Tell the costs of some days."""
    for day in days:
        rng = np.random.default_rng(day)
        play = learner.ask(at=FIRST_DAY + timedelta(days=day))
        costs = {
            arm: np.clip(rng.normal(35, 3, units), 20, 60) + (40 if late else 0)
            for arm, units in play.plan.items()
            for late in [arm == "air" and day >= doubles]
        }
        told = {arm: cost.tolist() for arm, cost in costs.items()}
        learner.tell(play, told, at=FIRST_DAY + timedelta(days=day))


@pytest.mark.parametrize("policy", EXACT, ids=repr)
def test_forget_gives_the_state_of_losses_that_were_never_told(policy: Policy) -> None:
    learner, other = learner_of(policy), learner_of(policy)
    for one, missing in ((learner, None), (other, ("air", 20))):
        for day in range(30):  # the same plans for both
            fixed = {"air": 1, "sea": 1 + day % 2}
            rng, play = np.random.default_rng(day), one.ask(fixed=fixed)
            costs = {arm: rng.uniform(20, 60, k).tolist() for arm, k in play.plan.items()}
            if missing and day < missing[1]:
                costs["air"] = [None] * len(costs["air"])
            one.tell(play, costs, missing="ignore")
    learner.forget("air", before=21)
    for name, array in learner.state.items():
        np.testing.assert_allclose(array, other.state[name], rtol=1e-9, atol=1e-12, err_msg=name)
    means, others = (one.arms()["average"] for one in (learner, other))
    np.testing.assert_allclose(means, others, rtol=1e-12)


@pytest.mark.parametrize("policy", EXACT, ids=repr)
def test_unforget_undoes_forget(policy: Policy) -> None:
    learner = learner_of(policy)
    tell(learner, range(30))
    before = {name: array.copy() for name, array in learner.state.items()}
    table = learner.arms()
    learner.forget(before=26)
    assert not np.allclose(learner.arms()["average"], table["average"], atol=1e-6)
    assert learner.unforget(since=0).since == 0
    for name, array in learner.state.items():
        np.testing.assert_allclose(array, before[name], rtol=1e-9, atol=1e-12, err_msg=name)
    if isinstance(policy, PooledCTS | BootstrapCTS):  # beliefs of the others had followed a change
        np.testing.assert_allclose(learner.arms()["mean"], table["mean"])


@pytest.mark.parametrize("policy", ALL, ids=repr)
def test_a_saved_learner_forgets_and_keeps_bit_for_bit(policy: Policy, tmp_path: Path) -> None:
    learner = learner_of(policy)
    tell(learner, range(25))
    learner.forget("sea", before=10)
    learner.save(tmp_path / "learner")
    other = Learner.load(tmp_path / "learner")
    for one in (learner, other):
        one.forget("air", before=21)
        one.unforget("sea")
        one.forget("rail", before=FIRST_DAY + timedelta(days=5))
    for name, array in learner.state.items():
        assert array.tobytes() == other.state[name].tobytes()
    assert learner.arms().equals(other.arms())
    assert learner.ask().plan == other.ask().plan


def test_gencts_has_as_many_coins_as_units_that_count() -> None:
    learner = learner_of(GenCTS())
    tell(learner, range(30))
    left = learner.forget("air", before=21)
    p, q = (learner.state[name][0, 0] for name in "pq")
    assert p + q == pytest.approx(2 + left.units)
    average = learner.arms()["average"][0]
    assert (p - 1) / max(left.units, 1) == pytest.approx(average / 100 if left.units else 0)


def test_an_arm_that_follows_changes_begins_at_the_round() -> None:
    learner = learner_of(BootstrapCTS(memory=Changes()))
    tell(learner, range(30))
    marks = learner.state["marks"][0].copy()
    own, others = (
        learner.state["hypotheses"][0, 0].copy(),
        learner.state["hypotheses"][0, 1:].copy(),
    )
    assert own[0, START] < 12 + 1
    learner.forget("air", before=12)
    left = learner.state["hypotheses"][0, 0]
    length = int(learner.state["marks"][0, 0, LENGTH])
    assert (left[:length, START] >= 12 + 1).all()  # t is that of the next round
    assert (np.diff(left[:length, START]) > 0).all()
    assert left[:length, WEIGHT].sum() == pytest.approx(1)
    assert not left[length:].any()
    assert (learner.state["hypotheses"][0, 1:] == others).all()  # only this arm forgets
    assert (learner.state["marks"][0, :, CHANGES] == marks[:, CHANGES]).all()
    tell(learner, range(30, 34))


def test_unforget_leaves_one_hypothesis_and_a_later_change_is_found() -> None:
    learner = Learner(
        Budget(2, [2], names=["air"]), BootstrapCTS(memory=Changes()), loss_range=(0, 100)
    )
    rng = np.random.default_rng(3)

    def days(number: int, cost: float) -> None:
        for _ in range(number):
            learner.tell(learner.ask(), {"air": rng.normal(cost, 2, 2).tolist()})

    days(40, 20.0)
    days(20, 60.0)
    assert learner.arms()["average"][0] == pytest.approx(60, abs=2)  # it followed
    start = learner.state["hypotheses"][0, 0, 0, START]
    assert start > 30
    kept = learner.unforget("air")  # undone: the losses that counted before
    assert (kept.since, kept.units) == (1, 120)
    assert learner.arms()["average"][0] == pytest.approx(33.3, abs=1)
    assert learner.state["marks"][0, 0, LENGTH] == 1
    assert learner.state["hypotheses"][0, 0, 0, WEIGHT] == 1
    assert learner.drift().empty
    days(30, 95.0)
    assert learner.state["hypotheses"][0, 0, 0, START] > 60  # not the split that was undone
    assert learner.arms()["average"][0] == pytest.approx(95, abs=2)


def test_drift_is_silent_after_forget_and_after_unforget() -> None:
    for verb in ("forget", "unforget"):
        learner = Learner(Budget(2, [2], names=["air"]), BootstrapCTS())
        for day in range(200):
            learner.tell(learner.ask(), {"air": [0.2 if day < 100 else 0.8] * 2})
        since = learner.drift()["since"][0]
        if verb == "forget":
            learner.forget("air", before=int(since) + 1)
        else:
            learner.unforget("air", since=0)
        assert learner.drift().empty
        for _ in range(200):
            learner.tell(learner.ask(), {"air": [0.05] * 2})
        assert 200 <= learner.drift()["since"][0] < 210


def test_forget_never_brings_losses_back() -> None:
    for policy in (BootstrapCTS(), BootstrapCTS(memory=Changes())):
        learner = learner_of(policy)
        tell(learner, range(20))
        left = learner.forget("air", before=15).units
        assert learner.forget("air", before=5).units == left
        learner.forget("air", before=21)
        assert learner.forget("air", before=5).units == 0
        assert np.isnan(learner.arms()["average"][0])


def test_unforget_without_a_round_undoes_one_step_after_the_other() -> None:
    learner = Learner(Budget(1, [1], names=["air"]), BootstrapCTS())
    for _ in range(10):
        learner.tell(learner.ask(), {"air": [0.5]})
    learner.forget("air", before=3)
    learner.forget("air", before=6)
    learner.forget("air", before=11)
    assert [tuple(learner.unforget("air")) for _ in range(4)] == [(6, 5), (3, 8), (1, 10), (1, 10)]


def test_a_time_means_the_first_round_told_then_or_later() -> None:
    learner = learner_of(BootstrapCTS())
    tell(learner, range(10))
    assert learner.forget(before=FIRST_DAY + timedelta(days=4)).since == 5
    assert learner.unforget(since=FIRST_DAY + timedelta(days=3, hours=-1)).since == 4
    assert learner.unforget(since=FIRST_DAY - timedelta(days=3)) == learner.unforget(since=0)
    assert learner.forget(before=FIRST_DAY + timedelta(days=30)).units == 0


def test_external_plans_and_tables_before_the_first_round_are_of_round_0() -> None:
    learner = learner_of(BootstrapCTS())
    table = {"arm": ["air", "sea"], "round": [1, 1], "loss": [50.0, 30.0]}
    learner.learn_table(table)
    learner.learn({"air": 2, "sea": 2}, {"air": [70.0, 70.0], "sea": 60.0})
    tell(learner, range(3))
    everything = learner.unforget(since=0).units
    assert learner.forget(before=1).units == everything - 6


def test_arms_that_come_later_can_be_forgotten() -> None:
    learner = learner_of(BootstrapCTS(memory=Changes()))
    tell(learner, range(3))
    more = Budget(4, [2, 2, 2], names=["sea", "road", "air"])
    for _ in range(4):
        play = learner.ask(more)
        learner.tell(play, {arm: [30.0] * units for arm, units in play.plan.items()})
    seen = int(learner.arms().set_index("arm")["seen"]["road"])
    assert learner.unforget("road", since=0).units == seen
    assert learner.forget("road", before=8).units == 0
    assert learner.forget("rail", before=8).units == 0


@pytest.mark.parametrize("policy", [LinTS(), Duplicated(GenCTS())], ids=repr)
def test_other_policies_name_those_that_can_forget(policy: Policy) -> None:
    learner = Learner(Budget(4, [2, 2, 2], names=NAMES), policy)
    with pytest.raises(InvalidInput, match="PooledCTS") as error:
        learner.forget("air", before=1)
    assert error.value.argument == "policy"
    with pytest.raises(InvalidInput, match="PooledCTS"):
        learner.unforget("air")


def test_a_file_without_a_log_of_reports_cannot_restore_earlier_rounds(tmp_path: Path) -> None:
    from multiplay.learner import snapshot
    from multiplay.storage.folder import read_record, write_record

    learner = learner_of(BootstrapCTS())
    tell(learner, range(5))
    learner.save(tmp_path / "learner")
    record = read_record(tmp_path / "learner")
    rest = {k: v for k, v in record.arrays.items() if not k.startswith(snapshot.REPORTS)}
    write_record(tmp_path / "older", record._replace(arrays=rest))
    older = Learner.load(tmp_path / "older")
    tell(older, range(5, 8))
    with pytest.raises(InvalidInput, match="from 6 on"):
        older.forget("air", before=3)
    assert older.forget(before=6).units == 12
    assert older.arms()["average"].notna().any()
    assert learner.state["moments"].shape[-1] == COLUMNS
