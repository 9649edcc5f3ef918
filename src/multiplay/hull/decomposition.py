"""The hull of a set that is defined by its oracle: simplicial decomposition."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from multiplay._support import deadline
from multiplay.hull.base import Hull, Regulariser, not_converged
from multiplay.kernels import decomposition as careful
from multiplay.kernels import simplex
from multiplay.random import Rng
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

SHARE = 0.01  # of the regret that every policy pays for its draws: what an inexact step may add
# By Cauchy and Schwarz, a step with a duality gap of eps plays at most sqrt(2 eps sum_i 1 / h_i)
# worse than the exact one. Without a step's error, rounds cost about sum_i x_i / beta_i, which is
# no less than that sum and no less than 1 / max_i beta_i. So eps = SHARE^2 / 2 / max_i beta_i.
HARMLESS = SHARE**2 / 2
ROUNDING = 1e-13  # of the terms that a gap is the difference of: no gap is known better
PROVED = 0.5  # of the harmless gap, by which ``better`` may miss the best action
MAX_WAVES = 100  # questions to the oracle in one step, for each slot
MOST_NUMBERS = 4_000_000  # in the matrices of the trials that are worked on together
DEPENDENT = 1e-10  # what elimination leaves of an action that the others span, relative to n

SMALL = 24  # arms with any freedom, up to which the careful method is the faster one
LARGE = 128  # slots, from which asking at once is faster: measured so at 201, not at 101
ROWS = (("x", simplex.X), ("rest", simplex.REST), ("pull", simplex.PULL))
Scalar = TypeVar("Scalar", bound=np.generic)
Better = Callable[[FloatArray, IntArray, float], IntArray]


class DecompositionHull(Hull):
    r"""The hull of any finite set with an exact oracle.

    A point is a mixture of actions, its *atoms*:

    .. math::

        x = \sum_k w_k a^{(k)}, \qquad a^{(k)} \in \mathcal{A}, \qquad
        w_k \ge 0, \; \sum_k w_k = 1.

    Simplicial decomposition finds the best weights of the atoms found so far, and calls the oracle
    for one more until no atom descends (Holloway 1974; Wolfe 1976). The weights it ends
    with are a distribution with mean x. Atoms are kept from round to round, half of them as a
    memory.

    A step ends when its duality gap is proved to be harmless: so small that it adds less than a
    hundredth to the regret (``harmless``). Two methods find it. The first keeps a simplex of atoms
    and its inverse; see ``multiplay.kernels.simplex``. Its numbers are differences, so it fails
    where digits run out: costs of 10^5, say, or 10^9 units. There the second takes over, which is
    slow and keeps every digit; see ``multiplay.kernels.decomposition``. On a few arms it is faster
    than the first; with ``gap=0`` it does all.

    Parameters
    ----------
    oracle
        The best action, :math:`\operatorname*{arg\,min}_{a \in \mathcal{A}} \langle c, a \rangle`,
        for every row c of costs (rows, d).
    n
        The largest :math:`a_i` of all actions.
    better
        For one cost vector, actions that cost the same, and a harmless gap: an action that costs
        less by more than that gap. If there is none, any of those given will do. Any descent
        will do on the way; where asking for the best action is dear, this is cheaper. The oracle is
        asked if not given.
    gap
        The harmless gap, times the largest :math:`\beta_i`. 0 for all digits there are.

    Examples
    --------
    >>> plans = np.array([[0, 3], [2, 2], [5, 0]])
    >>> def cheapest(costs):
    ...     return plans[(costs @ plans.T).argmin(axis=1)]
    >>> hull = DecompositionHull(cheapest, n=np.array([5, 3]))
    >>> regulariser = Regulariser(barrier=np.ones(1), entropy=np.ones(1))
    >>> costs, beta = np.array([[0.5, 0.6]]), np.ones((1, 2))
    >>> point = hull.minimise(costs, beta, regulariser, hull.start(1))
    >>> point["x"].round(1)
    array([[2.5, 1.5]])
    >>> hull.draw(point, np.random.default_rng(1))
    array([[5, 0]])
    """

    point = ("x", "rest", "atoms", "weights", "pull", "inverse")

    def __init__(
        self,
        oracle: Callable[[FloatArray], IntArray],
        n: IntArray,
        better: Better | None = None,
        gap: float = HARMLESS,
    ) -> None:
        self.oracle, self.n, self.better, self.gap = oracle, n.astype(float), better, gap
        actions = np.unique(oracle(np.concatenate([np.eye(len(n)), -np.eye(len(n))])), axis=0)
        self.free = np.flatnonzero(actions.min(axis=0) < n)
        self.scale = self.n[self.free]
        self.quick = gap > 0.0 and len(self.free) > SMALL
        basis, self.across, actions = self._spanning(actions)
        others = np.delete(actions, basis, axis=0) if len(basis) < len(actions) else actions
        self.real = len(basis)
        memory = others[np.arange(self.real) % len(others)]
        self.atoms = np.concatenate([actions[basis], memory])
        self.weights = np.where(np.arange(2 * self.real) < self.real, 1 / self.real, 0.0)
        self.inverse = self._inverse(actions[basis])

    def start(self, trials: int) -> Arrays:
        """Return an even mixture of independent actions.

        They span all actions, so x_i is 0 or n_i for none that is free.
        """
        x, rest = self.weights @ self.atoms, self.weights @ (self.n - self.atoms)
        forced = np.delete(np.arange(len(x)), self.free)
        x[forced], rest[forced] = self.n[forced], 0.0
        point = {"x": x, "rest": rest, "atoms": self.atoms, "weights": self.weights}
        point |= {"pull": np.zeros(len(x)), "inverse": self.inverse}
        return {name: np.repeat(array[None], trials, axis=0) for name, array in point.items()}

    def harmless(self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser) -> FloatArray:
        """Return the largest duality gap with which a step may end, for every trial."""
        return harmless_gaps(self.gap, self.n, costs, beta, regulariser)

    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        """Call the oracle until the duality gap is harmless."""
        point = {name: array.copy() for name, array in warm.items()}
        if len(self.free) == 0:
            return point
        left = np.arange(len(costs))
        if self.quick:
            together = max(1, MOST_NUMBERS // (len(self.free) + 1) ** 2)
            parts = [
                self._quickly(costs, beta, regulariser, point, slice(first, first + together))
                for first in range(0, len(costs), together)
            ]
            left = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if len(left):
            self._carefully(costs, beta, regulariser, point, left)
        return point

    def _quickly(
        self,
        costs: FloatArray,
        beta: FloatArray,
        regulariser: Regulariser,
        point: Arrays,
        part: slice,
    ) -> IntArray:
        """Take the step of some trials over a simplex; return those for which that failed."""
        W, real = simplex.W, self.real
        phi = regulariser.phi[part if len(regulariser.phi) > 1 else slice(None)]
        problem = (
            self.scale,
            self._of_free(costs[part]),
            self._of_free(beta[part]),
            phi if phi.shape[1] == 1 else np.ascontiguousarray(phi[:, self.free]),
        )
        here = {name: array[part] for name, array in point.items()}
        atoms = self._of_free(here["atoms"]).astype(float, order="C")
        count, slots = len(atoms), len(self.free) + 1
        sides = np.ascontiguousarray(here["inverse"][:, :, :-1])
        offsets = np.ascontiguousarray(here["inverse"][:, :, -1])
        arms, weights = np.zeros((count, 5, len(self.free))), np.zeros((count, 3, slots))
        for name, row in ROWS:
            arms[:, row] = self._of_free(here[name])
        weights[:, W, :real] = here["weights"][:, :real]
        marks = np.zeros((count, simplex.MARKS))
        marks[:, simplex.EPS] = self.harmless(costs[part], beta[part], regulariser)
        marks[:, simplex.EAGER] = self.better is None and slots > LARGE
        held, ready = np.zeros((2, count, slots), dtype=np.bool_)
        G, factor = np.empty((2, count, slots, slots))
        order, status = np.empty((count, slots), dtype=np.int64), np.full(count, simplex.GO)
        state: Any = (
            atoms,
            sides,
            offsets,
            held,
            arms,
            weights,
            marks,
            G,
            factor,
            order,
            ready,
            status,
        )
        todo, gradient = np.arange(count), np.zeros((count, len(self.n)))
        for _ in range(MAX_WAVES * slots):
            simplex.improve(*problem, todo, *state)
            for t in todo[status[todo] == simplex.DRIFTED]:
                inverse = self._renew(here, t)
                sides[t], offsets[t] = inverse[:, :-1], inverse[:, -1]
                atoms[t] = here["atoms"][t][:, self.free]
                weights[t, W, :real] = here["weights"][t, :real]
                status[t] = simplex.GO
            asking = todo[status[todo] == simplex.ASKING]
            if deadline.is_over():
                return todo[:0]  # the points are those of the last round
            if len(asking):
                gradient[:, self.free] = arms[:, simplex.PULL]
                found, proved = self._found(gradient, asking, atoms, weights, marks)
                if deadline.was_missed():
                    return todo[:0]
                simplex.admit(asking, found, proved, atoms, arms, marks, status)
            todo = todo[(status[todo] == simplex.ASKING) | (status[todo] == simplex.GO)]
            if len(todo) == 0:
                break
        if (status == simplex.WRONG).any():
            raise _inexact()
        done = status == simplex.DONE
        for name, row in ROWS:
            self._put(here[name], arms[:, row], done)
        self._put(here["atoms"], atoms, done)
        here["weights"][done, :real] = weights[done, W, :real]
        here["inverse"][done, :, :-1], here["inverse"][done, :, -1] = sides[done], offsets[done]
        return (part.start or 0) + np.flatnonzero(~done)

    def _of_free(self, array: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the values of the arms that are free to vary."""
        if len(self.free) == len(self.n):
            return array
        return np.ascontiguousarray(array[..., self.free])

    def _put(self, whole: NDArray[Any], part: FloatArray, done: BoolArray) -> None:
        """Write the values of the arms that are free to vary, for the trials that are done."""
        if len(self.free) == len(self.n):
            whole[done] = part[done]
        else:
            rows = whole[done]
            rows[..., self.free] = part[done]
            whole[done] = rows

    def _found(
        self,
        gradient: FloatArray,
        asking: IntArray,
        atoms: FloatArray,
        weights: FloatArray,
        marks: FloatArray,
    ) -> tuple[FloatArray, float]:
        """Return an action for each trial, and the share of the harmless gap that it may miss."""
        if self.better is None:
            found, proved = self.oracle(gradient[asking]), 0.0
        else:
            rows, proved = [], PROVED
            for t in asking:
                known = np.tile(self.n.astype(np.int64), (self.real, 1))
                known[:, self.free] = atoms[t, : self.real]
                active = known[weights[t, simplex.W, : self.real] > 0.0]
                rows.append(self.better(gradient[t], active, PROVED * marks[t, simplex.EPS]))
            found = np.array(rows)
        return self._of_free(found).astype(float, order="C"), proved

    def _carefully(
        self,
        costs: FloatArray,
        beta: FloatArray,
        regulariser: Regulariser,
        point: Arrays,
        todo: IntArray,
    ) -> None:
        """Take the step of some trials with all digits; see ``multiplay.kernels.decomposition``."""
        for t in todo if self.quick else ():
            self._inside(point, t)
        left = self._descend(costs, beta, regulariser, point, todo)
        if len(left):  # where the old point is no good beginning, the centre may be
            fresh = self.start(len(left))
            for name in self.point:
                point[name][left] = fresh[name]
            if len(self._descend(costs, beta, regulariser, point, left)):
                raise not_converged()
        for t in todo if self.quick else ():
            self._renew(point, t)

    def _descend(
        self,
        costs: FloatArray,
        beta: FloatArray,
        regulariser: Regulariser,
        point: Arrays,
        todo: IntArray,
    ) -> IntArray:
        """Move some trials to their minimisers; return those for which that failed."""
        newcomer, phi = np.full(len(costs), careful.NONE), regulariser.phi
        gradient, terms = np.zeros(costs.shape), np.empty(len(costs))
        missed = PROVED * self.harmless(costs, beta, regulariser) * (self.gap > 0.0)
        now: Any = tuple(point[name] for name in ("atoms", "weights", "x", "rest"))
        for _ in range(MAX_WAVES * len(self.weights)):
            if len(todo) == 0:
                break
            problem: Any = (self.free, self.n, costs, beta, phi)
            state: Any = (todo, newcomer, *now, gradient, terms)
            if not careful.improve(*problem, *state):
                if len(todo) == 1:
                    return todo
                alone = [np.array([t]) for t in todo]
                ends = [self._descend(costs, beta, regulariser, point, t) for t in alone]
                return np.concatenate(ends)
            if deadline.is_over():
                return self._mixed(point, todo)
            if self.better is None:
                found = self.oracle(gradient[todo])
            else:
                known = [point["atoms"][t][point["weights"][t] > 0.0] for t in todo]
                rows = zip(gradient[todo], known, missed[todo], strict=True)
                found = np.array([self.better(*row) for row in rows])
            if deadline.was_missed():
                return self._mixed(point, todo)
            atoms, weights = point["atoms"], point["weights"]
            if not careful.admit(self.free, todo, found, gradient, terms, atoms, weights, newcomer):
                raise _inexact()
            todo = todo[newcomer[todo] >= 0]
        return todo

    def _mixed(self, point: Arrays, todo: IntArray) -> IntArray:
        """Keep the present mixtures, with their means: the deadline has passed."""
        for t in todo:
            self._mix(point, t)
        return todo[:0]

    def _inside(self, point: Arrays, t: int) -> None:
        """Move a point away from 0 and n, which the quick method may reach."""
        x, rest = (point[name][t][self.free] for name in ("x", "rest"))
        if np.minimum(x, rest).min() > 0.0:
            return
        self._renew(point, t)
        point["weights"][t] = 0.99 * point["weights"][t] + 0.01 * self.weights
        self._mix(point, t)

    def _mix(self, point: Arrays, t: int) -> None:
        """Compute x = sum_k w_k a_k and rest = sum_k w_k (n - a_k)."""
        for name, units in (("x", point["atoms"][t]), ("rest", self.n - point["atoms"][t])):
            point[name][t, self.free] = point["weights"][t] @ units[:, self.free]

    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Draw atom k with probability w_k: the mean is x by construction."""
        return drawn_atoms(point, rng)

    def _spanning(self, actions: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
        """Find actions that span all others.

        Returns their places, an orthonormal basis of what is orthogonal to (a / n, 1) for all of
        A, and all actions that were found. Who knows a direction in which no action found moves,
        asks the oracle for one that does.
        """
        while True:
            basis, across = _independent(self._homogeneous(actions))
            costs = np.zeros((2 * across.shape[1], len(self.n)))
            costs[:, self.free] = np.concatenate([across.T, -across.T])[:, :-1] / self.scale
            found = self.oracle(costs) if len(costs) else actions[:0]
            if not (np.abs(self._homogeneous(found) @ across) > DEPENDENT * len(self.n)).any():
                return basis, across, actions
            actions = np.unique(np.concatenate([actions, found]), axis=0)

    def _homogeneous(self, actions: IntArray) -> FloatArray:
        return np.column_stack([actions[:, self.free] / self.scale, np.ones(len(actions))])

    def _inverse(self, atoms: IntArray) -> FloatArray:
        """Return the inverse of B, whose columns are (a, 1), and what is orthogonal to them."""
        inverse = np.linalg.inv(np.concatenate([self._homogeneous(atoms), self.across.T]).T)
        inverse[:, :-1] /= self.scale
        return np.ascontiguousarray(inverse)

    def _renew(self, point: Arrays, t: int) -> FloatArray:
        """Put a simplex of all active atoms first, and compute its inverse anew."""
        atoms, weights = point["atoms"][t].copy(), point["weights"][t].copy()
        active = np.flatnonzero(weights > 0.0)
        basis, inverse = self.atoms[: self.real].copy(), self.inverse.copy()
        shares, locked = np.zeros(self.real), np.zeros(self.real, dtype=bool)
        for k in active:
            alpha = inverse[:, :-1] @ atoms[k, self.free] + inverse[:, -1]
            z = int(np.where(locked, 0.0, np.abs(alpha[: self.real])).argmax())
            basis[z], shares[z], locked[z] = atoms[k], weights[k], True
            inverse[z] /= alpha[z]
            alpha[z] = 0.0
            inverse -= alpha[:, None] * inverse[z]
        others = np.delete(atoms, active, axis=0)
        memory = np.concatenate([others, self.atoms])[: self.real]
        point["atoms"][t] = np.concatenate([basis, memory])
        point["weights"][t] = np.concatenate([shares, np.zeros(self.real)])
        point["inverse"][t] = inverse = self._inverse(basis)
        return inverse


def harmless_gaps(
    gap: float, n: FloatArray, costs: FloatArray, beta: FloatArray, regulariser: Regulariser
) -> FloatArray:
    """Return, for every trial, ``gap`` over the largest beta, or what rounding leaves unknown."""
    barrier, _, root, shannon = np.moveaxis(regulariser.phi, 2, 0)
    largest = (beta * (barrier + root + shannon)).max(axis=1)
    gaps: FloatArray = np.maximum(
        gap / np.maximum(largest, np.finfo(float).tiny),
        ROUNDING * (1.0 + np.abs(costs) @ n),
    )
    return gaps


def drawn_atoms(point: Arrays, rng: Rng) -> IntArray:
    """Return an atom of each trial, drawn with the probability that is its weight."""
    action = np.empty(point["x"].shape, dtype=np.int64)
    uniform = rng.random((len(action), 1))[:, 0]
    careful.draw(point["atoms"], point["weights"], uniform, action)
    return action


def _independent(rows: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the places of rows that span all, and an orthonormal basis of their complement."""
    from scipy.linalg import qr  # here: importing multiplay should not wait for it

    frame, triangle, order = qr(rows.T, pivoting=True)
    left = np.abs(np.diag(triangle))
    rank = np.count_nonzero(left > DEPENDENT * left[0])
    return np.sort(order[:rank]).astype(np.int64), np.ascontiguousarray(frame[:, rank:])


def _inexact() -> ArithmeticError:
    return ArithmeticError("the oracle is not exact: it returned an action that is not the best")
