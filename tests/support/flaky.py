"""A way to a service on which things get lost, before they arrive and after they were done."""

import random
from collections import Counter

import httpx
import pytest

from multiplay.remote import patience
from multiplay.remote.client import Way

FATES = {
    "lost on the way there": 0.06,
    "not even connected": 0.04,
    "refused by the way": 0.06,
    "answer lost": 0.12,
    "answer replaced": 0.06,
}


class Flaky(httpx.BaseTransport):
    """Sends requests, as a rule."""

    def __init__(self, chance: random.Random, seen: Counter[str]) -> None:
        self._inside, self._chance, self._seen = httpx.HTTPTransport(), chance, seen

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fate = self._fate()
        if request.url.path == "/v1/key" and fate == "not even connected":
            fate = ""  # who connects is told so at once
        self._seen[fate or "fine"] += 1
        if fate == "lost on the way there":
            raise httpx.WriteError("lost", request=request)
        if fate == "not even connected":
            raise httpx.ConnectError("nobody there", request=request)
        if fate == "refused by the way":
            return httpx.Response(503, text="<h1>later</h1>", request=request)
        response = self._inside.handle_request(request)
        if fate in ("answer lost", "answer replaced"):
            response.read()
            response.close()
        if fate == "answer lost":
            raise httpx.ReadError("lost", request=request)
        if fate == "answer replaced":
            return httpx.Response(504, text="<h1>too late</h1>", request=request)
        return response

    def _fate(self) -> str:
        left = self._chance.random()
        for fate, share in FATES.items():
            left -= share
            if left < 0:
                return fate
        return ""

    def close(self) -> None:
        self._inside.close()


def make_flaky(monkeypatch: pytest.MonkeyPatch, seed: int) -> Counter[str]:
    """Let all ways be like that, without pauses; return what happens to requests."""
    chance, seen = random.Random(seed), Counter[str]()
    monkeypatch.setattr(Way, "transport", lambda way: Flaky(chance, seen))
    monkeypatch.setattr(patience, "sleep", lambda seconds: None)
    return seen
