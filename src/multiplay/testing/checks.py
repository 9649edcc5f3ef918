"""Contracts as test suites: run them on an action set or a policy of your own.

Each function raises ``AssertionError`` with the property that failed. Chance enters through a seed,
and a right implementation fails for fewer than one seed in a million.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from multiplay.actions import ActionSet, Changing
from multiplay.environments import Bernoulli, Stochastic
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.hull import Hull, Regulariser
from multiplay.policies import Play, Policy
from multiplay.policies.base import shown
from multiplay.random import POLICY, Streams
from multiplay.testing.live import check_absorbs, check_beliefs, check_changing, check_partial
from multiplay.testing.settings import check_settings
from multiplay.types import Arrays, FloatArray, IntArray

FEW = 20_000  # sets up to this size are compared with their enumeration
LEVEL = 1e-6

Made = TypeVar("Made")


def check_actions(actions: ActionSet, seed: int = 0) -> None:
    """Check everything that an action set promises.

    Parameters
    ----------
    actions
        The set.
    seed
        Of the costs and points that are tried.

    Examples
    --------
    >>> from multiplay import Transport
    >>> from multiplay.testing import check_actions
    >>> check_actions(Transport([1, 4, 5], [4, 6]))
    """
    if isinstance(actions, Changing):
        _check_changing(actions, seed)
        return
    rng = np.random.default_rng(seed)
    everything = _or_none(lambda: actions.enumerate(limit=FEW))
    _check_sizes(actions, everything)
    _check_oracle(actions, everything, rng)
    _check_best(actions, everything, rng)
    _check_bad_input(actions)
    hull = _or_none(lambda: actions.hull)
    if hull is not None:
        _check_hull(actions, hull, rng)
    if _or_none(actions.duplicate) is not None:
        _check_duplicate(actions, everything, rng)
    check_settings(actions)


def _check_changing(actions: Changing, seed: int) -> None:
    days = [actions.at(t) for t in range(1, actions.period + 1)]
    assert all(day.names == actions.names for day in days), "all sets must have the same arms"
    largest = np.max([day.n for day in days], axis=0)
    assert (actions.over(len(days)).n == largest).all(), "n_i must be the largest of all sets"
    for day in days:
        check_actions(day, seed)
    check_settings(actions)


def check_policy(policy: Policy, actions: ActionSet, seed: int = 0) -> None:
    """Check everything that a policy promises, on one action set.

    Parameters
    ----------
    policy
        The policy.
    actions
        Where it is to play; a few rounds are enough.
    seed
        Of the losses and of the policy.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import GenCTS, Play, Transport
    >>> from multiplay.testing import check_policy
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> check_policy(GenCTS(), plans)

    Whoever breaks a promise is told which:

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
        says = "a trial must not depend on the trials beside it"
        for name, array in state.items():
            assert _same(alone[1].get(name), array), f"{says}: state[{name!r}] does"
        assert _same(alone, (plays, state)), f"{says}: its plays do"
    _check_late_feedback(policy, actions, seed)
    _check_cache(policy, actions, seed)
    _check_totals(policy, actions, seed)
    if policy.learns_from == "round":
        _check_round(policy, actions, seed)
    check_beliefs(policy, together[1], (len(trials), actions.d))
    if policy.changing:
        check_changing(policy, actions, _horizon(actions), seed)
    if policy.partial:
        check_partial(policy, actions, _horizon(actions), seed)
    if policy.absorbs:
        check_absorbs(policy, actions, _horizon(actions), seed)
    check_settings(policy)


