"""Lower bounds of one instance: the regret c log T that every good policy has.

Once the best action is known, c is the value of a game, which ``game.py`` solves.
``docs/lower-bound.md`` derives it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import (
    check_instance,
    for_each_arm,
    numbers,
    positive_integer,
    whole_numbers,
)
from multiplay._support.formatting import Table, counted, number
from multiplay._support.html import HasPanel, Panel
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.theory.families import Family, Gaussian
from multiplay.theory.game import UNPLAYED, Game, best_exploration, smallest, totals_game
from multiplay.types import FloatArray, IntArray

TIE = 1e-12  # gaps below this, relative to the losses, are rounding errors
ACTIVE = 1e-6
NUDGE = 1e-9  # relative to the losses: what changes with it is tied
LARGEST_TABLE = 20_000_000  # numbers in one table
FEEDBACK = ("units", "total")
SHOWN_ARMS, SHOWN_ROUNDS = 20, (1_000, 100_000, 10_000_000)  # in a notebook


@dataclass(frozen=True, eq=False)
class LowerBound(HasPanel):
    r"""No policy that is good on every instance has less regret than ``constant * log(T)``.

    Attributes
    ----------
    constant : float
        c, the smallest possible limit of :math:`R_T / \log T`.
    rates : array of shape (d,)
        Plays z that reach it, per :math:`\log T` and beyond those of the best action: in T rounds
        arm i is played about :math:`a^*_i T + z_i \log T` times. Not negative on the arms that the
        best action leaves out; of any sign on its own; :math:`\langle z, \ell \rangle = c` (-c for
        rewards) on a set without known costs.
    active : array of shape (k, d)
        The actions that the exploration is there to rule out: with less they could be the best.
    best : array of shape (d,)
        The best action :math:`a^*`.

    Examples
    --------
    >>> from multiplay import Budget
    >>> from multiplay.theory import Gaussian, lower_bound
    >>> bound = lower_bound(Budget(1, [1, 1]), [0.2, 0.5], Gaussian(0.25))
    >>> bound.best, bound.active
    (array([1, 0]), array([[0, 1]]))
    >>> bound.curve([1000, 1_000_000]).round(1)  # log T * 2 * 0.25 / 0.3
    array([11.5, 23. ])
    """

    constant: float
    rates: FloatArray
    active: IntArray
    best: IntArray

    def curve(self, rounds: ArrayLike) -> FloatArray:
        r"""Return :math:`c \log t` of these rounds, to be drawn below regret."""
        t = numbers("rounds", rounds)
        if (t < 1).any():
            got = f"{t[t < 1].flat[0]:g}"
            raise InvalidInput(
                "rounds", "numbers of at least 1", got, "Give round numbers of at least 1."
            )
        return np.asarray(self.constant * np.log(t))

    def _panel(self) -> Panel:
        """Return c, its regret at some horizons, and the arms with the highest rates."""
        curve = zip(SHOWN_ROUNDS, self.curve(SHOWN_ROUNDS).tolist(), strict=True)
        facts = {
            "regret": f"at least {number(self.constant)} log T in the long run",
            **{f"T = {T:,}": number(regret) for T, regret in curve},
            "to be ruled out": counted(len(self.active), "action"),
        }
        most = np.sort(np.argsort(-np.abs(self.rates), kind="stable")[:SHOWN_ARMS])
        rows = [[str(i + 1), str(self.best[i]), number(self.rates[i])] for i in most]
        more = len(self.rates) - len(rows)
        note = "Rate: plays beyond those of the best action, per log T."
        note += f" And {more} more arms, with smaller rates." if more else ""
        table = Table("", ["arm", "best action", "rate"], rows, note)
        return Panel("LowerBound", facts, (table,))


def lower_bound(
    actions: ActionSet,
    means: ArrayLike,
    family: Family,
    copies: ArrayLike | None = None,
    limit: int = 20_000,
    feedback: str = "units",
) -> LowerBound:
    r"""Return the least c with regret of at least c log T in the long run, and plays that reach it.

    With J the arms that the best action :math:`a^*` leaves out, :math:`\ell` the means and
    :math:`\text{gap}_a = \langle a - a^*, \ell \rangle`,

    .. math::

        c &= \min_{z \in \operatorname{cone}(\mathcal{A} - a^*)} \langle \ell, z \rangle
            \quad \text{such that for every } a \ne a^* \\
        &\quad \min_k \Bigl\{\sum_{i \in J} z_i \operatorname{KL}(\ell_i, k_i) \,:\,
            \sum_{i \in J} a_i (\ell_i - k_i) \ge \text{gap}_a\Bigr\} \ge 1.

    A policy that sees only the total of each round needs more. With
    :math:`v_a = \sum_i a_i \sigma_i^2`,

    .. math::

        c &= \min_{w \ge 0} \sum_a w_a \,\text{gap}_a
            \quad \text{such that for every } a \ne a^* \\
        &\quad \min_k \Bigl\{\sum_b w_b \frac{\langle b, k - \ell \rangle^2}{2 v_b} \,:\,
            \langle a^*, k \rangle = \langle a^*, \ell \rangle, \;
            \langle a - a^*, k \rangle \le 0\Bigr\} \ge 1.

    Parameters
    ----------
    actions
        A set with linear losses or rewards and one best action. Known costs of arms and of whole
        actions (``Model``) are part of the gaps.
    means
        The mean loss (or reward) of a unit of each arm; a number if it is the same for all.
    family
        ``Gaussian(variance)`` or ``Bernoulli()``: the distributions that a policy must allow for.
    copies
        The bound for a policy on copied arms, :math:`b_i \ge n_i` of arm i, that learns about each
        copy alone: an action then profits from :math:`a_i / b_i` of the plays of arm i only.
    limit
        The most actions that are looked at, all of them one by one. Larger sets have a bound only
        where every arm can be ruled out alone, as on most networks and on all matroids (and none
        with ``feedback="total"``).
    feedback
        What a policy sees of a round: ``"units"``, the loss of each unit, or ``"total"``, only
        their sum. The family describes a single unit in both cases, and units are independent. With
        ``"total"`` it must be ``Gaussian``, unless no action has more than one unit.

    Returns
    -------
    LowerBound
        c, and the plays that reach it.

    References
    ----------
    Graves, Lai (1997). Asymptotically efficient adaptive choice of control laws in controlled
    Markov chains. SIAM Journal on Control and Optimization 35.

    Combes, Talebi, Proutiere, Lelarge (2015). Combinatorial bandits revisited. NeurIPS.

    Lattimore, Szepesvari (2017). The end of optimism? An asymptotic analysis of finite-armed linear
    bandits. AISTATS.

    Examples
    --------
    >>> from multiplay import Budget, Transport
    >>> from multiplay.theory import Gaussian, lower_bound
    >>> one_of_three = lower_bound(Budget(1, [1, 1, 1]), [0.1, 0.3, 0.5], Gaussian(0.25))
    >>> round(one_of_three.constant, 6)  # 2 * 0.25 * (1 / 0.2 + 1 / 0.4)
    3.75
    >>> one_of_three.rates.round(4)
    array([-15.625,  12.5  ,   3.125])

    Copied arms cost more, wherever an action plays some arm that the best one leaves out more than
    once:

    >>> plans, costs = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> native = lower_bound(plans, costs, Gaussian(0.02))
    >>> copied = lower_bound(plans, costs, Gaussian(0.02), copies=[1, 1, 4, 4, 5, 5])
    >>> round(native.constant, 4), round(copied.constant, 4)
    (0.4, 1.2)

    To see totals only costs more, too:

    >>> totals = lower_bound(plans, costs, Gaussian(0.02), feedback="total")
    >>> round(totals.constant, 4)
    2.6243
    """
    means = _checked_means(actions, means, family)
    counts = None if copies is None else checked_copies(actions, copies)
    _check_feedback(feedback, copies)
    if feedback == "total" and actions.M > 1:  # the total of a single unit is that unit
        return _from_totals(actions, means, family, limit)
    here = means if actions.sense == "min" else family.mirrored(means)
    everything = _listed(actions, limit)
    if everything is None:
        if actions.extra:
            raise _too_large(actions, "a set with at most this many actions, with known costs")
        return _arm_by_arm(actions, actions.costs_of(means), here, family, counts)
    best, alternatives, gaps = ranked(actions, everything, means)
    left_out = np.where(best == 0, alternatives, 0).astype(float)
    candidates = family.reachable(here, left_out, gaps)
    if not candidates.any():
        return _nothing_to_learn(best)
    rays = (alternatives - best) / gaps[:, None]
    nature = _Nature(family, here, left_out[candidates], gaps[candidates], counts)
    game = Game(rays, np.unique(rays.argmax(axis=0)), candidates, nature)
    return _solution(game, best, alternatives, gaps)


def _from_totals(actions: ActionSet, means: FloatArray, family: Family, limit: int) -> LowerBound:
    if not isinstance(family, Gaussian):
        raise InvalidInput(
            "family",
            "Gaussian with feedback='total': the total of several units is not of this family",
            repr(family),
            "Use Gaussian(variance=means * (1 - means)), with the variances of losses 0 or 1.",
        )
    if _listed(actions, limit) is None:
        raise _too_large(actions, "a set with at most this many actions, with feedback='total'")
    listed = actions.listed(limit)
    if listed.K * listed.s**2 > LARGEST_TABLE:
        raise InvalidInput(
            "actions",
            f"at most {LARGEST_TABLE // listed.s**2} actions that span {listed.s} dimensions",
            f"{listed.K} actions",
            "Take a smaller set: with feedback='total' they do not fit into one table.",
        )
    best, alternatives, gaps = ranked(actions, listed.E, means)
    variances = alternatives @ np.broadcast_to(family.variance, actions.d)
    game = totals_game(best @ listed.S, alternatives @ listed.S, gaps, variances)
    return _nothing_to_learn(best) if game is None else _solution(game, best, alternatives, gaps)


def _solution(game: Game, best: IntArray, alternatives: IntArray, gaps: FloatArray) -> LowerBound:
    mixture = best_exploration(game)
    evidence, _ = game.nature.answers(mixture @ game.rays)
    least = float(evidence.min())
    active = alternatives[game.candidates][evidence <= least * (1 + ACTIVE)]
    return LowerBound(1 / least, mixture / gaps @ (alternatives - best) / least, active, best)


def _nothing_to_learn(best: IntArray) -> LowerBound:
    return LowerBound(0.0, np.zeros(len(best)), np.zeros((0, len(best)), best.dtype), best)


class _Nature:
    """Shifts of the means of the arms that a* leaves out, where every unit is seen."""

    def __init__(
        self,
        family: Family,
        means: FloatArray,
        actions: FloatArray,
        gaps: FloatArray,
        copies: FloatArray | None,
    ) -> None:
        self.family, self.means, self.actions, self.gaps = family, means, actions, gaps
        # what is not played is not shifted: any share will do
        self.shares = np.ones(1) if copies is None else np.where(actions > 0, actions / copies, 1.0)

    def answers(self, plays: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the evidence of ``plays`` against each answer, and the hardest answers."""
        some = np.maximum(plays, UNPLAYED * np.abs(plays).max()) * self.shares
        some = np.broadcast_to(some, self.actions.shape)
        shifts = self.family.closest(self.means, self.actions, self.gaps, some)
        each = self.family.information(self.means, shifts) * self.shares
        evidence = each @ plays
        return evidence, each[smallest(evidence)]


