"""Table 1, measured: every number is that of a result, and no row breaks the table."""

import json
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from commands import forked, fresh
from numpy.typing import NDArray
from refusal import refused

from multiplay import (
    Bernoulli,
    Beta,
    Budget,
    Constant,
    Coverage,
    Distribution,
    Duplicated,
    Feedback,
    GenCTS,
    Play,
    Policy,
    Result,
    Rng,
    Stochastic,
    Uniform,
    load,
)
from multiplay._support.formatting import number
from multiplay.actions import ActionSet
from multiplay.cli import main
from multiplay.experiments import paper, table1
from multiplay.experiments.growth import Growth, exponent, growth, memory
from multiplay.reports import table1 as report
from multiplay.types import Arrays

FILES = {
    *("table1.txt", "table1.html", "table1.png", "table1.svg", "costs.json"),
    *("stochastic.nc", "corrupted.nc", "adversarial.nc"),
}
GROWN = Growth([10, 20], [9, 24], [1.0, 2.0], [100, 200])
run, run_anew = (partial(start, "table1", COLUMNS="100") for start in (forked, fresh))
NAMES = [row.name for row in table1.ROWS]
ADS = """
title = "Ads"
horizon = 80
trials = 2
seed = 3

[actions]
type = "Budget"
total = 4
caps = [3, 2, 2]
sense = "max"

[environment]
type = "Stochastic"
distribution = { type = "Bernoulli", mean = [0.2, 0.5, 0.7] }

[policies]
Mine = { type = "RandomAction" }
"""


def cells(text: str, title: str, wide: int) -> dict[str, list[list[str]]]:
    """Read a table of so many columns: the lines of every cell of a row, by the first of them."""
    found: dict[str, list[list[str]]] = {}
    name = ""
    for line in text[text.index(f"{title} ") :].splitlines():
        if line.startswith("└"):
            break
        if line.startswith("│"):
            row = [cell.strip() for cell in line.strip("│").split("│")]
            assert len(row) == wide, line
            if row[0] in NAMES:
                name = row[0]
                found[name] = [[] for _ in range(wide - 1)]
            for parts, cell in zip(found[name], row[1:], strict=True):
                parts += [cell] if cell else []
    return found


@pytest.fixture(scope="module")
def of_paper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("table1") / "new"
    said = run_anew("--trials", 2, "--horizon", 60, "--seed", 5, "--jobs", 1, "--out", folder)
    assert said.returncode == 0, said.stderr
    lines = [line.rpartition(" (")[0] for line in said.stderr.splitlines()]
    done = [line.removesuffix(": done") for line in lines if not line.endswith(": running")]
    regimes = [f"{regime} regime" for regime in table1.REGIMES]
    assert done == ["memory", *regimes, "growth", "lower bounds"]
    return folder, said.stdout


# ---------------------------------------------------------------- the table


