"""Bandits with knapsacks: one advertisement a round, and a budget for all rounds.

In each round one of seven placements is bought, or none. The price of a placement is known, the
chance of a click is learned, and the budget is for all rounds together. Compares promises with
quotas and with methods of the literature on bandits with knapsacks. All of them draw chances from
the same posterior, so that they differ only in how they treat the budget. Prints the clicks lost
against the linear program with known chances, and draws knapsack_bandits.png.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linprog

import multiplay as mp
from multiplay.results.intervals import band
from multiplay.results.plots import COLOURS, DASHES
from multiplay.types import BoolArray, FloatArray

PRICE = np.array([0, 1, 2, 3, 4, 5, 6, 8])  # the first one is to buy nothing
CHANCE = np.array([0, 0.08, 0.22, 0.30, 0.50, 0.48, 0.62, 0.70])
NAMES = [f"placement {k}" for k in range(1, len(PRICE))]
A_ROUND = 3.0  # of the budget
OFFERED = 0.6  # chance that a placement is offered in a round, in the second experiment

Choose = Callable[["State"], int]  # an arm of a round


@dataclass
class State:
    """What a method sees in a round: draws of chances, offers, and what is left."""

    theta: FloatArray
    offered: BoolArray
    left: float
    rounds_left: int
    horizon: int
    price: float = 0.0  # dual variables of two methods
    log_weights: tuple[float, float] = (0.0, 0.0)

    @property
    def allowed(self) -> BoolArray:
        """The placements that the rest of the budget can pay."""
        return self.offered & (self.left >= PRICE)


def quota(state: State) -> int:
    """Buy the best placement within the part of the budget that the rounds so far may use."""
    kept_back = A_ROUND * (state.rounds_left - 1)
    return _best(state.theta, state.offered & (state.left - kept_back >= PRICE))


def descent(state: State) -> int:
    """Buy the best placement at a price of money, which follows the use of the budget."""
    arm = _best(state.theta - state.price * PRICE, state.allowed)
    step = 1 / (A_ROUND * PRICE.max() * np.sqrt(state.horizon))
    state.price = max(0.0, state.price + step * (PRICE[arm] - A_ROUND))
    return arm


def weighted(state: State) -> int:
    """Buy the most clicks for the cost of money and time, which have multiplicative weights."""
    money, time = state.log_weights
    budget = A_ROUND * state.horizon / PRICE.max()  # in units of the largest price
    use, pace = PRICE / PRICE.max(), A_ROUND / PRICE.max()  # time uses the same budget at its pace
    arm = _best(state.theta / (use + pace * np.exp(time - money)), state.allowed)
    rate = np.log1p(np.sqrt(np.log(2) / budget))
    state.log_weights = money + rate * use[arm], time + rate * pace
    return arm


def drawn(rng: np.random.Generator, state: State) -> int:
    """Buy at random by the linear program of one round, as if all rounds were like it."""
    allowed = np.flatnonzero(state.allowed)
    low, high = (allowed[found] for found in (PRICE[allowed] <= A_ROUND, PRICE[allowed] >= A_ROUND))
    alone = _best(state.theta, state.allowed & (PRICE <= A_ROUND))
    choice, value = [(alone, 1.0)], float(state.theta[alone])
    for i in low:
        for j in high[PRICE[high] > PRICE[i]]:
            share = (A_ROUND - PRICE[i]) / (PRICE[j] - PRICE[i])
            mixed = float(share * state.theta[j] + (1 - share) * state.theta[i])
            if mixed > value:
                value, choice = mixed, [(int(j), share), (int(i), 1 - share)]
    arms, shares = zip(*choice, strict=True)
    return int(rng.choice(arms, p=shares))


def _best(index: FloatArray, allowed: BoolArray) -> int:
    return int(np.where(allowed, index, -np.inf).argmax())


def buy(choose: Choose, offers: BoolArray, clicks: BoolArray, seed: int) -> FloatArray:
    """Return the chance of the placement of each round, for a method of the literature."""
    rng = np.random.default_rng(seed)
    p, q, chances = np.ones(len(PRICE)), np.ones(len(PRICE)), []
    horizon = len(offers)
    state = State(p, offers[0], A_ROUND * horizon, horizon, horizon)
    for offered, would_click in zip(offers, clicks, strict=True):
        state.theta, state.offered = rng.beta(p, q), offered
        state.theta[0] = 0.0
        arm = choose(state)
        state.left -= PRICE[arm]
        state.rounds_left -= 1
        p[arm] += would_click[arm]
        q[arm] += not would_click[arm]
        chances.append(CHANCE[arm])
    assert state.left >= 0
    return np.array(chances)


def promised(known: bool, offers: BoolArray, clicks: BoolArray, seed: int) -> FloatArray:
    """Return the chance of the placement of each round, with a promise."""
    choices = {
        one.tobytes(): mp.Budget(1, one[1:], at_most=True, names=NAMES, sense="max")
        for one in offers.astype(int)
    }
    sets = [choices[one.tobytes()] for one in offers.astype(int)]
    prices = dict(zip(NAMES, PRICE[1:].tolist(), strict=True))
    money = mp.AtMost(A_ROUND * len(sets), prices, plays=len(sets), name="money")
    learner = mp.Learner(
        sets[0], mp.GenCTS(), rewards=(0, 1), changing=True, promises=[money], seed=seed
    )
    chances = []
    for k, actions in enumerate(sets):
        play = learner.ask(actions, ahead=sets[k + 1 :] if known else None)
        seen = dict(zip(NAMES, clicks[k, 1:].astype(float).tolist(), strict=True))
        learner.tell(play.id, {arm: [seen[arm]] for arm, units in play.plan.items() if units})
        chances.append(float(play.action @ CHANCE[1:]))
    report = learner.promises()
    assert (report["used"] <= report["limit"]).all()
    return np.array(chances)


def best_clicks(offers: BoolArray) -> float:
    """Return the expected clicks of the linear program with known chances and offers."""
    rounds, arms = offers.shape
    found = linprog(
        -np.tile(CHANCE, rounds),
        A_ub=np.tile(PRICE, rounds)[None],
        b_ub=[A_ROUND * rounds],
        A_eq=np.kron(np.eye(rounds), np.ones((1, arms))),
        b_eq=np.ones(rounds),
        bounds=[(0.0, one) for one in offers.astype(float).ravel().tolist()],
    )
    return -float(found.fun or 0.0)


def trial(horizon: int, changing: bool, seed: int) -> dict[str, FloatArray]:
    """Return the clicks lost after each round, for every method."""
    rng = np.random.default_rng([seed, changing])
    offers = np.ones((horizon, len(PRICE)), dtype=bool)
    if changing:
        offers[:, 1:] = rng.random((horizon, len(PRICE) - 1)) < OFFERED
    clicks = rng.random(offers.shape) < CHANCE
    methods = {
        "promise": partial(promised, False),
        "promise, offers known": partial(promised, True),
        "quota of a round": partial(buy, quota),
        "dual descent": partial(buy, descent),
        "primal-dual, weights": partial(buy, weighted),
        "linear program, drawn": partial(buy, partial(drawn, np.random.default_rng(seed))),
    }
    if not changing:  # the same
        del methods["promise, offers known"]
    a_round = best_clicks(offers) / horizon
    return {
        name: np.cumsum(a_round - method(offers, clicks, seed)) for name, method in methods.items()
    }


def run(horizon: int, trials: int, jobs: int) -> list[dict[str, FloatArray]]:
    """Return the clicks lost, of shape (trials, rounds), without and with changing offers."""
    results = []
    for changing in (False, True):
        one = partial(trial, horizon, changing)
        if jobs == 1:
            found = [one(seed) for seed in range(trials)]
        else:
            with ProcessPoolExecutor(jobs) as pool:
                found = list(pool.map(one, range(trials)))
        results.append({name: np.array([lost[name] for lost in found]) for name in found[0]})
    return results


def draw(results: list[dict[str, FloatArray]]) -> Figure:
    """Draw the clicks lost by round, with bands."""
    figure = Figure(figsize=(13, 5.2), layout="constrained")
    titles = "all placements in every round", f"{OFFERED:.0%} of the placements in each round"
    for ax, lost, title in zip(figure.subplots(1, 2), results, titles, strict=True):
        for name, values in lost.items():
            number = list(results[1]).index(name)
            mean, low, high = band(values)
            rounds = np.arange(1, len(mean) + 1)
            ax.plot(rounds, mean, DASHES[number % 3], color=COLOURS[number], label=name)
            ax.fill_between(rounds, low, high, color=COLOURS[number], alpha=0.15, lw=0)
        ax.set(xlabel="round", ylabel="clicks lost against the linear program")
        ax.set_title(f"{title}: mean of {len(values)} trials, 95 %", loc="left", fontsize=11)
        ax.axhline(0, color="0.6", lw=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    figure.axes[1].legend(frameon=False)
    return figure


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=150, help="rounds")
    parser.add_argument("--trials", type=int, default=24, help="independent trials")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the figure")
    chosen = parser.parse_args()
    results = run(chosen.horizon, chosen.trials, chosen.jobs)
    for lost, offers in zip(results, ("all offers", "changing offers"), strict=True):
        for name, values in lost.items():
            mean, low, high = band(values[:, -1])
            print(f"{offers}, {name}: {mean:.1f} ({low:.1f} to {high:.1f}) clicks lost")
    chosen.out.mkdir(parents=True, exist_ok=True)
    draw(results).savefig(chosen.out / "knapsack_bandits.png", dpi=110)


if __name__ == "__main__":
    main()
