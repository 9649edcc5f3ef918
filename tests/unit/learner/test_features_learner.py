"""Learners with features: values of arms and days, beliefs, effects, errors that change nothing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from multiplay import (
    Budget,
    Category,
    Changes,
    FeatureCTS,
    Features,
    Flag,
    GenCTS,
    InvalidInput,
    Learner,
    Number,
    Transport,
)
from multiplay.studies import learner_files

SIDES = (["Lyon", "Lille"], ["north", "south"])
PLANS = Transport([2, 1], [1, 2], names=SIDES)
KM = {"Lyon->north": 450.0, "Lyon->south": 150.0, "Lille->north": 220.0, "Lille->south": 700.0}
DECLARED = Features(
    km=Number(centre=300, scale=100, unit="km"),
    fuel=Number(centre=1.6, scale=0.1, unit="EUR/l"),
    weekday=Category(["Mon", "Tue"], others=True),
    rain=Flag(),
    products=[("km", "fuel")],
)
TODAY = {"fuel": 1.7, "weekday": "Tue", "rain": {"Lyon->south": True, "*": False}}


def new(**settings: Any) -> Learner:
    given: dict[str, Any] = {
        "features": DECLARED,
        "arm_features": {"km": KM},
        "loss_range": (0, 250),
    }
    return Learner(PLANS, **(given | settings))


def bits(learner: Learner) -> Any:
    """Return the whole state of a learner, to compare it."""
    header, arrays = learner_files.record_of(learner.replica, learner.journal)
    return repr(header), {name: array.tobytes() for name, array in arrays.items()}


def beliefs_of(learner: Learner) -> Any:
    return learner.engine.state.features


def declared_of(learner: Learner) -> Any:
    return learner.engine.declared


def phi_of(learner: Learner, play: Any) -> Any:
    return learner.engine.pending[play.id].phi


def rows_of(table: Any, index: str) -> Any:
    return table.set_index(index)


def euros(play: Any, km: float = 0.2, base: float = 40.0) -> dict[str, list[float]]:
    return {lane: [base + km * KM.get(lane, 300.0)] * units for lane, units in play.plan.items()}


# ---------------------------------------------------------------- values


def test_the_default_policy_reads_features() -> None:
    assert new().policy == FeatureCTS(memory=Changes())


def test_phi_of_a_play_is_that_of_the_definition() -> None:
    learner = new()
    play = learner.ask(features=TODAY)
    km = [(KM[lane] - 300) / 100 for lane, units in play.plan.items() if units]
    rain = [float(lane == "Lyon->south") for lane, units in play.plan.items() if units]
    expected = [[1.0, k, 1.0, 0.0, 1.0, r, k] for k, r in zip(km, rain, strict=True)]
    phi = phi_of(learner, play)
    np.testing.assert_allclose(phi, expected, atol=1e-12)
    memo = learner.engine.pending[play.id].memo
    np.testing.assert_array_equal(memo["phi"][0], phi)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (None, ["features['fuel']", "'Lyon->north'"]),
        ({"fuel": 1.7}, ["features['weekday']", "'Lyon->north'"]),
        (TODAY | {"fuel": float("nan")}, ["features['fuel']"]),
        (TODAY | {"fuel": 1.7e6}, ["features['fuel']", "1,000 scales"]),
        (TODAY | {"fuel": "dear"}, ["features['fuel']"]),
        (TODAY | {"rain": {"Lyon->east": True, "*": False}}, ["features['rain']", "Lyon->east"]),
        (TODAY | {"rain": {"Lyon->north": True}}, ["features['rain']", "'Lyon->south'"]),
        (TODAY | {"snow": True}, ["'snow'"]),
        (TODAY | {"weekday": 3.5j}, ["features['weekday']"]),
        (TODAY | {"km": {"Lyon->north": 1e9}}, ["features['km']", "Lyon->north"]),
    ],
)
def test_bad_features_are_refused_and_nothing_changes(features: Any, words: list[str]) -> None:
    learner = new()
    learner.tell(play := learner.ask(features=TODAY), euros(play))
    before = bits(learner)
    with pytest.raises(InvalidInput) as caught:
        learner.ask(features=features)
    assert all(word in str(caught.value) for word in words), caught.value
    assert bits(learner) == before


def test_an_unknown_level_is_refused_unless_others_are_allowed() -> None:
    strict = Learner(PLANS, features=Features(day=Category(["Mon", "Tue"])))
    before = bits(strict)
    with pytest.raises(InvalidInput, match="'Mon', 'Tue'"):
        strict.ask(features={"day": "Wed"})
    assert bits(strict) == before
    learner = new()
    play = learner.ask(features=TODAY | {"weekday": "Sun"})
    phi = phi_of(learner, play)
    assert phi is not None
    assert (phi[:, 3:5] == 0).all()
    assert learner.best().plan  # at the values of the last play


def test_features_without_declaration_are_refused() -> None:
    learner = Learner(PLANS)
    with pytest.raises(InvalidInput, match="declared features"):
        learner.ask(features={"fuel": 1.7})
    with pytest.raises(InvalidInput, match="declared features"):
        learner.set_arm_features({"km": KM})
    with pytest.raises(InvalidInput, match="declared features"):
        learner.effects()
    with pytest.raises(InvalidInput, match="declared features"):
        Learner(PLANS, arm_features={"km": KM})


def test_a_policy_that_cannot_read_features_is_refused() -> None:
    with pytest.raises(InvalidInput, match="FeatureCTS"):
        new(policy=GenCTS())


def test_scales_are_frozen_by_the_first_table_and_never_change() -> None:
    declared = Features(km=Number(), fuel=Number())
    learner = Learner(PLANS, features=declared, arm_features={"km": KM})
    km = declared_of(learner).columns["km"]
    quartiles = np.quantile(list(KM.values()), [0.25, 0.5, 0.75])
    assert (km.centre, km.scale) == (quartiles[1], (quartiles[2] - quartiles[0]) / 1.349)
    with pytest.raises(InvalidInput):
        learner.ask(features={"fuel": 1.7, "km": {"nowhere": 1.0}})
    assert not declared_of(learner).frozen
    learner.ask(features={"fuel": 1.7})
    learner.ask(features={"fuel": 5.0})
    learner.set_arm_features({"km": {"Lyon->north": 9000.0}})
    assert declared_of(learner) == Features(km=Number(km.centre, km.scale), fuel=Number(1.7, 1.0))


def test_new_arms_keep_the_features_of_their_first_day() -> None:
    learner = new(varying_set=True)
    today = Transport([2, 1], [1, 2], names=(["Lyon", "Paris"], ["north", "south"]))
    with pytest.raises(InvalidInput, match="Paris->north"):
        learner.ask(today, features=TODAY)
    given = TODAY | {"km": {"Paris->north": 250.0, "Paris->south": 350.0}}
    one = learner.ask(today, features=given)
    two = learner.ask(today, features=TODAY)
    assert learner.known_arms[4:] == ("Paris->north", "Paris->south")
    for play in (one, two):
        learner.tell(play, euros(play))
    assert np.isfinite(learner.arms()["mean"][:4]).all()


def test_features_of_two_days_are_not_mixed() -> None:
    """The same set has other features every day, also while plays wait."""
    learner = new()
    days = [TODAY | {"fuel": 1.5 + 0.1 * day} for day in range(4)]
    plays = [learner.ask(features=day) for day in days]
    fuels = [phi_of(learner, play)[0, 2] for play in plays]
    np.testing.assert_allclose(fuels, [-1, 0, 1, 2], atol=1e-9)
    assert learner.policy_state.usual.features is None


# ---------------------------------------------------------------- histories


def scenario(learner: Learner, path: Any, save_at: int | None) -> Learner:
    """Play days that are late, partial, missing, cancelled, on other sets; save and load once."""
    rng = np.random.default_rng(1)
    other = Transport([2, 1], [1, 2], names=(["Lyon", "Paris"], ["north", "south"]))
    learner.learn_table(table())
    waiting = []
    for day in range(12):
        if day == save_at:
            learner.save(path)
            learner = Learner.load(path)
        today = TODAY | {"fuel": 1.5 + 0.05 * (day % 5), "weekday": ["Mon", "Tue"][day % 2]}
        if day == 4:
            today["km"] = {"Paris->north": 250.0, "Paris->south": 330.0}
        play = learner.ask(other if day in (4, 7) else None, features=today)
        lanes = {lane: rng.uniform(50, 200, units).tolist() for lane, units in play.plan.items()}
        if day % 4 == 1:
            waiting.append((play.id, lanes))
        elif day % 4 == 2:
            first = next(lane for lane, units in play.plan.items() if units)
            learner.tell(play.id, {first: lanes[first][:1]}, final=False)
            learner.close(play.id)
        elif day == 7:
            learner.cancel(play.id)
        else:
            learner.tell(play.id, lanes)
        if day == 5:
            learner.set_arm_features({"km": {"Nice->north": 900.0}})
            learner.learn({"Lyon->south": 2, "Lille->north": 1}, euros_of(), features=today)
    for id, lanes in reversed(waiting):
        learner.tell(id, lanes, missing="ignore")
    return learner


def euros_of() -> dict[str, Any]:
    return {"Lyon->south": [80.0, 90.0], "Lille->north": [120.0]}


def table() -> Any:
    rows = [("Lyon->south", 1, 95.0), ("Lyon->south", 1, 99.0), ("Lille->north", 2, 130.0)]
    found = pd.DataFrame(rows, columns=["arm", "round", "loss"])
    return found.assign(fuel=[1.5, 1.5, 1.6], weekday=["Mon", "Mon", "Sun"], rain=[1, 1, 0])


@pytest.mark.parametrize("save_at", [0, 3, 6, 8])
def test_a_learner_that_was_saved_continues_bit_for_bit(save_at: int, tmp_path: Any) -> None:
    """Late, partial, missing and cancelled plays, other sets, new arms."""
    whole = scenario(new(varying_set=True), tmp_path / "one", None)
    cut = scenario(new(varying_set=True), tmp_path / "two", save_at)
    for name, array in beliefs_of(whole).arrays.items():
        same = beliefs_of(cut).arrays[name]
        assert same.tobytes() == array.tobytes(), name
    for name, array in whole.state.items():
        assert cut.state[name].tobytes() == array.tobytes(), name
    assert whole.best().plan == cut.best().plan
    pd.testing.assert_frame_equal(whole.effects(), cut.effects())
    pd.testing.assert_frame_equal(
        whole.arms().drop(columns="last_seen"), cut.arms().drop(columns="last_seen")
    )


def test_beliefs_equal_those_of_the_policy_on_the_same_reports(tmp_path: Any) -> None:
    """With losses in [0, 1] both have the same model: an independent way to the same numbers."""
    learner = new(policy=FeatureCTS(), varying_set=True, loss_range=(0, 1))
    rng = np.random.default_rng(0)
    for day in range(8):
        play = learner.ask(features=TODAY | {"fuel": 1.5 + 0.05 * day})
        learner.tell(play, {lane: rng.random(units) for lane, units in play.plan.items()})
    beliefs = beliefs_of(learner)
    assert beliefs is not None
    for name in beliefs.arrays:
        np.testing.assert_allclose(beliefs.arrays[name], learner.state[name], rtol=1e-9, atol=1e-12)


def test_beliefs_are_in_the_unit_of_the_user() -> None:
    learner = new()
    for day in range(60):
        play = learner.ask(features=TODAY | {"fuel": 1.5 + 0.04 * (day % 6)})
        learner.tell(play, euros(play))
    arms = rows_of(learner.arms(), "arm")
    for lane, km in KM.items():
        assert arms.loc[lane, "low"] - 1 < 40 + 0.2 * km < arms.loc[lane, "high"] + 1
    total, low, high = learner.expect({"Lyon->south": 2, "Lille->north": 1})
    assert low < total < high
    assert abs(total - (2 * 70 + 84)) < 5
    assert learner.best().plan["Lyon->south"] == 2
    far = rows_of(learner.arms(features=TODAY | {"km": {"Lyon->south": 650.0}}), "arm")
    assert far.loc["Lyon->south", "mean"] > 130


def test_arms_without_values_have_no_mean_and_given_ones_are_checked() -> None:
    learner = new()
    assert learner.arms()["mean"].isna().all()  # no day has been asked for
    assert learner.arms(features=TODAY)["mean"].notna().all()
    with pytest.raises(InvalidInput, match="weekday"):
        learner.arms(features={"fuel": 1.7})
    with pytest.raises(InvalidInput, match="fuel"):
        learner.best()
    with pytest.raises(InvalidInput, match="fuel"):
        learner.expect({"Lyon->south": 2, "Lille->north": 1})


# ---------------------------------------------------------------- logged data


def test_logged_data_need_all_features_of_their_arms() -> None:
    learner = new()
    before = bits(learner)
    with pytest.raises(InvalidInput, match=r"features\['rain'\].*a column of the table"):
        learner.learn_table(table().drop(columns="rain"))
    with pytest.raises(InvalidInput, match=r"table\['fuel'\].*one value for each arm and round"):
        learner.learn_table(table().assign(fuel=[1.5, 1.6, 1.6]))
    with pytest.raises(InvalidInput, match="row 2, fuel is empty"):
        learner.learn_table(table().assign(fuel=[1.5, 1.5, None]))
    with pytest.raises(InvalidInput, match=r"table\['fuel'\]"):
        learner.learn_table(table().assign(fuel=[1.5, 1.5, 1e6]))
    assert bits(learner) == before


def test_a_table_teaches_what_single_plans_teach() -> None:
    one, two = new(), new()
    one.learn_table(table())
    days = [(1.5, "Mon", True), (1.6, "Sun", False)]
    lanes = [("Lyon->south", [95.0, 99.0]), ("Lille->north", [130.0])]
    rest = {"Lyon->south": 2, "Lille->north": 1}
    for (fuel, weekday, rain), (lane, losses) in zip(days, lanes, strict=True):
        today = {"fuel": fuel, "weekday": weekday, "rain": rain}
        two.learn(rest, {lane: losses}, features=today, missing="ignore")
    for name, array in beliefs_of(one).arrays.items():
        other = beliefs_of(two).arrays[name]
        np.testing.assert_allclose(array, other, rtol=1e-12, atol=1e-14)


def test_the_first_table_freezes_scales() -> None:
    learner = Learner(PLANS, loss_range=(0, 250), features=Features(fuel=Number()))
    learner.learn_table(table())
    fuel = declared_of(learner).columns["fuel"]
    quartiles = np.quantile([1.5, 1.6], [0.25, 0.5, 0.75])  # two arms and rounds
    np.testing.assert_allclose(fuel.centre, quartiles[1])
    np.testing.assert_allclose(fuel.scale, (quartiles[2] - quartiles[0]) / 1.349)


# ---------------------------------------------------------------- effects


def test_effects_are_in_the_unit_of_the_user() -> None:
    learner = new()
    rng = np.random.default_rng(3)
    for day in range(80):
        today = TODAY | {"fuel": rng.uniform(1.4, 1.8), "weekday": ["Mon", "Tue"][day % 2]}
        km = {lane: rng.uniform(100, 800) for lane in KM}
        plan = [{"Lyon->south": 2, "Lille->north": 1}, {"Lyon->north": 1, "Lyon->south": 1}]
        units = plan[day % 2] | ({"Lille->south": 1} if day % 2 else {})
        costs = {
            lane: (40 + 0.1 * km[lane] + rng.uniform(-5, 5, count)).tolist()
            for lane, count in units.items()
        }
        learner.learn(units, costs, features=today | {"km": km})
    effects = rows_of(learner.effects(), "feature")
    km_row = effects.loc["km"]
    assert km_row["per"] == "100 km"
    assert 9 < km_row["low"] < 10 < km_row["high"] < 11
    assert km_row["text"].startswith("each 100 km costs ")
    own = rows_of(learner.effects(by="arm"), "arm")
    assert (own["low"] < 0).all()
    assert (own["high"] > 0).all()
    wide = rows_of(learner.effects(level=0.999), "feature").loc["km"]
    assert wide["low"] < km_row["low"]
    with pytest.raises(InvalidInput, match="'feature' or 'arm'"):
        learner.effects(by="day")


def test_levels_and_arms_are_compared_with_their_average() -> None:
    """The intercept, the levels and the arms are confounded; their differences are known."""
    features = Features(weekday=Category(["Mon", "Tue"]), rain=Flag())
    learner = Learner(PLANS, loss_range=(0, 600), features=features)
    rng = np.random.default_rng(3)
    for day in range(60):
        plan = {"Lyon->south": 2, "Lille->north": 1}
        if day % 3 == 0:
            plan = {"Lyon->north": 1, "Lyon->south": 1, "Lille->south": 1}
        mean = {"Lyon->south": 230.0, "Lille->north": 250.0, "Lyon->north": 210.0}
        mean["Lille->south"] = 230.0
        added = 40 * (day % 2) + 20 * (day % 5 == 0)
        costs = {a: (mean[a] + added + rng.normal(0, 3, n)).tolist() for a, n in plan.items()}
        today = {"weekday": ["Mon", "Tue"][day % 2], "rain": day % 5 == 0}
        learner.learn(plan, costs, features=today)
    effects = rows_of(learner.effects(), "feature")
    for name, truth in {"weekday=Mon": -20, "weekday=Tue": 20, "rain": 20}.items():
        row = effects.loc[name]
        assert row["low"] < truth < row["high"]
        assert row["high"] - row["low"] < 40, "only the difference is known"
    assert effects.loc["weekday=Mon", "effect"] == -effects.loc["weekday=Tue", "effect"]
    assert re.fullmatch(
        r"weekday=Tue adds [12]\d\S* \(1\S+ to 2\S+\), compared with the average weekday",
        effects.loc["weekday=Tue", "text"],
    )
    own = rows_of(learner.effects(by="arm"), "arm")
    assert abs(own["effect"].sum()) < 1e-9
    for lane, truth in {"Lille->north": 20, "Lyon->north": -20, "Lyon->south": 0}.items():
        assert own.loc[lane, "low"] < truth < own.loc[lane, "high"]
    assert own.loc["Lille->north", "low"] > own.loc["Lyon->north", "effect"]


def test_columns_that_change_no_plan_are_marked() -> None:
    """On a Transport, what is origin + destination has the same sum in every plan."""
    declared = Features(
        km=Number(0, 1), origin=Number(0, 1), both=Number(0, 1), fuel=Number(0, 1), rain=Flag()
    )
    learner = Learner(PLANS, features=declared)
    both = {"Lyon->north": 1.5, "Lyon->south": 3.0, "Lille->north": 0.5, "Lille->south": 2.0}
    origin = {lane: float(lane.startswith("Lyon")) for lane in KM}
    today = {"km": KM | {"Lyon->north": 4.0}, "origin": origin, "both": both, "fuel": 2.0}
    assert learner.effects()["changes_plans"].tolist() == [False] + [True] * 5, "not known yet"
    learner.ask(features=today | {"km": {k: v / 100 for k, v in KM.items()}, "rain": False})
    marks = rows_of(learner.effects(), "feature")["changes_plans"]
    assert marks.to_dict() == {
        "1": False,
        "km": True,
        "origin": False,
        "both": False,
        "fuel": False,
        "rain": False,
    }
    chosen = Budget(2, [2, 2, 2], names=["a", "b", "c"])
    loose = Learner(chosen, features=Features(x=Number(0, 1)))
    loose.ask(features={"x": {"a": 0.0, "b": 1.0, "c": 0.0}})
    assert loose.effects()["changes_plans"].tolist() == [False, True]


def bent_learner(square: float, days: int) -> Learner:
    learner = Learner(PLANS, FeatureCTS(), features=Features(x=Number(0, 1)))
    rng = np.random.default_rng(5)
    for _ in range(days):
        x = {lane: float(rng.normal()) for lane in KM}
        mean = {lane: 0.5 + 0.08 * x[lane] + square * (x[lane] ** 2 - 1) for lane in KM}
        play = learner.ask(features={"x": x})
        losses = {
            lane: np.clip(mean[lane] + rng.uniform(-0.1, 0.1, units), 0, 1)
            for lane, units in play.plan.items()
        }
        learner.tell(play, losses)
    return learner


def test_intervals_are_withheld_where_features_do_not_explain_the_costs() -> None:
    """With a square that the model has not, residuals are 6 deviations away; else within 3."""
    bent = bent_learner(0.06, 120)
    text = bent.effects().attrs["misfit"]
    assert text.startswith("the features do not explain these costs: ")
    assert bent.effects()["low"].isna().all()
    assert bent.arms()["low"].isna().all()
    assert bent.arms().attrs["misfit"] == text
    estimate = bent.best().expected
    assert np.isnan(estimate.low)
    assert np.isfinite(estimate.total)
    straight = bent_learner(0.0, 120)
    assert straight.effects().attrs["misfit"] == ""
    assert straight.arms()["low"].notna().all()


def test_errors_that_last_are_told() -> None:
    """Coefficients that turn by 90 degrees in 250 days, and nothing is forgotten."""
    columns = {"x": Number(0, 1), "y": Number(0, 1)}
    learner = Learner(PLANS, FeatureCTS(), features=Features(columns=columns))
    rng = np.random.default_rng(7)
    for day in range(200):
        x, y = ({lane: float(rng.normal()) for lane in KM} for _ in range(2))
        angle = day / 250 * np.pi / 2
        play = learner.ask(features={"x": x, "y": y})
        losses = {}
        for lane, units in play.plan.items():
            mean = 0.5 + 0.12 * (np.cos(angle) * x[lane] + np.sin(angle) * y[lane])
            losses[lane] = np.clip(mean + rng.uniform(-0.1, 0.1, units), 0, 1)
        learner.tell(play, losses)
    assert "errors last for many rounds" in learner.effects().attrs["misfit"]
    assert learner.arms()["low"].isna().all()
