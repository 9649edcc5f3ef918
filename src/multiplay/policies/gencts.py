"""GenCTS: generalised combinatorial Thompson sampling, with a beta posterior for every arm."""

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
from multiplay.posteriors.by_unit import OrderedUnits
from multiplay.posteriors.coins import Coins
from multiplay.posteriors.memories import Memory


@dataclass(frozen=True, repr=False)
class GenCTS(IndexPolicy):
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
    memory
        Which reports count, in place of both: ``Changes()`` lets an arm whose losses changed forget
        what it was told before, by itself. ``discount`` and ``window`` are short forms of
        ``Discount(...)`` and ``Window(...)``.
    shared_seed
        One random number for all arms of a round: with :math:`u` uniform,
        :math:`\theta_i = F_i^{-1}(u)`, where :math:`F_i` is the posterior of arm i
        (docs/choosing.md#one-seed-for-all-arms). False: each arm draws on its own.
    replan
        "rarely": the solver is called in few rounds, and the best of the plans that it found is
        played in the others, for sets whose plans take long to compute: see "Few calls of the
        solver" in docs/choosing.md. None: it is called in every round.
    unit_means
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
    cost = PolicyCost()

    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    shared_seed: bool = field(default=False, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)
    unit_means: str | None = field(default=None, kw_only=True)

    def parts(self) -> Parts:
        """Return a draw of coins, for each arm or for each unit."""
        memory = memory_of(self.memory, self.discount, self.window)
        ordered = is_ordered(self.unit_means)
        posterior = OrderedUnits(memory, coins=True) if ordered else Coins(memory)
        return Parts(posterior, draw_of(self.shared_seed), planner_of(self.replan, memory))
