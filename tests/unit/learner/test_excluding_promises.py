"""Promises that exclude each other: the first is kept, the others say how far they are broken."""

from typing import Any

import numpy as np
import pytest
from constraint_reports import promise_reports
from scipy.optimize import linprog

from multiplay import AtLeast, AtMost, Budget, Constrained, GenCTS, Learner, Promise, Streams
from multiplay.actions import ActionSet
from multiplay.constraints.prices import RemainingSet, least_overshoot

NAMES = ["air", "sea", "rail"]
AIR = {"air": 1, "*": 0}
PLANS = Budget(5, [5, 5, 5], names=NAMES)


def held(learner: Learner) -> list[str]:
    return [row.holds for row in promise_reports(learner)]


def used(learner: Learner) -> list[float]:
    return [row.used for row in promise_reports(learner)]


def play(learner: Learner, plans: ActionSet = PLANS, **given: Any) -> None:
    asked = learner.ask(plans, **given)
    rng = np.random.default_rng(asked.id)
    learner.tell(asked, {arm: rng.random(k).tolist() for arm, k in asked.plan.items()})


def sets_of(varying: bool, days: int) -> list[Budget]:
    totals = np.random.default_rng(3).integers(3, 8, days).tolist() if varying else [5] * days
    return [Budget(total, [5, 5, 5], names=NAMES) for total in totals]


@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("limit", [20, 18])  # 18 is no multiple of the units of a day
def test_the_first_of_two_is_kept(varying: bool, limit: int) -> None:
    few = AtMost(limit, AIR, plays=22, name="few")
    many = AtLeast(30, AIR, plays=22, name="many")
    for promises, end, texts in (
        ([few, many], limit, ["likely", f"no: at best {limit}, {30 - limit} too little"]),
        ([many, few], 30, ["likely", f"no: at best 30, {30 - limit} too much"]),
    ):
        sets = sets_of(varying, 22)
        learner = Learner(sets[0], varying_set=True, constraints=promises)
        for number, plans in enumerate(sets):
            play(learner, plans)
            if not number:
                assert held(learner) == texts
        assert used(learner) == [end, end]
        assert held(learner)[0] == "sure"


def test_three_promises_and_a_soft_one() -> None:
    """Hard promises come before soft ones, in the order in which they were given."""
    soft = AtLeast(60, AIR, plays=10, name="soft", hard=False)
    few = AtMost(12, AIR, plays=10, name="few")
    sea = AtLeast(10, {"sea": 1, "*": 0}, plays=10, name="sea")
    rail = AtLeast(35, {"rail": 1, "*": 0}, plays=10, name="rail")
    many = AtLeast(20, AIR, plays=10, name="many")
    learner = Learner(PLANS, constraints=[soft, few, sea, rail, many])
    for number in range(10):
        play(learner)
        if not number:
            first = held(learner)
    assert first[1:4] == ["likely", "likely", "likely"]
    assert first[4] == "no: at best 5, 15 too little"  # 50 units, of which 45 are promised
    assert first[0] == "no: at best 5, 55 too little"
    air, _, on_sea, on_rail, _ = used(learner)
    assert air <= 12
    assert (on_sea, on_rail) >= (10, 35)
    assert on_rail >= 35


def test_a_promise_becomes_impossible_midway() -> None:
    """Plans of the user use up the first promise: it is overshot least, and the other one kept."""
    few = AtMost(6, AIR, plays=8, name="few")
    sea = AtLeast(8, {"sea": 1, "*": 0}, plays=8, name="sea")
    learner = Learner(PLANS, constraints=[few, sea])
    play(learner)
    assert held(learner) == ["likely", "likely"]
    before = used(learner)[0]
    for _ in range(2):
        play(learner, fixed={"air": 5})
    over = before + 10 - 6
    assert held(learner) == [f"no: at best {before + 10:g}, {over:g} too much", "likely"]
    for _ in range(5):
        play(learner)
    assert used(learner)[0] == before + 10
    assert used(learner)[1] >= 8


