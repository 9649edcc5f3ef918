"""Declared features, values of arms and days, and phi."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multiplay as mp
from multiplay import features as package
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import pack, unpack
from multiplay.features.table import ArmFeatures
from multiplay.types import FloatArray

LANES = ["Lyon->north", "Lyon->south", "Lille->north"]
FEATURES = mp.Features(
    km=mp.Number(centre=300, scale=100),
    fuel=mp.Number(centre=1.6, scale=0.1, unit="EUR/l"),
    weekday=mp.Category(["Mon", "Tue"]),
    rain=mp.Flag(),
    products=[("km", "fuel"), ("weekday", "rain"), ("km", "km")],
)
KM = {"km": dict(zip(LANES, [450, 150, 300], strict=True))}
TODAY = {"fuel": 1.72, "weekday": "Tue", "rain": {"Lyon->south": True, "*": False}}


def phi(known: ArmFeatures, today: Any, arms: Sequence[str] = LANES) -> FloatArray:
    one: FloatArray = known.rows(known.parse(today), arms).phi(np.arange(len(arms)))[0]
    return one


def described(table: Any = KM, features: mp.Features = FEATURES) -> ArmFeatures:
    known = ArmFeatures(features)
    known.set_arm_features(table)
    return known


def test_phi_is_made_of_scaled_columns_and_their_products() -> None:
    expected = []
    for lane in LANES:
        km, fuel = (KM["km"][lane] - 300) / 100, (1.72 - 1.6) / 0.1
        rain = float(lane == "Lyon->south")
        expected.append([1, km, fuel, 0, 1, rain, km * fuel, 0 * rain, 1 * rain, km * km])
    np.testing.assert_allclose(phi(described(), TODAY), expected, atol=1e-12)
    assert FEATURES.p == 10
    assert FEATURES.names[6:] == ("km*fuel", "weekday=Mon*rain", "weekday=Tue*rain", "km*km")
    assert FEATURES.per[1] == "100 km"
    assert FEATURES.per[6] == "100 km * 0.1 EUR/l"


def test_a_day_changes_only_its_own_part() -> None:
    known = described(features=mp.Features(km=mp.Number(300, 100), fuel=mp.Number(1.6, 0.1)))
    one, other = (known.rows(known.parse({"fuel": f}), LANES) for f in (1.5, 1.7))
    assert one.arm is other.arm
    assert one.arm.flags.writeable  # or kernels are compiled again
    assert not np.array_equal(one.day, other.day)
    known.set_arm_features({"km": {"Lyon->north": 500}})
    assert known.rows({"fuel": 1.5}, LANES).arm[0, 0, 1] == 2.0


@given(st.permutations(LANES), st.sampled_from(["dict", "frame", "by arm"]))
def test_values_of_a_day_may_be_given_in_three_forms(arms: list[str], form: str) -> None:
    given: Any = {
        "fuel": 1.72,
        "weekday": "Tue",
        "rain": {arm: arm == "Lyon->south" for arm in LANES},
    }
    if form == "by arm":
        given = {k: v if isinstance(v, dict) else dict.fromkeys(LANES, v) for k, v in given.items()}
    if form == "frame":
        wet = list(given["rain"].values())
        given = pd.DataFrame({"arm": LANES, "fuel": 1.72, "weekday": "Tue", "rain": wet})
    order = [LANES.index(arm) for arm in arms]
    np.testing.assert_allclose(phi(described(), given, arms), phi(described(), TODAY)[order])


def test_a_table_of_arms_may_be_a_frame_with_an_index_a_column_or_a_file(tmp_path: Path) -> None:
    rows = pd.DataFrame({"km": [450, 150, 300]}, index=LANES)
    rows.to_csv(tmp_path / "lanes.csv", index_label="arm")
    tables = [rows, rows.rename_axis("arm").reset_index(), tmp_path / "lanes.csv"]
    for table in tables:
        np.testing.assert_array_equal(phi(described(table), TODAY), phi(described(), TODAY))


def test_a_star_in_a_table_stands_for_all_other_arms() -> None:
    rows = pd.DataFrame({"arm": ["*", "Lyon->south"], "rain": [False, True]})
    known = described()
    assert known.parse(rows) == {"rain": {"*": False, "Lyon->south": True}}
    assert known.parse(pd.DataFrame({"arm": ["*"], "fuel": [1.7]})) == {"fuel": 1.7}


def test_scales_are_frozen_from_the_first_values() -> None:
    known = described(features=mp.Features(km=mp.Number(), fuel=mp.Number(unit="EUR/l")))
    assert not known.features.frozen
    low, middle, high = np.quantile([450, 150, 300], [0.25, 0.5, 0.75])
    scales = known.freeze({"fuel": 1.7}, LANES)
    assert scales == {"km": (middle, (high - low) / 1.349), "fuel": (1.7, 1.0)}
    known.freeze_at(scales)
    assert known.features.frozen
    assert known.freeze({"fuel": 99.0}, LANES) == {}
    assert known.rows({"fuel": 2.7}, LANES).day[0].tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_values_of_new_arms_are_kept_for_features_that_other_arms_have() -> None:
    known, arms = described(), [*LANES, "Lille->south"]
    today = known.parse(
        TODAY | {"km": {"Lille->south": 200}, "rain": {"*": False, "Lyon->south": True}}
    )
    known.keep_new(today, arms)
    assert phi(known, TODAY, arms)[3, 1] == -1.0
    assert "rain" not in known.codes


def test_arrays_build_the_same_values_again() -> None:
    known = described()
    known.set_arm_features({"rain": {"Lille->north": True}})
    again = ArmFeatures.of(known.features, list(known.places), known.arrays())
    today = {"fuel": 1.7, "weekday": "Mon", "rain": {"Lyon->north": False, "Lyon->south": False}}
    np.testing.assert_array_equal(phi(again, today), phi(known, today))


def test_features_are_packed_and_unpacked() -> None:
    again = unpack(*pack(FEATURES), Builder(classes_of(package)))
    assert again == FEATURES
    assert hash(again) == hash(FEATURES)
    assert again != mp.Features(km=mp.Number(300, 100))
    assert repr(mp.Features(km=mp.Number(300, 100))) == (
        "Features(km=Number(centre=300.0, scale=100.0, unit=''))"
    )


def test_other_levels_have_no_column() -> None:
    features = mp.Features(carrier=mp.Category(["A", "B"], others=True))
    assert phi(ArmFeatures(features), {"carrier": "C"}).tolist() == [[1, 0, 0]] * 3
    by_arm = {"carrier": {"*": "A", "Lyon->north": "Z"}}
    assert phi(ArmFeatures(features), by_arm).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


NUMBER: Any = mp.Number  # without parentheses
THREE: Any = 3
ITERATOR: Any = iter(["a"])
LEVELS = [str(i) for i in range(101)]
WRONG_DECLARATIONS = [
    (lambda: mp.Features(), "at least one feature"),
    (lambda: mp.Features(km=NUMBER), "the class Number"),
    (lambda: mp.Features(km=THREE), "a Column"),
    (lambda: mp.Features(arm=mp.Flag()), "other than arm"),
    (lambda: mp.Features(km=mp.Number(), products=["km"]), "two names or more"),
    (lambda: mp.Features(km=mp.Number(), products=[("km", "kn")]), "Did you mean 'km'"),
    (lambda: mp.Features(a=mp.Flag(), products=[("a", "a")]), "columns that differ"),
    (
        lambda: mp.Features(a=mp.Flag(), b=mp.Flag(), products=[("a", "b"), ("b", "a")]),
        "columns that differ",
    ),
    (lambda: mp.Features(columns={"1": mp.Number()}), "'1' twice"),
    (lambda: mp.Features(km=mp.Flag(), columns={"km": mp.Number()}), "'km' twice"),
    (
        lambda: mp.Features(columns={"a*a": mp.Flag(), "a": mp.Number()}, products=[("a", "a")]),
        "'a*a' twice",
    ),
    (lambda: mp.Number(scale=0), "a positive number"),
    (lambda: mp.Number(centre=np.nan), "a finite number"),
    (lambda: mp.Category([]), "a list of 1 to 199 names"),
    (lambda: mp.Category(["a", "a"]), "'a' twice"),
    (lambda: mp.Category("abc"), "a list of 1 to 199 names"),
    (lambda: mp.Features(a=mp.Category(ITERATOR)), "a list of 1 to 199 names"),
    (
        lambda: mp.Features(a=mp.Category(LEVELS[1:]), b=mp.Category(LEVELS)),
        "at most 200 columns",
    ),
]


@pytest.mark.parametrize(("declare", "message"), WRONG_DECLARATIONS)
def test_wrong_declarations_are_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(mp.InvalidInput, match=re.escape(message)):
        declare()


WRONG_VALUES = [
    ({"fule": 1.7}, "Did you mean 'fuel'"),
    ({"fuel": np.nan}, "a finite number"),
    ({"fuel": "cheap"}, "features['fuel']"),
    ({"fuel": 1720.0}, "1,000 scales around the centre"),
    ({"fuel": {"Lyon->nort": 1.7}}, "Did you mean 'Lyon->north'"),
    ({"weekday": "Sun"}, "one of 'Mon', 'Tue'"),
    ({"weekday": None}, "one of 'Mon', 'Tue'"),
    ({"rain": 2}, "True or False"),
    ({"rain": {"Lyon->south": True}}, "a value for arm 'Lyon->north'"),
    ({"km": {"Lyon->north": np.inf}}, "features['km']['Lyon->north']"),
    (pd.DataFrame({"arm": ["*", "*"], "fuel": [1.0, 2.0]}), "'*' twice"),
    (pd.DataFrame({"arm": LANES, "fuel": [1.6, np.nan, 1.7]}), "features['fuel']['Lyon->south']"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG_VALUES)
def test_wrong_values_of_a_day_are_refused(wrong: Any, message: str) -> None:
    known = described()
    today = wrong if isinstance(wrong, pd.DataFrame) else TODAY | wrong
    with pytest.raises(mp.InvalidInput, match=re.escape(message)):
        phi(known, today)
    assert phi(known, TODAY).shape == (3, 10)


WRONG_TABLES = [
    ({"km": {"*": 3}}, "names of arms"),
    (pd.DataFrame({"arm": ["a", "a"], "km": [1, 2]}), "'a' twice"),
    (pd.DataFrame({"arm": ["a", "b"], "km": [1, np.nan]}), "arm_features['km']['b']"),
    (pd.DataFrame({"arm": ["a", "b"], "kilometres": [1, 2]}), "names of features: km"),
    (pd.DataFrame({"arm": ["a", "b"]}), "arms and features"),
    ("no/such/file.csv", "No such file"),
]


@pytest.mark.parametrize(("table", "message"), WRONG_TABLES)
def test_wrong_tables_of_arms_are_refused_and_nothing_is_kept(table: Any, message: str) -> None:
    known = described()
    with pytest.raises(mp.InvalidInput, match=re.escape(message)):
        known.set_arm_features(table)
    assert list(known.places) == LANES


def test_features_that_are_the_same_but_for_their_scale_are_refused() -> None:
    features = mp.Features(km=mp.Number(), miles=mp.Number())
    table = pd.DataFrame({"km": [450.0, 150, 300]}, index=LANES)
    known = described(table.assign(miles=table["km"] / 1.609), features)
    with pytest.raises(mp.InvalidInput, match="km and miles, which are the same"):
        known.freeze({}, LANES)