def _arm_by_arm(
    actions: ActionSet,
    losses: FloatArray,
    here: FloatArray,
    family: Family,
    copies: FloatArray | None,
) -> LowerBound:
    """Return the bound of a large set in which every arm can be ruled out alone.

    Let price_i be the least gap_a / a_i, what a play of arm i costs. If some action has it and no
    other arm that a* leaves out, and if a* is still best where each of them costs its price less,

        c = sum_J copies_i price_i / KL(l_i, l_i - price_i).

    These are the matroids, and the networks whose best flow fills or empties all arcs but a tree.
    """
    if actions.d**2 > LARGEST_TABLE:
        raise _too_large(actions)
    best = actions.argmin(losses)
    _refuse_ties_on_its_arms(actions, losses, best)
    arms = np.flatnonzero((best == 0) & (actions.n > 0))
    steps = _cheapest_plays(actions, losses, best, arms)
    directions = (steps - best) / steps[np.arange(len(arms)), arms][:, None]
    prices = directions @ losses
    if copies is not None:
        steps = np.rint(best + directions).astype(np.int64)  # copies are learnt one by one
    cheaper = losses.copy()
    cheaper[arms] -= prices
    excess = (actions.argmin(cheaper) - best) @ cheaper
    # a step with two arms that a* leaves out would have an excess, too
    if excess < -NUDGE * (actions.n @ np.abs(losses)) or not actions.contains(steps).all():
        raise _too_large(actions)
    possible = family.reachable(here, np.eye(actions.d)[arms], prices)
    shifts = np.zeros(actions.d)
    shifts[arms[possible]] = prices[possible]
    rates = np.zeros(len(arms))
    rates[possible] = 1 / family.information(here, shifts)[arms[possible]]
    rates *= 1.0 if copies is None else copies[arms]
    return LowerBound(float(rates @ prices), rates @ directions, steps[possible], best)


