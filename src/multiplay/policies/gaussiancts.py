"""GaussianCTS: Thompson sampling with a normal posterior for every arm."""

from dataclasses import dataclass, field

from multiplay.policies.base import PolicyCost
from multiplay.policies.index import IndexPolicy, Parts, draw_of, memory_of, planner_of
from multiplay.posteriors.averages import Normal
from multiplay.posteriors.memories import Memory


@dataclass(frozen=True, repr=False)
class GaussianCTS(IndexPolicy):
    r"""Play the best action for losses (or rewards) drawn around the average of every arm.

    Every arm is seen once. Then, each round, with :math:`N_i` samples of arm i and their average
    :math:`\hat{\mu}_i`,

    .. math::

        \theta_i &\sim \mathcal{N}\Bigl(\hat{\mu}_i, \frac{\beta}{4 N_i}\Bigr), \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle, \\
        N_i &\leftarrow N_i + a_i,

    and arg max for rewards. So every unit is a sample. Units that were not seen count for nothing.

    1/4 is the largest variance of a loss in [0, 1]. So, unlike ``GenCTS``, it needs no coins, and
    draws too far from losses of little variance. It needs no horizon. An objective that is not
    linear takes :math:`\theta` cut to [0, 1], for its means are chances.

    Parameters
    ----------
    beta
        :math:`\beta`, how far to draw, positive; less explores less. The proof needs
        :math:`\beta > 1`; the simulations of the authors draw with the variance of the losses
        divided by :math:`N_i`, which is :math:`\beta = 1`.
    discount
        For losses that drift: :math:`\gamma` in (0, 1) makes old samples fade. For every round
        told, :math:`N_i \leftarrow \gamma N_i + a_i`, and so the sum of the losses, for all arms.
        An arm with :math:`N_i < 0.1` counts as unseen again.
    window
        The same by W, a number of rounds: only the samples of the last W rounds told count.
    memory
        Which reports count, in place of both: ``Changes()`` lets an arm whose losses changed forget
        what it was told before, by itself. ``discount`` and ``window`` are short forms of
        ``Discount(...)`` and ``Window(...)``.
    shared_seed
        One random number for all arms of a round: with
        :math:`z \sim \mathcal{N}(0, 1)`,
        :math:`\theta_i = \hat{\mu}_i + z \sqrt{\beta / (4 N_i)}`
        (docs/choosing.md#one-seed-for-all-arms). False: each arm draws on its own.
    replan
        "rarely": the solver is called in few rounds, and the best of the plans that it found is
        played in the others, for sets whose plans take long to compute: see "Few calls of the
        solver" in docs/choosing.md. None: it is called in every round.

    References
    ----------
    Perrault, Boursier, Perchet, Valko: Statistical Efficiency of Thompson Sampling for
    Combinatorial Semi-Bandits, NeurIPS 2020. (CTS-Gaussian, for independent arms.)
    Qi, Wang, Zhu: Discounted Thompson Sampling for Non-Stationary Bandit Problems, 2023
    (``discount``), and Thompson Sampling for Non-Stationary Bandit Problems, Entropy 2025
    (``window`` as well).
    Jin, Zhao, Tan, Gu: Avoiding exp(k*) Scaling for Thompson Sampling in Combinatorial
    Semi-Bandits: From Multiple Seeds to a Single Seed, COLT 2026 (``shared_seed``; only the
    abstract was read).
    Hu, Pan, Huang: Worst-Case Regret Bounds for Combinatorial Thompson Sampling in Sleeping
    Semi-Bandits, INFOCOM 2026 (``shared_seed``; only the abstract was read).

    Examples
    --------
    >>> from multiplay import GaussianCTS, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), GaussianCTS(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    does = (
        "Plays each plan as often as it is likely to be the best, if results vary around "
        "fixed averages."
    )
    cost = PolicyCost()

    beta: float = 1.0
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    shared_seed: bool = field(default=False, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def parts(self) -> Parts:
        """Return a draw around the averages."""
        memory = memory_of(self.memory, self.discount, self.window)
        draw, planner = draw_of(self.shared_seed), planner_of(self.replan, memory)
        return Parts(Normal(memory, self.beta), draw, planner)
