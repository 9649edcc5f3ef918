"""Simulation: regret that is known by hand, numbers that depend on the seed alone, results."""

import random
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from refusal import refused
from scipy import stats

from multiplay import (
    Adversarial,
    Bernoulli,
    Beta,
    Constant,
    Corrupted,
    Duplicated,
    Environment,
    Feedback,
    GenCTS,
    GenLBINFV,
    InvalidInput,
    Play,
    Policy,
    Result,
    Stochastic,
    Transport,
    Uniform,
    load,
    simulate,
)
from multiplay.actions import ActionSet
from multiplay.random import Rng
from multiplay.types import Arrays

SWAP = Transport([1, 1], [1, 1])
STRAIGHT, CROSSED = (1, 0, 0, 1), (0, 1, 1, 0)
PLANS = Transport([1, 4, 5], [4, 6])
MEANS = np.random.default_rng(0).uniform(0.1, 0.9, (7, 6))
SWAPPED = Stochastic(Bernoulli([0.1, 0.9, 0.8, 0.2]))
UNIFORM = Stochastic(Uniform(0, MEANS))
POLICIES: dict[str, Policy] = {
    "GenCTS": GenCTS(),
    "CTS": Duplicated(GenCTS()),
    "GenLBINFV": GenLBINFV(),
    "LBINFV": Duplicated(GenLBINFV(prediction="gd")),
}


@dataclass(frozen=True)
class Fixed(Policy):
    """Play one action for ever, and keep what was seen."""

    action: tuple[int, ...]
    seen: list[Feedback] = field(default_factory=list, init=False, compare=False)

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"rounds": np.zeros((trials, 1))}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        return Play(np.tile(np.array(self.action), (len(state["rounds"]), 1)))

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        self.seen.append(feedback)


def both() -> dict[str, Policy]:
    return {"straight": Fixed(STRAIGHT), "crossed": Fixed(CROSSED)}


def run(
    policies: dict[str, Policy] | None = None,
    environment: Environment = UNIFORM,
    horizon: int = 60,
    trials: int = 7,
    **options: Any,
) -> Result:
    return simulate(PLANS, environment, policies or POLICIES, horizon, trials, 3, **options)


def curve(result: Result, policy: str, trial: int = 0) -> NDArray[np.float64]:
    values: NDArray[np.float64] = result.regret.sel(policy=policy, trial=trial).values
    return values


@pytest.fixture(scope="module")
def result() -> Result:
    """Four policies, with corruption, so that every part of a result is there."""
    environment = Corrupted(before=Uniform(0, MEANS), after=Beta(2, 1 + MEANS), at=20)
    return run(environment=environment)


# ---------------------------------------------------------------- regret, by hand


def test_regret_of_constant_losses() -> None:
    """Trial 0: straight costs 0.4 and crossed 1.7; trial 1: straight 1.5 and crossed 1."""
    losses = Stochastic(Constant([[0.1, 0.9, 0.8, 0.3], [1.0, 0.5, 0.5, 0.5]]))
    result = simulate(SWAP, losses, both(), horizon=5, trials=2)
    t = np.arange(1, 6)
    np.testing.assert_allclose(curve(result, "straight", 0), 0 * t, atol=1e-12)
    np.testing.assert_allclose(curve(result, "crossed", 0), 1.3 * t)
    np.testing.assert_allclose(curve(result, "straight", 1), 0.5 * t)
    np.testing.assert_allclose(curve(result, "crossed", 1), 0 * t, atol=1e-12)


def test_regret_is_measured_by_means_not_by_luck() -> None:
    result = simulate(SWAP, Stochastic(Bernoulli([0.5, 0.6, 0.6, 0.5])), both(), 50, 20)
    np.testing.assert_allclose(result.final("crossed"), np.full(20, 50 * 0.2))


