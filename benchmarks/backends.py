"""Storage backends of plays: studies, Optuna's storages and plain SQLite, used by processes."""

import multiprocessing
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count, cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from multiplay import ActionSet, GenCTS, GenLBINFV, Policy, Study
from multiplay.experiments import paper
from multiplay.storage.base import header_text
from multiplay.storage.journal import to_bytes

PLANS = paper.PLANS
FULL, NORMAL = "study, SQLite", "study, SQLite, normal"
FTRL = "study, SQLite, GenLBINFV"
POSTGRESQL, MEMORY = "study, PostgreSQL", "study, memory"
OPTUNA_SQLITE, OPTUNA_JOURNAL = "Optuna, SQLite", "Optuna, journal file"
BARE = "SQLite alone, 2 commits"
LOCK_TIMEOUT = 300.0  # seconds that a writer waits for a lock

Pair = Callable[[], object]  # sends the next ask and its tell


class Place(NamedTuple):
    """Location of the files of backends.

    Attributes
    ----------
    name : str
        "disk" or "memory".
    folder : Path
        An empty folder for all files except those of the server.
    server : str or None
        The URL of a PostgreSQL server with its files in the same location.
    """

    name: str
    folder: Path
    server: str | None


class Backend(NamedTuple):
    """A backend: ``make`` creates it once, ``join`` opens it in each process."""

    make: Callable[[Place], object]
    join: Callable[[Place, int], AbstractContextManager[Pair]]


# ---------------------------------------------------------------- studies


def losses_of(plans: ActionSet, number: int = 1000) -> list[list[list[float]]]:
    """Return the loss of each unit of each arm, for ``number`` rounds."""
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.1, 0.5, plans.d)
    most = min(int(plans.n.max()), 10)
    losses: list[list[list[float]]] = (
        2 * costs[:, None] * rng.random((number, plans.d, most))
    ).tolist()
    return losses


def told(names: Sequence[str], action: list[int], table: list[list[float]]) -> dict[str, Any]:
    """Return the losses of a play, by the names of its arms."""
    return {names[i]: table[i][:units] for i, units in enumerate(action) if units}


def pairs(study: Study, prefix: str = "") -> Pair:
    """Return a function that asks for a play and tells its losses, each with a key."""
    names, tables, numbers = study.actions.names, cycle(losses_of(PLANS)), count()

    def pair() -> None:
        key = f"{prefix}{next(numbers)}"
        play = study.ask(key=key)
        study.tell(play.id, told(names, play.action.tolist(), next(tables)), key=key)

    return pair


def study_at(url: Callable[[Place], str], policy: Policy | None = None) -> Backend:
    """Return the backend of a study."""

    def make(place: Place) -> None:
        Study.create("bench", PLANS, policy or GenCTS(), store=url(place)).disconnect()

    @contextmanager
    def join(place: Place, worker: int) -> Iterator[Pair]:
        with Study.open("bench", store=url(place)) as study:
            yield pairs(study, f"{worker}-")

    return Backend(make, join)


@contextmanager
def _join_memory(place: Place, worker: int) -> Iterator[Pair]:
    """Create a study in the memory of this process."""
    store = f"memory://{place.name}"
    yield pairs(Study.create("bench", PLANS, GenCTS(), store=store))
    Study.delete("bench", store=store)


def sqlite_url(place: Place, name: str = "study", options: str = "") -> str:
    """Return the URL of an SQLite file."""
    return f"sqlite:///{place.folder / name}.db?timeout={LOCK_TIMEOUT}{options}"


# ---------------------------------------------------------------- Optuna, and plain SQLite


def optuna_in(storage: Callable[[Place], Any]) -> Backend:
    """Return the backend of an Optuna study: ask suggests six integers, tell takes one value."""

    def make(place: Place) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        optuna.create_study(storage=storage(place), study_name="bench")

    @contextmanager
    def join(place: Place, worker: int) -> Iterator[Pair]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.RandomSampler(seed=worker)
        study = optuna.load_study(study_name="bench", storage=storage(place), sampler=sampler)

        def pair() -> None:
            trial = study.ask()
            for name, most in zip(PLANS.names, PLANS.n.tolist(), strict=True):
                trial.suggest_int(name, 0, most)
            study.tell(trial, 0.5)

        yield pair

    return Backend(make, join)


