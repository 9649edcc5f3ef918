"""Files with constraints of the version before ``constraints=``; see data/write_constraints.py."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import multiplay as mp

DATA = Path(__file__).parents[2] / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "expected-constraints.json").read_text())
AT, DAY = 1_794_000_000.0, 86_400.0
LIMIT = mp.Baseline(mp.InProportion(), 0.3, per="week")


def owner_of(kind: str, folder: Path) -> Any:
    if kind == "learner":
        return mp.Learner.load(DATA / "learner-constraints.npz")
    file = Path(shutil.copy(DATA / "study-constraints.db", folder))
    return mp.Study.open("lanes", store=file)


def next_plans(owner: Any) -> list[dict[str, int]]:
    plans = []
    for day in range(11, 15):
        play = owner.ask(key=f"day {day}", at=AT + day * DAY)
        plans.append(dict(play.plan))
        costs = {
            arm: [60.0 + 31 * ((day + len(arm)) % 5) + 7 * k for k in range(n)]
            for arm, n in play.plan.items()
        }
        owner.tell(play, costs, at=AT + day * DAY + 60)
    return plans


@pytest.mark.parametrize("kind", ["study", "learner"])
def test_it_continues_with_its_constraints(kind: str, tmp_path: Path) -> None:
    owner = owner_of(kind, tmp_path)
    baseline, switching, co2, carrier = owner.constraints()
    assert baseline.constraint == LIMIT
    assert switching.constraint == mp.SwitchingCost(0.5)
    assert switching.changed > 0
    assert (co2.constraint.hard, carrier.constraint) == (
        False,
        mp.AtLeast(4, {"*": 0, "Lille->south": 1}, plays=20, name="carrier"),
    )
    assert next_plans(owner) == EXPECTED[kind]
    assert [[one.name, one.used, one.left_plays] for one in owner.constraints()[2:]] == [
        [one[name] for name in ("name", "used", "left_plays")] for one in EXPECTED["promises"]
    ]
    if kind == "study":
        assert owner.verify().ok
    owner.end_constraint("baseline")
    owner.end_constraint("carrier")
    assert [one.name for one in owner.constraints()] == ["switching cost", "CO2"]


def test_the_study_is_intact_and_its_keys_are_known(tmp_path: Path) -> None:
    study = owner_of("study", tmp_path)
    assert study.verify().ok
    assert study.promised == ("CO2", "carrier", "short")


def test_a_learner_counts_changed_units_of_an_older_file() -> None:
    learner = mp.Learner.load(DATA / "learner-constraints.npz")
    spent = learner.constraints()[1]
    cost = sum(learner.ask(key=f"day {day}").change_cost for day in range(10))
    assert isinstance(spent, mp.SwitchingReport)
    assert spent.spent == cost + learner.pending()[-1].change_cost
