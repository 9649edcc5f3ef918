"""How the files of constraints were written, by the version before ``constraints=``.

It had ``baseline=``, ``allowance=``, ``change=`` and ``promises=`` for the settings of a learner,
and ``promise`` and ``release`` for promises at any time. These files are read for ever.
"""

import json
from pathlib import Path
from typing import Any

import multiplay as mp

HERE = Path(__file__).parent
AT, DAY = 1_794_000_000.0, 86_400.0
CO2 = {"*": 1, "Lyon->north": 6}
SETTINGS: dict[str, Any] = {
    "baseline": mp.InProportion(),
    "allowance": 0.3,
    "per": "week",
    "change": 0.5,
    "promises": [mp.AtMost(300, CO2, plays=40, name="CO2", hard=False)],
}


def play(owner: Any, first: int, last: int) -> list[dict[str, int]]:
    """Play some days; return their plans."""
    plans = []
    for day in range(first, last):
        play = owner.ask(key=f"day {day}", at=AT + day * DAY)
        plans.append({arm: int(k) for arm, k in play.plan.items()})
        costs = {
            arm: [60.0 + 31 * ((day + len(arm)) % 5) + 7 * k for k in range(n)]
            for arm, n in play.plan.items()
        }
        owner.tell(play, costs, at=AT + day * DAY + 60)
    return plans


def history(owner: Any) -> None:
    """Make and end promises, and leave a play pending."""
    play(owner, 0, 4)
    owner.promise(mp.AtLeast(4, {"*": 0, "Lille->south": 1}, plays=20, name="carrier"))
    owner.promise(mp.AtMost(90, {"*": 1}, plays=30, name="short"))
    play(owner, 4, 8)
    owner.release("short")
    play(owner, 8, 10)
    owner.ask(key="waits", at=AT + 10 * DAY)


def write() -> None:
    """Write the files, and what the same objects do next."""
    names = (["Lyon", "Lille"], ["north", "south"])
    plans = mp.Transport([2, 3], [4, 1], names=names)
    given: dict[str, Any] = {"seed": 7, "loss_range": (0, 250), **SETTINGS}
    file = HERE / "study-constraints.db"
    file.unlink(missing_ok=True)
    study = mp.Study.create("lanes", plans, mp.BootstrapCTS(), store=f"sqlite:///{file}", **given)
    learner = mp.Learner(plans, mp.BootstrapCTS(), **given)
    for owner in (study, learner):
        history(owner)
    study.disconnect()
    learner.save(HERE / "learner-constraints.npz")
    study.copy("memory://next")
    expected = {
        "study": play(mp.Study.open("lanes", store="memory://next"), 11, 15),
        "learner": play(learner, 11, 15),
    }
    expected["promises"] = [
        {name: getattr(one, name) for name in ("name", "used", "left_plays")}
        for one in learner.promise_reports()
    ]
    text = json.dumps(expected, indent=1)
    (HERE / "expected-constraints.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    write()
