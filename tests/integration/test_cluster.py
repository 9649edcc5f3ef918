"""A run on Dask: a real scheduler, real workers, one of them killed in the middle."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from commands import MULTIPLAY
from effort import TIME_LIMIT
from experiment_files import OWN, SMALL, USER_MODULES, plain, same, wait_for_blocks, written
from processes import wait_until

from multiplay import load
from multiplay.experiments.experiment import build, read
from multiplay.simulation.cluster import ClusterExecutor

pytest.importorskip("distributed")


@contextlib.contextmanager
def dask(*arguments: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        cwd=folder,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def cluster(workers: int, folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """Start a scheduler and its workers in a folder; yield the address, and the workers."""
    file = folder / "scheduler.json"
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask(*scheduler, "--scheduler-file", str(file), folder=folder))
        wait_until(lambda: file.exists() and file.read_text().endswith("\n}"))
        address = json.loads(file.read_text())["address"]
        worker = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        started = [stack.enter_context(dask(*worker, folder=folder)) for _ in range(workers)]
        _wait_for_workers(address, workers)
        yield address, started


def test_a_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    blocks = tmp_path / "out" / "blocks"
    with cluster(2, tmp_path) as (address, workers):
        command = [*MULTIPLAY, "run", "small.toml", "--out", "out"]
        run = subprocess.Popen(
            [*command, "--cluster", address], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        wait_for_blocks(blocks, 1, run)
        workers[0].send_signal(signal.SIGKILL)
        assert run.poll() is None, "the worker must die before the run is done"
        _, said = run.communicate(timeout=TIME_LIMIT)
        assert run.returncode == 0, said
    result = load(tmp_path / "out" / "result.nc")
    assert same(result.dataset, build(plain()).run().dataset)


def test_a_result_that_is_lost_while_it_is_fetched() -> None:
    """The state of the task is "lost" when its result arrives, as when a worker dies just then."""

    class Task:
        def __init__(self) -> None:
            self.status, self.cancelled = "pending", False

        def add_done_callback(self, callback: Callable[[Any], None]) -> None:
            self.finish = partial(callback, self)

        def result(self) -> tuple[int, ...]:
            self.status = "lost"
            return (1, 2, 3, 4)

        def cancel(self) -> None:
            self.cancelled = True

    class Client:
        def submit(self, task: Task) -> Task:
            return task

    executor = ClusterExecutor(Client())
    kept, cancelled = Task(), Task()
    result, never = executor.submit(cast(Any, kept)), executor.submit(cast(Any, cancelled))
    never.cancel()
    kept.finish()
    cancelled.finish()
    assert result.result(timeout=0) == (1, 2, 3, 4)
    assert cancelled.cancelled
    assert cancelled.status == "pending"
    assert not kept.cancelled


def test_own_classes_are_sent_to_a_cluster_in_another_folder(tmp_path: Path) -> None:
    """Twice, with a change in between; the folder is gone before anything is computed there."""
    from distributed import Client

    (tmp_path / "elsewhere").mkdir()
    with (
        cluster(1, tmp_path / "elsewhere") as (address, _),
        Client(address, timeout=TIME_LIMIT) as client,  # type: ignore[no-untyped-call]
    ):
        for times in (4, 5):
            file = written(
                tmp_path / "here",
                OWN.replace(", times = 3", ""),
                {**USER_MODULES, "helpers.py": f"TIMES = {times}\n", "pack/other.py": ""},
            )
            experiment = read(file)
            shutil.rmtree(tmp_path / "here")
            there = experiment.run(executor=ClusterExecutor(client))
            assert there.configuration["policies"]["Own"]["times"] == times
            assert (there.final("Own") == there.final("GenCTS")).all()


def _wait_for_workers(address: str, number: int) -> None:
    from distributed import Client

    with Client(address, timeout=TIME_LIMIT) as client:  # type: ignore[no-untyped-call]
        client.wait_for_workers(number, timeout=TIME_LIMIT)


HASTY = """
from multiplay.cli import main
from multiplay.simulation import cluster

cluster.CONNECT_SECONDS = 0.2
main()
"""


@pytest.mark.smoke
def test_no_scheduler_listens(tmp_path: Path) -> None:
    """The time limit is shorter than the default, so that the test is quick."""
    (tmp_path / "small.toml").write_text(SMALL)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without listening: it refuses connections
        for address in ("tcp://{}:{}".format(*taken.getsockname()), "nonsense"):
            command = [sys.executable, "-c", HASTY, "run", "small.toml", "--cluster", address]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 2, done.stderr
            assert "cluster: expected the address of a Dask scheduler" in done.stderr
            assert len(done.stderr.splitlines()) == 1
