"""Linear bandits on m-sets: calvera on the same losses, and regret for many arms."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.change import shown
from benchmarks.harness import ROOT, Runner, Section, Target
from multiplay import (
    Budget,
    Contextual,
    FeatureCTS,
    GenCTS,
    NormalContexts,
    Policy,
    Streams,
    simulate,
)
from multiplay.types import FloatArray

SEED = 2031
ARMS, CHOSEN, P, ROUNDS = 50, 5, 10, 500
OURS: dict[str, Policy] = {
    "FeatureCTS()": FeatureCTS(),
    "FeatureCTS(draws=True)": FeatureCTS(draws=True),
    "FeatureCTS(optimism=2)": FeatureCTS(optimism=2.0),
    "FeatureCTS(effects=False, draws=True)": FeatureCTS(effects=False, draws=True),
}
PYTHON = "CALVERA_PYTHON"  # the interpreter of an environment in which calvera is installed


def losses(every: str, p: int = P, rounds: int = 1, trials: int = 1) -> Contextual:
    """Return losses that are linear in p features."""
    rows = [np.random.default_rng((SEED, k)).normal(size=p) for k in range(trials)]
    theta = np.array(rows)[:, None]
    theta *= 0.12 / np.linalg.norm(theta, axis=2, keepdims=True)
    theta[..., 0] += 0.5
    return Contextual(theta, NormalContexts(p, every))


def played(every: str, trials: int) -> dict[str, tuple[FloatArray, float]]:
    """Return the final regret of our policies, and milliseconds a round of one trial."""
    actions, environment, found = Budget(CHOSEN, [1] * ARMS), losses(every, trials=trials), {}
    for name, policy in OURS.items():
        one = {name: policy}
        result = simulate(actions, environment, one, ROUNDS, trials, SEED, record=1)
        found[name] = result.final(name), _round(actions, losses(every), policy)
    return found


def _round(actions: Budget, environment: Contextual, policy: Policy) -> float:
    """Return the milliseconds of ``choose`` and ``update`` in a round of one trial."""
    world, rng = environment.open(actions, ROUNDS, [0], SEED), Streams.spawn(SEED, 1, [0])
    taken, state = [], policy.start(actions.featured(world.contexts(1)), ROUNDS, 1)
    for t in range(1, ROUNDS + 1):
        today = actions.featured(world.contexts(t))
        started = time.perf_counter()
        play = policy.choose(today, state, rng)
        chosen = time.perf_counter()
        seen = world.observe(play.action)
        shown_at = time.perf_counter()
        policy.update(today, state, play, seen.feedback, rng)
        taken.append(chosen - started + time.perf_counter() - shown_at)
    return 1000 * float(np.median(taken))


def theirs(every: str, trials: int) -> dict[str, tuple[FloatArray, float]]:
    """Return the same of calvera, which plays the same losses in a process of its own."""
    actions, environment = Budget(CHOSEN, [1] * ARMS), losses(every, trials=trials)
    world = environment.open(actions, ROUNDS, range(trials), SEED)
    idle, tables = np.zeros((trials, ARMS), dtype=np.int64), []
    for t in range(1, ROUNDS + 1):
        rows, seen = world.contexts(t), world.observe(idle)
        assert rows is not None
        tables.append((rows.arm, seen.means, seen.averages))  # averages: of one unit for each arm
    phi, means, units = (np.stack(table, axis=1) for table in zip(*tables, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "losses.npz", phi=phi, means=means, units=units, chosen=CHOSEN)
        script = ROOT / "benchmarks" / "calvera_player.py"
        command = [os.environ[PYTHON], str(script), folder]
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(command, capture_output=True, text=True, env=environ)
        if done.returncode:
            raise RuntimeError(f"calvera failed:\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: (np.array(regret), ms) for name, (regret, ms) in found.items()}


def calvera(trials: int | None, run: Runner) -> list[Section]:
    """Compare regret and time of a round with calvera's CombLinTS and CombLinUCB."""
    if PYTHON not in os.environ:
        shows = f"Left out: set {PYTHON} to the interpreter of an environment with calvera."
        return [Section("calvera", shows, [])]
    rows, targets = [], []
    for every, label in {"round": "iid", "once": "constant"}.items():
        others, ours = theirs(every, trials or 5), played(every, trials or 5)
        for name, (regret, ms) in (ours | others).items():
            row: dict[str, Any] = {"features": label, "policy": name}
            rows.append(row | {"regret": shown(regret), "ms a round": ms})
        regret, ms = ours["FeatureCTS()"]
        for name, (their_regret, their_ms) in others.items():
            ratio = float(regret.mean() / their_regret.mean())
            targets.append(Target(f"{label}: regret, FeatureCTS / {name}", ratio, 1))
            faster = their_ms / ms
            targets.append(Target(f"{label}: {name}, times as slow", faster, 20, at_least=True))
    shows = f"{CHOSEN} of {ARMS} arms, {P} features, {ROUNDS} rounds, the same losses for all."
    return [Section("calvera", shows, rows, targets)]


# ------------------------------------------------------------- many arms

MANY = (1000, 3000, 10000)
BOUNDED = 20  # features
PAPER: dict[str, Policy] = {
    "FeatureCTS(effects=False, draws=True)": FeatureCTS(effects=False, draws=True),
    "FeatureCTS(effects=False, optimism=1)": FeatureCTS(effects=False, optimism=1.0),
    "FeatureCTS()": FeatureCTS(),
    "GenCTS()": GenCTS(),
}


def of_many(name: str, d: int, trials: int) -> FloatArray:
    """Return the final regret on 10 of d arms, whose features have length 2."""
    rows = []
    for k in range(trials):
        rng = np.random.default_rng((SEED, d, k))
        x = rng.normal(size=(d + 1, BOUNDED - 1))
        rows.append(x / np.linalg.norm(x, axis=1, keepdims=True))
    directions = np.array(rows)
    phi = np.concatenate([np.ones((trials, d, 1)), 2**0.5 * directions[:, 1:]], axis=2)
    theta = np.concatenate([np.full((trials, 1), 0.5), 0.25 * directions[:, 0]], axis=1)
    environment = Contextual(theta[:, None], phi[:, None], losses="bernoulli")
    one = {name: PAPER[name]}
    return simulate(Budget(10, [1] * d), environment, one, 500, trials, SEED, record=1).final(name)


def wen(trials: int | None, run: Runner) -> list[Section]:
    """Measure how regret grows with the number of arms, for a fixed number of features."""
    found = run({(p, d): (of_many, (p, d, trials or 10)) for p in PAPER for d in MANY})
    rows, targets = [], []
    for policy in PAPER:
        regrets = {d: found[policy, d] for d in MANY}
        ratio = float(regrets[MANY[-1]].mean() / regrets[MANY[0]].mean())
        row: dict[str, Any] = {"policy": policy}
        rows.append(row | {f"{d} arms": shown(r) for d, r in regrets.items()} | {"ratio": ratio})
        if "effects=False" in policy:
            targets.append(Target(f"{policy}: regret of 10,000 / 1,000 arms", ratio, 1.3))
    shows = f"Final regret after 500 rounds of 10 units, {BOUNDED} features that stay, Bernoulli."
    return [Section("Many arms", shows, rows, targets)]