def test_regret_counts_units() -> None:
    """Two suppliers of 2: a plan moves k units crosswise, and each costs 0.3 more."""
    actions = Transport([2, 2], [2, 2])
    policies: dict[str, Policy] = {f"{k}": Fixed((2 - k, k, k, 2 - k)) for k in (0, 1, 2)}
    losses = Stochastic(Constant([0.1, 0.4, 0.4, 0.1]))
    result = simulate(actions, losses, policies, horizon=10, trials=1)
    for k in (0, 1, 2):
        assert result.final(f"{k}") == pytest.approx(10 * 2 * k * 0.3, abs=1e-12)


def test_regret_against_given_losses() -> None:
    """Round by round straight costs 0, 2, 2 and crossed 2, 1, 0: crossed is the best of all three.

    So straight is ahead by 2, then by 1, and behind by 1 in the end.
    """
    losses = Adversarial([[0, 1, 1, 0], [1, 0.5, 0.5, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
    result = simulate(SWAP, losses, both(), horizon=3, trials=2)
    for trial in (0, 1):
        np.testing.assert_allclose(curve(result, "straight", trial), [-2, -1, 1])
        np.testing.assert_allclose(curve(result, "crossed", trial), [0, 0, 0])


def test_regret_under_corruption_is_against_the_whole_horizon() -> None:
    """Straight costs 0 for 2 rounds and then 2, crossed the reverse: crossed is better over 6."""
    switch = Corrupted(before=Constant([0, 1, 1, 0]), after=Constant([1, 0, 0, 1]), at=2)
    result = simulate(SWAP, switch, both(), horizon=6, trials=1)
    np.testing.assert_allclose(curve(result, "straight"), [-2, -4, -2, 0, 2, 4])
    np.testing.assert_allclose(curve(result, "crossed"), 0)
    np.testing.assert_allclose(result.dataset["corruption"], [[4.0], [4.0]])


def punish_the_last(t: int, past: NDArray[np.int64]) -> NDArray[np.float64]:
    """Whatever was played last costs 2, the other 0; in round 1 straight costs 2, crossed 1."""
    if t == 1:
        return np.array([1, 0.5, 0.5, 1])
    return np.array(past[-1], dtype=float)


@pytest.mark.parametrize("record", [None, 1, [2]])
def test_regret_against_an_adversary_is_known_at_the_end(record: Any) -> None:
    """Straight pays 2, 2, 2 where crossed would have paid 1, 0, 0.

    Crossed pays 1, 2, 2 where straight would have paid 2, 0, 0: it looks good for one round.
    """
    result = simulate(SWAP, Adversarial(punish_the_last), both(), 3, trials=2, record=record)
    rounds = result.regret["round"].values - 1
    for trial in (0, 1):
        np.testing.assert_allclose(curve(result, "straight", trial), np.array([1, 3, 5])[rounds])
        np.testing.assert_allclose(curve(result, "crossed", trial), np.array([-1, 1, 3])[rounds])


def test_policies_meet_the_same_losses() -> None:
    one, other = Fixed((1, 0, 3, 1, 0, 5)), Fixed((0, 1, 1, 3, 3, 2))
    run({"one": one, "other": other}, horizon=10)
    for mine, yours in zip(one.seen, other.seen, strict=True):
        assert mine.units is not None
        assert yours.units is not None
        assert mine.first is not None
        for arm in (2, 3, 5):
            first = mine.first[arm]
            shared = slice(first, first + min(mine.count[0, arm], yours.count[0, arm]))
            assert (mine.units[:, shared] == yours.units[:, shared]).all()


# ---------------------------------------------------------------- what numbers depend on


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, 3])
def test_jobs_do_not_change_numbers(jobs: int) -> None:
    policies = POLICIES | {"fixed": Fixed((1, 0, 3, 1, 0, 5))}
    alone, many = run(policies), run(policies, jobs=jobs)
    assert (alone.regret == many.regret).all()
    assert alone.configuration == many.configuration


def test_an_executor_does_not_change_numbers_and_stays_open() -> None:
    with ThreadPoolExecutor(2) as executor:
        for environment in (UNIFORM, Adversarial(lambda t, past: np.full(6, 1 / t))):
            alone = run(environment=environment)
            assert (run(environment=environment, executor=executor).regret == alone.regret).all()
            many = run(environment=environment, executor=executor, jobs=3)
            assert (many.regret == alone.regret).all()
        assert executor.submit(int, "7").result() == 7


@pytest.mark.parametrize(
    "environment",
    [
        Stochastic(Beta(2, 1 + MEANS[0])),
        Adversarial(np.random.default_rng(1).random((60, 6, 5))),
        Adversarial(lambda t, past: (1 + past.sum(axis=0)) / (5 * t + 1)),
    ],
    ids=["stochastic", "slots", "adaptive"],
)
def test_a_trial_does_not_depend_on_the_number_of_trials(environment: Environment) -> None:
    few, many = run(environment=environment, trials=2), run(environment=environment, trials=9)
    assert (few.regret == many.regret.isel(trial=slice(2))).all()
    assert (many.regret.isel(trial=0) != many.regret.isel(trial=1)).any(), "trials differ"


def test_a_curve_does_not_depend_on_the_other_policies() -> None:
    together = run()
    for name, policy in POLICIES.items():
        alone = run({"any name": policy})
        assert (alone.regret.values[0] == together.regret.sel(policy=name)).all()


def test_the_seed_decides() -> None:
    one, same, other = (simulate(PLANS, UNIFORM, POLICIES, 60, 7, seed) for seed in (0, 0, 1))
    assert (one.regret == same.regret).all()
    assert (one.regret != other.regret).any()


def test_nothing_touches_the_global_random_state() -> None:
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    run(horizon=55)
    assert before == (random.getstate(), repr(np.random.get_state()))  # noqa: NPY002


# ---------------------------------------------------------------- what is recorded


@pytest.mark.parametrize("horizon", [1, 7, 999, 1000, 1001, 2500])
def test_about_a_thousand_rounds_are_recorded(horizon: int) -> None:
    result = simulate(SWAP, Stochastic(Constant([0, 1, 1, 0])), {"x": Fixed(CROSSED)}, horizon, 1)
    rounds = result.regret["round"].values
    assert len(rounds) == min(horizon, 1000)
    assert rounds[-1] == horizon
    assert rounds[0] >= 1
    gaps = np.diff(np.concatenate([[0], rounds]))
    assert gaps.max() - gaps.min() <= 1, "evenly spaced"
    np.testing.assert_allclose(curve(result, "x"), 2.0 * rounds)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (1, [60]),
        (4, [15, 30, 45, 60]),
        (1000, list(range(1, 61))),
        (np.int64(2), [30, 60]),
        ([60], [60]),
        ([5, 1, 5], [1, 5, 60]),
        (range(10, 61, 10), [10, 20, 30, 40, 50, 60]),
        (np.array([3, 4]), [3, 4, 60]),
    ],
)
def test_recorded_rounds(record: Any, expected: list[int]) -> None:
    everything, some = run(record=60), run(record=record)
    assert some.regret["round"].values.tolist() == expected
    assert (some.regret == everything.regret.sel(round=expected)).all()


