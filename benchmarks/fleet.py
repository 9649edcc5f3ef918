"""A service with many studies on PostgreSQL: start, random studies, one request for many, lists."""

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg

from benchmarks.harness import ROOT, Section, Target
from benchmarks.server import programs, server
from benchmarks.service import WORKERS, quantile, started
from multiplay import GenCTS, Study, Transport
from multiplay.service.auth import keys

STUDIES, QUICK = 100_000, 2_000
CLIENTS, BATCH, BATCHES = 16, 500, 3
NAME = "city {k:06d}"
HOME, LIST, METRICS = "/", "/v1/studies?limit=100", "/metrics"
READY, PAIRS, SLOWEST, BATCH_PAIRS, CONNECTIONS, MEMORY = 5, 300, 0.5, 1_000, 8, 600
LIMITS = {LIST: 0.05, HOME: 0.2}


def run(quick: bool) -> list[Section]:
    """Create the studies, start the service behind PgBouncer, and measure."""
    if programs() is None or not shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"):
        return []
    number, seconds = (QUICK, 5.0) if quick else (STUDIES, 30.0)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        os.chmod(folder, 0o755)  # the server runs as a different user
        direct = stack.enter_context(server(Path(folder) / "server"))
        create(direct, number)
        url = stack.enter_context(pooled(Path(folder)))
        url += "?application_name=fleet"
        key = keys.create(direct, "play").token
        command = ["-m", "multiplay", "serve", "--store", url, "--workers", f"{WORKERS}", "--port"]
        begun = time.perf_counter()
        place = stack.enter_context(started(command, {}))
        ready(place)
        rows: list[dict[str, Any]] = [
            {"measured": "ready, s", "value": time.perf_counter() - begun}
        ]
        targets = [Target("ready", rows[0]["value"], READY, "s")]

        def measured(what: str, value: float, limit: float, at_least: bool = False) -> None:
            rows.append({"measured": what, "value": value})
            targets.append(Target(what, value, limit, at_least=at_least))

        times = random_pairs(place, key, number, seconds)
        measured("pairs a second, random studies", len(times) / seconds, PAIRS, at_least=True)
        measured("p99 of a request, s", quantile(times, 0.99) / 2, SLOWEST)
        pairs = in_batches(place, key, number)
        measured("pairs a second, many in a request", pairs, BATCH_PAIRS, at_least=True)
        with psycopg.connect(direct) as connection:
            [found] = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fleet'"
            ).fetchone() or (0,)
        measured("sessions of PostgreSQL for each worker", found / WORKERS, CONNECTIONS)
        session = logged_in(place, key)
        for path, limit in LIMITS.items():
            given = session if path == HOME else signed(key)
            measured(f"GET {path}, s", median(timed(place, given, path) for _ in range(11)), limit)
        with client(place) as line:
            line.request("GET", METRICS, headers=signed(key))
            text = line.getresponse().read().decode()
        measured("metrics, MB", len(text) / 1e6, 1.0)
        memory = [
            float(line.split()[-1]) / 2**20
            for line in text.splitlines()
            if line.startswith("process_resident_memory_bytes")
        ]
        measured("memory of a worker, MiB", max(memory), MEMORY)
    shows = (
        f"{number:,} studies with 6 lanes, {WORKERS} workers and {CLIENTS} clients here, PgBouncer "
        "with pool_mode = transaction. A pair is an ask and a tell."
    )
    return [Section("A fleet", shows, rows, targets)]


def create(url: str, number: int) -> None:
    """Create one study, and copy its rows to others."""
    Study.create("city", Transport([1, 4, 5], [4, 6]), GenCTS(), store=url).disconnect()
    columns = "number, kind, key, play, at, previous, digest, header, arrays"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO multiplay_journals (name, created, last, last_digest) "
            "SELECT 'city ' || lpad(k::text, 6, '0'), created, last, last_digest "
            f"FROM multiplay_journals, generate_series(0, {number - 1}) AS k"
        )
        connection.execute(
            f"INSERT INTO multiplay_entries (journal, {columns}) SELECT j.id, {columns} "
            "FROM multiplay_entries, multiplay_journals AS j WHERE j.name LIKE 'city %'"
        )
        connection.execute("ANALYZE")


@contextmanager
def pooled(folder: Path) -> Iterator[str]:
    """Start PgBouncer before the server in a folder; yield its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "users").write_text('"multiplay" ""\n')
    (folder / "ini").write_text(
        f"""[databases]
