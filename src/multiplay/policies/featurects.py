"""FeatureCTS: optimistic quantiles of a model of features and of what each arm has for itself."""

from dataclasses import dataclass, field

import numpy as np

from multiplay._support.checks import is_number, true_or_false
from multiplay.beliefs.features import PRIORS
from multiplay.errors import InvalidInput
from multiplay.policies.base import PolicyCost
from multiplay.policies.index import FeaturePolicy, Parts, memory_of, planner_of
from multiplay.policies.rules import Draw, Optimism, OptimisticQuantile
from multiplay.posteriors.features import FeatureModel
from multiplay.posteriors.memories import Memory


@dataclass(frozen=True, repr=False)
class FeatureCTS(FeaturePolicy):
    r"""Play the best action for optimistic quantiles of a model of losses by their features.

    The loss of a unit of arm i in round t is taken to be

    .. math::

        \langle \theta, \phi_{t,i} \rangle + b_i + u_{t,i} + \text{noise}, \qquad
        \theta_j \sim \mathcal{N}(m_j, \tfrac{1}{4}), \quad b_i \sim \mathcal{N}(0, s_b^2), \quad
        u_{t,i} \sim \mathcal{N}(0, s_u^2),

    with :math:`m = (\tfrac{1}{2}, 0, \ldots, 0)`. :math:`\theta` is what the features
    :math:`\phi_{t,i}` of an arm in the round say, :math:`b_i` what the arm has for itself, and
    :math:`u_{t,i}` what its units share in the round. An arm with many reports is learned for
    itself; a new arm starts from its features. With the exact posterior, a normal distribution with
    mean :math:`\mu_i` and deviation :math:`\sigma_i` for each arm, in each round

    .. math::

        a = \operatorname*{arg\,min}_{a \in \mathcal{A}} \sum_i a_i (\mu_i - x_i \sigma_i), \qquad
        x_i = \max\Bigl(\tfrac12 (1 + u_i) \sqrt{\tfrac12 \ln(t + 10)},\; \xi\Bigr),

    with one :math:`\xi \sim \mathcal{N}(0, 1)` in a round and one uniform :math:`u_i` for each arm:
    see ``OptimisticQuantile``. Rewards have +, and arg max. The variances are learned: those of
    units and rounds from squared errors of predictions, and
    :math:`s_b \in \{0, .0125, .03, .075, .2\}` by its evidence (without features, with .004 for 0).

    Features come with the set of each round, ``actions.features``. Without them the only feature is
    1: arms differ by :math:`b_i` alone. An objective that is not linear takes means cut to [0, 1].
    Units that were not seen count for nothing. It needs no horizon, and has no guarantee when
    features or losses are chosen by an adversary.

    Parameters
    ----------
    discount
        For losses that drift: in (0, 1), the weight of a report fades by this factor for every
        round told. It takes 5 d p^2 multiplications a round.
    effects
        False for the linear model of the literature: :math:`b_i = u_{t,i} = 0`, and units have
        variance 1/4. It is worse where features do not explain the losses.
    draws
        True for Thompson sampling: :math:`\theta` and b are drawn from the posterior. It takes
        less time where arms are very many, and more rounds. With ``effects=False`` it is CombLinTS.
    optimism
        If given, each arm has its mean less (for rewards: plus) so many standard deviations, in
        every round. With ``effects=False`` it is CombLinUCB.
    priors
        3, or 1 and 2 for the priors of older studies, which continue with them.
    memory
        Which reports count. ``Changes()`` looks for changes of all coefficients: a second posterior
        begins from nothing now and then, and replaces the first once it has predicted the losses
        10^9 times as well. It takes twice the time. ``Discount(...)`` is the long form of
        ``discount``.
    replan
        "rarely": the solver is called in few rounds, see "Few calls of the solver" in
        docs/choosing.md. None: it is called in every round.

    References
    ----------
    Wen, Kveton, Ashkan: Efficient Learning in Large-Scale Combinatorial Semi-Bandits, ICML 2015.
    (CombLinTS and CombLinUCB.)
    Aouali, Kveton, Katariya: Mixed-Effect Thompson Sampling, AISTATS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget, FeatureCTS, FeatureRows, Feedback, Streams
    >>> shifts, policy = Budget(1, [1, 1, 1]), FeatureCTS()
    >>> today = shifts.featured(FeatureRows.of([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]]))
    >>> state = policy.start(today, horizon=None, trials=1)
    >>> rng = Streams.spawn(seed=0, purpose=0, trials=[0])
    >>> for _ in range(100):  # losses grow with the feature
    ...     play = policy.choose(today, state, rng)
    ...     loss = play.action * [[0.2, 0.4, 0.6]]
    ...     policy.update(today, state, play, Feedback(play.action, loss), rng)

    On a day with other features, another arm is best:

    >>> other = shifts.featured(FeatureRows.of([[1.0, 1.0], [1.0, 0.5], [1.0, -1.0]]))
    >>> policy.choose(other, state, rng).action
    array([[0, 0, 1]])
    """

    does = "Plays the plan that may well be the best, by a model of the features."
    cost = PolicyCost(step=5.0)

    discount: float | None = field(default=None, kw_only=True)
    effects: bool = field(default=True, kw_only=True)
    draws: bool = field(default=False, kw_only=True)
    optimism: float | None = field(default=None, kw_only=True)
    priors: int = field(default=PRIORS, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def parts(self) -> Parts:
        """Return an optimistic quantile of the model, a draw, or means less deviations."""
        given, memory = self.optimism, memory_of(self.memory, self.discount)
        true_or_false("draws", self.draws, "Leave it out.")
        if given is not None and not (is_number(given) and 0 <= given < np.inf):
            hint = "Use 2.0, or leave it out for a level that grows with the round."
            raise InvalidInput("optimism", "a number of at least 0", repr(given), hint)
        if self.draws and given is not None:
            got = f"draws=True and optimism={given!r}"
            raise InvalidInput("optimism", "one rule", got, "Leave out one of them.")
        rule = (
            Optimism(given) if given is not None else Draw() if self.draws else OptimisticQuantile()
        )
        posterior = FeatureModel(memory, self.effects, self.priors)
        return Parts(posterior, rule, planner_of(self.replan, memory))
