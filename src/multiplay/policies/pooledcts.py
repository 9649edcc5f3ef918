"""PooledCTS: optimistic quantiles of the means of arms that learn from each other."""

from dataclasses import dataclass, field

from multiplay.policies.base import PolicyCost
from multiplay.policies.index import IndexPolicy, Parts, memory_of, planner_of
from multiplay.policies.rules import OptimisticQuantile
from multiplay.posteriors.memories import Changes, Memory
from multiplay.posteriors.pooled import Pooled

CURIOSITY = 0.05  # by default, where changes are followed


@dataclass(frozen=True, repr=False)
class PooledCTS(IndexPolicy):
    r"""Play the best action for optimistic quantiles, with a prior that all arms share.

    Each round,

    .. math::

        \theta_i &= F_i^{-1}\bigl(\Phi(-x_i)\bigr), \\
        x_i &= \max\Bigl(\tfrac12 (1 + u_i) \sqrt{\tfrac12 \ln(t + 10)},\; \xi\Bigr), \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle,

    with one :math:`\xi \sim \mathcal{N}(0, 1)` in a round and one uniform :math:`u_i` for each arm.
    :math:`F_i` is the posterior of the mean of arm i, a beta distribution: its prior, and how noisy
    a unit is, are learned from all arms (``Pooled``). So an arm is tried as far as what arms
    usually cost leaves room for it to be better. Rewards have :math:`\Phi(x_i)`, and arg max.

    It needs no horizon. It learns from units and from totals; units that were not seen count for
    nothing. For arms that have nothing to do with each other, use ``BootstrapCTS``. There is no
    theorem for plans with a learned prior; against an adversary its regret is linear.

    Parameters
    ----------
    curiosity
        With ``memory=Changes()``: how far, as a share of the range, an idle arm is taken to have
        moved in 1,000 rounds (a standard deviation), even if no arm was ever seen to move. None:
        0.05 where changes are followed.
    discount
        For losses that drift: in (0, 1), the weight of a report fades by this factor for every
        round told.
    window
        The same by W, a number of rounds: only the last W rounds told count.
    memory
        Which reports count, in place of both: ``Changes()`` lets an arm whose losses changed forget
        what it was told before, by itself. A ``Learner`` and a ``Study`` have
        ``PooledCTS(memory=Changes())`` unless a policy is given. ``Persists()``: losses that were
        high in the last rounds stay high for a while, see docs/persists.md.
    replan
        "rarely": the solver is called in few rounds, and the best of the plans that it found is
        played in the others, see "Few calls of the solver" in docs/choosing.md. None: it is called
        in every round.

    References
    ----------
    Vaswani, Mehrabian, Durand, Kveton: Old Dog Learns New Tricks: Randomized UCB for Bandit
    Problems, AISTATS 2020. (A random level shared by the arms; cited from memory. The prior, the
    noise and the rule for plans are our own.)

    Examples
    --------
    Eighty-one lanes and twenty days: arms that learn alone try most of them.

    >>> import numpy as np
    >>> from multiplay import BootstrapCTS, PooledCTS, Stochastic, Transport, Uniform, simulate
    >>> plans, means = Transport([6] * 9, [6] * 9), np.random.default_rng(0).uniform(0.2, 0.6, 81)
    >>> world = Stochastic(Uniform(means - 0.1, means + 0.1))
    >>> policies = {"pooled": PooledCTS(), "alone": BootstrapCTS()}
    >>> simulate(plans, world, policies, horizon=20, trials=5).ranked
    ['pooled', 'alone']
    """

    does = "Plays the plan that may well be the best, by what is known of all arms together."
    cost = PolicyCost(step=3.0)

    curiosity: float | None = field(default=None, kw_only=True)
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def parts(self) -> Parts:
        """Return an optimistic quantile of pooled moments."""
        memory, curiosity = memory_of(self.memory, self.discount, self.window), self.curiosity
        if curiosity is None:
            curiosity = CURIOSITY if memory.follows else 0.0
        posterior = Pooled(memory, curiosity=curiosity)
        return Parts(posterior, OptimisticQuantile(), planner_of(self.replan, memory))


DEFAULT = PooledCTS(memory=Changes())  # the policy of a Learner or a Study
