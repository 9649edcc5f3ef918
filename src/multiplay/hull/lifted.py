"""The hull of a set with known costs of whole actions: actions lifted by their known cost."""

from collections.abc import Callable

import numpy as np

from multiplay._support import deadline
from multiplay.hull.base import Hull, Regulariser, not_converged
from multiplay.hull.decomposition import HARMLESS, drawn_atoms, harmless_gaps
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray

MAX_ATOMS = 1_000  # calls of the oracle in one step
MAX_STEPS = 200  # Newton steps between two calls of the oracle, for each atom
MAX_SHORTER = 60  # halvings of one step
NEAR = 0.95  # of the way to 0 or n that a step may go
RIDGE = 1e-12  # of the curvature: directions in which only the known cost changes have none
ENOUGH = 1e-4  # of the slope that a step must realise
ROUNDING = 1e-15  # of the objective: smaller differences are not seen


class LiftedHull(Hull):
    r"""The hull of the actions together with their known costs.

    .. math::

        \mathcal{A}' = \{(a, h(a)) : a \in \mathcal{A}\}, \qquad
        \operatorname*{arg\,min}_{(x, y) \in \operatorname{conv}(\mathcal{A}')}
            \langle c, x \rangle + \kappa y + \sum_{i=1}^d \beta_i \varphi_i(x_i)

    The value of an action, :math:`\langle a, \ell \rangle + h(a)`, is not linear in a, but it is
    linear in (a, h(a)). Known costs need no regulariser: their losses are known. At the minimiser,
    y is the lower convex envelope of h at x, and the weights of the atoms are a distribution with
    mean (x, y).

    Simplicial decomposition with projected Newton steps, as in ``DecompositionHull``, for sets
    whose oracle takes milliseconds.

    Parameters
    ----------
    oracle
        For one cost vector c and a weight :math:`\kappa \ge 0`, the action of the least
        :math:`\langle c, a \rangle + \kappa h(a)`.
    known
        The known cost h(a) of an action, of the sign that is minimised.
    n
        The largest :math:`a_i` of all actions.

    Examples
    --------
    >>> plans = np.array([[4, 0], [2, 2], [0, 4]])
    >>> heights = np.array([1.0, 2.0, 1.0])
    >>> def cheapest(costs, weight):
    ...     return plans[(plans @ costs + weight * heights).argmin()]
    >>> def known(action):
    ...     return heights[(plans == action).all(axis=1).argmax()]
    >>> hull = LiftedHull(cheapest, known, n=np.array([4, 4]))
    >>> regulariser = Regulariser(barrier=np.ones(1), entropy=np.ones(1))
    >>> costs, beta = np.zeros((1, 2)), np.ones((1, 2))
    >>> point = hull.lifted(costs, beta, regulariser, hull.start(1), np.ones(1))
    >>> point["x"].round(2), hull.height(point).round(2)
    (array([[2., 2.]]), array([1.]))
    """

    point = ("x", "rest", "atoms", "weights", "heights")

    def __init__(
        self,
        oracle: Callable[[FloatArray, float], IntArray],
        known: Callable[[IntArray], float],
        n: IntArray,
    ) -> None:
        self.oracle, self.known, self.n = oracle, known, n.astype(float)
        ends = np.concatenate([np.eye(len(n)), -np.eye(len(n))])
        atoms = np.unique([oracle(costs, 0.0) for costs in ends], axis=0)
        self.free = np.flatnonzero(atoms.min(axis=0) < n)
        slots = len(atoms) + 2 * (len(self.free) + 2)
        self.atoms = np.concatenate([atoms, np.repeat(atoms[:1], slots - len(atoms), axis=0)])
        self.weights = np.where(np.arange(slots) < len(atoms), 1.0 / len(atoms), 0.0)
        heights = [known(atom) for atom in atoms]
        self.heights = np.array(heights + heights[:1] * (slots - len(atoms)))

    def start(self, trials: int) -> Arrays:
        """Return an even mixture of actions, in which no free arm is at 0 or n."""
        point = {
            "x": self.weights @ self.atoms,
            "rest": self.weights @ (self.n - self.atoms),
            "atoms": self.atoms,
            "weights": self.weights,
            "heights": self.heights,
        }
        return {name: np.repeat(array[None], trials, axis=0) for name, array in point.items()}

    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        """Minimise where known costs have no weight."""
        return self.lifted(costs, beta, regulariser, warm, np.zeros(len(costs)))

    def lifted(
        self,
        costs: FloatArray,
        beta: FloatArray,
        regulariser: Regulariser,
        warm: Arrays,
        weight: FloatArray,
    ) -> Arrays:
        r"""Return the minimiser for a weight :math:`\kappa` of the known costs in each trial."""
        point = {name: warm[name].copy() for name in self.point}
        phi = np.broadcast_to(regulariser.phi, (len(costs), *regulariser.phi.shape[1:]))
        gaps = self.harmless(costs, beta, regulariser)
        for t in range(len(costs) if len(self.free) else 0):
            of_arms = np.broadcast_to(phi[t], (len(self.n), phi.shape[2]))[self.free]
            step = _Step(self, costs[t], beta[t, self.free], of_arms, float(weight[t]), point, t)
            step.run(float(gaps[t]))
        return point

    def harmless(self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser) -> FloatArray:
        """Return the largest duality gap with which a step may end, for every trial."""
        return harmless_gaps(HARMLESS, self.n, costs, beta, regulariser)

    def height(self, point: Arrays) -> FloatArray:
        """Return y, the mean of the known costs, in each trial."""
        mean: FloatArray = (point["weights"] * point["heights"]).sum(axis=1)
        return mean

    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Draw atom k with probability w_k: the mean is (x, y) by construction."""
        return drawn_atoms(point, rng)


class _Step:
    """The step of one trial: it changes the point of that trial in place."""

    def __init__(
        self,
        hull: LiftedHull,
        costs: FloatArray,
        beta: FloatArray,
        phi: FloatArray,
        weight: float,
        point: Arrays,
        t: int,
    ) -> None:
        self.hull, self.costs, self.beta, self.phi, self.weight = hull, costs, beta, phi, weight
        self.atoms, self.w, self.heights = (
            point[name][t] for name in ("atoms", "weights", "heights")
        )
        self.x, self.rest = point["x"][t], point["rest"][t]
        self.n = hull.n[hull.free]

    def run(self, gap: float) -> None:
        """Ask the oracle for atoms until the duality gap is harmless."""
        for _ in range(MAX_ATOMS):
            self._descend(gap)
            if deadline.is_over():
                return
            gradient = self._gradient()
            full = self.costs.copy()
            full[self.hull.free] = gradient
            found = self.hull.oracle(full, self.weight)
            if deadline.was_missed():
                return
            height = self.hull.known(found)
            free = self.hull.free
            prices = self.atoms[:, free] @ gradient + self.weight * self.heights
            price = found[free] @ gradient + self.weight * height
            if self.w @ prices - price <= gap:
                return
            place = int(np.where(self.w > 0, -np.inf, prices).argmax())
            self.atoms[place], self.heights[place] = found, height
        raise not_converged()

    def _descend(self, gap: float) -> None:
        """Find the best weights of the atoms there are, by Newton steps on the active ones."""
        free = self.hull.free
        A = self.atoms[:, free].astype(float)
        for _ in range(MAX_STEPS * len(self.w)):
            gradient = self._gradient()
            prices = A @ gradient + self.weight * self.heights
            mean = self.w @ prices
            active = self.w > 0
            outside = np.where(active, np.inf, prices)
            entering = int(outside.argmin())
            spread = prices[active].max() - prices[active].min()
            if mean - outside[entering] > max(spread, 0.5 * gap):
                active[entering] = True
            elif spread <= 0.1 * gap or active.sum() == 1:
                return
            places = np.flatnonzero(active)
            direction = self._newton(A[places], prices[places])
            if not self._move(A, places, direction, prices[places]):
                return  # rounding: no shorter step descends

    def _newton(self, A: FloatArray, prices: FloatArray) -> FloatArray:
        """Return the direction of least squares that keeps the sum of the weights."""
        size = len(prices)
        H = (A * self._curvature()) @ A.T
        H[np.diag_indices(size)] += RIDGE * max(np.trace(H), 1e-30)
        system = np.ones((size + 1, size + 1))
        system[:size, :size], system[size, size] = H, 0.0
        right = np.append(-prices, 0.0)
        try:
            direction = np.linalg.solve(system, right)[:size]
        except np.linalg.LinAlgError:
            direction = -(prices - prices.mean())
        centred: FloatArray = direction - direction.mean()
        return centred

    def _move(
        self, A: FloatArray, places: IntArray, direction: FloatArray, prices: FloatArray
    ) -> bool:
        """Take the longest step that descends enough; return whether there is one."""
        slope = float(direction @ prices)
        old, falling = self.w[places].copy(), direction < 0
        if not slope < 0.0 or (falling & (old == 0.0)).any():
            direction = -(prices - prices.mean())
            direction[(old == 0.0) & (direction < 0)] = 0.0
            direction -= np.where(old > 0, direction.sum() / max((old > 0).sum(), 1), 0.0)
            slope, falling = float(direction @ prices), direction < 0
            if not slope < 0.0:
                return False
        reach = (old[falling] / -direction[falling]).min(initial=np.inf)
        dx = direction @ A[places]
        x, rest = self.x[self.hull.free], self.rest[self.hull.free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(dx < 0, -x / dx, np.where(dx > 0, rest / dx, np.inf)).min()
        length = min(1.0, reach, NEAR * room)
        before = self._value()
        for _ in range(MAX_SHORTER):
            new = old + length * direction
            if length == reach:
                new[falling & (old / np.where(falling, -direction, 1.0) <= reach)] = 0.0
            self.w[places] = np.maximum(new, 0.0)
            self.w /= self.w.sum()
            self._mix()
            if self._value() <= before + ENOUGH * length * slope + ROUNDING * abs(before):
                return True
            length *= 0.5
        self.w[places] = old
        self._mix()
        return False

    def _mix(self) -> None:
        """Compute x and rest from the weights, as sums of non-negative terms."""
        free, active = self.hull.free, self.w > 0
        of_atoms = self.atoms[active][:, free]
        self.x[free] = self.w[active] @ of_atoms
        self.rest[free] = self.w[active] @ (self.n - of_atoms)

    def _shares(self) -> tuple[FloatArray, FloatArray]:
        free = self.hull.free
        return self.x[free] / self.n, self.rest[free] / self.n

    def _value(self) -> float:
        """Return the objective; infinite outside its domain."""
        u, v = self._shares()
        if min(u.min(), v.min()) <= 0.0:
            return np.inf
        barrier, entropy, root, shannon = self.phi.T
        phi = barrier * (u - 1 - np.log(u)) + entropy * (u + v * np.log(v))
        phi += shannon * (1 - u + u * np.log(u)) - root * np.sqrt(u)
        linear = self.costs[self.hull.free] @ self.x[self.hull.free]
        return float(linear + self.weight * (self.w @ self.heights) + self.beta @ (self.n * phi))

    def _gradient(self) -> FloatArray:
        u, v = self._shares()
        barrier, entropy, root, shannon = self.phi.T
        slope = barrier * (1 - 1 / u) - entropy * np.log(v) + shannon * np.log(u)
        slope -= root / (2 * np.sqrt(u))
        gradient: FloatArray = self.costs[self.hull.free] + self.beta * slope
        return gradient

    def _curvature(self) -> FloatArray:
        u, v = self._shares()
        barrier, entropy, root, shannon = self.phi.T
        bend = barrier / u**2 + entropy / v + root / (4 * u**1.5) + shannon / u
        curvature: FloatArray = self.beta * bend / self.n
        return curvature
