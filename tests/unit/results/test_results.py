"""Comparisons, figures and tables of a result, without running a simulation."""

import json
import math
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from refusal import refused
from scipy import stats

from multiplay import (
    Alternating,
    Bernoulli,
    Budget,
    Corrupted,
    GenCTS,
    InvalidInput,
    Result,
    Stochastic,
    load,
    simulate,
)
from multiplay.results.comparison import compare
from multiplay.results.measured import QUANTITIES, Measured
from multiplay.results.plots import style

Floats = NDArray[np.float64]
CONFIGURATION = {
    "actions": {"type": "Budget", "total": 1, "caps": [1, 1]},
    "environment": {"type": "Stochastic", "distribution": {"type": "Bernoulli", "mean": 0.5}},
    "policies": {},
    "horizon": 40,
    "trials": 5,
    "seed": 3,
}


def made(regret: Floats, names: list[str] | None = None, sense: str = "min") -> Result:
    """Make a result of curves (policy, trial, round), with everything else drawn at random."""
    policies, trials, rounds = regret.shape
    rng = np.random.default_rng(0)
    measured: Measured = dict(
        regret=regret,
        realised=regret + 1,
        excess=rng.random((policies, trials, 2)),
        **{
            name: rng.random((policies, trials))
            for name in sorted(set(QUANTITIES) - {"regret", "realised", "excess"})
        },
    )
    names = names or [f"policy {k}" for k in range(policies)]
    return Result.from_arrays(
        names, ["left", "right"], np.arange(1, rounds + 1), measured, CONFIGURATION, sense
    )


def of_finals(finals: Floats) -> Result:
    """Make a result of final regrets (policy, trial)."""
    return made(finals[:, :, None])


def walks(policies: int, trials: int = 5, rounds: int = 40) -> Floats:
    steps = np.random.default_rng(1).exponential(1.0, (policies, trials, rounds))
    return np.cumsum(steps * (1 + np.arange(policies))[:, None, None], axis=2)


# ---------------------------------------------------------------- comparisons


def test_every_pair_is_compared_at_the_level_of_all_pairs() -> None:
    """Against the paired t-test, which is ours for few trials, and Holm's steps one by one."""
    rng = np.random.default_rng(5)
    finals = rng.normal([[0.0], [0.4], [0.5], [3.0]], 1.0, (4, 7)) + rng.normal(0, 5, 7)
    table = of_finals(finals).compare()
    names = ["A", "B", "difference", "ci low", "ci high", "p", "verdict"]
    assert table.columns.tolist() == names
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    assert list(zip(table["A"], table["B"], strict=True)) == [
        (f"policy {a}", f"policy {b}") for a, b in pairs
    ]
    tests = [stats.ttest_rel(finals[a], finals[b]) for a, b in pairs]
    for row, test, (a, b) in zip(table.itertuples(index=False), tests, pairs, strict=True):
        low, high = test.confidence_interval(1 - 0.05 / 6)
        expected = [(finals[a] - finals[b]).mean(), low, high]
        np.testing.assert_allclose(row[2:5], expected, rtol=1e-9)
        decided = "A lower" if high < 0 else "B lower" if low > 0 else "undecided"
        assert row[-1] == decided
    assert set(table["verdict"]) == {"A lower", "undecided"}, "both are seen here"

    largest, left = 0.0, 6
    for place in sorted(range(6), key=lambda i: float(tests[i].pvalue)):
        largest = max(largest, min(1.0, left * float(tests[place].pvalue)))
        assert table["p"][place] == pytest.approx(largest, rel=1e-9)
        left -= 1


def test_the_order_of_two_policies_turns_the_verdict() -> None:
    finals = np.array([[1.0, 2.0, 3.0], [5.1, 6.0, 6.9]])
    (row,) = of_finals(finals).compare().to_dict("records")
    (turned,) = of_finals(finals[::-1]).compare().to_dict("records")
    assert (row["verdict"], turned["verdict"]) == ("A lower", "B lower")
    assert turned["difference"] == -row["difference"]
    assert turned["p"] == row["p"]


