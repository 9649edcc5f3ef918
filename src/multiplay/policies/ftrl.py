"""The base class of follow-the-regularised-leader: its four steps."""

from abc import abstractmethod

import numpy as np

from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback, arm_totals
from multiplay.hull import Hull, LiftedHull, Regulariser
from multiplay.kernels import ftrl as kernels
from multiplay.policies.base import Play, Policy, PolicyCost
from multiplay.policies.missing import counts_reports, report_counts, report_weights
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray


class FTRL(Policy):
    r"""Minimise estimated losses plus a regulariser, and draw an action around the minimiser.

    Each round has four steps: the minimiser; an action a with :math:`\mathbb{E}[a] = x` that is
    played, with :math:`k_i` the average of the :math:`a_i` losses seen; the estimate of all losses,
    with the x and the q of this play; and what else the policy learns. The first and the third are

    .. math::

        x &= \operatorname*{arg\,min}_{x \in \operatorname{conv}(\mathcal{A})}
            \langle \text{costs}, x \rangle + \sum_{i=1}^{d} \beta_i \varphi_i(x_i), \\
        \hat{L}_i &\leftarrow \hat{L}_i + q_i + \frac{a_i}{x_i} (k_i - q_i).

    A subclass says what :math:`\varphi` (``regulariser``), :math:`\beta` (``beta``), ``costs`` and
    q (``expected``) are in the round to come, and writes step 4 (``learn``). Its ``start`` adds to
    the state what these read. The state also holds the last minimiser, a point of the hull, from
    which the next one is found faster; nothing depends on it beyond rounding, and it may be
    missing.

    Where units are missing, :math:`k_i` is the average of those seen, and the error
    :math:`k_i - q_i` of steps 3 and 4 is multiplied by :math:`g_i`, the units seen divided by
    those expected to be seen (``policies.missing``): so the estimate stays unbiased. An arm that
    could not be played counts as if :math:`q_i` had come true.
    External plans teach the predictions only: step 3 needs the probability that the policy would
    have played them. Where units are known to lose more than what is learned (``actions.offset``),
    :math:`\hat{L}` has that too.

    Examples
    --------
    A barrier of constant weight, and no predictions:

    >>> import numpy as np
    >>> from multiplay import Bernoulli, RandomAction, Regulariser, Stochastic, Transport, simulate
    >>> from multiplay.policies import FTRL
    >>> class Steady(FTRL):
    ...     def regulariser(self, state):
    ...         one = np.ones(len(state["L"]))
    ...         return Regulariser(barrier=one, entropy=one)
    ...
    ...     def beta(self, actions, state):
    ...         return np.full(state["L"].shape, 2.0)
    ...
    ...     def expected(self, actions, state):
    ...         return np.full(state["L"].shape, 0.5)
    ...
    ...     def learn(self, actions, state, play, feedback, error):
    ...         pass
    >>> plans, costs = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> world, policies = Stochastic(Bernoulli(costs)), {"random": RandomAction(), "new": Steady()}
    >>> simulate(plans, world, policies, horizon=200, trials=5).ranked
    ['new', 'random']
    """

    does = "Mixes plans: the better a plan was, the more often it is played."
    cost = PolicyCost(oracle="often", step=2)
    needs_linear = True
    uses_known = True

    @abstractmethod
    def regulariser(self, state: Arrays) -> Regulariser:
        r"""Return :math:`\varphi`."""

    @abstractmethod
    def beta(self, actions: ActionSet, state: Arrays) -> FloatArray:
        r"""Return :math:`\beta`, the weight of the regulariser of each arm, shape (trials, d)."""

    @abstractmethod
    def expected(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return q, the losses to expect, shape (trials, d)."""

    @abstractmethod
    def learn(
        self,
        actions: ActionSet,
        state: Arrays,
        play: Play,
        feedback: Feedback,
        error: FloatArray,
    ) -> None:
        """Change the state by step 4; ``error`` is g (k - q), and 0 where nothing was seen."""

    def costs(self, actions: ActionSet, state: Arrays, beta: FloatArray) -> FloatArray:
        r"""Return :math:`q + \hat{L}`, of the sign that is minimised."""
        losses: FloatArray = self.expected(actions, state) + state["L"]
        if actions.offset is not None:
            losses += actions.offset
        return losses if actions.sign > 0 else -losses

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return the state :math:`\hat{L} = 0`, no reports, and an interior point."""
        shape = (trials, actions.d)
        state = {"L": np.zeros(shape), **report_counts(*shape), **actions.hull.start(trials)}
        return state | {"known": np.zeros(trials)} if actions.extra else state

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose by steps 1 and 2."""
        beta = self.beta(actions, state)
        point = self.minimiser(actions, state, self.costs(actions, state, beta), beta)
        q = self.expected(actions, state).copy()
        memo = {"x": point["x"], "rest": point["rest"], "q": q}
        return Play(actions.hull.draw(point, rng), memo, cache=point)

    def minimiser(
        self, actions: ActionSet, state: Arrays, costs: FloatArray, beta: FloatArray
    ) -> Arrays:
        """Return the x of step 1, as a point of the hull."""
        hull = actions.hull
        warm = warm_start(hull, state)
        if type(hull) is LiftedHull:  # in every round: isinstance asks the metaclass
            if "known" not in state:
                expected = "a learner whose usual set has known costs of helpers too"
                hint = "Create the learner with this set, or use PooledCTS."
                raise InvalidInput("actions", expected, f"{actions!r}", hint)
            weight = state["known"] + 1.0  # of the rounds so far and the next one
            return hull.lifted(costs, beta, self.regulariser(state), warm, weight)
        return hull.minimise(costs, beta, self.regulariser(state), warm)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn by steps 3 and 4; then the minimiser of the play, if kept, is the warm start."""
        L, x = state["L"], play.memo["x"]
        total = arm_totals(feedback, L)
        # a play that was saved before q stood in every memo has one that never changes
        q = play.memo["q"] if "q" in play.memo else self.expected(actions, state)
        if not x.shape == q.shape == L.shape:
            x, q = (np.broadcast_to(array, L.shape).copy() for array in (x, q))
        count, seen, error = feedback.count, feedback.seen, np.empty(L.shape)
        if counts_reports(state):
            g, played, known = np.empty(L.shape), state["played"], state["seen"]
            weighted = kernels.weigh_and_estimate(
                count, seen, total, x, q, played, known, g, L, error
            )
        else:
            g = report_weights(state, feedback)
            weighted = kernels.estimate(count, seen, total, x, q, g, L, error)
        if weighted:
            self.fill(state, play, feedback, q, g)
        if actions.offset is not None:
            state["L"] += actions.offset
        if "known" in state:
            state["known"] += 1.0
        self.learn(actions, state, play, feedback, error)
        state |= play.cache

    def fill(
        self, state: Arrays, play: Play, feedback: Feedback, q: FloatArray, g: FloatArray
    ) -> None:
        r"""Add to :math:`\hat{L}` for missing units, where q is not what they are taken to lose.

        By default q is. Called only where g is not 1.
        """

    def believed(self, state: Arrays) -> FloatArray:
        """Return the predicted loss of a unit of each arm: 1/2 without a prediction."""
        return np.full(state["L"].shape, 0.5)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        r"""Add the prediction to :math:`\hat{L}`."""
        state["L"] += rounds * (self.believed(state) + offset)

    def warm(self, actions: ActionSet) -> tuple[str, ...]:
        """Return the name of the point from which the next minimiser is sought."""
        return actions.hull.point


def warm_start(hull: Hull, state: Arrays) -> Arrays:
    """Return the last minimiser, or a point of the interior if it is missing."""
    try:
        return {name: state[name] for name in hull.point}
    except KeyError:
        return hull.start(len(state["L"]))
