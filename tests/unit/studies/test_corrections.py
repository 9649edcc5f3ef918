"""Corrected and retracted reports: the state is that of a study that was told the right ones."""

import math
import random
from collections import Counter
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from processes import in_processes
from trucks import costs, plans, tables, verified

import multiplay as mp
from multiplay._support import builder
from multiplay.errors import Conflict, InvalidInput
from multiplay.learner import policy_state
from multiplay.storage import Labels, MemoryStore, Record, Store, store_at
from multiplay.studies import entry_codec, export, replica, synced

FEATURES = mp.Features(rain=mp.Flag())
POLICIES: dict[str, mp.Policy] = {
    "BootstrapCTS": mp.BootstrapCTS(memory=mp.Changes()),
    "GenCTS": mp.GenCTS(),
    "CombUCB": mp.CombUCB(),
    "GenLBINFV": mp.GenLBINFV(),
    "FeatureCTS": mp.FeatureCTS(memory=mp.Changes()),
}
EXTERNAL = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
WRONG, RIGHT = 80.0, 0.0  # more than the right costs
DAYS, HOUR = 24, 3600.0


def losses_of(plan: Mapping[str, int], day: int, more: float = RIGHT) -> dict[str, list[float]]:
    return costs(day, plan, more)


def created(policy: mp.Policy, store: Store) -> mp.Study:
    features = FEATURES if policy.reads_features else None
    return mp.Study.create(
        "lanes", plans(), policy, loss_range=(0, 250), seed=5, features=features, store=store
    )


def lived(policy: mp.Policy, store: Store) -> tuple[mp.Study, list[int]]:
    """Return a study of many days with wrong reports of some plays, and these plays.

    Some reports come in parts, two plays are pending, one is cancelled, and one is closed. External
    plans are learned; the losses of an arm are forgotten, and kept again.
    """
    study, wrong, draw = created(policy, store), list[int](), random.Random(3)
    for day in range(1, DAYS + 1):
        today: dict[str, Any] = (
            {"features": {"rain": day % 3 == 0}} if policy.reads_features else {}
        )
        play = study.ask(key=f"day {day}", at=HOUR * day, **today)
        is_wrong = draw.random() < 0.3
        wrong += [day] if is_wrong and day not in (4, 9, 15) else []
        told = losses_of(play.plan, day, WRONG if is_wrong else RIGHT)
        if day in (4, 9):
            continue
        if day == 15:
            study.cancel(play)
            continue
        if policy.partial and day % 4 == 0:
            lane = max(told, key=lambda lane: len(told[lane]))
            study.tell(play, {lane: told[lane][:1]}, final=False, at=HOUR * day + 60)
            told[lane] = [None, *told[lane][1:]]  # type: ignore[list-item]
        study.tell(play, told, at=HOUR * day + 90)
        if day == 10:
            study.learn(EXTERNAL, losses_of(EXTERNAL, 0, WRONG), key="external", at=50.0, **today)
        if policy.partial and day in (14, 20):
            study.forget("Lyon->north", before=day - 5, at=HOUR * day + 100)
        if policy.partial and day == 18:
            study.unforget("Lyon->north", at=HOUR * day + 100)
    return study, wrong


def told_rightly(study: mp.Study, entries: int) -> mp.Study:
    """Return a study with the same plays at the same numbers, told the right losses at once."""
    found = [*study.entries()][:entries]
    store, filler = MemoryStore(), Record({"plays": []}, {})
    journal = store.create("lanes", found[0].record, found[0].labels)
    twin = mp.Study.open("lanes", store=store)
    ended = {entry.labels.play: entry.number for entry in found if entry.labels.kind == "tell"}
    for entry in found[1:]:
        kind, _, play, at = entry.labels
        if kind in ("ask", "cancel"):
            journal.write(entry.record, entry.labels)
        elif kind == "part" and play in ended:  # the right report comes at once
            journal.write(filler, Labels("expire", at=at))
        elif kind == "tell":
            assert play is not None
            twin.tell(play, losses_of(plan_of(twin, play), play), at=at)
        elif kind == "learn":
            features = entry_codec.StoredFeatures.of_record(entry.record).header.get("features")
            given = {} if features is None else {"features": features}
            twin.learn(EXTERNAL, losses_of(EXTERNAL, 0), key="external", at=at, **given)
        else:
            given = {entry_codec.RESTARTS[kind]: entry.record.header["given"]}
            verb = twin.forget if kind == "forget" else twin.unforget
            verb(entry.record.header["arm"], at=at, **given)
    return twin


