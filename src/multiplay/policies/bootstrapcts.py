"""BootstrapCTS: combinatorial Thompson sampling that learns the noise of the losses."""

from dataclasses import dataclass, field

from multiplay.policies.base import PolicyCost
from multiplay.policies.index import (
    IndexPolicy,
    Parts,
    draw_of,
    is_ordered,
    memory_of,
    planner_of,
)
from multiplay.posteriors.base import Posterior
from multiplay.posteriors.by_unit import OrderedUnits
from multiplay.posteriors.memories import Memory
from multiplay.posteriors.moments import Moments


@dataclass(frozen=True, repr=False)
class BootstrapCTS(IndexPolicy):
    r"""Play the best action for means drawn by a Bayesian bootstrap of the losses seen.

    Of the :math:`N_i` losses of arm i, with the average :math:`\bar{k}_i`, each round draws

    .. math::

        (V_0, V_1, V_N) &\sim \operatorname{Dirichlet}(w, w, N_i), \\
        \theta_i &= V_0 \cdot 0 + V_1 \cdot 1 + V_N\, \kappa_i, \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle,

    where :math:`\kappa_i` has a beta distribution with mean :math:`\bar{k}_i` and the variance
    :math:`\text{deff}_i \sum_j (k_{ij} - \bar{k}_i)^2 / (N_i (N_i + 1))`: that of the mean of these
    losses under Dirichlet weights, times :math:`\text{deff}_i \ge 1`, the design effect of units
    that share a day. So w pseudo units lie at each end of the range, and the draws are as wide as
    the losses are noisy. For losses of 0 and 1, :math:`\theta_i \sim
    \operatorname{Beta}(1 + S_i, 1 + N_i - S_i)` for w = 1, the posterior of ``GenCTS``.

    An arm never seen draws from :math:`\operatorname{Beta}(w, n_i w)`, with :math:`n_i` the most
    units of it in an action: for w = 1 the best of one uniform draw for each unit, so that arms
    with many units are tried early. Rewards have :math:`1 - \theta_i` there, and arg max.

    It needs no horizon. It learns from units and from totals; units that were not seen count for
    nothing. Where the range of an arm is known, as in ``Learner(losses={...})``, the ends are those
    of its own range.

    Parameters
    ----------
    w
        Pseudo units at each end of the range, positive. Less explores less: 10 to 20 % less regret
        where losses have little noise, and a larger probability to miss rare cheap losses.
    curiosity
        With ``memory=Changes()``: how far, as a share of the range, an idle arm is taken to have
        moved in 1,000 rounds (a standard deviation), even if no arm was ever seen to move. 0 tries
        an idle arm again only after others were seen to change; 0.1 finds an idle arm that became
        cheap, at a price where nothing changes: see "Non-stationary losses" in docs/choosing.md.
    discount
        For losses that drift: in (0, 1), the weight of a report fades by this factor for every
        round told.
    window
        The same by W, a number of rounds: only the last W rounds told count.
    memory
        Which reports count. ``Changes()``: an arm whose losses changed forgets what it was told
        before, by itself. Each arm keeps hypotheses "the same mean since round s", and a draw picks
        one of them by its weight. Arms that were not seen of late may have moved as those that
        were; a change that most arms share moves idle arms as well. ``Persists()``: losses that
        were high in the last rounds stay high for a while. None: all losses count alike, or as
        ``discount`` or ``window`` say.
    shared_seed
        The same random numbers for all arms of a round (docs/choosing.md#one-seed-for-all-arms):
        one for :math:`\kappa_i`, at whose quantile all arms draw it; one for the weights, at
        whose quantile they draw :math:`\theta_i` given :math:`\kappa_i`; with ``Changes()``,
        one for the hypotheses, ordered by their means. An arm draws as it does alone, and its draw
        increases in each number. Needs w = 1. False: each arm draws on its own.
    replan
        "rarely": the solver is called in few rounds, and the best of the plans that it found is
        played in the others, for sets whose plans take long to compute: see "Few calls of the
        solver" in docs/choosing.md. None: it is called in every round.
    unit_means
        "ordered": the k-th unit of an arm has a mean of its own, which does not decrease in k (for
        rewards: increase). Its posterior is normal, from the losses of that unit, of its neighbours
        and of all arms, with learned noise: see docs/diminishing.md.

    References
    ----------
    Riou, Honda: Bandit Algorithms Based on Thompson Sampling for Bounded Reward Distributions,
    ALT 2020. (Dirichlet weights over the rewards seen and the upper end, for one play a round.)
    Baudry, Saux, Maillard: From Optimality to Robustness: Dirichlet Sampling Strategies in
    Stochastic Bandits, NeurIPS 2021.
    Adams, MacKay: Bayesian Online Changepoint Detection, 2007. (Hypotheses, for ``Changes``.)
    Jin, Zhao, Tan, Gu: Avoiding exp(k*) Scaling for Thompson Sampling in Combinatorial
    Semi-Bandits: From Multiple Seeds to a Single Seed, COLT 2026 (``shared_seed``; only the
    abstract was read).

    Examples
    --------
    >>> from multiplay import BootstrapCTS, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), BootstrapCTS(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    Where losses have little noise, it explores less than the paper's sampler:

    >>> import numpy as np
    >>> from multiplay import GenCTS, Stochastic, Uniform, simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> world = Stochastic(Uniform(np.subtract(means, 0.05), np.add(means, 0.05)))
    >>> policies = {"GenCTS": GenCTS(), "BootstrapCTS": BootstrapCTS()}
    >>> simulate(plans, world, policies, horizon=300, trials=5).ranked
    ['BootstrapCTS', 'GenCTS']

    It follows a change by itself:

    >>> from multiplay import Bernoulli, Changes, Corrupted
    >>> world = Corrupted(Bernoulli(means), Bernoulli(np.subtract(1, means)), at=100)
    >>> policies = {"keep": BootstrapCTS(), "follow": BootstrapCTS(memory=Changes())}
    >>> simulate(plans, world, policies, horizon=400, trials=5).ranked
    ['follow', 'keep']
    """

    does = "Plays each plan as often as it is likely to be the best, by the results so far."
    cost = PolicyCost(step=2.0)

    w: float = 1.0
    curiosity: float = field(default=0.0, kw_only=True)
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    shared_seed: bool = field(default=False, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)
    unit_means: str | None = field(default=None, kw_only=True)

    def parts(self) -> Parts:
        """Return a draw of moments, or of the mean of each unit."""
        memory = memory_of(self.memory, self.discount, self.window)
        posterior: Posterior = Moments(memory, self.w, curiosity=self.curiosity)
        if is_ordered(self.unit_means):
            posterior = OrderedUnits(memory, w=self.w)
        return Parts(posterior, draw_of(self.shared_seed), planner_of(self.replan, memory))
