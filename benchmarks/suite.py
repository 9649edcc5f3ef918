"""All topics in one run: tables on the terminal, figures and JSON in a folder."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import (
    ONE_THREAD,
    changing,
    fleet,
    growth,
    hull,
    lanes,
    learner,
    live,
    oracle,
    overhead,
    pages,
    programs,
    rounding,
    rounds,
    service,
    sets,
    startup,
    step,
    studies,
    workers,
)
from benchmarks.harness import ROOT, Section, calibration, machine, target_table
from multiplay._support.atomic_files import writable_folder, write_whole

TOPICS: dict[str, Callable[[bool], list[Section]]] = {
    "rounds": rounds.run,
    "overhead": overhead.run,
    "step": step.run,
    "oracle": oracle.run,
    "rounding": rounding.run,
    "sets": sets.run,
    "programs": programs.run,
    "hull": hull.run,
    "changing": changing.run,
    "growth": growth.run,
    "lanes": lanes.run,
    "learner": learner.run,
    "live": live.run,
    "studies": studies.run,
    "service": service.run,
    "fleet": fleet.run,
    "pages": pages.run,
    "startup": startup.run,
    "workers": workers.run,
}


def main(quick: bool, out: Path, only: Sequence[str] | None = None) -> None:
    """Run all topics or ``only`` some; figures and ``benchmarks.json`` go to ``out``."""
    folder = writable_folder("out", out)
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        _run_in_new_process(quick, folder, only)
        return
    console, status = Console(), Console(stderr=True)
    if not console.is_terminal:
        console.width = 140
    started = time.perf_counter()
    report: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        **machine(),
        "seconds": {},
        "calibration ns": {},
        "sections": {},
    }
    console.print(report["machine"], report["versions"])
    targets = []
    for topic in only or TOPICS:
        begun = time.perf_counter()
        report["calibration ns"][topic] = calibration()
        with status.status(f"measuring: {topic}"):  # without a terminal, prints nothing
            sections = TOPICS[topic](quick)
        report["seconds"][topic] = round(time.perf_counter() - begun, 1)
        report["sections"][topic] = [section.as_json() for section in sections]
        for section in sections:
            console.print(section.table(), "", highlight=False)
            targets += section.targets
            for plot in section.plots:
                save = partial(plot.draw().savefig, dpi=150)
                for suffix in ("png", "svg"):
                    write_whole(folder / f"{plot.name}.{suffix}", save)
        text = json.dumps(report, indent=1, ensure_ascii=False)
        write_whole(folder / "benchmarks.json", partial(_write, text))
    console.print(target_table(targets))
    taken = time.perf_counter() - started
    console.print(f"figures and benchmarks.json are in {folder}/ ({taken:.0f} s)")


def _run_in_new_process(quick: bool, folder: Path, only: Sequence[str] | None) -> None:
    """Run in a new process, because numpy has already started its threads in this one."""
    command = [sys.executable, "-m", "benchmarks", "--out", str(folder.resolve())]
    command += (["--quick"] if quick else []) + (["--only", *only] if only else [])
    subprocess.run(command, cwd=ROOT, env={**os.environ, **ONE_THREAD}, check=True)


def _write(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
