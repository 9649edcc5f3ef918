"""Table 1 of the paper: its formulas, and measurements of its seven rows on an instance."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from multiplay._support.builder import errors_below
from multiplay.actions import ActionSet
from multiplay.environments import Alternating, Corrupted, Distribution, Environment, Stochastic
from multiplay.environments.base import few_enough
from multiplay.errors import InvalidInput
from multiplay.experiments import paper
from multiplay.experiments.experiment import read, shipped
from multiplay.experiments.growth import Growth, memory
from multiplay.policies import (
    BestOfThreeWorlds,
    Duplicated,
    ExplorationByOptimisation,
    GenCTS,
    GenLBINFV,
    LinTS,
    LinUCB,
    Policy,
    ScaledScribble,
)
from multiplay.policies.base import check_fits
from multiplay.results import Result
from multiplay.simulation import simulate

NONE = "-"  # as the paper prints it


class Row(NamedTuple):
    """A row: its authors, and regret and complexity in the paper's symbols, without O(...)."""

    name: str
    source: str
    policy: Policy
    stochastic: str = NONE
    adversarial: str = NONE
    complexity: str = NONE

    @property
    def sees_totals(self) -> bool:
        """Whether it sees the total loss of a round only, not that of every unit."""
        return self.policy.learns_from == "round"

    @property
    def size(self) -> str:
        """The quantity that the cost grows with, according to the paper."""
        return "|A|" if self.sees_totals else "units"


LINEAR = (
    Row(
        "ScaledScribble",
        "Ito, Takemura, COLT 2023",
        ScaledScribble(),
        "d³ σ² log T / Δ",
        "d² √(Z log T)",
        "Exp(d)",
    ),
    Row(
        "ExplorationByOptimisation",
        "after Ito, Takemura, NeurIPS 2023",
        ExplorationByOptimisation(),
        "d² log T / Δ",
        "d √(T log T)",
        "Exp(d)",
    ),
    Row(
        "BestOfThreeWorlds",
        "Lee et al., ICML 2021",
        BestOfThreeWorlds(),
        "c(A, ℓ) (log T)²",
        "√(d T) log T",
        "Exp(d)",
    ),
)
COPIED = (
    Row(
        "CTS",
        "Wang, Chen, ICML 2018",
        Duplicated(GenCTS()),
        "Σ bᵢ log M log T / Δᵢ",
        NONE,
        "Poly(Σ bᵢ)",
    ),
    Row(
        "LBINFV",
        "Tsuchiya et al., AISTATS 2023",
        Duplicated(GenLBINFV()),
        "Σ_J* bᵢ M σᵢ² log T / Δᵢ",
        "√(Σ bᵢ Z log T)",
        "Poly(Σ bᵢ)",
    ),
)
NATIVE = (
    Row("GenCTS", "the paper", GenCTS(), "Σ log m log T / Δᵢ", NONE, "Poly(d)"),
    Row(
        "GenLBINFV",
        "the paper",
        GenLBINFV(),
        "Σ_J* M σᵢ² log T / Δᵢ",
        "√(Σ nᵢ² Z log T)",
        "Poly(d)",
    ),
)
YARDSTICKS = (  # what practitioners use with such feedback; the paper does not have them
    Row("LinTS", "Agrawal, Goyal, ICML 2013", LinTS()),
    Row("LinUCB", "Abbasi-Yadkori et al., NeurIPS 2011", LinUCB()),
)
GROUPS = (LINEAR, COPIED, NATIVE, YARDSTICKS)
ROWS = tuple(row for group in GROUPS for row in group)


# ---------------------------------------------------------------- regret, in three regimes


REGIMES = {
    "stochastic": "Stochastic",
    "corrupted": "Corrupted: L becomes 1 - L after a fifth of the rounds",
    "adversarial": "Adversarial: all means jump together",
}
FIRST_PHASE, PHASES_GROW = 10, 1.6


