"""Random streams of many trials, spawned once: 40,000 of them take a second."""

from functools import cache

from multiplay import Streams
from multiplay.random import POLICY

MOST = 40_000


def many_streams(trials: int) -> Streams:
    """Return ``Streams.spawn(0, POLICY, range(trials))``."""
    return Streams(_spawned().state[:trials])


@cache
def _spawned() -> Streams:
    return Streams.spawn(0, POLICY, range(MOST))
