"""Best of both worlds without a horizon: follow-the-regularised-leader with Tsallis entropy."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.hull import Regulariser
from multiplay.kernels.ftrl import TINY, slow_rate
from multiplay.policies.base import Play
from multiplay.policies.ftrl import FTRL
from multiplay.posteriors.averages import count, predicted
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class Hybrid(FTRL):
    r"""Follow the leader under two entropies, one for arms to leave, one for arms to keep.

    With :math:`u = x_i / n_i`, in round t

    .. math::

        x &= \operatorname*{arg\,min}_{x \in \operatorname{conv}(\mathcal{A})}
            \langle \hat{L}, x \rangle + \frac{\sqrt{t}}{2} \sum_{i=1}^{d} \varphi_i(x_i), \\
        \varphi_i(x) &= n_i \bigl[\gamma \,(1 - u) \log(1 - u) - \sqrt{u}\bigr].

    An action a with :math:`\mathbb{E}[a] = x` is played, and :math:`k_i` is the average of the
    :math:`a_i` losses seen. Then, with q = 0,

    .. math::

        \hat{L}_i \leftarrow \hat{L}_i + q + \frac{a_i}{x_i} (k_i - q).

    The original has losses in [-1, 1] and the rate :math:`1 / \sqrt{t}`; for losses in [0, 1] that
    is the rate :math:`2 / \sqrt{t}` above. Estimates must not fall far below their smallest true
    value: those of losses are never negative. Rewards stay rewards, and the sign of
    :math:`\langle \hat{L}, x \rangle` is turned; with q = 1 their estimates never exceed 1. Needs
    no horizon. The regret is logarithmic in the stochastic regime and of order :math:`\sqrt{T}`
    against any adversary.

    Where units were not seen, :math:`k_i` becomes :math:`b_i + g_i (k_i - b_i)`, with the average
    :math:`k_i` of those seen, :math:`g_i` the units seen divided by those expected to be seen
    (docs/mathematics.md), and what is believed of the arm, :math:`b_i = (1/2 + S_i) / (1 + N_i)`,
    with :math:`S_i` the sum of its :math:`N_i` samples. An arm that cannot be played counts with
    :math:`b_i`.

    Parameters
    ----------
    gamma
        :math:`\gamma`, the weight of the entropy of 1 - u, positive. The authors' program takes 1,
        and :math:`1 / \sqrt{\log m}` for m-sets of at least half of the arms.

    References
    ----------
    Zimmert, Luo, Wei: Beating Stochastic and Adversarial Semi-Bandits Optimally and Simultaneously,
    ICML 2019.

    Examples
    --------
    >>> from multiplay import Hybrid, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), Hybrid(), seed=0)
    >>> play = learner.ask()
    >>> sum(play.plan.values())
    10

    The mean x of a play is kept with it; each lane got its share, rounded up or down:

    >>> x = learner.engine.pending[play.id].play.memo["x"]
    >>> bool((abs(play.action - x) < 1).all())
    True
    """

    does = "Mixes plans by their results so far, and tries also what looks bad."
    cost = FTRL.cost
    changing = True
    partial = True
    absorbs = True

    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.gamma) and 0 < self.gamma < np.inf):
            raise InvalidInput(
                "gamma", "a positive weight", repr(self.gamma), "Leave it out for 1."
            )

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return the state t = 1, :math:`\hat{L} = 0`, without samples."""
        state = {"t": np.ones(trials), **super().start(actions, horizon, trials)}
        return state | {name: np.zeros((trials, actions.d)) for name in ("count", "sum")}

    def regulariser(self, state: Arrays) -> Regulariser:
        r"""Return :math:`\varphi`, but for the linear part of the entropy, :math:`\gamma u`."""
        return _regulariser(self.gamma, len(state["t"]))

    def beta(self, actions: ActionSet, state: Arrays) -> FloatArray:
        r"""Return :math:`\sqrt{t} / 2`, for every arm."""
        beta = np.empty(state["L"].shape)
        slow_rate(state["t"], beta)
        return beta

    def costs(self, actions: ActionSet, state: Arrays, beta: FloatArray) -> FloatArray:
        r"""Return :math:`\hat{L}`; :math:`\beta \gamma u` is taken off the regulariser."""
        losses = state["L"] if actions.sign > 0 else -state["L"]
        costs: FloatArray = losses - self.gamma * beta
        return costs

    def expected(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return q = 0 for losses and 1 for rewards: the best value."""
        shape = state["L"].shape
        return np.zeros(shape) if actions.sign > 0 else np.ones(shape)

    def learn(
        self,
        actions: ActionSet,
        state: Arrays,
        play: Play,
        feedback: Feedback,
        error: FloatArray,
    ) -> None:
        r"""Count the round; :math:`\hat{L}` of arms that could not be played grows by beliefs."""
        state["t"] += 1
        if len(actions.closed):  # q is no prediction here
            missed = self.believed(state) - play.memo["q"]
            state["L"][:, actions.closed] += missed[:, actions.closed]
        count(state, feedback)

    def fill(
        self, state: Arrays, play: Play, feedback: Feedback, q: FloatArray, g: FloatArray
    ) -> None:
        """Take missing units to lose what is believed of them: q is no prediction here."""
        surprise = self.believed(state) - q
        state["L"] += (1 - g) * feedback.count / np.maximum(play.memo["x"], TINY) * surprise

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count the samples: they estimate the loss of an arm while it cannot be played."""
        count(state, feedback)

    def believed(self, state: Arrays) -> FloatArray:
        """Return :math:`(1/2 + S_i) / (1 + N_i)`."""
        return predicted(state)


@lru_cache(maxsize=16)
def _regulariser(gamma: float, trials: int) -> Regulariser:
    """Return the same object in every round: its weights are laid out for the kernels once."""
    one = np.ones(trials)
    return Regulariser(barrier=0 * one, entropy=gamma * one, root=one)
