"""The predecessor of GenLBINFV: another linear part, larger first rates, gradient descent."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.policies.logbarrier import LogBarrier
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class LBINF(LogBarrier):
    """GenLBINFV as it was before its regulariser and its first rates were refined.

    With g = log T and u = x_i / n_i, each round is that of GenLBINFV with

    1. phi_i(x) = n_i [-log u + g (1 - u) log(1 - u)], which lacks the part (1 + g) u: with a beta_i
       for each arm, this favours arms that were hard to predict;
    2. beta_i(1)^2 = 2 in place of (1 + epsilon)^2;
    3. predictions by gradient descent, q_i += eta (k_i - q_i), from q_i = 1/4.

    beta_i(1)^2 = 2, the first q_i = 1/4 and eta = 1/4 are those of the program with which Tsuchiya,
    Ito and Honda made their comparison. We do not know a reason for 1/4 in place of 1/2, and have
    not found it in a text; the first q_i is soon forgotten.

    Units that were not seen are taken to have lost what those seen of their arm lost on average; an
    arm of which nothing was seen counts as if q_i had come true.

    Parameters
    ----------
    eta, any_horizon
        As in GenLBINFV.
    horizon
        T, the number of rounds; needed where the caller knows none, as in a ``Learner``.

    References
    ----------
    Ito: Hybrid Regret Bounds for Combinatorial Semi-Bandits and Adversarial Linear Bandits,
    NeurIPS 2021.
    Tsuchiya, Ito, Honda: Further Adaptive Best-of-Both-Worlds Algorithm for Combinatorial
    Semi-Bandits, AISTATS 2023, who compare it with LBINFV.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), LBINF(horizon=365), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    eta: float = 0.25
    horizon: int | None = None
    any_horizon: bool = False

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Lhat = 0, q = 1/4, beta^2 = 2."""
        state = super().start(actions, horizon, trials)
        shape = state["L"].shape
        return state | {"q": np.full(shape, 0.25), "beta2": np.full(shape, 2.0)}

    def costs(self, actions: ActionSet, state: Arrays, beta: FloatArray) -> FloatArray:
        """Step 1: q + Lhat, and beta (1 + g) u is taken off the regulariser of GenLBINFV."""
        linear = beta * (1 + self.gamma(state)[:, None])
        return super().costs(actions, state | {"L": state["L"] - actions.sign * linear}, beta)
