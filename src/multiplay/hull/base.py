"""What a policy may ask of the convex hull of an action set."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray, IntArray

NOTHING = np.zeros(1)  # the weight, in all trials, of a part that is not there
NOTHING.flags.writeable = False


@dataclass(frozen=True, init=False)
class Regulariser:
    """phi_i(x), a function of u = x / n_i in four parts.

        phi_i(x) = n_i [barrier (u - 1 - log u) + entropy (u + (1 - u) log(1 - u))
                        - root sqrt(u) + shannon (1 - u + u log u)]

    Each weight has shape (trials,), or (trials, d) for one of each arm; ``root`` and ``shannon``
    are zero if not given. All parts are convex. The entropy, with at least one of the others, keeps
    the minimiser strictly between 0 and n_i on every arm that has any freedom.

    Examples
    --------
    >>> Regulariser(barrier=np.ones(2), entropy=np.ones(2)).phi.shape
    (2, 1, 4)
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
        """The weights of all parts as kernels want them, (trials, d, 4).

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
    """conv(A), with the two things that follow-the-regularised-leader needs.

    A *point* is a dict of arrays with the trials first, and ``point`` names its entries. It always
    has ``x`` and ``rest``, the complement n - x as a number of its own, exact when tiny; what else
    it holds (multipliers, say) is the hull's own business. A point is also the warm start of the
    next step.
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
        """argmin over x in conv(A) of <costs, x> + sum_i beta_i phi_i(x_i), from ``warm``."""

    def harmless(self, costs: FloatArray, beta: FloatArray, regulariser: Regulariser) -> FloatArray:
        """Return by how much ``minimise`` may miss the minimum, for every trial: rounding only."""
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
