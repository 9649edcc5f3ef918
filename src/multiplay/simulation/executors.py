"""Executors: blocks of work run in this process, in local processes, or on a given executor."""

import multiprocessing
import os
import pickle
import signal
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeVar

from multiplay._support import user_modules
from multiplay._support.checks import positive_integer
from multiplay.errors import InvalidInput

Done = TypeVar("Done")
Run = Callable[..., Done]  # of a block and, in this process, of a function for finished rounds
Advance = Callable[[int, int], None]  # takes the number of a block, and its newly finished rounds
Effort = Callable[[Any], float]  # the estimated cost of a block

MOST_JOBS = 10_000
IDLE = 300.0  # seconds for which processes are kept without work
NEEDED = "multiplay.simulation.block"  # all that a worker imports
READ_ONCE = ("NUMBA", "OMP", "OPENBLAS", "MKL", "PYTHON")  # variables read at import only
INSTALLED = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))


def run_blocks(
    run: Run[Done],
    blocks: Sequence[Any],
    executor: Executor | None,
    advance: Advance,
    rounds: int,
    effort: Effort = len,
) -> Iterator[tuple[int, Done]]:
    """Yield the number and the outcome of every block as it finishes, in any order.

    Without an executor they run in this process, one after the other. An executor gets the largest
    blocks first, so that no large one is left for the end. ``advance`` is called with the finished
    rounds of a block; ``rounds`` is the length of a block.
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
    """Yield an executor for this number of blocks, or None where this process runs them."""
    if executor is not None or jobs == 1 or blocks <= 1:
        yield executor
        return
    with local_processes(min(jobs, blocks)) as pool:
        yield pool


def _check_picklable(run: Run[Any], blocks: Sequence[Any]) -> None:
    try:
        pickle.dumps(run)
        for block in blocks:
            pickle.dumps(block)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidInput(
            "jobs",
            "objects that can be pickled",
            error,
            "Use jobs=1, or define the class or function at the top level of a module.",
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
    at_once = executor.in_use if isinstance(executor, LocalProcesses) else len(blocks)
    try:
        while True:
            with interrupts_held():
                for number in islice(todo, at_once - len(waiting)):
                    waiting[executor.submit(*submission(run, blocks[number]))] = number
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
        if not isinstance(executor, LocalProcesses):  # those are ended as a whole
            for future in waiting:
                future.cancel()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ---------------------------------------------------------------- blocks with user modules


class PickledBlock(NamedTuple):
    """A pickled block, and the sources of the user modules that define its classes."""

    folders: list[user_modules.ModuleFolder]
    pickled: bytes


def submission(run: Callable[..., Any], block: Any) -> tuple[Any, ...]:
    """Return the arguments of ``Executor.submit`` that let a worker run a block.

    A block with classes of user modules is unpickled by the worker only, once these modules are
    installed there: a scheduler in between needs none of them.
    """
    if not user_modules.FOLDERS:
        return run, block
    try:
        pickled = pickle.dumps(block)
    except Exception:  # threads need no pickling, and an executor may serialize differently
        return run, block
    folders = [one for root, one in user_modules.FOLDERS.items() if root.encode() in pickled]
    return (run_pickled, run, PickledBlock(folders, pickled)) if folders else (run, block)


def run_pickled(run: Callable[..., Any], block: PickledBlock) -> Any:
    """Install the user modules of a block, unpickle the block, and run it."""
    for folder in block.folders:
        user_modules.install(folder)
    return run(pickle.loads(block.pickled))


# ---------------------------------------------------------------- local processes


class LocalProcesses(ProcessPoolExecutor):
    """A pool of local processes that can be ended at once.

    ``in_use`` is the number of blocks that the current run submits at a time.
    """

    def __init__(self, jobs: int) -> None:
        self.size = self.in_use = positive_integer(
            "jobs", jobs, "Give a positive integer; each job is a process.", MOST_JOBS
        )
        self.path, self.variables, self.edited = list(sys.path), _variables(), _edited()
        self.idle = threading.Timer(IDLE, release, [self])
        self.context = _RecordingContext(_start_method())
        context: Any = self.context
        super().__init__(jobs, mp_context=context, initializer=_begin, initargs=(__file__,))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        if kind is not None:
            self.stop()
        return super().__exit__(kind, error, trace)

    def stop(self) -> None:
        """End all processes at once, also those that are computing."""
        for worker in self.workers():
            worker.terminate()
        self.shutdown()

    def workers(self) -> list[BaseProcess]:
        """Return the processes that have been started."""
        return list(self.context.started)

    def can_serve(self, jobs: int) -> bool:
        """Return whether a run of this many jobs finds here what new processes would have."""
        edited, known = _edited(), self.edited
        self.edited = known | edited
        return (
            jobs <= self.size
            and all(worker.is_alive() for worker in self.workers())
            and self.path == sys.path
            and self.variables == _variables()
            and all(edited.get(file, when) == when for file, when in known.items())
        )


class _RecordingContext:
    """A multiprocessing context that records the processes which it makes."""

    def __init__(self, context: BaseContext) -> None:
        self.context: Any = context
        self.started: list[BaseProcess] = []

    def Process(self, *arguments: Any, **options: Any) -> BaseProcess:  # noqa: N802
        """Make a process; the executor starts it next."""
        process: BaseProcess = self.context.Process(*arguments, **options)
        self.started.append(process)
        return process

    def __getattr__(self, name: str) -> Any:
        return getattr(self.context, name)


_lock = threading.Lock()
_kept: LocalProcesses | None = None


@contextmanager
def local_processes(jobs: int) -> Iterator[LocalProcesses]:
    """Yield a pool for one run: that of the last run if it still fits, else a new one.

    A pool serves one run at a time. A concurrent run starts its own pool, and waits for no other.
    """
    pool = _take(jobs) or LocalProcesses(jobs)
    pool.in_use = jobs
    try:
        yield pool
    except BaseException:
        pool.stop()
        raise
    _keep(pool)


def release(pool: LocalProcesses | None = None) -> None:
    """End the processes of the kept pool; if ``pool`` is given, only if it is the kept one."""
    global _kept
    with _lock:
        if pool is not None and pool is not _kept:
            return
        pool, _kept = _kept, None
    _end(pool)


def _take(jobs: int) -> LocalProcesses | None:
    global _kept
    with _lock:
        pool, _kept = _kept, None
    if pool is None:
        return None
    pool.idle.cancel()
    if pool.can_serve(jobs):
        return pool
    _end(pool)
    return None


def _keep(pool: LocalProcesses) -> None:
    global _kept
    pool.idle = threading.Timer(IDLE, release, [pool])
    pool.idle.daemon = True
    pool.idle.start()
    with _lock:
        before, _kept = _kept, pool
    _end(before)  # that of a concurrent run


def _end(pool: LocalProcesses | None) -> None:
    if pool is not None:
        pool.idle.cancel()
        pool.shutdown(wait=False)


# ---------------------------------------------------------------- start of a process


def _edited() -> dict[str, int]:
    """Return the modification times of the files of all modules that are not installed.

    A process that has imported an older version of such a file would go on with that version.
    """
    found = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith(INSTALLED):
            with suppress(OSError):
                found[file] = os.stat(file).st_mtime_ns
    return found


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(READ_ONCE)}


_variables_of_server: dict[str, str] | None = None
_forked = False
_of_parent: list[LocalProcesses] = []


def _start_method() -> BaseContext:
    """Return the start method: a fork server that has imported everything once.

    The server has no threads, whereas a fork of this process would copy the locks that its other
    threads hold. Where the platform has no fork server, or it was started with other variables,
    each process imports for itself.
    """
    global _variables_of_server
    if _forked or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    if _variables_of_server is None:
        _variables_of_server = _variables()
        multiprocessing.set_forkserver_preload([NEEDED])
    same = _variables_of_server == _variables()
    return multiprocessing.get_context("forkserver" if same else "spawn")


def _begin(home: str) -> None:
    """Set up a worker: it ignores Ctrl-C, and ends when its parent has ended."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if home != __file__:  # the server imported a different multiplay than the parent did
        for name in [name for name in sys.modules if name.partition(".")[0] == "multiplay"]:
            del sys.modules[name]
    from multiplay.kernels.jit import compile_in_turn  # numba, which the parent may not need

    compile_in_turn()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _forget() -> None:
    """Leave the kept processes to the parent, after a fork: they are not children of this one."""
    global _lock, _kept, _forked
    _lock, _forked = threading.Lock(), True
    if _kept is not None:
        for worker in _kept.workers():  # multiprocessing joins all that it started, at exit
            worker.join = _do_not_join  # type: ignore[method-assign]
        _of_parent.append(_kept)  # collecting it would end the processes
        _kept = None


def _do_not_join(timeout: float | None = None) -> None:
    """Return at once: the process belongs to the parent of this one."""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes start: they inherit the mask, and are never interrupted.

    The mask is that of one thread; where a different thread takes the signal, the handler waits.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    received: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    waits = threading.current_thread() is threading.main_thread() and handler is not None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if waits:
        signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        if waits:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if received:
            signal.raise_signal(signal.SIGINT)


# ---------------------------------------------------------------- progress


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
