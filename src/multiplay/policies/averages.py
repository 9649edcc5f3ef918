"""The average loss of every arm: what many policies believe in."""

import numpy as np

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.policies.base import Play, Policy
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray, IntArray


class Averages(Policy):
    """Count: N_i += the units seen, S_i += the sum of their losses, t += 1 for each round told.

    The start of every policy that believes in averages; a subclass writes ``choose``. Units that
    were played and not seen count for nothing; plans of others count without being a round.
    """

    changing = True
    partial = True
    absorbs = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """N = S = 0, and t = 1 is the round to be played."""
        shape = (trials, actions.d)
        t = np.ones(trials, dtype=np.int64)
        return {"t": t, "count": np.zeros(shape), "sum": np.zeros(shape)}

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Count every unit."""
        state["t"] += 1
        self.absorb(actions, state, feedback, rng)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count every unit, whoever chose it."""
        count(state, feedback)

    def believed(self, state: Arrays) -> FloatArray:
        """Return (1/2 + S_i) / (1 + N_i)."""
        return predicted(state)


def count(state: Arrays, feedback: Feedback) -> None:
    """N_i += the units seen, S_i += the sum of their losses."""
    state["count"] += feedback.seen
    state["sum"] += feedback.total


def averages(state: Arrays) -> FloatArray:
    """Return S_i / N_i, the average loss of a unit so far; 0 for an arm never seen."""
    average: FloatArray = state["sum"] / np.maximum(state["count"], 1)
    return average


def predicted(state: Arrays) -> FloatArray:
    """Return (1/2 + S_i) / (1 + N_i), by least squares; 1/2 for an arm never seen."""
    prediction: FloatArray = (0.5 + state["sum"]) / (1 + state["count"])
    return prediction


def unseen_first(actions: ActionSet, state: Arrays, action: IntArray) -> IntArray:
    """Replace the action where an arm was never seen: by as many units of such arms as can be.

    So every arm that can be played is seen after at most d rounds told.
    """
    unseen = (state["count"] == 0) & (actions.n >= 1)
    early = unseen.any(axis=1)
    action = action.copy()
    if early.any():
        action[early] = actions.argmin(-unseen[early].astype(float))
    return action
