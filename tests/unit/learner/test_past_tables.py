"""What imported tables tell of the past: changes within them, and savings against their plans."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import multiplay as mp
from multiplay.errors import InvalidInput
from multiplay.learner.facts import rows_of
from multiplay.studies.results import DRIFT
from multiplay.studies.wire import of_table, to_table

DEPOTS, TOWNS = ("Lyon", "Lille", "Metz"), ("north", "south", "coast")
NAMES = [f"{depot}->{town}" for depot in DEPOTS for town in TOWNS]
DEMANDS = ([5, 6, 7], [6, 6, 6], [4, 5, 6])
FIRST = np.datetime64("2025-01-01")


def trucks(demand: list[int]) -> mp.Transport:
    return mp.Transport([6, 6, 6], demand, slack=True, names=NAMES)


def bills_of(plans: list[Any], means: Any, rng: np.random.Generator) -> pd.DataFrame:
    """Return the bills of a plan of each day; ``means`` are those of each day."""
    rows = [
        (NAMES[i], str(FIRST + day), float(means[day][i] * rng.uniform(0.7, 1.3)))
        for day, plan in enumerate(plans)
        for i in range(len(NAMES))
        for _ in range(int(plan[i]))
    ]
    return pd.DataFrame(rows, columns=["arm", "round", "loss"])


def year(jumps: dict[int, tuple[int, float]], seed: int = 3) -> pd.DataFrame:
    """Return bills of a year, where the mean of some arms jumps by a factor on a day."""
    rng = np.random.default_rng(seed)
    means = np.tile(rng.uniform(80.0, 200.0, len(NAMES)), (365, 1))
    for arm, (day, factor) in jumps.items():
        means[day:, arm] *= factor
    return bills_of([*rng.integers(0, 3, (365, len(NAMES)))], means, rng)


@pytest.mark.parametrize("policy", [None, mp.GenCTS()])
def test_a_change_within_a_table_is_listed_with_its_day(policy: Any, tmp_path: Path) -> None:
    table = year({2: (270, 1.6)})
    learner = mp.Learner(trucks(DEMANDS[0]), policy, loss_range=(0, 700))
    study = mp.Study.create(
        "a", learner.actions, policy, store=tmp_path / "a.db", loss_range=(0, 700)
    )
    half = table["round"] < "2025-07-01"
    for one in (learner, study):
        one.learn_table(table[half], source="early.csv")
        one.learn_table(table[~half], source="late.csv")
        found = one.drift()
        assert found["arms"].tolist() == [[NAMES[2]]]
        assert found["since"].tolist() == [0]
        (row,) = rows_of(found)
        assert abs(row.date - datetime(2025, 9, 28, tzinfo=UTC)).days <= 3
        assert 1.45 <= row.after / row.before <= 1.75
        assert row.sure > 0.95
        truth = table[(table["arm"] == NAMES[2]) & (table["round"] >= "2025-09-28")]
        assert abs(row.units - len(truth)) <= 6
        assert row.acted
        mean = one.arms().set_index("arm")["mean"][NAMES[2]]
        assert abs(mean / row.after - 1) < 0.1  # what was before does not count
        back = to_table(of_table(found), DRIFT)
        pd.testing.assert_frame_equal(back, found, check_dtype=False)
        one.retract("late.csv")
        assert one.drift().empty


def test_a_change_is_not_acted_on_if_older_bills_come_last() -> None:
    table = year({2: (270, 1.6)})
    learner, half = mp.Learner(trucks(DEMANDS[0]), loss_range=(0, 700)), "2025-07-01"
    learner.learn_table(table[table["round"] >= half])
    learner.learn_table(table[table["round"] < half])
    (row,) = rows_of(learner.drift())
    assert abs(row.date - datetime(2025, 9, 28, tzinfo=UTC)).days <= 3
    assert not row.acted


def test_tables_without_a_change_or_without_dates_list_nothing() -> None:
    for table in (year({}), year({2: (270, 1.6)}).assign(round=1), year({}).head(1)):
        learner = mp.Learner(trucks(DEMANDS[0]), loss_range=(0, 700))
        learner.learn_table(table)
        assert learner.drift().empty


def test_a_change_that_all_lanes_share_is_one_row_with_missing_costs() -> None:
    table = year(dict.fromkeys(range(9), (200, 1.4)))
    table.loc[::7, "loss"] = np.nan
    learner = mp.Learner(trucks(DEMANDS[0]), loss_range=(0, 900))
    learner.learn_table(table)
    (row,) = rows_of(learner.drift())
    assert row.arm == "9 of 9 arms"
    assert abs(row.date - datetime(2025, 7, 20, tzinfo=UTC)).days <= 7  # the first of nine


# ------------------------------------------------------------ savings against what was driven


def played(learner: Any, means: Any, rng: np.random.Generator, days: int, demands: Any) -> Any:
    """Play days in turn on these demands; return the plans as arrays."""
    plans = []
    for day in range(days):
        play = learner.ask(trucks(demands[day % len(demands)]), key=f"{FIRST + 400 + day}")
        drawn = {
            name: (m * rng.uniform(0.7, 1.3, 6)).tolist()
            for name, m in zip(NAMES, means, strict=True)
        }
        learner.tell(play, {name: drawn[name][:n] for name, n in play.plan.items()})
        plans.append(np.array([play.plan.get(name, 0) for name in NAMES]))
    return plans


def test_savings_against_what_was_driven_on_the_same_demand(tmp_path: Path) -> None:
    """The plans of the past take turns: the saving is that against them, given by key."""
    rng = np.random.default_rng(5)
    means = rng.uniform(80.0, 200.0, 9)
    past = [trucks(DEMANDS[0]).argmin(means + rng.normal(0, 60, 9)) for _ in range(4)]
    table, keys = bills_of(past, [means] * 4, rng), [f"{FIRST + 400 + day}" for day in range(12)]
    study = mp.Study.create("a", trucks(DEMANDS[0]), store=tmp_path / "a.db", loss_range=(0, 400))
    study.learn_table(table)
    played(study, means, rng, 12, DEMANDS[:1])
    plans = {key: dict(zip(NAMES, past[k % 4].tolist(), strict=True)) for k, key in enumerate(keys)}
    found, same = study.savings("driven"), study.savings(plans)
    assert (found.total, found.low, found.high) == (same.total, same.low, same.high)
    assert found.rule.endswith("of 4 imported days (the demand is the same for 12 of 12)")
    assert study.savings(versus="driven") is found  # from the cache


def test_few_days_are_compared_with_plans_of_all_the_past() -> None:
    """Not with the first ones only: plans before a depot opened cost more than those after it."""
    rng = np.random.default_rng(8)
    means = rng.uniform(80.0, 200.0, 9)
    past = [trucks(DEMANDS[0]).argmin(means + rng.normal(0, 60, 9)) for _ in range(30)]
    learner = mp.Learner(trucks(DEMANDS[0]), loss_range=(0, 400))
    learner.learn_table(bills_of(past, [means] * 30, rng))
    played(learner, means, rng, 12, DEMANDS[:1])
    chosen = [past[day * 30 // 12].tolist() for day in range(12)]
    plans = {f"{FIRST + 400 + k}": dict(zip(NAMES, x, strict=True)) for k, x in enumerate(chosen)}
    found, same = learner.savings("driven"), learner.savings(plans)
    assert (found.total, found.low, found.high) == (same.total, same.low, same.high)


def test_another_demand_is_compared_with_the_nearest_plan() -> None:
    rng = np.random.default_rng(6)
    means, set_ = rng.uniform(80.0, 200.0, 9), trucks([3, 4, 5])
    past = [trucks(DEMANDS[0]).argmin(means + rng.normal(0, 60, 9)) for _ in range(6)]
    learner = mp.Learner(set_, loss_range=(0, 400))
    learner.learn_table(bills_of(past, [means] * 6, rng))
    played(learner, means, rng, 12, ([3, 4, 5], [1, 1, 1]))  # the second: too few units to compare
    found = learner.savings("driven")
    average = np.mean(past, axis=0)
    average *= 12 / average.sum()
    every = set_.enumerate()
    near = every[((every - average) ** 2).sum(axis=1).argmin()]
    assert found.left_out == 6
    assert "0 of 12" in found.rule
    plan = dict(zip(NAMES, near.tolist(), strict=True))
    given = {f"{FIRST + 400 + day}": plan for day in range(0, 12, 2)}
    same = learner.savings(given)
    assert (found.total, found.low, found.high) == (same.total, same.low, same.high)


def test_without_imported_days_the_error_says_what_to_do() -> None:
    learner = mp.Learner(trucks(DEMANDS[0]), loss_range=(0, 400))
    played(learner, np.full(9, 100.0), np.random.default_rng(1), 12, DEMANDS)
    with pytest.raises(InvalidInput, match=r"versus: expected imported days.*learn_table"):
        learner.savings("driven")


@pytest.mark.slow
def test_intervals_against_what_was_driven_contain_the_true_saving() -> None:
    """40 lives: fewer than 34 inside would have a probability below 1 % at 95 %."""
    inside = 0
    for life in range(40):
        rng = np.random.default_rng([7, life])
        means = rng.uniform(80.0, 200.0, 9)
        days = [DEMANDS[k] for k in rng.integers(0, 3, 40)]
        past = [trucks(day).argmin(means + rng.normal(0, 40, 9)) for day in days]
        learner = mp.Learner(trucks(DEMANDS[0]), seed=life, loss_range=(0, 400))
        learner.learn_table(bills_of(past, [means] * 40, rng))
        plans, true = played(learner, means, rng, 30, DEMANDS), 0.0
        for k, plan in enumerate(plans):
            own = [one for one in past if trucks(DEMANDS[k % 3]).contains(one)]
            place = k // 3 * max(len(own), 10) // 10  # ten days of each demand
            true += float((own[place % len(own)] - plan) @ means)
        found = learner.savings("driven")
        inside += found.low <= true <= found.high
    assert inside >= 34
