"""Optimism arm by arm: a confidence bound for every arm, and the best action for the bounds."""

from dataclasses import dataclass, field

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import is_number
from multiplay.errors import InvalidInput
from multiplay.kernels.averages import confidence_bounds
from multiplay.policies.averages import Averages, unseen_first
from multiplay.policies.base import Play
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True, repr=False)
class CombUCB(Averages):
    """Play the best action for the best losses (or rewards) that can be believed.

    Every arm is seen once. Then, in round t, with N_i samples of arm i and their average mean_i,

    1. bound_i = max(0, mean_i - sqrt(alpha ln t / N_i)) for losses,
       bound_i = min(1, mean_i + sqrt(alpha ln t / N_i)) for rewards;
    2. a is the best action for the bounds: argmin over A of <a, bound> for losses, argmax for
       rewards, or what ``actions.best`` makes of them;
    3. N_i += a_i: every unit is a sample. Units that were not seen count for nothing.

    After N_i samples the bound is on the wrong side of the true mean with a probability of at most
    t^(-2 alpha), by Hoeffding's inequality. Needs no horizon. The regret is logarithmic in the
    stochastic regime. An objective that is not linear must be monotone in every mean, as that of
    ``Coverage`` is, for then the bounds of the arms bound the value of an action.

    Parameters
    ----------
    alpha
        How much doubt: 1.5 in the proof; less explores less.
    discount
        For losses that drift: gamma in (0, 1) makes old samples fade. For every round told,
        N_i = gamma N_i + a_i, and so the sum of the losses, for all arms; ln t becomes
        ln(1 + gamma + ... + gamma^(t - 1)). An arm with N_i < 0.1 counts as unseen again.
    window
        The same by W, a number of rounds: only the samples of the last W rounds told count, and
        ln t becomes ln min(t, W).

    References
    ----------
    Kveton, Wen, Ashkan, Szepesvari: Tight Regret Bounds for Stochastic Combinatorial Semi-Bandits,
    AISTATS 2015. (CombUCB1: there t - 1 stands for t, and nothing is clipped.)
    Chen, Wang, Yuan: Combinatorial Multi-Armed Bandit, ICML 2013, for monotone objectives.
    Garivier, Moulines: On Upper-Confidence Bound Policies for Switching Bandit Problems, ALT 2011,
    for ``discount`` (D-UCB, with alpha = 4 xi) and ``window`` (SW-UCB, with alpha = xi), xi > 1/2.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), CombUCB(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    alpha: float = 1.5
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.alpha) and 0 < self.alpha < np.inf):
            raise InvalidInput(
                "alpha", "a positive number", repr(self.alpha), "Leave it out for 1.5."
            )

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for the bounds."""
        return Play(unseen_first(actions, state, actions.best(self.bounds(actions, state))))

    def bounds(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the lower confidence bounds of losses, or the upper ones of rewards."""
        t, N, S = state["t"], state["count"], state["sum"]
        bound = np.empty(N.shape)
        confidence_bounds(t, N, S, *self.memory, float(self.alpha), actions.sign, bound)
        return bound
