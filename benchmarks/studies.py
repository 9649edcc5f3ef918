"""Studies: rates of durable ask and tell, growth with history, opening, and snapshots."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from benchmarks.backends import (
    BACKENDS,
    BARE,
    FULL,
    MEMORY,
    OPTUNA_JOURNAL,
    OPTUNA_SQLITE,
    POSTGRESQL,
    Place,
    WorkerPool,
    losses_of,
    pairs,
    sqlite_url,
    told,
)
from benchmarks.harness import (
    ROOT,
    Section,
    Target,
    fresh,
    interleave,
    measure,
    peak_memory,
    seconds,
    show,
)
from benchmarks.instances import Size, transport
from benchmarks.server import server
from multiplay import GenCTS, Study
from multiplay.storage import Labels
from multiplay.storage.base import header_text
from multiplay.storage.journal import to_bytes
from multiplay.studies import entry_codec
from multiplay.studies.replica import USUAL_SET, Replica
from multiplay.studies.synced import SNAPSHOT_EVERY, _interval

PROCESSES = (1, 8)
AT_LEAST = {OPTUNA_SQLITE: 30, OPTUNA_JOURNAL: 3}  # times faster
IN_MEMORY = ("tmpfs", "ramfs")
SHARED_MEMORY = Path("/dev/shm")
SIZES: tuple[Size, ...] = ((3, 2), (10, 10), (100, 100))


def run(quick: bool) -> list[Section]:
    """Measure on a disk, and on a file system in memory if one exists."""
    sections = []
    for name in ("disk", "memory"):
        with places(name) as found:
            sections += [rates(place, PROCESSES, 0.3 if quick else 1.0) for place in found]
    with places("memory", "disk") as found:
        place = found[0]
        sections += [
            growth(place, [10**2, 10**3, 10**4, 10**5][: 3 if quick else 4], 3 if quick else 20),
            opening(place, [10**2, 10**4] if quick else [10**2, 10**4, 10**6]),
            snapshots(place, SIZES[: 2 if quick else 3], (0, 1000), 1.0 if quick else 5.0),
        ]
    return sections


@contextmanager
def places(*names: str) -> Iterator[list[Place]]:
    """Yield the existing places of these names, each with an empty folder and a server."""
    with ExitStack() as stack:
        found = []
        for name in names:
            parent = _folder(name)
            if parent is None:
                continue
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="study-", dir=parent))
            )
            folder.chmod(0o755)  # the server may run as a different user
            try:
                url = stack.enter_context(server(folder / "server"))
            except (OSError, CalledProcessError) as error:
                print(f"PostgreSQL is left out: {error}")
                url = None
            found.append(Place(name, folder, url))
        yield found


def _folder(name: str) -> Path | None:
    """Return a folder on a disk or in memory, or None."""
    usual = Path(tempfile.gettempdir())
    if name == "memory":
        return next((path for path in (SHARED_MEMORY, usual) if _is_in_memory(path)), None)
    if not _is_in_memory(usual):
        return usual
    (ROOT / "results").mkdir(exist_ok=True)
    return ROOT / "results"


def _is_in_memory(path: Path) -> bool:
    mounts = Path("/proc/mounts")
    if not mounts.exists() or not path.exists():
        return False
    kinds = {Path(line.split()[1]): line.split()[2] for line in mounts.read_text().splitlines()}
    whole = path.resolve()
    return next(kinds[one] for one in (whole, *whole.parents) if one in kinds) in IN_MEMORY


# ---------------------------------------------------------------- pairs per second


def rates(
    place: Place,
    process_counts: Sequence[int],
    duration: float,
    names: Sequence[str] = tuple(BACKENDS),
) -> Section:
    """Measure all backends in turns, for each number of processes."""
    names = [name for name in names if place.server or name != POSTGRESQL]
    for name in names:
        BACKENDS[name].make(place)
    by_count: dict[int, dict[str, float]] = {}
    for number in process_counts:
        shared = [name for name in names if name != MEMORY or number == 1]
        with WorkerPool(place, shared, number) as pool:
            turns = {
                name: (lambda name=name: pool.seconds_of_a_pair(name, duration)) for name in shared
            }
            timings = interleave(turns, budget=5 * duration * len(shared))
        by_count[number] = {name: 1 / timing.median for name, timing in timings.items()}
    rows: list[dict[str, Any]] = []
    for name in names:
        row: dict[str, Any] = {"backend": name}
        for number, rate in by_count.items():
            if name in rate:
                row[f"pairs/s, {_processes(number)}"] = rate[name]
                row[f"of SQLite alone, {number}"] = rate[name] / rate[BARE]
                row |= {f"times {other}, {number}": rate[name] / rate[other] for other in AT_LEAST}
        rows.append(row)
    targets = [
        Target(
            f"{FULL} on {place.name}, {_processes(number)}: times {other} "
            f"({show(rate[BARE] / rate[other])} by two commits alone)",
            rate[FULL] / rate[other],
            limit,
            at_least=True,
        )
        for number, rate in by_count.items()
        for other, limit in AT_LEAST.items()
    ]
    shows = (
        "Pairs of ask and tell per second, total of all processes, on the paper's 3x2 problem "
        "with GenCTS; every verb has a key. Optuna chooses six random integers. SQLite "
        "alone commits two rows of the same sizes, and does nothing else."
    )
    return Section(f"Studies, files on {place.name}", shows, rows, targets)


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{number} processes"


# ---------------------------------------------------------------- growth with history


def grown(store: str, name: str, events: int, chunk: int = 10_000) -> None:
    """Create a study with a history of ``events`` events.

    Many verbs share one turn, which saves commits. The last events have a turn each, so that the
    number of entries since the last snapshot is the largest possible.
    """
    plain = events - SNAPSHOT_EVERY
    plans = transport((3, 2))
    with Study.create(name, plans, GenCTS(), store=store) as study:
        pair, tables, names = pairs(study), cycle(losses_of(plans)), plans.names
        done = study.asked
        while done < max(0, plain // 2):
            upto = min(done + chunk // 2, plain // 2)
            with study._turn() as replica:
                for table in islice(tables, upto - done):
                    _play(study, replica, names, table)
            done = upto
        for _ in range(events // 2 - done):
            pair()


def _play(study: Study, replica: Replica, names: Sequence[str], table: list[list[float]]) -> None:
    """Write an ask and a tell within an open turn."""
    engine, when = replica.engine, time.time()
    id, play = replica.ask(engine.state.usual, USUAL_SET, when, None)
    labels = Labels(entry_codec.ASK, f"old {id}", id, when)
    study._write(replica, entry_codec.ask_record(play, USUAL_SET), labels)
    parsed = engine.parse(told(names, play.action[0].tolist(), table), play)
    result = replica.telling(id).tell(id, parsed, True, False, when)
    record = entry_codec.report_record(result, parsed, names, False)
    study._write(replica, record, Labels(entry_codec.TELL, f"old {id}", id, when))


def growth(place: Place, numbers: Sequence[int], turns: int) -> Section:
    """Measure pairs after each number of events; a study that became too long is replaced."""
    at_once, made = 25, dict.fromkeys(numbers, 0)
    studies: dict[int, tuple[Study, Any]] = {}
    times: dict[int, list[float]] = {number: [] for number in numbers}

    def renewed(number: int) -> Any:
        if number in studies and studies[number][0].asked < 0.75 * number:
            return studies[number][1]
        if number in studies:
            studies.pop(number)[0].disconnect()
        made[number] += 1
        name, url = f"{number}-{made[number]}", sqlite_url(place, "grown", "&synchronous=normal")
        grown(url, name, number)
        study = Study.open(name, store=url)
        studies[number] = study, pairs(study)
        studies[number][1]()
        return studies[number][1]

    for _ in range(turns):
        for number in numbers:
            pair = renewed(number)
            started = time.perf_counter()
            for _ in range(at_once):
                pair()
            times[number].append((time.perf_counter() - started) / at_once)
    least = {number: min(found) for number, found in times.items()}
    for study, _ in studies.values():
        study.disconnect()
    used = {
        number: fresh("studies.opened", store=str(studies[number][0].store.url), name=name)
        for number in (numbers[0], numbers[-1])
        for name in [studies[number][0].name]
    }
    rows = []
    for number in numbers:
        row: dict[str, Any] = {"events": number, "µs of a pair": 1e6 * least[number]}
        if number in used:
            row["MiB of an open study"] = used[number]["peak"] - used[number]["start"]
        rows.append(row)
    few, many = numbers[0], numbers[-1]
    more = rows[-1]["MiB of an open study"] - rows[0]["MiB of an open study"]
    times_more = least[many] / least[few]
    targets = [
        Target(f"a pair at {many:,} events, times that at {few}", times_more, 1.3),
        Target(f"memory of a study of {many:,} events, minus that of {few}", more, 1, "MiB"),
    ]
    shows = (
        f"SQLite with normal synchronisation, on {place.name}; the fastest of {turns} turns of "
        f"{at_once} pairs. Memory: of a new process that opens it and runs 50 pairs."
    )
    return Section("Growth of a study", shows, rows, targets)


def opened(store: str, name: str) -> dict[str, float]:
    """Open a study, run pairs; return the memory before and after in MiB (run by ``fresh``)."""
    other = Study.create("other", transport((3, 2)), GenCTS(), store="memory://")
    pair = pairs(other)
    for _ in range(300):  # more reports than one batch
        pair()
    start = peak_memory()
    with Study.open(name, store=store) as study:
        pair = pairs(study, "memory ")
        for _ in range(50):
            pair()
    return {"start": start, "peak": peak_memory()}


def opening(place: Place, numbers: Sequence[int]) -> Section:
    """Measure the time to open a study, for each number of events."""
    url = sqlite_url(place, "opened", "&synchronous=normal")
    rows = []
    for number in numbers:
        started = time.perf_counter()
        grown(url, f"{number}", number)
        taken = time.perf_counter() - started

        def open_it(name: str = f"{number}") -> None:
            Study.open(name, store=url).disconnect()

        rows.append({"events": number, "s": seconds(open_it, 1.0), "created in, s": taken})
    last = rows[-1]
    targets = [Target(f"opening a study of {last['events']:,} events", float(last["s"]), 1, "s")]
    shows = (
        f"Seconds of Study.open, with {SNAPSHOT_EVERY - 1} entries since the last snapshot, which "
        "is the worst case."
    )
    return Section("Opening a study", shows, rows, targets)


# ---------------------------------------------------------------- snapshots


def snapshots(
    place: Place, sizes: Sequence[Size], pending: Sequence[int], budget: float
) -> Section:
    """Measure the time and size of snapshots, and the time to replay entries."""
    rows = [
        _snapshot_row(place, size, number, budget / len(sizes) / len(pending))
        for size in sizes
        for number in pending
    ]
    targets = [
        Target(
            f"snapshots, {row['arms']} arms, {row['pending']} pending: share of the total",
            row["% of all"],
            3,
            "%",
        )
        for row in rows
    ]
    shows = (
        "A snapshot: the time to write it, its size, and its share of the total time at one "
        "snapshot in this many entries (every). Open: with the oldest possible snapshot."
    )
    return Section("Snapshots", shows, rows, targets)


def _snapshot_row(place: Place, size: Size, pending: int, budget: float) -> dict[str, Any]:
    plans = transport(size)
    url = sqlite_url(place, "snapshots", "&synchronous=normal")
    with Study.create(f"{plans.d}-{pending}", plans, GenCTS(), store=url) as study:
        names, tables = plans.names, cycle(losses_of(plans, 10))

        def pair() -> None:
            play = study.ask()
            study.tell(play.id, told(names, play.action.tolist(), next(tables)))

        for _ in range(pending):
            study.ask()
        pair()
        timings = measure({"pair": pair}, budget)
        replica, journal = study._replica, study._journal
        assert replica is not None
        record, every = replica.record(), _interval(replica.engine)
        write = seconds(lambda: journal.put(replica.record()), budget)
        study._snapshot_at = replica.number  # prevents the next snapshot

        def open_it() -> None:
            Study.open(study.name, store=url).disconnect()

        restore, some = seconds(open_it, budget), 50
        for _ in range(some):
            pair()
        replay = (seconds(open_it, budget) - restore) / some
    pair_seconds = timings["pair"].median
    return {
        "arms": plans.d,
        "pending": pending,
        "µs of a pair": 1e6 * pair_seconds,
        "µs to replay it": 1e6 * replay,
        "ms of a snapshot": 1e3 * write,
        "KiB": (len(header_text(record)) + len(to_bytes(record.arrays))) / 1024,
        "every": every,
        "% of all": 100 * write / (write + every / 2 * pair_seconds),
        "ms to open": 1e3 * (restore + every / 2 * replay),
    }