def test_of_two_policies_nothing_is_corrected() -> None:
    finals = np.random.default_rng(2).normal(size=(2, 6))
    result = of_finals(finals)
    (row,) = result.compare().to_dict("records")
    difference = result.difference("policy 0", "policy 1")
    assert (row["difference"], row["ci low"], row["ci high"]) == difference
    assert row["p"] == pytest.approx(float(stats.ttest_rel(*finals).pvalue), rel=1e-9)


def test_one_trial_decides_nothing() -> None:
    table = of_finals(np.array([[1.0], [2.0], [900.0]])).compare()
    assert (table["ci low"] == -np.inf).all()
    assert (table["ci high"] == np.inf).all()
    assert (table["p"] == 1).all()
    assert (table["verdict"] == "undecided").all()
    assert table["difference"].tolist() == [-1, -899, -898]


def test_one_policy_has_nobody_to_compare_with() -> None:
    table = of_finals(np.ones((1, 3))).compare()
    assert len(table) == 0
    assert "verdict" in table.columns


def test_differences_that_never_vary() -> None:
    """Equal policies are not told apart; a constant gap is certain. No division by 0."""
    base = np.array([1.0, 2.0, 4.0])
    table = of_finals(np.array([base, base, base + 1])).compare()
    assert table["verdict"].tolist() == ["undecided", "A lower", "A lower"]
    assert table["p"].tolist() == [1, 0, 0]


@pytest.mark.slow
def test_equal_policies_are_rarely_called_different() -> None:
    """In 1000 runs of 4 equal policies, any verdict at all is wrong: at most 5 % of the runs.

    Level 1e-6 on either side; without correction it would be about 20 %, and far below 5 % the
    intervals would be too wide.
    """
    rng, runs = np.random.default_rng(11), 1000
    shared = rng.normal(0, 3, (runs, 1, 8))
    wrong = small = 0
    for finals in shared + rng.normal(size=(runs, 4, 8)):
        table = compare(dict(zip("ABCD", finals, strict=True)))
        wrong += bool((table["verdict"] != "undecided").any())
        small += bool((table["p"] <= 0.05).any())
    assert wrong == small, "the first step of Holm is Bonferroni's"
    assert wrong <= stats.binom.isf(1e-6, runs, 0.05)
    assert wrong >= stats.binom.ppf(1e-6, runs, 0.035)


# ---------------------------------------------------------------- other tables


def test_quantities_are_means_over_trials() -> None:
    result = made(walks(3))
    table = result.quantities()
    losses = ["L_star", "Q2", "V1", "Q2_played", "V1_played"]
    assert table.columns.tolist() == ["switches", *losses, "corruption"]
    assert table.index.tolist() == result.policies
    for policy in result.policies:
        for name in table.columns:
            values = result.dataset[name].sel(policy=policy).values
            assert table.loc[policy, name] == pytest.approx(values.sum() / 5)


def test_quantities_that_were_not_measured_are_left_out() -> None:
    result = made(walks(2))
    some = Result(result.dataset.drop_vars(["corruption", "Q2"]))
    assert some.quantities().columns.tolist() == [
        "switches",
        "L_star",
        "V1",
        "Q2_played",
        "V1_played",
    ]
    shared = result.dataset.assign(corruption=("trial", np.arange(5.0)))  # as older files have it
    assert Result(shared).quantities()["corruption"].tolist() == [2, 2]


def test_versions_are_kept() -> None:
    assert {"python", "multiplay", "numpy"} <= set(made(walks(1)).versions)


# ---------------------------------------------------------------- files


