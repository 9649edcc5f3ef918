"""Dask clusters: an executor on the workers of a scheduler."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, cast

from multiplay.errors import InvalidInput

CONNECT_SECONDS = 10  # seconds to wait for a scheduler


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Yield an executor on the cluster of a Dask scheduler, and the number of its threads."""
    try:
        from distributed import Client
    except ImportError:
        raise InvalidInput(
            "cluster",
            "the package distributed",
            "no such package",
            "Run pip install 'multiplay[cluster]'.",
        ) from None
    try:
        client: Any = cast(Any, Client)(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:  # no scheduler there, or not an address
        raise InvalidInput(
            "cluster",
            "the address of a Dask scheduler, such as tcp://localhost:8786",
            f"{address} ({error})",
            "Start a scheduler with the command: dask scheduler.",
        ) from None
    try:
        threads = sum(client.nthreads().values())
        if threads == 0:
            raise InvalidInput(
                "cluster",
                "a scheduler with workers",
                f"{address}, which has no workers",
                f"Start workers with the command: dask worker {address}.",
            )
        yield cast(Executor, client.get_executor()), threads
    finally:
        client.close()
