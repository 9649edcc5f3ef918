"""The hull of a set some of whose units are fixed."""

from multiplay.hull.base import Hull, Regulariser
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray


class FixedHull(Hull):
    r"""The hull of a set some of whose units are fixed.

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
        """Let the other hull minimise: what is fixed costs the same everywhere."""
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