def test_a_promise_that_is_added_later_comes_after() -> None:
    learner = Learner(PLANS, constraints=[AtMost(10, AIR, plays=12, name="few")])
    for _ in range(4):
        play(learner)
    learner.add_constraint(AtLeast(30, AIR, plays=8, name="many"))
    start = used(learner)[0]
    rest = 10 - start
    assert held(learner) == ["likely", f"no: at best {rest:g}, {30 - rest:g} too little"]
    for _ in range(8):
        play(learner)
    assert used(learner) == [10, rest]


def test_equal_promises_are_broken_together() -> None:
    """Two of the same limit are one: nothing is gained by giving up one of them."""
    pair = [AtLeast(70, AIR, plays=10, name=name) for name in ("one", "two")]
    learner = Learner(PLANS, constraints=pair)
    play(learner)
    assert held(learner) == ["no: at best 50, 20 too little"] * 2
    for _ in range(9):
        play(learner)
    assert used(learner) == [50, 50]


def test_known_sets_of_the_last_days_and_simulations() -> None:
    """With the sets of all days left, and by the policy of simulations."""
    few, many = AtMost(7, AIR, plays=6, name="few"), AtLeast(20, AIR, plays=6, name="many")
    learner = Learner(PLANS, constraints=[few, many])
    for number in range(6):
        play(learner, ahead=[PLANS] * (5 - number) if number else None)
        assert held(learner)[0] in ("likely", "sure")
    assert used(learner) == [7, 7]
    policy, streams = Constrained(GenCTS(), [few, many]), Streams.spawn(3, 1, range(4))
    state = policy.start(PLANS, None, 4)
    world, total = np.random.default_rng(1), np.zeros(4)
    for _ in range(6):
        chosen = policy.choose(PLANS, state, streams)
        total += chosen.action[:, 0]
        losses = world.random((4, int(PLANS.n.sum())))
        policy.update(PLANS, state, chosen, feedback(chosen.action, losses), streams)
    assert (total <= 7).all()


def feedback(action: np.ndarray, losses: np.ndarray) -> Any:
    from multiplay import Feedback

    first = np.arange(0, losses.shape[1] + 1, 5)
    units = np.arange(5) < action[:, :, None]
    total = (losses.reshape(len(action), 3, 5) * units).sum(axis=2)
    return Feedback(action, total, losses, first)


def lexicographic(vertices: np.ndarray, days: int, amounts: np.ndarray, limits: np.ndarray) -> Any:
    """Return the least overshoots, one after the other, by linear programs over all actions."""
    use = days * amounts @ vertices.T
    promises, size = use.shape
    found = np.zeros(promises)
    for k in range(promises):
        rows = np.hstack([use[: k + 1], np.zeros((k + 1, 1))])
        rows[k, -1] = -1.0
        sides = limits[: k + 1] + found[: k + 1] + 1e-9
        total = np.append(np.ones(size), 0.0)[None]
        cost = np.append(np.zeros(size), 1.0)
        found[k] = linprog(cost, rows, sides, total, [1.0]).fun
    return found


def test_least_overshoot_against_linear_programs_over_all_actions() -> None:
    rng, conflicts = np.random.default_rng(5), 0
    for _ in range(60):
        plans = Budget(4, rng.integers(1, 5, 4) + 1)
        promises: list[Promise] = []
        for k in range(3):
            of = dict(zip(plans.names, rng.integers(0, 6, 4).tolist(), strict=True))
            kind = (AtMost, AtLeast)[int(rng.integers(2))]
            promises.append(kind(int(rng.integers(20, 150)), of, plays=10, name=f"{k}"))
        amounts = np.stack([one.sign * one.amounts(plans.names) for one in promises])
        limits = np.array([one.sign * float(one.limit) for one in promises])
        day = RemainingSet(plans, 10.0, np.ones(4), amounts)
        ours = least_overshoot([day], limits, np.arange(3))
        theirs = lexicographic(plans.enumerate(), 10, amounts, limits)
        conflicts += int((theirs > 0).sum() == 1)
        np.testing.assert_allclose(ours, theirs, atol=0.05)
    assert conflicts > 10
