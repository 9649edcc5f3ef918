"""Instances with features: sets, coefficients, effects, and the regret measured for them before."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from multiplay import ActionSet, Contextual, FeatureCTS, NormalContexts, Transport
from multiplay.types import FloatArray

SETS: dict[str, ActionSet] = {
    "3x2": Transport([1, 4, 5], [4, 6]),
    "heavy": Transport([1000, 4000, 5000], [4000, 6000]),
    "10x10": Transport([5] * 10, [5] * 10),
    "30x30": Transport([3] * 30, [3] * 30),
}
SCALE = 0.12  # means are 1/2 + SCALE f
TURN = 250  # rounds of a quarter turn
FLIP = 300  # the last round before the flip
SHAPES = ("linear", "effects", "useless", "bent", "logit", "drift", "flip")
HOLDS = ("linear", "effects", "useless")  # shapes for which the model of FeatureCTS holds


@dataclass(frozen=True)
class WithoutFeatures(FeatureCTS):
    """The same model, which gets no features: what its noise model and effects are worth alone."""

    reads_features = False


class Instance(NamedTuple):
    """A row of the acceptance table, with the mean and standard error that are accepted."""

    actions: str
    p: int
    every: str
    shape: str
    accepted: tuple[float, float]
    bernoulli: bool = False
    round_sd: float = 0.05
    day_sd: float = 0.0
    rounds: int = 1000
    seed: int = 0

    @property
    def name(self) -> str:
        """The settings that tell this instance from the others."""
        parts = [self.actions, f"p {self.p}", self.every, self.shape]
        parts += ["Bernoulli"] * self.bernoulli + [f"s_g {self.day_sd:g}"] * (self.day_sd > 0)
        parts += [f"T {self.rounds}"] * (self.rounds != 1000)
        return ", ".join(parts + [f"seed {self.seed}"] * (self.seed > 0))

    @property
    def trials(self) -> int:
        """The number of trials: more of small sets, whose regret varies more."""
        return {"3x2": 200, "heavy": 60}.get(self.actions, 20)

    @property
    def holds(self) -> bool:
        """Whether the model of FeatureCTS holds: linear in the features, no effect of days."""
        return self.shape in HOLDS and not self.day_sd

    @property
    def changes(self) -> bool:
        """Whether the coefficients change."""
        return self.shape in ("drift", "flip")

    def environment(self, trials: int) -> Contextual:
        """Return the losses of some trials, with coefficients and effects of each."""
        theta, effects, link = drawn(self, trials)
        return Contextual(
            theta,
            NormalContexts(self.p, {"iid": "round", "weekday": "week"}.get(self.every, "once")),
            effects,
            round_sd=self.round_sd,
            day_sd=self.day_sd,
            losses="bernoulli" if self.bernoulli else "uniform",
            link=link,
        )


def drawn(
    instance: Instance, trials: int
) -> tuple[FloatArray, FloatArray, str | tuple[float, ...]]:
    """Return theta (trials, rounds, p), effects (trials, d) and the link of an instance.

    Row k does not depend on the number of trials.
    """
    d, p, shape = SETS[instance.actions].d, instance.p, instance.shape
    rows = [
        np.random.default_rng((instance.seed, 30, k)).normal(size=2 * p + d) for k in range(trials)
    ]
    normals = np.array(rows)
    first, second, b = normals[:, :p], normals[:, p : 2 * p], normals[:, 2 * p :]
    first[:, 0] = second[:, 0] = 0.0  # the intercept is in the scale of the means
    theta = unit(first)[:, None]
    effects, link = np.zeros((trials, d)), "identity"
    if shape == "bent":
        c = SCALE / 3**0.5
        return theta, effects, (0.5 - c, c, c)  # 1/2 + SCALE (z + z^2 - 1) / sqrt(3)
    if shape == "logit":
        theta = 2 * theta
        theta[..., 0] -= 1.5
        return theta, effects, "logistic"
    scale = SCALE
    if shape == "effects":
        scale = SCALE / 2**0.5
        effects = scale * b
    elif shape == "useless":
        scale, effects = 0.0, SCALE * b
    elif shape == "drift":
        aside = unit(second - (second * theta[:, 0]).sum(axis=1, keepdims=True) * theta[:, 0])
        angle = np.pi / 2 * np.arange(instance.rounds)[None, :, None] / TURN
        theta = np.cos(angle) * theta + np.sin(angle) * aside[:, None]
    elif shape == "flip":
        sign = np.where(np.arange(instance.rounds) < FLIP, 1.0, -1.0)
        theta = sign[None, :, None] * theta
    theta = scale * theta
    theta[..., 0] += 0.5
    return theta, effects, link


def unit(vectors: FloatArray) -> FloatArray:
    """Return vectors of length 1."""
    lengths: FloatArray = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / lengths


def _rows() -> list[Instance]:
    coins = {"bernoulli": True}
    return [
        Instance("3x2", 5, "iid", "linear", (2.9, 0.4)),
        Instance("3x2", 5, "weekday", "effects", (6.0, 0.5)),
        Instance("3x2", 5, "constant", "effects", (5.5, 0.9)),
        Instance("3x2", 5, "constant", "useless", (6.0, 1.2)),
        Instance("3x2", 5, "constant", "effects", (25.0, 3.9), **coins),
        Instance("3x2", 5, "constant", "useless", (31.8, 4.7), **coins),
        Instance("heavy", 5, "iid", "effects", (6660, 524), round_sd=0.1),
        Instance("heavy", 5, "constant", "effects", (6526, 2082), round_sd=0.1),
        Instance("10x10", 20, "iid", "linear", (62.9, 1.6)),
        Instance("10x10", 20, "weekday", "effects", (228.5, 5.0)),
        Instance("10x10", 20, "constant", "effects", (191.9, 7.2)),
        Instance("10x10", 20, "constant", "useless", (229.2, 14.9)),
        Instance("10x10", 5, "constant", "useless", (759.4, 29.9), **coins),
        Instance("10x10", 5, "iid", "logit", (442.8, 4.2), **coins),
        Instance("10x10", 5, "iid", "bent", (3173, 20)),
        Instance("10x10", 5, "iid", "drift", (7585, 13)),
        Instance("3x2", 5, "iid", "flip", (597.4, 4.0)),
        Instance("10x10", 5, "constant", "effects", (310.9, 21.5), day_sd=0.1),
        Instance("30x30", 20, "constant", "effects", (652.7, 18.2), rounds=300),
        Instance("30x30", 20, "iid", "linear", (79.7, 3.1), rounds=300),
        Instance("10x10", 20, "constant", "effects", (185.5, 5.8), seed=1),
        Instance("10x10", 5, "constant", "logit", (259.5, 15.7), **coins),
        Instance("10x10", 5, "constant", "useless", (760.6, 44.6), **coins, seed=1),
    ]


INSTANCES = {instance.name: instance for instance in _rows()}
