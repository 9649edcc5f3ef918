"""Worker processes that use one study and log its answers; a test kills and replaces them.

The requests of a worker depend on its number alone, and each request has its own key. An answer
counts as given when it is in the log. A process that replaces a killed worker reads the log, and
continues with the first request that has no answer there.
"""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from effort import TIME_LIMIT
from processes import FORK
from trucks import costs, plans

import multiplay as mp
from multiplay.errors import StoreError
from multiplay.storage import Store

OTHER_SETS = [plans((3, 3), (2, 4)), plans((1, 2), (2, 1))]
LEARNED = {"Lyon->north": 2, "Lyon->south": 0, "Lille->north": 2, "Lille->south": 1}


class Request(NamedTuple):
    """One step of one round of a worker; the steps depend on the kind of round."""

    worker: int
    round: int
    step: int
    verb: str
    options: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.worker}/{self.round}/{self.step}"

    def of(self, study: mp.Study, asked: Any, at: float | None = None) -> Any:
        """Send the request; ``asked`` is the answer to the first step of the round."""
        options = self.options | {"key": self.key} | ({} if at is None else {"at": at})
        if self.verb == "ask":
            play = study.ask(**options)
            return [play.id, play.plan]
        if self.verb == "learn":
            return [*study.learn(LEARNED, costs(self.round, LEARNED), **options)][:4]
        id, plan = asked
        if self.verb in ("cancel", "retract"):
            getattr(study, self.verb)(id, **options)
            return [id]
        if self.verb == "correct":
            return [*study.correct(id, costs(id, plan, 7.0), **options)][:4]
        if self.verb == "close":
            return [*study.close(id, **options)][:4]
        losses: dict[str, Any] = {**costs(id, plan)}
        if not options.get("final", True):
            lane = next(iter(losses))
            losses = {lane: losses[lane]}
        return [*study.tell(id, losses, **options)][:4]


KINDS: list[list[tuple[str, dict[str, Any]]]] = [
    [("ask", {}), ("tell", {})],
    [("ask", {"actions": OTHER_SETS[0]}), ("tell", {"final": False}), ("tell", {})],
    [("ask", {"exclude": ["Lyon->south"]}), ("cancel", {})],
    [("learn", {})],
    [("ask", {"actions": OTHER_SETS[1]}), ("tell", {"final": False}), ("close", {})],
    [("ask", {}), ("tell", {}), ("correct", {})],
    [("ask", {}), ("tell", {}), ("retract", {})],
]


def requests(worker: int) -> Iterator[Request]:
    """Yield all requests of a worker in order, without end."""
    for k in count():
        for step, (verb, options) in enumerate(KINDS[(worker + k) % len(KINDS)]):
            yield Request(worker, k, step, verb, options)


class Log:
    """The answers to a worker: a file with a line for each request."""

    def __init__(self, folder: Path, worker: int) -> None:
        self.path, self.worker = folder / f"{worker}.log", worker
        self.path.touch()

    def whole(self) -> bytes:
        """Return all complete lines."""
        text = self.path.read_bytes()
        return text[: text.rfind(b"\n") + 1]

    def answers(self) -> list[Any]:
        return [json.loads(line) for line in self.whole().splitlines()]

    def size(self) -> int:
        return self.path.stat().st_size


def work(store: Store, folder: Path, worker: int) -> None:
    """Continue where the log of a worker ends, until the file ``stop`` exists."""
    log = Log(folder, worker)
    os.truncate(log.path, len(log.whole()))
    answers, asked = log.answers(), None
    with _retried(mp.Study.open, "lanes", store=store) as study, log.path.open("ab") as file:
        for number, request in enumerate(requests(worker)):
            if number < len(answers):
                answer = answers[number]
            elif request.step == 0 and (folder / "stop").exists():
                return
            else:
                answer = _retried(request.of, study, asked)
                file.write(json.dumps(answer).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
                if request.round % 4 == 0:  # repeats some requests
                    assert _retried(request.of, study, asked) == answer
            asked = answer if request.verb == "ask" else asked


def _retried(act: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Call a function, and retry if the store fails: a server may be starting."""
    start = time.monotonic()
    while True:
        try:
            return act(*given, **options)
        except StoreError:
            if time.monotonic() > start + TIME_LIMIT:
                raise
            time.sleep(0.02)


class WorkerGroup:
    """Worker processes of one study, which are killed and replaced."""

    def __init__(self, store: Store, folder: Path, workers: int, seed: int) -> None:
        self.store, self.folder, self.workers = store, folder, workers
        self.random = random.Random(seed)
        self.logs = [Log(folder, worker) for worker in range(workers)]
        self.processes: list[BaseProcess] = [self._started(worker) for worker in range(workers)]

    def _started(self, worker: int) -> BaseProcess:
        process = FORK.Process(target=work, args=(self.store, self.folder, worker))
        process.start()
        return process

    def wait(self, most: int) -> None:
        """Wait for a random number of new answers, and a random time."""
        lines, start = self.random.randint(1, most), time.monotonic()
        enough = sum(log.size() for log in self.logs) + 40 * lines  # about 40 bytes per line
        while sum(log.size() for log in self.logs) < enough:
            assert time.monotonic() < start + TIME_LIMIT, "no worker makes progress"
            dead = [process.exitcode for process in self.processes if not process.is_alive()]
            assert not dead, f"a worker has ended: {dead}"
            time.sleep(0.001)
        time.sleep(self.random.uniform(0.0, 0.01))

    def kill(self) -> None:
        """Kill a random worker, and start a process that replaces it."""
        worker = self.random.randrange(self.workers)
        process = self.processes[worker]
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join(TIME_LIMIT)
        assert process.exitcode == -signal.SIGKILL
        self.processes[worker] = self._started(worker)

    def end(self) -> list[list[tuple[Request, Any]]]:
        """Let all workers finish their rounds; return their requests with the answers."""
        (self.folder / "stop").touch()
        for process in self.processes:
            process.join(TIME_LIMIT)
        assert [process.exitcode for process in self.processes] == [0] * self.workers
        return [list(zip(requests(log.worker), log.answers(), strict=False)) for log in self.logs]

    def kill_all(self) -> None:
        """Kill all workers, also after an error."""
        for process in self.processes:
            process.kill()
            process.join(TIME_LIMIT)
