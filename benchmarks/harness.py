"""Measurement tools: interleaved timing, targets, tables and figures."""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from multiplay._support.deadline import reported
from multiplay.results.plots import style

ROOT = Path(__file__).parents[1]
MARKERS = "os^Dvp*X"
PACKAGES = ("numpy", "numba", "scipy", "multiplay", "cvxpy", "clarabel", "pot", "matplotlib")

Name = TypeVar("Name")
Given = TypeVar("Given")
Answer = TypeVar("Answer")
Curves = dict[str, tuple[list[float], list[float]]]
Jobs = Mapping[Any, tuple[Callable[..., Any], tuple[Any, ...]]]


class Timing(NamedTuple):
    """Seconds of one call: the median of the repeats, the least, and that of the first call."""

    median: float
    least: float
    first: float


def timed(function: Callable[[], object], at_least: float) -> Callable[[], float]:
    """Return a timer: it repeats ``function`` for ``at_least`` seconds, returns those per call."""
    loops = 1

    def seconds_of_a_call() -> float:
        nonlocal loops
        while True:
            started = time.perf_counter()
            for _ in range(loops):
                function()
            elapsed = time.perf_counter() - started
            if elapsed >= at_least / 2:
                return elapsed / loops
            loops = max(2 * loops, int(loops * at_least / max(elapsed, 1e-9)))

    return seconds_of_a_call


def interleave(contenders: Mapping[Name, Callable[[], float]], budget: float) -> dict[Name, Timing]:
    """Call contenders in turns for ``budget`` seconds; each contender returns its own seconds.

    Other load on the machine then slows all contenders equally, so ratios are comparable. There are
    at least three turns. The first call of each is not counted (it compiles, or fills caches),
    unless it takes longer than the budget: then it is the only call.
    """
    first = {name: contender() for name, contender in contenders.items()}
    times = {name: [first[name]] if first[name] > budget else [] for name in contenders}
    quick = {name: contenders[name] for name in contenders if not times[name]}
    started, turns = time.perf_counter(), 0
    while quick and (turns < 3 or time.perf_counter() - started < budget):
        for name, contender in quick.items():
            times[name].append(contender())
        turns += 1
    return {name: Timing(median(t), min(t), first[name]) for name, t in times.items()}


def measure(functions: Mapping[str, Callable[[], object]], budget: float) -> dict[str, Timing]:
    """Time functions in turns, for about ``budget`` seconds; see ``interleave``."""
    return interleave({name: timed(f, budget / 20) for name, f in functions.items()}, budget)


def seconds(function: Callable[[], object], budget: float) -> float:
    """Return the median time of a call of ``function``, repeated within the budget."""
    return measure({"": function}, budget)[""].median


def compare(
    contenders: Mapping[str, Callable[[Given], Answer]], inputs: Sequence[Given], budget: float
) -> tuple[dict[str, Timing], dict[str, Answer]]:
    """Time contenders in turns, each on the next input with every call.

    Returns the timings, and the result of each contender for the first input.
    """
    answers: dict[str, Answer] = {}

    def through(name: str, solve: Callable[[Given], Answer]) -> Callable[[], object]:
        given = cycle(inputs)
        return lambda: answers.setdefault(name, solve(next(given)))

    return measure({name: through(name, f) for name, f in contenders.items()}, budget), answers


class TimeForecast:
    """Forecast of the contenders that would take longer than ``longest`` seconds at the next size.

    ``growth`` has the exponents in d of the slow contenders. Problems of less than 100 arms are not
    used: there the first use of a library takes longer than the problem.
    """

    def __init__(self, longest: float, growth: Mapping[str, float]) -> None:
        self.longest, self.growth = longest, growth
        self.seen: dict[str, tuple[int, float]] = {}

    def too_long(self, name: str, d: int) -> str | None:
        """Return the text of the table if a call is expected to take too long, else None."""
        before, taken = self.seen.get(name, (d, 0.0))
        expected = taken * (d / before) ** self.growth.get(name, 0.0)
        if expected <= self.longest:
            return None
        return f"left out: {show(expected)} s" if expected < 3600 else "left out: hours"

    def record(self, d: int, taken: Mapping[str, float]) -> None:
        """Record the seconds that the contenders took at d arms."""
        if d >= 100:
            self.seen |= {name: (d, taken[name]) for name in self.growth if name in taken}


def fresh(function: str, cache: Path | None = None, **arguments: Any) -> Any:
    """Call ``"module.function"`` of this package in a new process, and return its result.

    ``cache`` is a folder for compiled kernels, instead of the default folder.
    """
    module, name = function.rsplit(".", 1)
    given = f"**json.loads({json.dumps(arguments)!r})"
    code = (
        f"import json; from benchmarks.{module} import {name}; print(json.dumps({name}({given})))"
    )
    variables = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{function}({arguments}) failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory() -> float:
    """Return the peak memory of this process, in MiB.

    On Linux ``ru_maxrss`` of a new process starts at the peak of the process that started it;
    the high-water mark in /proc does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def calibration() -> float:
    """Return the nanoseconds of a step of a fixed loop, which is a unit to compare machines."""

    def logistic(steps: int) -> float:
        x = 0.3
        for _ in range(steps):
            x = 3.9 * x * (1.0 - x)
        return x

    walk: Any = numba.njit()(logistic)
    walk(1)
    steps = 2_000_000
    return 1e9 * seconds(lambda: walk(steps), 0.3) / steps


def machine() -> dict[str, Any]:
    """Return the hardware, the platform and the versions of packages."""
    cpu, info = platform.processor(), Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            cpu = line.split(":")[1].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {
        "machine": {"cpu": cpu, "cores": os.cpu_count(), "memory GiB": round(memory, 1)},
        "platform": platform.platform(),
        "versions": versions,
    }


@dataclass(frozen=True)
class Target:
    """A measured value with an upper limit, or a lower limit if ``at_least``."""

    what: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the value keeps the limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def curves(rows: Sequence[Mapping[str, Any]], x: str, columns: Mapping[str, str]) -> Curves:
    """Return curves of a table by name: a column over the column ``x``, without gaps."""
    kept = {n: [row for row in rows if isinstance(row.get(c), float)] for n, c in columns.items()}
    return {n: ([r[x] for r in kept[n]], [r[c] for r in kept[n]]) for n, c in columns.items()}


def exponent(x: ArrayLike, y: ArrayLike) -> float:
    """Fit y = c x^e by least squares in the logarithms, and return e."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


