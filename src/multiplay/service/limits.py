"""What a stranger may ask of the service: limits, and sets that are built from data."""

from dataclasses import dataclass


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
