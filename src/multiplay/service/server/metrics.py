"""Metrics for Prometheus, over all worker processes.

Series of a study have the label ``study``: only callers who may read the study get them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    Summary,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import REGISTRY, Collector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # environment variable: the folder where workers write
TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
JOBS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
STUDY = "study"  # the label of series that not every caller may read
MOST_STUDIES = 1_000  # of one worker that have series

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each

_requests = Counter("multiplay_requests", "Finished requests.", ["method", "route", "status"])
_seconds = Histogram(
    "multiplay_request_seconds", "Durations of requests.", ["method", "route"], buckets=SECONDS
)
_in_flight = Gauge(
    "multiplay_requests_in_flight", "Requests in progress.", multiprocess_mode="livesum"
)
_verbs = Counter(
    "multiplay_verbs", "Verbs that changed a study, for example ask or tell.", ["verb"]
)
_turns = Histogram("multiplay_turn_jobs", "Jobs that shared one turn of a study.", buckets=JOBS)
_unknown_commits = Counter(
    "multiplay_unknown_commits", "Commits whose outcome is unknown: the connection was lost."
)
_study_entries = Counter(
    "multiplay_study_entries", "Entries written to the journal of a study.", [STUDY, "kind"]
)
_study_loss = Summary(
    "multiplay_study_loss",
    "Total losses (or rewards) of the finished rounds of a study: their sum, and the rounds.",
    [STUDY],
)
_study_pending = Gauge(
    "multiplay_study_pending_plays",
    "Plays of a study without a final report.",
    [STUDY],
    multiprocess_mode="mostrecent",
)
_study_drifting = Gauge(
    "multiplay_study_drifting_arms",
    "Changes that the drift of a study lists.",
    [STUDY],
    multiprocess_mode="mostrecent",
)
_studies: set[str] = set()


def count_start() -> None:
    """Count a request in progress."""
    _in_flight.inc()


def count_end(method: str, route: str | None, status: int, seconds: float) -> None:
    """Count a finished request; ``route`` is the path of the endpoint, None if there is none."""
    _in_flight.dec()
    requests, times = _of(method if method in METHODS else "other", route or "none", status)
    requests.inc()
    times.observe(seconds)


@cache  # to find them takes longer than to count
def _of(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return _requests.labels(method, route, str(status)), _seconds.labels(method, route)


def count_verb(name: str) -> None:
    """Count a verb."""
    _verbs.labels(name).inc()


def count_turn(jobs: int) -> None:
    """Count a turn of a study, and its jobs."""
    _turns.observe(jobs)


def count_unknown_commit() -> None:
    """Count a commit whose outcome is unknown."""
    with suppress(OSError):  # a full disk must not fail the requests
        _unknown_commits.inc()


def count_commit(study: str, kinds: Iterable[str], losses: Iterable[float], pending: int) -> None:
    """Count the entries of a commit, and the total losses of the rounds that it finished."""
    if _has_series(study):
        for kind in kinds:
            _study_entries.labels(study, kind).inc()
        for loss in losses:
            _study_loss.labels(study).observe(loss)
        _study_pending.labels(study).set(pending)


def set_drifting(study: str, arms: int) -> None:
    """Set the number of arms with a drift alarm."""
    if _has_series(study):
        _study_drifting.labels(study).set(arms)


def _has_series(study: str) -> bool:
    """Return whether a study has series: the number of studies is not limited."""
    if len(_studies) < MOST_STUDIES:
        _studies.add(study)
    return study in _studies


def text(studies: Collection[str] | None = ()) -> bytes:
    """Return metrics in the text format of Prometheus, of these studies only, or of all."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return generate_latest(_OfStudies(REGISTRY, studies))
    _forget_dead_workers(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    registry.register(_WorkerProcesses(Path(folder)))
    return generate_latest(_OfStudies(registry, studies))


class _OfStudies(Collector):
    """All series, except those of other studies."""

    def __init__(self, registry: Collector, studies: Collection[str] | None) -> None:
        self._registry = registry
        self._studies = None if studies is None else {None, *studies}

    def collect(self) -> Iterator[Metric]:
        for one in self._registry.collect():
            if self._studies is not None:
                one.samples = [s for s in one.samples if s.labels.get(STUDY) in self._studies]
            yield one


class _WorkerProcesses(Collector):
    """CPU time, memory and files of each worker process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for worker in _workers(self._folder):
            for one in ProcessCollector(pid=partial(int, worker), registry=None).collect():
                measure = found.setdefault(one.name, Metric(one.name, one.documentation, one.type))
                for sample in one.samples:
                    measure.add_sample(sample.name, {"worker": f"{worker}"}, sample.value)
        yield from found.values()


def _workers(folder: Path) -> list[int]:
    """Return the ids of the worker processes that wrote metrics."""
    named = (re.search(r"(\d+)\.db$", file.name) for file in folder.glob("gauge_live*"))
    return sorted({int(name[1]) for name in named if name})


def _forget_dead_workers(folder: Path) -> None:
    """Remove the gauges of worker processes that ended."""
    for worker in _workers(folder):
        if not _is_running(worker):
            mark_process_dead(worker, str(folder))  # type: ignore[no-untyped-call]


def _is_running(process: int) -> bool:
    if os.name != "posix":  # where signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
