"""Dask clusters: an executor on the workers of a scheduler."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
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
        yield ClusterExecutor(client), threads
    finally:
        client.close()


class ClusterExecutor(Executor):
    """An executor on the workers of a Dask client, which may lose workers.

    ``Client.get_executor`` reads the state of a task after it has fetched the result. Where a
    worker dies in between, the state is "lost", and that executor raises an error although it has
    the result. ``result`` of a Dask future waits until a lost result has been computed again.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future result of a function on a worker."""
        task, future = self.client.submit(function, *args, **kwargs), Future[Any]()

        def settle(task: Any) -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(task.result())
            except BaseException as error:  # the error of the function, or a cancelled task
                future.set_exception(error)

        task.add_done_callback(settle)
        future.add_done_callback(lambda future: task.cancel() if future.cancelled() else None)
        return future
