"""Bandits with knapsacks: five arms, five budgets, and a public instance.

In each round one arm is played, or none; in the second experiment at most two. The reward of an arm
is learned, what it uses of five resources is known, and each resource has a budget for all rounds.
Compares promises with quotas and with primal-dual methods and linear programs of the literature.
All but one draw mean rewards from the same posterior, so that they differ only in how they treat
the budgets. Prints the reward lost against the linear program with known means, and draws
knapsack_bandits.png.

The instance is that of the notebook of Badanidiyuru-et-al-2013-Bandits_with_Knapsacks in
github.com/lzt68/Online-Learning-Implementation: rewards of 0 or 1, fixed consumption, and means
from NumPy's generator with the seed 12345. Its optimum is compared with the published one.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linprog

import multiplay as mp
from multiplay.results.intervals import band
from multiplay.results.plots import COLOURS, DASHES
from multiplay.types import BoolArray, FloatArray, IntArray

_numbers = np.random.RandomState(12345)  # as the notebook draws them
REWARD = _numbers.uniform(size=5)  # the mean of each arm
USE = _numbers.uniform(size=(5, 5))  # of each resource, by each arm
RESOURCES, ARMS = USE.shape
NAMES = [f"arm {k + 1}" for k in range(ARMS)]
PUBLISHED = [1231.6958931480756, 0, 0, 0, 264.61921046100537]  # its optimum, for budgets of 1000
ROUNDS = {1: 1.5, 2: 1.25}  # for a budget of 1, by the most arms of a round: enough for the optimum

Choose = Callable[["State"], int]  # the number of an action


@dataclass
class State:
    """What a method sees in a round, and its dual variables."""

    actions: IntArray  # of shape (actions, arms): no arm, one arm, ...
    budget: float
    horizon: int
    left: FloatArray
    rng: np.random.Generator
    wins: FloatArray = field(default_factory=lambda: np.ones(ARMS))
    losses: FloatArray = field(default_factory=lambda: np.ones(ARMS))
    rounds_left: int = 0
    prices: FloatArray = field(default_factory=lambda: np.zeros(RESOURCES))
    log_weights: FloatArray = field(default_factory=lambda: np.zeros(RESOURCES + 1))

    def __post_init__(self) -> None:
        self.rounds_left, self.costs = self.horizon, self.actions @ USE.T
        self.pace = self.budget / self.horizon  # what a round may use, on average

    def drawn_means(self) -> FloatArray:
        """Return means from the posterior: Thompson sampling."""
        return self.rng.beta(self.wins, self.losses)

    def upper_means(self) -> FloatArray:
        """Return confidence bounds, with the constant of the notebook."""
        seen, constant = self.wins + self.losses - 2, np.log(RESOURCES * self.horizon * ARMS)
        mean = (self.wins - 1) / np.maximum(seen, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = mean + np.sqrt(constant * mean / seen) + constant / seen
        return np.where(seen > 0, np.minimum(bound, 1.0), 1.0)

    def best(self, values: FloatArray, kept_back: float = 0.0) -> int:
        """Return the best action that leaves so much of each budget."""
        allowed = (self.left - self.costs >= kept_back - 1e-9).all(axis=1)
        return int(np.where(allowed, values, -np.inf).argmax())


def quota(state: State) -> int:
    """Play the best action within the part of the budgets that the rounds so far may use."""
    values = state.actions @ state.drawn_means()
    return state.best(values, state.pace * (state.rounds_left - 1))


def descent(state: State) -> int:
    """Play the best action at prices of the resources, which follow their use."""
    chosen = state.best(state.actions @ state.drawn_means() - state.costs @ state.prices)
    step = 1 / np.sqrt(state.horizon)
    state.prices = np.maximum(state.prices + step * (state.costs[chosen] - state.pace), 0.0)
    return chosen


def weighted(means: Callable[[State], FloatArray], state: State) -> int:
    """Play the most reward for its cost; resources and time have multiplicative weights."""
    weights = np.exp(state.log_weights - state.log_weights.max())
    paid = state.costs @ weights[:-1] + state.pace * weights[-1]
    chosen = state.best(state.actions @ means(state) / paid)
    rate = np.log1p(np.sqrt(np.log(RESOURCES + 1) / state.budget))
    state.log_weights += rate * np.append(state.costs[chosen], state.pace)
    return chosen


def programmed(state: State) -> int:
    """Draw an action by the linear program of one round, as if all rounds were like it."""
    found = linprog(
        -(state.actions @ state.drawn_means()),
        A_ub=state.costs.T,
        b_ub=np.full(RESOURCES, state.pace),
        A_eq=np.ones((1, len(state.actions))),
        b_eq=[1.0],
    )
    shares = np.maximum(np.asarray(found.x), 0.0)
    chosen = int(state.rng.choice(len(shares), p=shares / shares.sum()))
    return chosen if (state.left >= state.costs[chosen]).all() else 0


def played(choose: Choose, most: int, budget: float, wins: BoolArray, seed: int) -> FloatArray:
    """Return the mean reward of the action of each round, for a method of the literature."""
    left, rng = np.full(RESOURCES, budget), np.random.default_rng(seed)
    state = State(actions_of(most), budget, len(wins), left, rng)
    rewards = []
    for won in wins:
        chosen = choose(state)
        action = state.actions[chosen]
        state.left = state.left - state.costs[chosen]
        state.rounds_left -= 1
        state.wins += action * won
        state.losses += action * ~won
        rewards.append(float(action @ REWARD))
    assert (state.left >= -1e-9).all()
    return np.array(rewards)


def promised(most: int, budget: float, wins: BoolArray, seed: int) -> FloatArray:
    """Return the mean reward of the action of each round, with promises."""
    actions = mp.Budget(most, [1] * ARMS, at_most=True, names=NAMES, sense="max")
    horizon = len(wins)
    kept = [
        mp.AtMost(budget, dict(zip(NAMES, use, strict=True)), plays=horizon, name=f"resource {k}")
        for k, use in enumerate(USE.tolist())
    ]
    learner = mp.Learner(actions, mp.GenCTS(), loss_range=(0, 1), constraints=kept, seed=seed)
    rewards = []
    for k, won in enumerate(wins):
        play = learner.ask(ahead=[actions] * (horizon - k - 1))
        seen = dict(zip(NAMES, won.astype(float).tolist(), strict=True))
        learner.tell(play.id, {arm: [seen[arm]] for arm, units in play.plan.items() if units})
        rewards.append(float(play.action @ REWARD))
    for one in learner.constraints():
        assert isinstance(one, mp.PromiseReport)
        assert one.used <= one.constraint.limit + 1e-9
    return np.array(rewards)


def actions_of(most: int) -> IntArray:
    """Return all sets of at most so many arms, the empty set first."""
    sets = [one for size in range(most + 1) for one in combinations(range(ARMS), size)]
    return np.array([[arm in one for arm in range(ARMS)] for one in sets], dtype=np.int64)


def optimum() -> tuple[FloatArray, float]:
    """Return how often the linear program plays each arm, and its reward, for a budget of 1."""
    found = linprog(-REWARD, A_ub=USE, b_ub=np.ones(RESOURCES))
    return np.asarray(found.x), -float(found.fun or 0.0)


METHODS: dict[str, Choose] = {
    "quota of a round": quota,
    "dual descent": descent,
    "primal-dual, weights": partial(weighted, State.drawn_means),
    "primal-dual, bounds": partial(weighted, State.upper_means),
    "linear program, drawn": programmed,
}


def trial(most: int, budget: float, seed: int) -> dict[str, FloatArray]:
    """Return the reward lost after each round, for every method."""
    horizon = round(ROUNDS[most] * budget)
    rng = np.random.default_rng([seed, most])
    wins = rng.random((horizon, ARMS)) < REWARD
    a_round = optimum()[1] * budget / horizon
    rewards = {"promise": promised(most, budget, wins, seed)}
    rewards |= {name: played(one, most, budget, wins, seed) for name, one in METHODS.items()}
    return {name: np.cumsum(a_round - found) for name, found in rewards.items()}


def run(budget: float, trials: int, jobs: int) -> dict[int, dict[str, FloatArray]]:
    """Return the reward lost, of shape (trials, rounds), with one arm and two arms a round."""
    results = {}
    for most in ROUNDS:
        one = partial(trial, most, budget)
        if jobs == 1:
            found = [one(seed) for seed in range(trials)]
        else:
            with ProcessPoolExecutor(jobs) as pool:
                found = list(pool.map(one, range(trials)))
        results[most] = {name: np.array([lost[name] for lost in found]) for name in found[0]}
    return results


def draw(results: dict[int, dict[str, FloatArray]], budget: float) -> Figure:
    """Draw the reward lost by round, with bands."""
    figure = Figure(figsize=(13, 5.2), layout="constrained")
    titles = "one arm a round", "at most two arms a round"
    for ax, lost, title in zip(figure.subplots(1, 2), results.values(), titles, strict=True):
        for number, (name, values) in enumerate(lost.items()):
            mean, low, high = band(values)
            rounds = np.arange(1, len(mean) + 1)
            ax.plot(rounds, mean, DASHES[number % 3], color=COLOURS[number], label=name)
            ax.fill_between(rounds, low, high, color=COLOURS[number], alpha=0.15, lw=0)
        ax.set(xlabel="round", ylabel="reward lost against the linear program")
        about = f"{title}, budgets of {budget:g}: mean of {len(values)} trials, 95 %"
        ax.set_title(about, loc="left", fontsize=11)
        ax.axhline(0, color="0.6", lw=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=100, help="of each resource")
    parser.add_argument("--trials", type=int, default=24, help="independent trials")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the figure")
    chosen = parser.parse_args()
    plays, reward = optimum()
    np.testing.assert_allclose(1000 * plays, PUBLISHED, atol=1e-3)
    print(f"reward of the linear program: {chosen.budget * reward:.1f}")
    results = run(chosen.budget, chosen.trials, chosen.jobs)
    for most, lost in results.items():
        for name, values in lost.items():
            mean, low, high = band(values[:, -1])
            print(f"{most} a round, {name}: {mean:.1f} ({low:.1f} to {high:.1f}) lost")
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(results, chosen.budget).savefig(chosen.out / "knapsack_bandits.png", dpi=110)


if __name__ == "__main__":
    main()
