"""Replay: what was logged comes again, no outcome twice a round, the same for everybody."""

import pickle
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from refusal import refused

from multiplay import (
    ActionSet,
    Duplicated,
    Feedback,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Play,
    Policy,
    TimeVarying,
    Transport,
    simulate,
)
from multiplay._support.serialization import describe
from multiplay.environments import World
from multiplay.environments.replay import Replay
from multiplay.types import Arrays, IntArray

SWAP = Transport([1, 1], [1, 1], names=(["A", "B"], ["x", "y"]))
STRAIGHT, CROSSED = np.array([1, 0, 0, 1]), np.array([0, 1, 1, 0])

# one outcome for each arm and day, but two on Monday's lane A->x
WEEK = pd.DataFrame(
    [
        ("A->x", "1 Monday", 0.5),
        ("A->x", "1 Monday", 0.25),
        ("A->y", "1 Monday", 0.75),
        ("B->x", "1 Monday", 0.0),
        ("B->y", "1 Monday", 1.0),
        ("A->x", "2 Tuesday", 0.25),
        ("A->y", "2 Tuesday", 0.5),
        ("B->x", "2 Tuesday", 0.25),
        ("B->y", "2 Tuesday", 0.5),
        ("A->x", "3 Wednesday", 0.0),
        ("A->y", "3 Wednesday", 1.0),
        ("B->x", "3 Wednesday", 0.5),
        ("B->y", "3 Wednesday", 0.125),
    ],
    columns=["arm", "round", "loss"],
)
WEEK_MEANS = np.array([[0.375, 0.75, 0.0, 1.0], [0.25, 0.5, 0.25, 0.5], [0.0, 1.0, 0.5, 0.125]])

PLANS = Transport([2, 4], [3, 3], names=(["A", "B"], ["x", "y"]))
LEFT, RIGHT = PLANS.argmin([0, 1, 1, 0]), PLANS.argmin([1, 0, 0, 1])
DAYS = 7


@dataclass(frozen=True)
class Always(Policy):
    """Play one action, whatever comes."""

    action: tuple[int, ...]

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"none": np.zeros(trials)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Any) -> Play:
        return Play(np.tile(self.action, (len(state["none"]), 1)))

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Any
    ) -> None:
        pass


def log(spare: int, seed: int = 0) -> pd.DataFrame:
    """n_i + ``spare`` outcomes for arm i on every day, all different, in a jumbled order."""
    rng = np.random.default_rng(seed)
    arms = np.tile(np.repeat(PLANS.names, PLANS.n + spare), DAYS)
    days = np.repeat(np.arange(DAYS), (PLANS.n + spare).sum())
    frame = pd.DataFrame({"arm": arms, "round": days, "loss": rng.permutation(len(arms))})
    return frame.assign(loss=frame["loss"] / len(frame)).sample(frac=1, random_state=1)


def play(
    environment: Replay, action: Any, trials: Any = range(4), rounds: int = 2 * DAYS, seed: int = 5
) -> list[Feedback]:
    world = environment.open(PLANS, rounds, trials, seed)
    return [world.observe(np.tile(action, (len(trials), 1))).feedback for _ in range(rounds)]


def units(feedback: Feedback, trial: int, arm: int) -> NDArray[np.float64]:
    assert feedback.units is not None
    assert feedback.first is not None
    first = feedback.first[arm]
    return feedback.units[trial, first : first + feedback.count[trial, arm]]


def outcomes(frame: pd.DataFrame, day: int, arm: int) -> NDArray[np.float64]:
    chosen = (frame["arm"] == PLANS.names[arm]) & (frame["round"] == day)
    return np.sort(frame.loc[chosen, "loss"].to_numpy())


def averages(frame: pd.DataFrame) -> NDArray[np.float64]:
    return np.array([[outcomes(frame, day, i).mean() for i in range(4)] for day in range(DAYS)])


def days(world: World, frame: pd.DataFrame, rounds: int) -> IntArray:
    """Which day came in each round and trial, told by its averages."""
    known, found = averages(frame), []
    for _ in range(rounds):
        means = world.observe(np.tile(LEFT, (4, 1))).means
        alike = np.isclose(means[:, None], known).all(axis=2)
        assert (alike.sum(axis=1) == 1).all()
        found.append(alike.argmax(axis=1))
    return np.array(found)


# ---------------------------------------------------------------- three days by hand