def plan_of(study: mp.Study, id: int) -> dict[str, int]:
    """Return the plan of a play from its entry."""
    asked = next(one for one in study.entries() if one.labels == one.labels._replace(play=id))
    plan = asked.record.header["plan"]
    return {name: plan.get(name, 0) for name in study.actions.names}


def state(study: mp.Study) -> Any:
    """Return the state of a study, without the place in its journal."""
    with study._turn() as replica:
        record = replica.record()
    header = record.header["core"]
    return header, {name: array.tobytes() for name, array in record.arrays.items()}


@pytest.mark.parametrize("policy", POLICIES)
def test_the_state_is_that_of_a_study_told_the_right_losses(policy: str) -> None:
    store = MemoryStore()
    study, wrong = lived(POLICIES[policy], store)
    other = mp.Study.open("lanes", store=store)
    entries, before = study.head.number + 1, state(study)
    twin = told_rightly(study, entries)
    right = state(twin)
    assert before != right
    for day in random.Random(1).sample(wrong, len(wrong)):
        plan = plan_of(study, day)
        told = study.correct(f"day {day}", losses_of(plan, day), key=f"right {day}")
        assert (told.id, told.seen, told.repeated) == (day, 5, False)
        for more in (RIGHT, WRONG):
            late = losses_of(plan, day, more)
            if more == RIGHT or day % 4:
                assert study.tell(day, late).repeated, "a late duplicate of either report"
        assert study.correct(day, losses_of(plan, day)).repeated
        assert study.correct(day, losses_of(plan, day), key=f"right {day}").repeated
    assert study.correct("external", losses_of(EXTERNAL, 0)).id is None
    assert state(study) == right
    assert state(other) == right, "another handle that was open"
    assert state(mp.Study.open("lanes", store=store)) == right
    assert study.plays().drop(columns="told").equals(twin.plays().drop(columns="told"))
    assert study.plays()["told"].equals(twin.plays()["told"])
    assert verified(study).ok, f"{verified(study)}"
    next_play = study.ask(features={"rain": True} if POLICIES[policy].reads_features else None)
    study.tell(next_play, losses_of(next_play.plan, 0))
    assert verified(study).ok, f"{verified(study)}"


@pytest.mark.parametrize("policy", ["BootstrapCTS", "GenLBINFV"])
def test_a_retracted_play_is_pending_as_if_it_had_not_been_told(policy: str) -> None:
    """Also with rounds of ``forget`` that were counted with it."""
    store, never = MemoryStore(), MemoryStore()
    both = [created(POLICIES[policy], one) for one in (store, never)]
    for day in range(1, 13):
        for study, is_told in zip(both, (True, day != 3), strict=True):
            if study is both[1]:
                asked = [e for e in both[0].entries() if e.labels.kind == "ask"][-1]
                mp.Study.open("lanes", store=never)._journal.write(asked.record, asked.labels)
            else:
                study.ask(key=f"day {day}", at=HOUR * day)
            plan = study.ask(key=f"day {day}").plan
            if is_told:
                study.tell(f"day {day}", losses_of(plan, day), at=HOUR * day + 1)
            else:  # so that later entries have the same numbers
                study._journal.write(Record({"plays": []}, {}), Labels("expire"))
            if day == 9 and study.policy.partial:
                study.forget("Lyon->north", before=6 if is_told and study is both[0] else 5)
    study, twin = both
    study.retract("day 3", key="no")
    study.retract(3, key="no")  # the same request
    assert state(study)[1] == state(twin)[1]
    assert [play.id for play in study.pending()] == [3]
    assert study.plays()["status"].tolist() == twin.plays()["status"].tolist()
    with pytest.raises(Conflict, match="pending"):
        study.retract(3)
    plan = study.ask(key="day 3").plan
    assert not study.tell(3, losses_of(plan, 3, WRONG)).repeated
    study.correct(3, losses_of(plan, 3))
    twin.tell(3, losses_of(plan, 3))
    assert study.arms()["average"].tolist() == pytest.approx(twin.arms()["average"].tolist())
    study.retract(3)
    study.cancel(3)
    with pytest.raises(Conflict, match=r"cancelled\. Use learn"):
        study.correct(3, losses_of(plan, 3))
    assert verified(study).ok, f"{verified(study)}"


