"""The hull of a set some of whose units are fixed."""

from multiplay.hull.base import Hull, Regulariser
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray, IntArray


class FixedHull(Hull):
    """{units + x : x in another hull}, where that hull has x_i = 0 on every arm with fixed units.

    So x_i = units_i = n_i and rest_i = 0 there, as on every arm that is forced.
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
