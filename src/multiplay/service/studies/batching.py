"""Desks: what many requests want of one study is done by one thread at a time, together.

A turn of a study costs a commit, whether it has one verb or many. So all jobs that come until it
ends share it, and are answered when it is durable.
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
from multiplay.service.api.refusals import Unknown
from multiplay.service.auth.authenticator import Caller, Register
from multiplay.service.server import metrics
from multiplay.studies import Study

AT_ONCE = 32  # jobs whose requests are looked for in one journey
LONGEST = 0.01  # seconds, after which a turn takes no further job


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
    verb
        What it does, "ask" say; nothing if it only reads.
    request
        What it is known by, if it comes again.
    """

    def __init__(
        self,
        act: Callable[[Any], Any],
        shown: Callable[[Any], Any] | None,
        caller: Caller,
        *,
        verb: str = "",
        request: str | None = None,
    ) -> None:
        self.act, self.shown, self.caller = act, shown, caller
        self.verb, self.request = verb, request
        self.writes = bool(verb)
        self.answer: Any = None
        self.error: BaseException | None = None
        self.is_second_try = False
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
    """The desk of a study: jobs that write share turns, and the others see what is durable.

    Parameters
    ----------
    pool
        Where threads come from.
    open
        Gives the study.
    register
        Knows whose keys are still valid.
    most
        Jobs that may wait.

    Attributes
    ----------
    is_busy : bool
        Whether a thread works at it, or will.
    """

    def __init__(
        self, pool: Executor, open: Callable[[], Study], register: Register, most: int
    ) -> None:
        self._pool, self._open, self._register, self._most = pool, open, register, most
        self._writing: deque[Job] = deque()
        self._reading: deque[Job] = deque()
        self._lock = threading.Lock()
        self.is_busy = False
        self._study: Study | None = None

    def close(self) -> None:
        """Give back the connection to the store."""
        if self._study is not None:
            self._study.disconnect()

    async def do(self, job: Job) -> Any:
        """Have a job done, with those of others."""
        queue = self._writing if job.writes else self._reading
        with self._lock:
            if len(queue) >= self._most:
                reason = f"{self._most} requests wait already"
                raise StoreError("service", reason, "Try again in a moment.")
            queue.append(job)
            begins, self.is_busy = not self.is_busy, True
        if begins:
            self._pool.submit(self._serve)
        return await job.future

    def _serve(self) -> None:
        """Do what waits, until nothing does."""
        while self._has_work():
            done = self._served()
            for job in done:
                job.show()
            _finish(done)
            if written := sum(job.writes for job in done):
                with suppress(OSError):  # the disk is full, say: to count is not worth a failure
                    metrics.turn(written)

    def _has_work(self) -> bool:
        with self._lock:
            self.is_busy = bool(self._writing or self._reading)
            return self.is_busy

    def _served(self) -> list[Job]:
        """Do what writes, in a turn, then what reads; return what was done."""
        was_open = self._study is not None
        try:
            study = self._study = self._study or self._open()
        except Exception as error:
            return _failed([*_taken(self._writing), *_taken(self._reading)], error)
        done = self._written(study) if self._writing else []
        reading = _taken(self._reading)
        self._refuse_unknown(reading, {})
        for job in reading:
            if job.error is None:
                job.do_or_fail(study)
        done += reading
        gone = [job for job in done if is_gone(job.error) and not job.is_second_try]
        if any(is_gone(job.error) for job in done):
            self._study = None
        if not (was_open and gone):
            return done
        for job in gone:  # a new study of this name may be there
            job.is_second_try = True
            (self._writing if job.writes else self._reading).append(job)
        return [job for job in done if job not in gone]

    def _written(self, study: Study) -> list[Job]:
        """Do jobs in one turn, those too that come meanwhile; if it fails, each in its own."""
        done: list[Job] = []
        try:
            with study.together():
                self._do_all(study, done)
        except Exception as error:
            if not done:  # the turn has not even begun
                return _failed(_taken(self._writing), error)
            for job in done:
                _do_alone(study, job)
        return done

    def _do_all(self, study: Study, done: list[Job]) -> None:
        confirmed: dict[Caller, Exception | None] = {}
        end = time.monotonic() + LONGEST
        while jobs := deque(_taken(self._writing, AT_ONCE)):
            try:
                study.foresee([(job.verb, job.request) for job in jobs if job.request is not None])
                self._refuse_unknown(jobs, confirmed)
                while jobs and (not done or time.monotonic() < end):
                    job = jobs.popleft()
                    done.append(job)
                    if job.error is None:
                        _do(study, job)
            finally:  # what there was no time for waits for the next turn
                self._writing.extendleft(reversed(jobs))
            if time.monotonic() >= end:
                return

    def _refuse_unknown(
        self, jobs: Iterable[Job], confirmed: dict[Caller, Exception | None]
    ) -> None:
        """Refuse the jobs of callers who are not known any more."""
        for job in jobs:
            if job.caller not in confirmed:
                confirmed[job.caller] = self._checked(job.caller)
            job.error = confirmed[job.caller]

    def _checked(self, caller: Caller) -> Exception | None:
        try:
            self._register.confirm(caller)
        except Exception as error:
            return error
        return None


def _do(study: Study, job: Job) -> None:
    study.by, study.request = job.caller.id, job.request
    job.do(study)


def _do_alone(study: Study, job: Job) -> None:
    """Do a job in a turn of its own, unless its caller was refused."""
    if isinstance(job.error, Unknown):
        return
    try:
        with study.together():
            _do(study, job)
    except Exception as error:
        job.error = error


def _taken(queue: deque[Job], most: int | None = None) -> list[Job]:
    """Take jobs from a queue, to which others may add."""
    number = len(queue) if most is None else min(len(queue), most)
    return [queue.popleft() for _ in range(number)]


def _failed(jobs: list[Job], error: Exception) -> list[Job]:
    for job in jobs:
        job.error = error
    return jobs


def _finish(jobs: list[Job]) -> None:
    """Hand out all answers, with one call for each loop."""

    def finish(those: list[Job]) -> None:
        for job in those:
            job.finish()

    for loop in {job.loop for job in jobs}:
        with suppress(RuntimeError):  # it is closed: nobody waits any more
            loop.call_soon_threadsafe(finish, [job for job in jobs if job.loop is loop])


def is_gone(error: BaseException | None) -> bool:
    """Say whether the study itself is not there, rather than something in it."""
    return isinstance(error, NotFound) and error.argument == "name"
