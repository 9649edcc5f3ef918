"""Work in forked processes: they begin at once, with all that the test has made."""

import multiprocessing
from collections.abc import Callable

FORK = multiprocessing.get_context("fork")


def in_processes(count: int, work: Callable[[int], None]) -> None:
    """Give each process its number; all must end well."""
    workers = [FORK.Process(target=work, args=(k,)) for k in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * count
