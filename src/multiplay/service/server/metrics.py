"""How much is done, and how fast, for Prometheus; no names of studies or keys."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import REGISTRY, Collector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # of the environment: where several processes write
TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
JOBS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second number for each

_requests = Counter(
    "multiplay_requests", "Requests that were answered.", ["method", "route", "status"]
)
_seconds = Histogram(
    "multiplay_request_seconds", "How long requests took.", ["method", "route"], buckets=SECONDS
)
_in_flight = Gauge(
    "multiplay_requests_in_flight", "Requests being answered.", multiprocess_mode="livesum"
)
_verbs = Counter("multiplay_verbs", "Verbs that were done, ask or tell say.", ["verb"])
_turns = Histogram(
    "multiplay_turn_jobs", "Jobs that were done in one turn of a study.", buckets=JOBS
)


def begin() -> None:
    """Say that a request came."""
    _in_flight.inc()


def end(method: str, route: str | None, status: int, seconds: float) -> None:
    """Say that a request was answered; ``route`` is a template, None if there is no such path."""
    _in_flight.dec()
    requests, times = _of(method if method in METHODS else "other", route or "none", status)
    requests.inc()
    times.observe(seconds)


@cache  # to find them takes longer than to count
def _of(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return _requests.labels(method, route, str(status)), _seconds.labels(method, route)


def verb(name: str) -> None:
    """Say that a verb was done."""
    _verbs.labels(name).inc()


def turn(jobs: int) -> None:
    """Say that so many jobs were done in one turn of a study."""
    _turns.observe(jobs)


def text() -> bytes:
    """Return all of it as Prometheus reads it, over all worker processes."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    registry.register(_Workers(Path(folder)))
    return generate_latest(registry)


class _Workers(Collector):
    """What each worker process takes, which it need not be asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for worker in self._processes():
            for one in ProcessCollector(pid=partial(int, worker), registry=None).collect():
                measure = found.setdefault(one.name, Metric(one.name, one.documentation, one.type))
                for sample in one.samples:
                    measure.add_sample(sample.name, {"worker": worker}, sample.value)
        yield from found.values()

    def _processes(self) -> list[str]:
        """Return the workers that live; the file of one that died is removed by the parent."""
        named = (re.search(r"(\d+)\.db$", file.name) for file in self._folder.glob("gauge_live*"))
        return sorted({name[1] for name in named if name})
