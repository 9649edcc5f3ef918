"""A run on Dask: a real scheduler, real workers, one of them killed in the middle."""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from multiplay import load
from multiplay.experiments.experiment import build
from test_experiment import SMALL, multiplay, plain, same, wait_for_blocks

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


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    (tmp_path / "small.toml").write_text(SMALL)
    blocks = tmp_path / "out" / "blocks"
    worker = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            dask(
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                port,
                "--no-dashboard",
                folder=tmp_path,
            )
        )
        first = stack.enter_context(dask(*worker, folder=tmp_path))
        stack.enter_context(dask(*worker, folder=tmp_path))
        _wait_for_workers(address, 2)
        command = [sys.executable, "-m", "multiplay", "run", "small.toml", "--out", "out"]
        run = subprocess.Popen(
            [*command, "--cluster", address], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        wait_for_blocks(blocks, 1, run)
        first.send_signal(signal.SIGKILL)
        assert run.poll() is None, "the worker must die before the run is done"
        _, said = run.communicate(timeout=200)
        assert run.returncode == 0, said
    result = load(tmp_path / "out" / "result.nc")
    assert same(result.dataset, build(plain()).run().dataset)


def _wait_for_workers(address: str, number: int) -> None:
    from distributed import Client

    with Client(address, timeout=60) as client:  # type: ignore[no-untyped-call]
        client.wait_for_workers(number, timeout=60)


def test_nobody_listens(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    for address in (f"tcp://127.0.0.1:{free_port()}", "nonsense"):
        done = multiplay("run", "small.toml", "--cluster", address, folder=tmp_path)
        assert done.returncode == 2, done.stderr
        assert "cluster: expected the address of a Dask scheduler" in done.stderr
        assert len(done.stderr.splitlines()) == 1
