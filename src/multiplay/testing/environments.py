"""Contract of environments: reproducibility, means, averages, corruption, units, features."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.environments import Environment, Observation, World
from multiplay.feedback import Feedback
from multiplay.testing.settings import check_settings
from multiplay.types import FloatArray, IntArray

LEVEL = 1e-6  # the probability that a correct environment is refused
RUNS = 100  # seeds for which losses are compared with their means
ROUNDING = 1e-9


def check_environment(
    environment: Environment,
    actions: ActionSet,
    seed: int = 0,
    *,
    horizon: int = 30,
    trials: int = 3,
) -> None:
    """Check the contract of an environment on one action set.

    A world must accept any counts from 0 to :math:`n_i`: a simulation may look ahead without
    playing.

    Parameters
    ----------
    environment
        The environment.
    actions
        The set that is played.
    seed
        The seed of the losses and of the actions that are tried.
    horizon, trials
        The numbers of rounds and trials.

    Examples
    --------
    >>> from multiplay import Stochastic, Transport
    >>> from multiplay.testing import check_environment
    >>> check_environment(Stochastic.example(), Transport.example())
    """
    environment.check(actions, horizon, trials)
    plays = _plays(actions, horizon, trials, seed)
    together = {
        name: _watch(environment, actions, range(trials), seed, play)
        for name, play in plays.items()
    }
    for name, run in together.items():
        for seen, play in zip(run.seen, plays[name], strict=True):
            _check_observation(seen, play, actions)
        again = _watch(environment, actions, range(trials), seed, plays[name])
        assert _alike(run, again), "the same seed must give the same losses"
        for k in range(trials):
            alone = _watch(environment, actions, [k], seed, plays[name][:, k : k + 1])
            assert _alike(run.of_trial(k), alone), "a trial must not depend on the other trials"
    _check_averages(together["everything"], actions)
    if not environment.adaptive:
        for run in together.values():
            _check_same_losses(together["everything"], run)
    _check_sums(environment, actions, seed, plays["some"])
    _check_means(environment, actions, seed, plays["some"])
    check_settings(environment)


class Run(NamedTuple):
    """The observations and features of all rounds, and the corruption at the end."""

    seen: list[Observation]
    corruption: FloatArray
    features: list[FloatArray]

    def of_trial(self, k: int) -> "Run":
        """Return the run of one trial."""
        seen = [_rows(seen, slice(k, k + 1)) for seen in self.seen]
        return Run(seen, self.corruption[[k]], [phi[[k]] for phi in self.features])


def _plays(actions: ActionSet, horizon: int, trials: int, seed: int) -> dict[str, IntArray]:
    """Return plays of no units, of all units, and of actions of the set; (horizon, trials, d)."""
    costs = np.random.default_rng(seed).normal(size=(horizon, trials, actions.d))
    some = actions.argmin(costs)
    return {
        "nothing": np.zeros_like(some),
        "everything": np.broadcast_to(actions.n, some.shape).copy(),
        "some": some,
    }


def _watch(
    environment: Environment,
    actions: ActionSet,
    trials: Sequence[int],
    seed: int,
    play: IntArray,
) -> Run:
    """Play all rounds, and return copies of the observations."""
    world = environment.open(actions, len(play), trials, seed)
    seen, features = [], []
    for t, action in enumerate(play, 1):
        features.append(_features(world, t, action.shape))
        seen.append(_rows(world.observe(action.copy()), slice(None)))
    return Run(seen, _corruption(world, len(trials)), features)


def _features(world: World, t: int, shape: tuple[int, ...]) -> FloatArray:
    """Return phi of all arms in round t, (trials, d, p); p = 0 without features."""
    rows = world.contexts(t)
    if rows is None:
        return np.empty((*shape, 0))
    assert len(rows.arm) in (1, shape[0]), "features must have one row for all trials, or for each"
    assert rows.d == shape[1], "features must have a row for each arm"
    assert rows.day.shape in ((1, rows.p), (shape[0], rows.p)), "day must have p numbers"
    phi: FloatArray = np.broadcast_to(rows.arm * rows.day[:, None], (*shape, rows.p)).copy()
    assert np.isfinite(phi).all(), "features must be finite"
    assert (phi[..., 0] == 1).all(), "the first feature must be 1"
    return phi


def _check_observation(seen: Observation, play: IntArray, actions: ActionSet) -> None:
    feedback, means, averages = seen
    shape, playable = play.shape, actions.n > 0
    assert (feedback.count == play).all(), "count must be the action that was played"
    assert feedback.total.shape == shape, "total must have a number for each trial and arm"
    assert means.shape == shape, "means must have a number for each trial and arm"
    assert averages.shape == shape, "averages must have a number for each trial and arm"
    for name, values in (("means", means), ("averages", averages)):
        assert _inside(values[:, playable], 1), f"{name} must be in [0, 1]"
    assert _inside(feedback.total, play), "the loss of a unit must be in [0, 1]"
    for k, i, units in _units(feedback):
        assert _inside(units, 1), "the loss of a unit must be in [0, 1]"
        same = np.isclose(units.sum(), feedback.total[k, i], rtol=ROUNDING, atol=ROUNDING)
        assert same, "the losses of the units must add up to the total"


def _check_averages(everything: Run, actions: ActionSet) -> None:
    """Where all units are played, compare the averages with the totals."""
    playable = actions.n > 0
    for seen in everything.seen:
        average = seen.feedback.total[:, playable] / actions.n[playable]
        same = np.allclose(seen.averages[:, playable], average, rtol=ROUNDING, atol=ROUNDING)
        assert same, "averages must be those of all n_i units, played or not"


def _check_same_losses(everything: Run, other: Run) -> None:
    says = "losses must not depend on what is played, unless the environment is adaptive"
    assert np.array_equal(everything.corruption, other.corruption), says
    for phi, same in zip(everything.features, other.features, strict=True):
        assert np.array_equal(phi, same), "features must not depend on what is played"
    for most, some in zip(everything.seen, other.seen, strict=True):
        assert np.array_equal(most.means, some.means), says
        assert np.array_equal(most.averages, some.averages), says
        units = {(k, i): losses for k, i, losses in _units(most.feedback)}
        for k, i, losses in _units(some.feedback):
            assert np.array_equal(units[k, i][: len(losses)], losses), says


def _check_sums(environment: Environment, actions: ActionSet, seed: int, plays: IntArray) -> None:
    """Compare the totals of a world over a run with its rounds."""
    horizon, trials, _ = plays.shape
    world = environment.open(actions, horizon, range(trials), seed)
    promised = None if world.total_means is None else np.array(world.total_means)
    total, before = np.zeros(plays.shape[1:]), _corruption(world, trials)
    first: FloatArray | None = None
    for play in plays:
        means = np.array(world.observe(play.copy()).means)
        total += means
        first = means if first is None else first
        same = not environment.stationary or np.array_equal(first, means)
        assert same, "a stationary environment must have the same means in every round"
        after = _corruption(world, trials)
        assert (after >= before - ROUNDING).all(), "corruption must never decrease"
        before = after
    if promised is not None:
        same = np.allclose(promised, total, rtol=ROUNDING, atol=ROUNDING)
        assert same, "total_means must be the sum of the means over all rounds"


def _corruption(world: World, trials: int) -> FloatArray:
    if world.corruption is None:
        return np.zeros(trials)
    assert world.corruption.shape == (trials,), "corruption must have a number for each trial"
    assert (world.corruption >= 0).all(), "corruption must not be negative"
    return np.array(world.corruption)


def _check_means(environment: Environment, actions: ActionSet, seed: int, plays: IntArray) -> None:
    """Compare losses with means, over many runs.

    Given the past, the loss of the units of arm i in a round, divided by n_i, lies in an interval
    of length 1 that holds its mean, a_i means_i / n_i. So a sum of N differences exceeds
    sqrt(N log(2 d / delta) / 2) for some of d arms with probability at most delta (Hoeffding,
    Azuma). Half of the level each is for the units that are played and for the averages of all.
    """
    horizon, trials, d = plays.shape
    n = np.maximum(actions.n, 1)
    played, in_all = np.zeros(d), np.zeros(d)
    for run in range(RUNS):
        world = environment.open(actions, horizon, range(trials), seed + run)
        for action in plays:
            feedback, means, averages = world.observe(action.copy())
            played += ((feedback.total - _expected(world, action, means)) / n).sum(axis=0)
            in_all += (averages - means).sum(axis=0)
    allowed = np.sqrt(RUNS * trials * horizon * np.log(4 * d / LEVEL) / 2)
    assert (np.abs(played) <= allowed).all(), "losses must have the means that the world returns"
    in_all = in_all[actions.n > 0]
    assert (np.abs(in_all) <= allowed).all(), "averages must have the means that the world returns"


def _expected(world: World, action: IntArray, means: FloatArray) -> FloatArray:
    """Return the expected total of each arm."""
    if world.unit_means is None:
        return action * means
    first = np.arange(world.unit_means.shape[2]) < action[:, :, None]
    expected: FloatArray = (world.unit_means * first).sum(axis=2)
    return expected


def _units(feedback: Feedback) -> list[tuple[int, int, FloatArray]]:
    """Return trial, arm and the losses of its units, if the losses of units are known."""
    if feedback.units is None or feedback.first is None:
        return []
    return [
        (k, i, feedback.units[k, feedback.first[i] : feedback.first[i] + feedback.count[k, i]])
        for k, i in np.ndindex(feedback.count.shape)
    ]


def _inside(values: FloatArray, most: FloatArray | IntArray | int) -> bool:
    return bool(((values >= -ROUNDING) & (values <= most + ROUNDING)).all())


def _rows(seen: Observation, rows: slice) -> Observation:
    """Return a copy of the observation of these trials."""
    feedback, means, averages = seen
    units = None if feedback.units is None else feedback.units[rows].copy()
    count, total = feedback.count[rows].copy(), feedback.total[rows].copy()
    kept = Feedback(count, total, units, feedback.first)
    return Observation(kept, means[rows].copy(), averages[rows].copy())


def _alike(some: Run, others: Run) -> bool:
    """Compare two runs; units that were not played are ignored."""
    pairs = zip(some.features, others.features, strict=True)
    if not all(np.array_equal(phi, other) for phi, other in pairs):
        return False
    return np.array_equal(some.corruption, others.corruption) and all(
        np.array_equal(one.means, other.means)
        and np.array_equal(one.averages, other.averages)
        and np.array_equal(one.feedback.total, other.feedback.total)
        and all(
            np.array_equal(a, b)
            for (_, _, a), (_, _, b) in zip(
                _units(one.feedback), _units(other.feedback), strict=True
            )
        )
        for one, other in zip(some.seen, others.seen, strict=True)
    )
