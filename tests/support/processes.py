"""Work in forked processes, which begin at once with all that the test has made; and in threads."""

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path

FORK = multiprocessing.get_context("fork")


def in_processes(count: int, work: Callable[[int], None]) -> None:
    """Give each process its number; all must end well."""
    workers = [FORK.Process(target=work, args=(k,)) for k in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * count


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Give each thread its number; none may fail."""
    failures: list[BaseException] = []

    def watched(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # is raised below, where it is seen
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
        except OSError:  # no process, or gone by now
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for something that must happen."""
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
