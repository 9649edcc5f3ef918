"""All actions of a set at once, in coordinates without superfluous dimensions."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.kernels import design as kernels
from multiplay.types import FloatArray, IntArray

NEGLIGIBLE = 1e-9  # singular values and slacks below this, relative to the largest, are zero
MOST_DIMENSIONS = 7  # the work of qhull grows like K^(r / 2)
MOST_PIECES = 10_000  # facets, or simplices
OPTIMAL = 1e-4  # how far, relatively, the largest norm of a design may be above the least
MOST_STEPS = 100_000  # of a design; each is cheap
FLAT = 1e-9  # a simplex of less volume than this, relative to a cube of its longest edge, is none


class Facets(NamedTuple):
    """conv(Y) = {y : C y <= b}, with one row of C, of length 1, for each facet."""

    C: FloatArray
    b: FloatArray


class Simplices(NamedTuple):
    """A triangulation of the actions: y has coordinates inverse[k] @ (y, 1) in simplex k.

    ``corners`` has the numbers of its r + 1 actions; the coordinates are weights of these with the
    mean y, all of them non-negative where simplex k contains y.
    """

    corners: IntArray
    inverse: FloatArray


class Design(NamedTuple):
    """Points X = (1, Y), (K, r + 1), with Y made white, and weights of a G-optimal design.

    Losses are linear in X; all the weights sum to 1.
    """

    X: FloatArray
    weights: FloatArray


class Listed:
    """All actions E of a set, (K, d), and coordinates for them.

    Equations make conv(A) flat: it lies in an affine space of dimension r < d. With c the mean of
    the rows of E, and B an orthonormal basis of the differences from it, Y = (E - c) B has the
    coordinates in that space, (K, r). Losses that are linear in an action are affine in Y.

    X = E S has the coordinates in the linear span of the actions, (K, s) with s = r or r + 1:
    losses are linear in X.

    Examples
    --------
    >>> from multiplay import Transport
    >>> plans = Transport([1, 4, 5], [4, 6]).listed()
    >>> plans.K, plans.d, plans.r, plans.s, len(plans.facets.b)
    (9, 6, 2, 3, 4)
    """

    def __init__(self, everything: IntArray) -> None:
        _, first = np.unique(everything, axis=0, return_index=True)
        self.E = everything[np.sort(first)].astype(np.int64)
        self.K, self.d = self.E.shape
        self.centre: FloatArray = self.E.mean(axis=0)
        self.B = _basis(self.E - self.centre)
        self.S = _basis(self.E.astype(float))
        self.r, self.s = self.B.shape[1], self.S.shape[1]
        self.Y: FloatArray = (self.E - self.centre) @ self.B
        self.X: FloatArray = self.E @ self.S

    @cached_property
    def facets(self) -> Facets:
        """The facets of conv(Y)."""
        self._check_size()
        if self.r == 1:
            return Facets(np.array([[1.0], [-1.0]]), np.array([self.Y.max(), -self.Y.min()]))
        from scipy.spatial import ConvexHull

        equations = np.unique(ConvexHull(self.Y).equations.round(9), axis=0)
        self._check_pieces("facets", len(equations))
        C = equations[:, :-1] / np.linalg.norm(equations[:, :-1], axis=1, keepdims=True)
        return Facets(np.ascontiguousarray(C), (C @ self.Y.T).max(axis=1))

    @cached_property
    def simplices(self) -> Simplices:
        """A Delaunay triangulation of conv(Y), with all actions as corners."""
        self._check_size()
        if self.r == 1:
            order = np.argsort(self.Y[:, 0])
            corners = np.column_stack([order[:-1], order[1:]])
        else:
            from scipy.spatial import Delaunay

            corners = Delaunay(self.Y).simplices.astype(np.int64)
        self._check_pieces("simplices", len(corners))
        matrices = np.ones((len(corners), self.r + 1, self.r + 1))
        matrices[:, : self.r] = self.Y[corners].transpose(0, 2, 1)
        longest = np.abs(self.Y[corners] - self.Y[corners[:, :1]]).max(axis=(1, 2))
        solid = np.abs(np.linalg.det(matrices)) > FLAT * longest**self.r
        return Simplices(corners[solid], np.linalg.inv(matrices[solid]))

    @cached_property
    def design(self) -> Design:
        """The design that makes the largest x' S(p)^-1 x least, S(p) = sum p x x': it is r + 1."""
        spread = np.sqrt((self.Y**2).mean(axis=0))  # the columns of Y are orthogonal
        X = np.column_stack([np.ones(self.K), self.Y / spread])
        return Design(X, kernels.g_optimal(X, OPTIMAL, MOST_STEPS))

    def _check_size(self) -> None:
        if self.r > MOST_DIMENSIONS:
            raise InvalidInput(
                "actions",
                f"a set whose hull has at most {MOST_DIMENSIONS} dimensions, for its facets and "
                "simplices are listed",
                f"{self.K} actions in {self.r} dimensions",
                "Use LinTS, which lists nothing.",
            )

    def _check_pieces(self, what: str, number: int) -> None:
        if number > MOST_PIECES:
            raise InvalidInput(
                "actions",
                f"a set whose hull has at most {MOST_PIECES} {what}",
                f"{number} {what} of {self.K} actions in {self.r} dimensions",
                "Use LinTS, which lists nothing.",
            )


def _basis(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the space that the rows span, one column for each vector."""
    _, size, vectors = np.linalg.svd(rows, full_matrices=False)
    kept = size > NEGLIGIBLE * size.max(initial=0.0)
    # signs of singular vectors are chance: the largest entry is made positive
    basis = vectors[kept]
    largest = np.abs(basis).argmax(axis=1)
    signs = np.sign(basis[np.arange(len(basis)), largest])
    return np.ascontiguousarray((basis * signs[:, None]).T)