@pytest.mark.slow
def test_a_damaged_file_is_refused_or_has_all_its_numbers(tmp_path: Path) -> None:
    """Whatever bytes are hit, no other numbers come of it, and nothing stays open."""
    path, rng, result = tmp_path / "run.nc", random.Random(4), made(walks(2))
    result.save(path)
    whole = path.read_bytes()
    every = [[place] for place in range(0, len(whole), 61)]
    end = [[place] for place in range(len(whole) - 90, len(whole))]
    many = [[rng.randrange(len(whole)) for _ in range(20)] for _ in range(20)]
    refusals: list[str] = []
    for places in every + end + many:
        hit = bytearray(whole)
        for place in places:
            hit[place] ^= 1 << rng.randrange(8)
        path.write_bytes(hit)
        try:
            found = load(path)
        except InvalidInput as error:
            refusals.append(str(error))
        else:
            assert found.dataset.identical(result.dataset), places
    assert len(refusals) > len(every + many)
    assert all("damaged: restore a backup, or run it again." in message for message in refusals)
    assert not any("\n" in message for message in refusals)
    path.write_bytes(whole)
    assert load(path).dataset.identical(result.dataset)


def test_numbers_that_change_in_a_file_are_seen(tmp_path: Path) -> None:
    """The file is still a good netCDF file: only the checksum can tell."""
    path, regret = tmp_path / "run.nc", walks(2)
    made(regret).save(path)
    whole = path.read_bytes()
    place = whole.index(regret[0, 0].tobytes()[:32])
    path.write_bytes(whole[:place] + b"\x01" + whole[place + 1 :])
    with refused("path"):
        load(path)
    changed = xr.load_dataset(path, engine="h5netcdf")["regret"].values
    assert (changed != regret).sum() == 1


def test_files_without_a_checksum_are_read_as_before(tmp_path: Path) -> None:
    """Those of older versions, and those that people write with xarray from a saved one."""
    path, part, result = tmp_path / "run.nc", tmp_path / "part.nc", made(walks(2))
    older = result.dataset.copy()
    older.attrs = {name: text for name, text in older.attrs.items() if name != "marks"}
    older.to_netcdf(path, engine="h5netcdf")
    assert load(path).marks == {}
    np.testing.assert_array_equal(load(path).regret, result.regret)
    result.save(path)
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        opened.isel(trial=slice(2)).to_netcdf(part, engine="h5netcdf")
    np.testing.assert_array_equal(load(part).regret, result.regret[:, :2])


@pytest.mark.parametrize("path", [None, 3, 2.5, ["run.nc"], b"run.nc", "run\0.nc", ""])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with refused("path"):
        made(walks(1)).save(path)
    with refused("path"):
        load(path)


@pytest.mark.parametrize("attribute", ["configuration", "multiplay_format", "marks"])
def test_files_with_nonsense_for_attributes_are_refused(attribute: str, tmp_path: Path) -> None:
    dataset = made(walks(1)).dataset.assign_attrs({attribute: "{nonsense"})
    dataset.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with refused("path"):
        load(tmp_path / "run.nc")


# ---------------------------------------------------------------- figures


def only(figure: Figure) -> Any:
    (ax,) = figure.axes
    return ax