@pytest.mark.slow
def test_all_files_are_written(of_paper: tuple[Path, str]) -> None:
    folder, said = of_paper
    assert {path.name for path in folder.iterdir()} == FILES
    assert (folder / "table1.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / "table1.svg").read_text(encoding="utf-8")
    assert said.startswith((folder / "table1.txt").read_text(encoding="utf-8").rstrip("\n"))
    assert max(map(len, said.splitlines()[:-1])) <= 100


@pytest.mark.slow
def test_the_rows_are_those_of_the_paper_and_two_yardsticks(of_paper: tuple[Path, str]) -> None:
    _, said = of_paper
    promised = cells(said, "Bounds of the paper", 5)
    assert list(promised) == NAMES
    assert NAMES[-2:] == ["LinTS", "LinUCB"]
    assert len(NAMES) == 7 + 2
    assert promised["ScaledScribble"] == [
        ["totals"],
        ["d³ σ² log T / Δ"],
        ["d² √(Z log T)"],
        ["Exp(d)"],
    ]
    assert promised["GenCTS"] == [["units"], ["Σ log m log T / Δᵢ"], ["-"], ["Poly(d)"]]
    seen = {name: row[0] for name, row in promised.items()}
    assert [name for name in NAMES if seen[name] == ["units"]] == [
        *("CTS", "LBINFV", "GenCTS", "GenLBINFV")
    ]


def brief(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.{1 if abs(value) < 100 else 0}f}"


@pytest.mark.slow
def test_every_regret_is_that_of_the_saved_result(of_paper: tuple[Path, str]) -> None:
    folder, said = of_paper
    shown = cells(said, "Final regret", 4)
    assert list(shown) == NAMES
    for column, regime in enumerate(table1.REGIMES):
        result = load(folder / f"{regime}.nc")
        assert result.policies == NAMES
        summary = result.summary().itertuples(name=None)
        for name, mean, low, high, _ in summary:
            expected = [brief(mean), f"{brief(low)} to {brief(high)}"]
            assert shown[name][column] == expected, (name, regime)


@pytest.mark.slow
def test_every_cost_is_that_of_the_saved_results(of_paper: tuple[Path, str]) -> None:
    folder, said = of_paper
    costs = json.loads((folder / "costs.json").read_text(encoding="utf-8"))
    times = load(folder / "stochastic.nc").summary()["µs per round"]
    shown = cells(said, "Time and memory", 6)
    for row in table1.ROWS:
        time, needed, time_power, memory_power, sizes = (one for (one,) in shown[row.name])
        assert time == number(times[row.name])
        assert needed == report.kilobytes(costs["memory"][row.name])
        grown = costs["growth"][row.name]
        size = grown["actions" if row.sees_totals else "units"]
        assert sizes == f"{row.size} {size[0]} to {size[-1]}"
        for power, values in ((time_power, grown["time"]), (memory_power, grown["memory"])):
            symbol, _, shown_power = power.partition("^")
            assert symbol == ("|A|" if row.sees_totals else "units")
            assert float(shown_power) == pytest.approx(exponent(size, values), abs=0.051)


@pytest.mark.slow
def test_the_lower_bounds_are_told(of_paper: tuple[Path, str]) -> None:
    _, said = of_paper
    words = " ".join(said.split())
    for seen, bound in (
        ("every unit seen", paper.lower_bounds(2, seed=5)),
        ("totals seen", paper.lower_bounds(2, seed=5, feedback="total")),
    ):
        assert f"lower bound, {seen}: {brief(bound.constant * np.log(60))}" in words


@pytest.mark.slow
def test_corruption_is_that_of_figure_2_bit_for_bit(of_paper: tuple[Path, str]) -> None:
    folder, _ = of_paper
    policies = {"GenCTS": paper.POLICIES["GenCTS"]}
    figure2 = paper.run("corrupted", horizon=60, trials=2, seed=5, policies=policies)
    ours = load(folder / "corrupted.nc")
    assert (ours.final("GenCTS") == figure2.final("GenCTS")).all()
    assert ours.configuration["environment"] == figure2.configuration["environment"]


@pytest.mark.slow
def test_the_page_fetches_nothing_and_has_it_all(of_paper: tuple[Path, str]) -> None:
    folder, _ = of_paper
    page = (folder / "table1.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!#)|url\((?!#)|@import", page)
    assert page.count("<svg") == 5, "a legend and four panels"
    for name in NAMES:
        assert page.count(f">{name}<") >= 3, "in every table"
    assert "multiplay table1 --trials 2 --horizon 60 --seed 5" in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_an_experiment_file_brings_its_set_losses_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """How time and memory grow has nothing to do with the file: this is not measured again."""
    (tmp_path / "ads.toml").write_text(ADS, encoding="utf-8")
    arguments = [tmp_path / "ads.toml", "--horizon", 60, "--jobs", 1, "--out", tmp_path / "out"]
    monkeypatch.setattr("sys.argv", ["multiplay", "table1", *map(str, arguments)])
    monkeypatch.setattr("multiplay.cli.table1.growth_of", lambda policy: GROWN)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    for regime in table1.REGIMES:
        result = load(tmp_path / "out" / f"{regime}.nc")
        assert result.policies == NAMES, "those of the file are left out"
        assert result.configuration["actions"]["caps"] == [3, 2, 2]
        assert [result.configuration[key] for key in ("horizon", "trials", "seed")] == [60, 2, 3]
    corrupted = load(tmp_path / "out" / "corrupted.nc").configuration["environment"]
    assert corrupted["at"] == 12
    assert corrupted["after"]["mean"] == pytest.approx([0.8, 0.5, 0.3])
    adversarial = load(tmp_path / "out" / "adversarial.nc").configuration["environment"]
    assert adversarial["shift"] == pytest.approx(0.2)
    assert "On Ads" in capsys.readouterr().out


# ---------------------------------------------------------------- what is refused


def test_other_environments_are_refused_by_their_key(tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_text(
        ADS.replace('"Stochastic"', '"Alternating"').replace(
            'distribution = { type = "Bernoulli", mean = [0.2, 0.5, 0.7] }',
            "means = [0.2, 0.5, 0.7]\nshift = 0.1",
        ),
        encoding="utf-8",
    )
    with refused("environment"):
        table1.instance(tmp_path / "file.toml")
    said = run(tmp_path / "file.toml", "--out", tmp_path / "out")
    assert said.returncode == 2
    assert "environment" in said.stderr
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "out").exists()


def test_losses_that_do_not_fit_are_refused_by_their_key(tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_text(ADS.replace("0.5, 0.7]", "0.5]"), encoding="utf-8")
    with refused("environment.distribution"):
        table1.instance(tmp_path / "file.toml")


def small(actions: ActionSet, distribution: Distribution) -> table1.Instance:
    return table1.Instance("a small one", actions, distribution, horizon=60, trials=2, seed=0)


def measured(instance: table1.Instance) -> table1.Measurements:
    fitting = table1.fitting(instance)
    rows = [row for row in table1.ROWS if row.name in fitting.memory]
    outcomes = {regime: table1.run(instance, regime, rows) for regime in table1.REGIMES}
    return table1.Measurements(instance, fitting, outcomes, dict.fromkeys(NAMES, GROWN), {})


def shown_regret(found: table1.Measurements) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in report.regrets_table(found).rows}


def test_a_set_that_is_not_linear_keeps_the_table_alive() -> None:
    found = measured(small(Coverage(3, [0.5, 1.0, 0.7]), Bernoulli([0.2, 0.4, 0.6])))
    regret = shown_regret(found)
    for row in table1.ROWS:
        plays = row.name in ("CTS", "GenCTS")
        assert (regret[row.name][0] != "-") == plays, row.name
        assert regret[row.name][1:] == ["-", "-"], "means that change have no best fixed action"
        assert (row.name in found.fitting.memory) == plays
    note = report.regrets_table(found).note
    assert "GenLBINFV needs" in note
    assert "- corrupted: needs a set with a linear objective" in note
    assert "- adversarial: needs a set with a linear objective" in note
    assert "- GenCTS" not in note
    report.table1_figure(found)
    page = report.table1_page(found, "multiplay table1")
    assert "No row plays here." in page


def test_a_set_that_is_too_large_to_list_keeps_the_table_alive() -> None:
    large = Budget(30, [10] * 20)
    found = measured(small(large, Bernoulli(np.linspace(0.1, 0.9, 20))))
    regret = shown_regret(found)
    for name in ("ScaledScribble", "ExplorationByOptimisation", "BestOfThreeWorlds"):
        assert regret[name] == ["-", "-", "-"]
        assert report.regrets_table(found).note.count(name) >= 1
    for name in ("CTS", "GenCTS", "GenLBINFV", "LinTS"):
        assert "-" not in regret[name]
    report.table1_figure(found)


def test_a_row_that_breaks_has_a_note() -> None:
    @dataclass(frozen=True)
    class Broken(Hoarder):
        def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
            raise ZeroDivisionError("by nothing")

    rows = [table1.Row("Broken", "nobody", Broken()), *table1.NATIVE]
    found = table1.fitting(table1.instance(trials=2, horizon=60), rows)
    assert found.refused == {"Broken": "ZeroDivisionError: by nothing"}
    assert list(found.memory) == ["GenCTS", "GenLBINFV"]
    assert growth(Broken()).units == []


def test_losses_of_ones_own_without_a_mirror_leave_one_column_out() -> None:
    class Half(Constant):
        def mirrored(self) -> Constant:
            return Distribution.mirrored(self)  # type: ignore[return-value]

    found = measured(small(Budget(2, [2, 2]), Half([0.3, 0.5])))
    regret = shown_regret(found)
    for name in ("GenCTS", "LinTS"):
        assert [cell == "-" for cell in regret[name]] == [False, True, False]
    assert "can be mirrored" in report.regrets_table(found).note


# ---------------------------------------------------------------- mirrored losses


@pytest.mark.parametrize(
    "losses",
    [
        Uniform([0.0, 0.125, 0.5], [0.25, 0.75, 1.0]),
        Bernoulli([0.0, 0.25, 1.0]),
        Constant([0.0, 0.25, 1.0]),
        Beta([1.0, 2.0, 3.0], [1.0, 5.0, 0.5]),
        Uniform(0, 1),
    ],
    ids=lambda losses: type(losses).__name__,
)
def test_a_mirrored_loss_is_one_minus_it(losses: Distribution) -> None:
    """Exactly, where nothing is rounded; Bernoulli losses jump at the level itself."""
    mirrored = losses.mirrored()
    assert type(mirrored) is type(losses)
    np.testing.assert_allclose(mirrored.mean, 1 - losses.mean, rtol=0, atol=1e-15)
    for level in np.array([0.0, 1, 3, 5, 8, 11, 15]) / 16 + 1 / 64:
        u = np.full(losses.shape, level)
        one, other = mirrored.quantile(u), 1 - losses.quantile(1 - u)
        assert ((one >= 0) & (one <= 1)).all()
        if isinstance(losses, Beta):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
        else:
            assert (one == other).all()
    assert (np.asarray(mirrored.mirrored().mean) == losses.mean).all()


def test_a_distribution_that_has_no_mirror_says_what_to_do() -> None:
    with refused("distribution"):
        Distribution.mirrored(Uniform(0, 1))


# ---------------------------------------------------------------- time and memory


@dataclass(frozen=True)
class Hoarder(Policy):
    """Keeps 100,000 bytes for each unit, or for each action."""

    for_each: str = "units"

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        size = actions.M if self.for_each == "units" else len(actions.enumerate())
        return {"hoard": np.zeros((trials, size, 100_000 // 8))}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        return Play(actions.argmin(np.ones((len(state["hoard"]), actions.d))))

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        assert feedback.units is None, "no more than it learns from"
        assert feedback.total.shape == play.action.shape


def test_memory_that_grows_with_units_has_the_exponent_one() -> None:
    grown = growth(Hoarder(), sizes=(1, 2, 4, 8), longest=np.inf)
    assert grown.units == [10, 20, 40, 80]
    assert grown.actions == [9, 24, 75, 261]
    for units, found in zip(grown.units, grown.memory, strict=True):
        assert 0 <= found - 100_000 * units < 100_000, "little beside the hoard"
    assert exponent(grown.units, grown.memory) == pytest.approx(1, abs=0.02)
    assert all(time >= 0 for time in grown.time)


def test_memory_that_grows_with_actions_has_the_exponent_one() -> None:
    grown = growth(Hoarder("actions"), sizes=(1, 2, 3), longest=np.inf)
    assert exponent(grown.actions, grown.memory) == pytest.approx(1, abs=0.05)


def test_growth_ends_where_it_is_slow_or_refused() -> None:
    assert growth(Hoarder(), longest=0).units == [10]
    copies = Duplicated(GenCTS())
    assert growth(copies, sizes=(1, 2, 1000, 2000), longest=np.inf).units == [10, 20]


def test_exponents_need_two_sizes() -> None:
    assert np.isnan(exponent([10], [3.0]))
    assert np.isnan(exponent([10, 20], [0.0, 3.0]))
    sizes: NDArray[np.float64] = np.array([1, 2, 4, 8, 16.0])
    assert exponent(list(sizes), list(5 * sizes**1.5)) == pytest.approx(1.5)


def test_what_the_set_remembers_is_counted_and_what_it_remembered_is_not() -> None:
    """The same set again: what an earlier policy left with it makes nothing cheaper."""
    plans = table1.instance().actions
    first = memory(Hoarder(), plans, horizon=100)
    plans.duplicate()
    assert memory(Hoarder(), plans, horizon=100) == pytest.approx(first, rel=0.01)


# ---------------------------------------------------------------- help


def test_help_teaches() -> None:
    said = run("--help")
    assert said.returncode == 0
    words = " ".join(said.stdout.split())
    for text in (
        *("EXPERIMENT.toml", "--trials", "--horizon", "--seed", "--jobs", "results/table1"),
        *("but not the policies", "Stochastic", "table1.html", "costs.json"),
        "multiplay table1 experiment.toml",
    ):
        assert text in words, text


@pytest.mark.slow
def test_rows_are_played_by_any_number_of_processes_alike() -> None:
    instance = table1.instance(trials=2, horizon=60)
    one, two = (table1.run(instance, "adversarial", table1.NATIVE, jobs).result for jobs in (1, 2))
    assert isinstance(one, Result)
    assert isinstance(two, Result)
    assert (one.regret == two.regret).all()
    assert isinstance(instance.environment("stochastic"), Stochastic)
