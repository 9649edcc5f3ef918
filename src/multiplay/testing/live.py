"""What a policy promises for live use: sets that change, units not seen, plans of others."""

import numpy as np

from multiplay.actions import ActionSet
from multiplay.environments import Bernoulli, Stochastic, World
from multiplay.feedback import Feedback
from multiplay.policies import Play, Policy
from multiplay.random import POLICY, Streams
from multiplay.types import Arrays, FloatArray, IntArray

ROUNDS, TRIALS = 5, 2
STRANGERS = 2  # arms that today's set does not have
LEVELS = (0.5, 0.9)


def check_changing(policy: Policy, actions: ActionSet, horizon: int, seed: int) -> None:
    """Keep the state among arms of other sets, in another order: nothing may come of it.

    Warm starts are dropped in every round.
    """
    order = np.random.default_rng(seed).permutation(actions.d) + STRANGERS
    rng, twin = (Streams.spawn(seed, POLICY, range(TRIALS)) for _ in range(2))
    world = _world(actions, horizon, seed)
    state = policy.start(actions, horizon, TRIALS)
    whole = _put_back(_with_strangers(_learned(policy, actions, state)), order, state)
    for _ in range(ROUNDS):
        plain, today = _learned(policy, actions, state), _cut(whole, order)
        play, other = policy.choose(actions, plain, rng), policy.choose(actions, today, twin)
        left = play.cache.keys() - policy.warm(actions)
        assert not left, f"warm must name {left}, which is in the cache of a play"
        says = "changing is True, so arms that are cut out by name must be played the same"
        assert (play.action == other.action).all(), says
        feedback = world.observe(play.action).feedback
        policy.update(actions, plain, play, feedback, rng)
        policy.update(actions, today, other, feedback, twin)
        state, whole = plain, _put_back(whole, order, _learned(policy, actions, today))
    again, learned = _cut(whole, order), _learned(policy, actions, state)
    for name, array in learned.items():
        says = f"changing is True, so state[{name!r}] must survive being cut and put back"
        assert np.array_equal(again[name], array), says


def check_partial(policy: Policy, actions: ActionSet, horizon: int, seed: int) -> None:
    """Lose the last unit of every second arm, and all of the first: what is learned stays sound."""
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
            says = "partial is True, so an arm of which nothing was seen must not change the others"
            assert same.all(), says
        belief, complete = policy.believed(some), policy.believed(all_of_it)
        unplayed_belief = policy.believed(none)
        if belief is not None and complete is not None and unplayed_belief is not None:
            says = (
                "partial is True, so who saw nothing of an arm must believe of it what was believed"
            )
            assert np.array_equal(belief, unplayed_belief), says
            same = (belief == complete) | (seen < play.action)
            assert same.all(), "missing units of one arm must not change what is believed of others"
        state = some


def check_absorbs(policy: Policy, actions: ActionSet, horizon: int, seed: int) -> None:
    """Learn from plans at random: shapes stay, numbers are finite, and choose still works."""
    rng = Streams.spawn(seed, POLICY, range(TRIALS))
    world, state = _world(actions, horizon, seed), policy.start(actions, horizon, TRIALS)
    shapes = {name: array.shape for name, array in state.items()}
    for _ in range(ROUNDS):
        plan = actions.argmin(2 * rng.random((TRIALS, actions.d)) - 1)
        policy.absorb(actions, state, world.observe(plan).feedback, rng)
        same = shapes == {name: array.shape for name, array in state.items()}
        assert same, "absorb must leave the names and shapes of the state alone"
        for name, array in state.items():
            assert np.isfinite(array).all(), f"absorb must leave state[{name!r}] finite"
    chosen = policy.choose(actions, state, rng).action
    assert actions.contains(chosen).all(), "choose must play actions of the set after absorb"


def check_beliefs(policy: Policy, state: Arrays, shape: tuple[int, int]) -> None:
    """Beliefs have a number for each arm; an interval has two, and is wider at a higher level."""
    belief = policy.believed(state)
    if belief is not None:
        assert belief.shape == shape, "believed must give a number for each trial and arm"
        assert np.isfinite(belief).all(), "what is believed must be finite"
    narrow, wide = (policy.interval(state, level) for level in LEVELS)
    if narrow is not None and wide is not None:
        ends = (wide[0], narrow[0], narrow[1], wide[1])
        assert all(end.shape == shape for end in ends), "an interval needs two ends for each arm"
        assert (np.diff(ends, axis=0) >= 0).all(), "a higher level must give a wider interval"


def _world(actions: ActionSet, horizon: int, seed: int) -> World:
    means = np.linspace(0.1, 0.9, actions.d)
    return Stochastic(Bernoulli(means)).open(actions, horizon, range(TRIALS), seed)


def _partly(full: Feedback, count: IntArray, seen: IntArray) -> Feedback:
    """Return the feedback of which only the first ``seen`` units of each arm came."""
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
    """Return the state without what belongs to the set; the rest must have the arms second."""
    warm = policy.warm(actions)
    learned = {name: array for name, array in state.items() if name not in warm}
    for name, array in learned.items():
        fits = array.ndim == 1 or array.shape[1] == actions.d
        says = f"changing is True, so state[{name!r}] must be (trials,) or (trials, d, ...)"
        assert fits, f"{says}, or named by warm"
    return learned


def _with_strangers(learned: Arrays) -> Arrays:
    """Return room for more arms: the same numbers, and those of the first arm again."""
    return {
        name: np.concatenate([array[:, :1]] * STRANGERS + [array], axis=1)
        if array.ndim > 1
        else array
        for name, array in learned.items()
    }


def _cut(whole: Arrays, order: IntArray) -> Arrays:
    return {
        name: array[:, order].copy() if array.ndim > 1 else array.copy()
        for name, array in whole.items()
    }


def _put_back(whole: Arrays, order: IntArray, today: Arrays) -> Arrays:
    found = {}
    for name, array in whole.items():
        found[name] = array.copy() if array.ndim > 1 else today[name].copy()
        if array.ndim > 1:
            found[name][:, order] = today[name]
    return found