def drawn(figure: Figure) -> Any:
    """Draw, so that everything has its place, and return what it was drawn with."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def test_single_trials_are_drawn_behind_the_mean() -> None:
    regret = walks(3)
    plain, ax = only(made(regret).plot()), only(made(regret).plot(trials=True))
    assert not [c for c in plain.collections if isinstance(c, LineCollection)]
    thin: list[Any] = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert len(thin) == len(ax.lines) == 3
    for lines, mean, curves in zip(thin, ax.lines, regret, strict=True):
        for line, curve in zip(lines.get_segments(), curves, strict=True):
            np.testing.assert_array_equal(line[:, 1], curve)
        assert lines.get_zorder() < mean.get_zorder()
        assert lines.get_linewidth()[0] < mean.get_linewidth()
        assert ax.get_ylim()[1] >= curves.max()


def test_logarithmic_regret_is_a_straight_line_against_a_log_axis() -> None:
    rounds = np.arange(1, 41)
    regret = np.tile(3 * np.log(rounds), (1, 4, 1))
    ax = only(made(regret).plot(x="log"))
    assert "log" in ax.get_xlabel()
    drawn(ax.figure)
    at = ax.transData.transform(np.column_stack(ax.lines[0].get_data()))
    slopes = np.diff(at[:, 1]) / np.diff(at[:, 0])
    assert np.ptp(slopes) < 1e-6 * slopes.mean()
    assert ax.get_xlim() == (1, 40)


def test_a_log_scale_shows_the_positive_part_and_says_so() -> None:
    regret = walks(2) - 10.0
    ax = only(made(regret).plot(y="log", trials=True))
    assert ax.get_yscale() == "log"
    assert "where positive" in ax.get_ylabel()
    mean = regret.mean(axis=1)
    for line, curve in zip(ax.lines, mean, strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.where(curve > 0, curve, np.nan))
    assert ax.get_ylim()[0] == pytest.approx(mean[mean > 0].min() / 2)
    assert "where" not in only(made(np.exp(walks(2) / 50)).plot(y="log")).get_ylabel()
    assert "where" not in only(made(regret).plot()).get_ylabel()
    with refused("y"):
        made(-walks(2)).plot(y="log")


def test_realised_regret_is_drawn_if_asked_for() -> None:
    result = made(walks(2))
    ax = only(result.plot(measure="realised"))
    assert ax.get_ylabel() == "cumulative realised regret"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), walks(2)[0].mean(axis=0) + 1)
    lost = made(walks(2), sense="max").plot(measure="realised")
    assert only(lost).get_ylabel() == "cumulative realised reward lost"
    with refused("measure"):
        Result(result.dataset.drop_vars("realised")).plot(measure="realised")


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [("x", "linear or log"), ("y", "linear or log"), ("measure", "regret or realised")],
)
def test_other_choices_are_refused(choice: str, allowed: str) -> None:
    result = made(walks(1))
    for wrong in ("cubic", None, ["log"]):
        options: Any = {choice: wrong}
        with refused(choice):
            result.plot(**options)
        with pytest.raises(InvalidInput, match=allowed):
            result.plot(**options)


@pytest.mark.parametrize("length", [3, 45, 150])
@pytest.mark.parametrize("policies", [1, 2, 4, 9])
def test_the_legend_is_whole_and_outside_of_the_data(policies: int, length: int) -> None:
    names = [f"{k}$" + "name with words "[: length - 2] * math.ceil(length / 16) for k in range(9)]
    figure = made(walks(policies), names[:policies]).plot(title="cost in $ and $\\nothing$")
    ax, renderer = only(figure), drawn(figure)
    legend = ax.get_legend().get_window_extent(renderer)
    label = ax.xaxis.label.get_window_extent(renderer)
    assert legend.y1 <= label.y0 < label.y1 <= ax.get_window_extent(renderer).y0
    assert legend.x0 >= 0
    assert legend.y0 >= 0
    assert legend.x1 <= figure.bbox.x1
    data = ax.get_window_extent(renderer)
    assert data.width > 0.75 * figure.bbox.width
    assert data.height > 2 * figure.dpi, "inches"
    boxes = [text.get_window_extent(renderer) for text in ax.get_legend().get_texts()]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_policies_look_different() -> None:
    ax = only(made(walks(30)).plot())
    assert len({line.get_color().lower() for line in ax.lines}) == 30
    dashes = [repr(line._dash_pattern) for line in ax.lines]
    assert all(a != b for a, b in pairwise(dashes)), "neighbours, for those who print in grey"
    assert len(set(dashes)) == 7
    bands = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert len(bands) == 30
    assert len({style(k)[0].lower() for k in range(500)}) == 500


# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes (2009), severity 1, on linear RGB
EYES = {
    "all cones": np.eye(3),
    "no red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colours: list[str]) -> Floats:
    rgb = np.array([to_rgb(colour) for colour in colours])
    return np.asarray(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4))


def lab(rgb: Floats) -> Floats:
    """CIELAB of linear RGB: a distance of about 2 can be seen side by side."""
    t = np.clip(rgb, 0, 1) @ TO_XYZ.T / TO_XYZ.sum(axis=1)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = f.T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize(
    ("eye", "policies", "apart"),
    [
        ("all cones", 14, 25),
        ("no red cones", 14, 16),
        ("no green cones", 14, 16),
        ("all cones", 24, 17),
        ("no red cones", 24, 10),
        ("no green cones", 24, 10),
    ],
)
def test_colours_are_apart_for_every_eye(eye: str, policies: int, apart: float) -> None:
    seen = lab(linear([style(k)[0] for k in range(policies)]) @ EYES[eye].T)
    distances = np.linalg.norm(seen[:, None] - seen, axis=2)
    assert distances[~np.eye(policies, dtype=bool)].min() > apart


def test_colours_are_seen_on_white_and_on_black() -> None:
    """By the contrast of WCAG, (brighter + 0.05) / (darker + 0.05); black follows the text."""
    colours = [style(k)[0] for k in range(60) if style(k)[0] != "#000000"]
    assert len(colours) == 59
    luminance, (dark,) = linear(colours) @ TO_XYZ[1], linear(["#14171b"]) @ TO_XYZ[1]
    assert (1.05 / (luminance + 0.05)).min() > 2
    assert ((luminance + 0.05) / (dark + 0.05)).min() > 2.75


def test_the_legend_has_the_lowest_regret_first() -> None:
    result = made(walks(9)[::-1])
    assert result.ranked == sorted(result.policies, key=lambda name: result.final(name).mean())
    assert result.ranked != result.policies

    class Zero:
        @staticmethod
        def curve(rounds: Floats) -> Floats:
            return np.zeros(len(rounds))

    ax = only(result.plot(bounds={"bound": Zero()}))
    legend = ax.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*result.ranked, "bound"]
    colours = {name: style(k)[0] for k, name in enumerate(result.policies)}
    for name, line in zip(names[:-1], legend.get_lines(), strict=False):
        assert line.get_color() == colours[name], "that of its place in the file"


# ---------------------------------------------------------------- marks


def marked(marks: dict[int, str], rounds: int = 40) -> Result:
    dataset = made(walks(2, rounds=rounds)).dataset
    return Result(dataset.assign_attrs(marks=json.dumps(marks)))


def dashed(ax: Any) -> list[float]:
    """Return the rounds of the vertical lines."""
    lines = [line.get_xdata() for line in ax.lines]
    return [float(x[0]) for x in lines if len(x) == 2 and x[0] == x[1]]


@pytest.mark.parametrize("x", ["linear", "log"])
@pytest.mark.parametrize("at", [2, 9, 20, 39])
def test_marks_are_drawn_between_the_curves_and_the_title(at: int, x: str) -> None:
    text = "corruption from round $5$"
    figure = marked({at: text}).plot(title="A title", x=x)
    ax, renderer = only(figure), drawn(figure)
    assert dashed(ax) == [at]
    (label,) = [one for one in ax.texts if one.get_text() == text]
    box, title = label.get_window_extent(renderer), ax._left_title.get_window_extent(renderer)
    axes = ax.get_window_extent(renderer)
    assert axes.y1 <= box.y0 < box.y1 <= title.y0
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    here = ax.transData.transform((at, 1))[0]
    assert box.x0 - 1 <= here <= box.x1 + 1, "it stands at its line"
    bare = only(marked({at: text}).plot(title="A title", x=x, marks=False))
    assert (dashed(bare), len(bare.texts)) == ([], 0)


def test_a_text_is_written_once_and_only_rounds_that_are_shown_are_marked() -> None:
    ax = only(marked({5: "jump", 10: "jump", 50: "jump", 20: "rest"}).plot())
    assert sorted(dashed(ax)) == [5, 10, 20]
    assert sorted(text.get_text() for text in ax.texts) == ["jump", "rest"]
    assert dashed(only(made(walks(2)).plot())) == []


def test_marks_survive_saving(tmp_path: Path) -> None:
    marks = {7: "corruption from round 7"}
    marked(marks).save(tmp_path / "run.nc")
    assert load(tmp_path / "run.nc").marks == marks


def test_environments_tell_what_happens() -> None:
    """Where Alternating has a mark, and nowhere else, do its means change."""
    half = Bernoulli([0.5, 0.6])
    one, policies = Budget(1, [1, 1]), {"GenCTS": GenCTS()}
    corrupted = Corrupted(before=half, after=Bernoulli([0.1, 0.9]), at=20)
    assert simulate(one, corrupted, policies, 50, trials=1).marks == {
        21: "corruption from round 21"
    }
    assert simulate(one, corrupted, policies, 21, trials=1).marks != {}
    assert simulate(one, corrupted, policies, 20, trials=1).marks == {}, "it never comes"
    assert simulate(one, Stochastic(half), policies, 50, trials=1).marks == {}
    jumping = Alternating([0.5, 0.5], shift=0.25, first=3)
    highs = [0.75] * 3 + [0.25] * 5 + [0.75] * 8 + [0.25] * 12  # 3 * 1.6 = 4.8, 7.68, 12.288
    changes = [t + 2 for t, (a, b) in enumerate(pairwise(highs)) if a != b]
    assert list(simulate(one, jumping, policies, 28, trials=1).marks) == changes
    assert Alternating(0.5, shift=0.25, first=1, growth=1).marks(1000) == {}, "no room for so many"


@pytest.mark.parametrize("x", ["linear", "log"])
def test_a_single_recorded_round_is_a_visible_point(x: str) -> None:
    ax = only(made(walks(2, rounds=1)).plot(x=x))
    assert all(line.get_marker() == "o" for line in ax.lines)


# ---------------------------------------------------------------- files and parts of figures


def test_a_result_is_saved_as_netcdf_only(tmp_path: Path) -> None:
    result = made(walks(2))
    for name in ("regret.csv", "regret", "regret.h5"):
        with pytest.raises(InvalidInput, match=r"ends with \.nc.*to_dataframe\(\)\.to_csv"):
            result.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    result.save(tmp_path / "regret.nc")
    assert Result.load(tmp_path / "regret.nc").dataset.identical(result.dataset)


def test_a_figure_is_saved_to_the_file_that_is_given(tmp_path: Path) -> None:
    result = made(walks(2))
    for name in ("regret.png", "regret.svg"):
        assert only(result.plot(tmp_path / name)).lines
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "regret.svg").read_text()
    result.plot(str(tmp_path / "text.PNG"))
    with pytest.raises(InvalidInput, match=r"ending of a picture.*Write \.png"):
        result.plot(tmp_path / "regret.xyz")
    assert {path.name for path in tmp_path.iterdir()} == {"regret.png", "regret.svg", "text.PNG"}


def test_some_policies_are_drawn_in_their_own_colours() -> None:
    result = made(walks(4))
    whole = {line.get_color() for line in only(result.plot()).lines}
    ax = only(result.plot(policies=["policy 3", "policy 1"]))
    colours = [line.get_color() for line in ax.lines]
    assert colours == [style(3)[0], style(1)[0]]
    assert set(colours) < whole
    legend = ax.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {"policy 1", "policy 3"}
    assert len(only(result.plot(policies="policy 2")).lines) == 1
    with pytest.raises(InvalidInput, match=r"got 'polcy 3'\. Did you mean 'policy 3'\?"):
        result.plot(policies=["polcy 3"])
    with pytest.raises(InvalidInput, match="a list of names"):
        result.plot(policies=[])


def test_a_band_that_would_hide_the_curves_does_not_set_the_axis() -> None:
    """One trial of ten is a hundred times as bad: its band is wider than all means together."""
    regret = walks(3, trials=10)
    regret[2, :, :] /= 10
    regret[2, 0, :] *= 100
    wide = made(regret)
    ax = only(wide.plot())
    means = wide.regret.mean("trial").values
    bottom, top = ax.get_ylim()
    assert bottom < 0 < means.max() < top < 1.5 * means.max()
    legend = ax.get_legend()
    assert legend is not None
    assert "axis cut to the means: bands reach from" in legend.get_title().get_text()

    usual = only(made(walks(3, trials=10)).plot())
    legend = usual.get_legend()
    assert legend is not None
    assert "cut" not in legend.get_title().get_text()
    (highest,) = [max(p.vertices[:, 1].max() for c in usual.collections for p in c.get_paths())]
    assert usual.get_ylim()[1] > highest
    logarithmic = only(wide.plot(y="log")).get_legend()
    assert logarithmic is not None
    assert "cut" not in logarithmic.get_title().get_text()
