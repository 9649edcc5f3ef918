"""Data written by multiplay 0.9: ``python write_0_9.py folder``, run with that version installed.

It writes ``study-0.9.db``, ``learner-0.9.npz`` and ``expected-0.9.json`` (the plays that version
0.9 chooses next). ``tests/unit/studies/test_version_0_9.py`` reads them with the present version.
"""

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import multiplay as mp

TOWNS = ["Lyon", "Lille"], ["north", "south"]
AT = 1_790_000_000.0


def lanes(supply: tuple[int, int] = (3, 2), demand: tuple[int, int] = (2, 3), **more: Any) -> Any:
    return mp.Transport(supply, demand, names=TOWNS, **more)


def told(play: Any, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    """Return losses that depend on the play and its arms only."""
    rng = np.random.default_rng(play.id)
    return {
        name: (low + (high - low) * rng.random(units)).round(3).tolist()
        for name, units in play.plan.items()
        if not name.startswith("unmet")
    }


def play_on(study: Any, rounds: int, low: float = 0.0, high: float = 1.0, **options: Any) -> None:
    for _ in range(rounds):
        play = study.ask(at=AT, **options)
        study.tell(play.id, told(play, low, high), at=AT + 5)


def table(names: Any, high: float) -> dict[str, list[Any]]:
    rng = np.random.default_rng(5)
    count = 12
    return {
        "arm": [names[i] for i in rng.integers(0, len(names), count)],
        "round": rng.integers(0, 3, count).tolist(),
        "loss": (high * rng.random(count)).round(3).tolist(),
    }


def write_lanes(study: Any) -> None:
    """Use every verb, limits and other sets."""
    names = study.actions.names
    play_on(study, 3, 0, 250)
    play = study.ask(key="Monday", at=AT)
    study.tell(play.id, told(play, 0, 250), key="Monday's bills", at=AT + 1)
    play_on(study, 2, 0, 250, at_most={names[0]: 1}, exclude=[names[3]])
    play_on(study, 2, 0, 250, fixed={names[1]: 1})
    play_on(study, 2, 0, 250, actions=lanes((1, 4), (4, 1)))
    play_on(study, 1, 0, 250, actions=lanes((2, 2), (3, 2), shortage=90))
    three = mp.Transport([2, 2, 1], [3, 2], names=([*TOWNS[0], "Metz"], TOWNS[1]))
    play_on(study, 1, 0, 250, actions=three)
    play = study.ask(key="parts", at=AT)
    arm, losses = next((arm, one) for arm, one in told(play, 0, 250).items() if one)
    study.tell(play.id, {arm: losses[:1]}, final=False, at=AT)
    study.close(play.id, at=AT + 2)
    play = study.ask(key="totals", at=AT)
    study.tell(play.id, {arm: sum(one) for arm, one in told(play, 0, 250).items()}, at=AT + 3)
    study.cancel(study.ask(at=AT).id, at=AT + 4)
    play = study.ask(at=AT - 1e6)
    study.tell(play.id, {arm: one[:1] for arm, one in told(play, 0, 250).items()}, final=False)
    study.ask(at=AT - 1e6)
    study.expire(3600, at=AT)
    plan = {names[0]: 2, names[1]: 1, names[3]: 2}
    losses = {names[0]: [10.0, 20.0], names[1]: [None], names[3]: 33.0}
    study.learn(plan, losses, key="external", at=AT)
    study.learn_table(table(names, 250), key="table")
    waits = study.ask(key="waits", at=AT)
    study.tell(waits.id, {arm: sum(one) for arm, one in told(waits, 0, 250).items()}, final=False)
    play_on(study, 1, 0, 250, actions=lanes((1, 4), (4, 1)))


def write_truncated(study: Any) -> None:
    play_on(study, 2)
    play = study.ask(time_limit=1e-9, at=AT)
    assert play.hurried
    study.tell(play.id, told(play), at=AT)
    assert study.ask(time_limit=1e-9, at=AT).hurried


def write_rewards(study: Any) -> None:
    play_on(study, 5, 0, 50)
    study.learn_table(table(study.actions.names, 50))


def chosen(one: Any, high: float) -> list[list[int]]:
    """Return the plays that come next, on the usual set and on others."""
    options: list[dict[str, Any]] = [{}, {}]
    if isinstance(one.actions, mp.Transport):
        options.insert(0, {"actions": lanes((1, 4), (4, 1))})
        options.append({"fixed": {one.actions.names[1]: 1}})
    found = []
    for option in options:
        play = one.ask(**option)
        one.tell(play.id, told(play, 0, high))
        found.append(play.action.tolist())
    return found


def main(folder: Path) -> None:
    import_module("multiplay.studies.mirror").SNAPSHOT_EVERY = 7  # type: ignore[attr-defined]
    store = folder / "study-0.9.db"
    items = mp.Knapsack([3, 4, 2, 5, 3, 4, 2, 6], 14)
    made: dict[str, tuple[Any, Any, dict[str, Any], Any, float]] = {
        "lanes": (lanes(), mp.GenCTS(), {"losses": (0, 250)}, write_lanes, 250.0),
        "barrier": (lanes(), mp.GenLBINFV(), {"losses": (0, 250)}, write_lanes, 250.0),
        "truncated": (items, mp.GenLBINFV(), {}, write_truncated, 1.0),
        "rewards": (
            mp.Budget(4, [2, 2, 3], names=["a", "b", "c"], sense="max"),
            mp.GenCTS(discount=0.9),
            {"rewards": (0, 50)},
            write_rewards,
            50.0,
        ),
    }
    expected: dict[str, Any] = {}
    for name, (actions, policy, options, write, _) in made.items():
        with mp.Study.create(name, actions, policy, seed=3, store=store, **options) as study:
            write(study)
    learner = mp.Learner(lanes(), mp.GenCTS(), seed=4, losses=(0, 250))
    for _ in range(4):
        play = learner.ask()
        learner.tell(play.id, told(play, 0, 250))
    learner.ask(key="waits")
    part = learner.ask(lanes((1, 4), (4, 1)), key="part")
    arm = next(arm for arm, losses in told(part).items() if losses)
    learner.tell(part.id, {arm: told(part, 0, 250)[arm][:1]}, final=False)
    learner.save(folder / "learner-0.9.npz")
    with mp.Study.import_learner("imported", folder / "learner-0.9.npz", store=store) as study:
        play_on(study, 2, 0, 250)
    copy = folder / "copy.db"
    shutil.copy(store, copy)
    for name in mp.Study.list(store=copy):
        high = 250.0 if name == "imported" else made[name][-1]
        with mp.Study.open(name, store=copy) as study:
            assert study.verify().ok
            expected[name] = {"entries": study.head.number + 1, "high": high}
            expected[name]["next"] = chosen(study, high)
    copy.unlink()
    expected["learner"] = {"high": 250.0, "next": chosen(learner, 250.0)}
    (folder / "expected-0.9.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
