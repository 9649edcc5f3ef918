"""Policies that learn covariances or variances, where arms vary together.

Four problems with Gaussian copulas. "3 of 10" is the instance that Kim, Vojnovic and Oh (NeurIPS
2025, appendix A.11.1) describe for covariance-adaptive policies: 10 arms, 3 of them in an action,
uniform mean rewards, and the correlations of A A' + I for a random matrix A; here the noise is
uniform within 0.1 of the mean, because losses are in [0, 1]. In the next two an action is one of
five groups of four arms: the losses of a group cancel each other, or rise and fall together. The
last one has units: ten trucks, and all trucks of a lane cost the same on a day. Prints the final
regret with half its 95 % interval, and draws covariance.png.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.environments import Environment
from multiplay.results.intervals import band, standard_error, student
from multiplay.results.plots import style

POLICIES: dict[str, mp.Policy] = {
    "OLSUCBC()": mp.OLSUCBC(),
    "OLSUCBC(0.03, 0.1)": mp.OLSUCBC(alpha=0.03, kappa=0.1),
    "OLSUCBC(0.03, 0)": mp.OLSUCBC(alpha=0.03, kappa=0.0),
    "COSV()": mp.COSV(),
    "COSV(kappa=0.1)": mp.COSV(kappa=0.1),
    "GenCTS()": mp.GenCTS(),
    "BootstrapCTS()": mp.BootstrapCTS(),
    "CombUCB()": mp.CombUCB(),
    "ESCB()": mp.ESCB(),
}
GROUPS, SIZE = 5, 4


def problems(trials: int) -> dict[str, tuple[mp.ActionSet, Environment]]:
    """Return the sets and environments by name."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(10, 10))
    covariance = A @ A.T + np.eye(10)
    deviation = np.sqrt(covariance.diagonal())
    means = rng.uniform(0.1, 0.9, (trials, 10))
    near = mp.Uniform(means - 0.1, means + 0.1)
    ten = mp.Correlated(near, covariance / np.outer(deviation, deviation))
    groups = mp.Explicit(np.kron(np.eye(GROUPS, dtype=int), np.ones((1, SIZE), dtype=int)))
    costs = np.repeat(0.4 + 0.03 * np.arange(GROUPS), SIZE)
    far, one = mp.Uniform(costs - 0.4, costs + 0.4), np.eye(GROUPS)
    cancel = np.kron(one, np.where(np.eye(SIZE) > 0, 1.0, -1 / (SIZE - 1)))
    together = np.kron(one, np.ones((SIZE, SIZE)))
    lanes = np.array([0.2, 0.4, 0.3, 0.5, 0.4, 0.3])
    days = mp.Correlated(mp.Uniform(lanes - 0.1, lanes + 0.1), 0.5)
    return {
        "3 of 10, random covariance": (mp.Budget(3, [1] * 10, sense="max"), ten),
        "groups that cancel": (groups, mp.Correlated(far, cancel)),
        "groups that move together": (groups, mp.Correlated(far, together)),
        "transport, day effects": (mp.Transport([1, 4, 5], [4, 6]), days),
    }


def draw(results: dict[str, mp.Result]) -> Figure:
    """Draw the mean regret by round, with 95 % bands, on logarithmic axes."""
    figure = Figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplots(2, 2, sharey=True).ravel()
    for ax, (name, result) in zip(axes, results.items(), strict=True):
        rounds = result.regret["round"].values
        for number, policy in enumerate(result.policies):
            mean, low, high = band(result.regret.sel(policy=policy).values)
            colour, dashes = style(number)
            ax.plot(rounds, mean, color=colour, linestyle=dashes, label=policy)
            ax.fill_between(rounds, np.maximum(low, 0.1), high, color=colour, alpha=0.15, lw=0)
        ax.set(xscale="log", yscale="log", xlabel="round", xlim=(10, rounds[-1]), ylim=(1, None))
        ax.set_title(name, loc="left", fontsize=11)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    trials = result.regret.sizes["trial"]
    figure.supylabel(f"pseudo-regret: mean of {trials} trials, 95 % band")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds")
    parser.add_argument("--trials", type=int, default=20, help="independent trials")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the figure")
    chosen = parser.parse_args()
    results = {}
    for name, (actions, environment) in problems(chosen.trials).items():
        results[name] = result = mp.simulate(
            actions, environment, POLICIES, chosen.horizon, chosen.trials, jobs=chosen.jobs
        )
        print(f"\n| {name} | regret |\n|---|---|")
        for policy in result.policies:
            final = result.final(policy)
            half = student(len(final)) * standard_error(final)
            print(f"| `{policy}` | {final.mean():.0f} ± {half:.0f} |", flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(results).savefig(chosen.out / "covariance.png", dpi=100)


if __name__ == "__main__":
    main()