@dataclass(frozen=True)
class Instance:
    """A set, and the losses of its units in the stochastic regime."""

    title: str
    actions: ActionSet
    distribution: Distribution
    horizon: int
    trials: int
    seed: int

    def environment(self, regime: str) -> Environment:
        """Return the environment of a regime, or raise ``InvalidInput`` if there is none."""
        if regime == "stochastic":
            return Stochastic(self.distribution)
        if not self.actions.linear:
            raise InvalidInput(
                "actions",
                "a set with a linear objective <a, means> where means change",
                f"{self.actions!r}",
                "Look at the stochastic regime.",
            )
        if regime == "corrupted":
            clean = self.distribution
            return Corrupted(clean, clean.mirrored(), at=max(1, self.horizon // 5))
        means = self.distribution.mean + np.zeros(self.actions.d)
        return Alternating(means, self.shift, FIRST_PHASE, PHASES_GROW)

    @property
    def shift(self) -> float:
        """The largest shift of all means, up and down, within [0, 1]."""
        means = self.distribution.mean
        return min(float(means.min()), 1 - float(means.max()))


def instance(file: Path | None = None, **changes: int) -> Instance:
    """Return the instance of the paper, or that of an experiment file; its policies are left out.

    ``changes`` are other numbers for horizon, trials and seed.

    Examples
    --------
    >>> instance(trials=3).actions
    Transport(supply=[1, 4, 5], demand=[4, 6])
    """
    found = read(shipped("stochastic") if file is None else file, **changes)
    if not isinstance(found.environment, Stochastic):
        raise InvalidInput(
            "environment",
            "Stochastic, from which the other two regimes are made",
            type(found.environment).__name__,
            'Write type = "Stochastic" below [environment], and a distribution.',
        )
    with errors_below("environment"):
        found.environment.check(found.actions, found.horizon, found.trials)
    title = "the transport problem of the paper" if file is None else found.title or file.stem
    return Instance(
        title,
        found.actions,
        found.environment.distribution,
        found.horizon,
        found.trials,
        found.seed,
    )


class Outcome(NamedTuple):
    """The result of one regime, or the reason why there is no such regime."""

    result: Result | None
    refused: str = ""


def run(
    instance: Instance,
    regime: str,
    rows: Sequence[Row],
    jobs: int = 1,
    executor: Executor | None = None,
) -> Outcome:
    """Play rows that fit the instance in one of the ``REGIMES``; see ``simulate``."""
    try:
        environment = instance.environment(regime)
    except InvalidInput as error:
        return Outcome(None, reason(error))
    if not rows:
        return Outcome(None)
    result = simulate(
        instance.actions,
        environment,
        {row.name: row.policy for row in rows},
        instance.horizon,
        instance.trials,
        instance.seed,
        jobs=jobs,
        executor=executor,
        title=REGIMES[regime],
    )
    return Outcome(result)


def reason(error: Exception) -> str:
    """Return why something cannot be, without the advice."""
    if isinstance(error, InvalidInput):
        return f"needs {error.expected}; here: {error.got}"
    return f"{type(error).__name__}: {error}"


def lower_bounds(trials: int, seed: int) -> dict[str, paper.MeanBound]:
    """Return the lower bounds on the paper's instance, by kind of feedback."""
    return {
        "lower bound, every unit seen": paper.lower_bounds(trials, seed),
        "lower bound, totals seen": paper.lower_bounds(trials, seed, feedback="total"),
    }


# ---------------------------------------------------------------- all of it


class Fitting(NamedTuple):
    """The memory of every row that can play an instance, and the reasons of those that cannot."""

    memory: dict[str, int]
    refused: dict[str, str]


class Measurements(NamedTuple):
    """All that the table shows beside the formulas."""

    instance: Instance
    fitting: Fitting
    outcomes: dict[str, Outcome]
    growth: dict[str, Growth]
    bounds: dict[str, paper.MeanBound]


def fitting(instance: Instance, rows: Sequence[Row] = ROWS) -> Fitting:
    """Try all rows on an instance, for a few rounds: no row breaks the table."""
    found, actions = Fitting({}, {}), instance.actions
    for row in rows:
        try:
            check_fits(row.policy, actions, instance.horizon, few_enough(actions.n))
            found.memory[row.name] = memory(row.policy, actions, instance.horizon)
        except Exception as error:  # whatever it is, the note tells it
            found.refused[row.name] = reason(error)
    return found
