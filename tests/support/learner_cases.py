"""Learners with each constraint and each kind of report, for several policies.

As in ``policy_cases``, names do not change; ``learner`` is the only function that names options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from policy_cases import DISCOUNT, FOLLOWED, ONE_SEED, ORDERED, PERSISTS, RARELY, WINDOW

import multiplay as mp
from multiplay.types import Arrays, IntArray

DAYS, DAY, AT = 10, 86_400.0, 1_794_000_000.0
TOWNS = ["Lyon", "Lille"], ["north", "south", "east"]
COSTS = {"Lyon->north": 60, "Lyon->south": 150, "Lyon->east": 90}
COSTS |= {"Lille->north": 120, "Lille->south": 40, "Lille->east": 70}
USE = {"*": 1, "Lille->south": 4, "Lyon->north": 3}


def lanes(supply: Any = (3, 3), demand: Any = (2, 3, 1)) -> mp.Transport:
    """Return the plans of two depots and three customers."""
    return mp.Transport(supply, demand, names=TOWNS)


def with_metz() -> mp.Transport:
    """Return a set with arms that the others do not have."""
    return mp.Transport([3, 2], [2, 3], names=(["Metz", "Lille"], TOWNS[1][:2]))


def items() -> mp.Knapsack:
    """Return a knapsack, whose rewards are maximised."""
    return mp.Knapsack([3, 4, 2, 5], 9, limits=3, names=[*COSTS][:4])


class Scene(NamedTuple):
    """What a learner is made with, and how its days are reported."""

    options: Mapping[str, Any] = MappingProxyType({})
    actions: Callable[[], Any] = lanes
    sets: tuple[Callable[[], Any], ...] = ()  # of the days, in turns
    limits: Mapping[str, Any] = MappingProxyType({})  # of every third day
    totals: bool = False
    parts: bool = False  # some units are never reported
    late: bool = False
    external: bool = False
    forgets: bool = False
    plan: dict[str, int] | None = None  # of a baseline that is given each day
    features: bool = False


def learner(actions: Any, policy: mp.Policy | None, **given: Any) -> mp.Learner:
    """Return a learner for neutral options."""
    options: dict[str, Any] = {"loss_range": given.pop("range", (0, 250))}
    renamed = {
        "varying": "varying_set",
        "reports": "reports",
        "constraints": "constraints",
        "features": "features",
        "of_arms": "arm_features",
    }
    return mp.Learner(
        actions, policy, seed=7, **options, **{renamed[name]: one for name, one in given.items()}
    )


HARD = [mp.AtMost(130, USE, plays=DAYS + 2, name="use")]
SOFT = [mp.AtLeast(20, {"*": 0, "Lyon->south": 1}, plays=DAYS + 2, name="south", hard=False)]
BY_ARM = {name: (0.0, 2.0 * cost + 50.0) for name, cost in COSTS.items()}
EQUAL = {"Lyon->north": 1, "Lyon->south": 1, "Lyon->east": 1}
EQUAL |= {"Lille->north": 1, "Lille->south": 2, "Lille->east": 0}
FEATURES = mp.Features(km=mp.Number(centre=300, scale=100), fuel=mp.Number(centre=1.6, scale=0.1))
KM = {"km": dict(zip(COSTS, (450, 120, 200, 90, 700, 300), strict=True))}

SCENES: dict[str, Scene] = {
    "units": Scene(),
    "totals": Scene(totals=True),
    "late": Scene(late=True),
    "parts": Scene({"reports": mp.Reports(missing="ignore")}, parts=True),
    "ranges by arm": Scene({"range": BY_ARM}),
    "rewards": Scene(actions=items),
    "limits": Scene(limits={"at_most": {"Lille->south": 1}, "exclude": ["Lyon->east"]}),
    "varying": Scene({"varying": True}, sets=(lanes, partial(lanes, (4, 2)), with_metz)),
    "external": Scene(external=True),
    "forget": Scene(forgets=True),
    "baseline": Scene({"constraints": [mp.Baseline(mp.InProportion(), 0.05)]}),
    "baseline of the day": Scene({"constraints": [mp.Baseline("each day", 0.1)]}, plan=EQUAL),
    "baseline of a week": Scene(
        {"constraints": [mp.Baseline(mp.InProportion(), 0.05, per="week")]}
    ),
    "hard promise": Scene({"constraints": HARD}),
    "soft promise": Scene({"constraints": SOFT}),
    "both promises": Scene({"constraints": HARD + SOFT}, late=True),
    "switching": Scene({"constraints": [mp.SwitchingCost(15.0)]}),
    "switching late": Scene({"constraints": [mp.SwitchingCost(40.0)]}, late=True),
    "switching rewards": Scene({"constraints": [mp.SwitchingCost(15.0)]}, actions=items),
}
FEATURED = {
    "features": Scene({"features": FEATURES, "of_arms": KM}, features=True),
    "features late": Scene({"features": FEATURES, "of_arms": KM}, features=True, late=True),
    "features external": Scene({"features": FEATURES, "of_arms": KM}, features=True, external=True),
}

EVERYWHERE: dict[str, mp.Policy | None] = {
    "default": None,
    "GenCTS": mp.GenCTS(),
    "BootstrapCTS window": mp.BootstrapCTS(**WINDOW),
    "GaussianCTS discount": mp.GaussianCTS(**DISCOUNT),
    "CombUCB": mp.CombUCB(alpha=0.3),
    "FollowTheLeader": mp.FollowTheLeader(),
}
SOMETIMES: dict[str, mp.Policy] = {
    "BootstrapCTS": mp.BootstrapCTS(),
    "BootstrapCTS followed": mp.BootstrapCTS(**FOLLOWED),
    "BootstrapCTS curious": mp.BootstrapCTS(**FOLLOWED, curiosity=0.1),
    "BootstrapCTS one seed": mp.BootstrapCTS(**FOLLOWED, **ONE_SEED),
    "PooledCTS persists": mp.PooledCTS(**PERSISTS),
    "BootstrapCTS rarely": mp.BootstrapCTS(**RARELY),
    "GenCTS window": mp.GenCTS(**WINDOW),
    "CombUCB discount": mp.CombUCB(**DISCOUNT),
    "GaussianCTS one seed": mp.GaussianCTS(**ONE_SEED),
    "EpsilonGreedy": mp.EpsilonGreedy(),
    "BGCTS": mp.BGCTS(),
    "COSV": mp.COSV(),
    "GLRCUCB": mp.GLRCUCB(),
    "ESCB": mp.ESCB(),
    "OLSUCBC": mp.OLSUCBC(),
    "GenLBINFV": mp.GenLBINFV(horizon=60),
    "GenAdaINF": mp.GenAdaINF(),
    "Hybrid": mp.Hybrid(),
    "FPLIX": mp.FPLIX(),
    "FeatureCTS": mp.FeatureCTS(),
}
BY_UNIT: dict[str, mp.Policy] = {
    "BootstrapCTS ordered": mp.BootstrapCTS(**ORDERED),
    "GenCTS ordered": mp.GenCTS(**ORDERED, **DISCOUNT),
    "copies GenCTS": mp.Duplicated(mp.GenCTS()),
    "LinTS": mp.LinTS(),
}
WITH_FEATURES: dict[str, mp.Policy | None] = {
    "default": None,
    "FeatureCTS": mp.FeatureCTS(),
    "FeatureCTS discount": mp.FeatureCTS(**DISCOUNT),
    "FeatureCTS draws": mp.FeatureCTS(draws=True, priors=1),
    "FeatureCTS optimism": mp.FeatureCTS(optimism=2.0),
}
MOST = ("units", "totals", "late", "parts", "ranges by arm", "rewards", "varying", "external")
WHERE: dict[str, tuple[str, ...]] = {  # scenes of policies that do not play in all of them
    **dict.fromkeys(SOMETIMES, MOST),
    **dict.fromkeys(("EpsilonGreedy", "ESCB", "PooledCTS persists"), (*MOST, "forget")),
    **dict.fromkeys(("BootstrapCTS", "BootstrapCTS followed", "BGCTS", "COSV"), (*SCENES,)),
    **dict.fromkeys(("GenLBINFV", "Hybrid", "FPLIX"), (*MOST, "soft promise")),
    **dict.fromkeys(("GLRCUCB", "OLSUCBC"), tuple(one for one in MOST if one != "varying")),
    "BootstrapCTS ordered": ("units", "late", "ranges by arm", "rewards", "varying", "external"),
    "GenCTS ordered": ("units", "late", "parts", "varying", "external"),
    "copies GenCTS": ("units", "late", "ranges by arm", "rewards"),
    "LinTS": ("units", "totals", "late", "rewards"),
}
NO_FORGET = {"COSV"}


class Played(NamedTuple):
    """The plays of a learner, and what it has learned."""

    actions: list[IntArray]
    arrays: Arrays


def cases() -> Iterator[tuple[str, Callable[[], Played]]]:
    """Yield the learners by names."""
    for name, policy in {**EVERYWHERE, **SOMETIMES, **BY_UNIT}.items():
        for title in WHERE.get(name, tuple(SCENES)):
            if not (title == "forget" and name in NO_FORGET):
                yield f"learner {name}, {title}", partial(played, SCENES[title], policy)
    for name, policy in WITH_FEATURES.items():
        for title, scene in FEATURED.items():
            yield f"learner {name}, {title}", partial(played, scene, policy)


def losses(day: int, plan: dict[str, int], scene: Scene) -> Any:
    """Return the losses of the units of a plan, which depend on the day and the arm alone."""
    found: dict[str, Any] = {}
    for place, (arm, units) in enumerate(plan.items()):
        mean = COSTS.get(arm, 100.0)
        some = [mean + (37 * day + 11 * unit + 5 * place) % 23 - 11 for unit in range(units)]
        if scene.parts and (day + place) % 3 == 0:
            some = some[:-1] + [None] * (units > 0)  # type: ignore[list-item]
        if units:
            found[arm] = sum(some) if scene.totals and (day + place) % 2 else some
    return found


def played(scene: Scene, policy: mp.Policy | None) -> Played:
    """Ask and tell for some days; return the plays, means, and the state of the policy."""
    usual = scene.actions()
    sets = [make() for make in scene.sets]
    live = learner(usual, policy, **scene.options)
    actions, late = list[IntArray](), list[tuple[int, Any, Any]]()
    for day in range(1, DAYS + 1):
        at, asked = AT + day * DAY, dict[str, Any]()
        if sets:
            asked["actions"] = sets[day % len(sets)]
        if scene.limits and day % 3 == 0:
            asked |= scene.limits
        if scene.plan is not None:
            asked["baseline"] = scene.plan
        today: dict[str, Any] = {"features": {"fuel": 1.5 + day % 4 / 10}} if scene.features else {}
        play = live.ask(**asked, **today, at=at)
        actions.append(play.action)
        report = losses(day, dict(play.plan), scene)
        if scene.late and day % 4 == 2:
            late.append((day + 3, play, report))
        else:
            live.tell(play, report, at=at + 60)
        while late and late[0][0] <= day:
            live.tell(late[0][1], late[0][2], at=at + 120)
            del late[0]
        if scene.external and day % 4 == 1:
            plan = dict(EQUAL)
            live.learn(plan, losses(day + 50, plan, scene), **today, at=at + 180)
        if scene.forgets and day == 5:
            live.forget("Lille->south", before=4, at=at + 240)
        if scene.forgets and day == 8:
            live.unforget("Lille->south", since=0, at=at + 240)
    table = live.arms()
    arrays = {name: table[name].to_numpy(dtype=float) for name in ("seen", "mean", "low", "high")}
    state = live.state
    return Played(actions, arrays | {f"state {key}": state[key] for key in sorted(state)})
