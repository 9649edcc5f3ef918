"""The side of nature where a policy sees only the total of a round."""

import numpy as np

from multiplay.theory.exploration import UNPLAYED, Game, smallest
from multiplay.types import FloatArray

NEGLIGIBLE = 1e-9  # what is left of an action, relative to it, if it is a multiple of the best one


class TotalsNature:
    """Shifts the means by delta with <a*, delta> = 0 and <a, delta> = -gap_a for every rival a.

    The play of b is evidence <b, delta>^2 / (2 v_b), v_b the variance of its total. So all that
    counts of the plays w is H = sum_b w_b b b' / v_b, and the shift with the least evidence is
    -H^-1 u / (u' H^-1 u) with u = a / gap_a. ``directions`` has u modulo a*, one row for each rival
    that could be the best.
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
    best: FloatArray, rivals: FloatArray, gaps: FloatArray, variances: FloatArray
) -> Game | None:
    """Return the game of all rivals, in coordinates of the span of the actions.

    ``variances`` are those of the totals. None if all rivals are multiples of the best action: its
    own total, which is known, then tells theirs.
    """
    from scipy.linalg import qr  # here: importing multiplay should not wait for it

    left = _modulo(best, rivals)
    threats = np.linalg.norm(left, axis=1) > NEGLIGIBLE * np.linalg.norm(rivals, axis=1)
    if not threats.any():
        return None
    # in coordinates where the directions are orthonormal as a whole, H is far from singular
    directions = np.linalg.qr(left[threats] / gaps[threats, None]).Q
    bought = directions * np.sqrt(gaps[threats] / variances[threats])[:, None]
    _, order = qr(bought.T, mode="r", pivoting=True)
    rank = directions.shape[1]
    rays = np.zeros((len(rivals), rank**2))
    rays[threats] = _squares(bought)
    start = np.flatnonzero(threats)[np.sort(order[:rank])]
    return Game(rays, start, threats, TotalsNature(directions))


def _modulo(best: FloatArray, rivals: FloatArray) -> FloatArray:
    """Return the coordinates of the rivals in the space that is orthogonal to the best action."""
    if not best.any():  # its total is always zero, and tells nothing
        return rivals
    orthogonal = np.linalg.qr(best[:, None], mode="complete").Q[:, 1:]
    left: FloatArray = rivals @ orthogonal
    return left


def _squares(vectors: FloatArray) -> FloatArray:
    """Return the entries of v v' for every row v."""
    return (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