def test_losses_of_three_days() -> None:
    world = Replay(WEEK, shuffle=False).open(SWAP, 4, [0, 1], 0)
    for day in (0, 1, 2, 0):
        feedback, means, _ = world.observe(np.array([STRAIGHT, CROSSED]))
        assert (means == WEEK_MEANS[day]).all()
        (lane_a, *_, lane_b), crossed = feedback.total
        assert lane_a in ((0.5, 0.25) if day == 0 else (WEEK_MEANS[day, 0],))
        assert lane_b == WEEK_MEANS[day, 3]
        assert (crossed == CROSSED * WEEK_MEANS[day]).all()


def test_regret_of_three_days() -> None:
    """Straight costs 1.375, 0.75, 0.125 in expectation, crossed 0.75, 0.75, 1.5."""
    policies = {"straight": Always((1, 0, 0, 1)), "crossed": Always((0, 1, 1, 0))}
    week = Replay(WEEK, shuffle=False)
    result = simulate(SWAP, week, policies, horizon=3, trials=2)
    assert (result.regret.sel(policy="straight").values == 0).all(), "2.25 is the best in hindsight"
    assert (result.regret.sel(policy="crossed").values == [-0.625, -0.625, 0.75]).all()
    result = simulate(SWAP, week, policies, horizon=4, trials=2)
    assert (result.regret.sel(policy="crossed").values == [-0.625, -0.625, 0.75, 0.125]).all()
    result = simulate(SWAP, week, policies, horizon=2, trials=2)
    assert (result.regret.sel(policy="straight").values == [0.625, 0.625]).all()


def test_rewards_may_be_replayed() -> None:
    """The same numbers as rewards: crossed brings 3 in three days and straight 2.25."""
    gains = Transport([1, 1], [1, 1], names=SWAP.names, sense="max")
    policies = {"straight": Always((1, 0, 0, 1)), "crossed": Always((0, 1, 1, 0))}
    result = simulate(gains, Replay(WEEK, shuffle=False), policies, horizon=3, trials=1)
    assert result.final("straight") == [0.75]
    assert result.final("crossed") == [0.0]


# ---------------------------------------------------------------- without replacement


def test_all_outcomes_come_when_all_are_played() -> None:
    frame, orders = log(spare=0), set()
    for day, feedback in enumerate(play(Replay(frame, shuffle=False), PLANS.n)):
        for trial in range(4):
            for arm in range(4):
                seen = units(feedback, trial, arm)
                assert (np.sort(seen) == outcomes(frame, day % DAYS, arm)).all()
                orders.add(tuple(np.argsort(seen).tolist()))
    assert len(orders) == 2 + 6, "every order of two and of three outcomes"


def test_no_outcome_comes_twice_in_a_round() -> None:
    frame, missed = log(spare=2), 0
    for day, feedback in enumerate(play(Replay(frame, shuffle=False), PLANS.n)):
        for trial in range(4):
            for arm in range(4):
                seen, logged = units(feedback, trial, arm), outcomes(frame, day % DAYS, arm)
                assert len(np.unique(seen)) == PLANS.n[arm]
                assert np.isin(seen, logged).all()
                missed += len(logged) - len(seen)
    assert missed == 2 * 4 * 4 * 2 * DAYS


def test_expected_loss_of_every_unit_is_the_mean() -> None:
    """Level 1e-6: a z-test for each of 10 units at 1e-7 (5.33 standard errors)."""
    trials, frame = 20_000, log(spare=2)
    feedback = play(Replay(frame, shuffle=False), PLANS.n, range(trials), rounds=1)[0]
    assert feedback.units is not None
    assert feedback.units.shape == (trials, 10)
    owner = np.repeat(np.arange(4), PLANS.n)
    logged = [outcomes(frame, 0, arm) for arm in owner.tolist()]
    error = np.array([values.std() for values in logged]) / np.sqrt(trials)
    mean = np.array([values.mean() for values in logged])
    assert (np.abs(feedback.units.mean(axis=0) - mean) < 5.33 * error).all()


def test_averages_are_those_of_all_units_played_or_not() -> None:
    environment = Replay(log(spare=2))
    everything, some = (environment.open(PLANS, 5, range(4), 0) for _ in range(2))
    for _ in range(5):
        feedback = everything.observe(np.tile(PLANS.n, (4, 1))).feedback
        seen = some.observe(np.tile(LEFT, (4, 1)))
        np.testing.assert_allclose(seen.averages, feedback.total / PLANS.n, rtol=1e-12)
        assert (seen.averages != seen.means).any()


