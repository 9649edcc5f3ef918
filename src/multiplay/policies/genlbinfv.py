"""The best-of-both-worlds policy: optimistic follow-the-regularised-leader with variances."""

import math
from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.arrays import Arrays, is_number, positive_integer, true_or_false
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.hull import Regulariser
from multiplay.policies.base import Play, Policy
from multiplay.streams import Rng

PREDICTIONS = ("ls", "gd")


@dataclass(frozen=True)
class GenLBINFV(Policy):
    """Follow the regularised leader, and draw an action with the mean that it prefers.

    With g = log T and u = x_i / n_i, each round

    1. x = argmin over conv(A) of <q + Lhat, x> + sum_i beta_i phi_i(x_i), where
       phi_i(x) = n_i [u - 1 - log u + g (u + (1 - u) log(1 - u))];
    2. an action a with E[a] = x is played, and k_i is the average of the a_i losses seen;
    3. Lhat_i += q_i + (a_i / x_i) (k_i - q_i);
    4. beta_i^2 += (a_i / n_i)^2 (k_i - q_i)^2 min{1, 2 (1 - u) / (u^2 g)} / g;
    5. q_i predicts the next losses of arm i.

    Rewards stay rewards; only the sign of <q + Lhat, x> is turned where it is minimised. The
    regret is logarithmic in the stochastic regime and of order sqrt(T) against any adversary.
    Duplicated, it is the LBINFV of Tsuchiya, Ito and Honda (2023).

    Parameters
    ----------
    prediction
        "ls": q_i = (1/2 + sum of samples) / (1 + number of samples), least squares;
        "gd": q_i += eta (k_i - q_i), gradient descent, which adapts to slow changes.
    epsilon
        The fraction e_i / n_i in beta_i(1) = 1 + e_i / n_i, in (0, 1/2]; 0.2 if not given.
    eta
        Step of the gradient descent, in (0, 1/2).
    horizon
        T, the number of rounds; needed where the caller knows none, as in a ``Learner``.
    any_horizon
        Go on even if the horizon is shorter than the theory wants, T >= max(55, d).

    References
    ----------
    Nakamura, Kuroki, Chen: Multi-Play Combinatorial Semi-Bandit Problem, algorithm 2.
    Tsuchiya, Ito, Honda: Further Adaptive Best-of-Both-Worlds Algorithm for Combinatorial
    Semi-Bandits, AISTATS 2023.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), GenLBINFV(horizon=365), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    prediction: str = "ls"
    epsilon: float | None = None
    eta: float = 0.25
    horizon: int | None = None
    any_horizon: bool = False

    def __post_init__(self) -> None:
        if self.prediction not in PREDICTIONS:
            expected = "'ls' (least squares) or 'gd' (gradient descent)"
            raise InvalidInput(
                "prediction", expected, repr(self.prediction), "Leave it out for 'ls'."
            )
        if self.epsilon is not None and not (is_number(self.epsilon) and 0 < self.epsilon <= 0.5):
            raise InvalidInput(
                "epsilon", "a fraction in (0, 1/2]", repr(self.epsilon), "Leave it out for 0.2."
            )
        if not (is_number(self.eta) and 0 < self.eta < 0.5):
            raise InvalidInput(
                "eta", "a step in (0, 1/2)", repr(self.eta), "Leave it out for 0.25."
            )
        if self.horizon is not None:
            positive_integer("horizon", self.horizon, "Count the rounds to be played.")
        true_or_false(
            "any_horizon", self.any_horizon, "Write any_horizon=True for a short horizon."
        )

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Lhat = 0, q = 1/2, beta = 1 + epsilon, and an interior point as the first warm start."""
        T = self._horizon(actions, horizon)
        epsilon = 0.2 if self.epsilon is None else self.epsilon
        shape = (trials, actions.d)
        state: Arrays = {
            "g": np.full(trials, math.log(T)),
            "L": np.zeros(shape),
            "q": np.full(shape, 0.5),
            "beta2": np.full(shape, (1 + epsilon) ** 2),
            **actions.hull.start(trials),
        }
        if self.prediction == "ls":
            state |= {"samples": np.zeros(shape), "sum": np.zeros(shape)}
        return state

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Minimise over the hull, from the last minimiser, and draw an action around it."""
        regulariser = Regulariser(barrier=np.ones_like(state["g"]), entropy=state["g"])
        warm = {name: state[name] for name in actions.hull.point}
        costs = actions.sign * (state["q"] + state["L"])
        point = actions.hull.minimise(costs, np.sqrt(state["beta2"]), regulariser, warm)
        action = actions.hull.draw(point, rng)
        return Play(action, {**point, "q": state["q"].copy()})

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Steps 3 to 5, with the x and the q that the action was drawn with."""
        a, k, q = feedback.count, feedback.mean, play.memo["q"]
        n = np.maximum(actions.n, 1)  # an arm that is never played has n = x = a = 0
        x = np.maximum(play.memo["x"], 1e-100)
        u, g = x / n, state["g"][:, None]
        error = np.where(a >= 1, k - q, 0.0)

        state["L"] += q + (a / x) * error
        alpha = (a / n * error) ** 2 * np.minimum(1.0, 2 * (play.memo["rest"] / n) / (u**2 * g))
        state["beta2"] += alpha / g
        if self.prediction == "ls":
            state["samples"] += a
            state["sum"] += feedback.total
            state["q"] = (0.5 + state["sum"]) / (1 + state["samples"])
        else:
            state["q"] += self.eta * np.where(a >= 1, k - state["q"], 0.0)
        state |= {name: play.memo[name] for name in actions.hull.point}

    def _horizon(self, actions: ActionSet, horizon: int | None) -> int:
        T, name = horizon if self.horizon is None else self.horizon, type(self).__name__
        if T is None:
            raise InvalidInput(
                "horizon", "a number of rounds", "none", f"Write {name}(horizon=365), say."
            )
        needed = max(55, actions.d)
        if needed > T and not self.any_horizon:
            raise InvalidInput(
                "horizon",
                f"at least max(55, d) = {needed} rounds",
                T,
                f"Play more rounds, or write {name}(any_horizon=True) to go on all the same.",
            )
        return max(T, 2)  # log 1 = 0 would take the entropy away
