"""The benchmarks: they run, and their arithmetic is right. No test depends on speed."""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import chain, count, cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not installed

from benchmarks import (
    ONE_THREAD,
    bills,
    change,
    changing,
    first_use,
    fused,
    growth,
    harness,
    hull,
    lanes,
    learner,
    live,
    oracle,
    overhead,
    pages,
    pooling,
    programs,
    rounding,
    rounds,
    savings,
    sets,
    startup,
    step,
    suite,
)
from benchmarks.harness import Plot, Section, Target, TimeForecast
from benchmarks.instances import SIZES, recorded_steps, transport

from multiplay import Budget, Coverage, InvalidInput, Transport
from multiplay.cli import app
from multiplay.experiments import paper
from multiplay.simulation.block import play

SMALL = SIZES[:1]
CLONE = Path(__file__).parents[2]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Let a second pass with every look at the clock; tests may add more."""
    clock = SimpleNamespace(now=0.0)

    def look() -> float:
        clock.now += 1.0
        return float(clock.now)

    monkeypatch.setattr("time.perf_counter", look)
    return clock


def scripted(*values: float) -> Callable[[], float]:
    script: Iterator[float] = chain(values[:1], cycle(values[1:]))
    return lambda: next(script)


def test_contenders_are_judged_by_their_median(clock: SimpleNamespace) -> None:
    contenders = {"a": scripted(1.0, 7.0, 3.0, 5.0), "b": scripted(1.0, 2.0, 2.0, 8.0)}
    timings = harness.interleave(contenders, budget=1.0)  # the least number of turns: three
    assert timings == {"a": (5.0, 3.0, 1.0), "b": (2.0, 2.0, 1.0)}


def test_a_call_longer_than_the_budget_is_the_only_one(clock: SimpleNamespace) -> None:
    calls = count(1)
    timings = harness.interleave({"slow": lambda: 100.0 * next(calls)}, budget=2.0)
    assert timings["slow"] == (100.0, 100.0, 100.0)
    assert next(calls) == 2


def test_a_stopwatch_repeats_short_calls(clock: SimpleNamespace) -> None:
    calls = count()

    def function() -> None:
        next(calls)
        clock.now += 0.25

    seconds = harness.timed(function, at_least=60.0)()
    repeats = 120  # 1.25 s for a call, so 48 of them; these take 13 s, so 221; of which 56 s
    assert next(calls) > repeats
    assert seconds == pytest.approx(0.25, rel=0.05)


def test_seconds_of_a_real_function_are_positive() -> None:
    assert 0 < harness.seconds(lambda: sum(range(100)), budget=0.01) < 10, "not milliseconds"


def test_comparison_keeps_the_answers_to_the_first_input() -> None:
    contenders = {"double": lambda x: 2 * x, "square": lambda x: x * x}
    timings, answers = harness.compare(contenders, [3, 4, 5], budget=0.01)
    assert answers == {"double": 6, "square": 9}
    assert timings.keys() == answers.keys()


@pytest.mark.parametrize("power", [-1.0, 0.0, 1.5, 3.0])
def test_exponents_of_power_laws(power: float) -> None:
    x = np.array([1.0, 10.0, 50.0, 400.0])
    assert harness.exponent(x, 7 * x**power) == pytest.approx(power, abs=1e-12)


def test_plots_fit_the_far_points_only() -> None:
    x = [1.0, 10.0, 100.0, 1000.0, 10_000.0]
    y = [50.0, 50.0, *(0.3 * a**1.25 for a in x[2:])]
    plot = Plot("p", "title", "x", "y", {"bent": (x, y), "short": ([1.0], [2.0])}, fit_from=100)
    assert plot.exponents() == {"bent": pytest.approx(1.25)}
    legend = plot.draw().axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["bent: $x^{1.25}$", "short"]


@pytest.mark.parametrize(
    ("value", "at_least", "met"),
    [
        *((9.9, False, True), (10.0, False, True), (10.1, False, False), (np.nan, False, False)),
        *((9.9, True, False), (10.0, True, True), (10.1, True, True), (np.nan, True, False)),
    ],
)
def test_targets(value: float, at_least: bool, met: bool) -> None:
    assert Target("t", value, 10.0, at_least=at_least).met == met


def test_time_forecasts_follow_power_laws() -> None:
    forecast = TimeForecast(longest=10.0, growth={"cubic": 3.0})
    forecast.record(6, {"cubic": 99.0})
    assert forecast.too_long("cubic", 100) is None, "problems of less than 100 arms are not used"
    forecast.record(100, {"cubic": 1.0, "other": 99.0})
    assert forecast.too_long("cubic", 200) is None
    assert forecast.too_long("cubic", 300) == "left out: 27.0 s"
    assert forecast.too_long("other", 10**6) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((0.0, "0"), (0.01234, "0.0123"), (3.14159, "3.14"), (12345.6, "12,346")),
        *((10**4, "10,000"), ("text", "text"), (None, "")),
    ],
)
def test_numbers_are_shown_with_three_digits(value: object, shown: str) -> None:
    assert harness.show(value) == shown


def test_a_command_says_which_topics_are_done_and_which_limits_are_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"free": [], "strict": [Target("cost", 1.0, 2.0), Target("regret", 3.0, 2.0)]}
    topics = {
        name: lambda *_, name=name: [Section(name, "", [{"a": 1}], limits[name])] for name in limits
    }
    for only, met in ((["free"], "no limits for free"), ([*limits], "1 of 2 limits met")):
        monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", *only])
        harness.command("benchmarks", None, topics)
        said = capsys.readouterr()
        assert said.out.splitlines()[-1] == met
        assert said.err.split(" (")[0] == "free: done"
        assert said.err.count(": done (") == len(only)


def test_curves_leave_gaps_out() -> None:
    rows: list[dict[str, object]] = [
        {"d": 1, "µs": 2.0},
        {"d": 2, "µs": "left out"},
        {"d": 3},
        {"d": 4, "µs": 8.0},
    ]
    assert harness.curves(rows, "d", {"ours": "µs"}) == {"ours": ([1, 4], [2.0, 8.0])}


def test_new_processes_answer_and_say_why_they_fail() -> None:
    assert 1 < harness.fresh("harness.peak_memory") < 10_000
    with pytest.raises(RuntimeError, match="unexpected keyword"):
        harness.fresh("first_use.first_use", wrong=1)


def test_stopwatch_keeps_parts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    watch = rounds.Stopwatch()

    def takes(part: str, seconds: float, *inner: Callable[[], object]) -> Callable[[], object]:
        def method() -> None:
            now[0] += seconds
            for call in inner:
                call()

        return watch.around(part, method)

    oracle_call = takes("oracle", 2.0)
    takes("choose", 1.0, oracle_call, oracle_call)()
    takes("update", 8.0)()
    oracle_call()  # outside of choose: not a part of any round
    assert watch.seconds == {"oracle": 4.0, "choose": 1.0, "update": 8.0}


def test_compilation_counts_for_the_kernel_that_needs_it() -> None:
    def event(start: bool, module: str, name: str) -> SimpleNamespace:
        function = SimpleNamespace(__module__=module, __name__=name)
        return SimpleNamespace(
            is_start=start, data={"dispatcher": SimpleNamespace(py_func=function)}
        )

    outer, inner = ("multiplay.kernels.a", "f"), ("multiplay.kernels.b", "g")
    numbas = ("numba.cpython.unicode", "impl")
    script = [(0, True, outer), (1, True, inner), (3, True, numbas), (7, False, numbas)]
    script += [(8, False, inner), (10, False, outer)]
    events = [(float(moment), event(start, *kernel)) for moment, start, kernel in script]
    assert first_use.own_times(events) == {"a.f": 3.0, "b.g": 7.0}


@pytest.mark.parametrize("size", [(3, 2), (4, 4), (5, 3)])
def test_decomposition_gives_x(size: tuple[int, int]) -> None:
    plans = transport(size)
    x = recorded_steps(plans)[0].point["x"][0]
    vertices, weights = rounding.decompose(plans, x)
    assert plans.contains(vertices).all()
    assert len(weights) <= plans.d + 1
    assert weights @ vertices == pytest.approx(x, abs=1e-9)


def test_recorded_steps_are_consecutive() -> None:
    plans = Transport([1, 4, 5], [4, 6])
    steps = recorded_steps(plans)
    assert (steps[0].point["x"] == steps[1].warm["x"]).all()
    assert not (steps[0].costs == steps[1].costs).all()


TOPICS: dict[str, Callable[[], list[Section]]] = {
    "step": lambda: step.run(True, SMALL),
    "oracle": lambda: oracle.run(True, SMALL),
    "rounding": lambda: rounding.run(True, SMALL),
    "programs": lambda: programs.run(True, 6, (2, 5)),
    "learner": lambda: learner.run(True),
    "live": lambda: live.run(True, SMALL[:1]),
    "changing": lambda: changing.run(True, (2,), SMALL[0]),
    "sets": lambda: [
        sets.oracles(0.02, sets.dedicated()[::3]),
        sets.rounds(0.02, [Budget(2, [1, 1, 1]), Coverage(2, [1, 1]), sets.small_knapsack()]),
        sets.knapsack_hull(0.02, ((4, 40),)),
    ],
    "overhead": lambda: [overhead.against_fused(True, {200: 1.0}), overhead.one_trial(True)],
    "arms": lambda: [growth.arms([(3, 2), (4, 4)], budget=0.1)],
    "units": lambda: [growth.units([10, 10**10], budget=0.1, trials=2)],
    "lanes": lambda: [lanes.growth(kind, [100, 10_000, 40_000], rounds=2) for kind in lanes.KINDS],
    "pages": lambda: pages.run(quick=True),
}
QUICKEST = "rounding"


@pytest.mark.parametrize(
    "topic",
    [pytest.param(topic, marks=() if topic == QUICKEST else pytest.mark.slow) for topic in TOPICS],
)
@pytest.mark.usefixtures("clock")  # the least number of turns
def test_topics_run(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "fresh", lambda *_, **__: {"start": 1.0, "peak": 2.0})
    monkeypatch.setattr(lanes, "fresh", lambda _, **given: lanes.case(**given))
    for section in TOPICS[topic]():
        assert section.rows
        section.table()
        json.dumps(section.as_json())
        for plot in section.plots:
            plot.draw()


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_parts_of_a_round_add_up() -> None:
    row = rounds.run(True, trials=(2,))[0].rows[2]
    parts = ("choose", "oracle", "FTRL step", "rounding", "environment", "update", "simulation")
    assert sum(row[part] for part in parts) == pytest.approx(row["µs"])
    assert row["FTRL step"] > 0 == row["oracle"]


@pytest.mark.slow
def test_a_case_of_growth() -> None:
    used = growth.case(["GenCTS", "LBINFV"], trials=1, rounds=5)
    assert used["seconds"].keys() == {"GenCTS", "LBINFV"}
    assert used["peak"] >= used["start"] > 0


def test_start_up_tables() -> None:
    stages = {startup.IMPORT: 0.5, "simulate GenCTS": 9.0, "Learner": 3.0}
    empty = {"stages": stages, "kernels": {"newton.minimise": 2.0, "newton.move": 1.0}}
    warm = [{"stages": dict.fromkeys(stages, seconds)} for seconds in (0.1, 0.2, 0.9)]
    table, kernels = startup.sections(empty, warm)
    assert [target.value for target in table.targets] == [0.2, 12.0, pytest.approx(0.4)]
    assert kernels.rows == [{"file": "newton", "s": 3.0, "kernels": "minimise 2.00, move 1.00"}]


def test_suite_writes_figures_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = Plot("growth", "t", "x", "y", {"a": ([1.0, 2.0], [1.0, 2.0])})
    section = Section("A table", "It shows.", [{"x": 1}], [Target("speed", 3.0, 2.0)], [plot])
    monkeypatch.setattr(suite, "TOPICS", {"one": lambda quick: [section]})
    for name, value in ONE_THREAD.items():
        monkeypatch.setenv(name, value)
    suite.main(quick=True, out=tmp_path, only=None)
    report = json.loads((tmp_path / "benchmarks.json").read_text())
    assert report["sections"]["one"][0]["targets"][0]["met"] is False
    assert {"python", "numba", "pot", "clarabel"} <= report["versions"].keys()
    assert report["machine"]["cores"] >= 1
    assert {path.name for path in tmp_path.iterdir()} == {
        *("benchmarks.json", "growth.png", "growth.svg")
    }
    assert "NOT MET" in capsys.readouterr().out


def test_the_command_runs_the_topics_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    def run(*how: Any, **where: Any) -> SimpleNamespace:
        started.append((how, where))
        return SimpleNamespace(returncode=3)

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("multiplay.cli.bench.SOURCE", CLONE)
    result = CliRunner().invoke(app, ["bench", "rounds", "step", "--quick", "--out", "there"])
    assert result.exit_code == 3
    [((command,), where)] = started
    assert command[1:4] == ["-m", "benchmarks", "--out"]
    assert Path(command[4]) == Path("there").resolve()
    assert command[5:] == ["--quick", "--only", "rounds", "step"]
    assert (where["cwd"] / "benchmarks" / "__main__.py").is_file()


def test_without_the_source_or_the_rivals_the_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("multiplay.cli.bench.COMPARED", ("no_such_software",))
        patch.setattr("multiplay.cli.bench.SOURCE", CLONE)
        error = CliRunner().invoke(app, ["bench"]).exception
        assert isinstance(error, InvalidInput)
        assert "no no_such_software" in str(error)
    monkeypatch.setattr("multiplay.cli.bench.SOURCE", tmp_path)
    error = CliRunner().invoke(app, ["bench"]).exception
    assert isinstance(error, InvalidInput)
    assert "Clone the repository" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("name", overhead.OURS)
def test_fused_loops_have_the_regret_of_the_library(name: str) -> None:
    """The same instances, other random numbers: within 4 standard errors of the difference."""
    trials, length = 400, 150
    costs = paper.costs(trials, seed=0).reshape(trials, 3, 2)
    loop = fused.runs()[name](costs, length, 1)
    policy = rounds.POLICIES[overhead.OURS[name]]
    blocks = rounds.blocks_of(policy, trials, length)
    library = np.concatenate([play(block)["regret"][:, -1] for block in blocks])
    difference = loop - library
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(trials)
    assert loop.mean() > 10 * difference.std() / np.sqrt(trials), "the test could not fail"


def test_rounds_over_a_knapsack_are_timed_from_the_middle_on(clock: SimpleNamespace) -> None:
    (section,) = hull.run(quick=True, limits={3: 900.0, 4: 2000.0, 300: 1.0}, last=4)
    assert [row["items"] for row in section.rows] == [3, 4]
    assert [row["median, ms"] for row in section.rows] == [1000.0, 1000.0]
    assert [target.met for target in section.targets] == [False, True]


@pytest.mark.slow
def test_bills_are_measured_against_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: bills.COVERAGE[name] for name in ("mid", "miss", "8totals", "change")}
    monkeypatch.setattr(bills, "COVERAGE", few)
    short = {name: bills.REGRET[name]._replace(rounds=5) for name in ("twopoint", "miss", "change")}
    monkeypatch.setattr(bills, "REGRET", short)
    runner = harness.Runner(jobs=1)
    (coverage,) = bills.coverage(2, runner)
    assert len(coverage.rows) == 4 * len(bills.PLAYERS)
    assert next(t for t in coverage.targets if "outside" in t.what).met
    (regret,) = bills.regret(2, runner)
    assert [row["world"] for row in regret.rows] == ["twopoint, 5", "miss, 5", "change, 5"]
    (examples,) = bills.examples(8, runner)
    assert all(target.met for target in examples.targets if "distance" in target.what[-8:])


@pytest.mark.slow
def test_savings_are_covered_and_measured_against_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A right program fails in one of 10,000 seeds, for each of nine intervals."""
    cases = [
        savings.Case("GenCTS", "drift"),
        savings.Case("GenCTS", "stationary", history=20),
        savings.Case("GenLBINFV", "weekly"),
    ]
    monkeypatch.setattr(savings, "CASES", cases)
    runner, studies = harness.Runner(jobs=1), 40
    (totals,) = savings.totals(studies, runner)
    assert len(totals.rows) == 9
    least = 100 * stats.binom(studies, 0.95).ppf(1e-4) / studies
    assert all(row["cover, %"] >= least for row in totals.rows)
    assert all(85 < row["weeks, %"] < 99.9 for row in totals.rows), "eight weeks of each study"
    assert {"ips rmse", "dr rmse", "agrees, %"} < set(totals.rows[-3])
    monkeypatch.setattr(
        savings, "CASES", [savings.Case(name, "stationary") for name in savings.ASKED]
    )
    (others,) = savings.policies(2, runner)
    assert [row["asked about"] for row in others.rows] == ["GenLBINFV", "GenCTS"]


