"""Start-up: import and first use with an empty and a filled compilation cache."""

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
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
    return [*sections(empty, filled), commands(), service(), reproduction()]


CREATE = ["create", "lanes", "--supply", "1,4,5", "--demand", "4,6", "--loss-range", "0,250"]
LIMITS = {"help": 0.6, "list": 0.6, "pending": 0.6, "show": 0.6, "ask": 1.2, "tell": 1.2}
FIRST_ASK, READY, READY_COLD, WORKER = 10, 5, 15, 250  # s of processor time, s, s, MiB
POLLS = 1_200  # of 0.1 s


def commands() -> Section:
    """Measure the processor time of commands of a small study, first with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        variables = environment() | {
            "NUMBA_CACHE_DIR": str(Path(folder, "cache")),
            "MULTIPLAY_STORE": f"sqlite:///{folder}/studies.db",
        }

        rows: list[dict[str, Any]] = []

        def run(label: str, *words: str) -> str:
            command = [sys.executable, "-m", "multiplay", "study", *words]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(command, env=variables, capture_output=True, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            rows.append({"command": label, "s": taken})
            return done.stdout.decode()

        def ask_and_tell(suffix: str = "") -> None:
            play = json.loads(run(f"ask{suffix}", "ask", "lanes", "--json"))
            losses = {arm: [90.0] * units for arm, units in play["plan"].items() if units}
            run(f"tell{suffix}", "tell", "lanes", f"{play['id']}", "--losses", json.dumps(losses))

        run("create", *CREATE)
        ask_and_tell(", empty cache")
        for _ in range(3):
            ask_and_tell()
            for name in ("help", "list", "pending", "show"):
                of_study = ["lanes"] if name in ("pending", "show") else []
                run(name, "--help" if name == "help" else name, *of_study)
    times = {row["command"]: list[float]() for row in rows}
    for row in rows:
        times[row["command"]].append(row["s"])
    rows = [{"command": name, "s": median(some)} for name, some in times.items()]
    targets = [Target("first ask", times["ask, empty cache"][0], FIRST_ASK, "s")]
    targets += [Target(name, median(times[name]), limit, "s") for name, limit in LIMITS.items()]
    shows = "Processor time of multiplay study COMMAND, with a filled cache the median of three."
    return Section("Commands", shows, rows, targets)


def service() -> Section:
    """Measure the seconds until a service is ready, and the memory of its worker then."""
    rows, targets = list[dict[str, Any]](), list[Target]()
    with tempfile.TemporaryDirectory() as folder:
        variables = environment() | {"NUMBA_CACHE_DIR": str(Path(folder, "cache"))}
        for cache, limit in (("empty", READY_COLD), ("filled", READY)):
            port = _free_port()
            command = [sys.executable, "-m", "multiplay", "serve", "--port", f"{port}"]
            command += ["--store", f"sqlite:///{folder}/studies.db"]
            started = time.perf_counter()
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            served = subprocess.Popen(command, env=variables, **quiet)  # type: ignore[call-overload]
            try:
                _wait(f"http://127.0.0.1:{port}/readyz")
                ready = time.perf_counter() - started
                status = Path(f"/proc/{served.pid}/status").read_text()
            finally:
                served.terminate()
                served.wait()
            memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
            rows.append({"cache": cache, "ready, s": ready, "memory, MiB": memory})
            targets.append(Target(f"ready, {cache} cache", ready, limit, "s"))
    targets.append(Target("memory of an idle worker", rows[-1]["memory, MiB"], WORKER, "MiB"))
    shows = "Seconds from the start of multiplay serve until /readyz responds with 200."
    return Section("Service", shows, rows, targets)


def environment() -> dict[str, str]:
    """Return the variables of a user, whose Python writes bytecode."""
    return {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _wait(url: str) -> None:
    for _ in range(POLLS):
        with suppress(OSError), urllib.request.urlopen(url) as response:
            if response.status == 200:
                return
        time.sleep(0.1)
    raise TimeoutError(f"{url} does not respond")


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
