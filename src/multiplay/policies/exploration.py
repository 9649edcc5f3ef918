"""Exploration by optimisation: play so that the stability of the reference is cheapest."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.actions.coordinates import Listed
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import exploration as kernels
from multiplay.policies.bandit import Bandit, share_lost
from multiplay.policies.base import Play, PolicyCost
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray

EXPLORATIONS = ("optimised", "rounded")


@dataclass(frozen=True)
class ExplorationByOptimisation(Bandit):
    r"""Keep a reference distribution over the hull; play the best distribution with its mean.

    It sees the total of a round only. A round of which units were not seen is refused.

    **This is a reconstruction** after Ito and Takemura (NeurIPS 2023). The idea and the rates are
    those of the paper: regret of order :math:`r \sqrt{T \log T}` against any adversary, and
    :math:`r^2 \log T / \text{gap}` in the stochastic regime, where the best action has an advantage
    of at least ``gap``. The formulas and constants below are our own, and no proof is given.

    With f in [0, 1] the share of the largest possible loss that the round lost, actions in
    coordinates Y of dimension r (see ``Listed``) and L = Z = 0 at first, each round

    1. :math:`\beta = \text{scale} \,\bigl(2 r + \sqrt{Z / (r \log T)}\bigr)` and
       :math:`\eta = 1 / \beta`;
    2. :math:`q(N) \propto \operatorname{prior}(N) \exp(-\eta \langle L, N \rangle)`, the reference,
       over all points N of a net of the hull; :math:`\mu` and :math:`C_q` are its mean and its
       covariance;
    3. the distribution p on the actions is

       .. math::

           p &= \operatorname*{arg\,min} \Bigl\{\operatorname{tr}\bigl(C_q V(p)^{-1}\bigr)
               \,:\, \sum_a p_a a = \mu\Bigr\}, \\
           V(p) &= \sum_a p_a (a - \mu)(a - \mu)^\top;

    4. an action :math:`a \sim p` is played;
    5. what is estimated and what it may cost grow,

       .. math::

           L \leftarrow L + V^{-1} (a - \mu) (2 f - 1), \qquad
               Z \leftarrow Z + \operatorname{tr}(C_q V^{-1}).

    The estimate of step 5 has the mean that it should have, up to a constant that is the same for
    all actions. The net has the points :math:`(1 - e) v + e (u + \text{centre}) / 2` for all
    actions v and u and e = 1, 1/2, 1/4, ..., down to 1 / T; their prior :math:`e^r` imitates the
    uniform distribution on the hull at all scales around all actions. Step 3 is solved by Newton's
    method with a small barrier, :math:`-0.02 (z / K) \sum_a \log p_a`, where z is the trace at a
    first p: the trace is then one or two per cent above its minimum.

    Parameters
    ----------
    horizon
        T, the number of rounds; needed where the caller gives none, as in a ``Learner``.
    scale
        A factor of :math:`\beta`. Below 1/2, for experiments only, single trials can stay with a
        wrong action for very long.
    exploration
        "optimised": step 3; "rounded": p is the net itself, where a point becomes v with
        probability 1 - e, and else, half each, u or any action. It has the same mean :math:`\mu`.
    limit
        Most actions that a set may have; all of them are listed. The time of a round grows faster
        than :math:`K^2`: 15 microseconds for 9 actions, 350 for 56, 1200 for 120, in few
        dimensions.

    References
    ----------
    Ito, Takemura: An Exploration-by-Optimization Approach to Best of Both Worlds in Linear Bandits,
    NeurIPS 2023.
    Lattimore, Szepesvari: Exploration by Optimisation in Partial Monitoring, COLT 2020.

    Examples
    --------
    >>> from multiplay import ExplorationByOptimisation, Learner, Transport
    >>> policy = ExplorationByOptimisation(horizon=365)
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), policy, seed=0)
    >>> play = learner.ask()
    >>> sum(play.plan.values())
    10
    >>> print(learner.tell(play.id, 3.5))  # what all ten units lost together
    play 1: 10 of 10 units seen
    """

    does = "Mixes plans so that the totals of days show the most, and assumes nothing about them."
    cost = PolicyCost(most_actions=60, capped=("limit",))

    horizon: int | None = None
    scale: float = 1.0
    exploration: str = "optimised"
    limit: int = 60

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exploration not in EXPLORATIONS:
            raise InvalidInput(
                "exploration",
                "'optimised' or 'rounded'",
                repr(self.exploration),
                "Leave it out for 'optimised'.",
            )

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state L = Z = 0; p is only a first warm start."""
        plans = self.listed(actions)
        return {
            "T": np.full(trials, self.rounds(horizon)),
            "L": np.zeros((trials, plans.r)),
            "Z": np.zeros(trials),
            "p": np.full((trials, plans.K), 1 / plans.K),
        }

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose by steps 1 to 4."""
        plans = self.listed(actions)
        beta = self.beta(plans, state)
        levels = np.ceil(np.log2(state["T"])).astype(np.int64)
        W, Cq, p = kernels.reference(plans.Y, state["L"] / beta[:, None], levels)  # W: a - mu
        if self.exploration == "optimised" and plans.K > 1:
            feasible, p = p, state["p"].copy() if "p" in state else p.copy()
            kernels.explore(W, Cq, feasible, p)
        a, direction, z = kernels.draw(W, Cq, p, rng.random((len(p), 1))[:, 0])
        return Play(plans.E[a], {"direction": direction, "z": z}, cache={"p": p})

    def beta(self, plans: Listed, state: Arrays) -> FloatArray:
        """Return beta of step 1."""
        r = max(plans.r, 1)
        beta: FloatArray = self.scale * (2 * r + np.sqrt(state["Z"] / (r * np.log(state["T"]))))
        return beta

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn by step 5, with the distribution of the play."""
        f = share_lost(actions, feedback)
        state["L"] += play.memo["direction"] * (2 * f - 1)[:, None]
        state["Z"] += play.memo["z"]
        state |= play.cache
