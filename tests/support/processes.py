"""Concurrent work of a test: in forked processes, which share its objects, and in threads."""

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path

from effort import TIME_LIMIT

FORK = multiprocessing.get_context("fork")


def in_processes(count: int, work: Callable[[int], None]) -> None:
    """Call ``work`` with its number in each process; assert that all succeed."""
    workers = [FORK.Process(target=work, args=(k,)) for k in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(TIME_LIMIT)
    assert [worker.exitcode for worker in workers] == [0] * count


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Call ``work`` with its number in each thread; assert that none fails."""
    failures: list[BaseException] = []

    def watched(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # reported by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=watched, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def alive(session: int) -> list[int]:
    """Return the processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # not a process, or it has ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + TIME_LIMIT
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold"
        time.sleep(0.01)