@pytest.mark.parametrize(
    "record",
    [0, -1, 2.5, True, "all", "12", [], [0], [61], [-3], [1.5], [np.nan], [[1, 2]], np.array(5)],
    ids=repr,
)
def test_bad_records_are_refused(record: Any) -> None:
    with refused("record"):
        run(record=record)


# ---------------------------------------------------------------- results


def test_regret_is_labelled(result: Result) -> None:
    regret = result.regret
    assert isinstance(regret, xr.DataArray)
    assert regret.dims == ("policy", "trial", "round")
    assert regret.shape == (4, 7, 60)
    assert regret["policy"].values.tolist() == list(POLICIES) == result.policies
    assert regret["trial"].values.tolist() == list(range(7))
    assert regret["round"].values.tolist() == list(range(1, 61))


def test_summary_shows_final_regret_with_a_student_interval(result: Result) -> None:
    table = result.summary()
    assert table.columns.tolist() == ["regret", "ci low", "ci high", "µs per round"]
    assert table.index.tolist() == list(POLICIES)
    for policy, row in table.iterrows():
        final = result.regret.sel(policy=policy, round=60).values
        low, high = stats.ttest_1samp(final, 0).confidence_interval(0.95)
        np.testing.assert_allclose(row[:3].astype(float), [final.mean(), low, high], rtol=1e-9)
        assert row["µs per round"] > 0


