"""How long to go on trying."""

from __future__ import annotations

import math
import random
from time import monotonic, sleep

from multiplay.errors import InvalidInput, StoreError

SHORTEST, LONGEST = 0.1, 5.0  # seconds before the second attempt, and at most before any


class Patience:
    """Waits longer before each new attempt, and gives up in the end.

    Parameters
    ----------
    seconds
        How long to go on trying; 0 for one attempt.
    """

    def __init__(self, seconds: float) -> None:
        self._end, self._failed = monotonic() + seconds, 0

    @property
    def left(self) -> float:
        """How many seconds are left; infinity before the first attempt has failed."""
        return max(self._end - monotonic(), 0.001) if self._failed else math.inf

    def wait(self, error: InvalidInput | StoreError, at_least: float = 0.0) -> None:
        """Wait before the next attempt; raise the error if it would come too late.

        The pauses double, and chance makes them shorter: clients that failed together do not come
        back together.
        """
        pause = min(SHORTEST * 2**self._failed, LONGEST) * random.uniform(0.5, 1.0)
        pause = max(pause, at_least)
        self._failed += 1
        if pause >= self.left:
            raise error
        sleep(pause)