def optimality_gap(
    actions: ActionSet,
    costs: FloatArray,
    beta: FloatArray,
    regulariser: Regulariser,
    point: Arrays,
) -> FloatArray:
    r"""Return how far ``point`` is from the minimiser, in the objective and relative to the costs.

    With F the objective and x the point, by convexity

    .. math::

        F(x) - \min_{\operatorname{conv}(\mathcal{A})} F
            \le \max_{a \in \mathcal{A}} \langle \nabla F(x), x - a \rangle, \qquad
            F(x) = \langle \text{costs}, x \rangle + \sum_{i=1}^{d} \beta_i \varphi_i(x_i):

    the oracle certifies the step, whatever made it.

    Parameters
    ----------
    actions
        A set with a hull.
    costs, beta, regulariser
        The objective, of the shapes that ``actions.hull.minimise`` takes.
    point
        What that has returned.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Regulariser, Transport
    >>> from multiplay.testing import optimality_gap
    >>> plans, one = Transport([1, 4, 5], [4, 6]), np.ones(1)
    >>> costs, beta = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]), np.ones((1, 6))
    >>> phi, first = Regulariser(barrier=one, entropy=one), plans.hull.start(trials=1)
    >>> optimality_gap(plans, costs, beta, phi, first).round(3)
    array([0.017])
    >>> step = plans.hull.minimise(costs, beta, phi, first)
    >>> bool(abs(optimality_gap(plans, costs, beta, phi, step))[0] < 1e-12)
    True
    """
    x, rest = point["x"], point["rest"]
    n = np.broadcast_to(actions.n, x.shape)
    free = (x > 0) & (rest > 0)
    u, v = x[free] / n[free], rest[free] / n[free]
    phi = np.broadcast_to(regulariser.phi, (*x.shape, 4))
    barrier, entropy, root, shannon = phi[free].T
    gradient = costs.copy()
    # a twin of the kernel, not a caller: what certifies the kernels must not share their mistakes
    phi1 = (
        barrier * (1 - 1 / u) - entropy * np.log(v) - root / (2 * np.sqrt(u)) + shannon * np.log(u)
    )
    gradient[free] += beta[free] * phi1
    gradient[~free] = 0.0  # an arm without freedom is the same in every action
    gap = (gradient * (x - actions.argmin(gradient))).sum(axis=1)
    relative: FloatArray = gap / (1 + (np.abs(costs) * n).sum(axis=1))
    return relative


def _check_sizes(actions: ActionSet, everything: IntArray | None) -> None:
    n, d = actions.n, actions.d
    assert n.shape == (d,), "n must have one entry for each arm"
    assert n.dtype == np.int64, "n must be int64"
    assert (n >= 0).all(), "n must not be negative"
    assert len(actions.names) == d, "names must have one entry for each arm"
    reached = np.diag(actions.argmin(-np.eye(d)))
    assert (reached == n).all(), "n_i must be the largest a_i of any action"
    assert actions.argmin(-np.ones(d)).sum() == actions.M, "M must be the largest sum of an action"
    if everything is not None:
        assert actions.contains(everything).all(), "contains must accept what enumerate lists"
        assert len(np.unique(everything, axis=0)) == len(everything), "enumerate must not repeat"
        assert (everything.max(axis=0) == n).all(), "n_i must be the largest a_i of any action"
        assert (everything > 0).sum(axis=1).max() == actions.m, "m must be the largest support"
        assert everything.sum(axis=1).max() == actions.M, "M must be the largest sum of an action"


def _check_oracle(
    actions: ActionSet, everything: IntArray | None, rng: np.random.Generator
) -> None:
    d = actions.d
    costs = np.concatenate(
        [
            rng.random((20, d)),
            rng.normal(size=(20, d)),
            rng.integers(-2, 3, (20, d)).astype(float),
            np.zeros((1, d)),
        ]
    )
    best = actions.argmin(costs)
    assert best.shape == costs.shape, "argmin must keep the shape of the costs"
    assert best.dtype == np.int64, "argmin must return int64"
    assert actions.contains(best).all(), "argmin must return actions of the set"
    in_cube = actions.argmin(costs[:60].reshape(3, 20, d))
    assert (in_cube.reshape(60, d) == best[:60]).all(), "argmin must work along the last axis"
    assert (actions.argmin(costs[7]) == best[7]).all(), "argmin must not depend on its neighbours"
    rivals = best if everything is None else everything
    values = (best * costs).sum(axis=1)
    tolerance = 1e-9 * (1 + (np.abs(costs) * actions.n).sum(axis=1))
    for start in range(len(costs)):
        against = rivals @ costs[start]
        assert values[start] <= against.min() + tolerance[start], "argmin must be the best action"


def _check_best(actions: ActionSet, everything: IntArray | None, rng: np.random.Generator) -> None:
    means = rng.random((20, actions.d))
    best = actions.best(means)
    assert actions.contains(best).all(), "best must return actions of the set"
    losses = actions.sign * actions.value(best, means)
    rivals = actions.argmin(rng.normal(size=means.shape)) if everything is None else everything
    for mean, loss in zip(means, losses, strict=True):
        least = (actions.sign * actions.value(rivals, mean)).min()
        assert loss <= least + 1e-9 * (1 + abs(least)), "best must have the best value"


