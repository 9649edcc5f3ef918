"""Non-stationary losses: regret, detection of changes and cost of following them, against limits.

Command line: ``python -m benchmarks.change --only stationary drifting --jobs 2``. Without
``--trials`` each topic has the number of trials that its limits were stated for.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

if __name__ == "__main__":
    from benchmarks import ONE_THREAD

    os.environ.update(ONE_THREAD)  # before the import of numpy

import numpy as np
from scipy.special import ndtri

from benchmarks.bills import CHANGING, FIVE_OF_TEN, SMALL, lanes_of, square
from benchmarks.harness import Runner, Section, Target, command, standard_error
from multiplay import (
    GLRCUCB,
    ActionSet,
    Adversarial,
    Alternating,
    Attacked,
    Bernoulli,
    BootstrapCTS,
    Budget,
    Changes,
    CombUCB,
    Corrupted,
    Environment,
    GenAdaINF,
    GenCTS,
    GenLBINFV,
    Knapsack,
    Learner,
    Policy,
    PooledCTS,
    RandomWalk,
    Sinusoids,
    Stochastic,
    Streams,
    TimeVarying,
    Transport,
    World,
    simulate,
)
from multiplay.environments.stochastic import DrawnWorld, PhasedWorld
from multiplay.experiments import paper
from multiplay.kernels.change import settle
from multiplay.kernels.hypotheses import CHANGES
from multiplay.kernels.moments import N
from multiplay.service.studies import demonstration as demo
from multiplay.types import Arrays, FloatArray

SEED = 2029
FOLLOW, IGNORE = BootstrapCTS(memory=Changes()), BootstrapCTS()
BOTH: dict[str, Policy] = {"follow": FOLLOW, "ignore": IGNORE}
DEFAULT, POOLED = PooledCTS(memory=Changes()), PooledCTS()
COMPARED: dict[str, Policy] = {
    "PooledCTS(memory=Changes())": DEFAULT,
    "PooledCTS()": POOLED,
    "BootstrapCTS(memory=Changes())": FOLLOW,
    "BootstrapCTS()": IGNORE,
    "BootstrapCTS(window=300)": BootstrapCTS(window=300),
    "GenCTS()": GenCTS(),
    "GenCTS(discount=0.997)": GenCTS(discount=0.997),
    "GenCTS(window=300)": GenCTS(window=300),
    "CombUCB()": CombUCB(),
    "CombUCB(discount=0.997)": CombUCB(discount=0.997),
    "CombUCB(window=300)": CombUCB(window=300),
    "GLRCUCB()": GLRCUCB(),
    "GLRCUCB(alpha=0.3, p=0.004)": GLRCUCB(0.3, p=0.004),
    "GenAdaINF()": GenAdaINF(),
    "GenLBINFV()": GenLBINFV(),
}

# ------------------------------------------------------------------ worlds

Path = Callable[[int], FloatArray]  # the means of a round, (trials, d)


def _bill(m: FloatArray, u: FloatArray) -> FloatArray:
    """Return a normal number around m, with a deviation of 8 %, within [0, 1]."""
    return np.clip(m * (1 + 0.08 * ndtri(u)), 0, 1)


LAWS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {  # of a mean and a quantile
    "coin": lambda m, u: (u < m).astype(float),
    "uniform": lambda m, u: 2 * m * u,
    "bills": _bill,
    "euros": lambda m, u: np.clip(m + demo.SPREAD / demo.HIGHEST * ndtri(u), 0, 1),
    "breakdowns": lambda m, u: np.where(u < 0.01, 1.0, _bill(m, (u - 0.01) / 0.99)),
}


@dataclass(frozen=True, eq=False)
class Moving(Environment):
    """Losses of a law of ``LAWS`` around means that depend on the round."""

    path: Path
    law: str

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Accept every set: the means were drawn for it."""

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return MovingWorld(self, actions, trials, seed)