def test_differences_are_paired(result: Result) -> None:
    one, other = result.final("GenCTS"), result.final("LBINFV")
    low, high = stats.ttest_rel(one, other).confidence_interval(0.95)
    difference = result.difference("GenCTS", "LBINFV")
    np.testing.assert_allclose(difference, [(one - other).mean(), low, high], rtol=1e-9)
    assert result.difference("CTS", "CTS") == (0, 0, 0)


def test_one_trial_has_no_interval() -> None:
    result = run(environment=Stochastic(Uniform(0, MEANS[0])), trials=1)
    table = result.summary()
    assert (table["ci low"] == -np.inf).all()
    assert (table["ci high"] == np.inf).all()
    assert np.isfinite(table["regret"]).all()


def test_an_unknown_policy_is_refused(result: Result) -> None:
    for ask in (lambda: result.final("GenCST"), lambda: result.difference("CTS", "GenCST")):
        with pytest.raises(InvalidInput, match=r"GenCST.*GenCTS|GenCTS.*GenCST"):
            ask()


def test_a_long_table_holds_the_same_numbers(result: Result) -> None:
    table = result.to_dataframe().set_index(["policy", "trial", "round"])["regret"]
    assert len(table) == result.regret.size
    for policy, trial, t in (("CTS", 3, 17), ("LBINFV", 6, 60)):
        assert table.loc[policy, trial, t] == result.regret.sel(policy=policy, trial=trial, round=t)


def test_what_was_run_is_written_down(result: Result) -> None:
    written = result.configuration
    assert written["horizon"] == 60
    assert written["trials"] == 7
    assert written["seed"] == 3
    assert written["actions"]["supply"] == [1, 4, 5]
    assert written["environment"]["before"]["high"] == MEANS.tolist()
    assert written["environment"]["at"] == 20
    assert list(written["policies"]) == list(POLICIES)
    assert written["policies"]["LBINFV"]["policy"]["prediction"] == "gd"


