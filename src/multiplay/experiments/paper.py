"""The two experiments of the paper, and its claims.

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

from multiplay import policies
from multiplay._support.builder import classes_of
from multiplay.actions import Transport
from multiplay.environments import Environment, Stochastic
from multiplay.experiments.experiment import Experiment, read, shipped
from multiplay.policies import Duplicated, Policy
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
        """Read the files at the first access of their contents, not at import."""
        if name in ("PLANS", "POLICIES", "TITLES"):
            return _constants()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def all_policies() -> dict[str, Policy]:
    """Return the four policies of the paper, then all further policies, by name."""
    ours = dict(_constants()["POLICIES"])
    kinds = {name: kind for name, kind in classes_of(policies).items() if issubclass(kind, Policy)}
    others = {name: kind.example() for name, kind in kinds.items() if kind is not Duplicated}
    return ours | {name: others[name] for name in sorted(others) if name not in ours}


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
    """Run figure 1 ("stochastic") or figure 2 ("corrupted"), with different policies if given."""
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


def lower_bounds(trials: int, seed: int, feedback: str = "units") -> MeanBound:
    """Return the lower bound of the stochastic regime, averaged over the instances.

    The losses of a lane are uniform on [0, 2c]; the bound takes them as Gaussian, with their true
    variances c^2 / 3. ``feedback`` is what a policy sees of a round: the losses of all "units", or
    only their "total".
    """
    plans = _constants()["PLANS"]
    bounds = [
        lower_bound(plans, c, Gaussian(c**2 / 3), feedback=feedback).constant
        for c in costs(trials, seed)
    ]
    return MeanBound(float(np.mean(bounds)))


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and the estimate of a number that is negative if it holds.

    ``note`` has more numbers, in words. What is not ``judged`` is reported beside the claims.
    """

    claim: str
    measure: str
    estimate: Interval
    note: str = ""
    judged: bool = True

    @property
    def outcome(self) -> str:
        """Decide by the 95 % confidence interval."""
        if not self.judged:
            return "no claim"
        if self.estimate.high < 0:
            return "holds"
        return "does not hold" if self.estimate.low > 0 else "undecided"


@dataclass(frozen=True)
class RegretGrowth:
    """The growth of the regret of each trial under corruption.

    Right after the switch every policy plays what used to be best, and regret grows at its worst
    pace: ``early`` is the growth in the first fifth of the rounds after it, ``late`` that in the
    last fifth.
    """

    policy: str
    early: FloatArray
    late: FloatArray

    @property
    def excess(self) -> FloatArray:
        """Late growth less a tenth of early growth."""
        return self.late - 0.1 * self.early

    def __str__(self) -> str:
        late, early = self.late.mean(), self.early.mean()
        share = f", {100 * late / early:.0f} % of its early growth" if early > 0 else ""
        return f"{self.policy} grew by {late:.1f} in the last fifth{share}"


def regret_growth(corrupted: Result, policy: str) -> RegretGrowth:
    """Measure the growth of a policy's regret after the switch, which comes after a fifth."""
    horizon = int(corrupted.dataset["round"][-1])
    fifth, curve = horizon // 5, corrupted.regret.sel(policy=policy)
    start, soon, late, end = (
        curve.sel(round=t, method="nearest").values
        for t in (fifth, 2 * fifth, horizon - fifth, horizon)
    )
    return RegretGrowth(policy, soon - start, end - late)


def verdicts(stochastic: Result, corrupted: Result) -> list[Verdict]:
    """Judge every claim of the paper's experiments from paired differences over the trials.

    The paper says "linear", which one horizon cannot show. Regret counts as still growing if in the
    last fifth of the rounds it grows by more than a tenth of what it grew in the first fifth after
    the switch, and as levelling off if by less: the share would be 100 % for regret that is linear,
    and 27 % for a square root. Who converges faster is judged by the growth in the last fifth. Who
    has lost less by then is another question, which is answered beside it.
    """
    thompson = [regret_growth(corrupted, policy) for policy in ("GenCTS", "CTS")]
    native, copied = (regret_growth(corrupted, policy) for policy in ("GenLBINFV", "LBINFV"))

    def below(claim: str, result: Result, policy: str, other: str, judged: bool = True) -> Verdict:
        measure = f"final regret, {policy} - {other}"
        return Verdict(claim, measure, result.difference(policy, other), judged=judged)

    return [
        below("GenCTS below CTS", stochastic, "GenCTS", "CTS"),
        below("GenLBINFV below LBINFV, stochastic", stochastic, "GenLBINFV", "LBINFV"),
        Verdict(
            "Thompson sampling still growing under corruption",
            "a tenth of early growth - late growth, the larger of GenCTS and CTS",
            interval(-np.minimum(*(each.excess for each in thompson))),
            "; ".join(map(str, thompson)),
        ),
        Verdict(
            "GenLBINFV levels off there",
            "late growth - a tenth of early growth",
            interval(native.excess),
            str(native),
        ),
        Verdict(
            "GenLBINFV converges faster than LBINFV there",
            "late growth, GenLBINFV - LBINFV",
            interval(native.late - copied.late),
            str(copied),
        ),
        below("Final regret there", corrupted, "GenLBINFV", "LBINFV", judged=False),
    ]
