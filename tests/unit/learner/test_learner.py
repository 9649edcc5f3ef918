"""One learner, live: what it learns, what it refuses, and how it survives a restart."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import TIME_LIMIT
from refusal import refused

import multiplay as mp
from multiplay import Learner, PendingPlay
from multiplay.actions import ActionSet
from multiplay.random import Rng
from multiplay.types import Arrays

PLANS = mp.Transport([1, 4, 5], [4, 6], names=(["Lyon", "Lille", "Paris"], ["north", "south"]))
POLICIES: dict[str, mp.Policy] = {
    "GenCTS": mp.GenCTS(),
    "GenLBINFV ls": mp.GenLBINFV(horizon=100),
    "GenLBINFV gd": mp.GenLBINFV(prediction="gd", epsilon=0.5, eta=0.1, horizon=100),
    "CTS": mp.Duplicated(mp.GenCTS()),
    "GenLBINFV without a horizon": mp.GenLBINFV(),
    "LBINFV": mp.Duplicated(mp.GenLBINFV(horizon=100)),
    "LBINFV without a horizon": mp.Duplicated(mp.GenLBINFV()),
}


def policies(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("policy", [POLICIES[name] for name in names], ids=names)


every_policy = policies(*POLICIES)

Losses = dict[str, Any]


def units(play: PendingPlay, number: int | None = None) -> Losses:
    """Return some losses for every unit of a play, by name; the same for the same number."""
    rng = np.random.default_rng(play.id if number is None else number)
    return {name: rng.random(count).tolist() for name, count in play.plan.items()}


def totals(play: PendingPlay) -> Losses:
    return {name: float(np.sum(losses)) for name, losses in units(play).items()}


def go_on(learner: Learner, rounds: int = 15) -> list[dict[str, int]]:
    """Play on: the plans that come."""
    plans = []
    for _ in range(rounds):
        play = learner.ask()
        learner.tell(play.id, units(play, learner.asked))  # ids are others after a restart
        plans.append(play.plan)
    return plans


def contents(learner: Learner) -> dict[str, Any]:
    """Return everything that a learner holds, as plain data."""
    arrays = {"rng": learner.rng.state, **learner.state}
    for id, play in learner.engine.pending.items():
        arrays |= {f"{id} action": play.action}
        arrays |= {f"{id} {name}": array for name, array in play.memo.items()}
    plain = {name: (array.dtype.str, array.tolist()) for name, array in arrays.items()}
    return {"asked": learner.asked, "pending": list(learner.engine.pending), **plain}


def in_the_middle(policy: mp.Policy, seed: int = 7) -> Learner:
    """Return a learner that has learned something, and waits for plays 5 and 7."""
    learner = Learner(PLANS, policy, seed=seed, loss_range=(0, 1))
    plays = [learner.ask() for _ in range(7)]
    for id in (2, 1, 6, 4, 3):
        learner.tell(id, units(plays[id - 1]))
    return learner


# ---------------------------------------------------------------- ask and tell


@every_policy
def test_a_play_is_a_plan_by_name(policy: mp.Policy) -> None:
    learner = Learner(PLANS, policy, seed=1)
    for id in (1, 2, 3):
        play = learner.ask()
        assert play.id == id
        assert PLANS.contains(play.action)
        assert list(play.plan) == list(PLANS.names)
        assert list(play.plan.values()) == play.action.tolist()
        assert all(type(count) is int for count in play.plan.values())
    assert json.loads(json.dumps(play.plan)) == play.plan


@every_policy
def test_the_same_seed_and_losses_give_the_same_plans(policy: mp.Policy) -> None:
    one, same, other = (Learner(PLANS, policy, seed=seed) for seed in (1, 1, 2))
    plans = go_on(one)
    assert plans == go_on(same)
    assert contents(one) == contents(same)
    assert plans != go_on(other)


def test_waiting_plays_are_listed_oldest_first() -> None:
    learner = in_the_middle(mp.GenCTS())
    assert [play.id for play in learner.pending()] == [5, 7]
    play = learner.ask()
    assert learner.pending()[-1].plan == play.plan
    assert [play.id for play in learner.pending()] == [5, 7, 8]


def test_a_play_in_the_hands_of_the_caller_is_a_copy() -> None:
    learner = Learner(PLANS, mp.GenCTS(), seed=1)
    play = learner.ask()
    before = contents(learner)
    play.action[:] = 0
    play.plan.clear()
    assert contents(learner) == before


@every_policy
def test_losses_by_name_and_by_position_are_the_same(policy: mp.Policy) -> None:
    learners = [Learner(PLANS, policy, seed=3) for _ in range(5)]
    for _ in range(10):
        plays = [learner.ask() for learner in learners]
        losses = units(plays[0])
        ways: list[Any] = [
            losses,
            dict(reversed(losses.items())),
            {name: np.array(entry) for name, entry in losses.items() if entry},
            list(losses.values()),
            [tuple(entry) for entry in losses.values()],
        ]
        for learner, play, way in zip(learners, plays, ways, strict=True):
            learner.tell(play.id, way)
    for learner in learners[1:]:
        assert contents(learner) == contents(learners[0])


@policies("GenCTS", "GenLBINFV ls", "GenLBINFV gd")
def test_totals_by_name_and_by_position_are_the_same(policy: mp.Policy) -> None:
    learners = [Learner(PLANS, policy, seed=3) for _ in range(4)]
    for _ in range(10):
        plays = [learner.ask() for learner in learners]
        losses = totals(plays[0])
        ways: list[Any] = [
            losses,
            {name: total for name, total in losses.items() if plays[0].plan[name]},
            list(losses.values()),
            np.array(list(losses.values())),
        ]
        for learner, play, way in zip(learners, plays, ways, strict=True):
            learner.tell(play.id, way)
    for learner in learners[1:]:
        assert contents(learner) == contents(learners[0])


@policies("GenLBINFV ls", "GenLBINFV gd")
def test_genlbinfv_learns_the_same_from_units_and_totals(policy: mp.Policy) -> None:
    one, other = Learner(PLANS, policy, seed=3), Learner(PLANS, policy, seed=3)
    for _ in range(10):
        play, same = one.ask(), other.ask()
        assert play.plan == same.plan
        one.tell(play.id, units(play))
        other.tell(play.id, totals(play))
    assert contents(one) == contents(other)


@policies("GenCTS", "GenLBINFV ls", "CTS")
def test_series_and_exact_numbers_are_losses_too(policy: mp.Policy) -> None:
    """Losses of k/8 are the same as floats, fractions and decimals."""
    learners = [Learner(PLANS, policy, seed=3) for _ in range(6)]
    for t in range(10):
        plays = [learner.ask() for learner in learners]
        losses = {k: [(t + i) % 9 / 8 for i in range(n)] for k, n in plays[0].plan.items()}
        ways: list[Any] = [
            losses,
            pd.Series(losses),
            pd.Series(losses)[::-1],
            pd.Series(list(losses.values())),
            {name: [Decimal(loss) for loss in entry] for name, entry in losses.items()},
            [np.array([Fraction(loss) for loss in entry]) for entry in losses.values()],
        ]
        for learner, play, way in zip(learners, plays, ways, strict=True):
            learner.tell(play.id, way)
    for learner in learners[1:]:
        assert contents(learner) == contents(learners[0])


@policies("GenCTS", "GenLBINFV ls")
def test_totals_may_be_series_and_exact_numbers(policy: mp.Policy) -> None:
    learners = [Learner(PLANS, policy, seed=3) for _ in range(4)]
    for _ in range(10):
        plays = [learner.ask() for learner in learners]
        losses = {name: n * 0.25 for name, n in plays[0].plan.items()}
        ways: list[Any] = [
            losses,
            pd.Series(losses)[::-1],
            {name: Decimal(total) for name, total in losses.items()},
            [Fraction(total) for total in losses.values()],
        ]
        for learner, play, way in zip(learners, plays, ways, strict=True):
            learner.tell(play.id, way)
    for learner in learners[1:]:
        assert contents(learner) == contents(learners[0])


def test_totals_may_miss_their_range_by_rounding() -> None:
    """0.1 * 3 * 10 is a little more than 3; what is told is clipped to [0, n]."""
    three = mp.Budget(3, [3])
    for told, meant in [(0.1 * 3 * 10, 3.0), (0.1 + 0.2 - 0.3 - 1e-16, 0.0), (3 * (1 + 9e-10), 3)]:
        one, other = (Learner(three, mp.GenLBINFV(horizon=100), seed=1) for _ in range(2))
        one.tell(one.ask().id, [told])
        other.tell(other.ask().id, [meant])
        assert contents(one) == contents(other)
    learner = Learner(three, mp.GenCTS(), loss_range=(0, 1))
    play = learner.ask()
    for told in (3 * (1 + 2e-9), -4e-9, 3.001):
        with pytest.raises(mp.InvalidInput, match=rf"\[0, 3\].*, got {float(told)!r}\."):
            learner.tell(play.id, [told])


def test_gencts_counts_certain_losses_exactly() -> None:
    """Losses of 0 and 1 leave nothing to the coins: p - 1 counts the ones, q - 1 the zeros."""
    learner, rng = Learner(PLANS, mp.GenCTS(), seed=3), np.random.default_rng(0)
    ones, zeros = np.zeros(PLANS.d), np.zeros(PLANS.d)
    for t in range(30):
        play = learner.ask()
        bad = rng.integers(0, 2, PLANS.d) * play.action
        ones += bad
        zeros += play.action - bad
        by_unit = [[float(total > 0)] * n for total, n in zip(bad, play.action, strict=True)]
        learner.tell(play.id, by_unit if t % 2 else bad.tolist())
    assert learner.state["p"].tolist() == [(1 + ones).tolist()]
    assert learner.state["q"].tolist() == [(1 + zeros).tolist()]


def test_gencts_counts_late_losses_in_any_order() -> None:
    learner = Learner(PLANS, mp.GenCTS(), seed=3)
    plays = [learner.ask() for _ in range(4)]
    for play in (plays[2], plays[0], plays[3], plays[1]):
        learner.tell(play.id, {name: [1.0] * n for name, n in play.plan.items()})
    played = np.sum([play.action for play in plays], axis=0)
    assert learner.state["p"].tolist() == [(1 + played).tolist()]
    assert learner.state["q"].tolist() == [[1] * PLANS.d]
    assert learner.pending() == []


def test_genlbinfv_judges_late_losses_by_the_play_they_belong_to() -> None:
    """Lhat = the sum over plays of q + (a / x)(k - q), each with its own x and q."""
    learner = in_the_middle(mp.GenLBINFV(horizon=100))
    late = learner.pending()[0]
    memo = learner.engine.pending[late.id].memo
    x, q, before = memo["x"][0], memo["q"][0], learner.state["L"][0].copy()
    assert not np.allclose(q, learner.state["q"][0]), "else the test shows nothing"
    losses = units(late)
    learner.tell(late.id, losses)
    for i, name in enumerate(PLANS.names):
        estimate = q[i]
        if losses[name]:
            estimate += len(losses[name]) / x[i] * (np.mean(losses[name]) - q[i])
        assert learner.state["L"][0, i] - before[i] == pytest.approx(estimate)


class Counted(tuple[str, ...]):
    """Names that count how often they are gone through."""

    times = 0

    def __iter__(self) -> Iterator[str]:
        Counted.times += 1
        return super().__iter__()


def test_telling_does_not_go_through_all_names_for_every_arm() -> None:
    actions = mp.Transport([2] * 20, [2] * 20)
    learner = Learner(actions, mp.GenCTS(), seed=1)
    play = learner.ask()
    actions.names = Counted(actions.names)
    Counted.times = 0
    learner.tell(play.id, units(play))
    assert Counted.times < 20, "400 arms: once for each would take minutes at 200 x 200"


# ---------------------------------------------------------------- refusals


def dearest(play: PendingPlay) -> str:
    """Return the name of an arm with several units."""
    return max(play.plan, key=lambda name: play.plan[name])


def changed(entry: Callable[[int], Any]) -> Callable[[PendingPlay], Losses]:
    """Return the losses of a play, with the entry of one arm made from its number of units."""

    def losses(play: PendingPlay) -> Losses:
        name = dearest(play)
        return {**units(play), name: entry(play.plan[name])}

    return losses


def unplayed(entry: Any) -> Callable[[PendingPlay], Losses]:
    """Return the losses of a play, with an entry for an arm that was not played."""

    def losses(play: PendingPlay) -> Losses:
        name = min(play.plan, key=lambda name: play.plan[name])
        assert play.plan[name] == 0
        return {**units(play), name: entry}

    return losses


BAD_LOSSES: dict[str, Callable[[PendingPlay], Any]] = {
    "one unit too few": changed(lambda n: [0.5] * (n - 1)),
    "one unit too many": changed(lambda n: [0.5] * (n + 1)),
    "no units": changed(lambda n: []),
    "nothing": changed(lambda n: None),
    "units in a table": changed(lambda n: [[0.5] * n]),
    "a column for every arm": lambda play: {
        k: [[loss] for loss in v] for k, v in units(play).items()
    },
    "two columns for every arm": lambda play: [np.full((n, 2), 0.1) for n in play.action],
    "ragged units": changed(lambda n: [[0.1], [0.2, 0.3]]),
    "above 1": changed(lambda n: [0.5] * (n - 1) + [1.0001]),
    "below 0": changed(lambda n: [0.5] * (n - 1) + [-1e-9]),
    "infinite": changed(lambda n: [0.5] * (n - 1) + [np.inf]),
    "text": changed(lambda n: ["cheap"] * n),
    "numbers as text": changed(lambda n: ["0.5"] * n),
    "complex": changed(lambda n: np.full(n, 0.5 + 0.5j)),
    "total too large": changed(lambda n: n + 0.001),
    "total below 0": changed(lambda n: -0.001),
    "total nan": changed(lambda n: np.nan),
    "total as text": changed(lambda n: "0.5"),
    "total without end": changed(lambda n: 10**400),
    "decimal total nan": changed(lambda n: Decimal("NaN")),
    "decimal total that signals": changed(lambda n: Decimal("sNaN")),
    "decimal total too large": changed(lambda n: Decimal(n) + Decimal("0.001")),
    "decimals above 1": changed(lambda n: [Decimal("1.1")] * n),
    "decimals that signal": changed(lambda n: [Decimal("sNaN")] * n),
    "fractions without end": changed(lambda n: [Fraction(10**400)] * n),
    "a series with other names": lambda play: pd.Series({"Nice->north": 0.5}),
    "a series with an arm twice": lambda play: pd.Series([0.5] * 2, index=[dearest(play)] * 2),
    "a series of too few arms": lambda play: pd.Series([0.5]),
    "a table": lambda play: pd.DataFrame({"loss": units(play)}),
    "a dict": changed(lambda n: {"loss": 0.5}),
    "a set": changed(lambda n: {0.5}),
    "units that were not played": unplayed([0.5]),
    "total that was not played": unplayed(0.5),
    "missing arm": lambda play: {k: v for k, v in units(play).items() if k != dearest(play)},
    "unknown arm": lambda play: {**units(play), "Nice->north": []},
    "number as a name": lambda play: {**units(play), 0: []},
    "too few arms": lambda play: list(units(play).values())[:-1],
    "too many arms": lambda play: [*units(play).values(), []],
    "one number": lambda play: 0.5,
    "one number in an array": lambda play: np.array(0.5),
    "none": lambda play: None,
    "a name": lambda play: "Lyon->north",
    "bytes": lambda play: bytes(6),
}
BAD_IDS: dict[str, Any] = {
    "told already": 2,
    "not asked yet": 8,
    "zero": 0,
    "negative": -5,
    "text": "5",
    "none": None,
    "fraction": 5.5,
    "list": [5],
    "the play itself": {"id": 5},
}


@policies("GenCTS", "GenLBINFV ls", "CTS")
@pytest.mark.parametrize("bad", BAD_LOSSES.values(), ids=BAD_LOSSES)
def test_bad_losses_are_refused_and_change_nothing(
    bad: Callable[[PendingPlay], Any], policy: mp.Policy
) -> None:
    learner, undisturbed = in_the_middle(policy), in_the_middle(policy)
    play = learner.pending()[0]
    with refused("losses"):
        learner.tell(play.id, bad(play))
    assert contents(learner) == contents(undisturbed)
    for one in (learner, undisturbed):
        one.tell(play.id, units(play))
    assert go_on(learner) == go_on(undisturbed)
    assert contents(learner) == contents(undisturbed)


@policies("GenCTS", "LBINFV")
@pytest.mark.parametrize("id", BAD_IDS.values(), ids=BAD_IDS)
def test_bad_ids_are_refused_and_change_nothing(id: Any, policy: mp.Policy) -> None:
    learner, undisturbed = in_the_middle(policy), in_the_middle(policy)
    with refused("play"):
        learner.tell(id, units(learner.pending()[0]))
    assert contents(learner) == contents(undisturbed)
    assert go_on(learner) == go_on(undisturbed)


@policies("CTS", "LBINFV")
def test_copies_need_every_unit_and_totals_change_nothing(policy: mp.Policy) -> None:
    learner, undisturbed = in_the_middle(policy), in_the_middle(policy)
    play = learner.pending()[0]
    for losses in (totals(play), {**units(play), dearest(play): totals(play)[dearest(play)]}):
        with pytest.raises(mp.InvalidInput, match="every unit"):
            learner.tell(play.id, losses)
        assert contents(learner) == contents(undisturbed)
    assert go_on(learner) == go_on(undisturbed)


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("actions", lambda: Learner([1, 4, 5], mp.GenCTS())),  # type: ignore[arg-type]
        ("policy", lambda: Learner(PLANS, mp.GenCTS)),  # type: ignore[arg-type]
        ("policy", lambda: Learner(PLANS, "GenCTS")),  # type: ignore[arg-type]
        ("seed", lambda: Learner(PLANS, mp.GenCTS(), seed=-1)),
        ("seed", lambda: Learner(PLANS, mp.GenCTS(), seed=0.5)),  # type: ignore[arg-type]
        ("horizon", lambda: Learner(PLANS, mp.LBINF())),
        ("horizon", lambda: Learner(PLANS, mp.Duplicated(mp.LBINF()))),
        ("horizon", lambda: Learner(PLANS, mp.GenLBINFV(horizon=54))),
    ],
)
def test_a_learner_is_made_of_what_fits(argument: str, make: Callable[[], Learner]) -> None:
    with refused(argument):
        make()


@dataclass(frozen=True)
class Astray(mp.GenCTS):
    """Leaves the set after some plays."""

    wrong: tuple[int, ...] = ()

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        return mp.Play(np.array([self.wrong]))


@pytest.mark.parametrize(
    "wrong", [(1, 0, 3, 1, 0, 6), (1, 0, 5, -1, -2, 7), (1, 0, 3, 1, 0)], ids=repr
)
def test_a_play_that_is_no_action_does_not_leave(wrong: tuple[int, ...]) -> None:
    learner = Learner(PLANS, Astray(wrong=wrong))
    with pytest.raises(
        ArithmeticError, match=r"Astray.* in play 1 a vector that is not an action .*Fix choose"
    ):
        learner.ask()
    assert learner.pending() == []
    assert learner.asked == 0


def test_lbinf_without_a_horizon_says_how_to_give_one() -> None:
    with pytest.raises(mp.InvalidInput, match=r"LBINF\(horizon="):
        Learner(PLANS, mp.LBINF())


# ---------------------------------------------------------------- save and load


@every_policy
def test_a_loaded_learner_continues_as_one_that_never_stopped(
    policy: mp.Policy, tmp_path: Path
) -> None:
    learner, path = in_the_middle(policy), tmp_path / "learner.npz"
    learner.save(path)
    loaded = Learner.load(str(path))
    assert contents(loaded) == contents(learner)
    assert loaded.policy == policy
    assert loaded.actions.names == PLANS.names
    assert [play.plan for play in loaded.pending()] == [play.plan for play in learner.pending()]
    for one in (learner, loaded):
        late = one.pending()[1]
        one.tell(late.id, units(late))
    assert go_on(loaded) == go_on(learner)
    assert contents(loaded) == contents(learner)
    loaded.save(path)
    assert go_on(Learner.load(path)) == go_on(learner)


def test_a_learner_that_never_played_is_saved_too(tmp_path: Path) -> None:
    Learner(PLANS, mp.GenCTS(), seed=5).save(tmp_path / "new folder" / "any name")
    loaded = Learner.load(tmp_path / "new folder" / "any name")
    assert go_on(loaded) == go_on(Learner(PLANS, mp.GenCTS(), seed=5))


def test_a_loaded_learner_remembers_what_was_told(tmp_path: Path) -> None:
    in_the_middle(mp.GenCTS()).save(tmp_path / "learner.npz")
    loaded = Learner.load(tmp_path / "learner.npz")
    with pytest.raises(mp.InvalidInput, match="closed with different losses"):
        loaded.tell(2, units(loaded.pending()[0]))


def test_a_set_of_any_size_is_saved(tmp_path: Path) -> None:
    """120,006 numbers; files used to keep a digest of more than 100,000."""
    rng = np.random.default_rng(0)
    actions = mp.Explicit(rng.integers(0, 1000, (20_001, 6)))
    learner, path = Learner(actions, mp.GenCTS(), seed=1), tmp_path / "learner.npz"
    play = learner.ask()
    learner.save(path)
    loaded = Learner.load(path)
    assert isinstance(loaded.actions, mp.Explicit)
    assert np.array_equal(loaded.actions.actions, actions.actions)
    for one in (learner, loaded):
        one.tell(play.id, units(play))
    assert go_on(loaded, 5) == go_on(learner, 5)


@pytest.mark.parametrize("pending", [1, 200])
def test_waiting_plays_are_stacked(pending: int, tmp_path: Path) -> None:
    """A file holds as many arrays for 200 plays as for one: loading is linear in the plays."""
    learner, path = Learner(PLANS, Greedy(), seed=1), tmp_path / "learner.npz"
    for _ in range(pending):
        learner.ask()
    learner.save(path)
    with np.load(path) as archive:
        found = sorted(name for name in archive if "plays/" in name or "arrays/" in name)
        (in_journal, *_), *_ = (archive[name].shape for name in found)
    own = ["plays/0/action", "plays/0/memo/noise"]
    assert found == [f"array/{name}" for name in ("journal/arrays/0", *own)]
    assert in_journal == pending
    assert contents(Learner.load(path, policy=Greedy())) == contents(learner)


@dataclass(frozen=True)
class Moody(mp.GenCTS):
    """Remembers now this, now that."""

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        play = super().choose(actions, state, rng)
        mood = int(3 * rng.random((1, 1))[0, 0])
        memos: list[Arrays] = [{}, {"a": np.zeros((1, 2))}, {"b": np.ones(1, int)}]
        return mp.Play(play.action, memos[mood])


def test_plays_with_different_memos_are_saved(tmp_path: Path) -> None:
    learner, path = Learner(PLANS, Moody(), seed=1), tmp_path / "learner.npz"
    for _ in range(30):
        learner.ask()
    learner.save(path)
    assert len({tuple(play.memo) for play in learner.engine.pending.values()}) == 3
    loaded = Learner.load(path, policy=Moody())
    assert contents(loaded) == contents(learner)
    assert list(loaded.engine.pending) == list(range(1, 31))


@dataclass(frozen=True)
class WithCache(mp.Play):
    cache: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Warm(mp.GenCTS):
    """Keeps something that makes the next choice faster."""

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        play = super().choose(actions, state, rng)
        last = state.get("last", np.zeros((1, 1)))
        return WithCache(play.action, {}, {"last": last + 1})


def test_a_cache_goes_to_the_state_and_not_to_the_waiting_plays(tmp_path: Path) -> None:
    learner, path = Learner(PLANS, Warm(), seed=1), tmp_path / "learner.npz"
    assert "last" not in learner.state
    go_on(learner, 3)
    learner.ask()
    assert learner.state["last"].tolist() == [[4.0]]
    assert "last" not in learner.engine.pending[4].memo
    learner.save(path)
    loaded = Learner.load(path, policy=Warm())
    assert contents(loaded) == contents(learner)
    assert go_on(loaded) == go_on(learner)
    del loaded.state["last"]
    assert go_on(loaded, 1) == go_on(learner, 1), "it may be dropped at any time"


def with_header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path, bytes], object]:
    """Return a maker of files that are right except for their header."""

    def make(path: Path, good: bytes) -> None:
        path.write_bytes(good)
        with np.load(path) as archive:
            arrays = dict(archive.items())
        header = json.loads(str(arrays["header"]))
        change(header)
        np.savez(path, **{**arrays, "header": np.array(json.dumps(header))})

    return make


def without(*names: str) -> Callable[[Path, bytes], object]:
    def make(path: Path, good: bytes) -> None:
        path.write_bytes(good)
        with np.load(path) as archive:
            arrays = {name: array for name, array in archive.items() if name not in names}
        np.savez(path, **arrays)

    return make


def one_array(path: Path, good: bytes) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


BAD_FILES: dict[str, Callable[[Path, bytes], object]] = {
    "missing": lambda path, good: None,
    "folder": lambda path, good: path.mkdir(),
    "empty": lambda path, good: path.write_bytes(b""),
    "text": lambda path, good: path.write_text("lane,trucks\n"),
    "first half": lambda path, good: path.write_bytes(good[: len(good) // 2]),
    "second half": lambda path, good: path.write_bytes(good[len(good) // 2 :]),
    "cut short": lambda path, good: path.write_bytes(good[:-1]),
    "one array": one_array,
    "other arrays": lambda path, good: np.savez(path, x=np.zeros(3)),
    "another header": lambda path, good: np.savez(path, header=np.array('["multiplay"]')),
    "header alone": lambda path, good: np.savez(path, header=np.array('{"multiplay_learner": 1}')),
    "newer format": with_header(lambda header: header.update(multiplay_learner=8)),
    "newer storage": with_header(lambda header: header.update(multiplay_storage=2)),
    "no format": with_header(lambda header: header.update(multiplay_learner="x")),
    "no policy": with_header(lambda header: header.pop("policy")),
    "odd policy": with_header(lambda header: header.update(policy={"type": "Policy"})),
    "odd settings": with_header(lambda header: header["policy"].update(speed=7)),
    "odd actions": with_header(lambda header: header["actions"].update(supply=[1, 2])),
    "a set as policy": with_header(lambda header: header.update(policy=header["actions"])),
    "more plays": with_header(lambda header: header["pending"][0].append(9)),
    "fewer plays": with_header(lambda header: header["pending"][0].pop()),
    "more kinds of plays": with_header(lambda header: header["pending"].append([9])),
    "no random state": without("array/rng"),
    "no play": without("array/plays/0/action"),
    "no statistics": without("array/state/p"),
    "no supplies": without("array/actions/0"),
}


@pytest.mark.parametrize("make", BAD_FILES.values(), ids=BAD_FILES)
def test_files_that_are_no_learners_are_refused(
    make: Callable[[Path, bytes], object], tmp_path: Path
) -> None:
    saved, path = tmp_path / "saved.npz", tmp_path / "learner.npz"
    in_the_middle(mp.GenCTS()).save(saved)
    make(path, saved.read_bytes())
    with refused("path"):
        Learner.load(path)


@pytest.mark.parametrize(
    "step",
    [37, pytest.param(3, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.soak)],
)
def test_a_damaged_file_is_refused_or_makes_no_difference(tmp_path: Path, step: int) -> None:
    """Turn over one byte, wherever: never another learner, never another error."""
    learner, path = Learner(mp.Transport([1, 1], [1, 1]), mp.GenCTS()), tmp_path / "learner.npz"
    learner.ask()
    learner.save(path)
    good, right = path.read_bytes(), contents(learner)
    refusals = 0
    with path.open("r+b", buffering=0) as file:  # in its place: a new file each time takes longer
        for i, byte in list(enumerate(good))[::step]:
            os.pwrite(file.fileno(), bytes([byte ^ 0xFF]), i)
            try:
                assert contents(Learner.load(path)) == right
            except mp.InvalidInput:
                refusals += 1
            os.pwrite(file.fileno(), bytes([byte]), i)
    assert path.read_bytes() == good
    assert refusals > len(good) / step / 2


@dataclass(frozen=True)
class Greedy(mp.Policy):
    """A policy of the user's own: the cheapest plan so far."""

    hope: float = 0.0

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        return {"paid": np.full((trials, actions.d), self.hope), "sent": np.ones((trials, 1))}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> mp.Play:
        noise = rng.random(state["paid"].shape)
        return mp.Play(actions.argmin(state["paid"] / state["sent"] + noise), {"noise": noise})

    def update(
        self, actions: ActionSet, state: Arrays, play: mp.Play, feedback: mp.Feedback, rng: Rng
    ) -> None:
        state["paid"] += feedback.mean + 0.01 * play.memo["noise"]
        state["sent"] += 1


