"""Solver processes: integer programs of requests are solved in processes that can be ended.

HiGHS looks at its time limit between steps only, and a thread that runs it cannot be stopped. A
process that does not answer in time is killed, and the next program gets a new one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from multiplay._support import deadline
from multiplay.actions.milp import Answer, MixedProgram, Status, solved_by, use_solver
from multiplay.errors import InvalidInput
from multiplay.service.errors import Overloaded, TookTooLong
from multiplay.types import FloatArray

MOST = 4  # processes of one worker
# Requests of one worker that have programs solved or wait for it; each has a thread meanwhile. In
# the time of a request, the processes solve some ten hard programs, or thousands of easy ones.
MOST_SOLVING = 32
ADMISSION = 0.1  # seconds that one more request waits, in a thread of other requests
PATIENCE = 1.0  # seconds after its time limit, until HiGHS is ended
STARTED = 60.0  # seconds for a process to start


class Budget:
    """The time until which a request may have programs solved; ``changes``: it changes a study.

    ``is_admitted``: whether it is one of the requests that have programs solved.
    """

    def __init__(self, seconds: float, changes: bool) -> None:
        self.seconds, self.changes, self.is_admitted = seconds, changes, False
        self.until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The remaining seconds."""
        return self.until - time.monotonic()


class SolverProcesses:
    """The processes that solve the integer programs of one worker; they start when needed."""

    def __init__(self) -> None:
        self._idle: list[SolverProcess] = []
        self._lock, self._room = threading.Lock(), threading.Semaphore(MOST)
        self._admitted = threading.Semaphore(MOST_SOLVING)
        self._is_closed = False

    @contextmanager
    def within(self, seconds: float, changes: bool) -> Iterator[None]:
        """Solve the programs of the block in other processes, in this time in total.

        A program that is not solved by then raises ``InvalidInput``, whatever its own limit; if the
        block ``changes`` a study, ``TookTooLong``.
        """
        with (
            self._budget(seconds, changes) as budget,
            solved_by(partial(self._solve, budget)),
        ):
            yield

    def use_in_thread(self, seconds: float) -> None:
        """Solve the programs of this thread in other processes, each in this time."""

        def solve(program: MixedProgram, costs: FloatArray, limit: float, gap: float) -> Answer:
            with self._budget(seconds, changes=True) as budget:
                return self._solve(budget, program, costs, limit, gap)

        use_solver(solve)

    @contextmanager
    def _budget(self, seconds: float, changes: bool) -> Iterator[Budget]:
        """Yield a new budget; at the end, its request has no more programs solved."""
        budget = Budget(seconds, changes)
        try:
            yield budget
        finally:
            if budget.is_admitted:
                self._admitted.release()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for process in idle:
            process.end()

    def _solve(
        self, budget: Budget, program: MixedProgram, costs: FloatArray, limit: float, gap: float
    ) -> Answer:
        if budget.left <= 0:
            raise _late(budget)
        self._admit(budget)
        if not self._room.acquire(timeout=budget.left):
            raise Overloaded(f"{MOST} integer programs are being solved")
        try:
            process = self._process(budget)
            left = max(budget.left, 0.0)
            answer = process.solve(program, costs, min(limit, left), gap)
            if answer is not None:
                self._keep(process)
        finally:
            self._room.release()
        if isinstance(answer, Exception):
            raise answer
        if answer is None or answer.status is Status.OUT_OF_TIME:
            if left <= limit:
                raise _late(budget)
            return answer or Answer(Status.OUT_OF_TIME, None, "HiGHS was ended")
        return answer

    def _admit(self, budget: Budget) -> None:
        """Count a request that has programs solved; raise ``Overloaded`` if there are too many."""
        if not budget.is_admitted:
            budget.is_admitted = self._admitted.acquire(timeout=ADMISSION)
            if not budget.is_admitted:
                raise Overloaded(f"{MOST_SOLVING} requests have integer programs solved")

    def _process(self, budget: Budget) -> SolverProcess:
        """Return a process that waits; the start of a new one does not count as time."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        start = time.monotonic()
        process = SolverProcess()
        taken = time.monotonic() - start
        budget.until += taken
        deadline.postpone(taken)
        return process

    def _keep(self, process: SolverProcess) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(process)
                return
        process.end()


class SolverProcess:
    """A process that solves one program after the other."""

    def __init__(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._connection, other = spawning.Pipe()
        self._process = spawning.Process(target=serve, args=[other], daemon=True)
        self._process.start()
        other.close()
        if self._receive(STARTED) is None:
            raise Overloaded("a process that solves integer programs does not start")

    def solve(
        self, program: MixedProgram, costs: FloatArray, limit: float, gap: float
    ) -> Answer | Exception | None:
        """Return the answer or the error of scipy; None if none came in time: it was ended."""
        with suppress(OSError):
            self._connection.send((program, costs, limit, gap))
        answer: Answer | Exception | None = self._receive(limit + PATIENCE)
        return answer

    def _receive(self, seconds: float) -> Any:
        """Return what the process sends; end it if nothing comes in time."""
        with suppress(EOFError, OSError):
            if self._connection.poll(seconds):
                return self._connection.recv()
        self.end()
        return None

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def serve(connection: Connection[Any, Any]) -> None:
    """Solve programs until the other end of the connection is closed, also in the midst of one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops the service, which ends us
    programs: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_solve_all, args=[connection, programs], daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            programs.put(connection.recv())
    os._exit(0)


def _solve_all(connection: Connection[Any, Any], programs: SimpleQueue[Any]) -> None:
    from scipy import optimize  # noqa: F401  # before it is measured

    connection.send(True)
    while True:
        program, *question = programs.get()
        try:
            answer: Any = program.solve_here(*question)
        except Exception as error:  # an error of scipy belongs to the request
            answer = error
        connection.send(answer)


def _late(budget: Budget) -> Exception:
    problem = InvalidInput(
        "actions",
        f"a set whose plans are found within {budget.seconds:g} seconds",
        "a set that takes longer",
        "Remove columns, rows or constraints, or use multiplay in Python for larger problems.",
    )
    return TookTooLong(problem) if budget.changes else problem
