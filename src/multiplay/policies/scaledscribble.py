"""A self-concordant barrier on the hull of all actions, for feedback that is one number a round."""

import math
from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.actions.coordinates import Listed
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels.rows import inner, into_ball, transform
from multiplay.policies.bandit import Bandit, share_lost
from multiplay.policies.base import Play, PolicyCost
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class ScaledScribble(Bandit):
    r"""SCRiBLe with scaled-up sampling and predicted losses; it learns from the total of a round.

    A round of which units were not seen has no total, and is refused.

    Y has the coordinates of the actions in their hull, of dimension r; X those in their linear
    span, divided by :math:`s = \max \lVert a \rVert`. f in [0, 1] is the share of the largest
    possible loss. The hull has :math:`\vartheta` facets, and

    .. math::

        \text{hull} = \{y : C y \le b\}, \qquad
            \psi(y) = -\sum_{j=1}^{\vartheta} \log(b_j - C_j y).

    From L = m = G = 0, each round

    1. :math:`\beta = \text{scale} \,\bigl(6 r + 2 r \sqrt{G / (\vartheta \log T)}\bigr)`;
    2. x is the point of the hull that minimises
       :math:`\langle L + m_{\text{hull}}, y \rangle + \beta \psi(y)`, where
       :math:`m_{\text{hull}}` is m in the coordinates of the hull;
    3. :math:`(\lambda_i, e_i)` are the eigenpairs of the Hessian of :math:`\psi` at x, and the 2 r
       points :math:`w = x \pm e_i / \sqrt{\lambda_i}` are in the hull;
    4. z is the action with the least :math:`\rho`, where :math:`\rho(z)` is the least number such
       that :math:`z + (w - z) / \rho` is in the hull for all w: the largest
       :math:`(C_j w - C_j z) / (b_j - C_j z)`;
    5. with probability :math:`1 - \rho`, B = 0 and z is played; otherwise B = 1, one of the points
       is taken, :math:`w = x + v e_i / \sqrt{\lambda_i}` with :math:`v = \pm 1`, and an action with
       mean :math:`z + (w - z) / \rho` is drawn: a corner of the Delaunay simplex that contains this
       mean;
    6. :math:`\varepsilon = f - \langle m, X_a \rangle`, and with the m, B, v and i of this play

       .. math::

           L &\leftarrow L + m_{\text{hull}} + B \,\varepsilon\, r\, v \sqrt{\lambda_i} \, e_i, \\
           G &\leftarrow G + B \,\varepsilon^2;

    7. :math:`m \leftarrow m + \eta B \varepsilon X_a`, and then back into the ball of radius
       :math:`s \sqrt{d} / M`.

    The mean of the action is x, and that of what is added to L is the gradient of f, whatever the
    level of the losses. Regret grows like :math:`\log T` where losses are stochastic, like
    :math:`\sqrt{T \log T}` at worst, and with what varies in the losses rather than with T where
    that is less. The price is worst-case constants: where losses are known to be stochastic, LinTS
    loses far less.

    The paper leaves open which barrier is used, how an action with a given mean is drawn, and where
    m lives: here in the linear span, so that it learns the level of the losses too, within the
    length of the largest loss vector. Facets and simplices of the hull are listed, once for a set;
    one of more than 7 dimensions is refused.

    Parameters
    ----------
    horizon
        T, the number of rounds; if None, that of the simulation.
    scale
        Factor of :math:`\beta`: 1 is the paper's. Below 1 nothing is guaranteed: the mean regret
        may fall, but single runs stay with a wrong action for ever.
    eta
        :math:`\eta`, the step of the prediction m, in (0, 1/4).
    limit
        Most actions to list.

    References
    ----------
    Ito, Takemura: Best-of-Three-Worlds Linear Bandit Algorithm with Variance-Adaptive Regret
    Bounds, COLT 2023, algorithm 1.
    Abernethy, Hazan, Rakhlin: Competing in the Dark, COLT 2008. (SCRiBLe.)

    Examples
    --------
    >>> from multiplay import Learner, ScaledScribble, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), ScaledScribble(horizon=365), seed=0)
    >>> play = learner.ask()
    >>> sum(play.plan.values())
    10
    >>> print(learner.tell(play.id, 3.5))  # what all ten units lost together
    play 1: 10 of 10 units seen
    """

    does = "Mixes plans around a good one, by the totals of days."
    cost = PolicyCost(most_actions=100, capped=("limit",))

    horizon: int | None = None
    scale: float = 1.0
    eta: float = 0.2
    limit: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.eta) and 0 < self.eta < 0.25):
            raise InvalidInput("eta", "a step in (0, 1/4)", repr(self.eta), "Leave it out for 0.2.")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return L = m = G = 0; the first minimiser is sought from 0, the mean of all actions."""
        listed, T = self.listed(actions), self.rounds(horizon)
        if listed.r > 0:
            listed.polytope  # noqa: B018  # what is too large is refused before round 1
        return {
            "log_T": np.full(trials, math.log(T)),
            "L": np.zeros((trials, listed.r)),
            "m": np.zeros((trials, listed.s)),
            "G": np.zeros(trials),
            "x": np.zeros((trials, listed.r)),
        }

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose by steps 1 to 5."""
        listed, each = self.listed(actions), np.arange(len(state["m"]))
        if listed.r == 0:
            return Play(listed.E[np.zeros_like(each)])
        hull, r = listed.polytope, listed.r
        coin, point, corner = np.ascontiguousarray(rng.random((len(each), 3)).T)
        m_hull = transform(state["m"], listed.X_to_Y / listed.size)
        x = hull.minimise(state["L"] + m_hull, self.beta(listed, state), state.get("x"))
        lambdas, e = hull.eigenpairs(x)
        z, rho = hull.nearest_action(x, e / np.sqrt(lambdas)[:, :, None])
        b = coin < rho
        i, heads = np.divmod((2 * r * point).astype(np.int64), 2)
        v = (2 * heads - 1)[:, None]
        e_i, root = e[each, i], np.sqrt(lambdas[each, i])[:, None]
        w, Y_z = x + v * e_i / root, listed.Y[z]
        a = np.where(b, hull.draw(Y_z + (w - Y_z) / rho[:, None], corner), z)
        memo = {
            "a": a,
            "b": b,
            "dual": v * root * e_i,
            "m_hull": m_hull,
            "expected": inner(state["m"], listed.X[a] / listed.size),
        }
        return Play(listed.E[a], memo, cache={"x": x})

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn by steps 6 and 7; the newest m is updated by the error of the play's m."""
        listed, memo = self.listed(actions), play.memo
        if listed.r == 0:
            return
        err = (memo["b"] * (share_lost(actions, feedback) - memo["expected"]))[:, None]
        state["L"] += memo["m_hull"] + err * listed.r * memo["dual"]
        state["G"] += err[:, 0] ** 2
        state["m"] += self.eta * err * listed.X[memo["a"]] / listed.size
        into_ball(state["m"], listed.size * math.sqrt(actions.d) / actions.M)
        state |= play.cache

    def beta(self, listed: Listed, state: Arrays) -> FloatArray:
        """Return beta of step 1, from G."""
        r, theta = listed.r, listed.polytope.theta
        beta: FloatArray = 6 * r + 2 * r * np.sqrt(state["G"] / (theta * state["log_T"]))
        return self.scale * beta
