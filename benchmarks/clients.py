"""Load generator: HTTP clients in one process that send the next request after each response.

``python -m benchmarks.clients URL KEY THREADS SECONDS``: KEY is empty for the bare route. Prints
the seconds of every request by kind, as JSON.
"""

import json
import sys
import threading
import time
import uuid
from collections import defaultdict
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit


class Client:
    """A client with its own connection."""

    def __init__(self, url: str, key: str, times: dict[str, list[float]]) -> None:
        parts = urlsplit(url)
        self._path, self._times = parts.path, times
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._key = {"Authorization": f"Bearer {key}"} if key else {}

    def post(self, kind: str, path: str, body: Any) -> Any:
        """Send a request, record the seconds until the response, and return its content."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        began = time.perf_counter()
        self._connection.request("POST", self._path + path, json.dumps(body), headers | self._key)
        response = self._connection.getresponse()
        content = response.read()
        self._times[kind].append(time.perf_counter() - began)
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {content.decode()}")
        return json.loads(content)

    def work(self, end: float) -> None:
        """Ask and tell, or write rows, until the time ``end``."""
        while time.monotonic() < end:
            if not self._key:
                self.post("row", "", {"text": "x" * 100})
                continue
            play = self.post("ask", "/ask", {})
            losses = {arm: [0.5] * units for arm, units in play["plan"].items() if units}
            self.post("tell", f"/plays/{play['id']}/tell", {"losses": losses})


def main(url: str, key: str, threads: int, seconds: float) -> None:
    """Run clients in threads, and print the seconds of all requests."""
    times: dict[str, list[float]] = defaultdict(list)
    clients = [Client(url, key, times) for _ in range(threads)]
    end = time.monotonic() + seconds
    running = [threading.Thread(target=client.work, args=(end,)) for client in clients]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(json.dumps(times))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
