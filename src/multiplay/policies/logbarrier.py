"""Follow-the-regularised-leader with a log barrier whose weights follow the prediction errors."""

import math
from functools import lru_cache

import numpy as np

from multiplay._support.checks import integer_setting, is_number, true_or_false
from multiplay._support.hints import Hint, Option
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback, arm_totals
from multiplay.hull import Regulariser
from multiplay.kernels import ftrl as kernels
from multiplay.policies.base import Play
from multiplay.policies.ftrl import FTRL
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray

NOT_COUNTED = np.zeros((0, 0))  # samples, where a policy does not keep them
ANY_HORIZON_HINT = Hint("Write {} for a short horizon.", Option("any_horizon", "True"))


class LogBarrier(FTRL):
    r"""Base class of GenLBINFV and LBINF: the barrier, its weights, and predictions.

    With :math:`\gamma = \log T`, or what a subclass has in its place, and :math:`u = x_i / n_i`,
    steps 1, 4 and 5 have

    .. math::

        \varphi_i(x) &= n_i \bigl[u - 1 - \log u + \gamma \,(u + (1 - u) \log(1 - u))\bigr], \\
        \beta_i^2 &\leftarrow \beta_i^2
            + \frac{1}{\gamma} \Bigl(\frac{a_i}{n_i}\Bigr)^2 (k_i - q_i)^2
            \min\Bigl\{1, \frac{2 (1 - u)}{u^2 \gamma}\Bigr\}, \\
        q_i &\leftarrow q_i + \eta (k_i - q_i),

    the last of these, gradient descent, where arm i was played; or least squares,
    :math:`q_i = (1/2 + S_i) / (1 + N_i)`, if the state has samples :math:`N` and their sums
    :math:`S`.

    A subclass is a dataclass with the settings below, and its ``start`` adds q and beta2.
    """

    changing = True
    partial = True
    absorbs = True

    eta: float
    horizon: int | None
    any_horizon: bool

    def __post_init__(self) -> None:
        if not (is_number(self.eta) and 0 < self.eta < 0.5):
            raise InvalidInput(
                "eta", "a step in (0, 1/2)", repr(self.eta), "Leave it out for 0.25."
            )
        if self.horizon is not None:
            integer_setting(self, "horizon", "Give the number of rounds, a positive integer.")
        true_or_false("any_horizon", self.any_horizon, ANY_HORIZON_HINT)

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return the entries of :math:`\gamma`, :math:`\hat{L} = 0`, and a first warm start."""
        clock = self.clock(actions, horizon, trials)
        return {**clock, **super().start(actions, horizon, trials)}

    def clock(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return the entries of the state that ``gamma`` reads: :math:`\gamma = \log T`."""
        return {"g": np.full(trials, math.log(self._horizon(actions, horizon)))}

    def gamma(self, state: Arrays) -> FloatArray:
        r"""Return :math:`\gamma` for the round to come, shape (trials,)."""
        return state["g"]

    def regulariser(self, state: Arrays) -> Regulariser:
        r"""Return :math:`\varphi` of step 1: the barrier, and :math:`\gamma` times the entropy."""
        return _regulariser(self.gamma(state).tobytes())

    def beta(self, actions: ActionSet, state: Arrays) -> FloatArray:
        r"""Return :math:`\beta` after step 4."""
        beta: FloatArray = np.sqrt(state["beta2"])
        return beta

    def expected(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return q after step 5."""
        return state["q"]

    def learn(
        self,
        actions: ActionSet,
        state: Arrays,
        play: Play,
        feedback: Feedback,
        error: FloatArray,
    ) -> None:
        """Learn by steps 4 and 5; the newest q is not that of a late play."""
        memo = play.memo
        g = memo["g"] if "g" in memo else self.gamma(state)
        kernels.strengthen_and_predict(
            actions._n,
            g,
            feedback.count,
            feedback.seen,
            feedback.total,
            memo["x"],
            memo["rest"],
            error,
            float(self.eta),
            state["beta2"],
            state.get("samples", NOT_COUNTED),
            state.get("sum", NOT_COUNTED),
            state["q"],
        )

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn by step 5 only."""
        q, total = state["q"], arm_totals(feedback, state["q"])
        samples, sums = state.get("samples", NOT_COUNTED), state.get("sum", NOT_COUNTED)
        kernels.predict(feedback.seen, total, float(self.eta), samples, sums, q)

    def believed(self, state: Arrays) -> FloatArray:
        """Return q."""
        return state["q"]

    def _horizon(self, actions: ActionSet, horizon: int | None) -> int:
        T, name = horizon if self.horizon is None else self.horizon, type(self).__name__
        if T is None:
            hint = Hint("Use {}, for example.", Option("horizon", "365", name + "({})"))
            raise InvalidInput("horizon", "a number of rounds", "none", hint)
        needed = max(55, actions.d)
        if needed > T and not self.any_horizon:
            own = "" if self.horizon is None else f"horizon={T}, "
            raise InvalidInput(
                "horizon",
                f"at least max(55, d) = {needed} rounds",
                T,
                Hint(
                    "Play more rounds, or write {} to skip this check.",
                    Option("any_horizon", "True", f"{name}({own}{{}})"),
                ),
            )
        return max(T, 2)  # log 1 = 0 would take the entropy away


@lru_cache(maxsize=16)
def _regulariser(g: bytes) -> Regulariser:
    """Return the same object while g is the same: its weights are laid out for the kernels once."""
    entropy = np.frombuffer(g)
    return Regulariser(barrier=np.ones(len(entropy)), entropy=entropy)
