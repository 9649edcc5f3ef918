"""Few calls of the solver: their number, and the regret compared with a call in every round.

Command line: ``python -m benchmarks.replan --trials 100 --jobs 2``. Every trial has means of its
own, the same with and without ``replan="rarely"``. The actions of the integer program and of the
model are listed, so that a call in each of 10,000 rounds takes seconds; ``--only solver`` calls
HiGHS itself, and counts its calls.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.harness import Runner, Section, Target, command
from multiplay import (
    ActionSet,
    BootstrapCTS,
    CombUCB,
    GaussianCTS,
    GenCTS,
    IntegerProgram,
    Model,
    Policy,
    Stochastic,
    Transport,
    Uniform,
    simulate,
)
from multiplay.types import BoolArray, FloatArray, IntArray

SEED, ROUNDS, TRIALS, SOLVED = 35, 10_000, 100, 2
MOST_CALLS, MOST_REGRET = 200, 1.2
POLICIES: dict[str, Policy] = {
    "GenCTS": GenCTS(),
    "GaussianCTS": GaussianCTS(),
    "BootstrapCTS": BootstrapCTS(),
    "CombUCB": CombUCB(),
}


def _program() -> IntegerProgram:
    """Return a knapsack with two resources: 8 items, 1,152 actions."""
    weights = [[3, 4, 5, 6, 7, 4, 3, 5], [2, 1, 4, 1, 3, 5, 6, 2]]
    return IntegerProgram(weights, [16, 12], bounds=(0, 2), sense="max")


def _model() -> Model:
    """Return eight units for five depots, of which each costs 0.6 when it is used."""
    depots = range(5)
    columns = {
        "lower": [0] * 10,
        "upper": [4] * 5 + [1] * 5,
        "integer": [True] * 10,
        "cost": [0] * 5 + [0.6] * 5,
    }
    matrix = {
        "row": [0] * 5 + [row for k in depots for row in (k + 1, k + 1)],
        "column": [*depots, *(place for k in depots for place in (k, k + 5))],
        "value": [1] * 5 + [1, -4] * 5,
    }
    rows = {"lower": [8] + [None] * 5, "upper": [8] + [0] * 5}
    return Model(columns, rows, matrix, arms=list(depots))


SETS: dict[str, Callable[[], ActionSet]] = {
    "transport": lambda: Transport([1, 4, 5], [4, 6]),
    "transport, 25 lanes": lambda: Transport([4] * 5, [4] * 5),
    "integer program": _program,
    "model": _model,
}


class Counted(ActionSet, vectorised=True):
    """A set that counts how many actions it searched; listed ones, if it needs a solver."""

    def __init__(self, actions: ActionSet, listing: bool = True) -> None:
        self.actions, self.listing, self.n, self.calls = actions, listing, actions.n, 0
        self.linear, self.extra = actions.linear, actions.extra
        super().__init__(actions.names, actions.sense)
        self.all: IntArray | None = None
        if listing and actions.searches:
            self.all = actions.enumerate()
            self.heights = actions.known(self.all)

    def oracle(self, costs: FloatArray) -> IntArray:
        """Return the cheapest actions."""
        self.calls += len(costs)
        return self.actions.oracle(costs) if self.all is None else self._listed(costs)

    def best(self, means: ArrayLike) -> IntArray:
        """Return the best actions, with known costs."""
        if not self.extra:
            return super().best(means)
        rows = np.atleast_2d(np.asarray(means, dtype=float))
        self.calls += len(rows)
        if self.all is None:
            return self.actions.best(rows)
        return self._listed(self.sign * rows, self.sign * self.heights)

    def _listed(self, costs: FloatArray, known: FloatArray | float = 0.0) -> IntArray:
        assert self.all is not None
        found: IntArray = self.all[(costs @ self.all.T + known).argmin(axis=1)]
        return found

    def value(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        """Return the value, with known costs."""
        return self.actions.value(action, means)

    def contains(self, action: Any) -> BoolArray:
        """Return whether actions are in the set."""
        inside: BoolArray = self.actions.contains(action)
        return inside


def _run(name: str, policy: Policy, trials: int, listed: bool) -> tuple[float, FloatArray]:
    """Return the calls of a trial, and the final regrets."""
    actions = Counted(SETS[name](), listed)
    means = np.random.default_rng(SEED).uniform(0.1, 0.5, (trials, actions.d))
    world = Stochastic(Uniform(0.0, 2 * means))
    for horizon in (2, ROUNDS):  # the first run compiles, with calls of its own
        actions.calls = 0
        many = simulate(actions, world, {"": policy}, horizon, trials, SEED, record=[horizon])
    return actions.calls / trials - 2, many.final("")  # two are calls of ``simulate`` itself


def regret(trials: int | None, run: Runner) -> list[Section]:
    """Compare final regrets, and count the calls."""
    number = trials or TRIALS
    jobs = {
        (actions, name, setting): (
            _run,
            (actions, replace(policy, replan=setting), number, True),  # type: ignore[type-var]
        )
        for actions in SETS
        for name, policy in POLICIES.items()
        for setting in (None, "rarely")
    }
    found, rows, targets = run(jobs), [], []
    for actions in SETS:
        for name in POLICIES:
            (_, always), (calls, rarely) = (found[actions, name, one] for one in (None, "rarely"))
            ratio = rarely.mean() / always.mean()
            error = (rarely - ratio * always).std(ddof=1) / np.sqrt(number) / always.mean()
            row = {"set": actions, "policy": name, "calls": round(calls)}
            row |= {"always": float(always.mean()), "rarely": float(rarely.mean())}
            rows.append(row | {"ratio": f"{ratio:.2f} ± {error:.2f}"})
            targets += [
                Target(f"calls: {name}, {actions}", calls, MOST_CALLS),
                Target(f"regret: {name}, {actions}", float(ratio), MOST_REGRET, "times"),
            ]
    shows = f"{number} trials of {ROUNDS:,} rounds; ratio of the mean final regrets ± one standard "
    return [Section("Few calls of the solver", shows + "error.", rows, targets)]


def solver(trials: int | None, run: Runner) -> list[Section]:
    """Count the calls of HiGHS in 10,000 rounds."""
    names, number = ("integer program", "model"), trials or SOLVED
    jobs = {
        (actions, name): (_run, (actions, replace(policy, replan="rarely"), number, False))  # type: ignore[type-var]
        for actions in names
        for name, policy in POLICIES.items()
    }
    rows = [
        {"set": actions, "policy": name, "calls": round(calls), "regret": float(final.mean())}
        for (actions, name), (calls, final) in run(jobs).items()
    ]
    targets = [Target(f"HiGHS: {r['policy']}, {r['set']}", r["calls"], MOST_CALLS) for r in rows]
    return [Section("Calls of HiGHS", f"{number} trials.", rows, targets)]


TOPICS = {"regret": regret, "solver": solver}

if __name__ == "__main__":
    command("benchmarks.replan", __doc__, TOPICS)
