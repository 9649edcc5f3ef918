"""Where blocks of work are run: here, in local processes, or on any executor."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from multiplay.errors import InvalidInput
from multiplay.simulation.pool import LocalProcesses, interrupts_held, lent_processes
from multiplay.simulation.shipping import sent

Done = TypeVar("Done")
Run = Callable[..., Done]  # of a block and, where it is run here, of a function told of its rounds
Advance = Callable[[int, int], None]  # told the number of a block, and finished rounds of it
Effort = Callable[[Any], float]  # what a block will cost, as far as anybody knows


def run_blocks(
    run: Run[Done],
    blocks: Sequence[Any],
    executor: Executor | None,
    advance: Advance,
    rounds: int,
    effort: Effort = len,
) -> Iterator[tuple[int, Done]]:
    """Yield the number and the outcome of every block as it finishes, in any order.

    Without an executor they are run here, one after the other. On an executor the largest are begun
    first, so that no large one is left for the end. ``advance`` hears of finished rounds of a
    block; ``rounds`` is the length of a block.
    """
    if executor is None:
        for number, block in enumerate(blocks):
            yield number, run(block, partial(advance, number))
        return
    if isinstance(executor, LocalProcesses):
        _check_picklable(run, blocks)
    yield from _run_on(executor, run, blocks, advance, rounds, effort)


@contextmanager
def processes(jobs: int, executor: Executor | None, blocks: int) -> Iterator[Executor | None]:
    """Yield what runs so many blocks: the given executor, processes, or None for this one."""
    if executor is not None or jobs == 1 or blocks <= 1:
        yield executor
        return
    with lent_processes(min(jobs, blocks)) as pool:
        yield pool


def _check_picklable(run: Run[Any], blocks: Sequence[Any]) -> None:
    try:
        pickle.dumps(run)
        for block in blocks:
            pickle.dumps(block)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidInput(
            "jobs",
            "what can be sent to other processes",
            error,
            "Use jobs=1, or define it at the top level of a module.",
        ) from None


def _run_on(
    executor: Executor,
    run: Run[Done],
    blocks: Sequence[Any],
    advance: Advance,
    rounds: int,
    effort: Effort,
) -> Iterator[tuple[int, Done]]:
    largest_first = sorted(range(len(blocks)), key=lambda number: -effort(blocks[number]))
    todo, waiting = iter(largest_first), dict[Future[Done], int]()
    at_once = executor.lent if isinstance(executor, LocalProcesses) else len(blocks)
    try:
        while True:
            with interrupts_held():
                for number in islice(todo, at_once - len(waiting)):
                    waiting[executor.submit(*sent(run, blocks[number]))] = number
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                number = waiting.pop(future)
                yield number, future.result()
                advance(number, rounds)
    except BrokenProcessPool:
        raise RuntimeError(
            "a worker process died. If this is a script, call simulate under "
            '`if __name__ == "__main__":`, or use jobs=1; otherwise the machine may lack memory.'
        ) from None
    finally:
        if not isinstance(executor, LocalProcesses):  # which stops by itself
            for future in waiting:
                future.cancel()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def progress_bars(policies: list[str], owner: list[int], rounds: int) -> Iterator[Advance]:
    """Yield a function that moves the bar of a policy; silent where no terminal is attached.

    ``owner`` is the policy of every block, and ``rounds`` the length of a block.
    """
    if not sys.stderr.isatty():
        yield lambda number, rounds: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[blocks]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        todo = {policy: owner.count(policy) for policy in sorted(set(owner))}
        played = dict.fromkeys(range(len(owner)), 0)

        def blocks(policy: int) -> str:
            done = sum(played[k] >= rounds for k in played if owner[k] == policy)
            return f"block {min(done + 1, todo[policy])} of {todo[policy]}"

        tasks = {
            policy: progress.add_task(policies[policy], total=number * rounds, blocks="")
            for policy, number in todo.items()
        }

        def advance(number: int, some: int) -> None:
            played[number] += some
            policy = owner[number]
            progress.update(tasks[policy], advance=some, blocks=blocks(policy))

        yield advance
