"""What keeps plays safe: studies, Optuna's storages, and SQLite alone; played by one or many."""

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
LEADER = "study, SQLite, GenLBINFV"
POSTGRESQL, MEMORY = "study, PostgreSQL", "study, memory"
OPTUNA_SQLITE, OPTUNA_JOURNAL = "Optuna, SQLite", "Optuna, journal file"
BARE = "SQLite alone, 2 commits"
PATIENCE = 300.0  # seconds that a writer waits for others

Pair = Callable[[], object]  # one more ask, and its tell


class Place(NamedTuple):
    """Where keepers have their files.

    Attributes
    ----------
    name : str
        "disk" or "memory".
    folder : Path
        An empty one, for all files but those of the server.
    server : str or None
        The URL of a PostgreSQL server whose files are beside it.
    """

    name: str
    folder: Path
    server: str | None


class Keeper(NamedTuple):
    """Something that keeps plays: made once, then joined by any number of processes."""

    make: Callable[[Place], object]
    join: Callable[[Place, int], AbstractContextManager[Pair]]


# ---------------------------------------------------------------- studies


def losses_of(plans: ActionSet, number: int = 1000) -> list[list[list[float]]]:
    """Return what each unit of each arm costs, in so many rounds."""
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.1, 0.5, plans.d)
    most = min(int(plans.n.max()), 10)
    losses: list[list[list[float]]] = (
        2 * costs[:, None] * rng.random((number, plans.d, most))
    ).tolist()
    return losses


def told(names: Sequence[str], action: list[int], table: list[list[float]]) -> dict[str, Any]:
    """Return the losses of a play, by the names of the arms that it has."""
    return {names[i]: table[i][:units] for i, units in enumerate(action) if units}


def pairs(study: Study, who: str = "") -> Pair:
    """Return what asks for a play and tells its losses, each with a key."""
    names, tables, numbers = study.actions.names, cycle(losses_of(PLANS)), count()

    def pair() -> None:
        key = f"{who}{next(numbers)}"
        play = study.ask(key=key)
        study.tell(play.id, told(names, play.action.tolist(), next(tables)), key=key)

    return pair


def study_at(url: Callable[[Place], str], policy: Policy | None = None) -> Keeper:
    """Return the keeper of a study."""

    def make(place: Place) -> None:
        Study.create("bench", PLANS, policy or GenCTS(), store=url(place)).disconnect()

    @contextmanager
    def join(place: Place, who: int) -> Iterator[Pair]:
        with Study.open("bench", store=url(place)) as study:
            yield pairs(study, f"{who}-")

    return Keeper(make, join)


@contextmanager
def _join_memory(place: Place, who: int) -> Iterator[Pair]:
    """Begin a study of this process alone."""
    store = f"memory://{place.name}"
    yield pairs(Study.create("bench", PLANS, GenCTS(), store=store))
    Study.delete("bench", store=store)


def sqlite_url(place: Place, name: str = "study", options: str = "") -> str:
    """Return where a study is that is kept in an SQLite file."""
    return f"sqlite:///{place.folder / name}.db?timeout={PATIENCE}{options}"


# ---------------------------------------------------------------- others


def optuna_in(storage: Callable[[Place], Any]) -> Keeper:
    """Return the keeper of an Optuna study: six whole numbers are chosen, one value is told."""

    def make(place: Place) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        optuna.create_study(storage=storage(place), study_name="bench")

    @contextmanager
    def join(place: Place, who: int) -> Iterator[Pair]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.RandomSampler(seed=who)
        study = optuna.load_study(study_name="bench", storage=storage(place), sampler=sampler)

        def pair() -> None:
            trial = study.ask()
            for name, most in zip(PLANS.names, PLANS.n.tolist(), strict=True):
                trial.suggest_int(name, 0, most)
            study.tell(trial, 0.5)

        yield pair

    return Keeper(make, join)


def _optuna_sqlite(place: Place) -> Any:
    from optuna.storages import RDBStorage

    patient = {"connect_args": {"timeout": PATIENCE}}
    return RDBStorage(f"sqlite:///{place.folder / 'optuna.db'}", engine_kwargs=patient)


def _optuna_journal(place: Place) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(place.folder / "optuna.log")))


def _bare_connection(place: Place) -> sqlite3.Connection:
    connection = sqlite3.connect(place.folder / "bare.db", timeout=PATIENCE, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def _make_bare(place: Place) -> None:
    connection = _bare_connection(place)
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, content BLOB)")
    connection.close()


@contextmanager
def _join_bare(place: Place, who: int) -> Iterator[Pair]:
    asked, answer = (bytes(size) for size in row_sizes())
    connection = _bare_connection(place)

    def pair() -> None:
        for content in (asked, answer):
            connection.execute("INSERT INTO rows (content) VALUES (?)", (content,))

    yield pair
    connection.close()


def row_sizes() -> tuple[int, int]:
    """Return how many bytes a study keeps of an ask, and of a tell."""
    study = Study.create("sizes", PLANS, GenCTS(), store="memory://sizes")
    pairs(study)()
    asked, answer = (
        len(header_text(entry.record)) + len(to_bytes(entry.record.arrays)) + 2 * len(entry.digest)
        for entry in study.entries(1)
    )
    Study.delete("sizes", store="memory://sizes")
    return asked, answer


KEEPERS: dict[str, Keeper] = {
    FULL: study_at(sqlite_url),
    NORMAL: study_at(lambda place: sqlite_url(place, "normal", "&synchronous=normal")),
    POSTGRESQL: study_at(lambda place: str(place.server)),
    LEADER: study_at(lambda place: sqlite_url(place, "leader"), GenLBINFV(horizon=10**6)),
    MEMORY: Keeper(lambda place: None, _join_memory),
    OPTUNA_SQLITE: optuna_in(_optuna_sqlite),
    OPTUNA_JOURNAL: optuna_in(_optuna_journal),
    BARE: Keeper(_make_bare, _join_bare),
}

# ---------------------------------------------------------------- one or many processes


class Crew:
    """Some processes that play with every keeper; started first, then released together."""

    def __init__(self, place: Place, names: Sequence[str], number: int) -> None:
        context = multiprocessing.get_context("spawn")
        barrier = context.Barrier(number)
        ends = [context.Pipe() for _ in range(number)]
        self._pipes = [ours for ours, _ in ends]
        self._processes = [
            context.Process(target=_work, args=(place, names, who, theirs, barrier), daemon=True)
            for who, (_, theirs) in enumerate(ends)
        ]
        for process in self._processes:
            process.start()
        for _, theirs in ends:
            theirs.close()  # so that the end of a process is seen here
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
        """Let all play with a keeper for a while; return the seconds for each pair of any."""
        for pipe in self._pipes:
            pipe.send((name, duration))
        rates: list[float] = [pipe.recv() for pipe in self._pipes]
        return 1.0 / sum(rates)


def _work(
    place: Place, names: Sequence[str], who: int, pipe: "Connection[Any, Any]", barrier: Any
) -> None:
    """Join all keepers, then play as one is told, until nobody asks for more."""
    with ExitStack() as stack:
        play = {name: stack.enter_context(KEEPERS[name].join(place, who)) for name in names}
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
    """Play pairs for so many seconds, at least one; return how many in a second."""
    started = time.perf_counter()
    for number in count(1):
        pair()
        taken = time.perf_counter() - started
        if taken >= duration:
            return number / taken
    raise AssertionError
