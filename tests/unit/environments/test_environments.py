"""Environments: the right losses, the same for everybody, and clear words for what is not one."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from refusal import refused
from scipy import stats

from multiplay import (
    Adversarial,
    Bernoulli,
    Beta,
    Constant,
    Corrupted,
    Distribution,
    Environment,
    Feedback,
    Stochastic,
    Transport,
    Uniform,
)
from multiplay.environments import Alternating, Attacked, RandomWalk, Sinusoids

PLANS = Transport([1, 4, 5], [4, 6])
CHEAP, DEAR = PLANS.argmin([0, 1, 0, 1, 1, 0]), PLANS.argmin([1, 0, 1, 0, 0, 1])
SWAP = Transport([1, 1], [1, 1])
BILLION = 10**9
HUGE = Transport([BILLION, BILLION], [BILLION, BILLION])
LEVELS = np.linspace(0.013, 0.987, 60)

RNG = np.random.default_rng(0)
LOW, HIGH = RNG.uniform(0, 0.5, (4, 6)), RNG.uniform(0.5, 1, (4, 6))
SLOTS = RNG.random((8, 6, 5))


def copycat(t: int, past: NDArray[np.int64]) -> NDArray[np.float64]:
    """What was played more often costs more."""
    losses: NDArray[np.float64] = (1 + past.sum(axis=0)) / (1 + 5 * t)
    return losses


ENVIRONMENTS: dict[str, Environment] = {
    "stochastic": Stochastic(Beta([1, 2, 3, 4, 5, 6], 2)),
    "a row for each trial": Stochastic(Uniform(LOW, HIGH)),
    "corrupted": Corrupted(before=Uniform(0, HIGH), after=Bernoulli(LOW), at=3),
    "adversarial": Adversarial(SLOTS[:, :, 0]),
    "slots": Adversarial(SLOTS),
    "adaptive": Adversarial(copycat),
    "attacked": Attacked(Beta([1, 2, 3, 4, 5, 6], 2), budget=2.6),
    "attacked, spread": Attacked(Uniform(LOW, HIGH), budget=2.6, when="spread", on="all"),
    "alternating": Alternating([0.3, 0.4, 0.5, 0.6, 0.7, 0.4], shift=0.3, first=2),
    "sinusoids": Adversarial(Sinusoids([0.3, 0.4, 0.5, 0.6, 0.7, 0.5], 0.3, period=5.5)),
    "random walk": Adversarial(RandomWalk(step=0.15, start=[0.1, 0.3, 0.5, 0.7, 0.9, 1.0])),
}
UNKNOWN_BEFOREHAND = ("adaptive", "attacked", "random walk")  # their total means
everywhere = pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)


def observe(
    environment: Environment, action: Any, trials: Any = range(4), rounds: int = 8
) -> list[Feedback]:
    world = environment.open(PLANS, rounds, trials, 5)
    return [world.observe(np.tile(action, (len(trials), 1))).feedback for _ in range(rounds)]


def units(feedback: Feedback, trial: int, arm: int) -> NDArray[np.float64]:
    assert feedback.units is not None
    assert feedback.first is not None
    first = feedback.first[arm]
    return feedback.units[trial, first : first + feedback.count[trial, arm]]


# ---------------------------------------------------------------- distributions


@everywhere
def test_losses_are_in_row_order(environment: Environment) -> None:
    """Kernels would be compiled again for another order of memory."""
    for feedback in observe(environment, [1, 0, 2, 2, 1, 4]):
        assert feedback.units is not None
        assert feedback.units.flags.c_contiguous
        assert feedback.total.flags.c_contiguous


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Uniform([0.1, 0.0, 0.3], [0.6, 1.0, 0.4]), stats.uniform([0.1, 0, 0.3], [0.5, 1, 0.1])),
        (Uniform(LOW, HIGH), stats.uniform(LOW, HIGH - LOW)),
        (Bernoulli([0.0, 0.3, 1.0]), stats.bernoulli([0.0, 0.3, 1.0])),
        (Beta([0.5, 2.0, 30.0], [0.5, 5.0, 1.0]), stats.beta([0.5, 2.0, 30.0], [0.5, 5.0, 1.0])),
        (Beta(1 + LOW, 3), stats.beta(1 + LOW, 3)),
    ],
    ids=["uniform", "uniform, trials", "bernoulli", "beta", "beta, trials"],
)
def test_quantiles_and_means_are_those_of_scipy(ours: Distribution, theirs: Any) -> None:
    np.testing.assert_allclose(ours.mean, theirs.mean(), rtol=1e-12)
    for u in LEVELS:
        np.testing.assert_allclose(ours.quantile(np.full(ours.shape, u)), theirs.ppf(u), rtol=1e-9)


def test_constant_losses_are_constant() -> None:
    value = np.array([0.0, 0.25, 1.0])
    for u in LEVELS:
        assert (Constant(value).quantile(np.full(3, u)) == value).all()
    assert (Constant(value).mean == value).all()


@pytest.mark.parametrize(
    "distribution", [Beta([1e-3, 1e3, 1e-8], [1e-3, 1e9, 5.0]), Uniform(0.1, [1.0, 0.1, 0.7])]
)
def test_losses_stay_in_the_unit_interval(distribution: Distribution) -> None:
    for u in (0.0, 1e-300, 0.5, 1 - 2**-53):
        losses = distribution.quantile(np.full(3, u))
        assert ((losses >= 0) & (losses <= 1)).all()


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("low", lambda: Uniform(-0.1, 0.5)),
        ("high", lambda: Uniform(0, [0.5, 1.2])),
        ("high", lambda: Uniform(0, np.nan)),
        ("low", lambda: Uniform("a", 1)),
        ("low", lambda: Uniform(["0.1"], 1)),
        ("high", lambda: Uniform(0, np.array([1j]))),
        ("Uniform", lambda: Uniform([0, 0], [1, 1, 1])),
        ("mean", lambda: Bernoulli([0.5, 1.5])),
        ("mean", lambda: Bernoulli([0.5, np.nan])),
        ("a", lambda: Beta(0, 1)),
        ("b", lambda: Beta(1, [2, -1])),
        ("a", lambda: Beta(np.inf, 1)),
        ("Beta", lambda: Beta([1, 2], [1, 2, 3])),
        ("value", lambda: Constant(2)),
        ("value", lambda: Constant([[0.1, 0.2], [0.3]])),
        ("value", lambda: Constant(np.ma.masked_array([0.5, 0.9], mask=[False, True]))),
        ("distribution", lambda: Stochastic(np.ones(3))),  # type: ignore[arg-type]
        ("before", lambda: Corrupted(None, Constant([0.5]))),  # type: ignore[arg-type]
        ("after", lambda: Corrupted(Constant([0.5]), Constant)),  # type: ignore[arg-type]
        ("at", lambda: Corrupted(Constant([0.5]), Constant([0.5]), at=0)),
        ("at", lambda: Corrupted(Constant([0.5]), Constant([0.5]), at=1.5)),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters_are_refused(argument: str, make: Callable[[], object]) -> None:
    with refused(argument):
        make()


def test_crossed_limits_are_shown() -> None:
    with pytest.raises(ValueError, match=r"low, high.*0\.7.*0\.2"):
        Uniform([0.1, 0.7], [0.5, 0.2])


@pytest.mark.parametrize("shape", [(1,), (5,), (7,), (3, 6), (1, 6), (6, 4), (4, 6, 1)])
def test_parameters_must_fit_arms_and_trials(shape: tuple[int, ...]) -> None:
    good, bad = Constant(np.full(6, 0.5)), Constant(np.full(shape, 0.5))
    for argument, environment in (
        ("distribution", Stochastic(bad)),
        ("before", Corrupted(before=bad, after=good)),
        ("after", Corrupted(before=good, after=bad)),
    ):
        with refused(argument):
            environment.check(PLANS, 10, 4)


@pytest.mark.parametrize("shape", [(), (6,), (4, 6)])
def test_parameters_of_all_shapes_fit(shape: tuple[int, ...]) -> None:
    Stochastic(Constant(np.full(shape, 0.5))).check(PLANS, 10, 4)


def test_an_environment_keeps_its_own_numbers() -> None:
    constant, losses = np.full(6, 0.5), np.full((8, 6), 0.5)
    environments = [Stochastic(Constant(constant)), Adversarial(losses)]
    constant[:] = losses[:] = 7.0
    for environment in environments:
        assert (observe(environment, CHEAP)[0].total == 0.5 * CHEAP).all()


# ---------------------------------------------------------------- the same losses for everybody


@pytest.mark.parametrize(
    "environment",
    [ENVIRONMENTS[name] for name in ENVIRONMENTS if name != "adaptive"],
    ids=[name for name in ENVIRONMENTS if name != "adaptive"],
)
def test_losses_do_not_depend_on_what_is_played(environment: Environment) -> None:
    for one, other in zip(observe(environment, CHEAP), observe(environment, DEAR), strict=True):
        for trial in range(4):
            for arm in range(6):
                both = min(CHEAP[arm], DEAR[arm])
                mine, yours = units(one, trial, arm), units(other, trial, arm)
                assert (mine[:both] == yours[:both]).all()


def test_two_plans_share_an_arm() -> None:
    assert np.minimum(CHEAP, DEAR).any(), "else the test above compares nothing"


@everywhere
def test_a_trial_does_not_depend_on_the_others(environment: Environment) -> None:
    together = observe(environment, CHEAP)
    for chosen in ([2], [3, 1]):
        for one, other in zip(observe(environment, CHEAP, chosen), together, strict=True):
            assert (one.total == other.total[chosen]).all()
            for row, trial in enumerate(chosen):
                for arm in range(6):
                    assert (units(one, row, arm) == units(other, trial, arm)).all()


@everywhere
def test_totals_add_up_the_units_that_were_played(environment: Environment) -> None:
    for feedback in observe(environment, CHEAP):
        assert (feedback.count == CHEAP).all()
        for trial in range(4):
            sums = [units(feedback, trial, arm).sum() for arm in range(6)]
            np.testing.assert_allclose(feedback.total[trial], sums, rtol=1e-12, atol=1e-15)


def test_another_seed_gives_other_losses() -> None:
    opened = [ENVIRONMENTS["stochastic"].open(PLANS, 1, range(2), seed) for seed in (0, 1)]
    one, other = (world.observe(np.tile(CHEAP, (2, 1))).feedback.total for world in opened)
    assert (one != other)[:, CHEAP > 0].all()
    assert (one[0] != one[1])[CHEAP > 0].all(), "trials differ"


# ---------------------------------------------------------------- stochastic


def test_losses_of_a_trial_come_from_its_row() -> None:
    rows = np.arange(24).reshape(4, 6) / 24
    world = Stochastic(Constant(rows)).open(PLANS, 10, [3, 0], 0)
    feedback, means, _ = world.observe(np.tile(CHEAP, (2, 1)))
    np.testing.assert_allclose(feedback.total, CHEAP * rows[[3, 0]])
    np.testing.assert_allclose(means, rows[[3, 0]])
    assert world.total_means is not None
    np.testing.assert_allclose(world.total_means, 10 * rows[[3, 0]])


def test_losses_have_their_distribution_and_are_independent() -> None:
    """Level: 1 Kolmogorov-Smirnov test at 1e-7 and 4 correlations beyond 5.5 standard errors."""
    rounds, high = 1500, np.array([0.2, 0.4, 0.5, 0.6, 0.8, 1.0])
    seen = observe(Stochastic(Uniform(0, high)), [0, 1, 1, 3, 3, 2], range(2), rounds)
    scaled = np.array(  # rounds, trials, units of arms 3 and 4
        [[np.concatenate([units(f, k, i) / high[i] for i in (3, 4)]) for k in (0, 1)] for f in seen]
    )
    assert stats.kstest(scaled.ravel(), "uniform").pvalue > 1e-7
    pairs = [
        (scaled[1:], scaled[:-1]),  # rounds
        (scaled[:, 0], scaled[:, 1]),  # trials
        (scaled[:, :, [0, 3]], scaled[:, :, [1, 4]]),  # units of an arm
        (scaled[:, :, :3], scaled[:, :, 3:]),  # arms
    ]
    for one, other in pairs:
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(correlation) * np.sqrt(one.size) < 5.5


@everywhere
def test_total_means_are_the_sum_of_the_means(environment: Environment) -> None:
    world = environment.open(PLANS, 8, range(4), 5)
    total = np.zeros((4, 6))
    for _ in range(8):
        total += world.observe(np.tile(CHEAP, (4, 1))).means
    if any(environment is ENVIRONMENTS[name] for name in UNKNOWN_BEFOREHAND):
        assert world.total_means is None, "nobody knows it beforehand"
    else:
        assert world.total_means is not None
        np.testing.assert_allclose(world.total_means, total)


# ---------------------------------------------------------------- a billion units


@pytest.mark.parametrize("first", [3, 17, 600_000_000])
def test_totals_of_huge_plays_have_the_right_mean_and_variance(first: int) -> None:
    """Level: 4 arms, a mean and a variance each, 8 tests at 1e-7 (5.33 standard errors)."""
    trials, high = 20_000, np.array([0.3, 0.5, 0.8, 1.0])
    action = np.array([first, BILLION - first, BILLION - first, first])
    world = Stochastic(Uniform(0, high)).open(HUGE, 1, range(trials), 0)
    feedback = world.observe(np.tile(action, (trials, 1))).feedback
    assert feedback.units is None, "totals only"
    assert ((feedback.total >= 0) & (feedback.total <= feedback.count)).all()
    mean, variance = action * high / 2, action * high**2 / 12
    error = np.sqrt(variance / trials)
    assert (np.abs(feedback.total.mean(axis=0) - mean) < 5.33 * error).all()
    # sums of uniform numbers have no heavier tails than a normal: Var s^2 <= 2 sigma^4 / trials
    ratio = feedback.total.var(axis=0, ddof=1) / variance
    assert (np.abs(ratio - 1) < 5.33 * np.sqrt(2 / trials)).all()


def test_huge_plays_meet_the_same_losses_whatever_is_played() -> None:
    """The more units of an arm, the larger their total: units are added, never redrawn."""
    totals = []
    for first in (1, 2, 10, 16):
        world = Stochastic(Uniform(0.1, np.ones(4))).open(HUGE, 1, range(50), 0)
        action = np.array([first, BILLION - first, BILLION - first, first])
        totals.append(world.observe(np.tile(action, (50, 1))).feedback.total[:, [0, 3]])
    assert (np.diff(totals, axis=0) > 0).all()


@pytest.mark.parametrize(
    "environment",
    [
        Stochastic(Uniform(0, np.ones(4))),
        Corrupted(Uniform(0, np.ones(4)), Constant(np.ones(4)), at=5),
        Adversarial(np.full((20, 4), 0.5)),
    ],
    ids=["stochastic", "corrupted", "adversarial"],
)
def test_huge_plays_need_no_memory(environment: Environment) -> None:
    action = HUGE.argmin([[0, 1, 1, 0]])
    environment.open(HUGE, 20, [0], 0).observe(action)  # compiles
    tracemalloc.start()
    world = environment.open(HUGE, 20, [0], 0)
    for _ in range(20):
        world.observe(action)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000, "a loss of its own for each unit would take 16 GB"


def test_huge_adversarial_totals_are_exact() -> None:
    losses = RNG.random((3, 4))
    world = Adversarial(losses).open(HUGE, 3, [0], 0)
    action = np.array([[BILLION - 7, 7, 7, BILLION - 7]])
    for t in range(3):
        total = world.observe(action).feedback.total
        np.testing.assert_allclose(total, action * losses[t], rtol=1e-12)


# ---------------------------------------------------------------- corrupted


@pytest.mark.parametrize("at", [1, 3, 8, 9, 2000])
def test_corruption_begins_after_round_at(at: int) -> None:
    """With the same luck: rounds 1..at are those of ``before``, the others those of ``after``."""
    before, after = Uniform(0, HIGH), Beta(2, 1 + LOW)
    clean, changed = observe(Stochastic(before), CHEAP), observe(Stochastic(after), CHEAP)
    environment = Corrupted(before, after, at=at)
    for t, feedback in enumerate(observe(environment, CHEAP), start=1):
        assert (feedback.total == (clean if t <= at else changed)[t - 1].total).all()
    world = environment.open(PLANS, 8, range(4), 5)
    assert world.total_means is not None
    expected = min(at, 8) * before.mean + max(8 - at, 0) * after.mean
    np.testing.assert_allclose(world.total_means, expected)


# ---------------------------------------------------------------- adversarial


def test_without_slots_all_units_of_an_arm_lose_the_same() -> None:
    losses = SLOTS[:, :, 1]
    for t, feedback in enumerate(observe(Adversarial(losses.tolist()), CHEAP)):
        for trial in range(4):
            for arm in range(6):
                assert (units(feedback, trial, arm) == losses[t, arm]).all()


def test_slots_are_shuffled_and_none_is_lost() -> None:
    """Play all n_i units of an arm: they lose what its first n_i slots hold, in some order."""
    everything = PLANS.n
    orders = set()
    for t, feedback in enumerate(observe(Adversarial(SLOTS), everything)):
        for trial in range(4):
            for arm, n in enumerate(everything):
                seen, given = units(feedback, trial, arm), SLOTS[t, arm, :n]
                assert (np.sort(seen) == np.sort(given)).all()
                orders.add(tuple(np.argsort(seen).tolist()))
    assert len(orders) > 20


def test_each_unit_sees_each_slot_equally_often() -> None:
    """Level: a chi-square test for each of 17 units at 5e-8 (arms with one unit need none)."""
    trials = 6000
    losses = np.tile(np.arange(5) / 5, (1, 6, 1))
    world = Adversarial(losses).open(PLANS, 1, range(trials), 0)
    feedback = world.observe(np.tile(PLANS.n, (trials, 1))).feedback
    tested = 0
    for arm in np.flatnonzero(PLANS.n > 1).tolist():
        seen = np.array([units(feedback, trial, arm) for trial in range(trials)])
        slot = np.rint(5 * seen).astype(int)
        for unit in range(PLANS.n[arm]):
            counts = np.bincount(slot[:, unit], minlength=PLANS.n[arm])
            assert stats.chisquare(counts).pvalue > 5e-8
            tested += 1
    assert tested == 17


def test_expected_losses_are_averages_over_the_slots() -> None:
    world = Adversarial(SLOTS).open(PLANS, 8, range(2), 5)
    for t in range(8):
        means = world.observe(np.tile(CHEAP, (2, 1))).means
        expected = [SLOTS[t, arm, :n].mean() for arm, n in enumerate(PLANS.n)]
        np.testing.assert_allclose(means, [expected, expected])


def test_an_adversary_sees_the_past_and_not_the_present() -> None:
    seen = []

    def spy(t: int, past: NDArray[np.int64]) -> list[float]:
        seen.append((t, past.copy()))
        return [0.5] * 4

    played = np.array([[[1, 0, 0, 1], [0, 1, 1, 0]], [[0, 1, 1, 0], [0, 1, 1, 0]]] * 3)
    world = Adversarial(spy).open(SWAP, 6, range(2), 0)
    for action in played:
        world.observe(action)
    assert [t for t, _ in seen] == [1, 2, 3, 4, 5, 6]
    for t, past in seen:
        assert past.shape == (t - 1, 2, 4)
        assert (past == played[: t - 1]).all()


@pytest.mark.parametrize("shape", [(6,), (1, 6), (4, 6), (4, 6, 5), (4, 6, 9)])
def test_an_adversary_may_answer_in_every_shape(shape: tuple[int, ...]) -> None:
    answer = np.random.default_rng(1).random(shape)
    expected = answer
    if len(shape) == 3:
        expected = np.column_stack([answer[:, i, :n].mean(axis=1) for i, n in enumerate(PLANS.n)])
    world = Adversarial(lambda t, past: answer).open(PLANS, 2, range(4), 0)
    means = world.observe(np.tile(CHEAP, (4, 1))).means
    np.testing.assert_allclose(means, np.broadcast_to(expected, (4, 6)))


@pytest.mark.parametrize(
    "losses",
    [
        [0.1, 0.2],
        0.5,
        np.zeros((2, 2, 2, 2)),
        [[0.1, 0.2], [0.3]],
        [[0.5, 1.5]],
        [[0.5, -0.5]],
        [[0.5, np.nan]],
        [["0.5", "0.5"]],
        "losses.csv",
        None,
        Sinusoids,
    ],
    ids=[
        "1-d",
        "0-d",
        "4-d",
        "ragged",
        "large",
        "negative",
        "nan",
        "text",
        "path",
        "none",
        "class",
    ],
)
def test_bad_adversarial_losses_are_refused(losses: Any) -> None:
    with refused("losses"):
        Adversarial(losses)


@pytest.mark.parametrize(
    "losses",
    [
        np.zeros((9, 6)),
        np.zeros((10, 5)),
        np.zeros((10, 7, 5)),
        np.zeros((10, 6, 4)),
        np.zeros((0, 6)),
    ],
    ids=["rounds", "few arms", "many arms", "few slots", "nothing"],
)
def test_adversarial_losses_must_fit(losses: NDArray[np.float64]) -> None:
    with refused("losses"):
        Adversarial(losses).check(PLANS, 10, 4)


def test_more_rounds_and_slots_than_needed_are_fine() -> None:
    Adversarial(np.zeros((11, 6, 8))).check(PLANS, 10, 4)


@pytest.mark.parametrize(
    "answer",
    [
        np.full(6, np.nan),
        np.full(6, 2.0),
        np.full(6, -0.1),
        np.zeros(5),
        np.zeros((3, 6)),
        np.zeros((4, 6, 4)),
        np.zeros((4, 6, 5, 1)),
        0.5,
        None,
        "free",
    ],
    ids=["nan", "two", "negative", "arms", "trials", "slots", "4-d", "0-d", "none", "text"],
)
def test_bad_answers_of_an_adversary_are_refused(answer: Any) -> None:
    world = Adversarial(lambda t, past: answer if t == 2 else np.zeros(6)).open(
        PLANS, 3, range(4), 0
    )
    world.observe(np.tile(CHEAP, (4, 1)))
    with refused("losses of round 2"):
        world.observe(np.tile(CHEAP, (4, 1)))