postgres = host={folder / "server"} dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder / "users"}
pool_mode = transaction
default_pool_size = {CONNECTIONS * WORKERS}
ignore_startup_parameters = extra_float_digits
"""
    )
    for name in ("users", "ini"):
        (folder / name).chmod(0o644)
    user = "postgres" if os.getuid() == 0 else None
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    bouncer = subprocess.Popen(
        [f"{program}", "-q", folder / "ini"], user=user, stderr=subprocess.DEVNULL
    )
    try:
        yield f"postgresql://multiplay@127.0.0.1:{port}/postgres"
    finally:
        bouncer.terminate()
        bouncer.wait()


def ready(place: str) -> None:
    """Wait until the service is ready."""
    for _ in range(6_000):
        with suppress(OSError), client(place) as line:
            line.request("GET", "/readyz")
            if line.getresponse().status == 200:
                return
        time.sleep(0.05)
    raise TimeoutError(f"{place} is not ready")


@contextmanager
def client(place: str) -> Iterator[HTTPConnection]:
    """Connect to the service."""
    parts = urlsplit(place)
    line = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        yield line
    finally:
        line.close()


def signed(key: str) -> dict[str, str]:
    """Return the headers of a request with a key."""
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def posted(line: HTTPConnection, key: str, path: str, body: Any) -> Any:
    """Send a request; return the content of the response."""
    line.request("POST", path, json.dumps(body), signed(key))
    response = line.getresponse()
    content = response.read()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {content.decode()}")
    return json.loads(content)


def losses_of(plan: dict[str, int]) -> dict[str, list[float]]:
    """Return losses of all units of a plan."""
    return {arm: [0.5] * units for arm, units in plan.items() if units}


def random_pairs(place: str, key: str, number: int, seconds: float) -> list[float]:
    """Let clients in a process of their own ask and tell random studies; return their times."""
    command = [sys.executable, "-m", "benchmarks.fleet", place, key, f"{number}", f"{seconds}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    times: list[float] = json.loads(done.stdout)
    return times


def pairs(place: str, key: str, number: int, seconds: float) -> list[float]:
    """Ask and tell random studies from many threads; return the seconds of each pair."""
    times, end = list[float](), time.monotonic() + seconds

    def work(seed: int) -> None:
        chance = random.Random(seed)
        with client(place) as line:
            while time.monotonic() < end:
                path = f"/v1/studies/city%20{chance.randrange(number):06d}"
                begun = time.perf_counter()
                play = posted(line, key, f"{path}/ask", {})
                told = {"losses": losses_of(play["plan"])}
                posted(line, key, f"{path}/plays/{play['id']}/tell", told)
                times.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def in_batches(place: str, key: str, number: int) -> float:
    """Ask and tell many studies in each request; return the pairs a second."""
    taken, chance = 0.0, random.Random(1)
    with client(place) as line:
        for _ in range(BATCHES):
            names = [NAME.format(k=k) for k in chance.sample(range(number), BATCH)]
            begun = time.perf_counter()
            asked = posted(line, key, "/v1/plays", {"items": [{"study": one} for one in names]})
            reports = [
                {
                    "study": one["study"],
                    "play": one["result"]["id"],
                    "losses": losses_of(one["result"]["plan"]),
                }
                for one in asked["items"]
            ]
            told = posted(line, key, "/v1/reports", {"items": reports})
            taken += time.perf_counter() - begun
            if asked["failed"] or told["failed"]:
                raise RuntimeError(f"{asked['failed']} and {told['failed']} items failed")
    return BATCH * BATCHES / taken


def timed(place: str, headers: dict[str, str], path: str) -> float:
    """Return the seconds of a GET request."""
    with client(place) as line:
        begun = time.perf_counter()
        line.request("GET", path, headers=headers)
        response = line.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"GET {path}: {response.status}")
        return time.perf_counter() - begun


def logged_in(place: str, key: str) -> dict[str, str]:
    """Return the headers of a browser after its user has given a key."""
    with httpx.Client(base_url=place, trust_env=False) as browser:
        found = re.search(r'name="mark" value="(\w+)"', browser.get("/login").text)
        assert found, "the page has a form"
        typed = {"mark": found[1], "key": key, "next": "/"}
        browser.post("/login", data=typed, headers={"Origin": place})
        return {"Cookie": "; ".join(f"{one}={text}" for one, text in browser.cookies.items())}


if __name__ == "__main__":
    print(json.dumps(pairs(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))))
