"""Constraints together: each promise is kept, the allowance holds, and changes are rare."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from constraint_reports import baseline_report, promise_reports

from multiplay import (
    AtMost,
    Baseline,
    BootstrapCTS,
    Budget,
    Changes,
    CombUCB,
    FixedPlan,
    GenCTS,
    InProportion,
    Learner,
    Study,
    SwitchingCost,
    Transport,
)

PLANS = Transport([8, 9, 13], [10, 10, 10])
MEANS = np.random.default_rng(3).uniform(20, 180, PLANS.d)
AMOUNTS = {name: float(1 + 7 * i % 5) for i, name in enumerate(PLANS.names)}
LIMIT, DAYS = 930.0, 12
GIVEN = {
    "promise": AtMost(LIMIT, of=AMOUNTS, plays=DAYS, name="CO2"),
    "switching": SwitchingCost(15.0),
    "baseline": Baseline(InProportion(), 0.03),
}
CASES = [one for k in range(4) for one in combinations(GIVEN, k)]


def settings(names: tuple[str, ...]) -> dict[str, Any]:
    return {"constraints": [GIVEN[name] for name in names]}


def bill(play: Any, rng: np.random.Generator) -> dict[str, list[float]]:
    return {
        arm: rng.normal(MEANS[i], 10, k).clip(0, 200).tolist()
        for i, (arm, k) in enumerate(play.plan.items())
    }


def played(owner: Any, days: int = DAYS) -> tuple[list[Any], float, int]:
    """Return the plays of some days, what they used of the promise, and how many units changed."""
    rng, plays, used = np.random.default_rng(0), list[Any](), 0.0
    for t in range(days):
        plays.append(play := owner.ask(key=f"day {t}"))
        used += sum(AMOUNTS[arm] * units for arm, units in play.plan.items())
        owner.tell(play.id, bill(play, rng))
    changed = sum(int(np.abs(one.action - last.action).sum()) for last, one in pairwise(plays))
    return plays, used, changed


@pytest.mark.parametrize(
    "policy", [GenCTS(), BootstrapCTS(memory=Changes()), CombUCB(0.3)], ids=repr
)
def test_all_constraints_hold_together(policy: Any) -> None:
    changed, used = dict[tuple[str, ...], int](), dict[tuple[str, ...], float]()
    for names in CASES:
        learner = Learner(PLANS, policy, seed=1, loss_range=(0, 200), **settings(names))
        _, used[names], changed[names] = played(learner)
        if "promise" in names:
            (report,) = promise_reports(learner)
            assert used[names] == report.used <= LIMIT
        if "baseline" in names:
            assert baseline_report(learner).sure_of >= 0
    assert used[()] > LIMIT
    assert changed["switching",] <= changed[()]
    assert changed["promise", "switching"] <= changed["promise",]
    assert changed["promise", "switching", "baseline"] <= changed["promise", "baseline"]


@pytest.mark.parametrize(
    "policy", [GenCTS(), BootstrapCTS(memory=Changes()), CombUCB(0.3)], ids=repr
)
def test_a_switching_cost_and_a_baseline_change_fewer_units(policy: Any) -> None:
    """In total over six seeds; a single one may change a few more."""

    def changed(*names: str) -> int:
        each = settings(names) | {"loss_range": (0, 200)}
        return sum(played(Learner(PLANS, policy, seed=seed, **each))[2] for seed in range(1, 7))

    assert changed("switching", "baseline") < changed("baseline")


def test_a_study_plays_as_a_learner_and_verifies(tmp_path: Path) -> None:
    """Also after it was read again from its journal, bit by bit."""
    store, names = tmp_path / "plans.db", tuple(GIVEN)
    study = Study.create("a", PLANS, GenCTS(), loss_range=(0, 200), store=store, **settings(names))
    plays, used, _ = played(study)
    assert used <= LIMIT
    assert any(play.restricted for play in plays)
    assert any(play.change_cost for play in plays)
    assert study.verify().ok
    learner, file = Learner(PLANS, GenCTS(), loss_range=(0, 200), **settings(names)), tmp_path / "b"
    played(learner, DAYS - 3)
    learner.save(file)
    again = Learner.load(file)
    assert [learner.ask().plan for _ in range(3)] == [again.ask().plan for _ in range(3)]


def test_a_promise_comes_before_a_baseline_that_breaks_it() -> None:
    """The baseline would use 10 of air every day; at most 4 a day are promised."""
    plans = Budget(10, [10, 10], names=["air", "sea"])
    co2 = AtMost(40, of={"air": 1, "sea": 0}, plays=10, name="CO2")
    rule = FixedPlan({"air": 10, "sea": 0})
    learner = Learner(
        plans, GenCTS(), seed=1, loss_range=(0, 100), constraints=[Baseline(rule, 0.02), co2]
    )
    used, said = 0, 0
    for _ in range(10):
        play = learner.ask()
        used += play.plan["air"]
        said += "beyond the allowance" in str(why := play.why())
        assert why.promise_first == ("beyond the allowance" in str(why))
        learner.tell(play, {"air": [20.0] * play.plan["air"], "sea": [60.0] * play.plan["sea"]})
    assert used <= 40
    assert said >= 5
    assert baseline_report(learner).spent > 0