def test_rounds_and_trials_are_drawn_anew() -> None:
    frame = log(spare=2)
    seen = play(Replay(frame, shuffle=False), LEFT)
    assert any((seen[day].total != seen[day + DAYS].total).any() for day in range(DAYS))
    assert (seen[0].total[0] != seen[0].total[1]).any()


def test_many_units_are_all_real_outcomes() -> None:
    many = 1500
    plans = Transport([many, many], [many, many], names=SWAP.names)
    losses = np.random.default_rng(0).random((4, many))
    frame = pd.DataFrame({"arm": np.repeat(SWAP.names, many), "round": 1, "loss": losses.ravel()})
    action = np.array([[many, 0, 0, many]])
    feedback = Replay(frame).open(plans, 1, [0], 0).observe(action).feedback
    np.testing.assert_allclose(feedback.total, action / many * losses.sum(axis=1))
    assert (np.sort(units(feedback, 0, 3)) == np.sort(losses[3])).all()


# ---------------------------------------------------------------- which round comes when


def test_every_logged_round_comes_once_in_each_pass() -> None:
    frame = log(spare=1)
    order = days(Replay(frame).open(PLANS, 21, range(4), 0), frame, 3 * DAYS)
    passes = order.T.reshape(12, DAYS)  # trial by trial
    assert (np.sort(passes) == np.arange(DAYS)).all()
    assert len(np.unique(passes, axis=0)) == 12, "by chance at seed 0: 7! orders"


def test_every_day_may_come_first() -> None:
    """Level 1e-6: a chi-square test with 6 degrees of freedom below 38.3."""
    trials, frame = 3500, log(spare=0)
    world = Replay(frame).open(PLANS, 1, range(trials), 0)
    means = world.observe(np.tile(LEFT, (trials, 1))).means
    counts = np.isclose(means[:, None], averages(frame)).all(axis=2).sum(axis=0)
    assert counts.sum() == trials
    assert ((counts - 500) ** 2 / 500).sum() < 38.3


def test_without_shuffling_rounds_come_in_the_order_of_their_labels() -> None:
    frame = log(spare=1)
    order = days(Replay(frame, shuffle=False).open(PLANS, 17, range(4), 0), frame, 17)
    assert (order == np.arange(17)[:, None] % DAYS).all()


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("horizon", [1, 6, 7, 8, 14, 20])
def test_total_means_are_known_beforehand(shuffle: bool, horizon: int) -> None:
    world = Replay(log(spare=1), shuffle=shuffle).open(PLANS, horizon, range(4), 3)
    expected, total = world.total_means, np.zeros((4, 4))
    for _ in range(horizon):
        total += world.observe(np.tile(LEFT, (4, 1))).means
    assert expected is not None
    np.testing.assert_allclose(expected, total, rtol=1e-12)


# ---------------------------------------------------------------- the same losses for everybody


def test_losses_do_not_depend_on_what_is_played() -> None:
    environment, compared = Replay(log(spare=1)), 0
    for one, other in zip(play(environment, LEFT), play(environment, RIGHT), strict=True):
        for trial in range(4):
            for arm, both in enumerate(np.minimum(LEFT, RIGHT).tolist()):
                mine, yours = units(one, trial, arm), units(other, trial, arm)
                assert (mine[:both] == yours[:both]).all()
                compared += both
    assert compared > 0


def test_a_trial_does_not_depend_on_the_others_nor_on_the_horizon() -> None:
    environment = Replay(log(spare=1))
    together = play(environment, PLANS.n)
    for chosen, rounds in (([2], 2 * DAYS), ([3, 1], 2 * DAYS), ([1], 3 * DAYS)):
        alone = play(environment, PLANS.n, chosen, rounds)
        for one, other in zip(alone, together, strict=False):
            assert one.units is not None
            assert other.units is not None
            assert (one.units == other.units[chosen]).all()


def test_simulations_agree_in_any_company() -> None:
    policies = {"GenCTS": GenCTS(), "LBINFV": Duplicated(GenLBINFV())}
    environment = Replay(log(spare=1))
    few = simulate(PLANS, environment, policies, horizon=60, trials=2, seed=2)
    many = simulate(PLANS, environment, policies, horizon=60, trials=5, seed=2, jobs=2)
    assert (few.regret.values == many.regret.values[:, :2]).all()
    assert len(np.unique(many.regret.values[:, :, -1])) == 10, "policies and trials differ"


