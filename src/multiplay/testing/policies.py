"""Contract of policies: reproducibility, feedback, changing sets, missing units, external plans."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay.actions import ActionSet
from multiplay.environments import Bernoulli, Stochastic, World
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies import Play, Policy
from multiplay.policies.base import shown
from multiplay.random import POLICY, Streams
from multiplay.testing.settings import check_settings
from multiplay.types import Arrays, FloatArray, IntArray

ROUNDS, TRIALS = 5, 2
NEW_ARMS = 2  # arms of other sets, which the set of the round does not have
LEVELS = (0.5, 0.9)


def check_policy(policy: Policy, actions: ActionSet, seed: int = 0) -> None:
    """Check the contract of a policy on one action set.

    Parameters
    ----------
    policy
        The policy.
    actions
        The set that it plays on, for a few rounds.
    seed
        The seed of the losses and of the policy.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import GenCTS, Play, Transport
    >>> from multiplay.testing import check_policy
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> check_policy(GenCTS(), plans)

    The error names the property that failed:

    >>> class Careless(GenCTS):
    ...     def choose(self, actions, state, rng):
    ...         own = np.random.default_rng()
    ...         return Play(actions.best(own.random(state["p"].shape)))
    >>> check_policy(Careless(), plans)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: the same seed must give the same plays and the same state...
    """
    trials = range(3)
    together = _play(policy, actions, trials, seed)
    again = _play(policy, actions, trials, seed)
    assert _same(together, again), "the same seed must give the same plays and the same state"
    for k in trials:
        alone = _play(policy, actions, [k], seed)
        plays, state = [action[k : k + 1] for action in together[0]], _rows(together[1], k)
        says = "a trial must not depend on the other trials"
        for name, array in state.items():
            assert _same(alone[1].get(name), array), f"{says}: state[{name!r}] does"
        assert _same(alone, (plays, state)), f"{says}: its plays do"
    _check_late_feedback(policy, actions, seed)
    _check_cache(policy, actions, seed)
    _check_totals(policy, actions, seed)
    if policy.learns_from == "round":
        _check_round(policy, actions, seed)
    _check_beliefs(policy, together[1], (len(trials), actions.d))
    if policy.changing:
        _check_changing(policy, actions, _horizon(actions), seed)
    if policy.partial:
        _check_partial(policy, actions, _horizon(actions), seed)
    if policy.absorbs:
        _check_absorbs(policy, actions, _horizon(actions), seed)
    check_settings(policy)


def _play(
    policy: Policy, actions: ActionSet, trials: Sequence[int], seed: int, rounds: int = 30
) -> tuple[list[IntArray], Arrays]:
    """Play some rounds; return the actions and the last state."""
    horizon = _horizon(actions)
    rng = Streams.spawn(seed, POLICY, trials)
    means = np.linspace(0.1, 0.9, actions.d)
    world = Stochastic(Bernoulli(means)).open(actions, horizon, trials, seed)
    state = policy.start(actions, horizon, len(trials))
    _check_arrays(state, len(trials), "start")
    first, played = {name: array.copy() for name, array in state.items()}, []
    for _ in range(rounds):
        before = {name: array.copy() for name, array in state.items()}
        play = policy.choose(actions, state, rng)
        assert isinstance(play, Play), f"choose must return a Play, not a {type(play).__name__}"
        assert _same(before, state), "choose must leave the state as it is"
        assert play.action.shape == (len(trials), actions.d), "one action for each trial"
        assert actions.contains(play.action).all(), "choose must play actions of the set"
        policy.update(actions, state, play, shown(policy, world.observe(play.action).feedback), rng)
        _check_arrays(state, len(trials), "update")
        for name, array in state.items():
            assert np.isfinite(array).all(), f"state[{name!r}] must stay finite"
        played.append(play.action)
    best = actions.best(np.random.default_rng(0).random((8, actions.d)))
    if state and (best != best[0]).any():  # there is something to learn
        says = "update must write into the state that it is given, and has changed nothing there"
        assert not _same(first, state), says
    return played, state


def _check_arrays(state: Arrays, trials: int, method: str) -> None:
    for name, array in state.items():
        got = f"{method} must leave in state[{name!r}] an array with the trials first, shape"
        shape = np.shape(array)
        kept = isinstance(array, np.ndarray) and shape[:1] == (trials,)
        assert kept, f"{got} ({trials}, ...): got {type(array).__name__} of shape {shape}"


def _check_late_feedback(policy: Policy, actions: ActionSet, seed: int) -> None:
    rng = Streams.spawn(seed, POLICY, [0])
    world = Stochastic(Bernoulli(np.full(actions.d, 0.5))).open(actions, 1000, [0], seed)
    state = policy.start(actions, _horizon(actions), 1)
    plays = [policy.choose(actions, state, rng) for _ in range(5)]
    for play in reversed(plays):
        policy.update(actions, state, play, shown(policy, world.observe(play.action).feedback), rng)
    for name, array in state.items():
        assert np.isfinite(array).all(), f"state[{name!r}] must survive late feedback"


def _check_cache(policy: Policy, actions: ActionSet, seed: int) -> None:
    """Drop the cache of every play, and the arrays of the state that it would replace."""
    rng = Streams.spawn(seed, POLICY, [0])
    world = Stochastic(Bernoulli(np.full(actions.d, 0.5))).open(actions, 1000, [0], seed)
    state = policy.start(actions, _horizon(actions), 1)
    for _ in range(5):
        play = policy.choose(actions, state, rng)
        feedback = shown(policy, world.observe(play.action).feedback)
        twin = Streams(rng.state.copy())
        bare = {name: array.copy() for name, array in state.items() if name not in play.cache}
        policy.update(actions, bare, Play(play.action, play.memo), feedback, twin)
        policy.update(actions, state, play, feedback, rng)
        learned = {name: array for name, array in state.items() if name not in play.cache}
        assert _same(learned, bare), "what is learned from a play must not depend on its cache"
        try:
            again = policy.choose(actions, bare, twin)
        except Exception as error:
            raise AssertionError("choose must work without the cache of a play") from error
        assert actions.contains(again.action).all(), "choose must work without the cache of a play"


def _check_totals(policy: Policy, actions: ActionSet, seed: int) -> None:
    known = ("units", "totals", "round")
    assert policy.learns_from in known, f"learns_from must be one of {known}"
    rng = Streams.spawn(seed, POLICY, [0])
    state = policy.start(actions, _horizon(actions), 1)
    play = policy.choose(actions, state, rng)
    before = {name: array.copy() for name, array in state.items()}
    try:
        policy.update(actions, state, play, Feedback(play.action, play.action / 2), rng)
    except InvalidInput:
        says = f"learns_from is {policy.learns_from!r}, so update must not refuse totals"
        assert policy.learns_from == "units", says
        assert _same(before, state), "feedback that is refused must change nothing"
    except Exception as error:
        raise AssertionError("update must accept totals, or refuse them: InvalidInput") from error


def _check_round(policy: Policy, actions: ActionSet, seed: int) -> None:
    """Report the same total with losses on the first arms, on the last arms, or for the round."""
    rng = Streams.spawn(seed, POLICY, [0])
    state = policy.start(actions, _horizon(actions), 1)
    for _ in range(5):
        play, twin = policy.choose(actions, state, rng), Streams(rng.state.copy())
        other, bare = ({name: one.copy() for name, one in state.items()} for _ in range(2))
        a, third = play.action[0], Streams(rng.state.copy())
        lost = a.sum() // 2
        first = np.clip(lost - (a.cumsum() - a), 0, a)
        last = np.clip(lost - (a[::-1].cumsum() - a[::-1]), 0, a[::-1])[::-1]
        policy.update(actions, state, play, _units_of(a, first), rng)
        late = Feedback(a[None], last[None].astype(float))
        policy.update(actions, other, play, late, twin)
        policy.update(actions, bare, play, late.round_only(), third)
        says = "learns_from is 'round', so the state must not depend on the losses of single arms"
        assert _same(state, other), says
        assert _same(state, bare), says


def _units_of(a: IntArray, lost: IntArray) -> Feedback:
    """Return the feedback where ``lost`` units of each arm lose 1, and the other units 0."""
    first = np.append(0, np.cumsum(a))
    units = (np.arange(first[-1]) - np.repeat(first[:-1], a) < np.repeat(lost, a)).astype(float)
    return Feedback(a[None], lost[None].astype(float), units[None], first)


def _same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


def _rows(state: Arrays, k: int) -> Arrays:
    return {name: array[k : k + 1] for name, array in state.items()}


def _horizon(actions: ActionSet) -> int:
    """Return a horizon that is long enough for every policy, also with duplicated arms."""
    return max(1000, 10 * int(actions.n.sum()))


# ------------------------------------------------------------ live use


def _check_changing(policy: Policy, actions: ActionSet, horizon: int, seed: int) -> None:
    """Embed the state among arms of other sets, in a different order: plays must not change.

    Warm starts are dropped in every round.
    """
    order = np.random.default_rng(seed).permutation(actions.d) + NEW_ARMS
    rng, twin = (Streams.spawn(seed, POLICY, range(TRIALS)) for _ in range(2))
    world = _world(actions, horizon, seed)
    state = policy.start(actions, horizon, TRIALS)
    whole = _with_new_arms(_learned(policy, actions, state), policy.shared)
    whole = _put_back(whole, order, state, policy.shared)
    for _ in range(ROUNDS):
        plain, today = _learned(policy, actions, state), _cut(whole, order, policy.shared)
        play, other = policy.choose(actions, plain, rng), policy.choose(actions, today, twin)
        left = play.cache.keys() - policy.warm(actions)
        assert not left, f"warm must name {left}, which is in the cache of a play"
        says = "changing is True, so plays must not depend on arms of other sets"
        assert (play.action == other.action).all(), says
        feedback = world.observe(play.action).feedback
        policy.update(actions, plain, play, feedback, rng)
        policy.update(actions, today, other, feedback, twin)
        state, learned = plain, _learned(policy, actions, today)
        whole = _put_back(whole, order, learned, policy.shared)
    again, learned = _cut(whole, order, policy.shared), _learned(policy, actions, state)
    for name, array in learned.items():
        says = f"changing is True, so state[{name!r}] must be the same after it was stored by arm"
        assert np.array_equal(again[name], array), says


def _check_partial(policy: Policy, actions: ActionSet, horizon: int, seed: int) -> None:
    """Omit the last unit of every second arm, and all units of the first arm."""
    rng = Streams.spawn(seed, POLICY, range(TRIALS))
    world, state = _world(actions, horizon, seed), policy.start(actions, horizon, TRIALS)
    for _ in range(ROUNDS):
        play = policy.choose(actions, state, rng)
        full = world.observe(play.action).feedback
        seen = play.action - (np.arange(actions.d) % 2 == 1) * (play.action >= 1)
        seen[:, 0] = 0
        some, none, all_of_it = _copy(state), _copy(state), _copy(state)
        streams = [Streams(rng.state.copy()) for _ in range(2)]
        policy.update(actions, some, play, _partly(full, play.action, seen), rng)
        without = play.action.copy()
        without[seen == 0] = 0
        unplayed = Play(without, play.memo, play.cache)
        policy.update(actions, none, unplayed, _partly(full, without, seen), streams[0])
        policy.update(actions, all_of_it, play, full, streams[1])
        for name, array in some.items():
            assert np.isfinite(array).all(), f"partial is True, so state[{name!r}] must be finite"
            kept = (seen >= 1) | (play.action == 0)
            same = (array == none[name])[kept if array.shape[:2] == kept.shape else ...]
            says = "partial is True, so an arm without observations must not change other arms"
            assert same.all(), says
        belief, complete = policy.believed(some), policy.believed(all_of_it)
        unplayed_belief = policy.believed(none)
        if belief is not None and complete is not None and unplayed_belief is not None:
            says = (
                "partial is True, so the beliefs about an arm without observations must not change"
            )
            assert np.array_equal(belief, unplayed_belief), says
            same = (belief == complete) | (seen < play.action)
            assert same.all(), (
                "missing units of one arm must not change the beliefs about other arms"
            )
        state = some


def _check_absorbs(policy: Policy, actions: ActionSet, horizon: int, seed: int) -> None:
    """Learn from random plans: shapes stay, numbers are finite, and choose still works."""
    rng = Streams.spawn(seed, POLICY, range(TRIALS))
    world, state = _world(actions, horizon, seed), policy.start(actions, horizon, TRIALS)
    shapes = {name: array.shape for name, array in state.items()}
    for _ in range(ROUNDS):
        plan = actions.argmin(2 * rng.random((TRIALS, actions.d)) - 1)
        policy.absorb(actions, state, world.observe(plan).feedback, rng)
        same = shapes == {name: array.shape for name, array in state.items()}
        assert same, "absorb must not change the names and shapes of the state"
        for name, array in state.items():
            assert np.isfinite(array).all(), f"absorb must leave state[{name!r}] finite"
    chosen = policy.choose(actions, state, rng).action
    assert actions.contains(chosen).all(), "choose must return actions of the set after absorb"


def _check_beliefs(policy: Policy, state: Arrays, shape: tuple[int, int]) -> None:
    """Check the shapes of beliefs and intervals; a higher level gives a wider interval."""
    belief = policy.believed(state)
    if belief is not None:
        assert belief.shape == shape, "believed must give a number for each trial and arm"
        assert np.isfinite(belief).all(), "beliefs must be finite"
    narrow, wide = (policy.interval(state, level) for level in LEVELS)
    if narrow is not None and wide is not None:
        ends = (wide[0], narrow[0], narrow[1], wide[1])
        assert all(end.shape == shape for end in ends), "an interval needs two ends for each arm"
        assert (np.diff(ends, axis=0) >= 0).all(), "a higher level must give a wider interval"


def _world(actions: ActionSet, horizon: int, seed: int) -> World:
    means = np.linspace(0.1, 0.9, actions.d)
    return Stochastic(Bernoulli(means)).open(actions, horizon, range(TRIALS), seed)


def _partly(full: Feedback, count: IntArray, seen: IntArray) -> Feedback:
    """Return the feedback with the first ``seen`` units of each arm only."""
    if full.units is None or full.first is None:
        return Feedback(count, full.mean * seen, seen=seen)
    place = np.arange(full.units.shape[1])
    total: FloatArray = np.stack(
        [
            (full.units * ((place >= f) & (place < f + s[:, None]))).sum(axis=1)
            for f, s in zip(full.first, seen.T, strict=False)
        ],
        axis=1,
    )
    return Feedback(count, total, full.units, full.first, seen)


def _copy(state: Arrays) -> Arrays:
    return {name: array.copy() for name, array in state.items()}


def _learned(policy: Policy, actions: ActionSet, state: Arrays) -> Arrays:
    """Return the state without the arrays of the set; the second axis of the rest is the arms.

    What ``shared`` names has no arms.
    """
    warm = policy.warm(actions)
    learned = {name: array for name, array in state.items() if name not in warm}
    for name, array in learned.items():
        fits = array.ndim == 1 or name in policy.shared or array.shape[1] == actions.d
        says = f"changing is True, so state[{name!r}] must be (trials,) or (trials, d, ...)"
        assert fits, f"{says}, or named by warm or shared"
    return learned


def _has_arms(name: str, array: NDArray[Any], shared: Sequence[str]) -> bool:
    return array.ndim > 1 and name not in shared


def _with_new_arms(learned: Arrays, shared: Sequence[str]) -> Arrays:
    """Return arrays with more arms, which repeat the numbers of the first arm."""
    return {
        name: np.concatenate([array[:, :1]] * NEW_ARMS + [array], axis=1)
        if _has_arms(name, array, shared)
        else array
        for name, array in learned.items()
    }


def _cut(whole: Arrays, order: IntArray, shared: Sequence[str]) -> Arrays:
    return {
        name: array[:, order].copy() if _has_arms(name, array, shared) else array.copy()
        for name, array in whole.items()
    }


def _put_back(whole: Arrays, order: IntArray, today: Arrays, shared: Sequence[str]) -> Arrays:
    found = {}
    for name, array in whole.items():
        if _has_arms(name, array, shared):
            found[name] = array.copy()
            found[name][:, order] = today[name]
        else:
            found[name] = today[name].copy()
    return found
