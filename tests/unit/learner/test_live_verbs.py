"""The verbs of a live learner: days that differ, euros, reports as they come, beliefs, files."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusal import refused

import multiplay as mp
from multiplay import Learner, Policy, Transport
from multiplay.actions import ActionSet
from multiplay.errors import Conflict
from multiplay.learner import PendingPlay
from multiplay.random import Rng
from multiplay.studies import learner_files
from multiplay.types import Arrays, FloatArray

TOWNS = ["Lyon", "Lille"], ["north", "south"]
PLANS = Transport([2, 3], [4, 1], names=TOWNS)
LANES = PLANS.names
BUSY = Transport([4, 3, 1], [5, 3], names=(["Lille", "Lyon", "Metz"], ["south", "north"]))
SHORT = Transport([1, 2], [3, 2], names=TOWNS, shortage=40)
CLOSED = Transport([2, 3], [4, 1], capacities=[[2, 1], [3, 0]], names=TOWNS)
ABLE: list[Policy] = [
    mp.GenCTS(),
    mp.GenCTS(discount=0.9),
    mp.GenCTS(window=5),
    mp.GaussianCTS(),
    mp.CombUCB(),
    mp.CombUCB(window=4),
    mp.ESCB(),
    mp.GenLBINFV(),
    mp.Hybrid(),
    mp.FPLIX(),
    mp.GenAdaINF(),
]
UNABLE: list[Policy] = [
    mp.Duplicated(mp.GenCTS()),
    mp.ScaledScribble(horizon=60),
    mp.BestOfThreeWorlds(horizon=60),
]
able = pytest.mark.parametrize("policy", ABLE, ids=repr)
unable = pytest.mark.parametrize("policy", UNABLE, ids=repr)


def told(play: PendingPlay, number: int, high: float = 1.0) -> dict[str, Any]:
    """Return some losses for every unit of a play, by name; the same for the same number."""
    rng = np.random.default_rng(number)
    served = {name: units for name, units in play.plan.items() if not name.startswith("unmet")}
    return {name: (high * rng.random(units)).tolist() for name, units in served.items()}


def dump(learner: Learner) -> Any:
    """Return everything that a learner holds, as it would be saved."""
    header, arrays = learner_files.record_of(learner.replica, learner.journal)
    content = {k: (v.dtype.str, v.shape, v.tobytes()) for k, v in arrays.items()}
    return json.dumps(header), content


def believed(learner: Learner) -> FloatArray:
    """Return the believed cost of a unit of every arm ever met."""
    return learner.arms()["mean"].to_numpy(dtype=float)


def unchanged(
    learner: Learner, argument: str, verb: Callable[..., object], *given: Any, **options: Any
) -> None:
    """Expect a refusal, and that nothing at all is different after it."""
    before = dump(learner)
    with refused(argument):
        verb(*given, **options)
    assert dump(learner) == before


def played(policy: Policy, rounds: int = 6, **options: Any) -> Learner:
    """Return a learner that has played on several sets."""
    learner = Learner(PLANS, policy, seed=3, **options)
    for t in range(rounds):
        play = learner.ask([PLANS, BUSY, CLOSED][t % 3], at=1000.0 * t)
        learner.tell(play.id, told(play, t), at=1000.0 * t + 500)
    return learner


# ---------------------------------------------------------------- the set of today


@able
def test_any_set_over_known_and_new_arms_can_be_played(policy: Policy) -> None:
    learner = Learner(PLANS, policy, seed=1, varying_set=True)
    bigger = Transport([40, 35], [50, 25], names=TOWNS)
    other = mp.Budget(3, [2, 2], names=["Lille->south", "Lyon->north"])
    sets = [BUSY, CLOSED, bigger, SHORT, PLANS, other, Transport([0, 0], [0, 0], names=TOWNS)]
    sets += [mp.Budget(4, [4], names=["Lyon->south"]), mp.Budget(2, [1, 1], names=LANES[:2])]
    for t, today in enumerate(sets * 2):
        play = learner.ask(today)
        assert today.contains(play.action)
        assert [name for name in play.plan if name in today.names] == list(today.names)
        learner.tell(play.id, told(play, t))
    assert set(learner.arms()["arm"]) == {*LANES, *BUSY.names}
    assert all(np.isfinite(array).all() for array in learner.state.values())


@able
def test_sets_of_different_classes_share_their_arms(policy: Policy) -> None:
    learner = Learner(mp.Budget(3, [3, 3], names=["a", "b"]), policy)
    for t in range(4):
        for today in (None, mp.Explicit([[0, 3], [2, 2]], names=["b", "a"])):
            play = learner.ask(today)
            learner.tell(play.id, told(play, t))
    assert learner.arms()["seen"].sum() == learner.plays()["units"].sum()


def test_beliefs_do_not_depend_on_the_order_of_the_arms() -> None:
    """Losses of 0 and 1 leave nothing to the coins."""
    turned = mp.Explicit(PLANS.enumerate()[:, ::-1], names=LANES[::-1])
    one, other = Learner(PLANS, mp.GenCTS(), seed=1), Learner(PLANS, mp.GenCTS(), seed=1)
    for t in range(6):
        plan = PLANS.enumerate()[t % 2]
        losses = {
            name: [float(i % 2)] * int(k)
            for i, (name, k) in enumerate(zip(LANES, plan, strict=True))
        }
        for learner, today in ((one, None), (other, turned)):
            learner.learn(dict(zip(LANES, plan.tolist(), strict=True)), losses, actions=today, at=t)
    pd.testing.assert_frame_equal(one.arms(), other.arms())
    assert one.best().plan == other.best().plan
    assert one.best(turned).plan == one.best().plan


def test_a_new_arm_knows_what_it_would_have_known_all_along() -> None:
    """It is added when it comes; a learner that had it closed from the start knows the same."""
    wide = BUSY.names
    both = []
    for usual in (
        PLANS,
        mp.Explicit(np.pad(PLANS.enumerate(), [(0, 0), (0, 2)]), names=(*LANES, *wide[-2:])),
    ):
        learner = Learner(usual, mp.GenLBINFV(), seed=2)
        for t in range(5):
            play = learner.ask(PLANS)
            learner.tell(play.id, told(play, t))
        play = learner.ask(BUSY)
        both.append((play.plan, learner.state["L"], learner.state["q"]))
    assert both[0][0] == both[1][0]
    np.testing.assert_allclose(both[0][1], both[1][1])
    np.testing.assert_allclose(both[0][2], both[1][2])


@unable
def test_a_policy_for_one_set_says_so(policy: Policy) -> None:
    with refused("policy: expected a policy for changing sets, because varying_set=True"):
        Learner(PLANS, policy, varying_set=True)
    learner = Learner(PLANS, policy)
    needed = "expected the set of the learner"
    unchanged(learner, f"actions: {needed}", lambda: learner.ask(BUSY))
    unchanged(learner, f"exclude: {needed}", lambda: learner.ask(exclude=["Lyon->north"]))
    unchanged(learner, "at_most", lambda: learner.ask(at_most={"Lyon->north": 1}))
    assert sum(learner.ask(PLANS, exclude=[]).plan.values()) == 5


class Forgetful(mp.OracleSet):
    """A set that does not keep its settings."""

    def __init__(self, people: int) -> None:
        self._people = people
        super().__init__(d=2)

    def solve(self, costs: FloatArray) -> Any:
        return self._people * (np.arange(2) == costs.argmin())


class Crew(mp.OracleSet):
    """Some people of one of two kinds."""

    def __init__(self, people: int = 2) -> None:
        self.people = people
        super().__init__(d=2)

    def solve(self, costs: FloatArray) -> Any:
        return self.people * (np.arange(2) == costs.argmin())


BAD_DAYS: dict[str, Any] = {
    "no set": [1, 2],
    "a class": Transport,
    "no common arm": mp.Budget(2, [1, 1], names=["Nice", "Metz"]),
    "another sense": Transport([2, 3], [4, 1], names=TOWNS, sense="max"),
    "sets that change": mp.TimeVarying([PLANS, CLOSED]),
}


@pytest.mark.parametrize("day", BAD_DAYS.values(), ids=BAD_DAYS)
def test_bad_days_are_refused(day: Any) -> None:
    learner = played(mp.GenCTS())
    for verb in (learner.ask, learner.best):
        unchanged(learner, "actions", verb, day)
    unchanged(learner, "actions", lambda: learner.learn([0, 0], [0, 0], actions=day))
    unchanged(learner, "actions", lambda: learner.expect([0, 0], actions=day))


def test_a_day_that_could_not_be_loaded_is_refused() -> None:
    learner = Learner(mp.Budget(2, [2, 2]), mp.GenCTS())
    unchanged(learner, "actions.Forgetful", lambda: learner.ask(Forgetful(2)))
    unchanged(learner, "actions: expected a class of multiplay", lambda: learner.ask(Crew(2)))
    assert sum(Learner(Crew(2), mp.GenCTS()).ask(Crew(3)).plan.values()) == 3


def test_a_shortage_without_a_penalty_says_what_to_write() -> None:
    with pytest.raises(mp.InvalidInput, match=r"write shortage=\.\.\., what each unmet unit costs"):
        Transport([1, 2], [3, 2], names=TOWNS)


@able
def test_a_day_without_units_is_a_plan_of_zeros(policy: Policy) -> None:
    learner = Learner(PLANS, policy, loss_range=(0, 250))
    play = learner.ask(Transport([0, 0], [0, 0], names=TOWNS))
    assert set(play.plan.values()) == {0}
    assert play.expected == (0.0, 0.0, 0.0)
    assert str(learner.tell(play.id, {})) == "play 1: 0 of 0 units seen"
    assert learner.plays()["realised"].tolist() == [0.0]
    assert learner.ask().expected.total == pytest.approx(5 * 125)


# ---------------------------------------------------------------- limits


LIMITS: list[dict[str, Any]] = [
    {"at_most": {"Lyon->north": 1}},
    {"exclude": ["Lyon->south"]},
    {"exclude": np.array(["Lyon->south"])},
    {"exclude": (name for name in ["Lyon->south"])},
    {"fixed": {"Lyon->north": 1}},
    {"fixed": {"Lyon->north": 1}, "at_most": {"Lyon->north": 1, "Lille->south": 4}},
    {"at_most": {}, "exclude": [], "fixed": {}},
]


@pytest.mark.parametrize("number", range(len(LIMITS)))
@pytest.mark.parametrize("today", [None, BUSY], ids=["usual", "busy"])
def test_plans_keep_the_limits(number: int, today: ActionSet | None) -> None:
    limits = LIMITS[number]
    if "exclude" in limits:
        limits = limits | {"exclude": list(LIMITS[number]["exclude"]) or ["Lyon->south"]}
    learner = played(mp.GenCTS())
    for t in range(5):
        play = learner.ask(today, **limits)
        assert (today or PLANS).contains(play.action)
        assert all(play.plan[arm] <= k for arm, k in limits.get("at_most", {}).items())
        assert all(play.plan[arm] == k for arm, k in limits.get("fixed", {}).items())
        assert not any(play.plan[arm] for arm in limits.get("exclude", ()))
        learner.tell(play.id, told(play, t))


def test_best_keeps_the_limits() -> None:
    learner = played(mp.GenCTS())
    means = dict(zip(learner.arms()["arm"], believed(learner), strict=True))
    allowed = [plan for plan in PLANS.enumerate() if plan[0] == 1]
    costs = [plan @ [means[name] for name in LANES] for plan in allowed]
    best = learner.best(fixed={"Lyon->north": 1})
    assert best.action.tolist() == allowed[int(np.argmin(costs))].tolist()
    assert best.expected.total == pytest.approx(min(costs))


BAD_LIMITS: dict[str, tuple[str, dict[str, Any]]] = {
    "unknown": ("at_most", {"at_most": {"Nice->north": 1}}),
    "unknown excluded": ("exclude", {"exclude": ["Nice->north"]}),
    "unknown fixed": ("fixed", {"fixed": {"Nice->north": 1}}),
    "number as a name": ("exclude", {"exclude": [0]}),
    "a text": ("exclude", {"exclude": "Lyon->north"}),
    "no list": ("exclude", {"exclude": 3}),
    "no dict": ("at_most", {"at_most": [1, 1, 1, 1]}),
    "negative": ("at_most['Lyon->north']", {"at_most": {"Lyon->north": -1}}),
    "fractional": ("fixed['Lyon->north']", {"fixed": {"Lyon->north": 0.5}}),
    "bool": ("fixed['Lyon->north']", {"fixed": {"Lyon->north": True}}),
    "nan": ("at_most['Lyon->north']", {"at_most": {"Lyon->north": np.nan}}),
    "more than there is": ("fixed", {"fixed": {"Lyon->north": 9}}),
    "fixed above at_most": (
        "fixed['Lyon->north']",
        {"fixed": {"Lyon->north": 2}, "at_most": {"Lyon->north": 1}},
    ),
    "fixed and excluded": (
        "fixed['Lyon->north']",
        {"fixed": {"Lyon->north": 2}, "exclude": ["Lyon->north"]},
    ),
    "against the set": ("fixed", {"fixed": {"Lyon->north": 2, "Lyon->south": 1}}),
    "nothing left": ("exclude", {"exclude": ["Lyon->north", "Lille->north"]}),
}


@pytest.mark.parametrize(("argument", "limits"), BAD_LIMITS.values(), ids=BAD_LIMITS)
def test_bad_limits_are_refused(argument: str, limits: dict[str, Any]) -> None:
    learner = played(mp.GenCTS())
    unchanged(learner, argument, lambda: learner.ask(**limits))
    unchanged(learner, argument, lambda: learner.best(**limits))


def test_limits_may_be_a_series() -> None:
    one: Any = pd.Series({"Lyon->north": 1})
    learner = played(mp.GenCTS())
    assert learner.ask(fixed=one).plan["Lyon->north"] == 1


def test_limits_of_arms_that_are_not_there_today_are_refused() -> None:
    learner = played(mp.GenCTS())
    unchanged(learner, "exclude", lambda: learner.ask(exclude=["Metz->north"]))
    assert learner.ask(BUSY, exclude=["Metz->north"]).plan["Metz->north"] == 0


# ---------------------------------------------------------------- money


@able
def test_euros_give_the_plans_of_losses_from_0_to_1(policy: Policy) -> None:
    """256 divides exactly, so that everything is the same bit for bit."""
    one, euros = Learner(PLANS, policy, seed=4), Learner(PLANS, policy, seed=4, loss_range=(0, 256))
    for t in range(12):
        today = [PLANS, BUSY, CLOSED][t % 3]
        play, same = one.ask(today), euros.ask(today)
        assert play.plan == same.plan
        assert [256 * value for value in play.expected] == pytest.approx(list(same.expected))
        losses = told(play, t)
        if t % 2:
            losses = {name: float(sum(units)) for name, units in losses.items()}
        one.tell(play.id, losses)
        euros.tell(same.id, {k: (256 * np.array(v)).tolist() for k, v in losses.items()})
    assert all((one.state[k] == euros.state[k]).all() for k in one.state)
    for column in ("mean", "low", "high"):
        np.testing.assert_allclose(256 * one.arms()[column], euros.arms()[column], rtol=1e-12)
    for column in ("expected", "realised"):
        np.testing.assert_allclose(256 * one.plays()[column], euros.plays()[column], rtol=1e-12)
    assert euros.best().expected.total == pytest.approx(256 * one.best().expected.total)


PATH = mp.Path([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")], "s", "t")
UNEVEN: dict[str, ActionSet] = {
    "knapsack": mp.Knapsack([3, 4, 5], 10, limits=2),
    "surplus": Transport([3, 3], [2, 2], surplus=True),
    "path": PATH,
    "budget": mp.Budget(5, [3, 3, 2], at_most=True, sense="max"),
    "transport": PLANS,
    "explicit": mp.Explicit([[0, 1, 4], [2, 2, 0], [1, 0, 0]]),
}


def by_arm(actions: ActionSet, low: float = 50) -> dict[str, tuple[float, float]]:
    return {name: (low - 20 * i, 150 + 7 * i) for i, name in enumerate(actions.names)}


@pytest.mark.parametrize(
    "policy", [mp.GenCTS(), mp.CombUCB(), mp.GenLBINFV(), mp.Hybrid()], ids=repr
)
@pytest.mark.parametrize("named", [False, True], ids=["one range", "by arm"])
@pytest.mark.parametrize("kind", UNEVEN)
def test_the_best_plan_is_the_one_of_least_euros(kind: str, named: bool, policy: Policy) -> None:
    actions = UNEVEN[kind]
    ranges: Any = by_arm(actions) if named else (50, 250)
    learner = Learner(actions, policy, seed=5, loss_range=ranges)
    bounds = np.array([ranges[name] if named else ranges for name in actions.names])
    rng = np.random.default_rng(1)
    for _ in range(15):
        play = learner.ask()
        euros = [
            (lo + (hi - lo) * rng.random(k)).tolist()
            for k, (lo, hi) in zip(play.action, bounds, strict=True)
        ]
        learner.tell(play.id, euros)
        assert learner.plays()["realised"].iloc[-1] == pytest.approx(sum(map(sum, euros)))
    unit_costs = believed(learner)
    assert ((bounds[:, 0] <= unit_costs) & (unit_costs <= bounds[:, 1])).all()
    everything = actions.enumerate()
    total = everything @ unit_costs
    best = learner.best()
    assert best.expected.total == pytest.approx(
        (total.min if actions.sense == "min" else total.max)()
    )
    assert best.expected.low <= best.expected.total <= best.expected.high
    for plan, cost in zip(everything, total, strict=True):
        assert learner.expect(plan).total == pytest.approx(cost)


def test_thompson_draws_count_the_known_part_of_the_losses() -> None:
    """A unit costs 100 to 101: the plan with the fewest units is the best one, whatever comes."""
    actions = mp.Explicit([[0, 1, 4], [2, 2, 0], [1, 0, 0]])
    for policy in (mp.GenCTS(), mp.GaussianCTS(), mp.FPLIX()):
        learner = Learner(actions, policy, seed=5, loss_range=(100, 101))
        for t in range(10):
            play = learner.ask()
            learner.tell(play.id, [[100.5] * k for k in play.action])
            assert t < 3 or play.action.tolist() == [1, 0, 0]


@unable
def test_ranges_above_0_need_a_policy_that_can_count_them(policy: Policy) -> None:
    uneven = mp.Explicit([[0, 1], [2, 0]])
    with refused("loss_range: expected ranges from 0"):
        Learner(uneven, policy, loss_range=(50, 250))
    Learner(PLANS, policy, loss_range=(50, 250))
    Learner(uneven, policy, loss_range=(0, 250))


BAD_RANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "nan": ("loss_range", {"loss_range": (0, np.nan)}),
    "infinite": ("loss_range", {"loss_range": (0, np.inf)}),
    "wider than floats": ("loss_range", {"loss_range": (-1e308, 1e308)}),
    "empty": ("loss_range", {"loss_range": (5, 5)}),
    "turned": ("loss_range", {"loss_range": (250, 0)}),
    "text": ("loss_range", {"loss_range": ("0", "250")}),
    "one text": ("loss_range", {"loss_range": "0-250"}),
    "bool": ("loss_range", {"loss_range": (False, True)}),
    "one number": ("loss_range", {"loss_range": 250}),
    "three numbers": ("loss_range", {"loss_range": (0, 1, 2)}),
    "unknown arm": ("loss_range", {"loss_range": {"Nice->north": (0, 1), "*": (0, 2)}}),
    "an arm without": ("loss_range", {"loss_range": {"Lyon->north": (0, 1)}}),
    "bad pair of an arm": (
        "loss_range['Lyon->north']",
        {"loss_range": {"Lyon->north": (1, 0), "*": (0, 2)}},
    ),
    "no arm": ("loss_range", {"loss_range": {}}),
    "outside": ("outside", {"reports": mp.Reports(outside="ignore")}),
    "outside bool": ("outside", {"reports": mp.Reports(outside=True)}),  # type: ignore[arg-type]
    "missing": ("missing", {"reports": mp.Reports(missing="drop")}),
    "reports": ("reports", {"reports": "clip"}),
    "words": ("words", {"words": "EUR"}),
    "varying_set": ("varying_set", {"varying_set": "no"}),
}


@pytest.mark.parametrize(("argument", "options"), BAD_RANGES.values(), ids=BAD_RANGES)
def test_bad_settings_are_refused(argument: str, options: dict[str, Any]) -> None:
    with refused(argument):
        Learner(PLANS, mp.GenCTS(), **options)


def test_a_range_is_for_units_that_add_up() -> None:
    with refused("loss_range"):
        Learner(mp.Coverage(4, [3, 1]), mp.GenCTS(), loss_range=(0, 250))
    learner = Learner(mp.Budget(4, [4, 4], sense="max"), mp.GenCTS(), loss_range=(0, 250))
    unchanged(learner, "loss_range", lambda: learner.ask(mp.Coverage(4, [3, 1])))


def test_coverage_is_expected_by_its_value() -> None:
    calls = mp.Coverage(4, [3, 1])
    learner = Learner(calls, mp.GenCTS())
    play = learner.ask()
    assert play.expected.total == pytest.approx(float(calls.value(play.action, [0.5, 0.5])))
    assert play.expected.low <= play.expected.total <= play.expected.high
    learner.tell(play.id, [[1.0] * k for k in play.action])
    assert np.isnan(learner.plays()["realised"]).all()
    best = learner.best()
    values = calls.value(calls.enumerate(), believed(learner))
    assert best.expected.total == pytest.approx(float(values.max()))


def test_a_loss_outside_is_refused_or_clipped_and_counted() -> None:
    strict = Learner(PLANS, mp.GenCTS(), loss_range=(0, 250))
    play = strict.ask()
    high = {name: [251.0] * k for name, k in play.plan.items()}
    unchanged(strict, "losses of", lambda: strict.tell(play.id, high))
    lax = Learner(PLANS, mp.GenCTS(), loss_range=(0, 250), reports=mp.Reports(outside="clip"))
    assert str(lax.tell(lax.ask().id, high)) == "play 1: 5 of 5 units seen, 5 clipped"
    assert "5 clipped" in repr(lax)
    assert lax.plays()["clipped"].tolist() == [5]
    assert lax.plays()["realised"].tolist() == [1250.0]
    assert lax.tell(1, high).repeated
    play = lax.ask()
    told = lax.tell(play.id, {name: -1.0 if k else 0.0 for name, k in play.plan.items()})
    assert told.clipped == sum(k > 0 for k in play.plan.values())
    learned = lax.learn(play.plan, {name: [-1.0] * k for name, k in play.plan.items()})
    assert learned.clipped == 5
    rows = lax.learn_table({"arm": [LANES[0]] * 2, "round": [1, 1], "loss": [10.0, 1e9]})
    assert rows.clipped == 1
    assert f"{5 + told.clipped + 6} clipped" in repr(lax)


def test_infinite_losses_are_never_clipped() -> None:
    lax = Learner(PLANS, mp.GenCTS(), loss_range=(0, 250), reports=mp.Reports(outside="clip"))
    play = lax.ask()
    bad = {name: [np.inf] * k for name, k in play.plan.items()}
    unchanged(lax, "losses", lambda: lax.tell(play.id, bad))
    table = {"arm": [LANES[0]], "round": [1], "loss": [np.inf]}
    unchanged(lax, "table: expected rows without", lambda: lax.learn_table(table))


def test_unmet_units_cost_their_penalty() -> None:
    learner = Learner(PLANS, mp.GenCTS(), loss_range=(0, 250))
    play = learner.ask(SHORT)
    assert {"unmet->north", "unmet->south"} < set(play.plan)
    assert sum(play.plan.values()) == 5
    assert play.expected.total == pytest.approx(3 * 125 + 2 * 40)
    learner.tell(play.id, {name: [100.0] * k for name, k in play.plan.items()})
    assert learner.plays()["realised"].tolist() == pytest.approx([3 * 100 + 2 * 40])
    assert learner.tell(play.id, {name: [100.0] * k for name, k in play.plan.items()}).repeated
    assert (
        learner.expect(play.plan, actions=SHORT).total
        == learner.expect(play.action, actions=SHORT).total
    )
    rewards = Learner(Transport([1, 2], [3, 2], shortage=40, sense="max"), mp.GenCTS())
    assert rewards.ask().expected.total == pytest.approx(3 * 0.5 - 2 * 40)


# ---------------------------------------------------------------- reports as they come


def asked(policy: Policy | None = None, **options: Any) -> tuple[Learner, PendingPlay]:
    """Return a learner that waits for 2 units of Lyon->north, 2 of Lille->north, 1 of its south."""
    learner = played(policy or mp.GenCTS(), **options)
    return learner, learner.ask(fixed={"Lyon->north": 2}, at=10_000)


FULL = {"Lyon->north": [0.25, 0.5], "Lille->north": [0.75, 1.0], "Lille->south": [0.0]}
GAPS: dict[str, Any] = {
    "none": [None, 0.5],
    "nan": [np.nan, 0.5],
    "array": np.array([np.nan, 0.5]),
    "pandas NA": [pd.NA, 0.5],
    "pandas array": pd.array([pd.NA, 0.5]),
    "pandas series": pd.Series([np.nan, 0.5]),
    "masked": np.ma.masked_array([9.0, 0.5], [True, False]),
    "not a time": [pd.NaT, 0.5],
    "mixed types": [None, np.float32(0.5)],
}


@pytest.mark.parametrize("gap", GAPS.values(), ids=GAPS)
def test_a_unit_that_did_not_report_is_missing(gap: Any) -> None:
    learner, play = asked()
    done = learner.tell(play.id, FULL | {"Lyon->north": gap})
    assert (done.seen, done.missing) == (4, 1)
    assert learner.tell(play.id, FULL | {"Lyon->north": [None, 0.5]}).repeated
    assert learner.plays()["seen"].iloc[-1] == 4
    assert learner.plays()["realised"].iloc[-1] == pytest.approx(0.5 + 1.75)


@able
def test_units_that_are_missing_teach_nothing_else(policy: Policy) -> None:
    """The same losses, seen in one place or another: all that is learned is what was seen."""
    states = []
    for gap in ([None, 0.5], [0.5, None]):
        learner, play = asked(policy)
        learner.tell(play.id, FULL | {"Lyon->north": gap})
        states.append(learner.state)
    assert all((states[0][name] == states[1][name]).all() for name in states[0])


@able
def test_an_arm_may_be_missing_for_long(policy: Policy) -> None:
    learner = Learner(PLANS, policy, reports=mp.Reports(missing="ignore"))
    for t in range(30):
        play = learner.ask()
        losses = told(play, t)
        losses.pop("Lille->north")
        learner.tell(play.id, losses)
    seen = learner.arms().set_index("arm")["seen"]
    assert seen["Lille->north"] == 0
    assert learner.plays()["seen"].sum() == seen.sum()
    assert all(np.isfinite(array).all() for array in learner.state.values())


@pytest.mark.parametrize(
    "losses",
    [
        {"Lyon->north": [0.25]},
        {"Lyon->north": [0.25], "Lille->north": None},
        {"Lyon->north": [0.25], "Lille->north": np.nan},
        pd.Series({"Lyon->north": [0.25], "Lille->north": pd.NA}),
        [[0.25], None, None, []],
    ],
    ids=range(5),
)
def test_what_is_left_out_is_refused_or_ignored(losses: Any) -> None:
    learner, play = asked()
    unchanged(learner, "losses of", lambda: learner.tell(play.id, losses))
    done = learner.tell(play.id, losses, missing="ignore")
    assert (done.seen, done.missing, done.final) == (1, 4, True)
    learner, play = asked(reports=mp.Reports(missing="ignore"))
    unchanged(learner, "losses of", lambda: learner.tell(play.id, losses, missing="refuse"))
    unchanged(learner, "missing", lambda: learner.tell(play.id, losses, missing="drop"))
    assert learner.tell(play.id, losses).missing == 4


def test_a_list_that_is_too_long_is_refused_anyway() -> None:
    learner, play = asked()
    long = FULL | {"Lyon->north": [0.5] * 3}
    for options in ({}, {"missing": "ignore"}, {"final": False}):
        unchanged(learner, "losses of", learner.tell, play.id, long, **options)
    unchanged(
        learner, "losses of", lambda: learner.tell(play.id, {"Lyon->south": [0.5]}, final=False)
    )
    unchanged(learner, "final", learner.tell, play.id, FULL, final="no")


PARTS: dict[str, list[Any]] = {
    "arm by arm": [{name: units} for name, units in FULL.items()],
    "by position": [
        {"Lyon->north": [None, 0.5]},
        {"Lyon->north": [0.25, None], "Lille->north": [0.75, None]},
        {"Lille->south": [0.0], "Lille->north": [None, 1.0]},
    ],
    "filling": [
        {"Lyon->north": [0.25], "Lille->north": [0.75]},
        {"Lyon->north": [0.5]},
        {"Lille->north": [1.0], "Lille->south": [0.0]},
    ],
    "filling what is free": [
        {"Lyon->north": [None, 0.5], "Lille->north": [None, 1.0]},
        {"Lyon->north": [0.25], "Lille->south": [0.0]},
        {"Lille->north": [0.75]},
    ],
    "again and more": [
        {"Lyon->north": [0.25, None]},
        {"Lyon->north": [0.25, 0.5], "Lille->south": [0.0]},
        FULL,
    ],
    "nothing at first": [{}, FULL, {}],
}


@able
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_parts_teach_what_the_whole_teaches(
    parts: list[Any], policy: Policy, tmp_path: Path
) -> None:
    whole, play = asked(policy)
    whole.tell(play.id, FULL, at=11_000)
    learner, play = asked(policy)
    for number, part in enumerate(parts):
        assert not learner.tell(play.id, part, final=False, at=10_500).final
        again = learner.tell(play.id, part, final=False, at=10_600)
        assert again.repeated, "the same part again"
        learner.save(tmp_path / "learner")
        assert number == 0 or learner.pending()
    done = learner.close(play.id, at=11_000)
    assert (done.seen, done.missing, done.final) == (5, 0, True)
    assert all((learner.state[name] == whole.state[name]).all() for name in whole.state)
    assert learner.rng.state.tolist() == whole.rng.state.tolist()
    pd.testing.assert_frame_equal(learner.arms(), whole.arms())
    pd.testing.assert_frame_equal(learner.plays(), whole.plays())
    assert learner.tell(play.id, parts[0]).repeated


def test_the_last_part_closes_and_must_leave_nothing_open() -> None:
    learner, play = asked()
    learner.tell(play.id, {"Lyon->north": [0.25, None]}, final=False)
    unchanged(
        learner, "losses of 'Lille->north'", lambda: learner.tell(play.id, {"Lille->south": [0.0]})
    )
    done = learner.tell(play.id, {"Lille->south": [0.0], "Lille->north": [0.75, 1.0]})
    assert (done.seen, done.missing, done.repeated) == (4, 1, False), "None said that it is missing"
    assert learner.pending() == []


def test_the_same_part_may_be_the_last_one() -> None:
    learner, play = asked()
    learner.tell(play.id, FULL, final=False)
    done = learner.tell(play.id, FULL)
    assert (done.final, done.seen, done.repeated) == (True, 5, False)
    assert learner.tell(play.id, FULL).repeated


CONFLICTS: dict[str, tuple[Any, Any]] = {
    "another loss": ({"Lyon->north": [0.25, None]}, {"Lyon->north": [0.5, 0.5]}),
    "too many": ({"Lyon->north": [0.25, 0.5]}, {"Lyon->north": [0.5]}),
    "a total after units": ({"Lyon->north": [0.25, None]}, {"Lyon->north": 0.75}),
    "units after a total": ({"Lyon->north": 0.75}, {"Lyon->north": [0.25, 0.5]}),
    "one unit after a total": ({"Lyon->north": 0.75}, {"Lyon->north": [0.25]}),
    "another total": ({"Lyon->north": 0.75}, {"Lyon->north": 0.5}),
}


@pytest.mark.parametrize(("first", "second"), CONFLICTS.values(), ids=CONFLICTS)
def test_parts_that_contradict_are_refused(first: Any, second: Any) -> None:
    learner, play = asked()
    learner.tell(play.id, first, final=False)
    for final in (True, False):
        unchanged(learner, "losses of 'Lyon->north'", learner.tell, play.id, second, final=final)


def test_a_total_after_nothing_but_gaps_is_the_total() -> None:
    learner, play = asked()
    learner.tell(play.id, {"Lyon->north": [None, None]}, final=False)
    learner.tell(play.id, {"Lyon->north": 0.75}, final=False)
    assert learner.tell(play.id, {"Lille->north": 1.75, "Lille->south": 0.0}).seen == 5
    assert learner.plays()["realised"].iloc[-1] == 2.5


FORMS: dict[str, Any] = {
    "dict": {"Lyon->north": 0.75, "Lyon->south": 0.0, "Lille->north": 1.75, "Lille->south": 0.0},
    "dict of what was played": {"Lyon->north": 0.75, "Lille->north": 1.75, "Lille->south": 0},
    "list": [0.75, 0, 1.75, 0.0],
    "numpy": np.array([0.75, 0.0, 1.75, 0.0]),
    "series": pd.Series([0.75, 0.0, 1.75, 0.0], index=LANES),
    "turned series": pd.Series([0.75, 0.0, 1.75, 0.0], index=LANES)[::-1],
    "with a gap": {
        "Lyon->north": 0.75,
        "Lyon->south": np.nan,
        "Lille->north": 1.75,
        "Lille->south": 0,
    },
}
UNIT_FORMS: dict[str, Any] = {
    "dict": FULL,
    "list": [[0.25, 0.5], [], [0.75, 1.0], [0.0]],
    "numpy": {name: np.array(units) for name, units in FULL.items()},
    "series": pd.Series(FULL),
    "tuples": [(0.25, 0.5), None, (0.75, 1), (0,)],
}


@pytest.mark.parametrize("forms", [FORMS, UNIT_FORMS], ids=["totals", "units"])
def test_the_same_report_in_another_form_is_the_same(forms: dict[str, Any], tmp_path: Path) -> None:
    for first in forms.values():
        learner, play = asked()
        learner.tell(play.id, first)
        learner.save(tmp_path / "learner")
        for one in (learner, Learner.load(tmp_path / "learner")):
            before = dump(one)
            for again in forms.values():
                done = one.tell(play.id, again)
                assert done.repeated
                assert (done.seen, done.missing) == (5, 0)
            assert dump(one) == before
            unchanged(one, "play: expected a pending play", one.tell, play.id, [0.75, 0, 1.5, 0])


def test_a_total_of_zero_in_a_later_part_is_not_lost() -> None:
    learner, play = asked()
    learner.tell(play.id, {"Lyon->north": 0.75}, final=False)
    done = learner.tell(play.id, {"Lyon->north": 0.75, "Lille->south": 0.0}, final=False)
    assert (done.seen, done.repeated) == (3, False)


def test_a_play_that_nobody_reports_is_closed_or_cancelled() -> None:
    learner, play = asked()
    done = learner.close(play.id)
    assert (done.seen, done.missing) == (0, 5)
    unchanged(learner, "play", lambda: learner.close(play.id))
    unchanged(learner, "play", lambda: learner.cancel(play.id))
    learner, play = asked()
    learner.cancel(play.id)
    assert learner.plays()["status"].iloc[-1] == "cancelled"
    for verb in (learner.cancel, learner.close, lambda id: learner.tell(id, FULL)):
        unchanged(learner, "play: expected a pending play", verb, play.id)
        for id in (None, "1", 1.0, True, 99, -1, [1]):
            unchanged(learner, "play", verb, id)


def test_cancelling_teaches_nothing() -> None:
    learner = played(mp.GenCTS())
    before = {name: array.copy() for name, array in learner.state.items()}
    learner.cancel(learner.ask().id)
    assert all((learner.state[name] == before[name]).all() for name in before)
    assert len(learner.arms()) == 6


def test_old_plays_expire() -> None:
    learner = Learner(PLANS, mp.GenCTS())
    plays = [learner.ask(at=100.0 * t) for t in range(4)]
    some = next(name for name, units in plays[1].plan.items() if units)
    learner.tell(plays[1].id, {some: told(plays[1], 1)[some]}, final=False)
    assert learner.expire(timedelta(seconds=1000), at=300) == []
    assert learner.expire(250.0, at=400) == [1, 2]
    assert learner.plays()["status"].tolist()[:2] == ["cancelled", "told"]
    assert learner.expire(0, at=datetime(1970, 1, 1, 0, 5, 1, tzinfo=UTC)) == [3, 4]
    assert learner.expire(timedelta(days=1)) == []
    for age in (-1, timedelta(days=-1), np.nan, "1 day", None, True):
        unchanged(learner, "older_than", learner.expire, age)
    for time in ("today", np.inf, np.nan, True, [1], 1e300, datetime(9999, 1, 1)):
        unchanged(learner, "at", learner.expire, 1, at=time)
        unchanged(learner, "at", learner.ask, at=time)


@unable
def test_expiring_closes_what_was_told_in_full(policy: Policy) -> None:
    learner = Learner(PLANS, policy)
    whole, part = learner.ask(at=0), learner.ask(at=0)
    learner.tell(whole.id, told(whole, 1), final=False)
    some = next(name for name, units in part.plan.items() if units)
    learner.tell(part.id, {some: told(part, 1)[some]}, final=False)
    assert learner.expire(1) == [1, 2]
    assert learner.plays()["status"].tolist() == ["told", "cancelled"]


@unable
def test_who_needs_all_units_refuses_gaps(policy: Policy) -> None:
    with refused("policy: expected a policy that allows missing units"):
        Learner(PLANS, policy, reports=mp.Reports(missing="ignore"))
    learner = Learner(PLANS, policy)
    play = learner.ask()
    gaps = {name: [None] * units for name, units in play.plan.items()}
    unchanged(learner, "losses", lambda: learner.tell(play.id, gaps))
    unchanged(learner, "losses", lambda: learner.tell(play.id, {}, missing="ignore"))
    unchanged(learner, "losses", lambda: learner.close(play.id))
    assert learner.tell(play.id, told(play, 1)).seen == 5


def test_one_number_for_the_round_may_come_before_the_last_part(tmp_path: Path) -> None:
    learner = Learner(PLANS, mp.LinTS(), loss_range=(0, 100))
    play = learner.ask()
    learner.tell(play.id, {}, final=False)
    assert str(learner.tell(play.id, 250.0, final=False)).endswith("open for more")
    unchanged(learner, "losses", lambda: learner.tell(play.id, 251.0))
    unchanged(learner, "losses", lambda: learner.tell(play.id, told(play, 1), final=False))
    unchanged(learner, "losses", lambda: learner.tell(play.id, 501.0))
    learner.save(tmp_path / "learner")
    for one in (learner, Learner.load(tmp_path / "learner")):
        assert one.close(play.id).seen == 5
        assert one.plays()["realised"].tolist() == [250.0]
        assert one.tell(play.id, 250).repeated
        with refused("play"):
            one.tell(play.id, 249.0)


def test_unmet_units_may_be_named_in_a_report(tmp_path: Path) -> None:
    learner = Learner(PLANS, mp.GenCTS())
    play = learner.ask(SHORT)
    losses = {name: [0.5] * units for name, units in play.plan.items()}
    assert learner.tell(play.id, losses).seen == 3
    learner.save(tmp_path / "learner")
    for one in (learner, Learner.load(tmp_path / "learner")):
        assert one.tell(play.id, losses).repeated
    usual = learner.ask()
    unchanged(
        learner, "losses", lambda: learner.tell(usual.id, told(usual, 1) | {"unmet->north": []})
    )


# ---------------------------------------------------------------- plans of others


def test_plans_of_others_are_counted() -> None:
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    ones = {name: [1.0] * units for name, units in plan.items()}
    for policy in (mp.GenCTS(), mp.CombUCB()):
        learner = Learner(PLANS, policy, seed=1)
        ways: list[Any] = [plan, [2, 0, 2, 1], pd.Series(plan)]
        for way in ways:
            assert str(learner.learn(way, ones)) == "an external plan: 5 of 5 units seen"
        counted = learner.state["p"] - 1 if isinstance(policy, mp.GenCTS) else learner.state["sum"]
        assert counted.tolist() == [[6, 0, 6, 3]]
        assert learner.arms()["seen"].tolist() == [6, 0, 6, 3]
        assert learner.arms()["share"].tolist() == [1, 0, 1, 1]
        assert len(learner.plays()) == 0


@pytest.mark.parametrize(
    "policy", [mp.GenLBINFV(), mp.Hybrid(), mp.GenLBINFV(horizon=60)], ids=repr
)
def test_leaders_learn_predictions_only_from_plans_of_others(policy: Policy) -> None:
    learner = played(policy)
    before, belief = {k: v.copy() for k, v in learner.state.items()}, learner.arms()["seen"]
    learner.learn([2, 0, 2, 1], [2.0, 0, 2.0, 1.0])
    learner.learn_table({"arm": LANES, "round": [1, 1, 2, 2], "loss": [1.0] * 4})
    changed = {name for name in before if not np.array_equal(before[name], learner.state[name])}
    assert changed <= {"q", "samples", "sum", "count"}
    assert changed
    assert learner.arms()["seen"].sum() == belief.sum() + 9


def test_a_plan_of_another_day_brings_its_arms() -> None:
    learner = Learner(PLANS, mp.GenCTS())
    plan = BUSY.enumerate()[0]
    learner.learn(plan, [float(k) for k in plan], actions=BUSY)
    assert len(learner.arms()) == 6
    assert learner.arms()["seen"].sum() == plan.sum()


BAD_PLANS: dict[str, tuple[str, Any, Any]] = {
    "not in the set": ("plan", [1, 1, 1, 1], [0.5] * 4),
    "unknown arm": ("plan", {"Nice->north": 1}, {}),
    "negative": ("plan['Lyon->north']", {"Lyon->north": -1}, {}),
    "fraction": ("plan['Lyon->north']", {"Lyon->north": 1.5}, {}),
    "too short": ("plan", [1, 1], [0, 0]),
    "text": ("plan", "everything", {}),
    "none": ("plan", None, {}),
    "too few losses": ("losses of 'Lyon->north'", [2, 0, 2, 1], {}),
    "out of range": ("losses", [2, 0, 2, 1], [9e199, 0, 0, 0]),
    "losses of an idle arm": ("losses of 'Lyon->south'", [2, 0, 2, 1], [0, 0.5, 0, 0]),
}


@pytest.mark.parametrize(("argument", "plan", "losses"), BAD_PLANS.values(), ids=BAD_PLANS)
def test_bad_plans_are_refused(argument: str, plan: Any, losses: Any) -> None:
    learner = played(mp.GenCTS())
    unchanged(learner, argument, lambda: learner.learn(plan, losses))
    if argument.startswith("plan"):
        unchanged(learner, argument, lambda: learner.expect(plan))


@unable
def test_who_cannot_learn_from_others_says_so(policy: Policy) -> None:
    learner = Learner(PLANS, policy)
    unchanged(learner, "policy", lambda: learner.learn([2, 0, 2, 1], [0, 0, 0, 0]))
    unchanged(learner, "policy", lambda: learner.learn_table({}))


def table(**columns: Any) -> pd.DataFrame:
    rows = {
        "arm": ["Lyon->north", "Lyon->north", "Lille->south"],
        "round": [2, 1, 1],
        "loss": [1.0, 0.0, 1.0],
    }
    return pd.DataFrame(rows | columns)


def test_years_of_history_are_learned(tmp_path: Path) -> None:
    table().rename(columns={"arm": "lane", "round": "day", "loss": "cost"}).to_csv(
        tmp_path / "a.csv"
    )
    gaps = {
        "none": table(loss=[1.0, None, 1.0]),
        "pandas": table(loss=pd.array([1, pd.NA, 1], dtype="Int64")),
        "floats": table(loss=pd.array([1.0, pd.NA, 1.0], dtype="Float64")),
    }
    for history, names, seen in [
        (table(), (), 3),
        (table().to_dict("list"), (), 3),
        (tmp_path / "a.csv", ("lane", "day", "cost"), 3),
        (table(round=pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-01"])), (), 3),
        *((one, (), 2) for one in gaps.values()),
    ]:
        learner = Learner(PLANS, mp.GenCTS())
        done = learner.learn_table(history, *names)
        assert (done.seen, done.missing) == (seen, 3 - seen)
        assert learner.state["p"].tolist() == [[2, 1, 1, 2]]
        assert learner.state["q"].sum() == 4 + seen - 2
        assert learner.policy_state.told == 0


PROBLEM = "table: expected rows without problems, got 1 row with a problem:\n  row "
BAD_TABLES: dict[str, tuple[str, Any]] = {
    "no arm": (PROBLEM + "1, arm is empty", table(arm=["Lyon->north", None, "Lyon->north"])),
    "text": (PROBLEM + "0, loss: 'cheap' is not a number", table(loss=["cheap", 1.0, 0.0])),
    "infinite": (PROBLEM + "0, loss: inf is not a finite number", table(loss=[np.inf, 1.0, 0.0])),
    "out of range": ("losses", table(loss=[2e200, 1.0, 0.0])),
    "no column": ("table", table().drop(columns="loss")),
    "no rows": ("table", table().iloc[:0]),
    "no table": ("table", 7),
    "no file": ("table", "nowhere.csv"),
    "labels": ("table['round']", table(round=[[1], [2], [3]])),
}


@pytest.mark.parametrize(("argument", "history"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_refused(argument: str, history: Any) -> None:
    learner = played(mp.GenCTS())
    unchanged(learner, argument, lambda: learner.learn_table(history))


# ---------------------------------------------------------------- beliefs


@able
def test_tables_have_their_columns(policy: Policy) -> None:
    for learner in (Learner(PLANS, policy), played(policy)):
        arms, plays, drift = learner.arms(), learner.plays(), learner.drift()
        assert {name: kind.kind for name, kind in arms.dtypes.items()} == {
            "arm": "O",
            "seen": "i",
            "mean": "f",
            "low": "f",
            "high": "f",
            "average": "f",
            "spread": "f",
            "last_seen": "M",
            "share": "f",
            "long_run": "f",
        }
        assert {name: kind.kind for name, kind in plays.dtypes.items()} == {
            "id": "i",
            "key": "O",
            "status": "O",
            "asked": "M",
            "told": "M",
            "units": "i",
            "seen": "i",
            "expected": "f",
            "realised": "f",
            "clipped": "i",
        }
        assert {name: kind.kind for name, kind in drift.dtypes.items()} == {
            "arm": "O",
            "since": "i",
            "before": "f",
            "after": "f",
            "units": "i",
            "sure": "f",
            "acted": "b",
            "certain": "b",
            "date": "M",
            "arms": "O",
        }
        assert (arms["low"] <= arms["high"]).all()
    assert arms["last_seen"].max() == datetime.fromtimestamp(5500, UTC)
    assert plays["told"].tolist()[0] == datetime.fromtimestamp(500, UTC)


@able
def test_the_best_plan_has_no_exploration_and_draws_nothing(policy: Policy) -> None:
    learner = played(policy)
    before = dump(learner)
    for today in (None, BUSY, SHORT):
        best = learner.best(today)
        assert best.plan == learner.best(today).plan
        assert best.expected == learner.expect(best.plan, actions=today)
        assert best.expected == learner.expect(best.action, actions=today)
        everything = (today or PLANS).enumerate()
        costs = [learner.expect(plan, actions=today).total for plan in everything]
        assert best.expected.total == pytest.approx(min(costs))
    assert dump(learner) == before
    assert learner.ask().plan.keys() == dict.fromkeys(LANES).keys()


def test_arms_that_were_never_met_are_not_added_by_looking() -> None:
    learner = Learner(PLANS, mp.GenCTS(), loss_range=(0, 100))
    assert learner.best(BUSY).expected.total == pytest.approx(8 * 50)
    assert len(learner.arms()) == 4


@able
def test_intervals_become_shorter(policy: Policy) -> None:
    learner, widths = Learner(PLANS, policy), []
    for t in range(60):
        play = learner.ask()
        learner.tell(play.id, told(play, t))
        if t in (4, 59):
            low, _, high = sorted(learner.expect([2, 0, 2, 1]))
            widths.append(high - low)
    forgets = getattr(policy, "discount", None) or getattr(policy, "window", None)
    assert widths[1] < widths[0] or forgets
    narrow, wide = learner.expect([2, 0, 2, 1], level=0.5), learner.expect([2, 0, 2, 1], level=0.99)
    assert wide.low <= narrow.low <= narrow.total <= narrow.high <= wide.high


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, np.nan, "0.95", None, True])
def test_a_level_is_a_probability(level: Any) -> None:
    learner = played(mp.GenCTS())
    unchanged(learner, "level", lambda: learner.arms(level))
    unchanged(learner, "level", lambda: learner.drift(level))
    unchanged(learner, "level", lambda: learner.expect([2, 0, 2, 1], level=level))


def test_what_was_seen_does_not_depend_on_when_somebody_looks() -> None:
    for policy in (mp.CombUCB(), mp.Duplicated(mp.GenCTS())):
        one, other = Learner(PLANS, policy, seed=1), Learner(PLANS, policy, seed=1)
        for t in range(40):
            for learner in (one, other):
                play = learner.ask(at=t)
                losses: Any = told(play, t)
                if t % 3 == 0 and policy.partial:
                    losses = {name: sum(units) for name, units in losses.items()}
                learner.tell(play.id, losses, at=t)
            one.arms()
            one.best()
        pd.testing.assert_frame_equal(one.arms(), other.arms(), check_exact=True)
        assert dump(one) == dump(other)


def test_averages_are_those_of_what_was_told() -> None:
    learner, sums = Learner(PLANS, mp.GenCTS(), loss_range=(0, 250)), dict.fromkeys(LANES, 0.0)
    units = dict.fromkeys(LANES, 0)
    for t in range(20):
        play = learner.ask()
        losses = told(play, t, high=250)
        learner.tell(play.id, losses)
        for name, entry in losses.items():
            sums[name] += sum(entry)
            units[name] += len(entry)
    arms = learner.arms().set_index("arm")
    for name in LANES:
        assert arms["seen"][name] == units[name]
        assert arms["average"][name] == pytest.approx(sums[name] / units[name])
        assert arms["low"][name] <= arms["mean"][name] <= arms["high"][name]
    assert (arms["share"] * 20).round(9).isin(range(21)).all()


@pytest.mark.parametrize(
    "policy",
    [mp.GenCTS(discount=0.9), mp.GenCTS(window=9), mp.CombUCB(window=9), mp.GaussianCTS(window=9)],
    ids=repr,
)
def test_who_forgets_shows_what_is_left(policy: Policy) -> None:
    learner = Learner(mp.Budget(40, [40], names=["Lyon"]), policy, loss_range=(0, 100))
    for t in range(60):
        learner.tell(learner.ask().id, [[10.0 if t < 30 else 90.0] * 40])
    (arm,) = learner.arms().to_dict("records")
    assert arm["low"] <= arm["mean"] <= arm["high"]
    assert arm["mean"] > 80
    assert learner.expect([40]).low > 40 * 60


def test_drift_is_shown_in_euros() -> None:
    learner = Learner(mp.Budget(4, [4], names=["Lyon"]), mp.GenCTS(), loss_range=(50, 250))
    for t in range(60):
        learner.tell(learner.ask().id, [[60.0 if t < 30 else 240.0] * 4])
    (alarm,) = learner.drift().to_dict("records")
    assert alarm["arm"] == "Lyon"
    assert (alarm["since"], alarm["units"]) == (30, 120)
    assert (alarm["before"], alarm["after"]) == (pytest.approx(60), pytest.approx(240))


@pytest.mark.parametrize("policy", [mp.LinTS(), mp.LinUCB()], ids=repr)
def test_regressions_know_what_plans_cost(policy: Policy) -> None:
    """Receipt noiseless totals of 10 to 40 euros a unit, they know the cost of every plan."""
    learner, euros = (
        Learner(PLANS, policy, seed=1, loss_range=(0, 50)),
        np.array([10.0, 40.0, 20.0, 30.0]),
    )
    assert np.isnan(learner.ask().expected).all()
    unchanged(
        learner,
        "policy: expected a policy that can estimate the cost of a plan",
        lambda: learner.best(),
    )
    unchanged(learner, "policy", lambda: learner.expect([2, 0, 2, 1]))
    for _ in range(30):
        play = learner.ask()
        learner.tell(play.id, float(play.action @ euros))
    everything = PLANS.enumerate()
    for plan in everything:
        outlook = learner.expect(plan)
        assert outlook.total == pytest.approx(plan @ euros)
        assert outlook.low < outlook.total < outlook.high
    assert learner.best().expected.total == pytest.approx((everything @ euros).min())
    assert learner.arms()["mean"].isna().all()


def test_who_knows_rounds_only_and_has_no_regression_says_so() -> None:
    for policy in (mp.ScaledScribble(horizon=100), mp.Duplicated(mp.LinTS())):
        learner = Learner(PLANS, policy)
        learner.tell(learner.ask().id, 2.0)
        with refused("policy: expected a policy that can estimate the cost of a plan"):
            learner.best()
        play = learner.ask()
        assert np.isnan(play.expected.total)
        learner.tell(play.id, told(play, 1))
        assert sum(learner.best().plan.values()) == 5


@able
def test_repr_says_something(policy: Policy) -> None:
    learner = Learner(PLANS, policy, loss_range={"Lyon->north": (0, 9), "*": (1, 2)})
    learner.ask()
    name = type(policy).__name__
    text = f"Learner({name} on 4 arms: 1 asked, 0 told, 1 pending, losses with ranges by arm)"
    assert repr(learner) == text
    assert f"({name} on 1 arm: " in repr(Learner(mp.Budget(1, [1]), policy))


# ---------------------------------------------------------------- keys


def test_a_key_gives_the_same_play_for_the_same_request(tmp_path: Path) -> None:
    learner = Learner(PLANS, mp.GenCTS(), loss_range=(0, 250))
    plays = {key: learner.ask(SHORT, key=key) for key in ("pending", "told")}
    learner.tell(plays["told"].id, told(plays["told"], 1))
    learner.save(tmp_path / "learner")
    for one in (learner, Learner.load(tmp_path / "learner")):
        before, asked = dump(one), one.plays().set_index("key")["expected"]
        for key, play in plays.items():
            again = one.ask(SHORT, key=key)
            assert (again.id, again.plan, again.key) == (play.id, play.plan, key)
            assert (again.action == play.action).all()
            assert again.repeated
            assert not play.repeated
            if key != "pending":  # a pending play is estimated again
                assert again.expected.total == asked[key] == pytest.approx(3 * 125 + 80)
            for other in ({"actions": BUSY}, {"actions": SHORT, "exclude": ["Lyon->north"]}, {}):
                with pytest.raises(Conflict, match="planned on") as caught:
                    one.ask(key=key, **other)
                assert caught.value.argument == "key"
        assert dump(one) == before
        assert one.plays()["key"].tolist() == list(plays)
        assert one.pending()[0].key == "pending"


@pytest.mark.parametrize("key", ["", 3, b"x", True, ["x"], datetime(2026, 11, 15)], ids=repr)
def test_a_key_is_a_text(key: Any) -> None:
    learner = played(mp.GenCTS())
    unchanged(learner, "key", lambda: learner.ask(key=key))


def test_a_plan_in_the_hands_of_the_caller_is_a_copy() -> None:
    learner = Learner(PLANS, mp.GenCTS())
    play = learner.ask(key="today")
    plan = dict(play.plan)
    learner.ask(key="today").plan.clear()
    learner.tell(play.id, told(play, 1))
    learner.ask(key="today").plan.clear()
    assert learner.ask(key="today").plan == plan


# ---------------------------------------------------------------- save and load


def busy_life(policy: Policy) -> Learner:
    """Return a learner in the middle of everything."""
    learner = Learner(
        PLANS, policy, seed=9, loss_range=(0, 250), reports=mp.Reports(outside="clip")
    )
    sets = [PLANS, BUSY, CLOSED, SHORT]
    for t in range(12):
        play = learner.ask(sets[t % 4], key=f"day {t}" if t % 2 else None, at=t)
        learner.tell(play.id, told(play, t, high=300), at=t + 0.5)
    learner.learn([2, 0, 2, 1], [1.0, 0, 2.0, 3.0], at=20)
    waits = [
        learner.ask(BUSY, exclude=["Metz->north"], at=21),
        learner.ask(SHORT, key="short", at=22),
        learner.ask(at_most={"Lyon->north": 1}, at=23),
        learner.ask(fixed={"Lyon->north": 2}, at=24),
        learner.ask(at=25),
    ]
    learner.tell(waits[3].id, {"Lyon->north": [999.0]}, final=False, at=26)
    name = next(name for name, units in waits[0].plan.items() if units)
    learner.tell(waits[0].id, {name: 1.0}, final=False, at=27)
    learner.cancel(waits[4].id)
    return learner


def life_goes_on(learner: Learner) -> list[Any]:
    """Go on; return the plans that come."""
    plans: list[Any] = []
    for number, play in enumerate(learner.pending()):
        learner.tell(play.id, {"Lille->north": None}, missing="ignore", at=30 + number)
    for t in range(12):
        play = learner.ask([BUSY, PLANS, SHORT, None][t % 4], at=40 + t)
        plans.append((play.plan, play.expected))
        learner.tell(play.id, told(play, t, high=260), at=40 + t)
    return plans


@able
def test_a_loaded_learner_goes_on_bit_for_bit(policy: Policy, tmp_path: Path) -> None:
    learner = busy_life(policy)
    learner.save(tmp_path / "learner")
    loaded = Learner.load(tmp_path / "learner")
    assert repr(loaded) == repr(learner)
    assert [p.plan for p in loaded.pending()] == [p.plan for p in learner.pending()]
    assert life_goes_on(loaded) == life_goes_on(learner)
    assert learner.state.keys() == loaded.state.keys()
    assert all((learner.state[name] == loaded.state[name]).all() for name in learner.state)
    for view in (Learner.arms, Learner.drift):
        pd.testing.assert_frame_equal(view(learner), view(loaded), check_exact=True)
    plays, others = (one.plays().drop(columns="id") for one in (learner, loaded))
    pd.testing.assert_frame_equal(plays, others, check_exact=True)
    assert learner.rng.state.tolist() == loaded.rng.state.tolist()


def test_saving_twice_writes_the_same(tmp_path: Path) -> None:
    learner = busy_life(mp.GenLBINFV())
    learner.save(tmp_path / "learner")
    loaded = Learner.load(tmp_path / "learner")
    header, arrays = dump(learner)
    again, others = dump(loaded)
    one, other = json.loads(header), json.loads(again)
    assert one == other
    assert arrays == others


def test_ids_are_never_issued_twice_after_a_crash(tmp_path: Path) -> None:
    learner = played(mp.GenCTS())
    learner.save(tmp_path / "learner")
    ids = {Learner.load(tmp_path / "learner").ask().id for _ in range(200)}
    ids |= set(learner.plays()["id"])
    assert len(ids) == 200 + 6
    assert max(ids) < 2**53, "exact as a float, in JSON and in JavaScript"


def test_blocks_of_ids_without_a_play_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    played(mp.GenCTS()).save(path)
    for _ in range(5):
        learner = Learner.load(path)
        learner.save(path)
    first = learner.ask()
    learner.save(path)
    last = Learner.load(path)
    second = last.ask()
    for play in (first, second):
        assert last.tell(play.id, told(play, 1)).seen == 5
    assert last.plays()["id"].tolist() == [1, 2, 3, 4, 5, 6, first.id, second.id]


class Mine(Policy):
    """A policy of the user's own that plays on any set: the least average so far."""

    changing = True
    partial = True
    absorbs = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"paid": np.zeros((trials, actions.d)), "rounds": np.zeros(trials)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        return mp.Play(actions.best(state["paid"] + rng.random(state["paid"].shape)))

    def update(
        self, actions: ActionSet, state: Arrays, play: mp.Play, feedback: mp.Feedback, rng: Rng
    ) -> None:
        self.absorb(actions, state, feedback, rng)
        state["rounds"] += 1

    def absorb(self, actions: ActionSet, state: Arrays, feedback: mp.Feedback, rng: Rng) -> None:
        state["paid"] += feedback.mean


