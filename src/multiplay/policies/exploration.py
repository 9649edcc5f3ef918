"""Exploration by optimisation: play so that the stability of the reference is cheapest."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.actions.listed import Listed
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import exploration as kernels
from multiplay.policies.bandit import Bandit, share_lost
from multiplay.policies.base import Play
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray

EXPLORATIONS = ("optimised", "rounded")


@dataclass(frozen=True)
class ExplorationByOptimisation(Bandit):
    """Keep a reference distribution over the hull; play the best distribution with its mean.

    It sees the total of a round only. A round of which units were not seen is refused.

    **This is a reconstruction** after Ito and Takemura (NeurIPS 2023). The idea and the rates are
    those of the paper: regret of order r sqrt(T log T) against any adversary, and r^2 log T / gap
    in the stochastic regime, where the best action has an advantage of at least ``gap``. The
    formulas and constants below are our own, and no proof is given.

    It sees the total of a round only. With f in [0, 1] the share of the largest possible loss that
    the round lost, actions in coordinates Y of dimension r (see ``Listed``) and L = Z = 0 at first,
    each round

    1. beta = scale (2 r + sqrt(Z / (r log T))) and eta = 1 / beta;
    2. q(N) ~ prior(N) exp(-eta <L, N>), the reference, over all points N of a net of the hull; mu
       and Cq are its mean and its covariance;
    3. p = argmin of tr(Cq V(p)^-1) over all distributions p on the actions with sum_a p_a a = mu,
       where V(p) = sum_a p_a (a - mu)(a - mu)';
    4. an action a ~ p is played;
    5. L += V^-1 (a - mu) (2 f - 1) and Z += tr(Cq V^-1).

    The estimate of step 5 has the mean that it should have, up to a constant that is the same for
    all actions. The net has the points (1 - e) v + e (u + centre) / 2 for all actions v and u and
    e = 1, 1/2, 1/4, ..., down to 1 / T; their prior e^r imitates the uniform distribution on the
    hull at all scales around all actions. Step 3 is solved by Newton's method with a small barrier,
    -0.02 (z / K) sum_a log p_a: tr(Cq V^-1) is then one or two per cent above its minimum.

    Parameters
    ----------
    horizon
        T, the number of rounds; needed where the caller knows none, as in a ``Learner``.
    scale
        A factor of beta. Below 1/2, for experiments only, single trials can stay with a wrong
        action for very long.
    exploration
        "optimised": step 3; "rounded": p is the net itself, where a point becomes v with
        probability 1 - e, and else, half each, u or any action. It has the same mean mu.
    limit
        Most actions that a set may have; all of them are listed. The time of a round grows faster
        than K^2: 15 microseconds for 9 actions, 350 for 56, 1200 for 120, in few dimensions.

    References
    ----------
    Ito, Takemura: An Exploration-by-Optimization Approach to Best of Both Worlds in Linear Bandits,
    NeurIPS 2023.
    Lattimore, Szepesvari: Exploration by Optimisation in Partial Monitoring, COLT 2020.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> policy = ExplorationByOptimisation(horizon=365)
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), policy, seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

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
        """L = Z = 0; p is only a first warm start."""
        plans = self.listed(actions)
        return {
            "T": np.full(trials, self.rounds(horizon)),
            "L": np.zeros((trials, plans.r)),
            "Z": np.zeros(trials),
            "p": np.full((trials, plans.K), 1 / plans.K),
        }

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Steps 1 to 4."""
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
        """Step 1."""
        r = max(plans.r, 1)
        beta: FloatArray = self.scale * (2 * r + np.sqrt(state["Z"] / (r * np.log(state["T"]))))
        return beta

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Step 5, with what the play was drawn from."""
        f = share_lost(actions, feedback)
        state["L"] += play.memo["direction"] * (2 * f - 1)[:, None]
        state["Z"] += play.memo["z"]
        state |= play.cache
