"""GenLBINFV: best of both worlds by optimistic follow-the-regularised-leader with variances."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import is_list, is_number, true_or_false
from multiplay._support.hints import Hint, Option
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies.base import Play
from multiplay.policies.logbarrier import LogBarrier
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray

PREDICTIONS = ("ls", "gd")
INITIALS = ("paper", "units")
DEFAULT_EPSILON = 0.2  # the published setting of LBINFV
ANYTIME_HINT = Hint("Write {} to play as if T were not known.", Option("anytime", "True"))


@dataclass(frozen=True)
class GenLBINFV(LogBarrier):
    r"""Follow the regularised leader, and draw an action with the minimiser as its mean.

    With :math:`\gamma = \log T` and :math:`u = x_i / n_i`, step 1 of round t is

    .. math::

        x &= \operatorname*{arg\,min}_{x \in \operatorname{conv}(\mathcal{A})}
            \langle q + \hat{L}, x \rangle + \sum_{i=1}^{d} \beta_i \varphi_i(x_i), \\
        \varphi_i(x) &= n_i \bigl[u - 1 - \log u + \gamma \,(u + (1 - u) \log(1 - u))\bigr].

    Step 2: an action a with :math:`\mathbb{E}[a] = x` is played, and :math:`k_i` is the average of
    the :math:`a_i` losses seen of arm i. Steps 3 and 4 are

    .. math::

        \hat{L}_i &\leftarrow \hat{L}_i + q_i + \frac{a_i}{x_i} (k_i - q_i), \\
        \beta_i^2 &\leftarrow \beta_i^2
            + \frac{1}{\gamma} \Bigl(\frac{a_i}{n_i}\Bigr)^2 (k_i - q_i)^2
            \min\Bigl\{1, \frac{2 (1 - u)}{u^2 \gamma}\Bigr\}.

    Step 5: :math:`q_i` predicts the next losses of arm i, see ``prediction``.

    Where T is not known, :math:`\gamma = \max\{4, 3/2 + \max_i \delta_i, \log t\}` with
    :math:`\delta_i = (1 + \epsilon_i) / (3 \epsilon_i)`, and the update of :math:`\beta` has the
    :math:`\gamma` of its own play. A ``Learner`` has no T. The proofs have
    :math:`\gamma = \log T`.

    Where units were not seen, :math:`k_i` is the average of those seen, and
    :math:`k_i - q_i` is multiplied by :math:`g_i`, the units seen divided by those expected to be
    seen (docs/mathematics.md).

    Rewards stay rewards; only the sign of :math:`\langle q + \hat{L}, x \rangle` is turned where it
    is minimised. The regret is logarithmic in the stochastic regime and of order :math:`\sqrt{T}`
    against any adversary. Duplicated, it is the LBINFV of Tsuchiya, Ito and Honda (2023).

    Parameters
    ----------
    prediction
        "ls", least squares: with :math:`N_i` samples of arm i so far and :math:`S_i` their sum,
        :math:`q_i = (1/2 + S_i) / (1 + N_i)`. "gd", gradient descent, which adapts to slow changes:
        :math:`q_i \leftarrow q_i + \eta (k_i - q_i)`.
    epsilon
        The fractions :math:`\epsilon_i = e_i / n_i` in :math:`\beta_i(1) = 1 + e_i / n_i`, in
        (0, 1/2]: a number for all arms, or one for each arm of the set (of the copied set, in
        ``Duplicated``); 0.2 if not given. Without a horizon, less than 0.05 makes
        :math:`\max_i \delta_i` and so the regret large.
    eta
        :math:`\eta`, the step of the gradient descent, in (0, 1/2).
    horizon
        T, the number of rounds, where you know it and the caller does not, as in a ``Learner``.
    any_horizon
        Go on even if the horizon is shorter than the theory needs, :math:`T \ge \max(55, d)`.
    initial
        "paper": :math:`\beta_i(1) = 1 + e_i / n_i`. "units": that divided by :math:`n_i`, and
        nothing else is changed. Then far less regret is paid for units in the stochastic regime,
        but nothing is proved: the first steps may be unstable, and :math:`\beta` repairs that
        afterwards. ``GenAdaINF`` is made for this.
    anytime
        Play as if T were not known, even where the caller gives it, as ``simulate`` does.

    References
    ----------
    Nakamura, Kuroki, Chen: Multi-Play Combinatorial Semi-Bandit Problem, algorithm 2.
    Tsuchiya, Ito, Honda: Further Adaptive Best-of-Both-Worlds Algorithm for Combinatorial
    Semi-Bandits, AISTATS 2023.

    Examples
    --------
    >>> from multiplay import Bernoulli, Corrupted, GenCTS, GenLBINFV, Learner, Transport, simulate
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> learner = Learner(plans, GenLBINFV(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    Where losses change, it comes back, and Thompson sampling does not:

    >>> before, after = [0.1, 0.4, 0.2, 0.3, 0.3, 0.2], [0.9, 0.6, 0.8, 0.7, 0.7, 0.8]
    >>> world = Corrupted(Bernoulli(before), Bernoulli(after), at=100)
    >>> policies = {"GenCTS": GenCTS(), "GenLBINFV": GenLBINFV()}
    >>> simulate(plans, world, policies, horizon=300, trials=5).ranked
    ['GenLBINFV', 'GenCTS']

    A first weight of its own for each arm, here a larger one for the lane that is never full:

    >>> GenLBINFV(epsilon=[0.2, 0.2, 0.2, 0.2, 0.2, 0.5]).start(plans, 1000, 1)["beta2"]
    array([[1.44, 1.44, 1.44, 1.44, 1.44, 2.25]])
    """

    does = "Mixes plans by their results so far, also where results change or are manipulated."
    cost = LogBarrier.cost

    prediction: str = "ls"
    epsilon: float | Sequence[float] | None = None
    eta: float = 0.25
    horizon: int | None = None
    any_horizon: bool = False
    initial: str = "paper"
    anytime: bool = False

    def __post_init__(self) -> None:
        if self.prediction not in PREDICTIONS:
            expected = "'ls' (least squares) or 'gd' (gradient descent)"
            raise InvalidInput(
                "prediction", expected, repr(self.prediction), "Leave it out for 'ls'."
            )
        if is_list(self.epsilon):  # a tuple, so that equal policies are equal
            object.__setattr__(self, "epsilon", tuple(self.epsilon))  # type: ignore[arg-type]
        if not self.fractions or not all(map(_is_fraction, self.fractions)):
            raise InvalidInput(
                "epsilon",
                "a fraction in (0, 1/2], or one for each arm",
                repr(self.epsilon),
                "Leave it out for 0.2.",
            )
        if self.initial not in INITIALS:
            expected = "'paper' (beta_i = 1 + e_i / n_i) or 'units' (the same, divided by n_i)"
            raise InvalidInput("initial", expected, repr(self.initial), "Leave it out for 'paper'.")
        true_or_false("anytime", self.anytime, ANYTIME_HINT)
        if self.anytime and self.horizon is not None:
            raise InvalidInput(
                "anytime",
                "False where horizon is given",
                f"anytime=True, horizon={self.horizon}",
                "Leave one of them out.",
            )
        super().__post_init__()

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return :math:`\hat{L} = 0`, q = 1/2, the first :math:`\beta`, and no samples."""
        state = super().start(actions, horizon, trials)
        shape = state["L"].shape
        units = np.maximum(actions.n, 1) if self.initial == "units" else np.ones(actions.d)
        beta2 = np.tile(((1 + self.fractions_of(actions)) / units) ** 2, (trials, 1))
        state |= {"q": np.full(shape, 0.5), "beta2": beta2}
        if self.prediction == "ls":
            state |= {"samples": np.zeros(shape), "sum": np.zeros(shape)}
        return state

    def clock(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return :math:`\gamma = \log T`; without T, t = 1, the round to be played."""
        if self.anytime or (self.horizon is None and horizon is None):
            return {"t": np.ones(trials, dtype=np.int64)}
        return super().clock(actions, horizon, trials)

    def gamma(self, state: Arrays) -> FloatArray:
        r"""Return :math:`\gamma`; without T, what the proof needs of :math:`\log T`."""
        if "g" in state:
            return state["g"]
        least = min(self.fractions)
        delta = (1 + least) / (3 * least)
        gamma: FloatArray = np.maximum(max(4.0, 1.5 + delta), np.log(state["t"]))
        return gamma

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        r"""Choose by steps 1 and 2; without T, the memo has the :math:`\gamma` of this round."""
        if "g" in state:
            return super().choose(actions, state, rng)
        g = self.gamma(state)
        play = super().choose(actions, state | {"g": g}, rng)
        play.memo["g"] = g
        return play

    def learn(
        self,
        actions: ActionSet,
        state: Arrays,
        play: Play,
        feedback: Feedback,
        error: FloatArray,
    ) -> None:
        """Learn by steps 4 and 5; without T, count the rounds."""
        super().learn(actions, state, play, feedback, error)
        if "t" in state:
            state["t"] += 1

    @property
    def fractions(self) -> tuple[float, ...]:
        r""":math:`\epsilon_i` as given: one for all arms, or one for each."""
        given = DEFAULT_EPSILON if self.epsilon is None else self.epsilon
        return given if isinstance(given, tuple) else (given,)

    def fractions_of(self, actions: ActionSet) -> FloatArray:
        r"""Return :math:`\epsilon_i` of every arm of a set, shape (d,)."""
        if isinstance(self.epsilon, tuple) and len(self.epsilon) != actions.d:
            raise InvalidInput(
                "epsilon",
                f"a number, or one fraction for each of the {actions.d} arms of {actions!r}",
                f"{len(self.epsilon)} fractions",
                "Give a number, or as many fractions as the set has arms.",
            )
        return np.broadcast_to(np.array(self.fractions, dtype=float), actions.d)


def _is_fraction(value: object) -> bool:
    return is_number(value) and 0 < value <= 0.5  # type: ignore[operator]
