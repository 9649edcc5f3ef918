"""A new study learns from the arms of others: their level, spread and noise, not their means."""

from typing import Any

import numpy as np
import pytest
from refusal import refused
from serving import connected, serving
from trucks import tables, verified

import multiplay as mp
from multiplay.beliefs.posterior import Posterior
from multiplay.kernels.moments import COLUMNS, MEAN, SEEN, B, F, N, W
from multiplay.posteriors.like import STUDY, recentred
from multiplay.service.auth import keys
from multiplay.storage import MemoryStore, Store
from multiplay.studies.like import MOST_ARMS, arms_like, moments_of
from multiplay.types import FloatArray

PLANS = mp.Transport([3, 3, 3], [3, 3, 3])


def city(
    store: Store, name: str, seed: int, rounds: int, low: float = 0.0, **given: object
) -> mp.Study:
    """Return a study whose lanes cost 120 and more, after some days."""
    rng = np.random.default_rng(seed)
    means = low + rng.normal(120.0, 10.0, 9)
    span = {"loss_range": (low, low + 250)}
    study = mp.Study.create(name, PLANS, store=store, **span | given)  # type: ignore[arg-type]
    for _ in range(rounds):
        play = study.ask()
        losses = {
            arm: rng.normal(means[k], 6.0, units).tolist()
            for k, (arm, units) in enumerate(play.plan.items())
            if units
        }
        study.tell(play, losses)
    return study


def rows_of(study: mp.Study) -> FloatArray:
    with study._current() as engine:
        return moments_of(engine.state)


@pytest.mark.parametrize("low", [0.0, 50.0])
def test_its_moments_are_those_of_the_losses(low: float) -> None:
    """They are in the user's unit, whatever the range."""
    study = city(MemoryStore(), "lyon", 3, 12, low)
    rows = rows_of(study)
    seen = study.arms()
    assert rows[:, N].tolist() == seen["seen"][seen["seen"] > 0].tolist()
    assert rows[:, MEAN] == pytest.approx(seen["average"][seen["seen"] > 0].to_numpy(), abs=1e-9)
    deviation = np.sqrt((rows[:, W] + rows[:, B]).sum() / (rows[:, N] - 1).clip(0).sum())
    assert 4.5 < deviation < 7.5, "the noise has a deviation of 6"


def test_beliefs_are_those_of_a_posterior_with_more_arms() -> None:
    """The twin is the posterior of all arms together, of which some are not ours."""
    rng = np.random.default_rng(5)
    sums = np.zeros((12, COLUMNS))
    sums[:, N] = sums[:, 1] = rng.integers(2, 9, 12)
    sums[:, 2], sums[:, 3] = sums[:, N], sums[:, N]
    sums[:, MEAN], sums[:, B] = rng.uniform(0.4, 0.6, 12), rng.uniform(0.01, 0.02, 12)
    sums[:, F] = sums[:, B] ** 2
    sums[:3] = 0.0
    both = Posterior(sums, np.zeros(2))
    own = Posterior(sums[:4], np.zeros(2), like=sums[4:])
    assert own.mean.tolist() == both.mean[:4].tolist()
    assert own.spread.tolist() == both.spread[:4].tolist()
    assert np.array_equal(own.interval(0.9), np.array(both.interval(0.9))[:, :4])
    plan = np.array([0, 3]), np.array([2.0, 1.0]), 0.9
    assert own.half_width(*plan) == both.half_width(*plan)
    alone = Posterior(sums[:4], np.zeros(2))
    assert own.mean_unseen != alone.mean_unseen


def test_arms_of_others_move_to_the_level_here_unless_levels_are_alike() -> None:
    """The twin is the formula, study by study."""
    rng = np.random.default_rng(2)
    for spread, own_mean in ((0.0, 0.7), (0.001, 0.7), (0.2, 0.7), (0.2, None)):
        like, own = np.zeros((12, COLUMNS + 1)), np.zeros((3, COLUMNS))
        like[:, STUDY] = np.repeat([0, 1, 2], [3, 4, 5])
        of = like[:, STUDY].astype(int)
        like[:, MEAN] = 0.4 + spread * np.array([-1.0, 0.0, 1.0])[of] + rng.normal(0, 0.02, 12)
        if own_mean is not None:
            own[:2, N], own[:2, MEAN] = 3.0, [own_mean - 0.01, own_mean + 0.01]
        levels = [like[of == k, MEAN].mean() for k in range(3)]
        apart = [like[of == k, MEAN] - levels[k] for k in range(3)]
        within = sum(float(part @ part) for part in apart) / 9
        between = max(np.var(levels, ddof=1) - within * np.mean([1 / 3, 1 / 4, 1 / 5]), 1e-12)
        kappa, n = within / between, 0 if own_mean is None else 2
        expected = (n * (own_mean or 0.0) + kappa * np.mean(levels)) / (n + kappa)
        rows = recentred(like, own)
        assert rows[:, MEAN] == pytest.approx(np.concatenate(apart) + expected, abs=1e-12)
        if own_mean is not None:
            assert abs(expected - (0.7 if spread == 0.2 else 0.4)) < 0.05
    one = recentred(like[:3], own)
    assert one[:, MEAN] == pytest.approx(like[:3, MEAN]), "one study, and nothing seen here"


