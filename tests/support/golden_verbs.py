"""One script of all verbs, for learners, studies and studies of a service.

Each case has a policy or an option that the others lack. The same calls are made in each case: what
a case does not support is refused, and the refusal is part of the golden text.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from golden_text import Lines, of_array, of_entry, of_record

import multiplay as mp
from multiplay.storage import MemoryStore
from multiplay.storage.folder import read_record
from multiplay.studies.entry_codec import Request

TOWNS = ["Lyon", "Lille"], ["north", "south"]
MEANS = {
    "Lyon->north": 60.0,
    "Lyon->south": 150.0,
    "Lille->north": 120.0,
    "Lille->south": 40.0,
    "Metz->north": 90.0,
    "Metz->south": 200.0,
    "air": 80.0,
    "sea": 30.0,
    "rail": 50.0,
}
AT = 1_794_000_000.0  # 2026-11-06T21:20:00Z
DAY = 86_400.0
KM = {"Lyon->north": 450, "Lyon->south": 120, "Lille->north": 90, "Lille->south": 700}
WEEK = ["Mon", "Tue", "Wed", "Thu", "Fri"]
FEATURES = mp.Features(
    km=mp.Number(centre=300, scale=100, unit="km"),
    fuel=mp.Number(centre=1.6, scale=0.1, unit="EUR/l"),
    weekday=mp.Category(WEEK),
    rain=mp.Flag(),
)
CO2 = {"*": 1, "Lyon->north": 6}

# Arguments of a study that a learner does not have.
ONLY_OF_STUDIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("tell", "close", "correct", "retract", "expire", "learn"), ("key",)),
    **dict.fromkeys(("forget", "unforget"), ("key",)),
    **dict.fromkeys(("cancel", "learn_table", "set_arm_features", "set_words"), ("key", "at")),
    **dict.fromkeys(("add_constraint", "end_constraint", "set_range"), ("key", "at")),
}

NOT_OF_SERVICES = ("seed", "described_arms", "day_features")  # properties


def lanes(supply: Any = (2, 3), demand: Any = (4, 1), **more: Any) -> mp.Transport:
    """Return the plans of two depots and two customers."""
    return mp.Transport(supply, demand, names=TOWNS, **more)


def with_metz() -> mp.Transport:
    """Return a set with two arms that the others do not have."""
    return mp.Transport([2, 2, 1], [3, 2], names=([*TOWNS[0], "Metz"], TOWNS[1]))


def no_options(_: int) -> dict[str, Any]:
    """Return no options of a day."""
    return {}


def features_of(day: int) -> dict[str, Any]:
    """Return the features of a day."""
    rain = {"Lyon->south": True, "*": False} if day % 3 else False
    return {"features": {"fuel": 1.5 + day % 4 / 10, "weekday": WEEK[day % 5], "rain": rain}}


def proportional(_: int) -> dict[str, Any]:
    """Return a baseline of every day."""
    units = {"Lyon->north": 2, "Lyon->south": 0, "Lille->north": 2, "Lille->south": 1}
    return {"baseline": units}


@dataclass(frozen=True)
class Case:
    """A policy and options; ``day`` has the arguments of ``ask`` on a day."""

    name: str
    policy: mp.Policy | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    day: Callable[[int], dict[str, Any]] = no_options
    actions: Callable[[], Any] = lanes

    def given(self) -> dict[str, Any]:
        """Return the arguments of a learner or a study, after the set."""
        return {"policy": self.policy, "seed": 7, "loss_range": (0, 250)} | self.settings


PROMISED = [
    mp.AtMost(780, CO2, until="2026-12-31", plays=60, name="CO2"),
    mp.AtLeast(20, {"*": 0, "Lyon->south": 1}, plays=60, name="carrier", hard=False),
]
WORDS = {"words": mp.Words("EUR", "truck", "lane", "day")}
CASES = (
    Case("default", None, WORDS),
    Case("thompson", mp.GenCTS(), {"reports": mp.Reports(outside="clip", missing="ignore")}),
    Case("barrier", mp.GenLBINFV(horizon=20, any_horizon=True)),
    Case("features", None, {"features": FEATURES, "arm_features": {"km": KM}}, features_of),
    Case("promises", mp.BootstrapCTS(), {"constraints": PROMISED}),
    Case("allowance", mp.GenCTS(), {"constraints": [mp.Baseline(mp.InProportion(), 0.05)]}),
    Case("each day", None, {"constraints": [mp.Baseline("each day", per="week")]}, proportional),
    Case("switching", mp.GenCTS(), {"constraints": [mp.SwitchingCost(15.0)]}),
)
NEW_PROMISE = mp.AtMost(41, CO2, plays=4, name="new")  # the least is 10 for each play
ITEMS = Case(
    "truncated",
    mp.GenLBINFV(),
    {"loss_range": (0, 250)},
    actions=lambda: mp.Knapsack([3, 4, 2, 5, 3, 4, 2, 6], 14, names=[*MEANS][:8]),
)
IMPOSSIBLE = mp.AtMost(5, CO2, plays=1, name="impossible")


def costs(id: int, plan: Mapping[str, int], more: float = 0.0) -> dict[str, list[float]]:
    """Return the costs of the units of a play, which depend on its id and its arms alone."""
    return {
        arm: [MEANS[arm] + more + (37 * id + 11 * unit) % 23 - 11 for unit in range(units)]
        for arm, units in plan.items()
        if units and arm in MEANS
    }


def table(days: int = 3) -> dict[str, list[Any]]:
    """Return logged data: a row for each unit."""
    names = [name for name in MEANS if name in KM]
    rows = [(arm, f"2026-10-{day + 1:02}", k) for day in range(days) for k, arm in enumerate(names)]
    return {
        "arm": [arm for arm, _, _ in rows],
        "round": [day for _, day, _ in rows],
        "loss": [MEANS[arm] + 3.5 * k for arm, _, k in rows],
        "fuel": [1.6 for _ in rows],
        "weekday": ["Mon" for _ in rows],
        "rain": [False for _ in rows],
    }


class Caller:
    """Calls verbs of a learner or a study, and writes a line for each."""

    def __init__(self, lines: Lines, case: Case, live: Any) -> None:
        self.lines, self.case, self.live = lines, case, live
        self.is_study, self.day = not isinstance(live, mp.Learner), 0

    def __call__(self, verb: str, *given: Any, **named: Any) -> Any:
        """Call a verb; return its result, or None if it was refused."""
        if not self.is_study:
            for name in ONLY_OF_STUDIES.get(verb, ()):
                named.pop(name, None)
        with self.lines.call(verb) as found:
            result = getattr(self.live, verb)(*given, **named)
            found.append(result)
            return result

    def get(self, name: str) -> None:
        """Write a property, if it has one of this name."""
        if isinstance(self.live, mp.RemoteStudy) and name in NOT_OF_SERVICES:
            return
        with self.lines.call(name) as found:
            found.append(getattr(self.live, name))

    @property
    def now(self) -> float:
        """The time of the present day."""
        return AT + self.day * DAY

    def ask(self, *given: Any, **named: Any) -> Any:
        """Ask for the play of the next day, with its features and its baseline."""
        self.day += 1
        return self("ask", *given, **self.case.day(self.day) | {"at": self.now} | named)

    def tell(self, play: Any, more: float = 0.0, **named: Any) -> Any:
        """Tell the costs of a play."""
        losses = costs(play.id, play.plan, more)
        return self("tell", play.id, losses, **{"at": self.now + 60} | named)

    def play(self, *given: Any, **named: Any) -> Any:
        """Ask for a play and tell its costs, unless it is refused."""
        play = self.ask(*given, **named)
        if play is not None:
            self.tell(play)
        return play

    def keyed(self, verb: str, first: tuple[Any, ...], other: tuple[Any, ...], **named: Any) -> Any:
        """Call a verb with a key; then again, and with other arguments. Learners have no keys."""
        named = {"at": self.now} | named
        found = self(verb, *first, key=f"{verb} 1", **named)
        if self.is_study:
            self(verb, *first, key=f"{verb} 1", **named)
            self(verb, *other, key=f"{verb} 1", **named)
        return found


# ------------------------------------------------------------ the script


def nothing_played(call: Caller) -> None:
    """Read everything before the first play."""
    questions(call)
    call("savings", mp.InProportion())
    for verb in ("tell", "correct"):
        call(verb, 1, {}, at=AT)
    for verb in ("close", "cancel", "retract"):
        call(verb, 1, at=AT)
        call(verb, "no such key", at=AT)


def plans(call: Caller) -> None:
    """Ask with keys, limits and other sets."""
    for _ in range(3):
        play = call.ask()
        call("why", play)
        call.tell(play)
    options = call.case.day(50)
    play = call("ask", key="2026-11-16", at=call.now, **options)
    call("ask", key="16.11.2026", at=call.now + 5, **options)
    call("ask", key="2026-11-16", exclude=["Lyon->south"], at=call.now, **options)
    call("ask", key="2026-11-16", replace=True, at_most={"Lyon->north": 9}, at=call.now, **options)
    call("ask", key="2026-11-16", replace="yes", at=call.now, **options)
    call("ask", replace=True, at=call.now, **options)
    call("why", "2026-11-16")
    call("why", play.id)
    call.tell(call("ask", key="2026-11-16", replace=True, at=call.now, **options), key="bills")
    call("ask", key="2026-11-16", at=call.now, **options)
    call("ask", key="2026-11-16", replace=True, at=call.now, **options)
    call.play(at_most={"Lyon->north": 1})
    call.play(exclude=["Lyon->south"])
    call.play(fixed={"Lille->north": 2})
    call.play(lanes((1, 4), (4, 1)))
    call.play(lanes((2, 2), (3, 2), shortage=220.0))
    metz = call.case.day(9)
    if "features" in metz:
        metz["features"]["km"] = {"Metz->north": 300, "Metz->south": 310}
    call.play(with_metz(), **metz)
    call.play(ahead=[lanes(), lanes((1, 4), (4, 1))])
    for wrong in (
        {"at_most": {"nowhere": 1}},
        {"at_most": {"Lyon->north": -1}},
        {"exclude": ["Lyon->north", "Lille->north"]},
        {"exclude": "Lyon->north"},
        {"fixed": {"Lyon->north": 7}},
        {"fixed": {"Lyon->north": 1.5}},
        {"features": {"fuel": "dear"}},
        {"features": {"wind": 3}},
        {"baseline": {"Lyon->north": 9}},
        {"baseline": {"nowhere": 1}},
        {"ahead": ["tomorrow"]},
        {"time_limit": -1},
        {"key": ""},
        {"key": 7},
        {"at": "noon"},
        {"actions": "lanes"},
    ):
        call("ask", **{"at": call.now} | call.case.day(1) | wrong)


def reports(call: Caller) -> None:
    """Tell in parts, incompletely, again and wrongly; close, cancel and expire."""
    play = call.ask(key="parts")
    losses = costs(play.id, play.plan)
    arm = max(losses, key=lambda name: len(losses[name]))
    first, rest = {arm: losses[arm][:1]}, losses | {arm: losses[arm][1:]}
    call("tell", play, first, final=False, key="part", at=call.now)
    call("tell", play, first, final=False, at=call.now)
    call("tell", play.id, first, final=False, key="part", at=call.now)
    call("tell", play.id, {arm: [1.0]}, final=False, key="part", at=call.now)
    wrong: Any
    for wrong in (
        {"nowhere": [1.0]},
        {arm: [1.0] * 99},
        {arm: ["many"]},
        {arm: [900.0]},
        {arm: [-1.0]},
        [1.0],
        [[1.0], [2.0]],
        "costs",
        None,
        {},
    ):
        call("tell", play.id, wrong, at=call.now)
    call("tell", play.id, rest, final="no", at=call.now)
    call("tell", play.id, rest, missing="perhaps", at=call.now)
    call("tell", "parts", rest, key="rest", at=call.now)
    call("tell", "parts", rest, key="rest", at=call.now)
    call("tell", "parts", losses, at=call.now)
    call("tell", "parts", costs(play.id, play.plan, 1.0), key="rest", at=call.now)
    call("tell", "parts", costs(play.id, play.plan, 2.0), at=call.now)
    call("why", "parts")
    for verb in ("close", "cancel"):
        call(verb, play, at=call.now)
    play = call.ask()
    gaps = {arm: [None, *units[1:]] for arm, units in costs(play.id, play.plan).items()}
    call("tell", play, dict([*gaps.items()][:1]), at=call.now)
    call("tell", play, gaps, missing="ignore", at=call.now)
    play = call.ask()
    call("tell", play, {a: sum(units) for a, units in costs(play.id, play.plan).items()}, at=AT)
    play = call.ask()
    call("tell", play, [costs(play.id, play.plan).get(arm, []) for arm in play.plan], at=call.now)
    play = call.ask(key="closes")
    losses = costs(play.id, play.plan)
    call("tell", play, {arm: losses[arm][:1] for arm in [*losses][:1]}, final=False, at=call.now)
    other = call.ask(key="cancelled")
    call.keyed("close", (play.id,), (other.id,))
    call.keyed("cancel", (other.id,), (play.id,))
    call("cancel", other.id, at=call.now)
    call("tell", other, losses, at=call.now)
    call("ask", key="cancelled", at=call.now, **call.case.day(1))
    old = [call.ask(at=AT - 9 * DAY) for _ in range(2)]
    losses = costs(old[0].id, old[0].plan)
    call("tell", old[0], {arm: losses[arm][:1] for arm in [*losses][:1]}, final=False, at=AT)
    call("expire", 30 * DAY, at=AT)
    call.keyed("expire", (5 * DAY,), (2 * DAY,), at=AT)
    for wrong in (-1, "a week", float("nan")):
        call("expire", wrong, at=AT)


def external(call: Caller) -> None:
    """Learn from external plans and tables."""
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    options = call.case.day(3)
    today = {name: options[name] for name in options if name == "features"}
    call.keyed("learn", (plan, costs(90, plan)), (plan, costs(91, plan)), **today)
    call("learn", [1, 1, 3, 0], costs(92, {"Lyon->north": 1, "Lyon->south": 1, "Lille->north": 3}))
    call("learn", plan, {"Lyon->north": [None, 61.0]}, missing="ignore", at=call.now, **today)
    other = {"Lyon->north": 1, "Lille->north": 3, "Lille->south": 1}
    call("learn", other, costs(93, other), actions=lanes((1, 4), (4, 1)), at=call.now, **today)
    call("learn", {"Lyon->north": 5}, {"Lyon->north": [60.0] * 5}, at=call.now, **today)
    call("learn", {"nowhere": 5}, {}, at=call.now, **today)
    call("learn", plan, {"nowhere": [1.0]}, at=call.now, **today)
    call("check_table", table())
    call.keyed("learn_table", (table(),), (table(2),))
    bad = table(1) | {"loss": [1.0, "many", 900.0, None]}
    call("check_table", bad)
    call("learn_table", bad, at=call.now)
    call("learn_table", bad, skip_bad=True, at=call.now)
    call("learn_table", table(1), arm="lane", at=call.now)
    call("learn_table", table(1), skip_bad=1, at=call.now)
    call("learn_table", "no-such-file.csv", at=call.now)


def settings(call: Caller) -> None:
    """Describe arms, set words and rules, add and end constraints."""
    km = {"km": {"Metz->north": 350, "Metz->south": 410}}
    call.keyed("set_arm_features", (km,), ({"km": {"Metz->north": 1, "Metz->south": 2}},))
    call("set_arm_features", {"wind": {"Lyon->north": 1}}, at=call.now)
    call("set_arm_features", {"km": {"Lyon->north": "far"}}, at=call.now)
    usual = mp.Words("USD", "box", "lane")
    call.keyed("set_words", (usual,), (usual._replace(currency="EUR", unit="truck"),))
    call("set_words", usual._replace(arm=""), at=call.now)
    call("set_words", usual._replace(unit=7), at=call.now)  # type: ignore[arg-type]
    call.keyed("add_constraint", (NEW_PROMISE,), (mp.AtMost(9, CO2, plays=30, name="new"),))
    call("add_constraint", NEW_PROMISE, at=call.now)
    call("add_constraint", "CO2 <= 5", at=call.now)
    call("add_constraint", mp.AtMost(9, {"nowhere": 1}, plays=3, name="other"), at=call.now)
    for left in (3, 2, 1):
        call("why", call.play(ahead=[lanes()] * left, key=f"{left} left"))
        call("constraints")
    call.keyed("end_constraint", ("new",), ("CO2",))
    call("add_constraint", IMPOSSIBLE, at=call.now)
    for _ in range(2):
        call.play()
    call("constraints")
    call("end_constraint", "impossible", at=call.now)
    call("end_constraint", "new", at=call.now)
    call("end_constraint", 7, at=call.now)
    for one in (mp.SwitchingCost(2.0), mp.Baseline(mp.InProportion(), 0.5)):
        call("add_constraint", one, at=call.now)
        call.play()
        call("constraints")
    call("end_constraint", "switching cost", at=call.now)
    call("end_constraint", "baseline", at=call.now)
    call.play()
    call.keyed("note", ("Strike in Lyon.",), ("Strike in Lille.",))
    if call.is_study:
        price = mp.PriceList(MEANS)
        call.keyed("set_versus", (mp.InProportion(),), (price,))
        call("set_versus", "in proportion", at=call.now)
        call.get("versus")


def corrections(call: Caller) -> None:
    """Correct, retract, forget and unforget."""
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    one, two = call.play(key="to correct"), call.play(key="to retract")
    waits = call.ask(key="waits")
    right = costs(one.id, one.plan, 5.0)
    call.keyed("correct", (one.id, right), (one.id, costs(one.id, one.plan, 6.0)))
    call("correct", "to correct", right, at=call.now)
    call("correct", one, {"nowhere": [1.0]}, at=call.now)
    call("correct", one, {}, at=call.now)
    call("correct", one, right, missing="perhaps", at=call.now)
    call("correct", waits, costs(waits.id, waits.plan), at=call.now)
    call("correct", 999, right, at=call.now)
    call("correct", "learn 1", costs(94, plan), at=call.now)
    call("correct", "learn_table 1", right, at=call.now)
    call.keyed("retract", (two.id,), (one.id,))
    call("retract", two.id, at=call.now)
    call("retract", waits, at=call.now)
    call("retract", 999, at=call.now)
    call.tell(two, 3.0)
    call("retract", "learn_table 1", at=call.now)
    call("cancel", waits, at=call.now)
    call("retract", waits, at=call.now)
    call.keyed("forget", ("Lyon->north",), ("Lille->north",), before=4)
    call("forget", before=3, at=call.now)
    for wrong in (-1, 999, 1.5, "Monday", None):
        call("forget", before=wrong, at=call.now)
    call("forget", "nowhere", before=3, at=call.now)
    call.keyed("unforget", ("Lyon->north",), ("Lille->north",), since=0)
    call("unforget", since=0, at=call.now)
    call("unforget", at=call.now)
    call("unforget", "nowhere", at=call.now)


def requests(call: Caller) -> None:
    """Make requests of clients: the same again, and different ones with the same id."""
    if not isinstance(call.live, mp.Study):
        return
    study, options = call.live, call.case.day(4)

    def once(verb: str, request: Request, *given: Any, **named: Any) -> Any:
        with call.lines.call(f"once {verb}") as found:
            result = study.once(verb, request, partial(getattr(study, verb), *given, **named))
            found.append(result)
            return result

    at: dict[str, Any] = {"at": call.now}
    for key in (None, "requested", "2026-11-16"):
        for body in ("a", "a", "b"):
            once("ask", Request(f"ask {key}", body), key=key, **at, **options)
    play = study.ask(key="told once", **at, **options)
    for body in ("a", "a", "b"):
        once("tell", Request("tell", body), play.id, costs(play.id, play.plan), **at)
    told = "requested"
    waiting = study.ask(key=told, **at, **options)
    for body in ("a", "a"):
        once("tell", Request("keyed", body), told, costs(waiting.id, waiting.plan), key="k", **at)
    for request in ("expire 1", "expire 1", "expire 2"):
        once("expire", Request(request), 3650 * DAY, **at)
    cancelled = study.ask(**at, **options)
    for _ in range(2):
        once("cancel", Request("cancel"), cancelled.id, **at)
        once("set_words", Request("words"), mp.Words("EUR", arm="lane"), **at)
        once("learn_table", Request("table"), table(1), **at)
        once("forget", Request("forget"), before=2, **at)
        once("unforget", Request("unforget"), since=0, **at)
        once("add_constraint", Request("promise"), NEW_PROMISE, **at)
        once("end_constraint", Request("release"), "new", **at)
        once("retract", Request("retract"), told, **at)
        once("correct", Request("correct"), play.id, costs(play.id, play.plan, 2.0), **at)


def questions(call: Caller) -> None:
    """Read all that can be read."""
    for name in (
        *("asked", "clipped", "words", "loss_range", "summary", "seed", "known_arms"),
        *("open_plays", "described_arms", "day_features", "constrained_by"),
    ):
        call.get(name)
    best = call("best")
    call("best", exclude=["Lyon->south"])
    call("best", lanes((1, 4), (4, 1)))
    call("best", fixed={"Lyon->north": 7})
    call("expect", {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}, level=0.9)
    call("expect", best.plan if best is not None else {})
    call("expect", {"Lyon->north": 9})
    call("arms")
    call("arms", 0.5)
    call("arms", 2)
    call("drift")
    call("effects")
    call("effects", by="arm")
    call("effects", by="day")
    call("constraints")
    call("pending")
    call("plays")
    call("plays", external=True)
    if call.is_study:
        call("plans")
        call.get("promised")


def last_days(call: Caller) -> None:
    """Play ten more days, and read all that can be read."""
    for _ in range(10):
        call.play()
    questions(call)
    call("savings", mp.InProportion())
    call("savings", {"2026-11-16": {"Lyon->north": 2}}, level=2)
    call("savings")
    call("cost_of_learning")
    play = call.ask(key="last")
    call("why", play)
    call.keyed("set_range", ((0, 500),), ((0, 400),))
    call("set_range", (3, 1), at=call.now)
    call("arms")


def truncated(call: Caller) -> None:
    """Ask with a time limit that is over at once."""
    for key in (None, "truncated", "truncated"):
        play = call("ask", key=key, time_limit=1e-9, at=AT)
        call.tell(play)
    call("ask", key="waits", time_limit=1e-9, at=AT)
    call("pending")


PHASES = (plans, reports, external, settings, corrections, requests, last_days)


# ------------------------------------------------------------ learners and studies


def of_learner(case: Case, folder: Path) -> Lines:
    """Return the lines of a learner, and of its file."""
    lines = Lines()
    learner = mp.Learner(case.actions(), **case.given())
    call = Caller(lines, case, learner)
    for phase in (nothing_played, *PHASES):
        phase(call)
    for name, array in learner.state.items():
        lines.add(f"state {name}", of_array(array))
    lines.add("stream", of_array(learner.rng.state))
    file = folder / f"{case.name}.npz"
    learner.save(file)
    lines.add("saved", of_record(read_record(file)))
    return lines


def of_study(case: Case, phases: Iterable[Callable[[Caller], None]] = PHASES) -> Lines:
    """Return the lines of a study, and of its journal."""
    lines, store = Lines(), MemoryStore()
    given = case.given() | {"store": store, "key": "made", "by": "planner"}
    with mp.Study.create(case.name, case.actions(), **given) as study:
        call = Caller(lines, case, study)
        for phase in phases:
            phase(call)
        of_journal(lines, study)
    return lines


def of_imported(folder: Path) -> Lines:
    """Return the lines of a study that continues a learner."""
    lines, case, file = Lines(), CASES[0], folder / "imported.npz"
    learner = mp.Learner(case.actions(), **case.given())
    before = Caller(lines, case, learner)
    for _ in range(3):
        before.play()
    before.ask(key="waits")
    learner.save(file)
    with mp.Study.import_learner("imported", file, seed=3, store=MemoryStore()) as study:
        call = Caller(lines, case, study)
        call.day = before.day
        call.play()
        call.tell(call("ask", key="waits", at=call.now))
        call("correct", 1, costs(1, {"Lyon->north": 1}), at=call.now)
        call("retract", 1, at=call.now)
        call.play()
        of_journal(lines, study)
    return lines


def of_journal(lines: Lines, study: Any) -> None:
    """Add the entries of a journal, and whether they replay to the same state."""
    for entry in study.entries():
        lines.add("entry", of_entry(entry))
    lines.add("verify", study.verify())
