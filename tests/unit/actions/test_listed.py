"""All actions in coordinates: differences, facets and simplices, each checked for what it is."""

import math

import numpy as np
import pytest
from refusal import refused
from scipy.spatial import ConvexHull

from multiplay import ActionSet, Assignment, Budget, Explicit, Knapsack, Path, Transport
from multiplay.actions.coordinates import Listed
from multiplay.types import FloatArray

DIAMOND = [("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")]
SETS: list[ActionSet] = [
    Transport([1, 4, 5], [4, 6]),
    Transport([4, 4, 4], [4, 4, 4]),
    Transport([3, 3], [2, 2], slack=True),
    Transport([3, 3], [2, 2], surplus=True, sense="max"),
    Assignment(3),
    Budget(1, [1] * 4),
    Budget(2, [1] * 5),
    Budget(3, [1] * 8),  # r = 7, and all actions on one sphere
    Budget(4, [4, 4, 2], at_most=True),  # has the action 0
    Knapsack([3, 4, 5], 10),
    Path(DIAMOND, "s", "t"),
    Explicit([[0, 3], [2, 2], [5, 0]]),
    Explicit([[1, 0], [2, 0], [4, 0]]),  # r = s = 1
    Explicit([[1, 3], [2, 3], [4, 3]]),  # r = 1, s = 2
    Explicit([[0, 0], [1, 1]]),
    Explicit([[1000, 0, 3], [0, 1000, 3], [1, 1, 0]]),
]


def test_repeated_rows_are_listed_once() -> None:
    listed = Listed(np.array([[2, 0], [0, 1], [2, 0], [0, 1]]))
    assert listed.E.tolist() == [[2, 0], [0, 1]]
    assert (listed.K, listed.d, listed.r, listed.s) == (2, 2, 1, 2)


@pytest.mark.parametrize("rows", [[[0, 0]], [[3, 1]]])
def test_one_action_has_no_dimensions(rows: list[list[int]]) -> None:
    listed = Listed(np.array(rows))
    assert (listed.r, listed.Y.shape) == (0, (1, 0))
    assert listed.s == (1 if np.any(rows) else 0)


def test_they_are_computed_once() -> None:
    actions = Transport([1, 4, 5], [4, 6])
    assert actions.listed() is actions.listed()
    assert actions.listed().polytope is actions.listed().polytope


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_coordinates_reproduce_differences_and_losses(actions: ActionSet) -> None:
    listed, E = actions.listed(), actions.enumerate().astype(float)
    assert (listed.E == E).all()
    assert listed.r == np.linalg.matrix_rank(E - E[0])
    assert listed.s == np.linalg.matrix_rank(E)
    assert np.allclose(listed.Y @ listed.B.T, E - E.mean(axis=0))
    assert np.allclose(listed.X @ listed.S.T, E)
    assert np.allclose(listed.Y.mean(axis=0), 0)
    assert listed.size == pytest.approx(np.linalg.norm(E, axis=1).max())
    m = np.random.default_rng(0).normal(size=listed.s)
    level = listed.X @ m - listed.Y @ (m @ listed.X_to_Y)
    assert np.allclose(level, level[0])


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_facets_are_tight_and_contain_all_actions(actions: ActionSet) -> None:
    """A facet has r affinely independent actions; different facets do not have the same ones."""
    listed = actions.listed()
    C, b = listed.facets
    slack = b - listed.Y @ C.T
    assert np.allclose(np.linalg.norm(C, axis=1), 1)
    assert slack.min() > -1e-9
    assert (b > 0).all()  # the mean of all actions is inside
    tight = slack < 1e-9 * listed.size
    assert (tight == (listed.polytope.slack == 0)).all()
    assert len(np.unique(tight, axis=1).T) == len(b)
    for on_facet in tight.T:
        points = listed.Y[on_facet]
        assert len(points) >= listed.r
        assert np.linalg.matrix_rank(points - points[0]) == listed.r - 1


@pytest.mark.parametrize(
    ("actions", "facets"),
    [
        (Transport([1, 4, 5], [4, 6]), 4),
        (Transport([4, 4, 4], [4, 4, 4]), 9),
        (Budget(1, [1] * 4), 4),
        (Budget(2, [1] * 5), 10),
        (Budget(3, [1] * 8), 16),
        (Explicit([[1, 0], [2, 0], [4, 0]]), 2),
    ],
    ids=repr,
)
def test_numbers_of_facets(actions: ActionSet, facets: int) -> None:
    """Simplices, hypersimplices and plans with positive entries have known facets."""
    assert len(actions.listed().facets.b) == facets


def points_in(listed: Listed, rng: np.random.Generator) -> FloatArray:
    """Return points of the hull: deep inside, near a face, and all actions."""
    spread, near = (rng.dirichlet(np.full(listed.K, at), 300) for at in (1.0, 0.02))
    return np.concatenate([(spread @ listed.Y), (near @ listed.Y), listed.Y])


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_every_point_of_the_hull_is_a_mean_of_the_corners_of_a_simplex(actions: ActionSet) -> None:
    listed = actions.listed()
    corners, inverse = listed.simplices
    y = points_in(listed, np.random.default_rng(1))
    weight = np.einsum("sci,ki->ksc", inverse, np.column_stack([y, np.ones(len(y))]))
    best = weight.min(axis=2).argmax(axis=1)
    chosen = weight[np.arange(len(y)), best]
    assert chosen.min() > -1e-9
    assert np.allclose(chosen.sum(axis=1), 1)
    assert np.allclose(np.einsum("kc,kci->ki", chosen, listed.Y[corners[best]]), y)


@pytest.mark.parametrize("actions", SETS, ids=repr)
def test_simplices_fill_the_hull_and_use_all_actions(actions: ActionSet) -> None:
    """They cover it, as the test above says: with its volume, they do not overlap."""
    listed = actions.listed()
    volumes = 1 / np.abs(np.linalg.det(listed.simplices.inverse)) / math.factorial(listed.r)
    volume = np.ptp(listed.Y) if listed.r == 1 else ConvexHull(listed.Y).volume
    assert volumes.sum() == pytest.approx(volume)
    assert set(listed.simplices.corners.ravel()) == set(range(listed.K))


def test_too_many_dimensions_are_refused() -> None:
    listed = Budget(4, [1] * 9).listed()
    for part in ("facets", "simplices", "polytope"):
        with refused("actions: expected a set whose hull has at most 7 dimensions"):
            getattr(listed, part)


def test_too_many_simplices_are_refused() -> None:
    """Before all of the 11,476 actions are triangulated: 8192 are enough to know."""
    listed = Budget(150, [150] * 3).listed(20_000)
    with refused("actions: expected a set whose hull has at most 10000 simplices, got at least 1"):
        listed.simplices  # noqa: B018


def test_a_set_that_is_flat_but_for_one_action() -> None:
    """Then the first few actions that are looked at may have no simplex at all."""
    listed = Explicit([*([i, 0] for i in range(300)), [0, 1]]).listed()
    assert (listed.r, len(listed.facets.b), len(listed.simplices.corners)) == (2, 3, 299)
