"""Ranges of losses that grow, and that are set later: the journal is replayed with the new one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusal import refused

import multiplay as mp
from multiplay.errors import Conflict, InvalidInput

PLANS = mp.Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
GROWS = mp.Reports(outside="grow")
Make = Callable[..., Any]


@pytest.fixture(params=["learner", "study"])
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def made(name: str = "lanes", policy: Any = None, **options: Any) -> Any:
        if request.param == "learner":
            return mp.Learner(PLANS, policy, **options)
        return mp.Study.create(name, PLANS, policy, store=tmp_path / "lanes.db", **options)

    return made


def played(owner: Any, rounds: int, first: int = 0, dear: float = 1.0) -> Any:
    """Ask and tell; costs are larger every day."""
    for t in range(first, first + rounds):
        play = owner.ask(key=f"day {t}")
        costs = {
            lane: [dear * (40.0 + 10 * t + 7 * k)] * units
            for k, (lane, units) in enumerate(play.plan.items())
        }
        owner.tell(play.id, costs)
    return owner


def entries_of(owner: Any, kind: str) -> int:
    return sum(entry.labels.kind == kind for entry in owner.entries())


def same_arms(one: Any, other: Any) -> None:
    pd.testing.assert_frame_equal(
        one.arms().drop(columns="last_seen"), other.arms().drop(columns="last_seen")
    )


def test_a_range_grows_with_the_losses_by_factors_of_two(new: Make) -> None:
    owner = played(new(reports=GROWS), 20)
    assert owner.loss_range == "losses from 0 to 256"
    if isinstance(owner, mp.Study):
        assert entries_of(owner, "range") == 3  # 64, 128 and 256
        assert owner.verify().ok


def test_the_state_is_that_of_the_range_from_the_beginning(new: Make) -> None:
    """The same plays and losses, learned with the last range at once."""
    owner = played(new(reports=GROWS), 12)
    twin = new("twin", loss_range=(0, 256))
    for id in owner.plays()["id"]:
        plan = _plan(owner, id)
        play = twin.ask(key=f"day {id - 1}", fixed=plan)
        assert play.plan == plan
        k = {lane: i for i, lane in enumerate(plan)}
        twin.tell(play.id, {a: [40.0 + 10 * (id - 1) + 7 * k[a]] * n for a, n in plan.items()})
    same_arms(owner, twin)
    assert owner.best().plan == twin.best().plan


def _plan(owner: Any, id: int) -> dict[str, int]:
    journal = owner.journal if isinstance(owner, mp.Learner) else owner._journal
    found: dict[str, int] = journal.of_play(id)[0].record.header["plan"]
    names = owner.actions.names
    return {name: found.get(name, 0) for name in names}


def test_losses_within_the_first_range_change_nothing(new: Make) -> None:
    one, other = (played(new(name, **more), 6, dear=0.001) for name, more in _both())
    same_arms(one, other)
    assert one.plays()["expected"].tolist() == other.plays()["expected"].tolist()


def _both() -> list[tuple[str, dict[str, Any]]]:
    return [("grows", {"reports": GROWS}), ("fixed", {})]


def test_a_table_makes_the_range_grow_at_once(new: Make) -> None:
    owner = new(reports=GROWS)
    losses = [3.0, 900.0, -20.0]
    bills = {"arm": ["Lyon->north"] * 3, "round": [1, 2, 3], "loss": losses}
    assert owner.check_table(bills).problems == ()
    assert owner.learn_table(bills).seen == 3
    assert owner.arms()["average"][0] == pytest.approx(np.mean(losses))
    assert owner.loss_range == "losses from -1024 to 1024"
    if isinstance(owner, mp.Study):
        assert entries_of(owner, "range") == 1


def test_parts_totals_corrections_and_external_plans_grow_too(new: Make) -> None:
    owner = new(reports=GROWS)
    play = owner.ask()
    lane = next(lane for lane, units in play.plan.items() if units)
    owner.tell(play.id, {lane: [5.0] * play.plan[lane]}, final=False)
    owner.tell(play.id, {a: 30.0 * n for a, n in play.plan.items() if n and a != lane})
    owner.correct(play.id, {a: 60.0 * n for a, n in play.plan.items() if n})
    owner.learn(play.plan, {a: [200.0] * n for a, n in play.plan.items() if n})
    assert owner.loss_range == "losses from 0 to 256"
    assert owner.arms()["average"].max() == pytest.approx(130.0)
    if isinstance(owner, mp.Study):
        assert owner.verify().ok


def test_a_range_is_set_later_and_everything_is_learned_again_with_it(new: Make) -> None:
    owner = played(new(loss_range=(0, 100)), 4)
    pending = owner.ask(key="pending")
    owner.set_range((0, 400), key="wider")
    owner.set_range((0, 400), key="wider")
    with pytest.raises(Conflict, match="different range"):
        owner.set_range((0, 500), key="wider")
    assert owner.loss_range == "losses from 0 to 400"
    assert owner.ask(key="pending").plan == pending.plan
    owner.tell("pending", {lane: [350.0] * n for lane, n in pending.plan.items()})
    with refused("losses"):
        owner.set_range((0, 200))
    assert owner.loss_range == "losses from 0 to 400"
    owner.set_range(None)
    played(owner, 1, 9, dear=10.0)
    assert owner.loss_range == "losses from 0 to 1600"
    owner.set_range({"Lyon->north": (0, 3000), "*": (0, 2000)})
    assert owner.loss_range == "losses with ranges by arm"
    with refused("loss_range"):
        owner.set_range((5, 1))
    if isinstance(owner, mp.Study):
        assert owner.verify().ok


def test_what_was_forgotten_stays_forgotten(new: Make) -> None:
    owner = played(new(loss_range=(0, 150)), 8)
    owner.forget(before=5)
    before = owner.arms()
    owner.set_range((0, 300))
    after = owner.arms()
    assert after["seen"].tolist() == before["seen"].tolist()
    assert after["average"].tolist() == pytest.approx(before["average"].tolist(), nan_ok=True)


def test_clipped_losses_count_in_full_in_a_wider_range(new: Make) -> None:
    owner = new(loss_range=(0, 50), reports=mp.Reports(outside="clip"))
    played(owner, 3)
    assert owner.clipped > 0
    owner.set_range((0, 200))
    assert owner.clipped == 0


def test_policies_that_need_a_known_range_say_so(new: Make) -> None:
    with refused("reports"):
        new(policy=mp.GenLBINFV(anytime=True), reports=GROWS)
    owner = new(policy=mp.GenLBINFV(anytime=True), loss_range=(0, 100))
    with refused("policy"):
        owner.set_range((0, 200))


def test_numbers_that_no_range_holds_are_refused(new: Make) -> None:
    owner = new(reports=GROWS)
    play = owner.ask()
    with pytest.raises(InvalidInput, match="up to 1e"):
        owner.tell(play.id, {lane: [1e200] * n for lane, n in play.plan.items()})
    assert owner.loss_range == "losses from 0 to 1"


def test_other_processes_follow_and_files_keep_the_range(tmp_path: Path) -> None:
    store = tmp_path / "lanes.db"
    study = mp.Study.create("lanes", PLANS, reports=GROWS, store=store)
    other = mp.Study.open("lanes", store=store)
    for t in range(10):  # in turn
        played([study, other][t % 2], 1, t)
    same_arms(study, other)
    same_arms(study, mp.Study.open("lanes", store=store))
    assert study.savings(mp.InProportion()).paid == other.savings(mp.InProportion()).paid
    study.why(1)
    study.correct(1, {a: [44.0] * n for a, n in _plan(study, 1).items()})
    assert study.verify().ok
    learner = played(mp.Learner(PLANS, reports=GROWS), 6)
    learner.save(tmp_path / "lanes.npz")
    loaded = mp.Learner.load(tmp_path / "lanes.npz")
    assert loaded.loss_range == learner.loss_range
    loaded.correct(1, {a: [444.0] * n for a, n in _plan(learner, 1).items()})
    assert loaded.loss_range == "losses from 0 to 512"
    assert loaded.ask().plan
