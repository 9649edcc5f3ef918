"""Processes for a run: kept for the next one, gone when something goes wrong, never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import TIME_LIMIT
from numpy.typing import NDArray
from processes import alive, in_processes, wait_until

import multiplay as mp
from multiplay.experiments import paper
from multiplay.policies import Policy
from multiplay.simulation import executors
from multiplay.simulation.executors import LocalProcesses, local_processes
from multiplay.simulation.scheduling import effort, sizes_of_blocks

ENVIRONMENT = mp.Stochastic(mp.Uniform(0, [0.2, 0.4, 0.6, 0.8, 1.0, 0.5]))
POLICIES: dict[str, Policy] = {"GenCTS": mp.GenCTS(), "random": mp.RandomAction()}


def run(jobs: int = 2, environment: mp.Environment = ENVIRONMENT, **options: Any) -> Any:
    return mp.simulate(paper.PLANS, environment, POLICIES, 20, 4, seed=1, jobs=jobs, **options)


def kept() -> list[int]:
    """Return the processes that are kept."""
    return [] if executors._kept is None else sorted(p.pid or 0 for p in executors._kept.workers())


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    executors.release()
    yield
    executors.release()


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
def test_processes_are_kept_for_the_next_run() -> None:
    alone = run(jobs=1)
    assert kept() == []
    first = run()
    processes = kept()
    assert len(processes) == 2
    second = run()
    assert kept() == processes
    assert (first.regret == alone.regret).all()
    assert (second.regret == alone.regret).all()


def test_fewer_jobs_use_some_of_them_and_more_jobs_replace_them() -> None:
    with local_processes(3) as three:
        list(three.map(nap, [0.2] * 3))
    with local_processes(2) as some:
        assert some is three
        assert some.in_use == 2
    with local_processes(4) as four:
        assert four is not three
    with pytest.raises(RuntimeError):
        three.submit(nap, 0)


@pytest.mark.slow
def test_a_dead_worker_is_replaced() -> None:
    alone = run()
    processes, pool = kept(), executors._kept
    assert pool is not None
    os.kill(processes[0], signal.SIGKILL)
    wait_until(lambda: not all(worker.is_alive() for worker in pool.workers()))
    assert (run().regret == alone.regret).all()
    assert not set(kept()) & set(processes)


def test_runs_side_by_side_have_processes_of_their_own() -> None:
    with local_processes(2) as mine, local_processes(2) as yours:
        assert mine is not yours
    assert executors._kept is mine  # the last that was given back


def breaks_down(t: int, past: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.zeros(6) + 1 // (10 - t)


def test_all_are_gone_at_once_when_something_goes_wrong() -> None:
    run()
    processes = kept()
    with pytest.raises(ZeroDivisionError):
        run(environment=mp.Adversarial(breaks_down))
    assert kept() == []
    for process in processes:
        wait_until(lambda process=process: is_gone(process))  # type: ignore[misc]


def test_idle_processes_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "IDLE", 0.05)
    run()
    wait_until(lambda: executors._kept is None)


@pytest.mark.parametrize("change", ["module", "path", "variable"])
def test_what_began_otherwise_is_not_kept(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has imported a module goes on with what was in it."""
    module = tmp_path / "habits_of_mine.py"
    module.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    __import__(module.stem)
    processes = LocalProcesses(2)
    assert processes.can_serve(2)
    if change == "module":
        os.utime(module, ns=(1, 1))
    elif change == "path":
        monkeypatch.syspath_prepend(tmp_path / "other")
    else:
        monkeypatch.setenv("NUMBA_OPT", "2")
    assert not processes.can_serve(2)


def test_a_forked_process_leaves_them_to_its_parent() -> None:
    run()
    processes = kept()

    def work(number: int) -> None:
        assert kept() == []
        assert run(jobs=1).regret.shape == (2, 4, 20)

    in_processes(1, work)
    run()
    assert kept() == processes


# ---------------------------------------------------------------- nothing is left behind

PROGRAM = """
import sys
import multiplay as mp

if __name__ == "__main__":
    plans = mp.Transport([1, 1], [1, 1])
    policies = {"GenCTS": mp.GenCTS(), "random": mp.RandomAction()}
    mp.simulate(plans, mp.Stochastic(mp.Uniform(0, [0.2, 0.9, 0.9, 0.4])), policies, 20, 4, jobs=2)
    print("done", flush=True)
    if sys.argv[1] == "forks":
        import os
        if os.fork():
            os.wait()
    elif sys.argv[1] == "is killed":
        sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes in /proc")
@pytest.mark.parametrize("end", ["is killed", "ends", "forks"])
def test_no_process_outlives_its_program(end: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    quiet = ["-W", "ignore::DeprecationWarning"]  # of a fork beside threads, since Python 3.12
    with subprocess.Popen(
        [sys.executable, *quiet, program, end], **pipes, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        if end == "is killed":
            assert len(alive(process.pid)) >= 3
            process.kill()
        _, complained = process.communicate(timeout=TIME_LIMIT)
    assert end == "is killed" or complained == ""
    assert process.returncode == (-signal.SIGKILL if end == "is killed" else 0)
    wait_until(lambda: alive(process.pid) == [])


# ---------------------------------------------------------------- blocks


class Noted(Executor):
    """Runs everything at once, and writes down what."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []

    def submit(self, run: Callable[..., Any], /, *blocks: Any, **_: Any) -> Future[Any]:
        self.blocks += blocks
        done: Future[Any] = Future()
        done.set_result(run(*blocks))
        return done


def test_the_largest_blocks_are_begun_first() -> None:
    executor, policies = Noted(), dict(paper.POLICIES)
    result = mp.simulate(
        paper.PLANS, ENVIRONMENT, policies, 60, 5, seed=1, executor=executor, block=3
    )
    efforts = [effort(b.actions, b.policy, len(b.trials)) for b in executor.blocks]
    assert len(efforts) == 8
    assert efforts == sorted(efforts, reverse=True)
    assert executor.blocks[0].policy == policies["LBINFV"]
    assert executor.blocks[-1].policy == policies["GenCTS"]
    alone = mp.simulate(paper.PLANS, ENVIRONMENT, policies, 60, 5, seed=1)
    assert (result.regret == alone.regret).all()


@pytest.mark.parametrize("jobs", [1, 2, 3, 16, 10_000])
@pytest.mark.parametrize("trials", [1, 30, 1000])
def test_trials_are_cut_for_all_jobs_and_no_further(jobs: int, trials: int) -> None:
    for policies in ([mp.GenCTS()], list(paper.POLICIES.values())):
        sizes = sizes_of_blocks(paper.PLANS, policies, trials, jobs)
        blocks = sum(-(-trials // size) for size in sizes)
        assert all(1 <= size <= 250 for size in sizes)
        assert blocks >= min(jobs, trials) / 2
        if trials <= 250:
            assert blocks <= max(len(policies), 4 * jobs)


def test_policies_that_are_few_are_cut_and_many_are_not() -> None:
    policies = list(paper.POLICIES.values())
    assert sizes_of_blocks(paper.PLANS, policies[:1], 30, 2) == [15]
    assert sizes_of_blocks(paper.PLANS, policies, 30, 2) == [30] * 4
