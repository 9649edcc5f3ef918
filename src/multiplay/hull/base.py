"""The interface of the convex hull of an action set, and hulls with fixed units."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray

NOTHING = np.zeros(1)  # the weight, in all trials, of a part that is not there
NOTHING.flags.writeable = False


@dataclass(frozen=True, init=False)
class Regulariser:
    r"""A function of each arm, in four parts, that keeps a point away from the corners of a hull.

    With :math:`u = x / n_i`,

    .. math::

        \varphi_i(x) = n_i \bigl[
            & \text{barrier} \cdot (u - 1 - \log u) \\
            & + \text{entropy} \cdot (u + (1 - u) \log(1 - u)) \\
            & - \text{root} \cdot \sqrt{u} \\
            & + \text{shannon} \cdot (1 - u + u \log u)\bigr].

    All parts are convex. The entropy, with at least one of the others, keeps the minimiser strictly
    between 0 and :math:`n_i` on every arm that has any freedom.

    Parameters
    ----------
    barrier, entropy, root, shannon
        The weights, each of shape (trials,), or (trials, d) for one of each arm; ``root`` and
        ``shannon`` are zero if not given.

    Examples
    --------
    The larger :math:`\beta` is, the less costs can move a point of the hull of two arms:

    >>> from multiplay import Budget
    >>> hull, costs = Budget(1, caps=[1, 1]).hull, np.array([[0.0, 1.0]])
    >>> regulariser = Regulariser(barrier=np.ones(1), entropy=np.ones(1))
    >>> for beta in (0.1, 1.0, 10.0):
    ...     point = hull.minimise(costs, np.full((1, 2), beta), regulariser, hull.start(1))
    ...     print(point["x"].round(2))
    [[0.89 0.11]]
    [[0.58 0.42]]
    [[0.51 0.49]]
    """

    barrier: FloatArray
    entropy: FloatArray
    root: FloatArray
    shannon: FloatArray

    def __init__(  # of every round: faster than setting one frozen field after the other
        self,
        barrier: FloatArray,
        entropy: FloatArray,
        root: FloatArray = NOTHING,
        shannon: FloatArray = NOTHING,
    ) -> None:
        fields = self.__dict__
        fields["barrier"], fields["entropy"] = barrier, entropy
        fields["root"], fields["shannon"] = root, shannon

    @cached_property
    def phi(self) -> FloatArray:
        """The weights of all parts as kernels take them, (trials, d, 4).

        Or (trials, 1, 4), if they are the same for all arms.
        """
        parts = (self.barrier, self.entropy, self.root, self.shannon)
        arms = max([weight.shape[1] if weight.ndim == 2 else 1 for weight in parts])
        phi = np.zeros((len(self.barrier), arms, len(parts)))
        for place, weight in enumerate(parts):
            if weight is not NOTHING:
                phi[:, :, place] = weight if weight.ndim == 2 else weight[:, None]
        return phi


class Hull(ABC):
    r"""The convex hull of a set, with the two things that follow-the-regularised-leader needs.

    ``minimise`` finds the point x of the hull, and ``draw`` an action a with this mean:

    .. math::

        x &= \operatorname*{arg\,min}_{x \in \operatorname{conv}(\mathcal{A})}
            \langle c, x \rangle + \sum_{i=1}^d \beta_i \varphi_i(x_i), \\
        \mathbb{E}[a] &= x, \qquad a \in \mathcal{A}.

    A *point* is a dict of arrays with the trials first, and ``point`` names its entries. It always
    has ``x`` and ``rest``, the complement n - x as a number of its own, exact when tiny; what else
    it holds (such as multipliers) is the hull's own business. A point is also the warm start of the
    next step.

    Examples
    --------
    Every set has one, ``actions.hull``:

    >>> from multiplay import Regulariser, Transport
    >>> hull = Transport([1, 4, 5], [4, 6]).hull
    >>> costs = np.array([[0.1, 0.9, 0.5, 0.2, 0.3, 0.4]])
    >>> beta = np.full((1, 6), 0.01)
    >>> regulariser = Regulariser(barrier=np.ones(1), entropy=np.ones(1))
    >>> point = hull.minimise(costs, beta, regulariser, hull.start(1))
    >>> point["x"].round(2)
    array([[0.99, 0.01, 0.11, 3.89, 2.9 , 2.1 ]])
    >>> hull.draw(point, np.random.default_rng(0))
    array([[1, 0, 0, 4, 3, 2]])
    """

    point: tuple[str, ...]
    rounds: bool = False  # whether draw() rounds every x_i down or up: a_i < x_i + 1

    @abstractmethod
    def start(self, trials: int) -> Arrays:
        """Return a point in the relative interior."""

    @abstractmethod
    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        r"""Return the best point for these costs and weights, from the warm start ``warm``.

        .. math::

            \operatorname*{arg\,min}_{x \in \operatorname{conv}(\mathcal{A})}
                \langle \text{costs}, x \rangle + \sum_{i=1}^d \beta_i \varphi_i(x_i)
        """

    def harmless(self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser) -> FloatArray:
        """Return the error that ``minimise`` may have, for every trial: rounding only."""
        return np.zeros(len(costs))

    @abstractmethod
    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Draw an action of the set whose mean is exactly ``point["x"]``."""


def not_converged() -> ArithmeticError:
    """Return the error of a step that found no minimiser."""
    return ArithmeticError(
        "the FTRL step did not converge: costs or beta are not finite, or too far apart"
    )


def not_a_flow() -> ArithmeticError:
    """Return the error of a point that no flow of the graph has as its mean."""
    return ArithmeticError(
        "the point is outside the hull: its flows do not have the balance of the nodes"
    )


class FixedHull(Hull):
    r"""The hull of a set with fixed units.

    .. math::

        \{\text{units} + x : x \in H\}, \qquad
        x_i = 0 \text{ in all of } H \text{ where } \text{units}_i > 0

    So :math:`x_i = \text{units}_i = n_i` and :math:`\text{rest}_i = 0` there, as on every arm that
    is forced.

    Parameters
    ----------
    others
        The other hull, H.
    units
        The fixed units of each arm.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget
    >>> hull = FixedHull(Budget(4, caps=[4, 2, 0]).hull, units=np.array([0, 0, 1]))
    >>> hull.start(trials=1)["x"]
    array([[3., 1., 1.]])
    """

    def __init__(self, others: Hull, units: IntArray) -> None:
        self.others, self.units = others, units
        self.point, self.rounds = others.point, others.rounds

    def start(self, trials: int) -> Arrays:
        """Return a point in the relative interior."""
        return self._with_units(self.others.start(trials))

    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        """Minimise over the other hull: fixed units cost the same everywhere."""
        found = self.others.minimise(costs, beta, regulariser, self._without_units(warm))
        return self._with_units(found)

    def draw(self, point: Arrays, rng: Rng) -> IntArray:
        """Draw from the other hull."""
        action: IntArray = self.others.draw(self._without_units(point), rng) + self.units
        return action

    def _with_units(self, point: Arrays) -> Arrays:
        return point | {"x": point["x"] + self.units}

    def _without_units(self, point: Arrays) -> Arrays:
        return point | {"x": point["x"] - self.units}  # exact: the others are 0 where units are
