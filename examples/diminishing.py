"""Diminishing returns: the k-th unit of an arm has a mean of its own, which grows with k.

Compares unit_means="ordered" with one mean for each arm and with a copy of the arm for each unit
(Duplicated), on two sets and three kinds of means by unit. Prints the final regret of each with
its standard error, as a share of that of Duplicated, and the same share after a quarter of the
rounds. Draws diminishing.png: the curves of the first two problems.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.types import FloatArray

POLICIES = {
    "BootstrapCTS(unit_means='ordered')": mp.BootstrapCTS(unit_means="ordered"),
    "GenCTS(unit_means='ordered')": mp.GenCTS(unit_means="ordered"),
    "Duplicated(GenCTS)": mp.Duplicated(mp.GenCTS()),
    "GenCTS": mp.GenCTS(),
}
LOWEST = "Duplicated(GenCTS)"  # of the policies without ordered units
SETS = {
    "transport": mp.Transport([1, 4, 5], [4, 6]),
    "budget": mp.Budget(10, caps=[6] * 6),
}


def means(kind: str, arms: int, units: int, rng: np.random.Generator) -> FloatArray:
    """Return means by unit of one trial, (arms, units), at most 0.95."""
    first, k = rng.uniform(0.05, 0.4, (arms, 1)), np.arange(units)
    if kind == "slopes":  # each arm has its own step
        grown = first + rng.uniform(0.02, 0.12, (arms, 1)) * k
    elif kind == "random steps":
        steps = rng.exponential(0.06, (arms, units - 1))
        grown = np.column_stack([first, first + steps.cumsum(axis=1)])
    else:  # one jump, after a random unit
        grown = first + 0.4 * (k >= rng.integers(1, units, (arms, 1)))
    return np.minimum(grown, 0.95)


def run(name: str, kind: str, horizon: int, trials: int, jobs: int) -> mp.Result:
    """Simulate all policies on a set, with new means in every trial."""
    plans, rng = SETS[name], np.random.default_rng(1)
    table = [means(kind, plans.d, int(plans.n.max()), rng) for _ in range(trials)]
    world = mp.ByUnit(mp.Bernoulli(np.stack(table)))
    title = f"{name}, {kind}"
    return mp.simulate(plans, world, POLICIES, horizon, trials, seed=0, jobs=jobs, title=title)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    problems = [
        ("transport", "slopes"),
        ("transport", "jumps"),
        ("transport", "random steps"),
        ("budget", "slopes"),
        ("budget", "jumps"),
        ("budget", "random steps"),
    ]
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    axes = figure.subplots(1, 2)
    for number, (name, kind) in enumerate(problems):
        result = run(name, kind, given.horizon, given.trials, given.jobs)
        finals = {policy: np.asarray(result.final(policy)) for policy in POLICIES}
        early = result.regret.sel(round=given.horizon / 4, method="nearest").mean("trial")
        print(f"{name}, {kind}:")
        for policy, final in finals.items():
            error = final.std(ddof=1) / np.sqrt(len(final))
            share = final.mean() / finals[LOWEST].mean()
            quarter = early.sel(policy=policy) / early.sel(policy=LOWEST)
            text = f"{final.mean():7.1f} ± {error:4.1f}   {share:5.2f} {float(quarter):5.2f}"
            print(f"  {policy:30} {text}", flush=True)
        if number < len(axes):
            result.plot(axes[number], y="log")
    Path("results").mkdir(exist_ok=True)
    figure.savefig("results/diminishing.png", dpi=150)


if __name__ == "__main__":
    main()
