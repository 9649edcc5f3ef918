"""What a table of losses is like: tables whose persistence, weeks and trends are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tables_of_losses import table

import multiplay as mp
from multiplay.learner.persistence_fit import Cells, Filters
from multiplay.studies.results import to_plain

PERSISTS, CHANGES = "PooledCTS(memory=Persists())", "PooledCTS(memory=Changes())"
BILLS = {"arm": ["air", "sea"] * 3, "round": [1, 1, 2, 2, 3, 3], "loss": [80, 20, 82, 21, 84, 19]}


def found(**given: Any) -> mp.DataCheck:
    return mp.check_data(table(**given))


def test_nothing_is_seen_where_there_is_nothing() -> None:
    one = found()
    assert (one.arms, one.rounds, one.units, one.at_once) == (10, 200, 2000, 10)
    assert (one.persists, one.week, one.trend, one.policy) == (False, "none", "none", CHANGES)
    assert np.isnan([one.rho, one.low, one.high, one.share, one.slope]).all()
    assert 20 < one.noise < 30  # 15 % of bills of 80 to 220
    assert 35 < one.apart < 60
    assert len(one.sentences) == 5
    assert "told apart after about 2 units of each" in one.sentences[1]


@pytest.mark.parametrize("rho", [0.5, 0.9])
@pytest.mark.parametrize("rewards", [False, True])
def test_losses_that_persist(rho: float, rewards: bool) -> None:
    """rho is in an interval of less than 0.3."""
    sense = "max" if rewards else "min"
    one = mp.check_data(table(rho=rho, deviation=0.2), sense=sense)
    assert one.persists
    assert one.low < rho < one.high < one.low + 0.3
    assert 0.5 < one.share < 0.75  # 0.2^2 / (0.2^2 + 0.15^2) = 0.64
    assert one.policy == PERSISTS
    assert (one.week, one.trend) == ("none", "none")
    assert one.sense == sense
    noun = "reward" if rewards else "cost"
    assert f"The {noun} of a unit" in str(one)


def test_gaps_of_arms_and_several_units_are_no_problem() -> None:
    one = found(rho=0.9, deviation=0.2, seen=0.3, units=3, arms=15, week=0.2)
    assert one.persists
    assert one.low < 0.9 < one.high
    assert one.week == "alike"


def test_a_pattern_of_the_week_is_no_persistence() -> None:
    one = found(week=0.2)
    assert (one.persists, one.week, one.trend) == (False, "alike", "none")
    more = {day.weekday: day.more for day in one.weekdays}
    assert more["Saturday"] == pytest.approx(0.2 - 0.1 / 7, abs=0.04)
    assert more["Sunday"] == pytest.approx(-0.1 - 0.1 / 7, abs=0.04)
    assert "from Sunday (" in one.sentences[3]
    each = found(own_week=0.1)
    assert (each.persists, each.week, each.weekdays) == (False, "each arm", ())
    assert each.policy == "FeatureCTS(memory=Changes())"


def test_a_trend_is_no_persistence() -> None:
    one = found(trend=0.3)
    assert (one.persists, one.week, one.trend) == (False, "none", "alike")
    assert one.slope_low < 0.3 < one.slope_high < one.slope_low + 0.06
    assert "there is a trend, +" in one.sentences[3]
    assert one.course[0].more < -0.1 < 0.1 < one.course[-1].more


def test_coins_of_one_arm() -> None:
    one = found(arms=1, coins=True)
    assert (one.persists, one.week, one.trend) == (False, "none", "none")
    assert np.isnan(one.apart)
    assert "no two arms to compare" in one.sentences[1]
    lasting = found(arms=1, rho=0.9, deviation=0.2)
    assert lasting.persists
    assert lasting.low < 0.9 < lasting.high


def test_one_round_tells_of_no_course() -> None:
    one = found(rounds=1)
    assert (one.persists, one.week, one.trend, one.by_gap) == (None, "unknown", "unknown", ())
    assert "too few rounds" in one.sentences[2]
    assert "check again" in one.sentences[4]
    assert np.isnan(one.noise)
    single = mp.check_data({"arm": ["a"], "round": [1], "loss": [3]})
    assert str(single).startswith("There is 1 unit of 1 arm in 1 round, with 1.0 arms")
    constant = mp.check_data({"arm": ["a"] * 9, "round": range(9), "loss": [3] * 9})
    assert (constant.noise, constant.persists) == (0.0, None)


def test_labels_without_dates_have_no_weekdays() -> None:
    data = table(trend=0.3)
    data["round"] = (data["round"] - data["round"].min()).dt.days
    one = mp.check_data(data)
    assert (one.week, one.trend, one.first, one.weekdays) == ("unknown", "alike", None, ())


def test_words_are_those_of_the_user() -> None:
    words = mp.Words("EUR", "truck", "lane", "day")
    one = mp.check_data(table(rho=0.9, deviation=0.2), words=words)
    assert "2,000 trucks of 10 lanes in 200 days from 2026-01-05" in one.sentences[0]
    assert "EUR away from the mean of its lane" in one.sentences[1]
    assert "is left after one day" in one.sentences[2]


def test_losses_around_zero_are_compared_in_their_unit() -> None:
    data = table()
    data["loss"] += 40 * (data["round"] - data["round"].mean()).dt.days / 200 - 150
    one = mp.check_data(data)
    assert not one.relative
    assert one.trend == "alike"
    assert one.slope_low < 40 < one.slope_high < one.slope_low + 12
    assert "%" not in one.sentences[3]


def test_a_file_is_read_as_by_learn_table(tmp_path: Path) -> None:
    file = tmp_path / "bills.csv"
    file.write_text("from;to;day;euros\nLyon;north;31.01.2026;12,50\nLyon;south;01.02.2026;13\n")
    one = mp.check_data(file, ["from", "to"], "day", "euros")
    assert [arm.arm for arm in one.by_arm] == ["Lyon->north", "Lyon->south"]
    assert one.by_arm[0].mean == 12.5
    assert one.first is not None
    assert (one.first.month, one.rounds) == (1, 2)


@pytest.mark.parametrize(
    ("data", "given", "argument"),
    [
        ({"arm": ["a"], "round": [1], "loss": ["cheap"]}, {}, "table"),
        ({"arm": ["a"], "round": [1]}, {}, "table"),
        ({"arm": [], "round": [], "loss": []}, {}, "table"),
        ({"arm": ["a"], "round": [1], "loss": [None]}, {}, "table"),
        ("no such file.csv", {}, "table"),
        (BILLS, {"sense": "low"}, "sense"),
        (BILLS, {"arm": "lane"}, "table"),
    ],
)
def test_bad_tables_are_refused(data: Any, given: dict[str, Any], argument: str) -> None:
    with pytest.raises(mp.InvalidInput) as error:
        mp.check_data(data, **given)
    parts = error.value
    assert parts.argument == argument
    assert all((parts.expected, parts.got, parts.hint))


def test_bad_rows_may_be_left_out() -> None:
    data = {"arm": ["a", "a", "b"], "round": [1, 2, 2], "loss": ["1", "cheap", "2"]}
    assert mp.check_data(data, skip_bad=True).units == 2


def test_the_result_is_plain_data_and_a_picture(tmp_path: Path) -> None:
    one = found(rho=0.9, deviation=0.2, rounds=60)
    plain = to_plain(one)
    assert plain["text"] == str(one)
    assert plain["policy"] == PERSISTS
    assert plain["by_gap"][0].keys() == {"gap", "correlation"}
    assert len(plain["by_arm"]) == 10
    figure = one.plot(tmp_path / "bills.png", title="Bills")
    assert (tmp_path / "bills.png").stat().st_size > 5_000
    _, gaps, course = figure.axes
    assert len(gaps.lines) == 3
    assert np.size(course.lines[0].get_xdata()) == 60
    assert one.sentences[0] in one._repr_html_()


@pytest.mark.parametrize("place", [17, 90])
def test_the_filter_is_the_dense_normal_distribution(place: int) -> None:
    """Restricted likelihoods of two arms, with gaps, several units and two regressors."""
    rng, T = np.random.default_rng(place), 12
    y, units = rng.standard_normal((T, 2)), rng.integers(1, 4, (T, 2)).astype(float)
    y[rng.random((T, 2)) < 0.4] = np.nan
    z = rng.standard_normal((T, 2, 2))
    filters = Filters(Cells(y, units, z, 0.3))
    rho, share = filters.rho[place], filters.share[place]
    dense, logs = np.zeros((3, 3)), 0.0
    for i in range(2):
        (at,) = (~np.isnan(y[:, i])).nonzero()
        gaps = np.abs(at[:, None] - at)
        V = share / (1 - share) * rho**gaps + np.diag(0.3 + 0.7 / units[at, i])
        w, one, inverse = np.column_stack([y[at, i], z[at, i]]), np.ones(len(at)), np.linalg.inv(V)
        weight = inverse - np.outer(inverse @ one, one @ inverse) / (one @ inverse @ one)
        dense += w.T @ weight @ w
        logs += np.linalg.slogdet(V)[1] + np.log(one @ inverse @ one)
    np.testing.assert_allclose(filters.A[:, place].sum(axis=0), dense, rtol=1e-8)
    assert filters.logs[place] == pytest.approx(logs, rel=1e-8)
    squares = filters.squares([0, 1], [])
    beta = np.linalg.solve(dense[1:, 1:], dense[1:, 0])
    np.testing.assert_allclose(squares.beta[place], beta, rtol=1e-4)
    assert squares.left[place] == pytest.approx(dense[0, 0] - dense[0, 1:] @ beta, rel=1e-4)
    each = filters.squares([], [0, 1])
    assert each.left[place] < squares.left[place]
    assert each.free == squares.free - 2


def test_large_tables_are_fitted_by_the_arms_with_the_most_rounds() -> None:
    """40,000 cells: those of 50 arms are used, and all are counted."""
    one = found(seed=3, arms=200, rounds=200, rho=0.9, deviation=0.2)
    assert one.arms == len(one.by_arm) == 200
    assert one.persists
    assert one.low < 0.9 < one.high


def test_data_frames_are_not_changed() -> None:
    data = pd.DataFrame(BILLS)
    mp.check_data(data)
    pd.testing.assert_frame_equal(data, pd.DataFrame(BILLS))
