"""COS-V: combinatorial sampling with estimated variances of the arms."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.kernels import covariance as kernels
from multiplay.policies.base import PolicyCost
from multiplay.policies.index import IndexPolicy, Parts, draw_of, memory_of, planner_of
from multiplay.policies.olsucbc import check_doubt, doubt, pair_sums
from multiplay.posteriors.averages import Normal, samples
from multiplay.posteriors.memories import Memory
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True, repr=False)
class COSV(IndexPolicy):
    r"""Play the best action for losses drawn around averages, by estimated variances of the arms.

    Every arm is seen once. With the sums of ``OLSUCBC``, of single arms only,

    .. math::

        \overline{\Sigma}_{ii} &= \min\Bigl\{\frac{1}{4}, \hat{\Sigma}_{ii} + \frac{1}{4} \Bigl(
            \frac{5 h}{\sqrt{n_{ii}}} + \frac{h^2}{n_{ii}} + \frac{1}{n_{ii}^2} \Bigr)\Bigr\},
        \qquad h = \kappa \sqrt{\ln t + \ln d}, \\
        \theta_i &\sim \mathcal{N}\Bigl(\hat{\mu}_i,
            \beta\, \frac{Q_{ii} \overline{\Sigma}_{ii} + n_i^2}{N_i^2}\Bigr), \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle.

    Rewards have arg max. :math:`Q_{ii} \Sigma_{ii} / N_i^2` is the variance of
    :math:`\hat{\mu}_i`, where :math:`\Sigma_{ii}` is that of the arm's round mean: units that share
    a day effect are drawn farther than independent ones. :math:`n_i` is the largest number of units
    of arm i in an action. For units of 0 and 1 the variance is
    :math:`\beta (\overline{\Sigma}_{ii} / N_i + 1 / N_i^2)`; ``GaussianCTS`` has
    :math:`\beta / (4 N_i)`. Units that were not seen count for nothing.

    It calls the oracle once in a round, so it plays on every set, and needs no horizon. An
    objective that is not linear takes :math:`\theta` cut to [0, 1].

    Parameters
    ----------
    beta
        :math:`\beta`, how far to draw, positive; less explores less.
    kappa
        :math:`\kappa`, how much doubt about variances; 0 trusts the estimates.
    discount, window, memory
        Which reports count, as in ``GaussianCTS``: one of the three. ``Changes()`` is refused: the
        squares of rounds do not follow from a mean since a change.
    shared_seed
        One random number for all arms of a round, as in ``GaussianCTS``.
    replan
        "rarely": the solver is called in few rounds, see "Few calls of the solver" in
        docs/choosing.md. None: it is called in every round.

    See Also
    --------
    OLSUCBC : By covariances, for sets of which all actions can be listed.
    BootstrapCTS : It learns the noise too, from the deviations of single units.

    Notes
    -----
    Of the article, the abstract was read, and the bound of variances as Kim et al. restate it. The
    algorithm box of COS-V was not read. From the abstract are: a sampling algorithm, by estimated
    variances only, in the time of the linear problem. The law of the draw above, with a normal
    distribution for each arm and the diagonal of the matrix of ``OLSUCBC``, is the choice of this
    library, and the published bound on regret is not claimed for it.

    References
    ----------
    Zhou, Gaillard, Rahier, Zenati, Arbel: Towards Efficient and Optimal Covariance-Adaptive
    Algorithms for Combinatorial Semi-Bandits, NeurIPS 2024. (COS-V.)
    Kim, Vojnovic, Oh: Oracle-Efficient Combinatorial Semi-Bandits, NeurIPS 2025. (Section 4.1; what
    was read of the article: see ``Rarely``.)

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import COSV, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), COSV(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    How far it draws around the average 1/2 after 10,000 losses: of 0 and 1, and all of 1/2:

    >>> from multiplay import Budget
    >>> seen = np.full((1, 2), 1e4)
    >>> state = {"t": np.array([20_000]), "count": seen, "sum": seen / 2,
    ...          "products": np.array([[5e3, 2.5e3]]), "pairs": seen, "squares": seen}
    >>> COSV().deviation(Budget(1, [1, 1]), state).round(4)
    array([[0.005, 0.002]])
    """

    does = "Plays each plan as often as it may be the best, by how much results vary."
    cost = PolicyCost(step=2.0)

    beta: float = 1.0
    kappa: float = 1.0
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    shared_seed: bool = field(default=False, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_doubt(self.beta, self.kappa, "beta")
        super().__post_init__()

    def parts(self) -> Parts:
        """Return a draw around the averages, by the variances."""
        memory = memory_of(self.memory, self.discount, self.window)
        draw, planner = draw_of(self.shared_seed), planner_of(self.replan, memory)
        return Parts(Variances(memory, self.beta, self.kappa), draw, planner)

    def deviation(self, actions: ActionSet, state: Arrays) -> FloatArray:
        r"""Return the standard deviation of :math:`\theta`."""
        return Variances(beta=self.beta, kappa=self.kappa).spread(actions, state)


@dataclass(frozen=True, repr=False)
class Variances(Normal):
    """A normal posterior by bounds of the variances of the arms, from sums of squares of rounds."""

    names = ("count", "sum", "products", "pairs", "squares")
    restarts = False

    kappa: float = 1.0

    def gains(self, feedback: Feedback, rng: Rng) -> tuple[NDArray[Any], ...]:
        """Return units, losses, and the squares of both of each arm."""
        units = feedback.seen.astype(float)
        return feedback.seen, feedback.total, feedback.total**2, units**2, units**4

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count every unit, and the squares."""
        super().add(state, feedback, rng)
        for name, gain in zip(self.names[2:], self.gains(feedback, rng)[2:], strict=True):
            state[name] += gain

    def lacks(self, method: str) -> str | None:
        """Return why a method cannot be called: single units tell no squares of rounds."""
        return f"has no {method}()" if method == "counts" else super().lacks(method)

    def spread(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the standard deviation of a draw."""
        bound = np.empty(state["count"].shape)
        h = doubt(self.kappa, state["t"].astype(float), actions.d)
        kernels.variances(h, *pair_sums(state), bound)
        squared = state["pairs"] * bound + actions.n.astype(float) ** 2
        deviation: FloatArray = np.sqrt(self.beta * squared) / samples(state["count"])
        return deviation

    def interval(self, state: Arrays, level: float) -> None:
        """Return None: a draw is wider than what is believed."""
