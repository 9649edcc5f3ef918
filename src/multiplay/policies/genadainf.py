"""A best-of-both-worlds policy that does not pay for units."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import is_number
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.hull import Regulariser
from multiplay.kernels import adainf as kernels
from multiplay.policies.averages import count, predicted
from multiplay.policies.base import Play, Policy
from multiplay.policies.ftrl import warm_start
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class GenAdaINF(Policy):
    """Follow the regularised leader, with weights that pay for what really happened.

    With u = x_i / n_i, and weights w_i of each arm and v of all,

        Psi(x) = sum_i w_i (u - 1 - log u) + v sum_i n_i [1 + u log u + (1 - u) log(1 - u)].

    In round t

    1. w_i^2 = (c risk_i r_i)^2 + S_i, where risk_i = q_i for losses and 1 - q_i for rewards, and
       r_i = n_i^caution; r_i = n_i where whole actions are drawn (a knapsack, say);
    2. x = argmin over conv(A) of <q + Lhat, x> + Psi(x); an action a with E[a] = x is played, and
       k_i is the average of the a_i losses seen;
    3. e_i = q_i + (a_i / x_i) (k_i - q_i), and Lhat_i += e_i;
    4. y = argmin over conv(A) of <L' + e, y> + Psi(y), with the Psi and the L' = Lhat that x was
       chosen with; D_i is the part of arm i in the Bregman divergence of Psi from y to x;
    5. with kappa_i = max(0, 1 - x_i) (1 - u where whole actions are drawn),
       S_i += 2 w_i kappa_i D_i / (1 + log t) and v += (sum_i (1 - kappa_i) D_i + B) / (M / 2),
       where B = <L' + e + Psi'(y), x - y> >= 0 is 0 where nothing but equations bind;
    6. q_i = (1/2 + sum of samples) / (1 + number of samples).

    Units that were not seen are taken to have lost what those seen of their arm lost on average; an
    arm of which nothing was seen counts as if q_i had come true.

    It needs no horizon. For rewards, the sign of what is minimised with Psi is turned.

    Where plans are rounded (``Transport``, networks), an arm with x_i < 1 is played at most once.
    So a barrier of weight c q_i keeps the step stable, however many units n_i there are, and the
    regret in the stochastic regime hardly grows with the units. The price is a wider spread of the
    regret after a change; ``caution`` is this trade-off. docs/adainf.md has more.

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
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), GenAdaINF(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

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
        """Nothing is known: Lhat = S = 0, v = v0, and q = 1/2 by no samples."""
        zeros = ("L", "S", "count", "sum")
        return {
            "t": np.ones(trials, dtype=np.int64),
            "v": np.full(trials, self.v0),
            **{name: np.zeros((trials, actions.d)) for name in zeros},
            **actions.hull.start(trials),
        }

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Steps 1 and 2; the memo has all that the second step of this play will need."""
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
        """Steps 3 to 6."""
        hull, memo = actions.hull, play.memo
        e = np.empty(state["L"].shape)
        full = feedback.extrapolated()
        kernels.estimate(full.count, full.total, memo["q"], memo["x"], e)
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
        """Step 6."""
        count(state, feedback)

    def believed(self, state: Arrays) -> FloatArray:
        """Return q of step 6."""
        return predicted(state)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Lhat grows as if q had come true."""
        state["L"] += rounds * (self.believed(state) + offset)

    def warm(self, actions: ActionSet) -> tuple[str, ...]:
        """Name the point of the hull from which the next one is sought."""
        return actions.hull.point


def _offset(actions: ActionSet) -> FloatArray | float:
    return 0.0 if actions.offset is None else actions.offset


def minimiser(actions: ActionSet, losses: FloatArray, weights: Arrays, warm: Arrays) -> Arrays:
    """argmin over conv(A) of <losses, x> + Psi(x), from ``warm``; rewards are negative losses."""
    w, v = weights["w"] / np.maximum(actions.n, 1), weights["v"]
    psi = Regulariser(barrier=w, entropy=v, shannon=v)
    return actions.hull.minimise(losses, np.ones(w.shape), psi, warm)
