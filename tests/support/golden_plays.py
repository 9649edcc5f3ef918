"""Golden plays of all policies and options: plays, states and random numbers.

All bits as digests, to compare two versions of the library in one environment::

    python tests/support/golden_plays.py before.txt    # with the old version
    python tests/support/golden_plays.py after.txt     # with the new version
    diff before.txt after.txt

The file of the repository, with plays only, which do not depend on the processor::

    python tests/support/golden_plays.py --renew

A line that changes there means that users of that policy get other plays for their seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import learner_cases
import numpy as np
import policy_cases
from policy_cases import ABSENT, EXTERNAL, PARTIAL, Case

import multiplay as mp
from multiplay.environments import World
from multiplay.features.rows import FeatureRows
from multiplay.policies.base import drop_warm_start, shown
from multiplay.random import POLICY, Streams
from multiplay.types import Arrays, FloatArray, IntArray

KEPT = Path(__file__).parents[1] / "data" / "golden" / "plays.txt"
TRIALS, HORIZON, SEED = 3, 1000, 5
KEPT_SETS = ("transport", "rewards")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

MEANS = np.array([0.1, 0.45, 0.2, 0.5, 0.3, 0.35])


def changing() -> mp.ActionSet:
    """Return sets of the same arms, of which one is closed every second round."""
    return mp.TimeVarying([mp.Transport([1, 2, 2], [3, 2]), mp.Transport([3, 0, 2], [2, 3])])


def offset() -> mp.ActionSet:
    """Return a set with a known part of the losses, and upper bounds of the other part."""
    arms = np.linspace(0.0, 0.4, 6)
    return mp.Transport([1, 2, 2], [3, 2]).shifted(arms, 2.0).bounded(np.full(6, 0.8))


SETS: dict[str, Callable[[], mp.ActionSet]] = {
    "transport": lambda: mp.Transport([1, 2, 2], [3, 2]),
    "rewards": lambda: mp.Knapsack([3, 4, 2, 5], 9, limits=3),
    "listed": lambda: mp.Explicit([[2, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0], [0, 0, 1, 3]]),
    "changing": changing,
    "offset": offset,
    "not a sum": lambda: mp.Coverage(4, [3, 1, 2]),
}


def plays(case: Case, of: str) -> bool:
    """Return whether a case plays on a set."""
    if of == "changing":
        return ABSENT in case.live
    if of == "not a sum":
        return not case.linear and not case.by_unit
    return not (of == "offset" and case.lists)


def persisting(means: FloatArray) -> FloatArray:
    """Return losses of all rounds that stay away from their means for some rounds."""
    noise, x = np.random.default_rng(SEED).uniform(-0.15, 0.15, (HORIZON, len(means))), means * 0
    losses = np.empty((HORIZON, len(means)))
    for t in range(HORIZON):
        x = 0.9 * x + noise[t]
        losses[t] = np.clip(means + x, 0.0, 1.0)
    return losses


def digest(array: Any) -> str:
    """Return a digest of the type, the shape and the numbers of an array."""
    found = np.ascontiguousarray(array)
    kind = f"{found.dtype.str}{found.shape}".encode()
    return blake2b(kind + found.tobytes(), digest_size=6).hexdigest()


def written(actions: list[IntArray]) -> str:
    """Return plays as digits, one word for each play."""
    return " ".join("".join(DIGITS[units] for units in one) for one in actions)


class Told:
    """Feedback of plays in several forms: units, totals, and some units only."""

    def __init__(self, case: Case, actions: mp.ActionSet) -> None:
        means = MEANS[: actions.d]
        world: mp.Environment = mp.Stochastic(mp.Uniform(means - 0.1, means + 0.1))
        if isinstance(getattr(case.policy, "memory", None), mp.Persists):
            world = mp.Adversarial(persisting(means))
        self.case = case
        self.world: World = world.open(actions, HORIZON, range(TRIALS), SEED)

    def __call__(self, action: IntArray, t: int) -> mp.Feedback:
        """Return the feedback of round t."""
        full = self.world.observe(action).feedback
        if self.case.by_unit:
            return full
        if PARTIAL in self.case.live and t % 6 == 4:
            seen = action - (np.arange(action.shape[1]) % 2 == 1) * (action >= 1)
            return mp.Feedback(action, full.mean * seen, seen=seen)
        return mp.Feedback(action, full.total) if t % 5 == 0 else full


def of_policy(case: Case, actions: mp.ActionSet) -> tuple[list[IntArray], Arrays, Streams]:
    """Play a case on a set, with late reports, external plans and absent arms.

    Return its plays, its last state and its random numbers.
    """
    policy, rng = case.policy, Streams.spawn(SEED, POLICY, range(TRIALS))
    told, others = Told(case, actions), np.random.default_rng(SEED)
    today = featured(actions.at(1), 1)
    state = policy.start(today, HORIZON, TRIALS)
    played, late = list[IntArray](), list[tuple[int, Any, mp.Feedback]]()

    def learn(sets: mp.ActionSet, play: mp.Play, feedback: mp.Feedback) -> None:
        policy.update(sets, state, play, shown(policy, feedback), rng)

    for t in range(1, case.rounds + 1):
        tomorrow = featured(actions.at(t), t)
        if actions.at(t) is not actions.at(max(t - 1, 1)):
            drop_warm_start(policy, state, today)
        today = tomorrow
        play = policy.choose(today, state, rng)
        state |= play.cache
        feedback = told(play.action, t)
        played.append(play.action)
        if t % 7 == 3:
            late.append((t + 2, (today, play), feedback))
        else:
            learn(today, play, feedback)
        while late and late[0][0] <= t:
            _, (before, old), reported = late.pop(0)
            learn(before, old, reported)
        if EXTERNAL in case.live and t % 9 == 5:
            plan = today.best(others.random((TRIALS, today.d)))
            policy.absorb(today, state, told(plan, 1), rng)
        if ABSENT in case.live and t == 8:
            policy.absent(state, 3, 0.0)
    return played, state, rng


def featured(actions: mp.ActionSet, t: int) -> mp.ActionSet:
    """Return a set with features of its arms and of the round, for policies that read them."""
    arms = np.linspace(-1.0, 1.0, actions.d)
    phi = np.column_stack([np.ones(actions.d), arms, arms * ((t % 3) - 1.0)])
    return actions.featured(FeatureRows.of(phi))


class Line(dict[str, str]):
    """What is recorded of a case, by names."""

    @property
    def kept(self) -> str:
        """What the repository keeps of it."""
        return f"{self['digest']} {self['plays']}"


def of_policies(sets: tuple[str, ...], part: str | None = None) -> Iterator[tuple[str, Line]]:
    """Yield a line for each policy on each set."""
    made = {name: SETS[name]() for name in sets}
    for case in policy_cases.cases():
        if part not in (None, part_of(case.name)):
            continue
        for name, actions in made.items():
            if plays(case, name):
                played, state, rng = of_policy(case, actions)
                found = {
                    "digest": digest(np.stack(played)),
                    "plays": written([one[0] for one in played]),
                }
                arrays = {f"state {key}": digest(state[key]) for key in sorted(state)}
                yield f"{case.name} on {name}", Line(found | arrays, stream=digest(rng.state))


def of_learners() -> Iterator[tuple[str, Line]]:
    """Yield a line for each case of a learner."""
    for name, live in learner_cases.cases():
        actions, arrays = live()
        found = {"digest": digest(np.concatenate(actions)), "plays": written(actions)}
        yield name, Line(found | {key: digest(array) for key, array in arrays.items()})


def parts() -> list[str]:
    """Return the parts of the kept file: groups of policies, and learners."""
    return list(dict.fromkeys([*(part_of(case.name) for case in policy_cases.cases()), "learner"]))


def part_of(name: str) -> str:
    """Return the part that a case belongs to: the first word of its name."""
    return name.split()[0]


def kept(part: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that the repository keeps of a part, made now, by the names of the cases."""
    cases = of_learners() if part == "learner" else of_policies(KEPT_SETS, part)
    for name, line in cases:
        yield name, line.kept


def main(target: str) -> None:
    """Write all lines to a file, or renew the file of the repository."""
    if target == "--renew":
        text = "".join(f"{name}: {line}\n" for part in parts() for name, line in kept(part))
        KEPT.write_text(text, encoding="utf-8")
        return
    with open(target, "w", encoding="utf-8") as file:
        for lines in (of_policies(tuple(SETS)), of_learners()):
            for name, line in lines:
                file.writelines(f"{name} | {key}: {value}\n" for key, value in line.items())


if __name__ == "__main__":
    main(sys.argv[1])
