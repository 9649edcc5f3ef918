"""Contract of action sets: sizes, oracle, hull, sampler and copies; the optimality of a step."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from multiplay.actions import ActionSet, TimeVarying
from multiplay.errors import InvalidInput
from multiplay.hull import Hull, Regulariser
from multiplay.testing.settings import check_settings
from multiplay.types import Arrays, FloatArray, IntArray

FEW = 20_000  # sets up to this size are compared with their enumeration
LEVEL = 1e-6  # the probability that a correct set is refused

Made = TypeVar("Made")


def check_actions(actions: ActionSet, seed: int = 0) -> None:
    """Check the contract of an action set.

    Parameters
    ----------
    actions
        The set.
    seed
        The seed of the costs and points that are tried.

    Examples
    --------
    >>> from multiplay import Transport
    >>> from multiplay.testing import check_actions
    >>> check_actions(Transport([1, 4, 5], [4, 6]))
    """
    if isinstance(actions, TimeVarying):
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


def _check_changing(actions: TimeVarying, seed: int) -> None:
    days = [actions.at(t) for t in range(1, actions.period + 1)]
    assert all(day.names == actions.names for day in days), "all sets must have the same arms"
    largest = np.max([day.n for day in days], axis=0)
    assert (actions.over(len(days)).n == largest).all(), "n_i must be the largest of all sets"
    for day in days:
        check_actions(day, seed)
    check_settings(actions)


def optimality_gap(
    actions: ActionSet,
    costs: FloatArray,
    beta: FloatArray,
    regulariser: Regulariser,
    point: Arrays,
) -> FloatArray:
    r"""Return the optimality gap of ``point`` in the objective, relative to the costs.

    With F the objective and x the point, by convexity

    .. math::

        F(x) - \min_{\operatorname{conv}(\mathcal{A})} F
            \le \max_{a \in \mathcal{A}} \langle \nabla F(x), x - a \rangle, \qquad
            F(x) = \langle \text{costs}, x \rangle + \sum_{i=1}^{d} \beta_i \varphi_i(x_i):

    the oracle certifies the step, independently of the solver.

    Parameters
    ----------
    actions
        A set with a hull.
    costs, beta, regulariser
        The objective, of the shapes that ``actions.hull.minimise`` takes.
    point
        The result of that call.

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
    # not a call of the kernel: the certificate must not share its mistakes
    phi1 = (
        barrier * (1 - 1 / u) - entropy * np.log(v) - root / (2 * np.sqrt(u)) + shannon * np.log(u)
    )
    gradient[free] += beta[free] * phi1
    gradient[~free] = 0.0  # an arm that is the same in every action
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
    assert (actions.argmin(costs[7]) == best[7]).all(), (
        "argmin of a row must not depend on the other rows"
    )
    competitors = best if everything is None else everything
    values = (best * costs).sum(axis=1)
    tolerance = 1e-9 * (1 + (np.abs(costs) * actions.n).sum(axis=1))
    for start in range(len(costs)):
        against = competitors @ costs[start]
        assert values[start] <= against.min() + tolerance[start], (
            "argmin must return an action of the least cost"
        )


def _check_best(actions: ActionSet, everything: IntArray | None, rng: np.random.Generator) -> None:
    means = rng.random((20, actions.d))
    best = actions.best(means)
    assert actions.contains(best).all(), "best must return actions of the set"
    losses = actions.sign * actions.value(best, means)
    competitors = actions.argmin(rng.normal(size=means.shape)) if everything is None else everything
    for mean, loss in zip(means, losses, strict=True):
        least = (actions.sign * actions.value(competitors, mean)).min()
        assert loss <= least + 1e-9 * (1 + abs(least)), (
            "best must return an action of the best value"
        )


def _check_bad_input(actions: ActionSet) -> None:
    for costs in (np.zeros(actions.d + 1), np.full(actions.d, np.nan), np.float64(1)):
        try:
            actions.argmin(costs)
        except InvalidInput:
            continue
        raise AssertionError("argmin must refuse costs of the wrong shape, and NaN")
    outside = actions.argmin(np.zeros(actions.d))
    outside[0] = -1
    assert not actions.contains(outside), "contains must return False for negative numbers"


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
        assert same, "copies must add up to the actions of the set, and to no other vectors"


def _collected(copies: IntArray, owner: IntArray, d: int) -> IntArray:
    action = np.zeros((len(copies), d), dtype=np.int64)
    for copy, arm in enumerate(owner):
        action[:, arm] += copies[:, copy]
    return action


def _or_none(make: Callable[[], Made]) -> Made | None:
    """Return ``make()``, or None if the set does not support it."""
    try:
        return make()
    except InvalidInput:
        return None