def test_classes_of_the_user_are_passed_again(tmp_path: Path) -> None:
    learner, path = Learner(Crew(2), Mine(), loss_range=(0, 10)), tmp_path / "learner"
    waits = [learner.ask(), learner.ask(Crew(3)), learner.ask(mp.Budget(2, [2, 2]))]
    learner.save(path)
    with refused("actions"):
        Learner.load(path)
    with refused("policy"):
        Learner.load(path, actions=Crew(2))
    with refused("actions"):
        Learner.load(path, actions=Crew(3), policy=Mine())
    loaded = Learner.load(path, actions=Crew(2), policy=Mine())
    for one in (learner, loaded):
        for t, play in enumerate(waits):
            one.tell(play.id, told(play, t))
    for t in range(5):
        play, same = learner.ask(Crew(t + 1)), loaded.ask(Crew(t + 1))
        assert play.plan == same.plan
        learner.tell(play.id, told(play, t))
        loaded.tell(same.id, told(play, t))


def test_a_horizon_that_is_over_warns_once(tmp_path: Path) -> None:
    learner = Learner(PLANS, mp.GenLBINFV(horizon=60))

    def go_on(one: Learner, rounds: int) -> None:
        for t in range(rounds):
            play = one.ask()
            one.tell(play.id, told(play, t))

    go_on(learner, 60)  # a warning would be an error here
    learner.save(tmp_path / "learner")
    late = Learner.load(tmp_path / "learner")
    for one in (learner, late):
        with pytest.warns(UserWarning, match=r"horizon=60\) is over: round 61") as caught:
            go_on(one, 1)
        assert [warning.filename for warning in caught] == [__file__]
    learner.save(tmp_path / "learner")
    go_on(Learner.load(tmp_path / "learner"), 30)


def test_a_warning_that_is_made_an_error_comes_when_all_is_done() -> None:
    learner = Learner(PLANS, mp.GenLBINFV(horizon=55))
    for t in range(55):
        play = learner.ask()
        learner.tell(play.id, told(play, t))
    play = learner.ask()
    with pytest.raises(UserWarning, match="horizon"):
        learner.tell(play.id, told(play, 55))
    assert learner.pending() == []
    assert learner.tell(play.id, told(play, 55)).repeated
