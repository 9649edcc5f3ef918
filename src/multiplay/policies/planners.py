"""Planners: how the numbers of a round become a play.

``EveryRound`` calls the solver in every round, ``Rarely`` in few rounds. Where units have means of
their own, both solve by unit; arms that must be seen come first.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from multiplay.actions import ActionSet
from multiplay.actions.base import best_of, values_of
from multiplay.errors import InvalidInput
from multiplay.policies.base import Play
from multiplay.posteriors.base import Posterior
from multiplay.types import Arrays, FloatArray, IntArray

RARELY = "rarely"
SHARE = 0.035  # of the rounds so far that pass without a call: 182 calls in 10^4 rounds
MOST_PLANS = 32  # that are known in a trial
PLANS, PLAYED, ROUNDS = "replan_plans", "replan_played", "replan_rounds"

Plan: TypeAlias = Callable[[ActionSet, Arrays, FloatArray], Play]


@dataclass(frozen=True)
class EveryRound:
    """The best action, by a call of the solver in every round."""

    entries = ()  # of the state, that belong to one set

    def of(self, posterior: Posterior) -> Plan:
        """Return the function that plans."""
        return partial(best_after_unseen, posterior) if posterior.sees_first else best


def best(actions: ActionSet, state: Arrays, theta: FloatArray) -> Play:
    """Play the best action."""
    return Play(best_of(actions, theta))


def best_after_unseen(posterior: Any, actions: ActionSet, state: Arrays, theta: FloatArray) -> Play:
    """Play the best action, and before it as many units as possible of arms never seen."""
    action = actions.best(theta)
    if posterior.any_unseen(actions, state):
        action = unseen_first(posterior, actions, state, action)
    return Play(action)


def unseen_first(posterior: Any, actions: ActionSet, state: Arrays, action: IntArray) -> IntArray:
    """Replace the action where an arm was never seen: play as many units of such arms as possible.

    So every arm that can be played is seen after at most d rounds reported, and again when it is
    forgotten.
    """
    if posterior.any_unseen(actions, state):
        never = posterior.unseen(actions, state)
        early, action = never.any(axis=1), action.copy()
        action[early] = actions.argmin(-never[early].astype(float))
    return action


@dataclass(frozen=True)
class Rarely:
    r"""The best action, found by the solver in few rounds, or among known ones in the others.

    Round t of a set calls the solver if at least a share of 0.035 of
    the t - 1 rounds before it have passed since the last call: in each of the first 29 rounds, then
    in ever fewer, 182 times in :math:`10^4` rounds and 66 times more for each factor of 10. Each
    call adds its plan to the known plans of the set, at most 32; the one that was not played for
    the longest time makes room. In all other rounds it plays

    .. math::

        a = \operatorname*{arg\,min}_{a \in \text{known plans}} \langle a, \theta \rangle

    for the costs :math:`\theta` of the round: the new draw, or the new bounds. So it explores among
    the known plans in every round, as without the setting, and draws the same random numbers.
    Where an arm has to be seen first, the solver is called. A set that differs from that of the
    round before has no known plans, and its rounds count from 1: old plans may not be feasible in
    it, and those that are were not found for it. A set that is new in every round is solved in
    every round. With a window of W rounds or a discount :math:`\gamma`, at most W or
    :math:`1 / (1 - \gamma)` rounds count as passed. After reports are forgotten by hand, planning
    begins again. A change that ``Changes`` finds by itself does not begin it
    again: a plan that was never the best before is found by the next call.

    A plan that is kept for a whole epoch, and not only the list of known plans, is the method of
    Kim, Vojnovic and Oh, for upper confidence bounds. With Thompson sampling this costs more:
    with 182 calls on the sets of ``benchmarks/replan.py``, one draw that is kept for an epoch had
    1.5 times the regret, and epochs of single arms 2.8 times.

    Parameters
    ----------
    remembered
        The number of rounds that count, where old ones are forgotten.

    References
    ----------
    Kim, Vojnovic, Oh: Oracle-Efficient Combinatorial Semi-Bandits, NeurIPS 2025, arXiv 2510.21431.
    (Read: the abstract, section 4.1 and a part of the appendix, and of the adaptive and scheduled
    epochs summaries by others. Not read: the proofs, and the code. The bounds are not claimed here:
    the known plans are our own.)
    """

    entries = PLANS, PLAYED, ROUNDS

    remembered: float = math.inf

    def of(self, posterior: Posterior) -> Plan:
        """Return the function that plans."""
        return partial(self.best_play, posterior)

    def best_play(
        self, posterior: Posterior, actions: ActionSet, state: Arrays, theta: FloatArray
    ) -> Play:
        """Play the best action, or the best known one; the cache has the known plans."""
        unseen = posterior.unseen(actions, state) if posterior.sees_first else None
        trials, d = theta.shape[:2]
        known = state if ROUNDS in state else _no_plans(trials, d)
        plans, played, (passed, called) = known[PLANS], known[PLAYED], known[ROUNDS].T
        early = np.zeros(trials, bool) if unseen is None else unseen.any(axis=1)
        due = (passed - called >= SHARE * np.minimum(passed, self.remembered)) | early
        action = np.empty((trials, d), np.int64)
        if not due.all():
            kept = ~due
            values = values_of(actions, plans[kept].transpose(0, 2, 1), theta[kept])
            values = np.where(played[kept] > 0, actions.sign * values, np.inf)
            slot = values.argmin(axis=1)
            action[kept] = np.take_along_axis(plans[kept], slot[:, None, None], axis=2)[:, :, 0]
        solved = due & ~early
        if solved.any():
            action[solved] = best_of(actions, theta[solved])
        if unseen is not None and early.any():
            action[early] = actions.argmin(-unseen[early].astype(float))
        rounds = np.stack([passed + 1, np.where(due, passed, called)], axis=1)
        return Play(action, cache=_with(plans, played, action, rounds) | {ROUNDS: rounds})


def _no_plans(trials: int, d: int) -> Arrays:
    """Return the entries of the state before the first round of a set."""
    return {
        PLANS: np.zeros((trials, d, MOST_PLANS), dtype=np.int64),
        PLAYED: np.zeros((trials, MOST_PLANS), dtype=np.int64),
        ROUNDS: np.zeros((trials, 2), dtype=np.int64),  # that have passed, and at the last call
    }


def _with(plans: IntArray, played: IntArray, action: IntArray, rounds: IntArray) -> Arrays:
    """Return the known plans with those of a round; the same array if all of them are known."""
    same = (plans == action[:, :, None]).all(axis=1) & (played > 0)
    known, trials = same.any(axis=1), np.arange(len(action))
    slot = np.where(known, same.argmax(axis=1), played.argmin(axis=1))
    if not known.all():
        plans = plans.copy()
        plans[trials, :, slot] = action
    played = played.copy()
    played[trials, slot] = rounds[:, 0]
    return {PLANS: plans, PLAYED: played}


def check_replan(replan: Any) -> None:
    """Raise ``InvalidInput`` unless this is a setting.

    Examples
    --------
    >>> check_replan("rarely")
    """
    if replan is not None and not (isinstance(replan, str) and replan == RARELY):
        hint = "Leave it out to call the solver in every round."
        raise InvalidInput("replan", "None or 'rarely'", repr(replan), hint)