def test_plans_are_those_of_a_study_that_knows_the_arms_from_elsewhere() -> None:
    """The twin has learned the bills of arms that its set does not have: they teach in one way."""
    store, rng = MemoryStore(), np.random.default_rng(1)
    bills = {f"elsewhere {k}": rng.normal(120.0 + k, 6.0, 7).tolist() for k in range(8)}
    others = mp.Budget(56, [*[7] * 8, 1], names=[*bills, PLANS.names[0]])
    memory = {"policy": mp.PooledCTS(), "loss_range": (0, 250), "varying_set": True}
    source = mp.Study.create("source", others, store=store, **memory)  # type: ignore[arg-type]
    source.learn(dict.fromkeys(bills, 7), bills)
    twin = mp.Study.create("twin", PLANS, store=store, **memory)  # type: ignore[arg-type]
    twin.learn(dict.fromkeys(bills, 7), bills, actions=others)
    one = mp.Study.create("one", PLANS, store=store, like="source", **memory)  # type: ignore[arg-type]
    with twin._current() as engine, one._current() as new:
        arms = engine.state.arms
        there = arms.to_choose(arms.places(PLANS.names))
        here = new.state.arms.to_choose(None)
        assert np.allclose(here["others"], there["others"], rtol=1e-12, atol=1e-12)
    mine, theirs = one.arms(), twin.arms().set_index("arm").loc[list(PLANS.names)]
    for column in ("mean", "low", "high"):
        assert mine[column].to_numpy() == pytest.approx(theirs[column].to_numpy(), rel=1e-9)
    assert set(one.arms()["arm"]) == set(PLANS.names), "none of their arms is one here"


def test_it_is_stored_with_the_study() -> None:
    """Replay, snapshots, a copy and another range have the same arms of others."""
    store = MemoryStore()
    for k in range(3):
        city(store, f"west/{k}", k, 10).disconnect()
    study = city(store, "new", 9, 30, like="west/*")
    rows = rows_of(study)
    with study._current() as engine:
        like = engine.state.like
        assert like is not None
        stored = like.copy()
    others = [mp.Study.open(f"west/{k}", store=store) for k in range(3)]
    assert stored[:, :STUDY].tolist() == np.concatenate([*map(rows_of, others)]).tolist()
    assert np.bincount(stored[:, STUDY].astype(int)).tolist() == [*map(len, map(rows_of, others))]
    mp.Study.delete("west/0", store=store)
    assert verified(study).ok
    again = mp.Study.open("new", store=store)
    assert tables(again) == tables(study)
    assert rows_of(again).tolist() == rows.tolist()
    study.set_range((0, 500))
    with study._current() as engine:
        assert engine.state.like is not None
        assert engine.state.like.tolist() == stored.tolist()
    assert verified(study).ok


def test_a_new_city_costs_less_with_the_others() -> None:
    """The regret of 20 days in 20 cities: the sign test has p < .02 at 15 of 20."""
    store = MemoryStore()
    for k in range(5):
        city(store, f"west/{k}", k, 15).disconnect()
    better = 0
    for k in range(100, 120):
        spent = []
        for given in ({}, {"like": "west/*"}):
            study = city(store, f"{k} {len(given)}", k, 20, **given)  # type: ignore[arg-type]
            spent.append(study.plays()["realised"].sum())
        better += spent[1] < spent[0]
    assert better >= 15


def test_what_cannot_teach_is_left_out_or_refused() -> None:
    store = MemoryStore()
    city(store, "east/1", 1, 5).disconnect()
    with mp.Study.create(
        "west/none", PLANS, store=store, features=mp.Features(rain=mp.Flag())
    ) as featured:
        assert len(rows_of(featured)) == 0
    like: Any
    for like in ("south/*", "west/*", []):
        with refused("like"):
            mp.Study.create("new", PLANS, store=store, like=like)
    rewards = mp.Budget(2, [2, 2], sense="max")
    with refused("like"):
        mp.Study.create("new", rewards, store=store, like="east/*")
    with refused("like"):
        mp.Study.create(
            "new", PLANS, store=store, like="east/*", features=mp.Features(rain=mp.Flag())
        )
    many = np.tile(rows_of(mp.Study.open("east/1", store=store)), (200, 1))
    assert (many[:, N] > SEEN).all()
    assert arms_like(many, PLANS, store, mp.Study) is many
    assert "new" not in store.names()
    assert len(many) > MOST_ARMS


def test_a_study_of_a_service_is_the_same(tmp_path: object) -> None:
    store = mp.storage.store_at(f"{tmp_path}/studies.db")
    for k in range(2):
        city(store, f"west/{k}", k, 8).disconnect()
    key = keys.create(store, "manage").token
    here = mp.Study.create("here", PLANS, store=store, loss_range=(0, 250), like=["west/*"])
    with serving(store.url, open=False) as url:
        with connected(url, key=key) as service:
            there = service.create("there", PLANS, loss_range=(0, 250), like=["west/*"])
            for _ in range(3):
                play, other = here.ask(), there.ask()
                assert play.plan == other.plan
                assert play.expected == other.expected
        narrow = keys.create(store, "manage", study="there").token
        with connected(url, key=narrow) as service, pytest.raises(mp.InvalidInput, match="key"):
            service.create("there", PLANS, like="west/*")