def _optuna_sqlite(place: Place) -> Any:
    from optuna.storages import RDBStorage

    options = {"connect_args": {"timeout": LOCK_TIMEOUT}}
    return RDBStorage(f"sqlite:///{place.folder / 'optuna.db'}", engine_kwargs=options)


def _optuna_journal(place: Place) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(place.folder / "optuna.log")))


def _bare_connection(place: Place) -> sqlite3.Connection:
    connection = sqlite3.connect(
        place.folder / "bare.db", timeout=LOCK_TIMEOUT, isolation_level=None
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def _make_bare(place: Place) -> None:
    connection = _bare_connection(place)
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, content BLOB)")
    connection.close()


@contextmanager
def _join_bare(place: Place, worker: int) -> Iterator[Pair]:
    asked, answer = (bytes(size) for size in row_sizes())
    connection = _bare_connection(place)

    def pair() -> None:
        for content in (asked, answer):
            connection.execute("INSERT INTO rows (content) VALUES (?)", (content,))

    yield pair
    connection.close()


def row_sizes() -> tuple[int, int]:
    """Return the numbers of bytes that a study stores for an ask, and for a tell."""
    study = Study.create("sizes", PLANS, GenCTS(), store="memory://sizes")
    pairs(study)()
    asked, answer = (
        len(header_text(entry.record)) + len(to_bytes(entry.record.arrays)) + 2 * len(entry.digest)
        for entry in study.entries(1)
    )
    Study.delete("sizes", store="memory://sizes")
    return asked, answer


BACKENDS: dict[str, Backend] = {
    FULL: study_at(sqlite_url),
    NORMAL: study_at(lambda place: sqlite_url(place, "normal", "&synchronous=normal")),
    POSTGRESQL: study_at(lambda place: str(place.server)),
    FTRL: study_at(lambda place: sqlite_url(place, "ftrl"), GenLBINFV(horizon=10**6)),
    MEMORY: Backend(lambda place: None, _join_memory),
    OPTUNA_SQLITE: optuna_in(_optuna_sqlite),
    OPTUNA_JOURNAL: optuna_in(_optuna_journal),
    BARE: Backend(_make_bare, _join_bare),
}

# ---------------------------------------------------------------- one or many processes


class WorkerPool:
    """Worker processes that use all backends; each measurement starts at a barrier."""

    def __init__(self, place: Place, names: Sequence[str], number: int) -> None:
        context = multiprocessing.get_context("spawn")
        barrier = context.Barrier(number)
        ends = [context.Pipe() for _ in range(number)]
        self._pipes = [ours for ours, _ in ends]
        self._processes = [
            context.Process(target=_work, args=(place, names, worker, theirs, barrier), daemon=True)
            for worker, (_, theirs) in enumerate(ends)
        ]
        for process in self._processes:
            process.start()
        for _, theirs in ends:
            theirs.close()  # so that the end of a process closes the pipe
        for pipe in self._pipes:
            pipe.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join()

    def seconds_of_a_pair(self, name: str, duration: float) -> float:
        """Run pairs on a backend in all processes; return the seconds per pair."""
        for pipe in self._pipes:
            pipe.send((name, duration))
        rates: list[float] = [pipe.recv() for pipe in self._pipes]
        return 1.0 / sum(rates)


def _work(
    place: Place, names: Sequence[str], worker: int, pipe: "Connection[Any, Any]", barrier: Any
) -> None:
    """Join all backends, then run pairs for each request, until the pipe is closed."""
    with ExitStack() as stack:
        play = {name: stack.enter_context(BACKENDS[name].join(place, worker)) for name in names}
        for pair in play.values():
            pair()
        pipe.send("ready")
        try:
            while True:
                name, duration = pipe.recv()
                barrier.wait()
                pipe.send(rate(play[name], duration))
        except EOFError:
            return


def rate(pair: Pair, duration: float) -> float:
    """Run pairs for ``duration`` seconds, at least one; return pairs per second."""
    started = time.perf_counter()
    for number in count(1):
        pair()
        taken = time.perf_counter() - started
        if taken >= duration:
            return number / taken
    raise AssertionError
