"""Thompson sampling with one seed for all arms, compared with a seed for each arm.

Prints the numbers of docs/choosing.md, and draws shared_seed.png: regret with 95 % confidence
bands on six problems, one of them with arms that come and go.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.results.intervals import interval

KINDS: dict[str, type] = {
    "GenCTS": mp.GenCTS,
    "GaussianCTS": mp.GaussianCTS,
    "BootstrapCTS": mp.BootstrapCTS,
}
SEED = 0


def lanes(t: int) -> mp.ActionSet:
    """Return the set of round t: one of three suppliers is away, two share nine trucks anew."""
    rng = np.random.default_rng((SEED, t))
    left = int(rng.integers(0, 10))
    supply = [left, 9 - left, 0]
    return mp.Transport([*rng.permutation(supply)], [4, 5])


def problems(trials: int) -> dict[str, tuple[mp.ActionSet, mp.Environment]]:
    """Return sets and their losses, with new means in each trial."""
    rng = np.random.default_rng(SEED)
    costs = rng.uniform(0.1, 0.5, (trials, 6))
    ten, weights = rng.uniform(0.2, 0.8, (trials, 10)), [3, 4, 5, 6, 7, 8]
    routes = np.repeat(np.eye(2, dtype=int), 20, axis=1)  # two disjoint routes of 20 arms
    high, low = np.repeat([0.45, 0.5], 20), np.repeat([0.05, 0.1], 20)
    return {
        "transport": (mp.Transport([1, 4, 5], [4, 6]), mp.Stochastic(mp.Uniform(0, 2 * costs))),
        "5 of 10 arms": (mp.Budget(5, [1] * 10), mp.Stochastic(mp.Bernoulli(ten))),
        "knapsack": (
            mp.Knapsack(weights, 40),
            mp.Stochastic(mp.Bernoulli(np.array(weights) / 10 * rng.uniform(0.8, 1, (trials, 6)))),
        ),
        "2 routes, losses near 1/2": (mp.Explicit(routes), mp.Stochastic(mp.Bernoulli(high))),
        "2 routes, low losses": (mp.Explicit(routes), mp.Stochastic(mp.Bernoulli(low))),
        "lanes come and go": (mp.TimeVarying(lanes), mp.Stochastic(mp.Bernoulli(costs))),
    }


def run(horizon: int, trials: int, jobs: int) -> dict[str, mp.Result]:
    """Play all problems, and print a row for each policy."""
    results = {}
    for name, (actions, world) in problems(trials).items():
        policies: dict[str, mp.Policy] = {}
        for kind, policy in KINDS.items():
            policies |= {kind: policy(), f"{kind}, one seed": policy(shared_seed=True)}
        result = mp.simulate(actions, world, policies, horizon, trials, seed=SEED, jobs=jobs)
        results[name] = result
        for kind in KINDS:
            own, shared = result.final(kind), result.final(f"{kind}, one seed")
            print(
                f"| {name} | `{kind}` | "
                + " | ".join(map(_text, (own, shared, shared - own)))
                + " |"
            )
    return results


def _text(values: np.ndarray) -> str:
    mean, low, high = interval(values)
    return f"{mean:.1f} ± {(high - low) / 2:.1f}"


def draw(results: dict[str, mp.Result]) -> Figure:
    """Draw a panel for each problem: one colour for a policy, dashed with one seed."""
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    panels = figure.subplots(2, 3).flat
    for axes, (name, result) in zip(panels, results.items(), strict=True):
        rounds = result.dataset["round"].to_numpy()
        for k, kind in enumerate(KINDS):
            for label, line in ((kind, "-"), (f"{kind}, one seed", "--")):
                regret = result.dataset["regret"].sel(policy=label).transpose("trial", "round")
                mean = regret.mean("trial").to_numpy()
                half = 1.96 * regret.std("trial").to_numpy() / np.sqrt(regret.sizes["trial"])
                axes.plot(rounds, mean, line, color=f"C{k}", label=label)
                axes.fill_between(rounds, mean - half, mean + half, color=f"C{k}", alpha=0.15)
        axes.set(title=name, xlabel="round", ylim=(0, None))
    figure.axes[0].set_ylabel("regret")
    figure.axes[0].legend(fontsize=8)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=3000, help="rounds")
    parser.add_argument("--trials", type=int, default=100, help="independent trials")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the figure")
    chosen = parser.parse_args()
    results = run(chosen.horizon, chosen.trials, chosen.jobs)
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(results).savefig(chosen.out / "shared_seed.png", dpi=120)


if __name__ == "__main__":
    main()
