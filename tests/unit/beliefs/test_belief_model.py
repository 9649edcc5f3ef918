"""The belief model of a learner against a slow reference, and its promises."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from belief_twin import BeliefTwin, Total
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

from multiplay import (
    BootstrapCTS,
    Budget,
    Changes,
    Composed,
    Draw,
    FeatureCTS,
    FeatureModel,
    Features,
    FollowTheLeader,
    GaussianCTS,
    GenCTS,
    GenLBINFV,
    Hybrid,
    Learner,
    Moments,
    Number,
    OptimisticQuantile,
    Policy,
    PooledCTS,
    Reports,
    Study,
)

NAMES = ["air", "sea", "rail", "road"]
LOW, HIGH = 20.0, 220.0
AT = 1_790_000_000.0
TRUCKS = 3  # of an arm that is told as a total


def share(loss: float) -> float:
    return (loss - LOW) / (HIGH - LOW)


@st.composite
def told_rounds(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rounds of one to four arms: lists of losses, some missing, or a total."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    level, noise = rng.uniform(LOW, HIGH, 4), rng.choice([0.0, 1.0, 30.0, 100.0])
    rounds: list[dict[str, object]] = []
    for _ in range(draw(st.integers(0, 12))):
        told: dict[str, object] = {}
        for i, name in enumerate(NAMES):
            units = int(rng.integers(0, 6))
            if units:
                bills = np.clip(level[i] + rng.normal(0, 1, units) * noise, LOW, HIGH).tolist()
                kind = rng.choice(["units", "units", "gaps", "total"])
                told[name] = TRUCKS * bills[0] if kind == "total" else bills
                if kind == "gaps":
                    bills[0] = None
        rounds.append(told)
    return rounds


def play(policy: Policy, rounds: list[dict[str, object]]) -> tuple[Learner, BeliefTwin]:
    """Tell the same rounds to a learner, in the user's unit, and to the slow reference."""
    plans = Budget(20, [5] * 4, names=NAMES, at_most=True)
    learner = Learner(
        plans, policy, seed=1, loss_range=(LOW, HIGH), reports=Reports(missing="ignore")
    )
    discount, window = policy.discount, policy.window  # type: ignore[attr-defined]
    twin = BeliefTwin(4, discount, window)
    for told in rounds:
        units = {n: len(v) if isinstance(v, list) else TRUCKS for n, v in told.items()}
        asked = learner.ask(fixed={name: units.get(name, 0) for name in NAMES})
        learner.tell(asked, told)
        reports: dict[int, object] = {}
        for i, name in enumerate(NAMES):
            losses = told.get(name)
            if isinstance(losses, list):
                seen = [share(loss) for loss in losses if loss is not None]
                if seen:
                    reports[i] = seen
            elif losses is not None:
                average = share(losses / TRUCKS)  # type: ignore[operator]
                reports[i] = Total(TRUCKS, TRUCKS * average)
        twin.tell(reports)  # type: ignore[arg-type]
    return learner, twin


@given(told_rounds(), st.sampled_from([(None, None), (0.8, None), (None, 3)]))
def test_beliefs_are_those_of_the_slow_reference(
    rounds: list[dict[str, object]], memory: tuple[float | None, int | None]
) -> None:
    discount, window = memory
    learner, twin = play(BootstrapCTS(discount=discount, window=window), rounds)
    arms, expected = learner.arms(level=0.9), twin.beliefs(level=0.9)
    scale = HIGH - LOW
    for name in ("mean", "low", "high"):
        reference = [LOW + scale * getattr(one, name) for one in expected]
        assert_allclose(arms[name], reference, rtol=0, atol=1e-9)
    assert_allclose(arms["spread"], scale * np.sqrt(twin.noise_by_mean().s), rtol=1e-9)
    plan = [2, 0, 5, 1]
    found, slow = learner.expect(plan, level=0.8), twin.estimate(plan, level=0.8)
    for name in ("total", "low", "high"):
        cost = 8 * LOW + scale * getattr(slow, name)
        assert getattr(found, name) == pytest.approx(cost, abs=1e-8)
    assert learner.policy_state.moments.common == pytest.approx([twin.gn, twin.gd], abs=1e-12)
    assert ((arms["low"] <= arms["mean"]) & (arms["mean"] <= arms["high"])).all()


# ---------------------------------------------------------------- promises


