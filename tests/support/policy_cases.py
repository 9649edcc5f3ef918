"""Policies with each of their options, alone and in pairs, by names that do not change.

This is the only module of the golden plays that names classes and options of policies: after a
renaming it is adapted, and the recorded plays stay equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import multiplay as mp
from multiplay.errors import InvalidInput

# What happens to a case beside plays and reports
ABSENT, PARTIAL, EXTERNAL = "absent arms", "partial reports", "external plans"
LIVE = frozenset({ABSENT, PARTIAL, EXTERNAL})
NOTHING: frozenset[str] = frozenset()
MANY, FEW = 40, 12  # rounds: rare planning begins after 29; FTRL takes longer for a round

Given = dict[str, Any]
Options = dict[str, Given]

DISCOUNT: Given = {"discount": 0.9}
WINDOW: Given = {"window": 4}
FOLLOWED: Given = {"memory": mp.Changes()}
PERSISTS: Given = {"memory": mp.Persists()}
ONE_SEED: Given = {"shared_seed": True}
RARELY: Given = {"replan": "rarely"}
ORDERED: Given = {"unit_means": "ordered"}
INDEX: Options = {"discount": DISCOUNT, "window": WINDOW, "rarely": RARELY}


class Case(NamedTuple):
    """A policy under test."""

    name: str
    policy: mp.Policy
    live: frozenset[str]
    rounds: int
    by_unit: bool = False  # learns only from the losses of all units
    linear: bool = False  # needs sums
    lists: bool = False  # lists all actions


class Group(NamedTuple):
    """A class of policies, its options, and what its cases have in common."""

    make: Callable[..., mp.Policy]
    options: Options
    live: frozenset[str] = LIVE
    rounds: int = MANY
    linear: bool = False
    lists: bool = False


def _conservative(policy: mp.Policy, allowance: float = 0.05, **more: Any) -> mp.Policy:
    return mp.Constrained(policy, [mp.Baseline(mp.InProportion(), allowance, **more)])


def _switching(policy: mp.Policy) -> mp.Policy:
    return mp.Constrained(policy, [mp.SwitchingCost(0.1)])


GROUPS: dict[str, Group] = {
    "GenCTS": Group(mp.GenCTS, INDEX | {"one seed": ONE_SEED, "ordered": ORDERED}),
    "BootstrapCTS": Group(
        mp.BootstrapCTS,
        {
            "w": {"w": 0.25},
            "followed": FOLLOWED,
            "curious": FOLLOWED | {"curiosity": 0.1},
            "persists": PERSISTS,
            **INDEX,
            "one seed": ONE_SEED,
            "ordered": ORDERED,
        },
    ),
    "PooledCTS": Group(
        mp.PooledCTS,
        {
            "followed": FOLLOWED,
            "curious": FOLLOWED | {"curiosity": 0.1},
            "persists": PERSISTS,
            **INDEX,
        },
    ),
    "GaussianCTS": Group(mp.GaussianCTS, {"beta": {"beta": 2.0}, **INDEX, "one seed": ONE_SEED}),
    "CombUCB": Group(mp.CombUCB, {"alpha": {"alpha": 0.3}, **INDEX}),
    "FollowTheLeader": Group(mp.FollowTheLeader, {}),
    "EpsilonGreedy": Group(mp.EpsilonGreedy, {"epsilon": {"epsilon": 0.4}}),
    "BGCTS": Group(mp.BGCTS, {"lam": {"lam": 1.0}}),
    "COSV": Group(mp.COSV, {"beta": {"beta": 0.5}, "kappa": {"kappa": 0.1}}),
    "GLRCUCB": Group(
        mp.GLRCUCB,
        {"alpha": {"alpha": 0.3}, "p": {"p": 0.3}, "delta": {"delta": 0.9}},
        LIVE - {ABSENT},
    ),
    "FeatureCTS": Group(
        mp.FeatureCTS,
        {
            "discount": DISCOUNT,
            "draws": {"draws": True, "priors": 1},
            "linear": {"effects": False},
            "optimism": {"optimism": 2.0},
            "followed": FOLLOWED,
        },
    ),
    "RandomAction": Group(mp.RandomAction, {}),
    "ESCB": Group(mp.ESCB, {}, lists=True, linear=True),
    "OLSUCBC": Group(
        mp.OLSUCBC,
        {"alpha": {"alpha": 0.03}, "kappa": {"kappa": 0.1}},
        LIVE - {ABSENT},
        lists=True,
        linear=True,
    ),
    "GenLBINFV": Group(
        mp.GenLBINFV,
        {
            "gd": {"prediction": "gd"},
            "epsilon": {"epsilon": 0.4},
            "eta": {"eta": 0.4},
            "horizon": {"horizon": 500},
            "any horizon": {"horizon": 30, "any_horizon": True},
            "initial": {"initial": "units"},
            "anytime": {"anytime": True},
        },
        rounds=FEW,
        linear=True,
    ),
    "LBINF": Group(
        mp.LBINF,
        {"eta": {"eta": 0.4}, "any horizon": {"horizon": 30, "any_horizon": True}},
        rounds=FEW,
        linear=True,
    ),
    "Hybrid": Group(mp.Hybrid, {"gamma": {"gamma": 2.0}}, rounds=FEW, linear=True),
    "GenAdaINF": Group(
        mp.GenAdaINF,
        {"caution": {"caution": 0.1}, "c": {"c": 1.5}, "v0": {"v0": 0.1}},
        rounds=FEW,
        linear=True,
    ),
    "FPLIX": Group(
        mp.FPLIX,
        {"eta": {"eta": 0.5}, "gamma": {"gamma": 0.3}, "cap": {"cap": 3}},
        rounds=FEW,
        linear=True,
    ),
    "LinTS": Group(mp.LinTS, {"sigma": {"sigma": 0.5}}, NOTHING, linear=True),
    "LinUCB": Group(mp.LinUCB, {"sigma": {"sigma": 0.5}}, NOTHING, linear=True, lists=True),
    "ScaledScribble": Group(
        mp.ScaledScribble,
        {"eta": {"eta": 0.1}, "scale": {"scale": 0.5}, "horizon": {"horizon": 50}},
        NOTHING,
        FEW,
        linear=True,
        lists=True,
    ),
    "ExplorationByOptimisation": Group(
        mp.ExplorationByOptimisation,
        {"rounded": {"exploration": "rounded"}, "scale": {"scale": 0.5}},
        NOTHING,
        FEW,
        linear=True,
        lists=True,
    ),
    "BestOfThreeWorlds": Group(
        mp.BestOfThreeWorlds, {"scale": {"scale": 0.5}}, NOTHING, FEW, linear=True, lists=True
    ),
}
COPIED = {
    "GenCTS": mp.GenCTS(),
    "BootstrapCTS followed": mp.BootstrapCTS(**FOLLOWED),
    "CombUCB window": mp.CombUCB(**WINDOW),
    "GenLBINFV": mp.GenLBINFV(horizon=2000),
}
LIMITED = {
    "GenCTS": mp.GenCTS(),
    "BootstrapCTS": mp.BootstrapCTS(),
    "BootstrapCTS followed": mp.BootstrapCTS(**FOLLOWED),
    "GaussianCTS discount": mp.GaussianCTS(**DISCOUNT),
    "CombUCB": mp.CombUCB(alpha=0.3),
    "FollowTheLeader": mp.FollowTheLeader(),
}
WRAPPED: dict[str, mp.Policy] = {
    **{f"baseline {name}": _conservative(one) for name, one in LIMITED.items()},
    "baseline week GenCTS": _conservative(mp.GenCTS(), 0.1, per="week"),
    "baseline sure GenCTS": _conservative(mp.GenCTS(), sure=0.6),
    **{f"switching {name}": _switching(one) for name, one in LIMITED.items()},
}


def cases() -> Iterator[Case]:
    """Yield every policy: by itself, with each option, and with each pair that works together."""
    for name, group in GROUPS.items():
        names = group.options
        chosen: list[tuple[str, ...]] = [(), *((one,) for one in names), *combinations(names, 2)]
        for some in chosen:
            given: dict[str, Any] = {}
            for one in some:
                given |= group.options[one]
            if len(some) == 2 and len(given) < sum(len(group.options[one]) for one in some):
                continue  # one of them contains the other
            try:
                policy = group.make(**given)
            except InvalidInput:
                if len(some) < 2:
                    raise
                continue  # tests/support/combinations.py says which are refused
            ordered = "ordered" in some
            yield Case(
                " ".join((name, *some)),
                policy,
                group.live,
                group.rounds,
                ordered,
                group.linear or ordered,
                group.lists,
            )
    for name, policy in COPIED.items():
        yield Case(f"copies {name}", mp.Duplicated(policy), NOTHING, FEW, True, True)
    for name, policy in WRAPPED.items():
        yield Case(name, policy, LIVE, MANY, linear=True)
