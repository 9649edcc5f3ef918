"""Forgetting, for losses that drift: a discount or a window for old rounds."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay._support.checks import integer_setting, is_number
from multiplay._support.serialization import settings
from multiplay.actions import ActionSet
from multiplay.beliefs.restart import Restart
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import averages as kernels
from multiplay.kernels.moments import AVERAGE, MEAN, UNITS, N
from multiplay.policies.base import Play
from multiplay.policies.replan import Replanning, drop_plans
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray

LONGEST = 10**6  # rounds of a window: the state keeps all of them


class Forgetting(Replanning):
    """Sums over the reported rounds, in which old rounds count less, or nothing.

    With ``discount`` gamma in (0, 1), every round reported multiplies by gamma what was learned of
    all arms before: a sample of k rounds ago counts gamma^k. With ``window`` W, only the last W
    rounds reported count. For arms that could not be played the rounds pass as well. External
    plans add samples to the last round reported, and let no round pass.

    A subclass names the entries of its state that are such sums in ``sums``, and says in
    ``prior`` from where they start; a dataclass gives itself the settings. For a window the
    state keeps what every round added, ``recent_...`` of shape (trials, d, W), round t in slot
    (t - 1) mod W, where t is the round to be reported.

    References
    ----------
    Garivier, Moulines: On Upper-Confidence Bound Policies for Switching Bandit Problems, ALT 2011.
    Raj, Kalyani: Taming Non-stationary Bandits: A Bayesian Approach, 2017, for ``discount``.
    Trovo, Paladino, Restelli, Gatti: Sliding-Window Thompson Sampling for Non-Stationary Settings,
    JAIR 2020, for ``window``.
    """

    sums: tuple[str, ...] = ()
    prior: float = 0.0
    discount: float | None = None
    window: int | None = None

    def __repr__(self) -> str:
        said = {k: v for k, v in settings(self).items() if v is not None and v is not False}
        given = [f"{name}={value!r}" for name, value in said.items()]
        return f"{type(self).__name__}({', '.join(given)})"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.discount is not None and not (is_number(self.discount) and 0 < self.discount < 1):
            raise InvalidInput(
                "discount",
                "a number between 0 and 1",
                repr(self.discount),
                "Give 0.99 to remember about 100 rounds, or leave it out to forget nothing.",
            )
        if self.window is not None:
            hint = "Give the number of rounds to remember, or leave it out to forget nothing."
            integer_setting(self, "window", hint, LONGEST)
            if self.discount is not None:
                raise InvalidInput(
                    "window",
                    "a discount or a window, not both",
                    f"discount={self.discount!r} and window={self.window!r}",
                    "Leave one of them out.",
                )

    def slots(self, trials: int, d: int) -> Arrays:
        """Return the arrays that a window needs beside the sums, all zero."""
        if self.window is None:
            return {}
        empty: Arrays = {f"recent_{name}": np.zeros((trials, d, self.window)) for name in self.sums}
        return {"t": np.ones(trials, dtype=np.int64), **empty}

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Forget by the discount or window, if given, and learn the losses of the round."""
        state |= play.cache
        self.pass_round(state)
        self.absorb(actions, state, feedback, rng)

    def pass_round(self, state: Arrays) -> None:
        """Forget before the losses of a reported round are added."""
        if self.discount is not None or self.window is not None:
            self.forget(state, 1)
        if "t" in state:
            kernels.pass_round(state["t"])

    def forget(self, state: Arrays, rounds: int) -> None:
        """Forget for rounds in which nothing was added; t does not change."""
        if self.discount is not None:
            for name in self.sums:
                faded = self.discount**rounds * (state[name] - self.prior)
                state[name][...] = self.prior + faded
        elif self.window is not None:
            trials = np.arange(len(state["t"]))
            for k in range(min(rounds, self.window)):
                slot = (state["t"] - 1 + k) % self.window
                for name in self.sums:
                    state[name] -= state[f"recent_{name}"][trials, :, slot]
                    state[f"recent_{name}"][trials, :, slot] = 0.0

    def add(self, state: Arrays, *gains: NDArray[Any]) -> None:
        """Add the losses of the last reported round, or of an external plan, to each sum."""
        for name, gain in zip(self.sums, gains, strict=True):
            state[name] += gain
            if self.window is not None:
                trials, slot = np.arange(len(state["t"])), (state["t"] - 2) % self.window
                state[f"recent_{name}"][trials, :, slot] += gain

    def restart(self, state: Arrays, restart: Restart) -> None:
        """Compute the sums of some arms again, and those of each round of a window."""
        drop_plans(state)
        n, mean = restart.sums[:, N], restart.sums[:, MEAN]
        for name, gain in zip(self.sums, self.gains(n, n * mean), strict=True):
            state[name][:, restart.places] = self.prior + gain
        if self.window is not None:
            a, y = restart.kept[:, :, UNITS], restart.kept[:, :, AVERAGE]
            for name, gain in zip(self.sums, self.gains(a, a * y), strict=True):
                state[f"recent_{name}"][:, restart.places] = gain

    def gains(self, units: FloatArray, total: FloatArray) -> tuple[FloatArray, ...]:
        """Return what units with a total loss add to each sum, in a restart."""
        return units, total

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Forget arms that could not be played at the same rate as all other arms."""
        self.forget(state, rounds)

    @property
    def remembered(self) -> float:
        """The number of rounds that count: the window, or 1 / (1 - discount)."""
        discount, window = self.memory
        return window if discount == 1.0 else 1.0 / (1.0 - discount)

    @property
    def memory(self) -> tuple[float, float]:
        """The discount, 1 if not given, and the window, infinite if not given."""
        discount = 1.0 if self.discount is None else float(self.discount)
        return discount, math.inf if self.window is None else float(self.window)
