"""Corrected and retracted reports of a learner: as if it had been told the right ones."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trucks import costs, plans

import multiplay as mp
from multiplay.errors import Conflict, InvalidInput, NotFound
from multiplay.storage.folder import read_record, write_record
from multiplay.studies import learner_files
from multiplay.studies.learner_files import without_journal

POLICIES: dict[str, mp.Policy] = {
    "BootstrapCTS": mp.BootstrapCTS(memory=mp.Changes()),
    "GenCTS": mp.GenCTS(),
    "CombUCB": mp.CombUCB(window=20),
    "GenLBINFV": mp.GenLBINFV(),
    "FeatureCTS": mp.FeatureCTS(memory=mp.Changes(), draws=True, priors=1),  # as in its file
}
OTHER = mp.Transport(
    [2, 2, 1], [4, 1], names=(["Lyon", "Lille", "Nice"], ["north", "south"])
)  # the set of some days
EXTERNAL = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
DAYS, WRONG = 24, (3, 8, 13, 20, 24)
DATA = Path(__file__).parents[2] / "data"


def lived(
    policy: mp.Policy,
    wrong: Sequence[int] = (),
    never: Sequence[int] = (),
    *,
    masked: bool = True,
) -> tuple[mp.Learner, dict[int, Any]]:
    """Return a learner whose plays were all asked before any was told, and the right losses.

    So plans do not depend on reports. Some are told wrongly, some never; one is closed after a
    part, one is cancelled, one is pending, and the report of one wrong play comes in parts.
    ``masked``: policies that forget by a replay forget, too.
    """
    features = mp.Features(km=mp.Number(), rain=mp.Flag()) if policy.reads_features else None
    learner = mp.Learner(plans(), policy, seed=5, loss_range=(0, 250), features=features)
    if features is not None:
        learner.set_arm_features(
            {"km": {name: 9.0 * i + 1.0 for i, name in enumerate(OTHER.names)}}
        )
    right, planned = {}, {}
    for day in range(1, DAYS + 1):
        today: dict[str, Any] = {} if features is None else {"features": {"rain": day % 3 == 0}}
        other = OTHER if policy.changing and day % 6 == 5 else None
        play = learner.ask(other, key=f"day {day}", at=10.0 * day, **today)
        right[day], planned[day] = costs(day, play.plan), play.plan
    for day, losses in right.items():
        when = 10.0 * day + 5
        if day == 9:
            learner.cancel(day)
        if day in (7, 9, *never):
            continue
        told: dict[str, Any] = costs(day, planned[day], 80.0 * (day in wrong))
        assert (told == losses) == (day not in wrong)
        if policy.partial and day in (8, 12):
            lane = max(told, key=lambda lane: len(told[lane]))
            learner.tell(day, {lane: told[lane][:1]}, final=False, at=when)
            told[lane] = [None, *told[lane][1:]]
        if policy.partial and day == 12:
            learner.close(day, at=when)
        else:
            learner.tell(day, told, at=when)
        if policy.absorbs and day == 10:
            rain: dict[str, Any] = {} if features is None else {"features": {"rain": True}}
            learner.learn(EXTERNAL, costs(0, EXTERNAL), at=3.0, **rain)
        if policy.restarts or (masked and policy.partial):
            if day == 11 and features is None:
                table = {"arm": ["Lyon->north", "Nice->west"], "round": [1, 2], "loss": [3.0, 4.0]}
                learner.learn_table(table)
            if day == 14:  # the play of day 6
                learner.forget("Lyon->north", before=6 - len(never), at=when)
            if day == 16:
                learner.unforget("Lyon->north", at=when)
            if day == 18:
                before = datetime.fromtimestamp(62.0, UTC)
                learner.forget("Lyon->north", before=before, at=when)
    return learner, right


def planned(learner: mp.Learner, day: int) -> dict[str, int]:
    """Return the plan of a day on the usual set."""
    today: dict[str, Any] = {"features": {"rain": day % 3 == 0}} if learner.features else {}
    return learner.ask(key=f"day {day}", **today).plan


def contents(learner: mp.Learner) -> Any:
    """Return the state of a learner and its plays, without the digests of earlier reports."""
    header, arrays = without_journal(learner_files.record_of(learner.replica, learner.journal))
    bits = {name: array.tobytes() for name, array in arrays.items()}
    return header, bits, learner.plays().to_csv()


@pytest.mark.parametrize("policy", POLICIES)
def test_the_state_is_that_of_a_learner_told_the_right_losses(policy: str, tmp_path: Path) -> None:
    """Also after it was saved and loaded, before the corrections and between them."""
    expected, right = lived(POLICIES[policy])
    learner, _ = lived(POLICIES[policy], WRONG)
    assert contents(learner) != contents(expected)
    learner.save(tmp_path / "before.npz")
    for one in (learner, mp.Learner.load(tmp_path / "before.npz")):
        for k, day in enumerate(random.Random(2).sample(WRONG, len(WRONG))):
            told = one.correct(f"day {day}", right[day])
            assert (told.id, told.seen, told.repeated) == (day, 5, False)
            assert one.correct(day, right[day]).repeated
            assert one.tell(day, right[day]).repeated
            if day != 8:  # the first report of that day came in parts
                wrong = costs(day, planned(one, day), 80.0)
                assert one.tell(day, wrong).repeated
            if k == 2:
                one.save(tmp_path / "between.npz")
                one = mp.Learner.load(tmp_path / "between.npz")
        assert contents(one) == contents(expected)


@pytest.mark.parametrize("policy", ["BootstrapCTS", "GenLBINFV"])
def test_a_retracted_play_is_pending_as_if_it_had_not_been_told(policy: str) -> None:
    """The random numbers of the other reports stay as they were."""
    expected, right = lived(POLICIES[policy], never=[4])
    learner, _ = lived(POLICIES[policy])
    learner.retract("day 4")
    assert contents(learner) == contents(expected)
    for one in (learner, expected):
        assert not one.tell(4, right[4], at=500.0).repeated
    assert contents(learner) == contents(expected)


def test_a_time_before_all_reports_that_are_left_forgets_nothing() -> None:
    learner = mp.Learner(plans(), mp.CombUCB(), loss_range=(0, 250))
    told = [learner.ask(at=float(k)) for k in range(3)]
    for k, play in enumerate(told):
        learner.tell(play, costs(k, play.plan), at=10.0 * k + 1)
    learner.forget(before=datetime.fromtimestamp(5.0, UTC), at=50.0)
    assert learner.arms()["seen"].sum() == 15
    learner.retract(told[0])
    assert learner.engine.state.told == 2
    own = learner.engine.state.moments.own
    assert own is not None
    assert own["t"] == 3


def test_bad_corrections_are_refused_and_change_nothing(tmp_path: Path) -> None:
    learner, right = lived(mp.GenCTS())
    before, lane = contents(learner), next(iter(right[1]))
    cases: list[tuple[type[InvalidInput], str, Any, Any]] = [
        (NotFound, "play", 99, right[1]),
        (NotFound, "play", "z", right[1]),
        (NotFound, "play", None, right[1]),
        (NotFound, "play", 1.5, right[1]),
        (Conflict, "Use tell", 7, right[7]),
        (Conflict, "Use learn", "day 9", right[9]),
        (InvalidInput, "expected numbers in", 1, right[1] | {lane: [999.0] * len(right[1][lane])}),
        (InvalidInput, "losses", 1, {lane: right[1][lane]}),
        (InvalidInput, "losses", 1, {"Rome": [1.0]}),
        (InvalidInput, "losses", 1, "12"),
    ]
    for kind, match, play, losses in cases:
        with pytest.raises(kind, match=match):
            learner.correct(play, losses)
        if kind is not InvalidInput:
            with pytest.raises(kind):
                learner.retract(play)
    with pytest.raises(InvalidInput, match="at"):
        learner.retract(1, at=float("nan"))
    assert contents(learner) == before


def test_a_file_without_events_can_be_corrected_from_there_on(tmp_path: Path) -> None:
    """Files of older versions have no reports of earlier plays."""
    learner, right = lived(POLICIES["BootstrapCTS"], WRONG)
    record = without_journal(read_record(DATA / "learner-4-BootstrapCTS.npz"))
    write_record(tmp_path / "old.npz", record)
    for path in (tmp_path / "old.npz", tmp_path / "again.npz"):
        old = mp.Learner.load(path)
        with pytest.raises(Conflict, match="told before"):
            old.correct(1, right[1] | {"Lyon->north": [1.0, 1.0]})
        old.save(tmp_path / "again.npz")
    old.tell(7, costs(7, old.ask(key="day 7").plan, 80.0), at=300.0)
    old.correct("day 7", right[7])
    learner.tell(7, right[7], at=300.0)
    assert old.arms().equals(learner.arms())


@pytest.mark.parametrize("policy", ["BootstrapCTS", "GenLBINFV", "FeatureCTS"])
def test_a_file_with_events_can_be_corrected(policy: str, tmp_path: Path) -> None:
    """Files of format 4, which were written by ``lived`` with wrong reports."""
    expected, right = lived(POLICIES[policy], masked=False)
    wrong, _ = lived(POLICIES[policy], WRONG, masked=False)
    file = DATA / f"learner-4-{policy}.npz"
    learner = mp.Learner.load(file)
    columns = ["id", "key", "status", "asked", "told", "units", "seen", "clipped"]
    assert learner.plays(external=True)[columns].equals(wrong.plays(external=True)[columns])
    assert_near(learner, wrong)
    learner.save(tmp_path / "again.npz")
    for one in (learner, mp.Learner.load(tmp_path / "again.npz")):
        for day in WRONG:
            assert day == 8 or one.tell(day, costs(day, planned(one, day), 80.0)).repeated
            assert not one.correct(f"day {day}", right[day]).repeated
        assert_near(one, expected)
        assert one.plays()["status"].tolist() == expected.plays()["status"].tolist()
        one.retract("day 4")
        assert one.open_plays == expected.open_plays + 1
        assert not one.tell(4, right[4], at=45.0).repeated


def assert_near(one: mp.Learner, other: mp.Learner) -> None:
    """Compare the beliefs of learners, one of which another processor may have computed."""
    features = {"rain": True} if one.features is not None else None
    numbers = [
        table.arms(features=features).set_index("arm")[["seen", "average", "mean"]]
        for table in (one, other)
    ]
    assert (numbers[0].index == numbers[1].index).all()
    np.testing.assert_allclose(numbers[0].to_numpy(), numbers[1].to_numpy(), rtol=1e-9)
