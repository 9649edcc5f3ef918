"""BG-CTS: Thompson sampling with normal draws that are widened by a boost."""

import math
from dataclasses import dataclass, field

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.policies.base import PolicyCost
from multiplay.policies.index import IndexPolicy, Parts, draw_of, memory_of, planner_of
from multiplay.posteriors.averages import Normal, samples
from multiplay.posteriors.memories import Memory
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True, repr=False)
class BGCTS(IndexPolicy):
    r"""Play the best action for losses (or rewards) drawn around the averages, with a boost.

    Every arm is seen once. Then, in round t, with :math:`N_i` samples of arm i and their average
    :math:`\hat{\mu}_i`,

    .. math::

        \theta_i &\sim \mathcal{N}\Bigl(\hat{\mu}_i, \frac{2 \sigma^2 g(t)}{N_i}\Bigr),
            \qquad \sigma = \frac12, \\
        g(t) &= \frac{1 + \lambda}{\ln t} \Bigl(\ln t + (m + 2) \ln \ln t
            + \frac{m}{2} \ln \Bigl(1 + \frac{e}{\lambda}\Bigr)\Bigr), \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle, \\
        N_i &\leftarrow N_i + a_i,

    and arg max for rewards. For t < e, g has its value at e; for :math:`\lambda = 0` its last term
    is 0. The boost g falls to :math:`1 + \lambda` as t grows. m is the largest number of arms in an
    action, taken as min(d, M), where M is the most units: exact where actions are 0 or 1, and an
    upper bound with units, as finding m would need all actions. Every unit is a sample. Units that
    were not seen count for nothing. It needs no horizon.

    The draws of the m arms of an action are independent, so that all of them are seldom low: with
    the exact posterior of Bernoulli losses, as in ``GenCTS``, the time until the best action is
    first played can be exponential in m. With normal draws and the boost, the regret is

    .. math::

        O\Bigl(\frac{\sigma^2 d \ln m}{\Delta_{\min}} \ln T
            + \frac{\sigma^2 d^2 m \ln m}{\Delta_{\min}} \ln \ln T\Bigr)

    and a term that does not grow with T and is polynomial in m, d and
    :math:`1 / \Delta_{\min}`, for all independent losses in [0, 1], linear objectives and
    :math:`\lambda > 0`. docs/worlds.md has the problem on which samplers with the right likelihood
    fail. The boost costs regret where they do not: with m = 6, the variance of a draw is five to
    eight times that of ``GaussianCTS`` up to round 100,000. An objective that is not linear takes
    :math:`\theta` cut to [0, 1].

    Parameters
    ----------
    lam
        :math:`\lambda \ge 0`. The proof needs :math:`\lambda > 0`; the simulations of the authors
        have 0.
    discount, window, memory
        Which reports count, as in ``GaussianCTS``: one of the three.
    shared_seed
        One random number for all arms of a round, as in ``GaussianCTS``.
    replan
        "rarely": the solver is called in few rounds, see "Few calls of the solver" in
        docs/choosing.md. None: it is called in every round.

    References
    ----------
    Zhang, Combes: Thompson Sampling For Combinatorial Bandits: Polynomial Regret and Mismatched
    Sampling Paradox, NeurIPS 2024, arXiv 2410.05441. The abstract and the authors' simulation
    (RaymZhang/CTS-Mismatched-Paradox, its function for g and its instance) were read, and a summary
    of the paper; its text and proofs were not. There actions are 0 or 1, and
    :math:`\sigma` is the sub-Gaussian parameter of the rewards. Units, and min(d, M) for m, are
    ours: as in ``ESCB``, the bound is on :math:`\sum_i a_i^2 / N_i` of the arms in an action.

    Examples
    --------
    >>> from multiplay import BGCTS, Learner, Transport
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> learner = Learner(plans, BGCTS(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    The boost in rounds 10, 1,000 and 100,000:

    >>> import numpy as np
    >>> BGCTS().boost(plans, np.array([10, 1_000, 100_000])).round(2)
    array([3.9 , 3.24, 2.7 ])
    """

    does = "Plays each plan as often as it may be the best, with more trials of plans of many arms."
    cost = PolicyCost(step=1.5)

    lam: float = 0.0
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    shared_seed: bool = field(default=False, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not (is_number(self.lam) and 0 <= self.lam < np.inf):
            raise InvalidInput(
                "lam", "a number of at least 0", repr(self.lam), "Leave it out for 0."
            )
        super().__post_init__()

    def parts(self) -> Parts:
        """Return a draw around the averages, with the boost."""
        memory = memory_of(self.memory, self.discount, self.window)
        draw, planner = draw_of(self.shared_seed), planner_of(self.replan, memory)
        return Parts(Boosted(memory, lam=self.lam), draw, planner)

    def boost(self, actions: ActionSet, t: FloatArray) -> FloatArray:
        """Return g(t)."""
        return boost(self.lam, actions, t)


@dataclass(frozen=True, repr=False)
class Boosted(Normal):
    """A normal posterior that is widened by g(t), where t is the number of the round."""

    lam: float = 0.0

    def spread(self, actions: ActionSet, state: Arrays) -> FloatArray:
        r"""Return :math:`\sqrt{2 \sigma^2 g(t) / N_i}`."""
        g = boost(self.lam, actions, state["t"])[:, None]
        deviation: FloatArray = np.sqrt(g / (2 * samples(state["count"])))
        return deviation

    def interval(self, state: Arrays, level: float) -> None:
        """Return None: the boost is no uncertainty."""


def boost(lam: float, actions: ActionSet, t: FloatArray) -> FloatArray:
    """Return g(t) of a set."""
    m = min(int(np.count_nonzero(actions.n)), actions.M)
    log = np.log(np.maximum(t, math.e))
    doubt = math.log1p(math.e / lam) if lam > 0 else 0.0
    g: FloatArray = (1 + lam) * (log + (m + 2) * np.log(log) + m / 2 * doubt) / log
    return g
