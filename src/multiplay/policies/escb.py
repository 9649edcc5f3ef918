"""Optimism action by action: a confidence bound for every action, from all of its arms at once."""

import math
from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import positive_integer
from multiplay.policies.averages import Averages, averages, unseen_first
from multiplay.policies.base import Play
from multiplay.policies.listing import all_actions
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray, IntArray


@dataclass(frozen=True)
class ESCB(Averages):
    """Play the action whose value is the best that can be believed.

    Every arm is seen once. Then, in round t, with N_i samples of arm i and their average mean_i,

    1. f = ln t + 4 m ln ln t, where m is the largest number of different arms in an action and
       ln ln t counts as 0 up to t = e;
    2. index(a) = <a, mean> - sqrt(f / 2 sum_i a_i^2 / N_i) for losses, + for rewards;
    3. a is the action of the least index (for rewards: the largest), the first one of equals;
    4. N_i += a_i: every unit is a sample. Units that were not seen count for nothing.

    The estimated loss of a, <a, mean>, has variance sum_i a_i^2 sigma_i^2 / N_i; for actions of 0
    and 1 the index is the published one. The root joins the arms, so no oracle for linear costs
    finds the least index, and in general the problem is NP-hard: all actions are listed and
    compared, and a set with more than ``limit`` of them is refused. The objective must be linear.

    Parameters
    ----------
    limit
        Most actions to compare in every round and trial.

    References
    ----------
    Combes, Talebi, Proutiere, Lelarge: Combinatorial Bandits Revisited, NIPS 2015. (ESCB-2: the
    index with a closed form.)

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), ESCB(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    needs_linear = True

    limit: int = 10_000

    def __post_init__(self) -> None:
        positive_integer("limit", self.limit, "Leave it out for 10000.")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Refuse what cannot be listed; nothing is known."""
        self.compared(actions)
        return super().start(actions, horizon, trials)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Compare all actions."""
        best = (actions.sign * self.index(actions, state)).argmin(axis=1)
        return Play(unseen_first(actions, state, self.compared(actions)[best]))

    def index(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the index of every action of ``actions.enumerate()``, shape (trials, |A|)."""
        everything = self.compared(actions)
        t, m = state["t"].astype(float), (everything > 0).sum(axis=1).max()
        f = np.log(t) + 4 * m * np.log(np.log(np.maximum(t, math.e)))
        mean, samples = averages(state), np.maximum(state["count"], 1)
        value = np.zeros((len(t), len(everything)))
        if actions.offset is not None:
            value += everything @ actions.offset
        doubt = np.zeros_like(value)
        for i, a in enumerate(everything.T.astype(float)):  # a sum in the same order in any company
            value += mean[:, i, None] * a
            doubt += a**2 / samples[:, i, None]
        index: FloatArray = value - actions.sign * np.sqrt(f[:, None] / 2 * doubt)
        return index

    def compared(self, actions: ActionSet) -> IntArray:
        """Return all actions, or say why there are too many."""
        instead = "CombUCB or GaussianCTS, which ask for one best action"
        return all_actions("ESCB", actions, self.limit, instead)
