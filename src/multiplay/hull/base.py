"""What a policy may ask of the convex hull of an action set."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray, IntArray


@dataclass(frozen=True)
class Regulariser:
    """phi_i(x) = n_i [barrier (u - 1 - log u) + entropy (u + (1 - u) log(1 - u)) - root sqrt(u)].

    Here u = x / n_i. The weights have shape (trials,), and ``root`` is zero if not given. All parts
    are convex. The entropy, with the barrier or the root or both, keeps the minimiser strictly
    between 0 and n_i on every arm that has any freedom.

    Examples
    --------
    >>> Regulariser(barrier=np.ones(2), entropy=np.ones(2)).root
    array([0., 0.])
    """

    barrier: FloatArray
    entropy: FloatArray
    root: FloatArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.root is None:
            object.__setattr__(self, "root", np.zeros_like(self.barrier))


class Hull(ABC):
    """conv(A), with the two things that follow-the-regularised-leader needs.

    A *point* is a dict of arrays with the trials first, and ``point`` names its entries. It always
    has ``x`` and ``rest``, the complement n - x as a number of its own, exact when tiny; what else
    it holds (multipliers, say) is the hull's own business. A point is also the warm start of the
    next step.
    """

    point: tuple[str, ...]

    @abstractmethod
    def start(self, trials: int) -> Arrays:
        """Return a point in the relative interior."""

    @abstractmethod
    def minimise(
        self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser, warm: Arrays
    ) -> Arrays:
        """argmin over x in conv(A) of <costs, x> + sum_i beta_i phi_i(x_i), from ``warm``."""

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
