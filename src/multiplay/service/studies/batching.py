"""Request batching: requests of one study that share one commit.

A commit costs the same whether it has one verb or many. So all jobs that arrive before a turn of
the study ends share that turn, and are answered when it is durable. One thread at a time works on a
study.
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

from multiplay.errors import InvalidInput, NotFound, StoreError, UnknownOutcome
from multiplay.service.auth.authenticator import Caller
from multiplay.service.errors import Overloaded, TookTooLong
from multiplay.service.server import metrics
from multiplay.studies import Study
from multiplay.studies.entry_codec import Request

AT_ONCE = 32  # jobs whose idempotency keys are looked up in one query
LONGEST_TURN = 0.01  # seconds, after which a turn accepts no further job
DRIFT_EVERY = 5.0  # seconds between two looks for drift in one study
DRIFT_SHARE = 0.02  # of the time of a worker, for looks in all of its studies
NOT_RECOGNISED = (
    "The request may or may not have been carried out. Read the journal before you send it again. "
    "With an Idempotency-Key it could be repeated safely."
)


class Job:
    """A function to call with a study, and its result.

    Parameters
    ----------
    act
        Called with the study.
    present
        Makes the response from the result of ``act``, after the commit.
    caller
        The caller of the request.
    verb
        The name of a verb that writes, such as "ask"; empty for a read.
    request
        The id and the content of the request, if it has an idempotency key.
    key
        The key in the body of the request, if it has one.
    """

    def __init__(
        self,
        act: Callable[[Any], Any],
        present: Callable[[Any], Any] | None,
        caller: Caller,
        *,
        verb: str = "",
        request: Request | None = None,
        key: str | None = None,
    ) -> None:
        self.act, self.present, self.caller = act, present, caller
        self.verb, self.request = verb, request
        self.writes = bool(verb)
        self._is_keyed = request is not None or key is not None
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_second_try = False
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    @property
    def is_repeatable(self) -> bool:
        """Whether the job, already run, is done once if it is run again.

        Its entry is found by its key, or it wrote none.
        """
        return self._is_keyed or isinstance(self.error, InvalidInput)

    def run(self, study: Any) -> None:
        """Call ``act``, once for a request, and keep its result or its ``InvalidInput``.

        ``TookTooLong`` and ``Overloaded`` are kept and raised: the job is not run again.
        """
        self.error = None
        try:
            if self.request is None:
                self.result = self.act(study)
            else:
                self.result = study.once(self.verb, self.request, lambda: self.act(study))
        except InvalidInput as error:
            self.error = error
        except (TookTooLong, Overloaded) as error:
            self.error = error
            raise

    def run_or_fail(self, study: Any) -> None:
        """Call ``act``, and keep its result or any error that it raised."""
        try:
            self.run(study)
        except Exception as error:
            self.error = error

    def make_response(self) -> None:
        """Replace the result by what ``present`` makes of it, unless the job failed."""
        if self.error is None and self.present is not None:
            try:
                self.result = self.present(self.result)
            except Exception as error:
                self.error = error

    def finish(self) -> None:
        """Set the future, unless the request was cancelled."""
        if self.future.done():
            return
        error = self.error
        if error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(error.problem if isinstance(error, TookTooLong) else error)


class RequestBatcher:
    """The queue of jobs of one study: jobs that write share turns, and reads see durable state.

    Parameters
    ----------
    pool
        The threads.
    open
        Opens the study.
    confirm
        Raises an error for a caller whose key is not one of the study any more.
    most
        The largest number of jobs that may wait.

    Attributes
    ----------
    is_busy : bool
        Whether a thread works on the study, or is about to.
    arms : int
        The number of arms of the study, once it was opened.
    """

    _next_look = 0.0  # for drift, in any study of this process

    def __init__(
        self,
        pool: Executor,
        open: Callable[[], Study],
        confirm: Callable[[Caller], None],
        most: int,
    ) -> None:
        self._pool, self._open, self._confirm, self._most = pool, open, confirm, most
        self._writing: deque[Job] = deque()
        self._reading: deque[Job] = deque()
        self._lock = threading.Lock()
        self.is_busy, self.arms = False, 0
        self._study: Study | None = None
        self._next_drift = 0.0

    def close(self) -> None:
        """Close the connection to the store."""
        if self._study is not None:
            self._study.disconnect()

    def close_if_idle(self) -> bool:
        """Close the connection, unless a thread uses it; return whether one was closed.

        The next request opens the study again.
        """
        with self._lock:
            if self.is_busy or self._study is None:
                return False
            self.is_busy = True  # requests wait until it is closed
        study, self._study = self._study, None
        study.disconnect()
        if self._has_work():
            self._pool.submit(self._work)
        return True

    async def run(self, job: Job) -> Any:
        """Run a job, together with the jobs of other requests, and return its result."""
        queue = self._writing if job.writes else self._reading
        with self._lock:
            if len(queue) >= self._most:
                raise Overloaded(f"{self._most} requests of this study are waiting already")
            queue.append(job)
            starts, self.is_busy = not self.is_busy, True
        if starts:
            self._pool.submit(self._work)
        return await job.future

    def _work(self) -> None:
        """Run jobs until none is waiting."""
        while self._has_work():
            done = self._run_waiting()
            for job in done:
                job.make_response()
            _finish(done)
            if written := sum(job.writes for job in done):
                with suppress(OSError):  # a full disk, for example, must not fail the requests
                    metrics.count_turn(written)
                self._look_for_drift()

    def _has_work(self) -> bool:
        with self._lock:
            self.is_busy = bool(self._writing or self._reading)
            return self.is_busy

    def _run_waiting(self) -> list[Job]:
        """Run the jobs that write, in one turn, then the reads; return the finished jobs."""
        was_open = self._study is not None
        try:
            study = self._study = self._study or self._open()
        except Exception as error:
            jobs = [*_take(self._writing), *_take(self._reading)]
            self._refuse_invalid_keys(jobs, {})  # whether the study exists is not said to them
            _failed([job for job in jobs if job.error is None], error)
            return jobs
        if not was_open:
            with suppress(InvalidInput, StoreError):  # of a study that is being deleted
                self.arms = len(study.actions.names)
        done = self._write(study) if self._writing else []
        reading = _take(self._reading)
        self._refuse_invalid_keys(reading, {})
        for job in reading:
            if job.error is None:
                job.run_or_fail(study)
        done += reading
        deleted = [job for job in done if is_deleted(job.error) and not job.is_second_try]
        if any(is_deleted(job.error) for job in done):
            study.disconnect()
            self._study = None
        if not (was_open and deleted):
            return done
        for job in deleted:  # there may be a new study of this name
            job.is_second_try = True
            (self._writing if job.writes else self._reading).append(job)
        return [job for job in done if job not in deleted]

    def _write(self, study: Study) -> list[Job]:
        """Run jobs in one turn, also those that arrive meanwhile; if it fails, each in its own.

        After a commit whose outcome is unknown, only jobs that are done once are run again.
        """
        done: list[Job] = []
        try:
            with study.together():
                self._run_turn(study, done)
            _count_commit(study)
        except UnknownOutcome as error:
            metrics.count_unknown_commit()
            unknown = UnknownOutcome(error.store, error.reason, NOT_RECOGNISED)
            _failed([job for job in done if not job.is_repeatable], unknown)
            for job in done:
                if job.error is not unknown:
                    self._run_alone(study, job)
        except Exception as error:
            if not done:  # the turn did not start
                return _failed(_take(self._writing), error)
            for job in done:
                self._run_alone(study, job)
        return done

    def _run_alone(self, study: Study, job: Job) -> None:
        """Run a job in a turn of its own, unless its key is refused or it took too long."""
        if isinstance(job.error, TookTooLong | Overloaded):
            return
        try:
            with study.together():
                self._refuse_invalid_keys([job], {})
                if job.error is None:
                    _run(study, job)
            _count_commit(study)
        except UnknownOutcome as error:
            metrics.count_unknown_commit()
            if not job.is_repeatable:
                error = UnknownOutcome(error.store, error.reason, NOT_RECOGNISED)
            job.error = error
        except Exception as error:
            if not isinstance(job.error, InvalidInput):  # it was invalid, and its turn was undone
                job.error = error

    def _run_turn(self, study: Study, done: list[Job]) -> None:
        confirmed: dict[Caller, Exception | None] = {}
        end = time.monotonic() + LONGEST_TURN
        while jobs := deque(_take(self._writing, AT_ONCE)):
            try:
                study.foresee([(job.verb, job.request.id) for job in jobs if job.request])
                self._refuse_invalid_keys(jobs, confirmed)
                while jobs and (not done or time.monotonic() < end):
                    job = jobs.popleft()
                    done.append(job)
                    if job.error is None:
                        _run(study, job)
            finally:  # the rest waits for the next turn
                self._writing.extendleft(reversed(jobs))
            if time.monotonic() >= end:
                return

    def _look_for_drift(self) -> None:
        """Set the number of arms with a drift alarm, from time to time."""
        begun = time.monotonic()
        if self._study is None or begun < max(self._next_drift, RequestBatcher._next_look):
            return
        self._next_drift = begun + DRIFT_EVERY
        with suppress(OSError, InvalidInput, StoreError):
            metrics.set_drifting(self._study.name, len(self._study.drift()))
        now = time.monotonic()
        RequestBatcher._next_look = now + (now - begun) / DRIFT_SHARE

    def _refuse_invalid_keys(
        self, jobs: Iterable[Job], confirmed: dict[Caller, Exception | None]
    ) -> None:
        """Set the error of jobs whose keys are not valid any more."""
        for job in jobs:
            if job.caller not in confirmed:
                confirmed[job.caller] = self._confirmation_error(job.caller)
            job.error = confirmed[job.caller]

    def _confirmation_error(self, caller: Caller) -> Exception | None:
        try:
            self._confirm(caller)
        except Exception as error:
            return error
        return None


def _run(study: Study, job: Job) -> None:
    study.by = job.caller.id
    job.run(study)


def _count_commit(study: Study) -> None:
    """Count the last transaction of a study."""
    entries, pending = study.committed
    realised = (record.header.get("realised") for _, record in entries)
    losses = [loss for loss in realised if loss is not None]
    with suppress(OSError):
        metrics.count_commit(study.name, [one.kind for one, _ in entries], losses, pending)


def _take(queue: deque[Job], most: int | None = None) -> list[Job]:
    """Remove jobs from a queue to which other threads may add."""
    number = len(queue) if most is None else min(len(queue), most)
    return [queue.popleft() for _ in range(number)]


def _failed(jobs: list[Job], error: Exception) -> list[Job]:
    for job in jobs:
        job.error = error
    return jobs


def _finish(jobs: list[Job]) -> None:
    """Set all futures, with one call for each event loop."""

    def finish(those: list[Job]) -> None:
        for job in those:
            job.finish()

    for loop in {job.loop for job in jobs}:
        with suppress(RuntimeError):  # the loop is closed, so no request waits
            loop.call_soon_threadsafe(finish, [job for job in jobs if job.loop is loop])


def is_deleted(error: BaseException | None) -> bool:
    """Return whether an error says that the study itself does not exist."""
    return isinstance(error, NotFound) and error.argument == "name"