def test_a_report_that_was_retracted_before_the_play_was_closed_was_not_told() -> None:
    study = created(mp.GenCTS(), MemoryStore())
    play = study.ask()
    told = losses_of(play.plan, 1)
    study.tell(play, told)
    assert study.tell(play, told).repeated
    study.retract(play.id)
    study.close(play)
    with pytest.raises(InvalidInput, match="closed with different losses"):
        study.tell(play, told)
    assert study.plays()["seen"].tolist() == [0]


def test_parts_and_external_plans_can_be_retracted() -> None:
    study = created(mp.GenCTS(), MemoryStore())
    play = study.ask(key="7")
    lane = next(lane for lane, trucks in play.plan.items() if trucks > 1)
    asked = state(study)
    study.tell("7", {lane: [249.0]}, final=False)
    study.retract("7")
    assert state(study) == asked
    study.learn(EXTERNAL, losses_of(EXTERNAL, 1), key="plan")
    table = {"arm": ["Lyon->north", "Nice->west"], "round": [1, 1], "loss": [1.0, 2.0]}
    study.learn_table(table, key="history")
    with pytest.raises(InvalidInput, match="a table"):
        study.correct("history", {})
    for key in ("plan", "history"):
        study.retract(key)
        with pytest.raises(Conflict, match="retracted"):
            study.retract(key)
    assert state(study) == asked
    study.tell("7", losses_of(play.plan, 1))
    assert verified(study).ok, f"{verified(study)}"


def test_a_replay_does_not_build_a_set_arc_by_arc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sets of days are graphs; what is checked when they are asked is not checked again."""
    nodes = [f"stop {k}" for k in range(40)]
    arcs = [(one, other) for k, one in enumerate(nodes) for other in nodes[k + 1 : k + 6]]
    ways = [mp.Path(arcs[k:], nodes[0], nodes[-1]) for k in range(4)]
    study = mp.Study.create("ways", ways[0], mp.GenCTS(), loss_range=(0, 250), store=MemoryStore())
    for way in ways[1:]:
        play = study.ask(way)
        study.tell(play, losses_of(play.plan, play.id))
    built, original = Counter[str](), builder.Builder.build

    def build(own: builder.Builder, where: str, plain: Any, wanted: type = object) -> Any:
        built[where] += 1
        return original(own, where, plain, wanted)

    with monkeypatch.context() as patch:
        patch.setattr(policy_state, "check_storable", None)
        patch.setattr(builder.Builder, "build", build)
        study.retract(1)
    assert 0 < built.total() < len(arcs)
    assert verified(study).ok, f"{verified(study)}"


@pytest.mark.parametrize("entries", [0, 1, 20])
def test_a_replay_that_is_stopped_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    """At any entry, also between verbs of one transaction; without a limit, the verb is done."""
    study, _ = lived(POLICIES["BootstrapCTS"], MemoryStore())
    plan = study.ask(key="day 1").plan
    before, verbs = (
        (tables(study), study.head),
        (
            lambda: study.correct("day 1", losses_of(plan, 1, 5.0)),
            lambda: study.retract("day 2"),
            lambda: study.forget("Lyon->north", before=9),
            lambda: study.unforget(since=0),
        ),
    )
    with monkeypatch.context() as patch:
        ticks = count()
        patch.setattr(replica, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
        study.replay_limit = float(entries)
        for verb in verbs:
            with pytest.raises(InvalidInput) as caught:
                verb()
            assert caught.value.argument == "study"
            assert (tables(study), study.head) == before
        with study.together():
            for verb in verbs:
                with pytest.raises(InvalidInput):
                    verb()
            study.set_words(mp.Words(unit="truck"))
        assert study.head.number == before[1].number + 1
    study.replay_limit = math.inf
    for verb in verbs:
        verb()
    assert verified(study).ok, f"{verified(study)}"


@pytest.mark.slow
def test_a_process_sees_the_corrections_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a snapshot before the play, from the beginning, and from a snapshot after it."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 16)
    place = str(tmp_path / "trucks.db")
    study, wrong = lived(mp.GenCTS(), store_at(place))
    for day in (wrong[-1], wrong[0]):

        def correct(number: int, day: int = day) -> None:
            with mp.Study.open("lanes", store=place) as there:
                there.correct(day, losses_of(there.ask(key=f"day {day}").plan, day))
                (tmp_path / "tables").write_text(repr(tables(there)))

        study.disconnect()
        in_processes(1, correct)
        found = (tmp_path / "tables").read_text()
        assert repr(tables(study)) == found
        assert repr(tables(mp.Study.open("lanes", store=place))) == found
    assert verified(study).ok, f"{verified(study)}"


def test_a_recent_report_is_replayed_from_the_snapshot_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if a newer snapshot has the wrong report."""
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 16)
    study = created(mp.GenCTS(), MemoryStore())
    for day in range(1, 19):
        study.tell(study.ask(key=f"day {day}"), losses_of(study.ask(key=f"day {day}").plan, day))
    kept = [study._journal.get(before) for before in (None, 32)]
    assert [record and record.header["number"] for record in kept] == [32, 16]
    began = []
    for day in (18, 12, 2):  # told in entry 36, 24 and 4
        plan = study.ask(key=f"day {day}").plan
        study.correct(day, losses_of(plan, day, WRONG))
        with study._turn() as replica:
            began.append(replica.began)
        assert tables(mp.Study.open("lanes", store=study.store)) == tables(study)
    assert began == [32, 16, 0]
    assert verified(study).ok, f"{verified(study)}"


