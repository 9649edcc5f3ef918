"""Clients that ask and tell as fast as they are answered; run as a process of its own.

``python -m benchmarks.clients URL KEY THREADS SECONDS``: KEY is empty for the bare route. Prints
the seconds of every request, by kind, as JSON.
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
    """One client, with a connection of its own."""

    def __init__(self, url: str, key: str, took: dict[str, list[float]]) -> None:
        place = urlsplit(url)
        self._path, self._took = place.path, took
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
        self._key = {"Authorization": f"Bearer {key}"} if key else {}

    def post(self, what: str, path: str, body: Any) -> Any:
        """Send something, and note how long the answer took."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
        began = time.perf_counter()
        self._connection.request("POST", self._path + path, json.dumps(body), headers | self._key)
        answer = self._connection.getresponse()
        said = answer.read()
        self._took[what].append(time.perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {said.decode()}")
        return json.loads(said)

    def work(self, end: float) -> None:
        """Ask and tell, or write rows, until the end."""
        while time.monotonic() < end:
            if not self._key:
                self.post("row", "", {"text": "x" * 100})
                continue
            play = self.post("ask", "/ask", {})
            losses = {arm: [0.5] * units for arm, units in play["plan"].items() if units}
            self.post("tell", f"/plays/{play['id']}/tell", {"losses": losses})


def main(url: str, key: str, threads: int, seconds: float) -> None:
    """Let clients work, and print how long everything took."""
    took: dict[str, list[float]] = defaultdict(list)
    clients = [Client(url, key, took) for _ in range(threads)]
    end = time.monotonic() + seconds
    crew = [threading.Thread(target=client.work, args=(end,)) for client in clients]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    print(json.dumps(took))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
