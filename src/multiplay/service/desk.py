"""Desks: what many requests want of one study is done by one thread at a time, together.

A turn of a study costs a commit, whether it has one verb or many. So the jobs that came while the
last turn was being written share the next one, and are answered when it is durable.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any

from multiplay.errors import InvalidInput, NotFound, StoreError
from multiplay.service import metrics
from multiplay.service.register import Caller, Register
from multiplay.studies import Study

MOST_JOBS = 64  # of a batch
LONGEST = 0.1  # seconds, after which a turn takes no further job


class Job:
    """What a request wants, and what came of it.

    Parameters
    ----------
    act
        Called with the study, or whatever the desk is for.
    shown
        Makes the answer of what ``act`` gave, when that is durable.
    caller
        For whom.
    writes
        Whether it changes the study.
    request
        What it is known by, if it comes again.
    """

    def __init__(
        self,
        act: Callable[[Any], Any],
        shown: Callable[[Any], Any] | None,
        caller: Caller,
        *,
        writes: bool = False,
        request: str | None = None,
    ) -> None:
        self.act, self.shown, self.caller = act, shown, caller
        self.writes, self.request = writes, request
        self.answer: Any = None
        self.error: BaseException | None = None
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def do(self, thing: Any) -> None:
        """Do it; to be refused is an answer."""
        self.error = None
        try:
            self.answer = self.act(thing)
        except InvalidInput as error:
            self.error = error

    def do_or_fail(self, thing: Any) -> None:
        """Do it; to fail is an answer too."""
        try:
            self.do(thing)
        except Exception as error:
            self.error = error

    def show(self) -> None:
        """Make the answer, if there is one."""
        if self.error is None and self.shown is not None:
            try:
                self.answer = self.shown(self.answer)
            except Exception as error:
                self.error = error

    def finish(self) -> None:
        """Hand out what came of it; perhaps nobody waits any more."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.answer)
        else:
            self.future.set_exception(self.error)


class Desk:
    """Jobs that are done batch after batch, by one thread at a time.

    Parameters
    ----------
    pool
        Where threads come from.
    work
        Does a batch, and returns those that it had no time for.
    most
        Jobs that may wait.
    """

    def __init__(
        self, pool: Executor, work: Callable[[list[Job]], Iterable[Job]], most: int
    ) -> None:
        self._pool, self._work, self._most = pool, work, most
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()
        self._is_busy = False

    async def do(self, job: Job) -> Any:
        """Have a job done, with those of others."""
        with self._lock:
            if len(self._waiting) >= self._most:
                reason = f"{self._most} requests wait already"
                raise StoreError("service", reason, "Try again in a moment.")
            self._waiting.append(job)
            begins, self._is_busy = not self._is_busy, True
        if begins:
            self._pool.submit(self._serve)
        return await job.future

    def _serve(self) -> None:
        """Do what waits, until nothing does."""
        while batch := self._next():
            late: list[Job] = []
            try:
                late = [*self._work(batch)]
            except Exception as error:
                for job in batch:
                    job.error = error
            with self._lock:
                self._waiting.extendleft(reversed(late))
            _finish([job for job in batch if job not in late])

    def _next(self) -> list[Job]:
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_JOBS))]
            self._is_busy = bool(batch)
            return batch


def _finish(jobs: list[Job]) -> None:
    """Hand out all answers of a batch, with one call for each loop."""

    def finish(those: list[Job]) -> None:
        for job in those:
            job.finish()

    for loop in {job.loop for job in jobs}:
        with suppress(RuntimeError):  # it is closed: nobody waits any more
            loop.call_soon_threadsafe(finish, [job for job in jobs if job.loop is loop])


class StudyDesk(Desk):
    """The desk of a study: jobs that write share a turn, and the others see what is durable.

    ``open`` gives the study; ``register`` knows whose keys are still valid.
    """

    def __init__(
        self, pool: Executor, open: Callable[[], Study], register: Register, most: int
    ) -> None:
        super().__init__(pool, self._do, most)
        self._open, self._register = open, register
        self._study: Study | None = None

    def close(self) -> None:
        """Give back the connection to the store."""
        if self._study is not None:
            self._study.disconnect()

    def _do(self, batch: list[Job]) -> list[Job]:
        """Do a batch for those whose keys are valid; return what there was no time for."""
        for caller in {job.caller for job in batch}:
            try:
                self._register.confirm(caller)
            except Exception as error:
                for job in batch:
                    if job.caller == caller:
                        job.error = error
        return self._serve_valid([job for job in batch if job.error is None])

    def _serve_valid(self, batch: list[Job]) -> list[Job]:
        was_open = self._study is not None
        late = self._try(batch)
        gone = [job for job in batch if is_gone(job.error)]
        if gone:
            self._study = None
            if was_open:  # a new study of this name may be there
                late += self._try(gone)
        for job in batch:
            if job not in late:
                job.show()
        return late

    def _try(self, batch: list[Job]) -> list[Job]:
        """Do a batch: first what writes."""
        try:
            study = self._study = self._study or self._open()
        except Exception as error:
            for job in batch:
                job.error = error
            return []
        writing, reading = (
            [job for job in batch if job.writes is writes] for writes in (True, False)
        )
        late = self._write(study, writing) if writing else []
        for job in reading:
            job.do_or_fail(study)
        return late

    def _write(self, study: Study, jobs: list[Job]) -> list[Job]:
        """Do jobs in one turn. If one of them fails, each has a turn of its own."""
        try:
            return self._together(study, jobs)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].error = error
                return []
        return [late for job in jobs for late in self._write(study, [job])]

    def _together(self, study: Study, jobs: list[Job]) -> list[Job]:
        end = time.monotonic() + LONGEST
        with study.together([job.request for job in jobs if job.request is not None]):
            for number, job in enumerate(jobs):
                if number and time.monotonic() > end:
                    break
                study.by, study.request = job.caller.id, job.request
                job.do(study)
            else:
                number = len(jobs)
        metrics.turn(number)
        return jobs[number:]


def is_gone(error: BaseException | None) -> bool:
    """Say whether the study itself is not there, rather than something in it."""
    return isinstance(error, NotFound) and error.argument == "name"