def _cheapest_plays(
    actions: ActionSet, losses: FloatArray, best: IntArray, arms: IntArray
) -> IntArray:
    """Return for each arm the action with the least gap_a / a_i, by Dinkelbach's method."""
    rows = np.arange(len(arms))
    size = actions.n @ np.abs(losses)

    def favouring(prices: FloatArray) -> FloatArray:
        costs = np.tile(losses, (len(arms), 1))
        costs[rows, arms] -= prices
        return costs

    steps = actions.argmin(favouring(np.full(len(arms), 1 + 2 * size)))
    while True:
        prices = (steps - best) @ losses / steps[rows, arms]
        if (prices <= TIE * size).any():
            raise _two_best(best, steps[prices.argmin()])
        costs = favouring(prices)
        others = actions.argmin(costs)
        cheaper = ((others - best) * costs).sum(axis=1) < -TIE * size
        if not cheaper.any():
            return steps
        steps[cheaper] = others[cheaper]


def _refuse_ties_on_its_arms(actions: ActionSet, losses: FloatArray, best: IntArray) -> None:
    """Raise ``InvalidInput`` if more or less of an arm that the best action has is as good."""
    nudges = NUDGE * np.abs(losses).max() * np.eye(actions.d)[best > 0]
    for others in (actions.argmin(losses + nudges), actions.argmin(losses - nudges)):
        tied = (others != best).any(axis=1)
        if tied.any():
            raise _two_best(best, others[tied][0])