def _check_bad_input(actions: ActionSet) -> None:
    for costs in (np.zeros(actions.d + 1), np.full(actions.d, np.nan), np.float64(1)):
        try:
            actions.argmin(costs)
        except InvalidInput:
            continue
        raise AssertionError("argmin must refuse costs of the wrong shape, and NaN")
    outside = actions.argmin(np.zeros(actions.d))
    outside[0] = -1
    assert not actions.contains(outside), "contains must refuse negative numbers"


def _check_hull(actions: ActionSet, hull: Hull, rng: np.random.Generator) -> None:
    trials, shape = 4, (4, actions.d)
    regulariser = Regulariser(barrier=np.ones(trials), entropy=np.full(trials, np.log(1000.0)))
    costs, point = np.zeros(shape), hull.start(trials)
    for _ in range(10):
        costs += rng.exponential(3.0, shape) * rng.normal(0.5, 1.0, shape)
        beta = 1 + rng.random(shape)
        point = hull.minimise(costs, beta, regulariser, point)
        x, rest = point["x"], point["rest"]
        assert (x >= 0).all(), "x must not be negative"
        assert (rest >= 0).all(), "x must not exceed n"
        assert np.allclose(x + rest, actions.n), "rest must be n - x"
        gap = optimality_gap(actions, costs, beta, regulariser, point)
        harmless = hull.harmless(costs, beta, regulariser) / (1 + np.abs(costs) @ actions.n)
        assert (gap < 1e-8 + harmless).all(), f"the step must be optimal: gap {gap.max():.1e}"
    draws = 4000
    many = {name: np.repeat(array[:1], draws, axis=0) for name, array in point.items()}
    actions_drawn = hull.draw(many, rng)
    assert actions.contains(actions_drawn).all(), "draw must return actions of the set"
    # empirical Bernstein bound (Audibert, Munos, Szepesvari 2009), a union over the arms
    log = np.log(3 * actions.d / LEVEL)
    deviation = np.abs(actions_drawn.mean(axis=0) - point["x"][0])
    allowed = np.sqrt(2 * actions_drawn.var(axis=0) * log / draws) + 3 * actions.n * log / draws
    assert (deviation <= allowed + 1e-9).all(), "the mean of the draws must be x"


def _check_duplicate(
    actions: ActionSet, everything: IntArray | None, rng: np.random.Generator
) -> None:
    copies, owner = actions.duplicate()
    assert owner.shape == (copies.d,), "owner must name an arm for each copy"
    assert copies.n.max() <= 1, "a copy must be played at most once"
    costs = rng.random((20, actions.d))
    chosen = copies.argmin(costs[:, owner])
    action = _collected(chosen, owner, actions.d)
    assert copies.contains(chosen).all(), "argmin must return actions of the copied set"
    assert actions.contains(action).all(), "copies must add up to actions of the set"
    native = (actions.argmin(costs) * costs).sum(axis=1)
    assert np.allclose((action * costs).sum(axis=1), native), "copies must reach every optimum"
    assert copies.sense == actions.sense, "copies must have the sense of the set"
    copied = _or_none(lambda: copies.enumerate(limit=FEW))
    if everything is not None and copied is not None:
        reached = np.unique(_collected(copied, owner, actions.d), axis=0)
        same = np.array_equal(reached, np.unique(everything, axis=0))
        assert same, "copies must add up to every action of the set, and to nothing else"


def _collected(copies: IntArray, owner: IntArray, d: int) -> IntArray:
    action = np.zeros((len(copies), d), dtype=np.int64)
    for copy, arm in enumerate(owner):
        action[:, arm] += copies[:, copy]
    return action


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
    """Drop the cache of every play, and what it would have brought from the state."""
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
            raise AssertionError("choose must do without the cache of a play") from error
        assert actions.contains(again.action).all(), "choose must do without the cache of a play"


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
    """The same total, lost on the first arms, on the last, or on nobody knows which."""
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
        says = "learns_from is 'round', so the state must not depend on which arm the losses are of"
        assert _same(state, other), says
        assert _same(state, bare), says


def _units_of(a: IntArray, lost: IntArray) -> Feedback:
    """Return the feedback where ``lost`` units of each arm lose 1 and the others nothing."""
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
    """Return a number of rounds that is long enough for every policy, copied arms or not."""
    return max(1000, 10 * int(actions.n.sum()))


def _or_none(make: Callable[[], Made]) -> Made | None:
    """Return what ``make()`` gives, or None where the set says that it has no such thing."""
    try:
        return make()
    except InvalidInput:
        return None
