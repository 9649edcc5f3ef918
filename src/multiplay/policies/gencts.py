"""GenCTS: generalised combinatorial Thompson sampling, with a beta posterior for every arm."""

from dataclasses import dataclass, field

import numpy as np

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.kernels.averages import count_coins
from multiplay.kernels.quantiles import beta_quantiles
from multiplay.policies.base import PolicyCost
from multiplay.policies.ordered import UnitOrder
from multiplay.policies.shared_seed import check_shared_seed, seeds
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True, repr=False)
class GenCTS(UnitOrder):
    r"""Play the best action for losses (or rewards) drawn from the posterior of every arm.

    From :math:`p_i = q_i = 1`, each round

    .. math::

        \theta_i &\sim \operatorname{Beta}(p_i, q_i), \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle, \\
        Y_{ij} &\sim \operatorname{Bernoulli}(L_{ij}), \qquad j = 1, \dots, a_i, \\
        p_i &\leftarrow p_i + \sum_{j=1}^{a_i} Y_{ij}, \qquad
            q_i \leftarrow q_i + \sum_{j=1}^{a_i} (1 - Y_{ij}).

    So every unit flips a coin with its loss as the chance of heads. Rewards have arg max; other
    objectives have what ``actions.best`` makes of :math:`\theta`. Units that were not seen flip no
    coin. Needs no horizon. Its regret is logarithmic in the stochastic regime, and linear when
    losses are corrupted. Duplicated, it is the CTS of Wang and Chen (2018).

    Parameters
    ----------
    discount
        For losses that drift: :math:`\gamma` in (0, 1) makes old coins fade. For every round told,
        :math:`p_i \leftarrow 1 + \gamma (p_i - 1) + \text{heads}` and
        :math:`q_i \leftarrow 1 + \gamma (q_i - 1) + \text{tails}`, for all arms.
    window
        The same by W, a number of rounds: only the coins of the last W rounds told count.
    shared_seed
        One random number for all arms of a round: with :math:`u` uniform,
        :math:`\theta_i = F_i^{-1}(u)`, where :math:`F_i` is the posterior of arm i
        (docs/choosing.md#one-seed-for-all-arms). False: each arm draws on its own.
    replan
        "rarely": the solver is called in few rounds, and the best of the plans that it found is
        played in the others, for sets whose plans take long to compute: see "Few calls of the
        solver" in docs/choosing.md. None: it is called in every round.
    units
        "ordered": the k-th unit of an arm has a mean of its own, which does not decrease in k (for
        rewards: increase). Its posterior is normal, from the coins of that unit, of its neighbours
        and of all arms: see docs/diminishing.md.

    References
    ----------
    Nakamura, Kuroki, Chen: Multi-Play Combinatorial Semi-Bandit Problem, algorithm 1.
    Wang, Chen: Thompson Sampling for Combinatorial Semi-Bandits, ICML 2018.
    Raj, Kalyani: Taming Non-stationary Bandits: A Bayesian Approach, 2017 (``discount``).
    Trovo, Paladino, Restelli, Gatti: Sliding-Window Thompson Sampling for Non-Stationary Settings,
    JAIR 2020 (``window``).
    Jin, Zhao, Tan, Gu: Avoiding exp(k*) Scaling for Thompson Sampling in Combinatorial
    Semi-Bandits: From Multiple Seeds to a Single Seed, COLT 2026 (``shared_seed``; only the
    abstract was read).

    Examples
    --------
    >>> from multiplay import Bernoulli, Corrupted, GenCTS, Learner, Transport, simulate
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> learner = Learner(plans, GenCTS(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    Where losses change, it pays to forget:

    >>> before, after = [0.1, 0.4, 0.2, 0.3, 0.3, 0.2], [0.9, 0.6, 0.8, 0.7, 0.7, 0.8]
    >>> world = Corrupted(Bernoulli(before), Bernoulli(after), at=100)
    >>> policies = {"all": GenCTS(), "fading": GenCTS(discount=0.95)}
    >>> simulate(plans, world, policies, horizon=300, trials=5).ranked
    ['fading', 'all']

    Twenty arms that are cheap together, beside twenty that are known: draws of their own hardly
    ever try them, draws with one seed do.

    >>> import numpy as np
    >>> from multiplay import Explicit, Stochastic
    >>> routes = Explicit(np.repeat([[1, 0], [0, 1]], 20, axis=1))
    >>> world = Stochastic(Bernoulli(np.repeat([0.1, 0.05], 20)))
    >>> policies = {"own": GenCTS(), "one": GenCTS(shared_seed=True)}
    >>> simulate(routes, world, policies, horizon=500, trials=5).ranked
    ['one', 'own']
    """

    does = (
        "Plays each plan as often as it is likely to be the best, if every average stays the same."
    )
    cost = PolicyCost(rounds_kept="window")
    changing = True
    partial = True
    absorbs = True
    coins = True
    sums = ("p", "q")
    prior = 1.0

    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    shared_seed: bool = field(default=False, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)
    units: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shared_seed(self.shared_seed)

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state p = q = 1, a uniform posterior."""
        if self.is_ordered:
            return self.start_ordered(actions, trials)
        shape = (trials, actions.d)
        return {"p": np.ones(shape), "q": np.ones(shape)} | self.slots(*shape)

    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray | None:
        r"""Return :math:`\theta`, one draw of the posterior; None if units are ordered."""
        if self.is_ordered:
            return None
        p, q = state["p"], state["q"]
        if not self.shared_seed:
            return rng.beta(p, q)
        theta = np.empty(p.shape)
        beta_quantiles(seeds(len(p), rng), p, q, theta)
        return theta

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count the heads and the tails, also those of external plans."""
        if self.is_ordered:
            self.absorb_ordered(state, feedback, rng)
            return
        heads, p = feedback.flip(rng), state["p"]
        if self.window is None and heads.shape == p.shape:
            count_coins(feedback.seen, heads, p, state["q"])
        else:
            self.add(state, heads, feedback.seen - heads)

    def forget(self, state: Arrays, rounds: int) -> None:
        """Forget for rounds in which nothing was added."""
        if self.is_ordered:
            self.forget_ordered(state, rounds)
        else:
            super().forget(state, rounds)

    def gains(self, units: FloatArray, total: FloatArray) -> tuple[FloatArray, ...]:
        """Return the expected numbers of heads and tails: a restart flips no coins again."""
        heads = np.clip(total, 0.0, units)
        return heads, units - heads

    def believed(self, state: Arrays) -> FloatArray:
        """Return the mean of the posterior, :math:`p_i / (p_i + q_i)`."""
        if self.is_ordered:
            return self.believed_ordered(state)
        mean: FloatArray = state["p"] / (state["p"] + state["q"])
        return mean

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray] | None:
        r"""Return two quantiles of the posterior, (1 - level) / 2 and (1 + level) / 2.

        Where the loss of every unit is told, the coins of an arm are Bernoulli with its mean,
        whatever its losses are: for means that are as likely anywhere in [0, 1] the interval holds
        them with probability ``level``, also after any play of the policy. From totals only, the
        coins vary up to twice as much, and the interval may be too short by a factor of
        :math:`\sqrt{2}`. None if units are ordered: an arm then has no single mean.
        """
        if self.is_ordered:
            return None
        from scipy.special import betaincinv

        ends = np.array([[[1 - level]], [[1 + level]]]) / 2
        low, high = np.asarray(betaincinv(state["p"], state["q"], ends), dtype=float)
        return low, high
