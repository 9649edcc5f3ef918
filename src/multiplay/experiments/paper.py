"""The two experiments of the paper, from the files that describe them, and what it claims.

Transport with supplies (1, 4, 5) and demands (4, 6), 10,000 rounds, 30 trials, each with a new cost
matrix c, uniform on [0.1, 0.5]. Stochastic: the losses of lane (x, y) are uniform on [0, 2 c_xy].
Corrupted: the same in the first fifth of the rounds, then uniform on [1 - 2 c_xy, 1].
"""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from multiplay.actions import Transport
from multiplay.environments import Environment, Stochastic
from multiplay.experiments.experiment import Experiment, read, shipped
from multiplay.policies import Policy
from multiplay.results import Result
from multiplay.results.intervals import Interval, interval
from multiplay.theory import Gaussian, lower_bound
from multiplay.types import FloatArray

REGIMES = ("stochastic", "corrupted")
HORIZON, TRIALS = 10_000, 30


def experiment(
    regime: str, horizon: int = HORIZON, trials: int = TRIALS, seed: int = 0
) -> Experiment:
    """Return the experiment of figure 1 ("stochastic") or figure 2 ("corrupted")."""
    return read(shipped(regime), horizon=horizon, trials=trials, seed=seed)


@cache
def _constants() -> dict[str, Any]:
    figures = {regime: experiment(regime) for regime in REGIMES}
    return {
        "PLANS": figures["stochastic"].actions,
        "POLICIES": figures["stochastic"].policies,
        "TITLES": {regime: figure.title for regime, figure in figures.items()},
    }


PLANS: Transport
POLICIES: dict[str, Policy]
TITLES: dict[str, str]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Read the files when somebody asks for what is in them, not when this is imported."""
        if name in ("PLANS", "POLICIES", "TITLES"):
            return _constants()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def costs(trials: int, seed: int) -> FloatArray:
    """Return the cost matrix of each trial, (trials, d); the losses of a lane average its cost."""
    regime = cast(Stochastic, experiment("stochastic", trials=trials, seed=seed).environment)
    return regime.distribution.mean


def environments(horizon: int, trials: int, seed: int) -> dict[str, Environment]:
    """Return the regimes of figure 1 and figure 2."""
    return {regime: experiment(regime, horizon, trials, seed).environment for regime in REGIMES}


def run(
    regime: str,
    horizon: int = HORIZON,
    trials: int = TRIALS,
    seed: int = 0,
    jobs: int = 1,
    executor: Executor | None = None,
    policies: Mapping[str, Policy] | None = None,
) -> Result:
    """Run figure 1 ("stochastic") or figure 2 ("corrupted"), with other policies if given."""
    figure = experiment(regime, horizon, trials, seed)
    if policies is not None:
        figure = replace(figure, policies=dict(policies))
    return figure.run(jobs, executor)


@dataclass(frozen=True)
class MeanBound:
    """The mean over trials of c log T, where c is the lower bound on the instance of a trial."""

    constant: float

    def curve(self, rounds: FloatArray) -> FloatArray:
        """c log(rounds)."""
        bound: FloatArray = self.constant * np.log(rounds)
        return bound


def lower_bounds(trials: int, seed: int) -> MeanBound:
    """Return what no policy can beat in the stochastic regime, on average over the instances.

    The losses of a lane are uniform on [0, 2c]; the bound takes them as Gaussian, with their true
    variances c^2 / 3.
    """
    plans = _constants()["PLANS"]
    bounds = [lower_bound(plans, c, Gaussian(c**2 / 3)).constant for c in costs(trials, seed)]
    return MeanBound(float(np.mean(bounds)))


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, a number that is below zero if it holds, and what the trials say."""

    claim: str
    measure: str
    estimate: Interval

    @property
    def outcome(self) -> str:
        """Decide by the 95 % confidence interval."""
        if self.estimate.high < 0:
            return "holds"
        return "does not hold" if self.estimate.low > 0 else "undecided"


def verdicts(stochastic: Result, corrupted: Result) -> list[Verdict]:
    """Judge every claim of the paper's experiments from paired differences over the trials.

    Right after the switch every policy plays what used to be best, and regret grows at its worst
    pace. It counts as linear if in the last fifth of the rounds it still grows by more than a tenth
    of what it grew in the first fifth after the switch, and as sublinear if by less.
    """

    def below(claim: str, result: Result, policy: str, other: str) -> Verdict:
        measure = f"final regret, {policy} - {other}"
        return Verdict(claim, measure, result.difference(policy, other))

    def still_growing(policy: str) -> FloatArray:
        """Growth in the last fifth, less a tenth of that in the first fifth after the switch."""
        horizon = int(corrupted.dataset["round"][-1])
        fifth, curve = horizon // 5, corrupted.regret.sel(policy=policy)
        start, soon, late, end = (
            curve.sel(round=t, method="nearest").values
            for t in (fifth, 2 * fifth, horizon - fifth, horizon)
        )
        growth: FloatArray = (end - late) - 0.1 * (soon - start)
        return growth

    thompson = np.minimum(still_growing("GenCTS"), still_growing("CTS"))

    return [
        below("GenCTS below CTS", stochastic, "GenCTS", "CTS"),
        below("GenLBINFV below LBINFV, stochastic", stochastic, "GenLBINFV", "LBINFV"),
        Verdict(
            "Thompson sampling linear under corruption",
            "a tenth of early growth - late growth",
            interval(-thompson),
        ),
        Verdict(
            "GenLBINFV sublinear there",
            "late growth - a tenth of early growth",
            interval(still_growing("GenLBINFV")),
        ),
        below("GenLBINFV converges faster than LBINFV there", corrupted, "GenLBINFV", "LBINFV"),
    ]
