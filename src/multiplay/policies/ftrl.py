"""Follow-the-regularised-leader: what all policies of this kind share."""

from abc import abstractmethod

import numpy as np

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.hull import Hull, Regulariser
from multiplay.kernels import ftrl as kernels
from multiplay.policies.base import Play, Policy, arm_totals
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray


class FTRL(Policy):
    """Minimise estimated losses plus a regulariser, and draw an action around the minimiser.

    Each round

    1. x = argmin over conv(A) of <costs, x> + sum_i beta_i phi_i(x_i);
    2. an action a with E[a] = x is played, and k_i is the average of the a_i losses seen;
    3. Lhat_i += q_i + (a_i / x_i) (k_i - q_i), with the x and the q of this play;
    4. what else the policy learns.

    A subclass says what phi (``regulariser``), ``beta``, ``costs`` and q (``expected``) are in
    the round to come, and writes step 4 (``learn``). Its ``start`` adds to the state what these
    read. The state also holds the last minimiser, a point of the hull, from which the next one is
    found faster; nothing depends on it beyond rounding, and it may be missing.

    Where units are missing, k_i is the average of those seen. An arm of which nothing was seen
    counts as if q_i had come true, and so does an arm that could not be played. Plans of others
    teach the predictions only: step 3 needs the probability that the policy would have played them.
    Where units are known to lose more than what is learned (``actions.offset``), Lhat has that too.
    """

    needs_linear = True

    @abstractmethod
    def regulariser(self, state: Arrays) -> Regulariser:
        """Return phi."""

    @abstractmethod
    def beta(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return beta, the weight of the regulariser of each arm, shape (trials, d)."""

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
        """Step 4: change the state; ``error`` is k - q, and 0 where nothing was seen."""

    def costs(self, actions: ActionSet, state: Arrays, beta: FloatArray) -> FloatArray:
        """Return q + Lhat, of the sign that is minimised."""
        losses: FloatArray = self.expected(actions, state) + state["L"]
        if actions.offset is not None:
            losses += actions.offset
        return losses if actions.sign > 0 else -losses

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Lhat = 0, and a point in the interior of the hull as the first warm start."""
        return {"L": np.zeros((trials, actions.d)), **actions.hull.start(trials)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Steps 1 and 2."""
        beta = self.beta(actions, state)
        point = self.minimiser(actions, state, self.costs(actions, state, beta), beta)
        q = self.expected(actions, state).copy()
        memo = {"x": point["x"], "rest": point["rest"], "q": q}
        return Play(actions.hull.draw(point, rng), memo, cache=point)

    def minimiser(
        self, actions: ActionSet, state: Arrays, costs: FloatArray, beta: FloatArray
    ) -> Arrays:
        """Return the point of the hull that minimises <costs, x> + sum_i beta_i phi_i(x_i)."""
        warm = warm_start(actions.hull, state)
        return actions.hull.minimise(costs, beta, self.regulariser(state), warm)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Steps 3 and 4; then the play's minimiser, if it is still there, is the warm start."""
        L, x = state["L"], play.memo["x"]
        total = arm_totals(feedback, L)
        # a play that was saved before q stood in every memo has one that never changes
        q = play.memo["q"] if "q" in play.memo else self.expected(actions, state)
        if not x.shape == q.shape == L.shape:
            x, q = (np.broadcast_to(array, L.shape).copy() for array in (x, q))
        error = np.empty(L.shape)
        kernels.estimate(feedback.count, feedback.seen, total, x, q, L, error)
        if actions.offset is not None:
            state["L"] += actions.offset
        self.learn(actions, state, play, feedback, error)
        state |= play.cache

    def believed(self, state: Arrays) -> FloatArray:
        """Return the prediction of what a unit of each arm will lose: 1/2 if there is none."""
        return np.full(state["L"].shape, 0.5)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Lhat grows as if the prediction had come true."""
        state["L"] += rounds * (self.believed(state) + offset)

    def warm(self, actions: ActionSet) -> tuple[str, ...]:
        """Name the point of the hull from which the next minimiser is sought."""
        return actions.hull.point


def warm_start(hull: Hull, state: Arrays) -> Arrays:
    """Return the last minimiser, or a point of the interior if it is missing."""
    try:
        return {name: state[name] for name in hull.point}
    except KeyError:
        return hull.start(len(state["L"]))