def test_the_order_of_the_rows_does_not_matter() -> None:
    frame = log(spare=1)
    one, other = Replay(frame), Replay(frame.sort_values("loss"))
    assert one.table == other.table
    for mine, yours in zip(play(one, LEFT), play(other, LEFT), strict=True):
        assert (mine.total == yours.total).all()


def test_another_seed_gives_other_losses_in_another_order() -> None:
    frame = log(spare=1)
    for environment in (Replay(frame), Replay(frame, shuffle=False)):
        one, other = play(environment, LEFT, seed=0), play(environment, LEFT, seed=1)
        assert any((a.total != b.total).any() for a, b in zip(one, other, strict=True))
    worlds = [Replay(frame).open(PLANS, DAYS, range(4), seed) for seed in (0, 1)]
    one_order, other_order = (days(world, frame, DAYS) for world in worlds)
    assert (one_order != other_order).any()


# ---------------------------------------------------------------- tables of all kinds


def test_tables_of_all_kinds_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "week.csv"
    WEEK.to_csv(path, index=False)
    tables: list[Any] = [
        WEEK.to_dict("list"),
        WEEK.to_records(index=False),
        WEEK.convert_dtypes(),
        WEEK.astype({"arm": "category"}),
        WEEK.set_index(WEEK.index[::-1]),
        WEEK.assign(weather="fair"),
        path,
        str(path),
    ]
    for table in tables:
        assert Replay(table).table == Replay(WEEK).table
    renamed = WEEK.rename(columns={"arm": "lane", "round": "day", "loss": "cost"})
    assert Replay(renamed, arm="lane", round="day", loss="cost").table == Replay(WEEK).table


def test_numbers_and_dates_sort_as_such() -> None:
    numbered = WEEK.assign(round=WEEK["round"].str[0].astype(int) + 8)  # 9, 10, 11
    dated = WEEK.assign(round=pd.Timestamp("2013-12-30") + pd.to_timedelta(numbered["round"], "D"))
    for frame in (numbered, dated):
        world = Replay(frame, shuffle=False).open(SWAP, 3, [0], 0)
        for day in range(3):
            assert (world.observe(STRAIGHT[None]).means == WEEK_MEANS[day]).all()


@pytest.mark.parametrize("name", ["NA", "007", "None", "1.0"])
def test_names_of_arms_in_a_file_stay_as_they_are(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"arm,round,loss\n{name},1,0.5\n{name},2,1\n")
    plans = Transport([1], [1], names=[name])
    Replay(path).check(plans, 2, 1)


def test_an_arm_that_is_never_played_needs_no_outcomes() -> None:
    plans = Transport([1, 0], [1, 0], names=SWAP.names)
    environment = Replay(WEEK[WEEK["arm"] == "A->x"])
    environment.check(plans, 3, 1)
    world = environment.open(plans, 3, [0], 0)
    means = world.observe(np.array([[1, 0, 0, 0]])).means
    assert (means[:, 1:] == 0).all()


def test_the_table_may_change_afterwards() -> None:
    frame = log(spare=0)
    environment = Replay(frame)
    before = play(environment, LEFT)
    frame["loss"] = 0.5
    for one, other in zip(before, play(environment, LEFT), strict=True):
        assert (one.total == other.total).all()


def test_settings_are_plain_and_tell_tables_apart() -> None:
    plain = describe(Replay(WEEK, shuffle=False))
    assert plain["shuffle"] is False
    assert plain["table"]["rows"] == 13
    assert re.fullmatch("[0-9a-f]{64}", plain["table"]["sha256"])
    changes: list[dict[str, Any]] = [
        {"loss": WEEK["loss"].replace(0.125, 0.126)},
        {"arm": WEEK["arm"].replace("A->x", "A->z")},
        {"round": WEEK["round"].str[0]},
    ]
    for change in changes:
        assert describe(Replay(WEEK.assign(**change)))["table"] != plain["table"]
    result = simulate(SWAP, Replay(WEEK), {"GenCTS": GenCTS()}, horizon=3, trials=1)
    assert result.configuration["environment"]["table"] == plain["table"]


