"""Correlated losses: arms that vary together from round to round."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import check_instance, numbers
from multiplay.actions import ActionSet
from multiplay.environments.base import Environment, World
from multiplay.environments.distributions import Bernoulli, Distribution
from multiplay.environments.stochastic import DrawnWorld, Phase
from multiplay.errors import InvalidInput
from multiplay.random import normal_quantiles
from multiplay.types import FloatArray

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Correlated(Environment):
    r"""Losses that arms share in a round: fixed distributions, joined by a Gaussian copula.

    In every round t, independently of other rounds,

    .. math::

        g(t) &\sim \mathcal{N}(0, R), \\
        L_{ij}(t) &= F_i^{-1}\bigl(\Phi(g_i(t))\bigr) \text{ for all units } j,

    where :math:`F_i` is the distribution function of arm i and :math:`\Phi` the normal one. So the
    losses of every arm have its own distribution, all units of an arm have the same loss in a
    round, and R says how the arms vary together: R = 1 for all pairs gives arms that rise and fall
    together, negative numbers give arms that cancel each other. R is the correlation of g; that
    of the losses has the same sign, and is smaller as a rule.

    Parameters
    ----------
    distribution
        The distributions: one for all arms, for each arm, or for each trial and arm.
    correlation
        R: one number for all pairs of arms, or a symmetric positive semi-definite matrix with
        ones on the diagonal.

    See Also
    --------
    Stochastic : Independent losses of all arms and units.

    Examples
    --------
    Two arms that cancel each other:

    >>> from multiplay import Budget, Correlated, Uniform
    >>> world = Correlated(Uniform(0, 1), [[1, -1], [-1, 1]]).open(
    ...     Budget(3, [2, 1]), horizon=5, trials=[0], seed=0)
    >>> seen = world.observe(np.array([[2, 1]])).feedback
    >>> round(float(seen.mean.sum()), 6)
    1.0
    """

    stationary = True

    distribution: Distribution
    correlation: ArrayLike

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        return cls(Bernoulli([0.2, 0.4, 0.3, 0.5, 0.6, 0.1]), 0.5)

    def __post_init__(self) -> None:
        check_instance("distribution", self.distribution, Distribution, "Uniform(0, 2 * means)")
        R = numbers("correlation", self.correlation)
        square = R.ndim == 0 or (R.ndim == 2 and R.shape[0] == R.shape[1])
        if not square or not (np.abs(R) <= 1 + ROUNDING).all():
            raise _refused("numbers from -1 to 1", f"{self.correlation!r}")
        if R.ndim == 2 and not (np.abs(R - R.T).max(initial=0.0) <= ROUNDING):
            raise _refused("a symmetric matrix", f"{self.correlation!r}")
        if R.ndim == 2 and not (np.abs(R.diagonal() - 1).max(initial=0.0) <= ROUNDING):
            raise _refused("ones on the diagonal", f"{R.diagonal()}")
        if R.ndim == 2:
            _check_definite(R)
        object.__setattr__(self, "correlation", R.copy())

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless distributions and correlations fit the arms."""
        self.distribution.check("distribution", actions.d, trials)
        R = self.matrix(actions.d)
        if R.shape != (actions.d, actions.d):
            shape = f"({actions.d}, {actions.d})"
            raise _refused(f"a number, or a matrix of shape {shape}", f"shape {R.shape}")
        _check_definite(R)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return CorrelatedWorld(self, actions, horizon, trials, seed)

    def matrix(self, d: int) -> FloatArray:
        """Return R for d arms."""
        R = np.asarray(self.correlation)
        return R if R.ndim else np.where(np.eye(d) > 0, 1.0, R)


class CorrelatedWorld(DrawnWorld):
    """The rounds of ``Correlated``."""

    def __init__(
        self,
        environment: Correlated,
        actions: ActionSet,
        horizon: int,
        trials: Sequence[int],
        seed: int,
    ) -> None:
        super().__init__(actions, trials, seed)
        self.phase = Phase(environment.distribution, trials, self.slots)
        self.total_means = horizon * self.phase.means
        self.arms = np.flatnonzero(actions.n)
        values, vectors = np.linalg.eigh(
            environment.matrix(actions.d)[np.ix_(self.arms, self.arms)]
        )
        self.root = vectors * np.sqrt(np.maximum(values, 0.0))  # times its transpose it is R

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Join the first uniform number of every arm, and use it for all of its units."""
        from scipy.special import ndtr  # here: importing multiplay should not wait for it

        normal = normal_quantiles(u[:, self.slots.first[self.arms]])
        g = np.zeros(self.phase.means.shape)
        for z, column in zip(
            normal.T, self.root.T, strict=True
        ):  # in the same order in any company
            g[:, self.arms] += z[:, None] * column
        return self.phase.losses.quantile(ndtr(g)[:, self.slots.owner]), self.phase.means


def _check_definite(R: FloatArray) -> None:
    least = float(np.linalg.eigvalsh(R).min(initial=0.0))
    if least < -ROUNDING * len(R):
        raise _refused("a positive semi-definite matrix", f"the eigenvalue {least:.3g}")


def _refused(expected: str, got: str) -> InvalidInput:
    hint = "Give one number for all pairs of arms, 0.5 say, or np.corrcoef(losses)."
    return InvalidInput("correlation", expected, got, hint)