@pytest.mark.slow
def test_changes_are_measured_against_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def shortened(cases: dict[str, change.Case], names: tuple[str, ...]) -> dict[str, change.Case]:
        return {name: cases[name]._replace(rounds=8, at=4) for name in names}

    stationary = shortened(change.STATIONARY, ("Bernoulli", "knapsack", "changing sets"))
    monkeypatch.setattr(change, "STATIONARY", stationary)
    changes = ("one lane doubles, 8 %", "gradual, coins", "week ±15 %, each lane", "knapsack, flip")
    monkeypatch.setattr(change, "OTHERS", shortened(change.OTHERS, changes))
    monkeypatch.setattr(change, "LOOKED_AT", ("Bernoulli", "gradual, coins"))
    monkeypatch.setattr(change, "HORIZONS", (10, 20, 40))
    monkeypatch.setattr(change, "QUIET", {"uniform": change.QUIET["uniform"]})
    monkeypatch.setattr(change, "STEPS", {"8 % doubles": change.STEPS["8 % doubles"]})
    for name, policies in (("COMPARED", change.COMPARED), ("DEMO_PLAYERS", change.DEMO_PLAYERS)):
        monkeypatch.setattr(change, name, dict(list(policies.items())[:2]))
    for name, number in (("LONG", 60), ("LIFE", 20), ("OLD", 40), ("WITHIN", 20)):
        monkeypatch.setattr(change, name, number)
    runner = harness.Runner(jobs=1)
    rows = {topic: change.TOPICS[topic](2, runner)[0].rows for topic in change.TOPICS}
    assert len(rows["stationary"]) == 3
    assert [row["world"] for row in rows["others"]] == [f"{name}, 8" for name in changes]
    assert len(rows["drifting"]) == len(change.COMPARED)
    assert [row["policy"] for row in rows["piecewise"]] == list(change.rivals(10))
    assert [row["policy"] for row in rows["curiosity"]] == list(change.CURIOUS)
    (delay,) = change.detector(2, runner)[1].rows
    assert delay["4 units a round"].startswith("100%"), "a price that doubles is found in 20 rounds"