def test_pickles_are_compact_and_complete() -> None:
    frame = log(spare=300)
    environment = Replay(frame)
    pickled = pickle.dumps(environment)
    assert len(pickled) < 8 * len(frame) + 5000, "one float for each outcome"
    again = pickle.loads(pickled)
    for one, other in zip(play(environment, LEFT), play(again, LEFT), strict=True):
        assert (one.total == other.total).all()


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("argument", "table"),
    [
        ("table", None),
        ("table", 5),
        ("table", WEEK[:0]),
        ("table", WEEK.drop(columns="arm")),
        ("table", WEEK.drop(columns="round")),
        ("table", WEEK.drop(columns="loss")),
        ("table", pd.concat([WEEK, WEEK["loss"]], axis=1)),
        ("table", {"arm": ["A->x"], "round": [1, 2], "loss": [0.5]}),
        ("table", "missing.csv"),
        ("table", Path("missing.csv")),
        ("table", Replay(WEEK).table),
        ("table['arm']", WEEK.assign(arm=WEEK["arm"].where(WEEK["arm"] != "A->x"))),
        ("table['round']", WEEK.assign(round=WEEK["loss"].where(WEEK["loss"] < 1))),
        (
            "table['round']",
            WEEK.assign(round=pd.Series([date(2013, 1, 1), *range(12)])),
        ),
        ("table['loss']", WEEK.replace({"loss": {0.25: np.nan}})),
        ("table['loss']", WEEK.replace({"loss": {0.25: np.inf}})),
        ("table['loss']", WEEK.replace({"loss": {0.25: 1.5}})),
        ("table['loss']", WEEK.replace({"loss": {0.25: -0.5}})),
        ("table['loss']", WEEK.assign(loss="cheap")),
    ],
)
def test_bad_tables_are_refused(argument: str, table: Any) -> None:
    with refused(argument):
        Replay(table)


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("table", ""),
        ("table", "arm,round,loss\n"),
        ("table", "arm,round\nA->x,1\n"),
        ("table", "arm,round,loss\nA->x,1,0.5\nA->x,1,0.5,7,8\n"),
        ("table['loss']", "arm,round,loss\nA->x,1,\n"),
        ("table['loss']", "arm,round,loss\nA->x,1,dear\n"),
        ("table['arm']", "arm,round,loss\n,1,0.5\n"),
    ],
)
def test_bad_files_are_refused(argument: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with refused(argument):
        Replay(path)


def test_a_shuffle_is_true_or_false() -> None:
    with refused("shuffle"):
        Replay(WEEK, shuffle="no")  # type: ignore[arg-type]


def test_a_missing_value_is_pointed_at() -> None:
    with pytest.raises(InvalidInput, match=r"table\['loss'\]: .* got 2 missing, .* row 5\."):
        Replay(WEEK.assign(loss=WEEK["loss"].where(~WEEK.index.isin([5, 7]))))


def test_columns_that_are_there_are_shown() -> None:
    with pytest.raises(InvalidInput, match="column 'cost', got 'arm', 'round', 'loss'"):
        Replay(WEEK, loss="cost")


@pytest.mark.parametrize(
    ("words", "table"),
    [
        ("A->x.*'A->z'.*Rename", WEEK.replace({"arm": {"A->y": "A->z"}})),
        ("outcomes of arm 'B->x', got none", WEEK[WEEK["arm"] != "B->x"]),
        ("at least 1 outcomes of arm 'B->y' in round 3 Wednesday.* got 0", WEEK[:-1]),
    ],
    ids=["unknown", "without data", "short"],
)
def test_tables_must_fit_the_arms(words: str, table: pd.DataFrame) -> None:
    environment = Replay(table)
    with refused("table"):
        environment.check(SWAP, 3, 1)
    with pytest.raises(InvalidInput, match=words):
        simulate(SWAP, environment, {"GenCTS": GenCTS()}, horizon=3, trials=1)


def test_every_unit_needs_an_outcome_in_every_round() -> None:
    frame = log(spare=0)
    Replay(frame).check(PLANS, 10, 1)
    lost = frame[(frame["arm"] == "B->x") & (frame["round"] == 4)].index[0]
    with pytest.raises(InvalidInput, match=r"at least 3 outcomes of arm 'B->x' in round 4.* got 2"):
        Replay(frame.drop(index=lost)).check(PLANS, 10, 1)


# ---------------------------------------------------------------- sets that change


def test_a_round_needs_outcomes_for_its_own_set_only() -> None:
    """On day k there are k units of everything, so the set of another day would not fit."""
    days = [Transport([k, k], [k, k], names=(["A", "B"], ["x", "y"])) for k in (3, 1, 2)]
    rows = [
        (name, day, (10 * day + i + 1 + unit / 10) / 100)
        for day, today in enumerate(days)
        for i, name in enumerate(today.names)
        for unit in range(today.n[i])
    ]
    frame, sets = pd.DataFrame(rows, columns=["arm", "round", "loss"]), TimeVarying(days)
    environment = Replay(frame, shuffle=False)
    environment.check(sets, 7, 1)
    world = environment.open(sets, 7, [0, 1], 0)
    for t in range(7):
        today = sets.at(t + 1)
        action = np.array([today.n * STRAIGHT, today.n * CROSSED])
        feedback, means, _ = world.observe(action)
        assert np.allclose(feedback.total, action * means)  # every outcome once
    result = simulate(sets, environment, {"GenCTS": GenCTS()}, horizon=7, trials=2)
    assert result.label == "regret against the best action of each round"
    with refused("table: expected at least 3 outcomes of arm 'A->x' in round 1"):
        simulate(sets, Replay(frame), {"GenCTS": GenCTS()}, horizon=7, trials=2)
    late = TimeVarying([*days, days[0], days[0]])
    environment.check(late, 4, 1)
    with refused("table: expected at least 3 outcomes of arm 'A->x' in round 1"):
        environment.check(late, 5, 1)


# ---------------------------------------------------------------- features

LOGGED = WEEK.assign(km=np.arange(len(WEEK)) / 8, fuel=WEEK["round"].str[0].astype(float))


def phi_of(world: World, t: int) -> NDArray[Any]:
    rows = world.contexts(t)
    assert rows is not None
    phi: NDArray[Any] = rows.arm * rows.day[:, None]
    return phi


def test_features_are_averages_of_the_rows_of_arm_and_round() -> None:
    replay = Replay(LOGGED, shuffle=False, features=["km", "fuel"])
    world = replay.open(SWAP, 7, [0, 1], seed=0)
    for t in range(1, 8):
        phi = phi_of(world, t)
        day = LOGGED[LOGGED["fuel"] == 1 + (t - 1) % 3]
        means = day.groupby("arm")[["km", "fuel"]].mean().loc[list(SWAP.names)].to_numpy()
        assert (phi[:, :, 0] == 1).all()
        np.testing.assert_allclose(phi[:, :, 1:], np.stack([means, means]), atol=1e-12)
        world.observe(np.tile(STRAIGHT, (2, 1)))


def test_shuffled_features_belong_to_the_losses_of_their_round() -> None:
    logged = LOGGED.groupby(["arm", "round"], as_index=False)[["loss", "km"]].mean()
    logged = logged.assign(km=logged["loss"])
    plain = Replay(logged.drop(columns="km")).open(SWAP, 9, [0, 1, 2], seed=4)
    world = Replay(logged, features=["km"]).open(SWAP, 9, [0, 1, 2], seed=4)
    for t in range(1, 10):
        phi = phi_of(world, t)
        seen = world.observe(np.tile(STRAIGHT, (3, 1)))
        np.testing.assert_allclose(phi[:, :, 1], seen.means, atol=1e-12)
        same = plain.observe(np.tile(STRAIGHT, (3, 1)))
        assert (same.means == seen.means).all()
        assert (same.feedback.total == seen.feedback.total).all()
    assert plain.contexts(9) is None


def test_features_change_the_digest_and_keep_the_default_comparator() -> None:
    replay, plain = Replay(LOGGED, features=["km"]), Replay(LOGGED)
    assert replay.table.sha256 != plain.table.sha256
    assert plain.table.sha256 == Replay(WEEK).table.sha256
    finals = [
        simulate(SWAP, r, [GenCTS()], 5, 2, seed=0).final("GenCTS()") for r in (replay, plain)
    ]
    assert (finals[0] == finals[1]).all()


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ("km", "features: expected a list of columns"),
        ([1], "features: expected a list of columns"),
        (["miles"], "table: expected one column 'miles'"),
        (["arm"], "table"),
        (["gaps"], "a value in every row"),
    ],
)
def test_bad_columns_of_features_are_refused(features: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Replay(LOGGED.assign(gaps=[np.nan, *range(12)]), features=features)