@pytest.mark.parametrize("policy", [Greedy(0.5), mp.Duplicated(Greedy(0.5))], ids=repr)
def test_a_policy_of_ones_own_is_passed_again(policy: mp.Policy, tmp_path: Path) -> None:
    learner, path = in_the_middle(policy), tmp_path / "learner.npz"
    learner.save(path)
    with pytest.raises(mp.InvalidInput, match=r"Greedy.*policy="):
        Learner.load(path)
    for other in (Greedy(0.6), mp.Duplicated(Greedy(0.6)), mp.GenCTS()):
        with refused("policy"):
            Learner.load(path, policy=other)
    loaded = Learner.load(path, policy=policy)
    assert go_on(loaded) == go_on(learner)


class Crew(mp.OracleSet):
    """At least four people, wages of at most 11; it knows what it has answered, and no more."""

    def __init__(self) -> None:
        box = np.indices((3,) * 7).reshape(7, -1).T
        self._listed = box[(box @ [2, 3, 1, 4, 2, 5, 3] <= 11) & (box.sum(axis=1) >= 4)]
        super().__init__(d=7)

    def solve(self, costs: Any) -> Any:
        total = self._listed @ costs
        return self._listed[np.argmax(total < total.min() + 1e-9)]  # ties: on any machine the first


