"""What practitioners do instead: rules that stand beside the policies in the examples of real data.

And what these examples share: the mean of each policy, its difference to the default with an error
by trials and by blocks of time, and a figure of cumulative differences.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import multiplay as mp
from multiplay.random import Rng
from multiplay.results.plots import style
from multiplay.types import Arrays, FloatArray

ORACLE = "best plan of each round"
FIRST = 0.3  # the loss of an arm of which nothing is known
POLICIES: dict[str, mp.Policy] = {
    "PooledCTS(memory=Changes())": mp.PooledCTS(memory=mp.Changes()),
    "PooledCTS(memory=Persists())": mp.PooledCTS(memory=mp.Persists()),
    "PooledCTS()": mp.PooledCTS(),
    "BootstrapCTS()": mp.BootstrapCTS(),
    "GenCTS()": mp.GenCTS(),
    "GenCTS(discount=0.95)": mp.GenCTS(discount=0.95),
    "follow the leader": mp.FollowTheLeader(),
}


@dataclass(frozen=True)
class Smoothed(mp.Policy):
    """Predict each arm by exponential smoothing of its losses, and play the best plan for that."""

    changing = True
    share: float = 0.3  # 1: the last value

    def start(self, actions: mp.ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the first guess."""
        first = FIRST if actions.sign > 0 else 1 - FIRST
        return {"guess": np.full((trials, actions.d), first)}

    def choose(self, actions: mp.ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Play the best plan for the guesses; equal ones in a random order."""
        ties = 1e-6 * rng.random(state["guess"].shape)
        return mp.Play(actions.best(state["guess"] + ties))

    def update(
        self,
        actions: mp.ActionSet,
        state: Arrays,
        play: mp.Play,
        feedback: mp.Feedback,
        rng: Rng,
    ) -> None:
        """Move the guesses of arms that were seen towards their last average."""
        moved = self.share * (feedback.mean - state["guess"])
        state["guess"] += np.where(feedback.seen > 0, moved, 0.0)


@dataclass(frozen=True)
class Fixed(Smoothed):
    """Play at random for some rounds, and then the plan that is best by the averages for ever."""

    rounds: int = 48

    def start(self, actions: mp.ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return sums of nothing."""
        zeros = {name: np.zeros((trials, actions.d)) for name in ("units", "total")}
        return zeros | {"t": np.zeros(trials)}

    def choose(self, actions: mp.ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Play a plan that is best for random numbers, or for the averages."""
        if state["t"][0] < self.rounds:
            return mp.Play(actions.best(rng.random(state["units"].shape)))
        return mp.Play(actions.best(state["total"] / np.maximum(state["units"], 1)))

    def update(
        self,
        actions: mp.ActionSet,
        state: Arrays,
        play: mp.Play,
        feedback: mp.Feedback,
        rng: Rng,
    ) -> None:
        """Count the losses of the trial rounds."""
        state["t"] += 1
        if state["t"][0] <= self.rounds:
            state["units"] += feedback.seen
            state["total"] += feedback.total


@dataclass(frozen=True)
class Returning(Fixed):
    """Predict that the last loss of an arm returns to its average by 0.9 a round: set by hand."""

    left: float = 0.9

    def start(self, actions: mp.ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return an average of one report, and no last loss."""
        state, shape = super().start(actions, horizon, trials), (trials, actions.d)
        first = np.full(shape, FIRST if actions.sign > 0 else 1 - FIRST)
        return state | {
            "units": np.ones(shape),
            "total": first,
            "last": 1 * first,
            "share": 0 * first,
        }

    def choose(self, actions: mp.ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        """Play the best plan for the predictions; equal ones in a random order."""
        ties = 1e-6 * rng.random(state["units"].shape)
        average = state["total"] / state["units"]
        apart = state["share"] * (state["last"] - average)
        return mp.Play(actions.best(average + apart + ties))

    def update(
        self,
        actions: mp.ActionSet,
        state: Arrays,
        play: mp.Play,
        feedback: mp.Feedback,
        rng: Rng,
    ) -> None:
        """Count a round of an arm as one report."""
        seen = feedback.seen > 0
        state["units"] += seen
        state["total"] += np.where(seen, feedback.mean, 0.0)
        state["last"] = np.where(seen, feedback.mean, state["last"])
        state["share"] = self.left * np.where(seen, 1.0, state["share"])


def rules(trial: int) -> dict[str, mp.Policy]:
    """Return the rules by hand, of which one has so many rounds of a trial."""
    return {
        "fixed after a trial": Fixed(rounds=trial),
        "last value": Smoothed(1.0),
        "smoothed, 0.3": Smoothed(0.3),
        "smoothed, 0.1": Smoothed(0.1),
        "returning by 0.9, set by hand": Returning(),
    }


def compare(
    actions: mp.ActionSet,
    world: mp.Environment,
    means: FloatArray,
    block: int,
    trials: int,
    trial: int = 48,
) -> dict[str, FloatArray]:
    """Print the mean cost of a unit by policy, and return the cost of every round.

    ``means`` are those of all rounds, (rounds, d). Plans are judged by them. ``trial`` is how many
    rounds pass before a plan is fixed.
    """
    rounds, policies = len(means), POLICIES | rules(trial)
    result = mp.simulate(
        actions, world, policies, rounds, trials, seed=1, record=rounds, against="each round"
    )
    least = (actions.best(means) * means).sum(axis=1)
    fixed = actions.best(means.mean(axis=0))
    units = int(fixed.sum())
    regret = actions.sign * np.diff(result.regret.values, axis=2, prepend=0.0)
    found = {name: (one + least).T / units for name, one in zip(policies, regret, strict=True)}
    found["best fixed plan, in hindsight"] = (means @ fixed)[:, None] / units
    found[ORACLE] = least[:, None] / units
    return print_table(found, block)


def print_table(found: dict[str, FloatArray], block: int) -> dict[str, FloatArray]:
    """Print mean costs, (rounds, trials), and return those of every round.

    The difference to the first one has a standard error by blocks of rounds and by trials.
    """
    first = next(iter(found.values()))
    print("| policy | a unit | second half | less the first, ± blocks and trials |")
    print("|---|---|---|---|")
    for name, cost in found.items():
        apart = cost - first
        by_trial = apart.mean(axis=0).std() / np.sqrt(apart.shape[1])
        error = np.hypot(blocks(apart.mean(axis=1), block), by_trial)
        half = cost[len(cost) // 2 :].mean()
        print(f"| {name} | {cost.mean():.4f} | {half:.4f} | {apart.mean():+.4f} ± {error:.4f} |")
    return {name: cost.mean(axis=1) for name, cost in found.items()}


def blocks(values: FloatArray, size: int, draws: int = 400) -> float:
    """Return the standard error of the mean of rounds, by circular blocks of this size."""
    rng, n = np.random.default_rng(0), len(values)
    starts = rng.integers(0, n, (draws, -(-n // size)))
    picked = (starts[:, :, None] + np.arange(size)) % n
    return float(values[picked.reshape(draws, -1)[:, :n]].mean(axis=1).std())


def draw_figure(path: Path, curves: dict[str, FloatArray], title: str, xlabel: str) -> None:
    """Draw cumulative differences to the first curve."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    ax, first = figure.add_subplot(), next(iter(curves.values()))
    for number, (name, curve) in enumerate(curves.items()):
        if name != ORACLE:  # it would be far away from all others
            colour, dashes = style(number)
            ax.plot(np.cumsum(curve - first), color=colour, linestyle=dashes, label=name)
    ax.set(title=title, xlabel=xlabel, ylabel="sum so far")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)
