"""Optimism arm by arm: a confidence bound for every arm, and the best action for the bounds."""

from dataclasses import dataclass, field

from multiplay.actions import ActionSet
from multiplay.policies.base import PolicyCost
from multiplay.policies.index import IndexPolicy, Parts, memory_of, planner_of
from multiplay.policies.rules import Bound
from multiplay.posteriors.averages import Averages
from multiplay.posteriors.memories import Memory
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True, repr=False)
class CombUCB(IndexPolicy):
    r"""Play the best action for the most optimistic losses (or rewards) within the bounds.

    Every arm is seen once. Then, in round t, with :math:`N_i` samples of arm i and their average
    :math:`\hat{\mu}_i`,

    .. math::

        b_i &= \max\Bigl\{0, \hat{\mu}_i - \sqrt{\frac{\alpha \ln t}{N_i}}\Bigr\}, \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, b \rangle, \\
        N_i &\leftarrow N_i + a_i.

    So every unit is a sample. Units that were not seen count for nothing. Rewards have
    :math:`b_i = \min\{1, \hat{\mu}_i + \sqrt{\alpha \ln t / N_i}\}` and arg max; other objectives
    have what ``actions.best`` makes of b.

    After :math:`N_i` samples the bound is on the wrong side of the true mean with a probability of
    at most :math:`t^{-2 \alpha}`, by Hoeffding's inequality. Needs no horizon. The regret is
    logarithmic in the stochastic regime. An objective that is not linear must be monotone in every
    mean, as that of ``Coverage`` is, for then the bounds of the arms bound the value of an action.

    Parameters
    ----------
    alpha
        :math:`\alpha`, how much doubt: 1.5 in the proof; less explores less.
    discount
        For losses that drift: :math:`\gamma` in (0, 1) makes old samples fade. For every round
        told, :math:`N_i \leftarrow \gamma N_i + a_i`, and so the sum of the losses, for all arms;
        :math:`\ln t` becomes :math:`\ln(1 + \gamma + \dots + \gamma^{t - 1})`. An arm with
        :math:`N_i < 0.1` counts as unseen again.
    window
        The same by W, a number of rounds: only the samples of the last W rounds told count, and
        :math:`\ln t` becomes :math:`\ln \min(t, W)`.
    memory
        Which reports count, in place of both: ``Changes()`` lets an arm whose losses changed forget
        what it was told before, by itself. ``discount`` and ``window`` are short forms of
        ``Discount(...)`` and ``Window(...)``.
    replan
        "rarely": the solver is called in few rounds, and the best of the plans that it found is
        played in the others, for sets whose plans take long to compute: see "Few calls of the
        solver" in docs/choosing.md. None: it is called in every round.

    References
    ----------
    Kveton, Wen, Ashkan, Szepesvari: Tight Regret Bounds for Stochastic Combinatorial Semi-Bandits,
    AISTATS 2015. (CombUCB1: there t - 1 stands for t, and nothing is clipped.)
    Chen, Wang, Yuan: Combinatorial Multi-Armed Bandit, ICML 2013, for monotone objectives.
    Chen, Wang, Zhao, Zheng: Combinatorial Semi-Bandit in the Non-Stationary Environment, UAI 2021,
    for ``window`` on combinatorial sets (CUCB-SW). Of that paper only the abstract was read.
    Garivier, Moulines: On Upper-Confidence Bound Policies for Switching Bandit Problems, ALT 2011,
    for ``discount`` (D-UCB, with :math:`\alpha = 4 \xi`) and ``window`` (SW-UCB, with
    :math:`\alpha = \xi`), :math:`\xi > 1/2`.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget, CombUCB, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), CombUCB(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    Of two arms with the averages 0.3 and 0.4 it plays the second, of which less was seen:

    >>> seen, lost = np.array([[900.0, 100.0]]), np.array([[270.0, 40.0]])
    >>> state = {"t": np.array([1000]), "count": seen, "sum": lost}
    >>> CombUCB().bounds(Budget(1, [1, 1]), state).round(3)
    array([[0.193, 0.078]])
    """

    does = "Plays the plan that is best if everything is as good as it may still be."
    cost = PolicyCost()

    alpha: float = 1.5
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def parts(self) -> Parts:
        """Return the bounds of averages."""
        memory = memory_of(self.memory, self.discount, self.window)
        return Parts(Averages(memory), Bound(self.alpha), planner_of(self.replan, memory))

    def bounds(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the lower confidence bounds of losses, or the upper ones of rewards."""
        return Averages(self.posterior.memory).bound(self.alpha, actions, state)
