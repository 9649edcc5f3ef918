"""GenAdaINF: best of both worlds, with a stochastic regret that hardly grows with the units."""

from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.hull import Regulariser
from multiplay.kernels import adainf as kernels
from multiplay.policies.base import Play, Policy, PolicyCost
from multiplay.policies.ftrl import warm_start
from multiplay.policies.missing import report_counts, report_weights
from multiplay.posteriors.averages import count, predicted
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class GenAdaINF(Policy):
    r"""Follow the regularised leader, with weights that follow the observed losses.

    With :math:`u = x_i / n_i`, weights :math:`w_i` of each arm and v of all, and :math:`S_i` what
    arm i has paid,

    .. math::

        \Psi(x) &= \sum_{i=1}^{d} w_i (u - 1 - \log u)
            + v \sum_{i=1}^{d} n_i \bigl[1 + u \log u + (1 - u) \log(1 - u)\bigr], \\
        w_i^2 &= (c \,\text{risk}_i \, r_i)^2 + S_i, \qquad r_i = n_i^{\text{caution}}.

    In round t

    1. :math:`\text{risk}_i = q_i` for losses and :math:`1 - q_i` for rewards; :math:`r_i = n_i`
       where whole actions are drawn (a knapsack, for example);
    2. x minimises :math:`\langle q + \hat{L}, x \rangle + \Psi(x)` over
       :math:`\operatorname{conv}(\mathcal{A})`; an action a with :math:`\mathbb{E}[a] = x` is
       played, and :math:`k_i` is the average of the :math:`a_i` losses seen;
    3. :math:`e_i = q_i + (a_i / x_i) (k_i - q_i)`, and
       :math:`\hat{L}_i \leftarrow \hat{L}_i + e_i`;
    4. y minimises :math:`\langle L' + e, y \rangle + \Psi(y)` over the same hull, with the
       :math:`\Psi` and the :math:`L' = \hat{L}` that x was chosen with; :math:`D_i` is the part of
       arm i in the Bregman divergence of :math:`\Psi` from y to x;
    5. with :math:`\kappa_i = \max(0, 1 - x_i)` (1 - u where whole actions are drawn),

       .. math::

           S_i &\leftarrow S_i + \frac{2 w_i \kappa_i D_i}{1 + \log t}, \\
           v &\leftarrow v + \frac{\sum_i (1 - \kappa_i) D_i + B}{M / 2}, \qquad
               B = \langle L' + e + \Psi'(y), x - y \rangle \ge 0;

    6. :math:`q_i` is 1/2 plus the sum of all samples, divided by 1 plus their number.

    B is 0 where nothing but equations bind. Where units were not seen, :math:`k_i` is the average
    of those seen, and :math:`k_i - q_i` is multiplied by :math:`g_i`, the units seen divided by
    those expected to be seen (docs/mathematics.md).

    It needs no horizon. For rewards, the sign of what is minimised with :math:`\Psi` is turned.

    Where plans are rounded (``Transport``, networks), an arm with :math:`x_i < 1` is played at most
    once. So a barrier of weight :math:`c q_i` keeps the step stable, however many units
    :math:`n_i` there are, and the regret in the stochastic regime hardly grows with the units. The
    price is a wider spread of the regret after a change; ``caution`` is this trade-off.
    docs/adainf.md has more.

    Notes
    -----
    What is proved in every run: the regret in the estimated losses is at most what the run has paid
    (``theory.genadainf_realised``). In expectation, against losses that do not depend on the
    actions, the regret is at most

    .. math::

        \mathbb{E}\Bigl[C_\rho \log T \sum_i w_i(T) + (W \log 2 + M / 2) v_T + N\Bigr], \qquad
            C_\rho = O\bigl(1 + \sqrt{\rho}\bigr), \quad
            \rho = \max_{t, i} \frac{\kappa_i D_i}{w_i (1 + \log t)}.

    So the factor is a universal constant only under the assumption that no round costs an arm more
    than a constant times its weight, :math:`\kappa_i D_i \le \text{const} \cdot w_i`. This is not
    proved: an arm whose :math:`q_i` is small has a small weight, and a loss of 1 then costs many
    times as much. Nor is anything proved with high probability.

    Parameters
    ----------
    caution
        In [0, 1]: how much of the units the barrier counts. More is steadier after a change.
    c
        The weight of the barrier, above 1.
    v0
        The first weight of the entropy, positive.

    Examples
    --------
    >>> from multiplay import Bernoulli, GenAdaINF, GenLBINFV, Learner, Stochastic, Transport
    >>> from multiplay import simulate
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), GenAdaINF(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    With eight times the units it loses far less than half of what GenLBINFV does:

    >>> plans, costs = Transport([8, 32, 40], [32, 48]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> policies = {"GenAdaINF": GenAdaINF(), "GenLBINFV": GenLBINFV()}
    >>> result = simulate(plans, Stochastic(Bernoulli(costs)), policies, horizon=200, trials=5)
    >>> bool(result.final("GenAdaINF").mean() < result.final("GenLBINFV").mean() / 2)
    True
    """

    does = (
        "Mixes plans by their results so far, also where results change or are "
        "manipulated; quick for many units."
    )
    cost = PolicyCost(oracle="often in update")
    needs_linear = True
    changing = True
    partial = True
    absorbs = True

    caution: float = 0.5
    c: float = 1.2
    v0: float = 0.01

    def __post_init__(self) -> None:
        if not (is_number(self.caution) and 0 <= self.caution <= 1):
            got = repr(self.caution)
            raise InvalidInput("caution", "a number in [0, 1]", got, "Leave it out for 0.5.")
        if not (is_number(self.c) and 1 < self.c < np.inf):
            raise InvalidInput("c", "a number above 1", repr(self.c), "Leave it out for 1.2.")
        if not (is_number(self.v0) and 0 < self.v0 < np.inf):
            raise InvalidInput("v0", "a positive number", repr(self.v0), "Leave it out for 0.01.")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        r"""Return the state :math:`\hat{L} = S = 0`, v = v0, and q = 1/2 without samples."""
        zeros = ("L", "S", "count", "sum")
        return {
            "t": np.ones(trials, dtype=np.int64),
            "v": np.full(trials, self.v0),
            **{name: np.zeros((trials, actions.d)) for name in zeros},
            **report_counts(trials, actions.d),
            **actions.hull.start(trials),
        }

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose by steps 1 and 2; the memo has what ``update`` needs of this play."""
        hull, shape = actions.hull, state["L"].shape
        memo = {"q": np.empty(shape), "w": np.empty(shape)}
        r = actions.n.astype(float) ** (self.caution if hull.rounds else 1.0)
        kernels.barrier(
            *(state["sum"], state["count"], state["S"]),
            *(self.c * r, actions.sense == "max"),
            *(memo["q"], memo["w"]),
        )
        memo |= {"L": state["L"].copy(), "v": state["v"].copy()}
        losses = actions.sign * (memo["q"] + memo["L"] + _offset(actions))
        point = minimiser(actions, losses, memo, warm_start(hull, state))
        return Play(hull.draw(point, rng), memo | point, cache=point)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn by steps 3 to 6."""
        hull, memo = actions.hull, play.memo
        e = np.empty(state["L"].shape)
        full = feedback.extrapolated()
        g = report_weights(state, feedback)
        kernels.estimate(full.count, full.total, memo["q"], memo["x"], g, e)
        e += _offset(actions)
        state["L"] += e
        point = {name: memo[name] for name in hull.point}
        losses = actions.sign * (memo["L"] + e)
        y = minimiser(actions, losses, memo, point)
        kernels.pay(
            *(actions._n, hull.rounds, losses, memo["w"], memo["v"]),
            *(memo["x"], memo["rest"], y["x"], y["rest"]),
            *(state["t"], max(actions.M, 1) / 2, state["S"], state["v"]),
        )
        self.absorb(actions, state, feedback, rng)
        state["t"] += 1
        if play.cache:  # y is nearer to the next x than x itself
            state |= y

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn by step 6."""
        count(state, feedback)

    def believed(self, state: Arrays) -> FloatArray:
        """Return q of step 6."""
        return predicted(state)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        r"""Add q to :math:`\hat{L}`."""
        state["L"] += rounds * (self.believed(state) + offset)

    def warm(self, actions: ActionSet) -> tuple[str, ...]:
        """Return the name of the point from which the next minimiser is sought."""
        return actions.hull.point


def _offset(actions: ActionSet) -> FloatArray | float:
    return 0.0 if actions.offset is None else actions.offset


def minimiser(actions: ActionSet, losses: FloatArray, weights: Arrays, warm: Arrays) -> Arrays:
    r"""Minimise :math:`\langle \text{losses}, x \rangle + \Psi(x)` over the hull, from ``warm``.

    Rewards are negative losses.
    """
    w, v = weights["w"] / np.maximum(actions.n, 1), weights["v"]
    psi = Regulariser(barrier=w, entropy=v, shannon=v)
    return actions.hull.minimise(losses, np.ones(w.shape), psi, warm)
