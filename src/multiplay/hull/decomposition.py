"""The hull of a set that knows nothing but its oracle."""

from collections.abc import Callable

import numpy as np

from multiplay import deadline
from multiplay.hull.base import Hull, Regulariser, not_converged
from multiplay.kernels import decomposition as kernels
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray, IntArray

MAX_WAVES = 100  # questions to the oracle in one step, for each slot


class DecompositionHull(Hull):
    """conv(A) for any finite A with an exact oracle: argmin over a in A of <costs, a>.

    A point is a mixture of actions, its *atoms*: x = sum_k w_k a_k. Simplicial decomposition finds
    the best weights of the atoms that it knows, and asks the oracle for one more until there is
    none that descends (Holloway 1974; Wolfe 1976). The weights it ends with are a distribution
    with mean x.

    Parameters
    ----------
    oracle
        argmin over a in A of <costs, a>, for every row of costs (rows, d).
    n
        max over A of a_i.
    better
        For one cost vector, and actions that cost the same: an action that costs less, or one of
        the best if none does. Any descent will do on the way; where asking for the best action is
        dear, this is cheaper. The oracle is asked if not given. The third argument is by how much
        it may miss the best.
    gap
        What ``better`` may miss, in the objective, times the largest weight of the regulariser.
    """

    point = ("x", "rest", "atoms", "weights")

    def __init__(
        self,
        oracle: Callable[[FloatArray], IntArray],
        n: IntArray,
        better: Callable[[FloatArray, IntArray, float], IntArray] | None = None,
        gap: float = 0.0,
    ) -> None:
        self.oracle, self.n, self.better, self.gap = oracle, n.astype(float), better, gap
        ends = np.concatenate([np.eye(len(n)), -np.eye(len(n))])
        actions = np.unique(oracle(ends), axis=0)
        self.free = np.flatnonzero(actions.min(axis=0) < n)
        slots = 2 * (len(n) + 1)  # at most d + 1 atoms are active; the others are a memory
        self.atoms = actions[np.arange(slots) % len(actions)]
        self.weights = np.zeros(slots)
        basis = _independent(actions[:, self.free] / self.n[self.free])
        self.weights[basis] = 1 / len(basis)

    def start(self, trials: int) -> Arrays:
        """Return an even mixture of independent actions.

        They span the actions with the least and the most of each arm, so x_i is 0 or n_i for none
        that is free.
        """
        x, rest = self.weights @ self.atoms, self.weights @ (self.n - self.atoms)
        forced = np.delete(np.arange(len(x)), self.free)
        x[forced], rest[forced] = self.n[forced], 0.0
        point = {"x": x, "rest": rest, "atoms": self.atoms, "weights": self.weights}
        return {name: np.repeat(array[None], trials, axis=0) for name, array in point.items()}

    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        """Ask the oracle until nothing descends; see ``multiplay.kernels.decomposition``."""
        point = {name: array.copy() for name, array in warm.items()}
        todo = np.arange(len(costs) if len(self.free) else 0)
        newcomer = np.full(len(costs), kernels.NOBODY)
        gradient, terms = np.zeros(costs.shape), np.empty(len(costs))
        for _ in range(MAX_WAVES * len(self.weights)):
            if len(todo) == 0:
                return point
            if not kernels.improve(
                self.free,
                self.n,
                costs,
                beta,
                regulariser.phi,
                todo,
                newcomer,
                point["atoms"],
                point["weights"],
                point["x"],
                point["rest"],
                gradient,
                terms,
            ):
                break
            if deadline.is_over():
                return self._mixed(point)
            atoms, weights = point["atoms"][todo], point["weights"][todo]
            found = self._found(gradient[todo], atoms, weights, self.gap / beta[todo].max(axis=1))
            if deadline.was_missed():
                return self._mixed(point)
            if not kernels.admit(
                self.free, todo, found, gradient, terms, point["atoms"], point["weights"], newcomer
            ):
                raise ArithmeticError(
                    "the oracle is not exact: it returned an action that is worse than another one"
                )
            todo = todo[newcomer[todo] >= 0]
        raise not_converged()

    def _mixed(self, point: Arrays) -> Arrays:
        """Return the mixture as it is now, with its mean: no minimiser yet, but time is up."""
        free, atoms, w = self.free, point["atoms"][:, :, self.free], point["weights"][:, :, None]
        point["x"][:, free] = (w * atoms).sum(axis=1)
        point["rest"][:, free] = (w * (self.n[free] - atoms)).sum(axis=1)
        return point

    def _found(
        self, gradient: FloatArray, atoms: IntArray, weights: FloatArray, gap: FloatArray
    ) -> IntArray:
        """Return for each trial an action that descends, if there is one."""
        if self.better is None:
            return self.oracle(gradient)
        rows = zip(gradient, atoms, weights, gap.tolist(), strict=True)
        return np.array([self.better(g, known[w > 0.0], missed) for g, known, w, missed in rows])

    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Draw atom k with probability w_k: the mean is x by construction."""
        action = np.empty(point["x"].shape, dtype=np.int64)
        uniform = rng.random((len(action), 1))[:, 0]
        kernels.draw(point["atoms"], point["weights"], uniform, action)
        return action


def _independent(rows: FloatArray) -> IntArray:
    """Return rows that are affinely independent, and have all others in their affine hull."""
    from scipy.linalg import qr  # here: importing multiplay should not wait for it

    if len(rows) == 1:
        return np.array([0])
    triangle, order = qr((rows[1:] - rows[0]).T, mode="r", pivoting=True)
    left = np.abs(np.diag(triangle))
    rank = np.count_nonzero(left > kernels.DEPENDENT * left[0])
    return np.append(0, 1 + order[:rank]).astype(np.int64)
