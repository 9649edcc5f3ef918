"""LBINF, the predecessor of GenLBINFV: a different linear part, larger first rates."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.policies.logbarrier import LogBarrier
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class LBINF(LogBarrier):
    r"""GenLBINFV as it was before its regulariser and its first rates were refined.

    With :math:`\gamma = \log T` and :math:`u = x_i / n_i`, each round is that of GenLBINFV with

    .. math::

        \varphi_i(x) &= n_i \bigl[-\log u + \gamma \,(1 - u) \log(1 - u)\bigr], \\
        \beta_i(1)^2 &= 2, \\
        q_i &\leftarrow q_i + \eta (k_i - q_i), \qquad q_i(1) = 1/4.

    Its :math:`\varphi_i` lacks the part :math:`(1 + \gamma) u`: with a :math:`\beta_i` for each
    arm, this favours arms that were hard to predict. The first rates stand in place of
    :math:`(1 + \epsilon)^2`, and predictions are made by gradient descent.

    These first values and :math:`\eta = 1/4` are those of the program with which Tsuchiya, Ito and
    Honda made their comparison. We do not know a reason for 1/4 in place of 1/2, and have not found
    it in a text; the first :math:`q_i` is soon forgotten.

    Where units were not seen, :math:`k_i` is the average of those seen, and
    :math:`k_i - q_i` is multiplied by :math:`g_i`, the units seen divided by those expected to be
    seen (docs/mathematics.md).

    Parameters
    ----------
    eta, any_horizon
        As in GenLBINFV.
    horizon
        T, the number of rounds; needed where the caller gives none, as in a ``Learner``.

    References
    ----------
    Ito: Hybrid Regret Bounds for Combinatorial Semi-Bandits and Adversarial Linear Bandits,
    NeurIPS 2021.
    Tsuchiya, Ito, Honda: Further Adaptive Best-of-Both-Worlds Algorithm for Combinatorial
    Semi-Bandits, AISTATS 2023, who compare it with LBINFV.

    Examples
    --------
    >>> from multiplay import LBINF, Bernoulli, GenLBINFV, Learner, Stochastic, Transport, simulate
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> learner = Learner(plans, LBINF(horizon=365), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    What the refinements are worth where losses stay the same:

    >>> world = Stochastic(Bernoulli([0.1, 0.4, 0.2, 0.3, 0.3, 0.2]))
    >>> policies = {"before": LBINF(), "after": GenLBINFV()}
    >>> simulate(plans, world, policies, horizon=300, trials=10).ranked
    ['after', 'before']
    """

    does = "Mixes plans by their results so far; an earlier form of GenLBINFV."
    cost = LogBarrier.cost

    eta: float = 0.25
    horizon: int | None = None
    any_horizon: bool = False

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return the state :math:`\hat{L} = 0`, q = 1/4, :math:`\beta^2 = 2`."""
        state = super().start(actions, horizon, trials)
        shape = state["L"].shape
        return state | {"q": np.full(shape, 0.25), "beta2": np.full(shape, 2.0)}

    def costs(self, actions: ActionSet, state: Arrays, beta: FloatArray) -> FloatArray:
        r"""Return the costs of GenLBINFV minus :math:`\beta (1 + \gamma)`, for step 1."""
        linear = beta * (1 + self.gamma(state)[:, None])
        return super().costs(actions, state | {"L": state["L"] - actions.sign * linear}, beta)