@pytest.mark.slow
def test_pooling_is_measured_against_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("200 lanes, two kinds", "rewards, 5 of 60, coins", "skewed, 144 lanes")
    kinds = {name: pooling.WORLDS[name]._replace(rounds=4) for name in few}
    monkeypatch.setattr(pooling, "WORLDS", kinds)
    monkeypatch.setattr(pooling, "SURPRISED", {})
    late = {key: pooling.LATE[key] for key in (("8x8", "weekly"), ("8x8", "10 rounds late"))}
    monkeypatch.setattr(pooling, "LATE", late)
    changed = {name: pooling.CHANGED[name] for name in ("8 % bills", "waves")}
    monkeypatch.setattr(pooling, "CHANGED", changed)
    bills_of_8 = change.STATIONARY["8 % bills"]._replace(rounds=8)
    monkeypatch.setattr(change, "STATIONARY", {"8 % bills": bills_of_8})
    monkeypatch.setattr(change, "LONG", 20)
    monkeypatch.setattr(pooling, "ENDLESS", ("rare",))
    monkeypatch.setattr(pooling, "ROUNDS", 40)
    monkeypatch.setattr(pooling, "SETS", {6: pooling.SETS[6]})
    runner = harness.Runner(jobs=1)
    found = {topic: pooling.TOPICS[topic](3, runner)[0] for topic in pooling.TOPICS}
    assert [row["world"] for row in found["worlds"].rows] == list(few)
    assert [row["world"] for row in found["changes"].rows] == list(changed)
    assert len(found["late"].rows) == len(found["late"].targets) == 2
    (row,) = found["long"].rows
    assert 0 <= row["second half"] <= 1
    assert len(found["cost"].targets) == 2
    rank = np.sort(pooling.FIFTIETH(np.random.default_rng(0), (3, 200)), axis=1)
    assert (rank[:, 3] < 0.08).all()
    assert (rank[:, 4] >= 0.35).all()


