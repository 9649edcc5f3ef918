"""Start-up: import and first use with an empty and a filled compilation cache."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import ROOT, Section, Target, fresh

IMPORT = "import multiplay"


def run(quick: bool) -> list[Section]:
    """Start new processes: one with an empty cache, then several with the filled cache."""
    with tempfile.TemporaryDirectory() as folder:
        empty = fresh("first_use.first_use", cache=Path(folder))
        filled = [fresh("first_use.first_use", Path(folder)) for _ in range(3 if quick else 9)]
    return [*sections(empty, filled), reproduction()]


def reproduction() -> Section:
    """Run ``multiplay reproduce`` with an empty cache, and again with the filled cache."""
    with tempfile.TemporaryDirectory() as folder:
        variables = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder, "cache"))}
        command = [
            sys.executable,
            "-m",
            "multiplay",
            "reproduce",
            "--out",
            str(Path(folder, "out")),
        ]
        rows: list[dict[str, Any]] = []
        for cache in ("empty", "filled"):
            started = time.perf_counter()
            subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=True)
            rows.append({"cache": cache, "s": time.perf_counter() - started})
    shows = f"Seconds of multiplay reproduce, from its start to its end, on {os.cpu_count()} cores."
    target = Target("make reproduce on a fresh clone", rows[0]["s"], 18, "s")
    return Section("Reproduction", shows, rows, [target])


def sections(empty: dict[str, Any], filled: list[dict[str, Any]]) -> list[Section]:
    """Return the tables of the stages and of the kernels."""
    rows: list[dict[str, Any]] = [
        {
            "first": stage,
            "empty cache, s": seconds,
            "filled cache, s": median(run["stages"][stage] for run in filled),
        }
        for stage, seconds in empty["stages"].items()
    ]
    imported, others = rows[0], rows[1:]
    total: dict[str, Any] = {"first": "first use, beyond the import"}
    total |= {c: sum(row[c] for row in others) for c in ("empty cache, s", "filled cache, s")}
    targets = [
        Target(IMPORT, imported["filled cache, s"], 1, "s"),
        Target("first use, empty cache", total["empty cache, s"], 20, "s"),
        Target("first use, filled cache", total["filled cache, s"], 2, "s"),
    ]
    files: dict[str, list[tuple[float, str]]] = {}
    for kernel, seconds in empty["kernels"].items():
        files.setdefault(kernel.split(".")[0], []).append((seconds, kernel.split(".")[1]))
    kernels = [
        {
            "file": file,
            "s": sum(seconds for seconds, _ in some),
            "kernels": ", ".join(f"{name} {s:.2f}" for s, name in sorted(some, reverse=True)),
        }
        for file, some in files.items()
    ]
    shows = "Seconds in a new process, one after the other; with a filled cache, the median."
    compiling = (
        "Seconds of compilation with an empty cache, without the kernels that a kernel calls."
    )
    return [
        Section("Start-up", shows, [*rows, total], targets),
        Section("Compilation", compiling, kernels),
    ]
