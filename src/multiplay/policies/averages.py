"""Average losses of the arms, which many policies are based on."""

from abc import abstractmethod

import numpy as np

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.kernels import averages as kernels
from multiplay.policies.base import Play, arm_totals
from multiplay.policies.forgetting import Forgetting
from multiplay.random import Rng
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

FADED = kernels.FADED


class Averages(Forgetting):
    """Counts: N_i += the units seen, S_i += the sum of their losses, t += 1 in a reported round.

    The start of every policy that believes in averages; a subclass writes ``choose``. Units that
    were played and not seen count for nothing; external plans count without being a round. Those
    that forget, do so before each round reported: N_i and S_i are multiplied by ``discount``, or
    lose the round that leaves the ``window``.
    """

    sums = ("count", "sum")

    changing = True
    partial = True
    absorbs = True
    restarts = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state :math:`N_i = S_i = 0`; t = 1 is the round to be played."""
        shape = (trials, actions.d)
        t = np.ones(trials, dtype=np.int64)
        sums = {"t": t, "count": np.zeros(shape), "sum": np.zeros(shape)}
        return sums | self.slots(*shape)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count every unit, also those of external plans."""
        if self.window is None:
            count(state, feedback)
        else:
            self.add(state, feedback.seen, feedback.total)

    def forget(self, state: Arrays, rounds: int) -> None:
        """Discount :math:`N_i` and :math:`S_i`, or drop what is outside the window."""
        super().forget(state, rounds)
        if self.window is not None:
            state["sum"] *= state["count"] > 0  # no rounding is left where nothing is

    def believed(self, state: Arrays) -> FloatArray:
        """Return :math:`(1/2 + S_i) / (1 + N_i)`, where :math:`N_i` losses sum to :math:`S_i`."""
        return predicted(state)


class ArmIndex(Averages):
    """Averages, and the best action for one number of each arm: its ``index``.

    Arms that were never seen are played first.
    """

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for the index."""
        theta = self.index(actions, state, rng)
        if self.replan is not None:
            return self.best_play(actions, state, theta, unseen(actions, state))
        return Play(unseen_first(actions, state, actions.best(theta)))

    @abstractmethod
    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return the numbers for which ``choose`` plays the best action, (trials, d)."""


def as_means(actions: ActionSet, theta: FloatArray) -> FloatArray:
    """Return draws of the means, cut to [0, 1] where the value of an action is not affine."""
    return theta if actions.affine else np.clip(theta, 0.0, 1.0)


def count(state: Arrays, feedback: Feedback) -> None:
    """Add the units seen to N_i, and the sum of their losses to S_i."""
    N = state["count"]
    kernels.count(feedback.seen, arm_totals(feedback, N), N, state["sum"])


def averages(state: Arrays) -> FloatArray:
    """Return S_i / N_i, the average loss of a unit so far; 0 for an arm never seen."""
    average: FloatArray = state["sum"] / samples(state)
    return average


def samples(state: Arrays) -> FloatArray:
    """Return N_i; 1 for an arm that counts as unseen, so that one can divide by it."""
    return np.where(state["count"] < FADED, 1.0, state["count"])


def predicted(state: Arrays) -> FloatArray:
    """Return (1/2 + S_i) / (1 + N_i), by least squares; 1/2 for an arm never seen."""
    prediction: FloatArray = (0.5 + state["sum"]) / (1 + state["count"])
    return prediction


def unseen_first(actions: ActionSet, state: Arrays, action: IntArray) -> IntArray:
    """Replace the action where an arm was never seen: play as many units of such arms as possible.

    So every arm that can be played is seen after at most d rounds reported, and again when it is
    forgotten.
    """
    if kernels.any_unseen(state["count"], actions._n):
        never = unseen(actions, state)
        early, action = never.any(axis=1), action.copy()
        action[early] = actions.argmin(-never[early].astype(float))
    return action


def unseen(actions: ActionSet, state: Arrays) -> BoolArray:
    """Return the arms that can be played and were never seen, (trials, d)."""
    never: BoolArray = (state["count"] < FADED) & (actions.n >= 1)
    return never
