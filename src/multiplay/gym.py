"""A Gymnasium environment: a set and a source of losses, for reinforcement learning.

It needs the extra ``gym``: ``pip install 'multiplay[gym]'``.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from multiplay._support.checks import (
    EXACT,
    check_instance,
    for_each_arm,
    positive_integer,
    shortened,
)
from multiplay.actions import ActionSet, TimeVarying
from multiplay.environments import Environment, World
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray, IntArray

ACTS = ("costs", "plan")
Observed = dict[str, Any]  # arrays of 32-bit floats by name


class PlanEnv(gymnasium.Env[Observed, NDArray[Any]]):
    r"""One trial of a simulation as an environment of Gymnasium.

    Round t plays an action :math:`a(t)` of the set and pays the losses of its units:

    .. math::

        \text{reward}(t) = -\sum_i \sum_{j=1}^{a_i(t)} L_{ij}(t)

    and known costs, where the set has them. For rewards it is their sum. An episode has
    ``horizon`` rounds and ends by truncation.

    Observations say of each arm what a semi-bandit has seen: ``units`` and ``mean``, the share of
    its :math:`n_i` units in the last round and their average loss, and ``seen`` and ``average``,
    the units of all rounds as a share of :math:`n_i T` and their average loss; averages are 0
    where there is no unit. ``progress`` is t / T. With features, ``features`` has a row for each
    arm, of the next round.

    ``info`` has ``plan``, the units of each arm that were played, and ``regret``, the expected loss
    so far beyond the best action for the means of each round.

    Parameters
    ----------
    actions, environment, horizon
        As for ``simulate``. A set that changes from round to round is refused.
    acts_by
        What an agent gives: "costs", a number for each arm, of which the cheapest action is
        played, so that every answer is feasible; or "plan", the units of each arm. A plan that is
        not in the set is an error.

    Examples
    --------
    >>> from multiplay import Bernoulli, Stochastic, Transport
    >>> coins = Stochastic(Bernoulli([0.1, 0.7, 0.4, 0.2, 0.3, 0.5]))
    >>> env = PlanEnv(Transport([1, 4, 5], [4, 6]), coins, horizon=100)
    >>> seen, info = env.reset(seed=0)
    >>> seen, reward, terminated, truncated, info = env.step([0.1, 0.7, 0.4, 0.2, 0.3, 0.5])
    >>> info["plan"], round(info["regret"], 9)
    (array([1, 0, 0, 4, 3, 2]), 0.0)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(
        self,
        actions: ActionSet,
        environment: Environment,
        horizon: int,
        acts_by: str = "costs",
    ) -> None:
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        check_instance("environment", environment, Environment, "Stochastic(Bernoulli(means))")
        if isinstance(actions, TimeVarying):
            got, hint = repr(actions), "Use one of its sets."
            raise InvalidInput("actions", "a set that stays the same", got, hint)
        if acts_by not in ACTS:
            hint = "Use 'costs' for an agent that gives a cost for each arm."
            raise InvalidInput("acts_by", "'costs' or 'plan'", repr(acts_by), hint)
        self.horizon = positive_integer("horizon", horizon, "Give a positive integer.")
        environment.check(actions, self.horizon, 1)
        self.actions, self.environment, self.acts_by = actions, environment, acts_by
        d = actions.d
        self.action_space = (
            spaces.Box(-np.inf, np.inf, (d,), np.float64)
            if acts_by == "costs"
            else spaces.MultiDiscrete(actions.n + 1)
        )
        shares = {name: _box((d,), 0, 1) for name in ("units", "mean", "seen", "average")}
        shares["progress"] = _box((1,), 0, 1)
        rows = self._open(0).contexts(1)
        if rows is not None:
            shares["features"] = _box((d, rows.p), -np.inf, np.inf)
        self.observation_space = spaces.Dict(dict(shares))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observed, dict[str, Any]]:
        """Begin an episode: trial 0 of a simulation with a seed drawn from the generator."""
        super().reset(seed=seed)
        self._world = self._open(int(self.np_random.integers(EXACT)))
        d = self.actions.d
        self._t, self._regret = 0, 0.0
        self._seen, self._total = np.zeros(d), np.zeros(d)
        return self._observed(np.zeros(d, dtype=np.int64), np.zeros(d)), {}

    def step(self, action: ArrayLike) -> tuple[Observed, float, bool, bool, dict[str, Any]]:
        """Play a round."""
        played = self._played(action)
        outcome = self._world.observe(played[None])
        total, means = outcome.feedback.total[0], outcome.means[0]
        self._t += 1
        self._seen += played
        self._total += total
        self._regret += self._lost(played, means)
        value = float(self.actions.value(played, total / np.maximum(played, 1)))
        info = {"plan": played, "regret": self._regret}
        over = self._t == self.horizon
        return self._observed(played, total), -self.actions.sign * value, False, over, info

    def _open(self, seed: int) -> World:
        return self.environment.open(self.actions, self.horizon, range(1), seed)

    def _played(self, action: ArrayLike) -> IntArray:
        if self.acts_by == "costs":
            return self.actions.argmin(for_each_arm("action", action, self.actions.d))
        plan = np.asarray(action)
        if plan.shape != (self.actions.d,) or not self.actions.contains(plan):
            got, hint = shortened(repr(plan.tolist())), "Use acts_by='costs', where all fit."
            raise InvalidInput("action", f"an action of {self.actions!r}", got, hint)
        return plan.astype(np.int64)

    def _lost(self, played: IntArray, means: FloatArray) -> float:
        by_unit = self._world.unit_means
        if by_unit is None:
            best = self.actions.best(means)
            values = self.actions.value(np.stack([played, best]), means)
        else:
            best = self.actions.best_by_unit(by_unit[0])
            values = self.actions.value_by_unit(np.stack([played, best]), by_unit[0])
        return float(self.actions.sign * (values[0] - values[1]))

    def _observed(self, played: IntArray, total: FloatArray) -> Observed:
        most = np.maximum(self.actions.n, 1)
        seen = {
            "units": played / most,
            "mean": total / np.maximum(played, 1),
            "seen": self._seen / (most * self.horizon),
            "average": self._total / np.maximum(self._seen, 1),
            "progress": np.array([self._t / self.horizon]),
        }
        rows = self._world.contexts(min(self._t + 1, self.horizon))
        if rows is not None:
            seen["features"] = rows.phi(np.arange(self.actions.d))[0]
        return {name: value.astype(np.float32) for name, value in seen.items()}


def _box(shape: tuple[int, ...], low: float, high: float) -> spaces.Space[Any]:
    return spaces.Box(low, high, shape, np.float32)