def test_a_corrected_journal_is_exported_and_imported(tmp_path: Path) -> None:
    """With a report that was told again after it was retracted; a wrong correction is refused."""
    study = created(mp.GenCTS(), MemoryStore())
    for day in range(1, 5):
        play = study.ask(key=f"day {day}")
        study.tell(play, losses_of(play.plan, day, WRONG))
        if day == 2:
            study.retract(play)
            study.tell(play, losses_of(play.plan, day))
        study.correct(1, losses_of(study.ask(key="day 1").plan, 1, 5.0 * day))
    store, path = MemoryStore(), tmp_path / "lanes.jsonl"
    study.export(path)
    imported = mp.Study.import_journal("lanes", path, store=store)
    assert state(imported) == state(study)
    assert tables(imported) == tables(study)
    assert verified(imported).ok, f"{verified(imported)}"
    study.copy(store, name="copy")
    assert tables(mp.Study.open("copy", store=store)) == tables(study)
    of_ask = Record({"of": 1, "parts": []}, {})  # not a report
    study._journal.write(of_ask, Labels("retract", None, 1))
    journal = export.history_in(study.store, study.name)
    content = export.Content.checked(False, False, False, ())
    export.export(journal, tmp_path / "wrong.jsonl", content, lambda: export.overview(study))
    with pytest.raises(InvalidInput, match="line"):
        mp.Study.import_journal("wrong", tmp_path / "wrong.jsonl", store=store)
    assert mp.Study.names(store=store) == ["copy", "lanes"]


def test_the_key_of_a_cancelled_play_is_that_of_the_plan_that_was_driven() -> None:
    study = created(POLICIES["GenCTS"], MemoryStore())
    study.cancel(study.ask(key="Monday"))
    study.learn(EXTERNAL, losses_of(EXTERNAL, 1, WRONG), key="Monday")
    told = study.correct("Monday", losses_of(EXTERNAL, 1))
    assert (told.id, told.seen) == (None, 5)
    right = sum(map(sum, losses_of(EXTERNAL, 1).values()))
    assert study.plans()["loss"].sum() == pytest.approx(right)
    study.retract("Monday")
    assert (study.plans()["status"] == "cancelled").all()
    assert study.verify().ok
