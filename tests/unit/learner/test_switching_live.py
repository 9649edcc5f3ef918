"""The switching cost of learners, studies, the service and the command line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multiplay import (
    Budget,
    CombUCB,
    Features,
    FollowTheLeader,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Learner,
    Number,
    Study,
    SwitchingCost,
    SwitchingReport,
    Transport,
)
from multiplay.random import Streams

PLANS = Transport([2, 3], [2, 3])
MEANS = np.array([60.0, 100.0, 80.0, 80.0])


def bill(play: Any) -> dict[str, list[float]]:
    return {arm: [MEANS[i]] * n for i, (arm, n) in enumerate(play.plan.items())}


def test_plays_are_those_of_a_slow_twin() -> None:
    """The twin walks through all actions; reports are late, and some plays are cancelled."""
    learner = Learner(PLANS, GenCTS(), loss_range=(0, 200), seed=3, constraints=[SwitchingCost(12)])
    everything, last, held, history = PLANS.enumerate(), None, 0, list[Any]()
    for t in range(30):
        words = learner.rng.state.copy()
        drawn = GenCTS().index(PLANS, learner.state, Streams(words))
        assert drawn is not None
        theta, play = drawn[0], learner.ask()
        if last is not None:
            costs = 200 * everything @ theta
            charge = 12 / np.sqrt(held) * np.abs(everything - last).sum(axis=1)
            least = (costs + charge).min()
            own = 200 * play.action @ theta + 12 / np.sqrt(held) * np.abs(play.action - last).sum()
            assert own == pytest.approx(least)
            assert play.change_cost == 12 * np.abs(play.action - last).sum()
        else:
            assert play.change_cost == 0
        if t % 7 == 5:
            learner.cancel(play)
            continue
        held = held + 1 if last is not None and (play.action == last).all() else 1
        last = play.action
        history.append(play)
        if t % 3 == 2:  # the newest one first
            for one in (history.pop(), history.pop(0)):
                learner.tell(one, bill(one))
    assert sum(play.change_cost > 0 for play in learner.pending()) < 20


def test_features_have_a_switching_cost() -> None:
    """And play the same plans as without one, where it is 0."""
    features, plays = Features(x=Number(0, 1)), dict[float | None, list[Any]]()
    for change in (None, 0.0, 500.0):
        learner = Learner(
            PLANS,
            features=features,
            loss_range=(0, 200),
            seed=3,
            constraints=[] if change is None else [SwitchingCost(change)],
        )
        plays[change] = []
        for t in range(12):
            play = learner.ask(features={"x": t % 3 / 2})
            learner.tell(play, bill(play))
            plays[change].append(tuple(play.plan.values()))
    assert plays[0.0] == plays[None]
    assert len({*plays[500.0]}) == 1 < len({*plays[0.0]})


def test_learners_and_studies_continue_after_a_restart(tmp_path: Path) -> None:
    store, file = tmp_path / "plans.db", tmp_path / "learner"
    learners = [
        Learner(PLANS, CombUCB(), loss_range=(0, 200), constraints=[SwitchingCost(4)])
        for _ in range(2)
    ]
    study = Study.create(
        "a", PLANS, CombUCB(), loss_range=(0, 200), constraints=[SwitchingCost(4)], store=store
    )
    costs = []
    for t in range(16):
        if t % 5 == 4:
            learners[1].save(file)
            learners[1], study = Learner.load(file), Study.open("a", store=store)
        owners: list[Any] = [*learners, study]
        plays = [one.ask(key=str(t)) for one in owners]
        assert len({tuple(play.plan.values()) for play in plays}) == 1
        assert len({play.change_cost for play in plays}) == 1
        costs.append(plays[0].change_cost)
        if t % 2:
            for one, play in zip(owners, plays, strict=True):
                one.tell(play.id, bill(play))
    assert any(costs)
    assert [study.ask(key=str(t)).change_cost for t in range(16)] == costs
    assert [learners[1].ask(key=str(t)).change_cost for t in range(16)] == costs
    assert study.constraints() == learners[1].constraints()
    (row,) = learners[1].constraints()
    assert isinstance(row, SwitchingReport)
    assert (row.spent, row.changed) == (sum(costs), sum(costs) / 4)
    assert study.verify()
    last = str(study.ask().why())
    assert ("Changes since the last plan" in last) == (study.pending()[-1].change_cost > 0)


def test_arms_of_other_sets_do_not_count() -> None:
    """And an arm that is new today was not in the last plan."""
    first = Budget(3, [3, 3], names=["air", "sea"])
    second = Budget(3, [3, 3], names=["sea", "road"])
    learner = Learner(first, GenCTS(), loss_range=(0, 100), constraints=[SwitchingCost(5)])
    one = learner.ask()
    two = learner.ask(actions=second)
    was = np.array([one.plan["sea"], 0])
    assert two.change_cost == 5 * np.abs(two.action - was).sum()
    assert learner.ask().change_cost >= 0


@pytest.mark.parametrize("given", [-1, np.nan, "15", True, [15]])
def test_bad_costs_are_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="cost: expected a number of 0 or more"):
        Learner(PLANS, constraints=[SwitchingCost(given)])


def test_policies_without_an_index_are_refused() -> None:
    with pytest.raises(InvalidInput, match="because of the switching cost"):
        Learner(PLANS, GenLBINFV(), constraints=[SwitchingCost(15)])


def test_arms_never_seen_come_first() -> None:
    """The first arm costs 0.9, and the second one 0.3; a change costs next to nothing."""
    learner = Learner(Budget(1, [1] * 6), FollowTheLeader(), constraints=[SwitchingCost(0.001)])
    plans = []
    for _ in range(30):
        plans.append(int((play := learner.ask()).action.argmax()))
        learner.tell(play, [[0.3 if i == 1 else 0.9] * k for i, k in enumerate(play.action)])
    assert {*plans[:6]} == {*range(6)}
    assert {*plans[6:]} == {1}


def test_the_default_is_stored_nowhere(tmp_path: Path) -> None:
    study = Study.create("a", PLANS, store=tmp_path / "a.db")
    study.ask()
    assert all("change" not in entry.record.header for entry in study.entries())
    names = [name for entry in study.entries() for name in entry.record.arrays]
    assert not any("switching" in name for name in names)