def test_a_saved_result_comes_back_exactly(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "run.nc"
    result.save(path)
    result.save(str(path))
    again = load(str(path))
    xr.testing.assert_identical(again.dataset, result.dataset)
    assert again.configuration == result.configuration
    assert again.summary().equals(result.summary())
    assert list(path.parent.iterdir()) == [path], "no drafts are left"


def write(text: bytes) -> Callable[[Path, Path], object]:
    return lambda path, good: path.write_bytes(text)


def foreign(path: Path, good: Path) -> None:
    xr.Dataset({"regret": ("x", [1.0])}).to_netcdf(path, engine="h5netcdf")


def half(path: Path, good: Path) -> None:
    text = good.read_bytes()
    path.write_bytes(text[: len(text) // 2])


def newer(path: Path, good: Path) -> None:
    dataset = load(good).dataset
    dataset.attrs["multiplay_format"] += 1
    dataset.to_netcdf(path, engine="h5netcdf")


def without_regret(path: Path, good: Path) -> None:
    load(good).dataset.drop_vars("regret").to_netcdf(path, engine="h5netcdf")


@pytest.mark.parametrize(
    "make",
    [
        lambda path, good: None,
        lambda path, good: path.mkdir(),
        write(b""),
        write(b"policy,trial,regret\n"),
        write(b"\x89HDF\r\n\x1a\n and then nothing"),
        half,
        foreign,
        newer,
        without_regret,
    ],
    ids=["missing", "folder", "empty", "csv", "magic", "half", "foreign", "newer", "no regret"],
)
def test_files_that_are_no_results_are_refused(
    make: Callable[[Path, Path], object], result: Result, tmp_path: Path
) -> None:
    good, path = tmp_path / "good.nc", tmp_path / "run.nc"
    result.save(good)
    make(path, good)
    with refused("path"):
        load(path)


def test_a_result_cannot_be_saved_in_place_of_a_folder(result: Result, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "run.nc", tmp_path / "folder"):
        with refused("path"):
            result.save(path)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


# ---------------------------------------------------------------- figures


def test_a_figure_names_its_axes_and_policies_and_shows_the_intervals(result: Result) -> None:
    figure = result.plot(title="Corrupted")
    (ax,) = figure.axes
    assert ax.get_xlabel() == "round"
    assert "regret" in ax.get_ylabel()
    assert "Corrupted" in [ax.get_title(loc="left"), ax.get_title()]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == result.ranked
    assert "95" in legend.get_title().get_text()

    table = result.summary()
    bands = [c for c in ax.collections if isinstance(c, PolyCollection)]
    lines = ax.lines[: len(POLICIES)]  # then come the marks
    assert len(lines) == len(bands) == len(POLICIES)
    for name, line, band in zip(POLICIES, lines, bands, strict=True):
        assert np.asarray(line.get_xdata())[-1] == 60
        assert np.asarray(line.get_ydata())[-1] == pytest.approx(table.loc[name, "regret"])
        corners = np.asarray(band.get_paths()[0].vertices)
        at_the_end = corners[corners[:, 0] == 60, 1]
        assert at_the_end.min() == pytest.approx(table.loc[name, "ci low"])
        assert at_the_end.max() == pytest.approx(table.loc[name, "ci high"])
    looks = {(line.get_color(), repr(line.get_linestyle())) for line in lines}
    assert len(looks) == len(POLICIES)


def test_a_figure_goes_where_it_is_told(result: Result) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert result.plot(ax=right, marks=False) is figure
    assert len(right.lines) == 4
    assert len(left.lines) == 0


@pytest.mark.parametrize("name", ["_mine", "e = n_i/2 (5$)", "a" * 60])
def test_every_name_is_shown(name: str, tmp_path: Path) -> None:
    result = run({name: GenCTS(), "other": GenCTS()}, horizon=5)
    figure = result.plot()
    figure.savefig(tmp_path / "figure.svg")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 2


def test_one_trial_is_drawn_without_a_band() -> None:
    environment = Stochastic(Uniform(0, MEANS[0]))
    (ax,) = run(environment=environment, trials=1).plot().axes
    assert len(ax.lines) == 4
    assert len(ax.collections) == 0


# ---------------------------------------------------------------- arguments in several forms


def test_whole_floats_are_counts() -> None:
    exact = simulate(SWAP, SWAPPED, {"GenCTS": GenCTS()}, 20, 3, jobs=1, record=5, block=2)
    loose = simulate(SWAP, SWAPPED, {"GenCTS": GenCTS()}, 2e1, 3.0, jobs=1.0, record=5.0, block=2.0)  # type: ignore[arg-type]
    assert loose.regret.identical(exact.regret)
    assert loose.configuration == exact.configuration


def test_without_a_seed_one_is_drawn_and_recorded(tmp_path: Path) -> None:
    play = partial(simulate, SWAP, SWAPPED, {"GenCTS": GenCTS()}, 20, 3)
    first, second = play(seed=None), play(seed=None)
    seeds = [result.configuration["seed"] for result in (first, second)]
    assert seeds[0] != seeds[1]
    assert play(seed=seeds[0]).regret.identical(first.regret)
    stored = play(seed=None, store=tmp_path)
    assert play(seed=None, store=tmp_path, resume=True).regret.identical(stored.regret)


def test_minus_one_job_is_one_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def cut(actions: Any, policies: Any, trials: int, jobs: int) -> list[int]:
        asked.append(jobs)
        return [trials] * len(policies)

    module = sys.modules["multiplay.simulation.simulate"]
    monkeypatch.setattr(module, "available_cores", lambda: 5)
    monkeypatch.setattr(module, "sizes_of_blocks", cut)
    simulate(SWAP, SWAPPED, {"GenCTS": GenCTS()}, 20, 3, jobs=-1)
    assert asked == [5]


def test_policies_of_a_list_are_named_by_their_repr() -> None:
    policies = [GenCTS(), Duplicated(GenCTS())]
    result = simulate(SWAP, SWAPPED, policies, 20, 3)
    assert result.policies == ["GenCTS()", "Duplicated(policy=GenCTS())"]
    named = simulate(SWAP, SWAPPED, {repr(policy): policy for policy in policies}, 20, 3)
    assert result.regret.identical(named.regret)
    with pytest.raises(InvalidInput, match=r"different policies, got GenCTS\(\) 2 times"):
        simulate(SWAP, SWAPPED, [GenCTS(), GenCTS()], 20, 3)


def test_equal_actions_give_one_warning() -> None:
    policies: dict[str, Policy] = {"GenCTS": GenCTS(), "straight": Fixed(STRAIGHT)}
    equal = Stochastic(Bernoulli([0.25, 0.5, 0.5, 0.75]))  # both pairings cost 1 a round
    with pytest.warns(UserWarning, match="all actions of Transport") as found:
        simulate(SWAP, equal, policies, 20, 3)
    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(SWAP, SWAPPED, {"best": Fixed(STRAIGHT)}, 20, 3)  # no regret, but others have
        simulate(SWAP, Adversarial(np.full((20, 4), 0.5)), policies, 20, 3)


def test_a_misspelt_argument_gets_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"'horizn'\. Did you mean 'horizon'\?"):
        simulate(SWAP, SWAPPED, POLICIES, horizn=20, trials=3)  # type: ignore[call-arg]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("horizon", 0),
        ("horizon", -1),
        ("horizon", 1.5),
        ("horizon", "60"),
        ("horizon", True),
        ("horizon", None),
        ("trials", 0),
        ("trials", 2.5),
        ("trials", float("inf")),
        ("seed", -1),
        ("seed", 0.5),
        ("jobs", 0),
        ("jobs", -2),
        ("jobs", 1.5),
        ("block", 0.5),
        ("record", 1.5),
        ("executor", "threads"),
        ("executor", 2),
        ("executor", ThreadPoolExecutor),
        ("actions", None),
        ("actions", Transport),
        ("environment", None),
        ("environment", Stochastic),
        ("environment", Uniform(0, MEANS)),
        ("policies", {}),
        ("policies", []),
        ("policies", [GenCTS(), GenCTS()]),
        ("policies", [GenCTS]),
        ("policies", GenCTS()),
        ("policies", None),
        ("policies", {"GenCTS": GenCTS}),
        ("policies", {"GenCTS": None}),
        ("policies", {1: GenCTS()}),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:25],
)
def test_bad_arguments_are_refused(argument: str, value: Any) -> None:
    good: dict[str, Any] = {
        "actions": PLANS,
        "environment": UNIFORM,
        "policies": POLICIES,
        "horizon": 60,
        "trials": 7,
    }
    with refused(argument):
        simulate(**{**good, argument: value})