def test_a_loaded_state_may_hold_actions_that_its_oracle_has_not_answered_yet(
    tmp_path: Path,
) -> None:
    learner, path = Learner(Crew(), mp.GenLBINFV(horizon=100), seed=4), tmp_path / "learner.npz"
    go_on(learner)
    learner.save(path)
    loaded, unseen = Learner.load(path, actions=Crew()), 0
    for _ in range(15):
        play = loaded.ask()
        unseen += not loaded.actions.contains(play.action)
        loaded.tell(play.id, units(play, loaded.asked))
        assert play.plan == go_on(learner, 1)[0]
    assert unseen, "else the test shows nothing"


def test_another_policy_of_the_same_name_is_not_taken_for_ours(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class GenCTS(Greedy):
        """Somebody's own experiment."""

    Learner(PLANS, GenCTS(), seed=1).save(tmp_path / "learner.npz")
    with pytest.raises(mp.InvalidInput, match="policy="):
        Learner.load(tmp_path / "learner.npz")


def test_other_actions_than_those_saved_are_refused(tmp_path: Path) -> None:
    learner, path = in_the_middle(mp.GenCTS()), tmp_path / "learner.npz"
    learner.save(path)
    with refused("actions"):
        Learner.load(path, actions=mp.Transport([5, 4, 1], [4, 6]))
    assert go_on(Learner.load(path, actions=PLANS)) == go_on(learner)


@dataclass(frozen=True)
class Ruled(Greedy):
    """A policy with a function among its settings."""

    rule: Any = None


class Secretive(Greedy):
    """A policy that does not keep its settings."""

    def __init__(self, secret: int) -> None:
        super().__init__(float(secret))


class Lonely(mp.OracleSet):
    """A set that does not keep its settings."""

    def __init__(self, people: int) -> None:
        self._people = people
        super().__init__(d=2)

    def solve(self, costs: Any) -> Any:
        return self._people * (np.arange(2) == costs.argmin())


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("policy.rule", lambda: Learner(PLANS, Ruled(rule=max))),
        ("policy.policy.rule", lambda: Learner(PLANS, mp.Duplicated(Ruled(rule=lambda: 0)))),
        ("policy.rule", lambda: Learner(PLANS, Ruled(rule=np.array([print])))),
        ("policy.Secretive", lambda: Learner(PLANS, Secretive(1))),
        ("actions.Lonely", lambda: Learner(Lonely(2), mp.GenCTS())),
    ],
)
def test_what_could_not_be_saved_is_refused_at_once(
    argument: str, make: Callable[[], Learner]
) -> None:
    with refused(argument):
        make()


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    learner, path = in_the_middle(mp.GenCTS()), tmp_path / "learner.npz"
    learner.save(path)
    before = path.read_bytes()
    learner.state["wrong"] = np.array([print])  # cannot be written without pickle
    with refused("state/wrong"):
        learner.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, path = in_the_middle(mp.GenCTS()), tmp_path / "learner.npz"
    learner.save(path)
    before = path.read_bytes()

    def interrupted(file: Any, **arrays: Any) -> None:
        file.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "learner.npz", tmp_path / "folder"):
        with refused("path"):
            in_the_middle(mp.GenCTS()).save(path)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