def bills_of(learner: Learner, days: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices = rng.uniform(60, 200, len(learner.known_arms))
    for _ in range(days):
        play = learner.ask(at=AT)
        planned = zip(prices, play.action, strict=True)
        learner.tell(play, [rng.normal(price, 15, k).clip(0, 250) for price, k in planned], at=AT)


POLICIES = [
    BootstrapCTS(),
    BootstrapCTS(discount=0.9),
    GenCTS(),
    GenCTS(window=5),
    FollowTheLeader(),
    GenLBINFV(),
    Hybrid(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_policy_has_the_same_beliefs_after_the_same_reports(policy: Policy) -> None:
    learners = [
        Learner(Budget(4, [3, 3, 3], names=NAMES[:3]), one, loss_range=(0, 250))
        for one in (policy, forgetful_twin(policy))
    ]
    rng = np.random.default_rng(8)
    for _ in range(12):
        plan = rng.permutation([2, 1, 1])
        bills = [rng.uniform(50, 150, k).tolist() for k in plan]
        for learner in learners:
            asked = learner.ask(fixed=dict(zip(NAMES, plan.tolist(), strict=False)))
            learner.tell(asked, bills)
    one, other = (learner.arms() for learner in learners)
    for name in ("mean", "low", "high", "average", "spread"):
        assert one[name].tolist() == other[name].tolist()
    assert learners[0].expect([2, 1, 1]) == learners[1].expect([2, 1, 1])
    assert learners[0].best().plan == learners[1].best().plan


def forgetful_twin(policy: Policy) -> Policy:
    """Return a different policy that forgets at the same rate."""
    discount, window = getattr(policy, "discount", None), getattr(policy, "window", None)
    return GaussianCTS(discount=discount, window=window)


def test_arms_are_alike_as_shares_of_their_ranges() -> None:
    """With ranges by arm, beliefs are those of the slow reference in shares of each range."""
    ranges = {"arm 1": (20, 30), "arm 2": (0, 250), "arm 3": (10, 2010)}
    learner = Learner(Budget(8, [4] * 3, at_most=True), seed=1, loss_range=ranges)
    twin, rng = BeliefTwin(3), np.random.default_rng(3)
    for _ in range(5):
        told = [rng.uniform(22, 24, 2), rng.uniform(50, 100, 3), np.empty(0)]
        learner.learn([2, 3, 0], [bills.tolist() for bills in told])
        shares = [(told[0] - 20) / 10, told[1] / 250]
        twin.tell({i: one.tolist() for i, one in enumerate(shares)})
    low, width = np.array([20, 0, 10]), np.array([10, 250, 2000])
    arms, expected = learner.arms(level=0.9), twin.beliefs(level=0.9)
    for name in ("mean", "low", "high"):
        reference = low + width * [getattr(one, name) for one in expected]
        assert_allclose(arms[name], reference, rtol=1e-9)
    assert_allclose(arms["spread"], width * np.sqrt(twin.noise_by_mean().s), rtol=1e-9)
    assert 10 <= arms["low"].iloc[2] < 700 < arms["high"].iloc[2] <= 2010  # never seen
    estimate = learner.expect({"arm 1": 1, "arm 2": 3})
    assert estimate.total == pytest.approx(arms["mean"].iloc[0] + 3 * arms["mean"].iloc[1])
    assert 20 < estimate.low < estimate.total < estimate.high < 30 + 3 * 250


def test_an_arm_of_which_all_is_forgotten_is_like_one_never_seen() -> None:
    """0.5^40 of a unit counts for nothing: neither in its mean nor in its average."""
    learner = Learner(Budget(1, [1] * 3), BootstrapCTS(discount=0.5), loss_range=(0, 250))
    for arm in (0, *[1] * 40):
        play = learner.ask(fixed={f"arm {arm + 1}": 1})
        learner.tell(play, {f"arm {arm + 1}": 200.0 - 100 * arm})
    arms = learner.arms()
    assert arms["seen"].tolist() == [1, 40, 0]
    assert arms["average"].isna().tolist() == [True, False, True]
    assert arms["mean"][0] == arms["mean"][2]


def test_a_lane_told_as_a_total_is_known_better_than_one_never_seen() -> None:
    learner = Learner(Budget(4, [4] * 6), loss_range=(0, 500))
    rng = np.random.default_rng(2)
    for _ in range(4):
        for lane, price in enumerate([120, 140, 160, 180], start=1):
            told = np.zeros(6, dtype=int)
            told[lane - 1] = 4
            bills = rng.normal(price, 20, 4).tolist()
            learner.learn(told, {f"arm {lane}": bills})
    learner.learn([0, 0, 0, 0, 4, 0], {"arm 5": 600.0})
    arms = learner.arms().set_index("arm")
    width = arms["high"] - arms["low"]
    assert width["arm 5"] < width["arm 6"]
    assert 100 < arms["low"]["arm 5"] < 150 < arms["high"]["arm 5"] < 200


def test_many_imported_bills_leave_means_inside_their_intervals() -> None:
    """2,777 bills of six lanes: means agree with averages, and lie in their intervals."""
    plans = Budget(10, [9] * 6)
    learner = Learner(plans, loss_range=(0, 250))
    rng = np.random.default_rng(4)
    lane, day = rng.integers(0, 6, 2777), rng.integers(0, 300, 2777)
    cost = rng.normal(60 + 20 * lane, 15).clip(0, 250)
    names = [plans.names[i] for i in lane]
    learner.learn_table({"arm": names, "round": day, "loss": cost})
    arms = learner.arms()
    assert arms["seen"].sum() == 2777
    assert ((arms["low"] < arms["mean"]) & (arms["mean"] < arms["high"])).all()
    assert arms["mean"].to_numpy() == pytest.approx(arms["average"].to_numpy(), abs=1.0)
    assert (arms["high"] - arms["low"] < 10).all()


@pytest.mark.parametrize("policy", [BootstrapCTS(), BootstrapCTS(window=4), GenLBINFV()], ids=repr)
def test_a_saved_learner_has_the_same_beliefs(policy: Policy, tmp_path: Path) -> None:
    learner = Learner(Budget(6, [4, 4, 4]), policy, loss_range=(0, 250))
    bills_of(learner, 7, seed=1)
    learner.save(tmp_path / "learner.npz")
    again = Learner.load(tmp_path / "learner.npz")
    assert again.arms().equals(learner.arms())
    assert again.ask().plan == learner.ask().plan
    for one in (learner, again):
        bills_of(one, 3, seed=2)
    assert again.arms().equals(learner.arms())


def test_a_study_replays_to_the_same_beliefs() -> None:
    with Study.create("lanes", Budget(6, [4, 4, 4]), store="memory://beliefs") as study:
        rng = np.random.default_rng(5)
        for day in range(6):
            play = study.ask(key=f"day {day}")
            bills = {n: rng.uniform(0.2, 0.4, k).tolist() for n, k in play.plan.items()}
            study.tell(play.id, bills)
        with Study.open("lanes", store="memory://beliefs") as again:
            assert again.arms().equals(study.arms())
            assert again.best().expected == study.best().expected
        assert study.verify().ok


def test_new_arms_are_believed_to_be_like_the_others() -> None:
    learner = Learner(Budget(4, [4, 4], names=["a", "b"]), loss_range=(0, 100), varying_set=True)
    for _ in range(8):
        learner.learn([2, 2], [[40.0, 42.0], [38.0, 40.0]])
    wider = Budget(4, [4, 4, 4], names=["a", "b", "new"])
    known, fresh = (learner.expect({name: 4}, actions=wider) for name in ("a", "new"))
    assert fresh.total == pytest.approx(160, abs=12)
    assert fresh.high - fresh.low > 2 * (known.high - known.low)
    learner.ask(wider)
    assert learner.arms().set_index("arm")["mean"]["new"] == pytest.approx(fresh.total / 4, 1e-4)
    assert learner.policy_state.moments.sums.shape[1] == 9


def test_nothing_told_leaves_the_whole_range() -> None:
    arms = Learner(Budget(4, [4, 4]), loss_range=(0, 100)).arms()
    assert arms["mean"].tolist() == [50.0, 50.0]
    assert arms["average"].isna().all()
    assert (arms["low"].tolist(), arms["high"].tolist()) == ([0.0, 0.0], [100.0, 100.0])


# ------------------------------------------------------------ one model with the policy

CHANGES = BootstrapCTS(memory=Changes())
TWINS = {
    "changes": (CHANGES, CHANGES),
    "pooled": (PooledCTS(memory=Changes()), CHANGES),
    "coins": (GenCTS(memory=Changes()), CHANGES),
    "composed": (Composed(Moments(Changes()), Draw()), CHANGES),
    "keep": (BootstrapCTS(), BootstrapCTS()),
    "discount": (BootstrapCTS(discount=0.9), BootstrapCTS(discount=0.9)),
    "window": (BootstrapCTS(window=5), BootstrapCTS(window=5)),
}


def tell_both(learners: list[Learner], day: int, actions: Any = None, totals: bool = False) -> None:
    """Tell all learners of one plan; ``totals``: some arms have units and others totals."""
    rng = np.random.default_rng(day)
    names = ["a", "b", "c"] if actions is None else actions.names
    level = 60.0 if day < 40 else 120.0
    losses: dict[str, Any] = {name: rng.uniform(level, level + 40, 2).tolist() for name in names}
    if totals:
        losses[names[0]] = sum(losses[names[0]])
    for learner in learners:
        learner.ask(at=float(day))  # the round passes with the report of a play
        learner.tell(learner.pending()[0], {}, missing="ignore", at=float(day))
        learner.learn(dict.fromkeys(names, 2), losses, actions=actions, at=float(day))


@pytest.mark.parametrize("name", TWINS)
def test_beliefs_are_those_of_a_model_of_their_own(name: str) -> None:
    """They share the state of the policy until a set with other arms, or totals with units."""
    usual = Budget(6, [3, 3, 3], names=["a", "b", "c"])
    other = Budget(6, [3, 3, 3], names=["c", "d", "a"])
    shared, apart = (
        Learner(usual, policy, loss_range=(0, 250), seed=1, varying_set=True)
        for policy in TWINS[name]
    )
    apart.policy_state.moments.separate()
    for day in range(60):
        tell_both([shared, apart], day)
        if day == 50:
            for learner in (shared, apart):
                learner.forget("a", before=day - 3)
    assert shared.policy_state.moments.own is None
    assert_same_beliefs(shared, apart)
    assert shared.drift().empty == (name in ("keep", "discount", "window"))
    again = tuple(saved_and_loaded(learner) for learner in (shared, apart))
    for one in ((shared, apart), again):
        tell_both([*one], 60, other)
        tell_both([*one], 61, totals=True)
        for learner in one:
            assert learner.policy_state.moments.own is not None
        assert_same_beliefs(*one)
    assert_same_beliefs(shared, again[0])


def assert_same_beliefs(one: Learner, other: Learner) -> None:
    """Assert equal bits; plans of two policies may differ."""
    columns = ["arm", "mean", "low", "high", "average", "spread", "seen"]
    assert_frame_equal(one.arms()[columns], other.arms()[columns], check_exact=True)
    assert_frame_equal(one.drift(), other.drift(), check_exact=True)


def saved_and_loaded(learner: Learner) -> Learner:
    """Return the learner of a file."""
    with TemporaryDirectory() as folder:
        learner.save(f"{folder}/learner.npz")
        return Learner.load(f"{folder}/learner.npz")


@pytest.mark.parametrize(
    "policy",
    [
        FeatureCTS(),
        FeatureCTS(discount=0.9),
        FeatureCTS(memory=Changes()),
        Composed(FeatureModel(), OptimisticQuantile()),
    ],
    ids=repr,
)
def test_beliefs_with_features_are_those_of_a_model_of_their_own(policy: Policy) -> None:
    """They share the state of the policy until a set with other arms."""
    usual, features = Budget(6, [3, 3, 3], names=["a", "b", "c"]), Features(km=Number())
    options: dict[str, Any] = {"loss_range": (10, 250), "seed": 1, "varying_set": True}
    of_arms = {"km": {"a": 10.0, "b": 25.0, "c": 70.0, "d": 40.0}}
    both = [
        Learner(usual, policy, features=features, arm_features=of_arms, **options) for _ in range(2)
    ]
    states = [one.policy_state.known_features("features") for one in both]
    states[1].separate()
    for day in range(40):
        play, other = (one.ask(at=float(day)) for one in both)
        assert play.plan == other.plan
        losses = {arm: [30.0 + day, 20.0 * n][:n] for arm, n in play.plan.items()}
        for one in both:
            one.tell(one.pending()[0], losses, at=float(day), missing="ignore")
    assert states[0].own is None
    assert_same_features(both)
    assert_same_features([saved_and_loaded(one) for one in both])
    tell_both(both, 40, Budget(6, [3, 3, 3], names=["c", "d", "a"]))
    assert states[0].own is not None
    assert_same_features(both)
    assert_same_features([saved_and_loaded(one) for one in both])


def assert_same_features(both: list[Learner]) -> None:
    """Assert equal bits of the models, and of what is said of features and arms."""
    one, other = (learner.policy_state.known_features("features") for learner in both)
    for name in other._start(0):
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name], err_msg=name)
    assert_frame_equal(both[0].arms(), both[1].arms(), check_exact=True)
    assert_frame_equal(both[0].effects(), both[1].effects(), check_exact=True)


def test_a_new_arm_before_the_first_report_of_a_window() -> None:
    usual, other = (Budget(4, [4, 4], names=["a", name]) for name in ("b", "c"))
    learner = Learner(usual, BootstrapCTS(window=5), seed=0, varying_set=True)
    assert sum(learner.ask(other).plan.values()) == 4