@pytest.mark.parametrize(
    ("argument", "environment"),
    [
        ("distribution", Stochastic(Uniform(0, MEANS[:, :5]))),
        ("distribution", Stochastic(Uniform(0, MEANS[:6]))),
        ("after", Corrupted(before=Uniform(0, MEANS), after=Constant([0.5]))),
        ("losses", Adversarial(np.zeros((59, 6)))),
        ("losses", Adversarial(np.zeros((60, 6, 4)))),
        ("losses of round 1", Adversarial(lambda t, past: np.zeros(5))),
    ],
    ids=["arms", "trials", "one arm", "rounds", "slots", "adversary"],
)
def test_environments_that_do_not_fit_are_refused(argument: str, environment: Environment) -> None:
    with refused(argument):
        run(environment=environment)


@pytest.mark.parametrize("policy", [GenLBINFV(), Duplicated(GenLBINFV()), GenLBINFV(horizon=54)])
def test_a_horizon_below_that_of_the_theory_is_refused_before_anything_is_played(
    policy: Policy,
) -> None:
    first = Fixed((1, 0, 3, 1, 0, 5))
    with refused("horizon"):
        run({"first": first, "GenLBINFV": policy}, horizon=54)
    assert first.seen == []


def test_a_short_horizon_works_when_asked_for() -> None:
    for horizon in (1, 2, 54):
        result = run({"GenLBINFV": GenLBINFV(any_horizon=True)}, horizon=horizon)
        assert np.isfinite(result.regret).all()