KILLED = """
import os, signal, sys
import numpy as np
from multiplay import Learner

learner = Learner.load(sys.argv[1])
learner.ask()

def killed(file, **arrays):
    file.write(b"PK")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

np.savez = killed
learner.save(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="no SIGKILL")
def test_a_killed_save_leaves_the_old_file_and_nothing_after_the_next_load(tmp_path: Path) -> None:
    learner, path = in_the_middle(mp.GenCTS()), tmp_path / "learner.npz"
    learner.save(path)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, path], timeout=TIME_LIMIT)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2, "else the test shows nothing"
    assert contents(Learner.load(path)) == contents(learner)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", [None, 3, b"x", "learner\0.npz", ["x"], 1.5, "x" * 5000])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with refused("path"):
        in_the_middle(mp.GenCTS()).save(path)
    with refused("path"):
        Learner.load(path)


# ---------------------------------------------------------------- a billion units


@policies("GenCTS", "GenLBINFV ls", "GenLBINFV gd")
def test_a_billion_units_are_told_as_totals(policy: mp.Policy, tmp_path: Path) -> None:
    billion = 10**9
    actions = mp.Transport([billion, 2 * billion], [2 * billion, billion])
    learner = Learner(actions, policy, seed=1, loss_range=(0, 1))
    path = tmp_path / "learner.npz"
    cost = dict(zip(actions.names, [0.2, 0.4, 0.6, 0.8], strict=True))
    sent = np.zeros(4)
    for _ in range(20):
        play = learner.ask()
        assert actions.contains(play.action)
        learner.tell(play.id, {name: cost[name] * n for name, n in play.plan.items()})
        sent += play.action
    for array in learner.state.values():
        assert np.isfinite(array).all()
    if isinstance(policy, mp.GenCTS):
        assert (learner.state["p"] + learner.state["q"] - 2).tolist() == [sent.tolist()]
        played = sent > 0
        share = (learner.state["p"][0, played] - 1) / sent[played]
        # each is the average of at least a billion coins: 1e-4 is 6 standard errors, level 1e-8
        np.testing.assert_allclose(share, np.array(list(cost.values()))[played], atol=1e-4)
    learner.save(path)
    assert path.stat().st_size < 40_000
    with refused("losses"):
        play = learner.ask()
        learner.tell(play.id, {name: 1.001 * n for name, n in play.plan.items()})