class MovingWorld(DrawnWorld):
    """The trials of ``Moving``."""

    def __init__(
        self, moving: Moving, actions: ActionSet, trials: Sequence[int], seed: int
    ) -> None:
        super().__init__(actions, trials, seed)
        self.path, self.law, self.trials = moving.path, LAWS[moving.law], list(trials)

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw the losses of this round."""
        means = self.path(self.round)[self.trials]
        return self.law(means[:, self.slots.owner], u), means


Moves = Callable[[FloatArray, ActionSet, int], Path]  # of means, set, and the last round before


def constant(means: FloatArray, actions: ActionSet, at: int) -> Path:
    """Return means that stay."""
    return lambda t: means


def switched(after: Callable[[FloatArray, ActionSet], FloatArray]) -> Moves:
    """Return a change to other means after round ``at``."""

    def moves(means: FloatArray, actions: ActionSet, at: int) -> Path:
        later = after(means, actions)
        return lambda t: means if t <= at else later

    return moves


def used(means: FloatArray, actions: ActionSet, number: int = 1) -> Any:
    """Return the most used arms of the best plan of each trial, as an index."""
    best = actions.best(means)
    return np.arange(len(means))[:, None], np.argsort(-best, axis=1, kind="stable")[:, :number]


def doubled(means: FloatArray, actions: ActionSet, number: int = 1) -> FloatArray:
    """Return the means after the most used arms doubled."""
    after, which = means.copy(), used(means, actions, number)
    after[which] = np.minimum(2 * after[which], 1.0)
    return after


def cheap(means: FloatArray, actions: ActionSet) -> FloatArray:
    """Return the means after an arm that the best plan does not use became cheap."""
    idle = np.where(actions.best(means) == 0, actions.n, -1)
    after = means.copy()
    after[np.arange(len(means)), idle.argmax(axis=1)] = 0.05
    return after


def gradual(means: FloatArray, actions: ActionSet, at: int) -> Path:
    """Return means of which the most used doubles in 2,000 rounds."""
    more = doubled(means, actions) - means
    return lambda t: means + more * min(max(t - at, 0) / 2000, 1.0)


def week(each: bool, by: float = 0.15) -> Moves:
    """Return means that move up and down in 7 rounds, each arm by itself or all together."""

    def moves(means: FloatArray, actions: ActionSet, at: int) -> Path:
        shape = means.shape if each else (len(means), 1)
        phase: FloatArray = np.random.default_rng((SEED, 7)).random(shape)

        def of_round(t: int) -> FloatArray:
            wave: FloatArray = np.sin(2 * np.pi * (t / 7 + phase))
            return np.minimum(means * (1 + by * wave), 1.0)

        return of_round

    return moves


flip = switched(lambda means, actions: 1 - means)
all_dearer = switched(lambda means, actions: 1.3 * means)


class Case(NamedTuple):
    """A world: its set, the range of its means, its law, how it moves, its rounds."""

    actions: ActionSet
    means: tuple[float, float] | FloatArray
    law: str
    moves: Moves
    rounds: int
    at: int = 0

    def of(self, trials: int) -> Moving:
        """Return the environment of some trials."""
        first = self.actions.at(1)
        if isinstance(self.means, tuple):
            means = np.random.default_rng((SEED, 1)).uniform(*self.means, (trials, first.d))
        else:
            means = np.tile(self.means, (trials, 1))
        return Moving(self.moves(means, first, self.at), self.law)


PAPER = (0.1, 0.5)
PLANS, MANY = SMALL[0], lanes_of(64)[0]
EIGHT = square(8, 6)[0]
FIVE, SETS = FIVE_OF_TEN[0], TimeVarying(CHANGING)
HALVES = np.where(np.arange(10) < 5, 0.375, 0.625)
ITEMS, WORTH = Knapsack([3, 4, 5, 6], 16), np.array([0.3, 0.5, 0.65, 0.75])


def final(case: Case, policies: Mapping[str, Policy], trials: int) -> dict[str, FloatArray]:
    """Return the final regret of all trials against the best plan of each round."""
    environment = case.of(trials)
    result = simulate(
        case.actions,
        environment,
        policies,
        case.rounds,
        trials,
        seed=SEED,
        record=1,
        against="each round",
    )
    return {name: result.final(name) for name in policies}


def shown(values: FloatArray) -> str:
    """Return the mean with its standard error."""
    mean, error = float(np.mean(values)), standard_error(values.tolist())
    digits = 0 if mean >= 100 else 1
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def ratio_of(found: Mapping[str, FloatArray]) -> tuple[float, float]:
    """Return the ratio of the means of follow and ignore, and its upper 95 % bound.

    Trials are paired: the bound is that of the delta method on follow - ratio * ignore.
    """
    follow, ignore = found["follow"], found["ignore"]
    ratio = float(follow.mean() / ignore.mean())
    error = standard_error((follow - ratio * ignore).tolist()) / float(ignore.mean())
    return ratio, ratio + 1.645 * error


# -------------------------------------------------------------- stationary

STATIONARY: dict[str, Case] = {
    "Bernoulli": Case(PLANS, PAPER, "coin", constant, 5000),
    "uniform": Case(PLANS, PAPER, "uniform", constant, 5000),
    "uniform, single units": Case(FIVE, PAPER, "uniform", constant, 3000),
    "8 % bills": Case(PLANS, PAPER, "bills", constant, 3000),
    "rare disasters": Case(PLANS, (0.01, 0.1), "coin", constant, 3000),
    "5 of 10": Case(FIVE, HALVES, "coin", constant, 3000),
    "8 x 8": Case(EIGHT, PAPER, "bills", constant, 600),
    "knapsack": Case(ITEMS, WORTH, "coin", constant, 3000),
    "changing sets": Case(SETS, PAPER, "coin", constant, 3000),
    "64 times the units": Case(MANY, PAPER, "coin", constant, 1000),
}


def of_case(name: str, trials: int) -> dict[str, FloatArray]:
    """Return the final regret of ``follow`` and ``ignore`` in a world."""
    return final((STATIONARY | OTHERS)[name], BOTH, trials)


def stationary(trials: int | None, run: Runner) -> list[Section]:
    """Measure what following changes costs where nothing changes."""
    found = run({name: (of_case, (name, trials or 400)) for name in STATIONARY})
    rows, targets = [], []
    for name, finals in found.items():
        ratio, bound = ratio_of(finals)
        row = {"world": f"{name}, {STATIONARY[name].rounds}"}
        row |= {policy: shown(values) for policy, values in finals.items()}
        rows.append(row | {"ratio": ratio, "95 % bound": bound})
        targets.append(Target(f"stationary, {name}: follow / ignore", ratio, 1.15))
        targets.append(Target(f"stationary, {name}: upper 95 % bound", bound, 1.2))
    return [Section("Stationary", "Final regret ± standard error, paired by trial.", rows, targets)]


# ---------------------------------------------------------------- drifting

PERIODS = np.array([2000.0, 2500.0, 3000.0, 1500.0, 3500.0, 4000.0])
LIMITS = {"one flip": 130.0, "waves": 150.0, "walks": 260.0}
LONG = 5000


def drifting() -> dict[str, Environment]:
    """Return eight worlds on the transport; noise of waves and walks is 0, of others Bernoulli."""
    means = paper.costs(1, seed=0)[0]
    clean, flipped = Bernoulli(means), Bernoulli(1 - means)
    waves = Sinusoids(centre=0.5, amplitude=0.3, period=PERIODS, phase=np.arange(6) / 6)
    return {
        "stochastic": Stochastic(clean),
        "one flip": Corrupted(clean, flipped, at=LONG // 5),
        "common jumps": Alternating(means, float(means.min()), first=500, growth=1),
        "all +30 %": Corrupted(clean, Bernoulli(1.3 * means), at=LONG // 5),
        "waves": Adversarial(waves),
        "walks": Adversarial(RandomWalk(step=0.01)),
        "corrupted": Attacked(clean, budget=300, on="all"),
        "switching": Switching(clean, flipped),
    }


@dataclass(frozen=True, eq=False)
class Switching(Environment):
    """Two distributions in turn, 50 rounds each."""

    one: Bernoulli
    other: Bernoulli

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Accept the set that the means were made for."""

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        phases = [50] * (horizon // 50 + 1)
        return PhasedWorld([self.one, self.other], phases, actions, trials, seed)


def of_drift(world: str, policy: str, trials: int) -> FloatArray:
    """Return the final regret of a policy in a world of ``drifting``."""
    one = {policy: COMPARED[policy]}
    result = simulate(
        PLANS, drifting()[world], one, LONG, trials, SEED, record=1, against="each round"
    )
    return result.final(policy)


def compared(trials: int | None, run: Runner) -> list[Section]:
    """Measure all policies in eight worlds."""
    worlds = list(drifting())
    found = run({(w, p): (of_drift, (w, p, trials or 20)) for p in COMPARED for w in worlds})
    rows = [{"policy": p} | {w: shown(found[w, p]) for w in worlds} for p in COMPARED]
    first = next(iter(COMPARED))
    targets = [Target(w, float(found[w, first].mean()), limit) for w, limit in LIMITS.items()]
    shows = f"Final regret ± standard error after {LONG} rounds, against the best of each round."
    return [Section("Drifting", shows, rows, targets)]


# --------------------------------------------------------------- piecewise

PARTS, HORIZONS = 5, (1250, 5000, 20_000)
TWO_OF_SIX = Budget(2, [1] * 6, sense="max")


def rivals(rounds: int) -> dict[str, Policy]:
    """Return policies for a known horizon, with the windows and shares that theory gives."""
    logarithm = np.log(rounds)
    window = round(2 * np.sqrt(rounds * logarithm / PARTS))
    p = float(np.sqrt(PARTS * logarithm / rounds))
    return {
        "CombUCB()": CombUCB(),
        "CombUCB(window=2 sqrt(T ln T / N))": CombUCB(window=window),
        "GLRCUCB()": GLRCUCB(),
        "GLRCUCB(p=0.05 sqrt(N ln T / T))": GLRCUCB(p=0.05 * p),
        "BootstrapCTS(memory=Changes())": FOLLOW,
    }


def jumps(means: FloatArray, actions: ActionSet, at: int) -> Path:
    """Return means that are drawn anew after every ``at`` rounds."""
    rng = np.random.default_rng((SEED, 5))
    parts = [means, *(rng.uniform(0.1, 0.9, means.shape) for _ in range(PARTS - 1))]
    return lambda t: parts[(t - 1) // at]


def of_parts(policy: str, rounds: int, trials: int) -> FloatArray:
    """Return the final regret of a policy for one horizon."""
    case = Case(TWO_OF_SIX, (0.1, 0.9), "coin", jumps, rounds, rounds // PARTS)
    return final(case, {policy: rivals(rounds)[policy]}, trials)[policy]


def piecewise(trials: int | None, run: Runner) -> list[Section]:
    """Measure how regret grows with the horizon, for a fixed number of stationary parts."""
    names = list(rivals(HORIZONS[0]))
    found = run({(n, T): (of_parts, (n, T, trials or 40)) for n in names for T in HORIZONS})
    rows = []
    for name in names:
        means = [float(found[name, T].mean()) for T in HORIZONS]
        slope = float(np.polyfit(np.log(HORIZONS), np.log(means), 1)[0])
        row: dict[str, Any] = {"policy": name} | {
            f"T = {T}": shown(found[name, T]) for T in HORIZONS
        }
        rows.append(row | {"exponent of T": slope})
    ratio = float(found["GLRCUCB()", HORIZONS[2]].mean() / found["GLRCUCB()", HORIZONS[1]].mean())
    bound = float(np.sqrt(4 * np.log(HORIZONS[2]) / np.log(HORIZONS[1])))  # of sqrt(N d T ln T)
    targets = [Target("piecewise: GLRCUCB, regret of 20,000 rounds / of 5,000", ratio, bound)]
    shows = f"Final regret ± standard error, 2 of 6 arms, {PARTS} stationary parts."
    return [Section("Piecewise stationary", shows, rows, targets)]


# ------------------------------------------------------------ other worlds

OTHERS: dict[str, Case] = {
    "one lane doubles, 8 %": Case(PLANS, PAPER, "bills", switched(doubled), 3000, 1000),
    "one lane doubles, coins": Case(PLANS, PAPER, "coin", switched(doubled), 3000, 1000),
    "gradual, 8 %": Case(PLANS, PAPER, "bills", gradual, 3000, 1000),
    "gradual, coins": Case(PLANS, PAPER, "coin", gradual, 3000, 1000),
    "everything +30 %, 8 %": Case(PLANS, PAPER, "bills", all_dearer, 3000, 1000),
    "everything +30 %, coins": Case(PLANS, PAPER, "coin", all_dearer, 3000, 1000),
    "week ±15 %, each lane": Case(PLANS, PAPER, "bills", week(each=True), 3000),
    "week ±15 %, together": Case(PLANS, PAPER, "bills", week(each=False), 3000),
    "idle lane becomes cheap, 8 %": Case(PLANS, PAPER, "bills", switched(cheap), 3000, 1000),
    "idle lane becomes cheap, coins": Case(PLANS, PAPER, "coin", switched(cheap), 3000, 1000),
    "5 of 10, flip": Case(FIVE, HALVES, "coin", flip, 3000, 1000),
    "knapsack, flip": Case(ITEMS, WORTH, "coin", flip, 3000, 1000),
    "changing sets, flip": Case(SETS, PAPER, "coin", flip, 3000, 1000),
    "8 x 8, 8 lanes double": Case(
        EIGHT, PAPER, "bills", switched(lambda m, a: doubled(m, a, 8)), 1000, 400
    ),
    "64 times the units, flip": Case(MANY, PAPER, "coin", flip, 1000, 300),
}
RATIOS = {"everything": 1.4, "week": 1.15}


def others(trials: int | None, run: Runner) -> list[Section]:
    """Measure changes of one arm, of all, in steps and slowly, on several sets."""
    found = run({name: (of_case, (name, trials or 40)) for name in OTHERS})
    rows, targets = [], []
    for name, finals in found.items():
        ratio, bound = ratio_of(finals)
        row = {"world": f"{name}, {OTHERS[name].rounds}"}
        row |= {policy: shown(values) for policy, values in finals.items()}
        rows.append(row | {"ratio": ratio, "95 % bound": bound})
        for start, limit in RATIOS.items():
            if name.startswith(start):
                targets.append(Target(f"{name}: follow / ignore", ratio, limit))
    doubles = float(found["one lane doubles, 8 %"]["follow"].mean())
    targets.append(Target("one lane doubles, 8 %: regret", doubles, 12))
    shows = "Final regret ± standard error against the best plan of each round."
    return [Section("Other worlds", shows, rows, targets)]


# --------------------------------------------------------------- curiosity

CURIOUS: dict[str, Policy] = {
    f"curiosity={value}": BootstrapCTS(memory=Changes(), curiosity=value)
    for value in (0, 0.03, 0.1, 0.3)
}
LOOKED_AT = (
    *("Bernoulli", "8 % bills"),
    *("idle lane becomes cheap, coins", "idle lane becomes cheap, 8 %"),
)


def of_curious(name: str, trials: int) -> dict[str, FloatArray]:
    """Return the final regret with several prices for looking at idle arms."""
    return final((STATIONARY | OTHERS)[name], CURIOUS, trials)


def curiosity(trials: int | None, run: Runner) -> list[Section]:
    """Measure what looking at idle arms costs, and what it finds."""
    found = run({name: (of_curious, (name, trials or 100)) for name in LOOKED_AT})
    rows = [
        {"policy": policy} | {name: shown(finals[policy]) for name, finals in found.items()}
        for policy in CURIOUS
    ]
    shows = "Final regret ± standard error against the best plan of each round."
    return [Section("Curiosity", shows, rows)]


# ----------------------------------------------------------- demonstration

DEMO_SET = Transport(list(demo.DEPOTS.values()), list(demo.TOWNS.values()))
DEMO_PLAYERS: dict[str, Policy] = {
    "follow": DEFAULT,
    "ignore": POOLED,
    "BootstrapCTS(memory=Changes())": FOLLOW,
    "GenCTS(discount=0.995)": GenCTS(discount=0.995),
    "GenCTS(window=30)": GenCTS(window=30),
}


SURE = "follow, confirmed changes"  # a change is acted upon from a weight of 0.95, see ``SETTLED``


class Life(NamedTuple):
    """Of all trials: the loss of each round above the best, and rounds of changes."""

    lost: FloatArray
    noted: list[list[tuple[int, int]]]  # round and arm, by trial


def live(
    actions: ActionSet,
    environment: Environment,
    policy: Policy,
    rounds: int,
    trials: int,
    count: Callable[[Arrays], FloatArray],
) -> Life:
    """Play some rounds, and note when a policy that follows changes counts one more."""
    world = environment.open(actions, rounds, range(trials), SEED)
    rng = Streams.spawn(SEED, 3, range(trials))
    state = policy.start(actions, None, trials)
    lost = np.zeros((rounds, trials))
    seen = np.zeros((trials, actions.d))
    noted: list[list[tuple[int, int]]] = [[] for _ in range(trials)]
    for t in range(rounds):
        play = policy.choose(actions, state, rng)
        outcome = world.observe(play.action)
        policy.update(actions, state, play, outcome.feedback, rng)
        best = actions.best(outcome.means)
        lost[t] = ((play.action - best) * outcome.means).sum(axis=1)
        if "marks" in state:
            now = count(state)
            for trial, arm in np.argwhere(now > seen).tolist():
                noted[trial].append((t + 1, arm))
            seen = now
    return Life(lost, noted)


def confirmed(state: Arrays) -> FloatArray:
    """Return the number of confirmed changes of each arm."""
    numbers: FloatArray = state["marks"][:, :, CHANGES].copy()
    return numbers


def acted_upon(state: Arrays) -> FloatArray:
    """Return the number of changes of each arm that are confirmed, or so likely as to count."""
    moments, settled = state["moments"], np.empty_like(state["moments"])
    for own in zip(moments, state["hypotheses"], state["marks"], settled, strict=True):
        settle(*own)
    likely = settled[:, :, N] < moments[:, :, N]
    return confirmed(state) + likely


def road_works(trials: int) -> Moving:
    """Return the losses of the demonstration, as shares of its range."""
    begins, lane, more = demo.ROAD_WORKS
    means = np.random.default_rng(2026).uniform(80.0, 300.0, DEMO_SET.d)
    after = means + more * (np.arange(DEMO_SET.d) == lane)
    paths = np.tile(means, (trials, 1)), np.tile(after, (trials, 1))
    return Moving(lambda t: paths[t > begins] / demo.HIGHEST, "euros")


def of_demo(player: str, trials: int, count: Callable[[Arrays], FloatArray] = acted_upon) -> Life:
    """Play the year of the demonstration."""
    return live(DEMO_SET, road_works(trials), DEMO_PLAYERS[player], demo.DAYS, trials, count)


def demonstration(trials: int | None, run: Runner) -> list[Section]:
    """Measure euros lost before and after the price of a lane rises, and its detection."""
    jobs: dict[str, Any] = {p: (of_demo, (p, trials or 40)) for p in DEMO_PLAYERS}
    found: dict[str, Life] = run(jobs | {SURE: (of_demo, ("follow", trials or 40, confirmed))})
    sure = found.pop(SURE)
    begins, lane, _ = demo.ROAD_WORKS
    spans = {"200 days before": slice(0, begins), "14 days after": slice(begins, begins + 14)}
    spans["165 days after"] = slice(begins, demo.DAYS)
    rows = [
        {"policy": player}
        | {name: shown(demo.HIGHEST * life.lost[span].sum(axis=0)) for name, span in spans.items()}
        for player, life in found.items()
    ]
    days = [
        min((day for day, arm in one if arm == lane and day > begins), default=demo.DAYS) - begins
        for one in found["follow"].noted
    ]
    acted, certain = (
        np.mean([any(arm != lane or day <= begins for day, arm in c) for c in life.noted])
        for life in (found["follow"], sure)
    )
    soon = np.mean(np.array(days) <= 7)
    lost = demo.HIGHEST * found["follow"].lost[begins:].sum(axis=0).mean()
    targets = [
        Target("demonstration: 165 days after", float(lost), 4500, "euros"),
        Target("demonstration: acted upon within 7 days, share", float(soon), 1, at_least=True),
        Target("demonstration: share with another change that is acted upon", float(acted), 0.05),
        Target("demonstration: share with another change that is confirmed", float(certain), 0),
    ]
    middle, latest = np.median(days), max(days)
    shows = f"Euros lost ± standard error. Acted upon after {middle:.0f} days (median) to {latest}."
    return [Section("Demonstration", shows, rows, targets)]


# ---------------------------------------------------------------- detector

QUIET: dict[str, tuple[tuple[float, float], str, Moves]] = {
    "Bernoulli": (PAPER, "coin", constant),
    "rare disasters": ((0.01, 0.1), "coin", constant),
    "uniform": (PAPER, "uniform", constant),
    "8 % bills": (PAPER, "bills", constant),
    "8 % with 1 % breakdowns": (PAPER, "breakdowns", constant),
    "week ±15 %, together": (PAPER, "bills", week(each=False)),
    "week ±15 %, each": (PAPER, "bills", week(each=True)),
}
STEPS: dict[str, tuple[float, float, str]] = {
    "coins .2 to .35": (0.2, 0.35, "coin"),
    "coins .2 to .4": (0.2, 0.4, "coin"),
    "coins .3 to .6": (0.3, 0.6, "coin"),
    "coins .01 to .10": (0.01, 0.10, "coin"),
    "8 % +5 %": (0.3, 0.315, "bills"),
    "8 % +10 %": (0.3, 0.33, "bills"),
    "8 % +30 %": (0.3, 0.39, "bills"),
    "8 % doubles": (0.3, 0.6, "bills"),
}
LIFE = 1000  # rounds
OLD, WITHIN = 300, 400  # units before the change, rounds to find it


def false_lives(name: str, units: int, trials: int) -> int:
    """Return the number of lives with a confirmation where all means stay."""
    actions = Budget(6 * units, [units] * 6)
    means, law, moves = QUIET[name]
    moving = Case(actions, means, law, moves, LIFE).of(trials)
    return sum(map(bool, live(actions, moving, FOLLOW, LIFE, trials, confirmed).noted))


def delays(name: str, units: int, trials: int) -> list[float]:
    """Return the rounds until the change of the first of 6 arms is confirmed, or infinity."""
    actions = Budget(6 * units, [units] * 6)
    before, after, law = STEPS[name]
    means, at = np.full((trials, 6), before), OLD // units
    later = means.copy()
    later[:, 0] = after
    moving = Moving(lambda t: means if t <= at else later, law)
    lives = live(actions, moving, FOLLOW, at + WITHIN, trials, confirmed).noted
    return [min((t - at for t, arm in one if arm == 0 and t > at), default=np.inf) for one in lives]


def detector(trials: int | None, run: Runner) -> list[Section]:
    """Measure false confirmations, and delays of true ones, where all arms are seen."""
    number, units = trials or 50, (1, 4)
    quiet = run({(n, u): (false_lives, (n, u, number)) for n in QUIET for u in units})
    steps = run({(n, u): (delays, (n, u, number)) for n in STEPS for u in units})
    of_units = {u: f"{u} unit{'s' * (u > 1)} a round" for u in units}
    rows = [{"world": n} | {of_units[u]: quiet[n, u] for u in units} for n in QUIET]
    found = []
    for name in STEPS:
        row: dict[str, Any] = {"change": name}
        for u in units:
            rounds = np.array(steps[name, u])
            seen = np.isfinite(rounds)
            median = f"{np.median(rounds):.0f}" if seen.mean() > 0.5 else "-"
            row[of_units[u]] = f"{seen.mean():.0%}, {median}"
        found.append(row)
    shows = f"Lives of {LIFE} rounds with a false confirmation, of {number}; 6 arms, all seen."
    delay = f"Share confirmed within {WITHIN} rounds and median delay; {OLD} old units."
    return [Section("False confirmations", shows, rows), Section("Delays", delay, found)]


# -------------------------------------------------------------------- slow

SLOW: dict[str, tuple[str, float, float, int]] = {  # law, share a day, share at once, its day
    "coins, all +40 % on day 31": ("coin", 0.0, 0.4, 30),
    "coins, nothing changes": ("coin", 0.0, 0.0, 0),
    "8 % bills, all +40 % on day 31": ("bills", 0.0, 0.4, 30),
    "8 % bills, +0.05 % a day": ("bills", 0.0005, 0.0, 0),
    "8 % bills, +0.1 % a day": ("bills", 0.001, 0.0, 0),
    "8 % bills, +0.3 % a day": ("bills", 0.003, 0.0, 0),
    "8 % bills, nothing changes": ("bills", 0.0, 0.0, 0),
}
SLOW_DAYS = 120


def of_slow(name: str, trials: int) -> tuple[float, float, float]:
    """Return the shares of lives acted upon, and of plans covered, and their median error.

    Plans are those of the last 30 days, the error is that of their expected cost.
    """
    law, daily, jump, at = SLOW[name]
    acted, covered, error = [], [], []
    for trial in range(trials):
        rng = np.random.default_rng([SEED, 5, trial])
        means, learner = rng.uniform(0.1, 0.6, PLANS.d), Learner(PLANS, seed=trial)
        for day in range(SLOW_DAYS):
            now = means * (1 + daily * day) * (1 + jump * (day >= at))
            play, truth = learner.ask(), 0.0
            if day >= SLOW_DAYS - 30:
                truth, expected = float(play.action @ now), play.expected
                covered.append(expected.low <= truth <= expected.high)
                error.append(abs(expected.total / truth - 1))
            units = {arm: rng.random(n) for arm, n in play.plan.items()}
            mean_of = dict(zip(PLANS.names, now, strict=True))
            learner.tell(play, {arm: LAWS[law](mean_of[arm], u) for arm, u in units.items()})
        acted.append(bool(learner.drift()["acted"].any()))
    return float(np.mean(acted)), float(np.mean(covered)), float(np.median(error))


def slow(trials: int | None, run: Runner) -> list[Section]:
    """Measure changes that are too small for the noise: acted upon, coverage and error."""
    found = run({name: (of_slow, (name, trials or 40)) for name in SLOW})
    rows = [
        {"world": name, "acted upon": f"{acted:.0%}", "plans covered": f"{covered:.2f}"}
        | {"error of the expected cost": f"{error:.1%}"}
        for name, (acted, covered, error) in found.items()
    ]
    shows = (
        f"The default of a learner, {SLOW_DAYS} days; plans of the last 30 days, 95 % intervals."
    )
    return [Section("Slow changes", shows, rows)]


# -------------------------------------------------------------------- cost


def cost(trials: int | None, run: Runner) -> list[Section]:
    """Measure the time of a day of a learner, of a round of a batch, and the bytes of an arm."""
    days = {name: _days(policy, trials or 2000) for name, policy in BOTH.items()}
    batch = {name: _batch(policy, trials or 2000) for name, policy in BOTH.items()}
    bytes_of = {
        name: sum(array.nbytes for array in policy.start(PLANS, None, 1).values()) / PLANS.d
        for name, policy in BOTH.items()
    }
    rows = [
        {"policy": n, "ask + tell, µs": days[n], "round of 100 trials, µs": batch[n]}
        | {"bytes an arm": bytes_of[n]}
        for n in BOTH
    ]
    targets = [
        Target("cost: ask + tell, follow / ignore", days["follow"] / days["ignore"], 1.5),
        Target("cost: batch round, follow / ignore", batch["follow"] / batch["ignore"], 3),
        Target("cost: state", bytes_of["follow"] / 1000, 1.3, "kB an arm"),
    ]
    return [Section("Cost", "Median processor time.", rows, targets)]


def _days(policy: Policy, number: int) -> float:
    """Return the median microseconds of ask and tell."""
    learner, rng, taken = Learner(PLANS, policy, seed=0), np.random.default_rng(0), []
    for _ in range(number):
        started = time.process_time()
        play = learner.ask()
        asked = time.process_time()
        losses = {arm: rng.random(units).tolist() for arm, units in play.plan.items()}
        made = time.process_time()
        learner.tell(play.id, losses)
        taken.append(asked - started + time.process_time() - made)
    return 1e6 * float(np.median(taken))


def _batch(policy: Policy, rounds: int) -> float:
    """Return the median microseconds of choose and update in 100 trials."""
    environment, trials = STATIONARY["Bernoulli"].of(100), 100
    world = environment.open(PLANS, rounds, range(trials), SEED)
    rng, taken = Streams.spawn(SEED, 3, range(trials)), []
    state = policy.start(PLANS, None, trials)
    for _ in range(rounds):
        started = time.process_time()
        play = policy.choose(PLANS, state, rng)
        chosen = time.process_time()
        outcome = world.observe(play.action)
        seen = time.process_time()
        policy.update(PLANS, state, play, outcome.feedback, rng)
        taken.append(chosen - started + time.process_time() - seen)
    return 1e6 * float(np.median(taken))


TOPICS: dict[str, Callable[[int | None, Runner], list[Section]]] = {
    "stationary": stationary,
    "drifting": compared,
    "piecewise": piecewise,
    "others": others,
    "curiosity": curiosity,
    "demonstration": demonstration,
    "detector": detector,
    "slow": slow,
    "cost": cost,
}

if __name__ == "__main__":
    command("benchmarks.change", __doc__, TOPICS)