def test_a_world_moves_as_it_says() -> None:
    """The most used lane doubles; an idle one becomes cheap; a week repeats after 7 rounds."""
    plans, means = change.PLANS, np.array([[0.1, 0.4, 0.3, 0.2, 0.2, 0.3]])
    (best,) = plans.best(means)
    doubled = change.switched(change.doubled)(means, plans, 5)
    assert (doubled(5) == means).all()
    (arm,) = np.flatnonzero(doubled(6) != means)
    assert best[arm] == best.max()
    assert doubled(6)[0, arm] == 2 * means[0, arm]
    (idle,) = np.flatnonzero(change.cheap(means, plans) != means)
    assert best[idle] == 0
    halfway = change.gradual(means, plans, 5)(1005)
    assert halfway == pytest.approx((means + doubled(6)) / 2)
    week = change.week(each=True)(means, plans, 0)
    assert week(10) == pytest.approx(week(3))
    assert np.mean([week(t) for t in range(7)], axis=0) == pytest.approx(means)


@pytest.mark.slow
def test_bills_have_the_means_of_their_worlds() -> None:
    """Losses of every law average to the means, and half of the reports are missing."""
    for name, case in (*bills.COVERAGE.items(), *bills.REGRET.items()):
        trials = 400 if case.actions.d < 50 else 40
        world = case.of(trials, seed=5)
        play = case.actions.argmin(np.zeros((trials, case.actions.d)))
        opened = world.open(case.actions, 1, range(trials), 0)
        seen = opened.observe(np.maximum(play, 1)).feedback
        error = (seen.total - seen.seen * world.means).sum() / seen.seen.sum()
        assert abs(error) < 0.03, name
        assert bool(world.missing) != (seen.seen.sum() == seen.count.sum()), name
