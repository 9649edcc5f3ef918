"""Learners that combine two options: built with the public API, and played for a few days.

The names of options and policies are those of ``combinations``. This is the only module that says
how an option is written: after a renaming it is adapted, and the table stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import multiplay as mp
from multiplay.errors import InvalidInput

DAYS, AT, DAY = 5, 1_794_000_000.0, 86_400.0

POLICIES: dict[str, type[mp.Policy]] = {
    **{
        one.__name__: one
        for one in (
            *(mp.BootstrapCTS, mp.GenCTS, mp.GaussianCTS, mp.PooledCTS, mp.CombUCB),
            mp.FollowTheLeader,
            *(mp.EpsilonGreedy, mp.BGCTS, mp.COSV, mp.GLRCUCB, mp.FeatureCTS, mp.RandomAction),
            *(mp.ESCB, mp.OLSUCBC, mp.GenLBINFV, mp.LBINF, mp.Hybrid, mp.GenAdaINF, mp.FPLIX),
            *(mp.LinTS, mp.LinUCB, mp.ScaledScribble, mp.ExplorationByOptimisation),
            mp.BestOfThreeWorlds,
        )
    }
}
HORIZONS = {
    "LBINF": 60,
    "GenLBINFV": 60,
    "ScaledScribble": 60,
    "ExplorationByOptimisation": 60,
    "BestOfThreeWorlds": 60,
}


def lanes(supply: Any = (2, 3), demand: Any = (4, 1)) -> mp.ActionSet:
    return mp.Transport(supply, demand, names=(["Lyon", "Lille"], ["north", "south"]))


def depots(trucks: int = 4) -> mp.ActionSet:
    """Return a set with rents of depots, which are known."""
    columns = {"lower": [0] * 4, "upper": [4, 4, 1, 1], "integer": [True] * 4}
    matrix = {
        "row": [0, 0, 1, 1, 2, 2],
        "column": [0, 1, 0, 2, 1, 3],
        "value": [1, 1, 1, -4, 1, -4],
    }
    return mp.Model(
        columns | {"cost": [0, 0, 100, 80]},
        {"lower": [trucks, None, None], "upper": [trucks, 0, 0]},
        matrix,
        arms=[0, 1],
        names=["Lyon", "Lille"],
    )


def calls(budget: int = 4) -> mp.ActionSet:
    """Return a set whose values are chances: not sums over units."""
    return mp.Coverage(budget, [3, 1, 2])


class NoSuchOption(InvalidInput):
    """An option that a policy does not have."""


@dataclass
class Setup:
    """What a learner is made of, and what happens on its days."""

    policy: str = "BootstrapCTS"
    copies: bool = False
    of_policy: dict[str, Any] = field(default_factory=dict)
    memories: list[mp.Changes] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)
    sets: Callable[..., mp.ActionSet] = lanes
    varies: bool = False
    baseline: bool = False
    constraints: list[Any] = field(default_factory=list)
    totals: bool = False
    missing: bool = False
    external: bool = False
    forgets: bool = False
    features: bool = False


def _promise(hard: bool) -> Any:
    return mp.AtMost(200, of={"*": 1}, plays=DAYS + 2, name=f"use {hard}", hard=hard)


FEATURES = mp.Features(day=mp.Flag())

OPTIONS: dict[str, Callable[[Setup], Any]] = {
    "discount": lambda one: one.of_policy.update(discount=0.9),
    "window": lambda one: one.of_policy.update(window=4),
    "changes followed": lambda one: one.memories.append(mp.Changes()),
    "persistence followed": lambda one: one.memories.append(mp.Persists()),
    "one seed": lambda one: one.of_policy.update(shared_seed=True),
    "pseudo units": lambda one: one.of_policy.update(w=0.5),
    "rare planning": lambda one: one.of_policy.update(replan="rarely"),
    "ordered units": lambda one: one.of_policy.update(unit_means="ordered"),
    "copies of units": lambda one: setattr(one, "copies", True),
    "features": lambda one: setattr(one, "features", True),
    "switching cost": lambda one: one.constraints.append(mp.SwitchingCost(2.0)),
    "baseline": lambda one: setattr(one, "baseline", True),
    "hard promise": lambda one: one.constraints.append(_promise(True)),
    "soft promise": lambda one: one.constraints.append(_promise(False)),
    "varying set": lambda one: setattr(one, "varies", True),
    "known costs": lambda one: setattr(one, "sets", depots),
    "not a sum": lambda one: setattr(one, "sets", calls),
    "totals": lambda one: setattr(one, "totals", True),
    "missing units": lambda one: setattr(one, "missing", True),
    "external plans": lambda one: setattr(one, "external", True),
    "forget": lambda one: setattr(one, "forgets", True),
}


def setup(policy: str, *options: str) -> Setup:
    """Return what a learner is made of, for a policy and some options."""
    found = Setup(policy)
    for name in options:
        OPTIONS[name](found)
    return found


def policy_of(one: Setup) -> mp.Policy:
    """Return the policy; an option that it does not have is refused by its name."""
    make = POLICIES[one.policy]
    options = dict(one.of_policy)
    if one.memories:
        options["memory"], *more = one.memories
        if more:
            raise NoSuchOption("memory", "one memory", repr(more), "Leave out one of them.")
    if one.policy in HORIZONS:
        options["horizon"] = HORIZONS[one.policy]
    known = {each.name for each in fields(make)}  # type: ignore[arg-type]
    for name in options:
        if name not in known:
            raise NoSuchOption(name, f"an option of {one.policy}", name, "Leave it out.")
    policy = make(**options)
    return mp.Duplicated(policy) if one.copies else policy


def learner(one: Setup, usual: mp.ActionSet) -> mp.Learner:
    """Return the learner."""
    given: dict[str, Any] = dict(one.given)
    if one.sets is not calls:
        given["loss_range"] = (0, 100)
    if one.varies:
        given["varying_set"] = True
    if one.missing:
        given["reports"] = mp.Reports(missing="ignore")
    if one.baseline:
        rule = mp.FixedPlan({usual.names[0]: 1}, nearest=True)
        one.constraints.append(mp.Baseline(rule, 0.1))
    given["constraints"] = one.constraints
    if one.features:
        given["features"] = FEATURES
    return mp.Learner(usual, policy_of(one), seed=3, **given)


def losses(one: Setup, play: dict[str, int], day: int) -> Any:
    """Return the losses of a plan in the form that the options have."""
    high = 1.0 if one.sets is calls else 100.0
    if POLICIES[one.policy].learns_from == "round" and one.totals:
        return high * 0.4 * sum(play.values())
    found: dict[str, Any] = {}
    for place, (arm, units) in enumerate(play.items()):
        some: list[Any] = [
            high * ((3 * day + 5 * unit + 7 * place) % 10) / 10 for unit in range(units)
        ]
        if one.totals and units:
            found[arm] = sum(some)
        elif units:
            found[arm] = some
    if one.missing and found:
        arm = next(iter(found))
        if one.totals:
            del found[arm]
        else:
            found[arm] = [*found[arm][1:], None]
    return found


def play(one: Setup) -> None:
    """Build a learner, ask and tell for some days; raise ``InvalidInput`` if it is refused."""
    usual = one.sets()
    others = [usual, one.sets(3) if one.sets is not lanes else lanes((3, 2), (1, 4))]
    live = learner(one, usual)
    for day in range(1, DAYS + 1):
        at, asked = AT + day * DAY, dict[str, Any]()
        today: dict[str, Any] = {"features": {"day": day % 2 == 0}} if one.features else {}
        actions = others[day % 2] if one.varies else usual
        if one.varies:
            asked["actions"] = actions
        played = live.ask(**asked, **today, at=at)
        assert actions.contains(played.action), "a plan must be one of the set"
        live.tell(played, losses(one, dict(played.plan), day), at=at)
        if one.external and day == 2:
            plan = dict(zip(usual.names, map(int, usual.best([0.5] * usual.d)), strict=True))
            live.learn(plan, losses(one, plan, day), **today, at=at)
    if one.forgets:
        live.forget(usual.names[0], before=3, at=at)
        live.unforget(usual.names[0], since=0, at=at)
        live.ask(**asked, **today, at=at)


def refusal(one: Setup) -> InvalidInput | None:
    """Return the refusal of a combination; None if it works."""
    try:
        play(one)
    except InvalidInput as error:
        return error
    return None
