"""What a stranger may ask of the service: limits, and sets that are built from data."""

import json
from dataclasses import dataclass
from typing import Any

from multiplay.actions import ActionSet
from multiplay.policies import Policy
from multiplay.wire import builder


@dataclass(frozen=True)
class Limits:
    """The most that one request may have.

    Attributes
    ----------
    body, headers : int
        Bytes of a body, and of all headers.
    depth : int
        Lists and tables within each other.
    arms, units : int
        Of a set.
    waiting : int
        Plays of a study that wait for their losses.
    seconds : float
        To choose a play, and to send a body.
    rows : int
        Of a list, in one answer.
    streams : int
        Open streams of events, of one worker.
    connections : int
        Open connections, of one worker.
    """

    body: int = 2**20
    headers: int = 2**14
    depth: int = 32
    arms: int = 2_000
    units: int = 100_000
    waiting: int = 1_000
    seconds: float = 10.0
    rows: int = 1_000
    streams: int = 200
    connections: int = 1_000


def strict_json(body: bytes, limits: Limits) -> Any:
    """Return the JSON of a body."""
    return json.loads(body)


def build_actions(where: str, plain: Any, limits: Limits) -> ActionSet:
    """Build a set of plain data."""
    made: ActionSet = builder().build(where, plain, ActionSet)
    return made


def build_policy(where: str, plain: Any, limits: Limits) -> Policy:
    """Build a policy of plain data."""
    made: Policy = builder().build(where, plain, Policy)
    return made