@dataclass(frozen=True)
class Plot:
    """A log-log figure; exponents are fitted to the points with x of at least ``fit_from``."""

    name: str
    title: str
    xlabel: str
    ylabel: str
    curves: Curves
    fit_from: float = 0.0

    def exponents(self) -> dict[str, float]:
        """Fit a power of x to every curve that has two points to fit."""
        fits = {}
        for name, points in self.curves.items():
            x, y = (np.array(values) for values in points)
            far = x >= self.fit_from
            if far.sum() >= 2:
                fits[name] = exponent(x[far], y[far])
        return fits

    def draw(self) -> Figure:
        """Draw the curves, with their exponents in the legend."""
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        ax, fits = figure.add_subplot(), self.exponents()
        for number, (name, (x, y)) in enumerate(self.curves.items()):
            (colour, dashes), marker = style(number), MARKERS[number % len(MARKERS)]
            label = f"{name}: $x^{{{fits[name]:.2f}}}$" if name in fits else name
            ax.plot(x, y, marker, color=colour, linestyle=dashes, lw=1.6, ms=5, label=label)
        ax.set(xscale="log", yscale="log", xlabel=self.xlabel, ylabel=self.ylabel)
        ax.set_title(self.title, loc="left", fontsize=11)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        fitted = f"exponents fitted from x = {self.fit_from:g}" if fits and self.fit_from else None
        where: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        ax.legend(
            title=fitted, **where, frameon=False, fontsize=9, title_fontsize=8, handlelength=3
        )
        return figure


@dataclass
class Section:
    """One table of a topic, with its caption, its targets and its figures."""

    title: str
    shows: str
    rows: list[dict[str, Any]]
    targets: list[Target] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)

    def table(self) -> Table:
        """Return the rows as a table for the terminal."""
        left = {"title_justify": "left", "caption_justify": "left"}
        table = Table(title=self.title, caption=self.shows, **left)  # type: ignore[arg-type]
        columns = list(dict.fromkeys(column for row in self.rows for column in row))
        for column in columns:
            text = any(isinstance(row.get(column), str) for row in self.rows)
            table.add_column(column, justify="left" if text else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*(show(row.get(column)) for column in columns))
        return table

    def as_json(self) -> dict[str, Any]:
        """Return all data except the figures, with the exponents of the figures."""
        return {
            "title": self.title,
            "shows": self.shows,
            "rows": self.rows,
            "targets": [vars(target) | {"met": target.met} for target in self.targets],
            "exponents": {plot.name: plot.exponents() for plot in self.plots},
        }


def show(value: object) -> str:
    """Return a number as text with three significant digits, other values unchanged."""
    if isinstance(value, float):
        if math.isnan(value):
            return "-"
        digits = 2 - math.floor(math.log10(abs(value))) if value else 0
        return f"{value:,.{min(max(digits, 0), 6)}f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def target_table(targets: Sequence[Target]) -> Table:
    """Return the targets as a table for the terminal."""
    rows = [
        {
            "what": target.what,
            "measured": f"{show(float(target.value))} {target.unit}",
            "target": f"{'>=' if target.at_least else '<='} {target.limit:g} {target.unit}",
            "": "met" if target.met else "[bold red]NOT MET[/]",
        }
        for target in targets
    ]
    missed = sum(not target.met for target in targets)
    return Section("Targets", f"{missed} of {len(targets)} not met.", rows).table()


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


class Runner:
    """Calls of functions in processes, with a progress bar on a terminal."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def __call__(self, jobs: Jobs) -> dict[Any, Any]:
        """Return the result of every call, in the order of the calls."""
        with Progress(console=Console(stderr=True), transient=True) as progress:
            bar, found = progress.add_task("measuring", total=len(jobs)), {}
            if self.jobs == 1:
                for key, (function, arguments) in jobs.items():
                    found[key] = function(*arguments)
                    progress.advance(bar)
                return found
            with ProcessPoolExecutor(self.jobs) as pool:
                calls = {pool.submit(f, *arguments): key for key, (f, arguments) in jobs.items()}
                for call in as_completed(calls):
                    found[calls[call]] = call.result()
                    progress.advance(bar)
        return {key: found[key] for key in jobs}


Topics = Mapping[str, Callable[[int | None, Runner], list[Section]]]


def command(module: str, description: str | None, topics: Topics) -> None:
    """Run the topics that the command line names, and print their tables and the limits."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--only", nargs="+", choices=list(topics), default=list(topics))
    parser.add_argument("--trials", type=int, help="trials of every world")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    console, run, targets = Console(), Runner(given.jobs), list[Target]()
    if not console.is_terminal:
        console.width = 140
    for topic in given.only:
        with reported(topic):
            sections = topics[topic](given.trials, run)
        for section in sections:
            console.print(section.table(), "", highlight=False)
            targets += section.targets
    if not targets:
        console.print(f"no limits for {', '.join(given.only)}")
        return
    console.print(target_table(targets))
    console.print(f"{sum(target.met for target in targets)} of {len(targets)} limits met")
