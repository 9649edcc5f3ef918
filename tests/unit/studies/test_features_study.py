"""Studies with features: entries, replicas, snapshots, verification, copies, kills."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multiplay import Category, Features, Flag, InvalidInput, Learner, Number, Reports, Transport
from multiplay.studies import Study, synced
from multiplay.studies.entry_codec import FEW_ARMS

SIDES = (["Lyon", "Lille"], ["north", "south"])
PLANS = Transport([2, 1], [1, 2], names=SIDES)
OTHER = Transport([2, 1], [1, 2], names=(["Lyon", "Paris"], ["north", "south"]))
KM = {"Lyon->north": 450.0, "Lyon->south": 150.0, "Lille->north": 220.0, "Lille->south": 700.0}
DECLARED = Features(
    km=Number(),
    fuel=Number(unit="EUR/l"),
    weekday=Category(["Mon", "Tue"], others=True),
    rain=Flag(),
    products=[("km", "fuel")],
)


def today(day: int) -> dict[str, Any]:
    weekday = ["Mon", "Tue", "Sun"][day % 3]
    rain = {"Lyon->south": day % 2 == 0, "*": False}
    return {"fuel": 1.5 + 0.05 * (day % 5), "weekday": weekday, "rain": rain}


def created(store: Any) -> Study:
    settings: dict[str, Any] = {
        "loss_range": (0, 250),
        "varying_set": True,
        "reports": Reports(missing="ignore"),
    }
    return Study.create(
        "lanes", PLANS, features=DECLARED, arm_features={"km": KM}, store=store, **settings
    )


def live(study: Study, days: range) -> None:
    """Late, partial, missing and cancelled plays, other sets, new arms, external plans."""
    rng = np.random.default_rng(days.start)
    late = []
    for day in days:
        given = today(day)
        if day == 4:
            given["km"] = {"Paris->north": 250.0, "Paris->south": 330.0}
        play = study.ask(OTHER if day in (4, 9) else None, features=given, key=f"day {day}")
        lanes = {lane: rng.uniform(50, 200, units).tolist() for lane, units in play.plan.items()}
        if day % 4 == 1:
            late.append((play.id, lanes))
        elif day % 4 == 2:
            first = next(lane for lane, units in play.plan.items() if units)
            study.tell(play.id, {first: lanes[first][:1]}, final=False)
            study.close(play.id)
        elif day == 7:
            study.cancel(play.id)
        else:
            study.tell(play.id, lanes)
        if day == 5:
            study.set_arm_features(
                {"km": {"Nice->north": 900.0}, "weekday": {"Nice->north": "Sat"}}
            )
            plan = {"Lyon->south": 2, "Lille->north": 1}
            study.learn(plan, {"Lyon->south": [80.0, 90.0]}, features=given)
    for id, lanes in reversed(late):
        study.tell(id, lanes)


def table() -> dict[str, list[Any]]:
    return {
        "arm": ["Lyon->south", "Lyon->south", "Lille->north"],
        "round": [1, 1, 2],
        "loss": [95.0, 99.0, 130.0],
        "fuel": [1.5, 1.5, 1.6],
        "weekday": ["Mon", "Mon", "Sat"],
        "rain": [True, True, False],
    }


def test_a_study_with_features_verifies_and_opens_again(tmp_path: Path) -> None:
    study = created(tmp_path / "one.db")
    study.learn_table(table())
    live(study, range(12))
    verified = study.verify()
    assert verified.ok, verified
    assert verified.unchecked == 0
    again = Study.open("lanes", store=tmp_path / "one.db")
    assert again.best().plan == study.best().plan
    assert again.effects().equals(study.effects())
    assert again.plans().equals(study.plans())


def test_a_study_and_a_learner_believe_the_same() -> None:
    """The same reports give the same beliefs: entries lose nothing."""
    study = created("memory://same")
    learner = Learner(
        PLANS,
        loss_range=(0, 250),
        reports=Reports(missing="ignore"),
        features=DECLARED,
        arm_features={"km": KM},
    )
    for one in (study, learner):
        one.learn_table(table())
        plan = {"Lyon->south": 2, "Lille->north": 1}
        costs = {"Lyon->south": [80.0, 90.0], "Lille->north": [100.0]}
        for day in range(6):
            one.learn(plan, costs, features=today(day))
    fields = ["arm", "mean", "low", "high"]
    at = today(1)
    assert study.arms(features=at)[fields].equals(learner.arms(features=at)[fields])
    assert study.effects().equals(learner.effects())


def test_scales_are_in_the_entry_that_froze_them() -> None:
    study = created("memory://scales")
    first = next(study.entries()).record.header
    assert first["features"]["declared"]["columns"]["km"]["centre"] == np.median([*KM.values()])
    study.ask(features=today(0))
    study.ask(features=today(1))
    asked = [entry.record.header for entry in study.entries() if entry.labels.kind == "ask"]
    assert asked[0]["scales"] == {"fuel": [1.5, 1.0]}
    assert "scales" not in asked[1]
    assert asked[1]["features"] == today(1) | {"weekday": "Tue"}


def test_refused_features_write_nothing() -> None:
    study = created("memory://refused")
    study.ask(features=today(0))
    head, before = study.head, study.effects()
    bad: list[Any] = [None, today(0) | {"fuel": float("nan")}, today(0) | {"rain": {"Nowhere": 1}}]
    for given in bad:
        with pytest.raises(InvalidInput):
            study.ask(features=given)
    with pytest.raises(InvalidInput):
        study.set_arm_features({"km": {"Nice->north": float("inf")}})
    with pytest.raises(InvalidInput):
        study.learn_table(table() | {"fuel": [1.5, 1.7, 1.6]})
    assert study.head == head
    assert study.effects().equals(before)
    assert study.verify().ok


def test_features_of_many_arms_are_arrays_in_the_journal() -> None:
    plans = Transport([2] * 7, [2] * 7)
    study = Study.create(
        "many",
        plans,
        features=Features(x=Number(0, 1), c=Category(["a", "b"], others=True)),
        store="memory://many",
    )
    assert plans.d > FEW_ARMS
    for day in range(3):
        x = {lane: float(i + day) / 10 for i, lane in enumerate(plans.names)}
        c = {lane: "abz"[i % 3] for i, lane in enumerate(plans.names)}
        play = study.ask(features={"x": x, "c": c})
        study.tell(play, {lane: [0.5] * units for lane, units in play.plan.items()})
    entry = next(entry for entry in study.entries() if entry.labels.kind == "ask")
    assert entry.record.header["features"] == {"x": {}, "c": {}}
    np.testing.assert_array_equal(entry.record.arrays["feature/x"], np.arange(49) / 10)
    assert set(entry.record.arrays["feature/c"]) == {-1.0, 0.0, 1.0}
    assert study.verify().ok


def test_snapshots_hold_features(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 5)
    store = tmp_path / "one.db"
    study = created(store)
    live(study, range(6))
    assert study._journal.get() is not None
    other = Study.open("lanes", store=store)  # from the snapshot
    live(other, range(6, 12))
    assert study.effects().equals(other.effects())  # reads the entries of the other
    assert study.verify().ok


def test_copies_backups_and_exports_verify(tmp_path: Path) -> None:
    study = created(tmp_path / "one.db")
    live(study, range(6))
    study.backup(tmp_path / "two.db")
    study.export(tmp_path / "journal.jsonl")
    study.copy("memory://copied")
    copies = [
        Study.open("lanes", store=tmp_path / "two.db"),
        Study.open("lanes", store="memory://copied"),
        Study.import_journal("lanes", tmp_path / "journal.jsonl", store="memory://imported"),
    ]
    for one in copies:
        assert one.head == study.head
        assert one.verify().ok
        assert one.effects().equals(study.effects())


def test_a_learner_with_features_becomes_a_study(tmp_path: Path) -> None:
    learner = Learner(PLANS, loss_range=(0, 250), features=DECLARED, arm_features={"km": KM})
    for day in range(5):
        play = learner.ask(features=today(day))
        if day != 2:
            learner.tell(play, {lane: [90.0] * units for lane, units in play.plan.items()})
    learner.save(tmp_path / "learner")
    study = Study.import_learner("lanes", tmp_path / "learner", store="memory://from")
    assert study.effects().equals(learner.effects())
    waiting = study.pending()[0]
    study.tell(waiting, {lane: [90.0] * units for lane, units in waiting.plan.items()})
    study.ask(features=today(6))
    assert study.verify().ok


@pytest.mark.slow
def test_a_killed_process_leaves_a_study_that_verifies(tmp_path: Path) -> None:
    store = tmp_path / "killed.db"
    created(store)
    program = f"""
    import itertools, os, signal, sys
    from multiplay import Study
    study = Study.open("lanes", store={str(store)!r})
    for day in itertools.count():
        today = {{"fuel": 1.5 + 0.01 * day, "weekday": "Mon", "rain": False}}
        play = study.ask(features=today)
        if day == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        study.tell(play, {{lane: [90.0] * units for lane, units in play.plan.items()}})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == -9
    study = Study.open("lanes", store=store)
    assert study.asked == 8
    assert study.open_plays == 1
    live(study, range(3))
    assert study.verify().ok
