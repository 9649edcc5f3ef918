"""The service under load, compared with the FastAPI route of ``bare_route``."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks import bare_route
from benchmarks.harness import ROOT, Section, Target
from benchmarks.server import programs, server
from multiplay import GenCTS, Study, Transport
from multiplay.service.auth import keys

CLIENTS, CLIENT_PROCESSES, WORKERS = 16, 2, 2
MOST_TIMES = 2.0  # ratio to the median of the bare route


def run(quick: bool) -> list[Section]:
    """Measure on SQLite, and on PostgreSQL if it is installed."""
    with tempfile.TemporaryDirectory(dir=ROOT) as folder, ExitStack() as stack:
        places = {"SQLite": f"sqlite:///{folder}/studies.db"}
        if programs() is not None:
            os.chmod(folder, 0o755)  # the server runs as a different user
            places["PostgreSQL"] = stack.enter_context(server(Path(folder) / "server"))
        return [under_load(name, url, 4.0 if quick else 15.0) for name, url in places.items()]


def under_load(database: str, url: str, seconds: float) -> Section:
    """Measure 16 clients: ask and tell, and rows of the bare route, in turns."""
    Study.create("lanes", Transport([1, 4, 5], [4, 6]), GenCTS(), store=url).disconnect()
    key = keys.create(url, "play").token
    engine = bare_route.engine_at(url)
    bare_route.rows.metadata.create_all(engine)
    engine.dispose()
    ours = ["-m", "multiplay", "serve", "--store", url, "--workers", f"{WORKERS}", "--port"]
    bare = ["-m", "uvicorn", "benchmarks.bare_route:app_from_environment", "--factory"]
    bare += ["--workers", f"{WORKERS}", "--no-access-log", "--log-level", "error", "--port"]
    took: dict[str, list[float]] = {"ask": [], "tell": [], "row": []}
    with started(bare, {bare_route.URL: url}) as one, started(ours, {}) as other:
        contenders = (f"{one}/rows", ""), (f"{other}/v1/studies/lanes", key)
        for warm in (True, False, False, False):
            for place, used in contenders:
                found = loaded(place, used, 1.0 if warm else seconds / 3)
                for kind, times in found.items():
                    took[kind] += [] if warm else times
    medians = {kind: quantile(times, 0.5) for kind, times in took.items()}
    ratios = {kind: median / medians["row"] for kind, median in medians.items()}
    rows = [
        {
            "request": kind,
            "p50 ms": 1e3 * medians[kind],
            "p99 ms": 1e3 * quantile(times, 0.99),
            "mean ms": 1e3 * sum(times) / len(times),
            "a second": len(times) / seconds,
            "times the bare p50": ratios[kind],
        }
        for kind, times in took.items()
    ]
    targets = [
        Target(f"{database}: p50 of {kind}", ratios[kind], MOST_TIMES) for kind in ("ask", "tell")
    ]
    shows = (
        f"{CLIENTS} clients, each waits for the response; {WORKERS} workers; all on this machine. "
        "Row: a bare FastAPI route commits one row to the same database."
    )
    return Section(f"The service under load, {database}", shows, rows, targets)


def quantile(times: list[float], level: float) -> float:
    """Return a quantile of some times."""
    return sorted(times)[int(level * (len(times) - 1))]


def loaded(url: str, key: str, seconds: float) -> dict[str, list[float]]:
    """Run clients in separate processes; return the seconds of their requests by kind."""
    command = [sys.executable, "-m", "benchmarks.clients", url, key]
    command += [f"{CLIENTS // CLIENT_PROCESSES}", f"{seconds}"]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(CLIENT_PROCESSES)
    ]
    took: dict[str, list[float]] = {}
    for process in processes:
        output, _ = process.communicate()
        for kind, times in json.loads(output).items():
            took.setdefault(kind, []).extend(times)
    return took


@contextmanager
def started(command: list[str], more: dict[str, str]) -> Iterator[str]:
    """Run a service as a process until the end of the block; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, *command, f"{port}"],
        cwd=ROOT,
        env={**os.environ, **more},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urlopen(f"{url}/openapi.json", timeout=1).close()
                break
            except (URLError, OSError):
                time.sleep(0.1)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
