"""The game behind the lower bound: the cheapest exploration that excludes every alternative.

The learner spreads one unit of regret over the actions that are not best. Nature answers with the
instance that is hardest to tell from the true one and in which another action is the best. The
evidence against an answer is linear in the plays, so that a linear program finds the equilibrium.
"""

from typing import NamedTuple, Protocol

import numpy as np

from multiplay.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-9  # between the two sides of the game
GOOD_ENOUGH = 1e-6
NEGLIGIBLE = 1e-9  # what is left of an action, relative to it, if it is a multiple of the best one
MOST_ROUNDS = 100
NEW = 5  # answers of each side in one round of the game
STEPS = (0.25, 0.5, 1.0)  # from the best mixture so far to the equilibrium
MOST_EVIDENCE = 1e9  # of one ray: more would change its share by less than the tolerance
UNPLAYED = 1e-12  # stands for no play at all, so that nature's answer is finite


class Nature(Protocol):
    """For every action that could be the best, the instance in which it nearly is the best."""

    def answers(self, plays: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the evidence of ``plays`` against each answer, (k,), and the hardest answers.

        A row of these is the evidence of one play of each kind, so that ``row @ plays`` is the
        evidence of the plays: an answer bounds what any plays can have.
        """


class Game(NamedTuple):
    """The strategies of both sides.

    ``rays`` has the plays that a unit of regret on each alternative buys; those of ``start``
    together leave nothing unplayed. ``candidates`` are the alternatives that could be the best, and
    ``nature`` has an answer for each of them.
    """

    rays: FloatArray
    start: IntArray
    candidates: BoolArray
    nature: Nature


def best_exploration(game: Game) -> FloatArray:
    """Return the mixture of rays, a unit of regret each, with the most evidence at the least.

    Both sides start with a few choices and add their best answers to an equilibrium of those.
    Between the best mixture so far and the equilibrium, nature's answers bend the most.
    """
    rays, chosen, _, nature = game
    inside = np.zeros(len(rays))
    inside[chosen] = 1 / len(chosen)
    evidence, answers = nature.answers(inside @ rays)
    least, most = evidence.min(), np.inf
    for _ in range(MOST_ROUNDS):
        outside = np.zeros(len(rays))
        payoff = np.clip(answers @ rays[chosen].T / least, 0, MOST_EVIDENCE)
        outside[chosen], weights = _equilibrium(payoff)
        worth = rays @ (weights @ answers)
        most = min(most, worth.max())
        for mixture in [(1 - step) * inside + step * outside for step in STEPS]:
            evidence, hardest = nature.answers(mixture @ rays)
            answers = np.concatenate([answers, hardest])
            if evidence.min() > least:
                inside, least = mixture, evidence.min()
        if most - least <= TOLERANCE * most:
            return inside
        chosen = np.union1d(chosen, smallest(-worth))
    if most - least <= GOOD_ENOUGH * most:
        return inside
    raise ArithmeticError(f"the lower bound is known to {(most - least) / most:.0e} only")


def _equilibrium(payoff: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mixed strategies of a matrix game: of the columns, which gain, and of the rows."""
    from scipy.optimize import linprog  # here: importing multiplay should not wait for it

    rows, columns = payoff.shape
    answer = linprog(
        np.append(np.zeros(columns), -1.0),
        A_ub=np.column_stack([-payoff, np.ones(rows)]),
        b_ub=np.zeros(rows),
        A_eq=np.append(np.ones(columns), 0.0)[None, :],
        b_eq=np.ones(1),
        bounds=[(0, None)] * columns + [(None, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        raise ArithmeticError(f"the lower bound was not found: {answer.message}")
    gains, losses = np.maximum(answer.x[:-1], 0), np.maximum(-answer.ineqlin.marginals, 0)
    return gains / gains.sum(), losses / losses.sum()


def smallest(values: FloatArray) -> IntArray:
    """Return the places of the few smallest values."""
    return np.argsort(values, kind="stable")[:NEW]


class TotalsNature:
    """Shifts of the means by delta, <a*, delta> = 0 and <a, delta> = -gap_a for an alternative a.

    The play of b is evidence <b, delta>^2 / (2 v_b), v_b the variance of its total. So all that
    counts of the plays w is H = sum_b w_b b b' / v_b, and the shift with the least evidence is
    -H^-1 u / (u' H^-1 u) with u = a / gap_a. ``directions`` has u modulo a*, one row for each
    alternative that could be the best.
    """

    def __init__(self, directions: FloatArray) -> None:
        self.directions = directions

    def answers(self, plays: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the evidence of H = ``plays`` against each answer, and the hardest answers."""
        rank = self.directions.shape[1]
        H = plays.reshape(rank, rank)
        sizes, axes = np.linalg.eigh(H)
        sizes = np.maximum(sizes, UNPLAYED * sizes.max())
        shifts = (self.directions @ axes) / sizes @ axes.T
        shifts /= (self.directions * shifts).sum(axis=1)[:, None]
        evidence = ((shifts @ H) * shifts).sum(axis=1) / 2
        return evidence, _squares(shifts[smallest(evidence)]) / 2


def totals_game(
    best: FloatArray, alternatives: FloatArray, gaps: FloatArray, variances: FloatArray
) -> Game | None:
    """Return the game of all alternatives, in coordinates of the span of the actions.

    ``variances`` are those of the totals. None if all alternatives are multiples of the best
    action: its own total, which is known, then determines theirs.
    """
    from scipy.linalg import qr  # here: importing multiplay should not wait for it

    left = _modulo(best, alternatives)
    candidates = np.linalg.norm(left, axis=1) > NEGLIGIBLE * np.linalg.norm(alternatives, axis=1)
    if not candidates.any():
        return None
    # in coordinates where the directions are orthonormal as a whole, H is far from singular
    directions = np.linalg.qr(left[candidates] / gaps[candidates, None]).Q
    bought = directions * np.sqrt(gaps[candidates] / variances[candidates])[:, None]
    _, order = qr(bought.T, mode="r", pivoting=True)
    rank = directions.shape[1]
    rays = np.zeros((len(alternatives), rank**2))
    rays[candidates] = _squares(bought)
    start = np.flatnonzero(candidates)[np.sort(order[:rank])]
    return Game(rays, start, candidates, TotalsNature(directions))


def _modulo(best: FloatArray, alternatives: FloatArray) -> FloatArray:
    """Return the coordinates of the alternatives in the space orthogonal to the best action."""
    if not best.any():  # its total is always zero, and tells nothing
        return alternatives
    orthogonal = np.linalg.qr(best[:, None], mode="complete").Q[:, 1:]
    left: FloatArray = alternatives @ orthogonal
    return left


def _squares(vectors: FloatArray) -> FloatArray:
    """Return the entries of v v' for every row v."""
    return (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