def test_one_round_works_without_a_horizon() -> None:
    result = run({"GenCTS": GenCTS(), "CTS": Duplicated(GenCTS())}, horizon=1)
    assert result.regret.shape == (2, 7, 1)
    assert result.configuration["horizon"] == 1
    assert (result.regret >= -1e-12).all(), "no plan is better than the best"


@pytest.mark.parametrize(
    "action",
    [(1, 0, 3, 1, 0, 6), (1, 0, 300, 1, 0, 5), (1, 0, 5, -1, -2, 7), (1, 0, 3, 1, 0), (1,) * 7],
    ids=["margins", "too much", "negative", "five arms", "seven arms"],
)
def test_a_policy_that_plays_what_is_no_action_is_named(action: tuple[int, ...]) -> None:
    with pytest.raises((InvalidInput, ArithmeticError), match="Fixed"):
        run({"mine": Fixed(action)})


class Private(Fixed):
    """A policy that hides its settings, so that they cannot be written down."""

    def __init__(self, hidden: int) -> None:
        super().__init__((1, 0, 3, 1, 0, 5))
        object.__setattr__(self, "_hidden", hidden)


def test_settings_that_cannot_be_written_down_are_refused_before_anything_is_played() -> None:
    policy = Private(1)
    with pytest.raises(InvalidInput, match=r"Private.*hidden|hidden.*Private"):
        run({"mine": policy})
    assert policy.seen == []


def towards(value: float, t: int, past: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.full(6, value)


class Towards:
    def __call__(self, t: int, past: NDArray[np.int64]) -> NDArray[np.float64]:
        return towards(0.5, t, past)


@pytest.mark.parametrize("adversary", [partial(towards, 0.5), Towards(), Towards().__call__])
def test_everything_that_can_be_called_may_be_an_adversary(adversary: Any) -> None:
    result = run(environment=Adversarial(adversary))
    assert np.abs(result.regret).max() < 1e-9, "every plan costs the same"


def test_what_cannot_be_sent_to_another_process_is_refused() -> None:
    class Local(Fixed):
        """No other process can import it."""

    with pytest.raises(InvalidInput, match="jobs"):
        run(environment=Adversarial(lambda t, past: np.zeros(6)), jobs=2)
    with pytest.raises(InvalidInput, match="jobs"):
        run({"GenCTS": GenCTS(), "mine": Local((1, 0, 3, 1, 0, 5))}, jobs=2)


def breaks_down(t: int, past: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.zeros(6) + 1 // (10 - t)


@pytest.mark.slow
def test_a_fault_in_a_worker_comes_back_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError):
        run(environment=Adversarial(breaks_down), jobs=2)
    with ThreadPoolExecutor(2) as executor, pytest.raises(ZeroDivisionError):
        run(environment=Adversarial(breaks_down), executor=executor)


# ---------------------------------------------------------------- a billion units


def test_a_billion_units() -> None:
    """The scale of the supplies changes the scale of the regret, and nothing else can go wrong."""
    billion = 10**9
    actions = Transport([billion, 2 * billion], [2 * billion, billion])
    environment = Stochastic(Uniform(0, [0.2, 0.4, 0.6, 0.8]))
    policies: dict[str, Policy] = {"GenCTS": GenCTS(), "GenLBINFV": GenLBINFV()}
    result = simulate(actions, environment, policies, horizon=100, trials=3)
    worst = actions.value(actions.argmin([-0.1, -0.2, -0.3, -0.4]), [0.1, 0.2, 0.3, 0.4])
    assert (result.regret >= -1e-9 * billion).all()
    assert (result.regret <= 100 * worst).all()
    assert result.final("GenCTS").mean() < 5 * billion, "a billion samples tell the best plan"