def _two_best(best: IntArray, other: IntArray) -> InvalidInput:
    return InvalidInput(
        "means",
        "means with one best action",
        f"two best actions, {best.tolist()} and {other.tolist()}",
        "Change the means a little: the bound is for one best action.",
    )


def _too_large(
    actions: ActionSet,
    expected: str = "a set with at most this many actions, or one whose arms can be ruled out one "
    "by one",
) -> InvalidInput:
    return InvalidInput(
        "limit",
        expected,
        repr(actions),
        "The bound compares all actions, because each could be the best: raise the limit, or use a "
        "smaller set.",
    )


def _listed(actions: ActionSet, limit: int) -> IntArray | None:
    most = positive_integer(
        "limit", limit, "Give a positive integer, the largest number of actions to list."
    )
    try:
        return actions.all_actions(most)
    except InvalidInput:  # there are too many
        return None


def ranked(
    actions: ActionSet, everything: IntArray, means: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the best action, all others, and how much more they lose, with known costs."""
    losses = actions.costs_of(means)
    known = actions.sign * actions.known(everything) if actions.extra else np.zeros(len(everything))
    first = int((everything @ losses + known).argmin())
    best, alternatives = everything[first].copy(), np.delete(everything, first, axis=0)
    gaps: FloatArray = (alternatives - best) @ losses + np.delete(known - known[first], first)
    size = np.abs(known).max() + (alternatives + best) @ np.abs(losses)
    tied = gaps <= TIE * size
    if tied.any():
        raise _two_best(best, alternatives[tied][0])
    return best, alternatives, gaps


def _checked_means(actions: ActionSet, means: ArrayLike, family: Family) -> FloatArray:
    check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
    check_instance("family", family, Family, "Gaussian(variance=0.25) or Bernoulli()")
    if not actions.affine:
        raise InvalidInput(
            "actions",
            "a set whose losses are linear in the action",
            repr(actions),
            "Use a set with a linear objective.",
        )
    values = _one_each("means", for_each_arm("means", means, actions.d), actions.d)
    family.check(values)
    return values


def checked_copies(actions: ActionSet, copies: ArrayLike) -> FloatArray:
    """Return the numbers of copies as floats, or raise ``InvalidInput`` for less than n_i."""
    counts = _one_each("copies", whole_numbers("copies", copies).astype(float), actions.d)
    few = counts < actions.n
    if few.any():
        arm = int(few.argmax())
        raise InvalidInput(
            "copies",
            f"at least n_i copies of arm i, {actions.n[arm]} of arm {arm + 1}",
            f"{counts[arm]:g}",
            "Give the number of copies of each arm: np.bincount(actions.duplicate().owner).",
        )
    return np.maximum(counts, 1)  # an arm that is never played needs none


def _check_feedback(feedback: str, copies: ArrayLike | None) -> None:
    if feedback not in FEEDBACK:
        raise InvalidInput(
            "feedback",
            "'units' or 'total'",
            repr(feedback),
            "Give 'units' if the loss of each unit is seen, 'total' if only their sum is.",
        )
    if feedback == "total" and copies is not None:
        raise InvalidInput(
            "copies",
            "None with feedback='total'",
            repr(copies),
            "Leave copies out: the total of a round is the same with copied arms.",
        )


def _one_each(argument: str, values: FloatArray, d: int) -> FloatArray:
    if values.shape != (d,):
        got = f"shape {values.shape}"
        raise InvalidInput(argument, f"shape ({d},)", got, "Give one number for each arm.")
    return values
