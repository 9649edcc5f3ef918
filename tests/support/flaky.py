"""Unreliable connections to a service: requests and responses are lost at random."""

import random
from collections import Counter

import httpx
import pytest

from multiplay.remote import client
from multiplay.remote.client import ConnectionOptions

FAILURES = {
    "request lost": 0.06,
    "not connected": 0.04,
    "refused by a proxy": 0.06,
    "response lost": 0.12,
    "response replaced": 0.06,
}


class UnreliableTransport(httpx.BaseTransport):
    """A transport that loses some requests and responses."""

    def __init__(self, chance: random.Random, seen: Counter[str]) -> None:
        self._inside, self._chance, self._seen = httpx.HTTPTransport(), chance, seen

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        failure = self._failure()
        if request.url.path == "/v1/key" and failure == "not connected":
            failure = ""  # connect() does not retry
        self._seen[failure or "fine"] += 1
        if failure == "request lost":
            raise httpx.WriteError("lost", request=request)
        if failure == "not connected":
            raise httpx.ConnectError("refused", request=request)
        if failure == "refused by a proxy":
            return httpx.Response(503, text="<h1>later</h1>", request=request)
        response = self._inside.handle_request(request)
        if failure in ("response lost", "response replaced"):
            response.read()
            response.close()
        if failure == "response lost":
            raise httpx.ReadError("lost", request=request)
        if failure == "response replaced":
            return httpx.Response(504, text="<h1>too late</h1>", request=request)
        return response

    def _failure(self) -> str:
        left = self._chance.random()
        for failure, share in FAILURES.items():
            left -= share
            if left < 0:
                return failure
        return ""

    def close(self) -> None:
        self._inside.close()


def make_flaky(monkeypatch: pytest.MonkeyPatch, seed: int) -> Counter[str]:
    """Make all connections unreliable, without pauses; return counts of failures."""
    chance, seen = random.Random(seed), Counter[str]()
    monkeypatch.setattr(
        ConnectionOptions, "transport", lambda options: UnreliableTransport(chance, seen)
    )
    monkeypatch.setattr(client, "sleep", lambda seconds: None)
    return seen
