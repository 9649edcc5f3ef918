"""Coordinates of actions: those of all actions in a list, and those that an oracle finds."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.hull.polytope import NEGLIGIBLE, Facets, Polytope, Simplices
from multiplay.kernels import design as kernels
from multiplay.types import FloatArray, IntArray

MOST_DIMENSIONS = 7  # the work of qhull grows like K^(r / 2)
MOST_PIECES = 10_000  # facets, or simplices
SOME_ACTIONS = 64  # enough to see how the number of simplices grows
FLAT = 1e-9  # a simplex of less volume than this, relative to a cube of its longest edge, is none
OPTIMAL = 1e-4  # how far, relatively, the largest norm of a design may be above the least
MOST_STEPS = 100_000  # of a design; each is cheap
ZERO = 1e-11  # <u, a> below this, relative to the largest that it could be, is zero
MOST_SPANNED = 500  # dimensions s: to fit a loss to totals takes s x s numbers in each trial
MOST_ARMS = 10_000


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

        hull = ConvexHull(self.Y)
        C = np.ascontiguousarray(hull.equations[:, :-1])
        height = C @ self.Y[hull.vertices].T
        b = height.max(axis=1)
        # qhull cuts a facet into simplices: pieces that touch the same vertices are one facet
        touched = b[:, None] - height < NEGLIGIBLE * np.ptp(height)
        _, first = np.unique(touched, axis=0, return_index=True)
        self._check_pieces("facets", len(first))
        return Facets(C[first], b[first])

    @cached_property
    def simplices(self) -> Simplices:
        """A Delaunay triangulation of conv(Y), with all actions as corners."""
        self._check_size()
        if self.r == 1:
            order = np.argsort(self.Y[:, 0])
            corners = np.column_stack([order[:-1], order[1:]])
        else:
            corners = self._delaunay()
        self._check_pieces("simplices", len(corners))
        matrices = np.ones((len(corners), self.r + 1, self.r + 1))
        matrices[:, : self.r] = self.Y[corners].transpose(0, 2, 1)
        longest = np.abs(self.Y[corners] - self.Y[corners[:, :1]]).max(axis=(1, 2))
        solid = np.abs(np.linalg.det(matrices)) > FLAT * longest**self.r
        return Simplices(corners[solid], np.linalg.inv(matrices[solid]))

    def _delaunay(self) -> IntArray:
        """Return the corners of the simplices; a part of the actions is tried first.

        All may take minutes. That some have fewer simplices than all is no theorem, but it held for
        random parts of every set that was tried.
        """
        from scipy.spatial import Delaunay, QhullError

        order, some = np.random.default_rng(0).permutation(self.K), SOME_ACTIONS
        while some < self.K:
            with suppress(QhullError):  # all of these few may lie in one plane
                self._check_pieces("simplices", len(Delaunay(self.Y[order[:some]]).simplices))
            some *= 2
        corners: IntArray = Delaunay(self.Y).simplices.astype(np.int64)
        return corners

    @cached_property
    def polytope(self) -> Polytope:
        """conv(Y), with a barrier on it, and draws of actions with a given mean."""
        return Polytope(self.Y, self.facets, self.simplices)

    @cached_property
    def size(self) -> float:
        """The length of the longest action, max |a|."""
        return float(np.sqrt((self.E**2).sum(axis=1).max()))

    @cached_property
    def X_to_Y(self) -> FloatArray:  # noqa: N802
        """S' B: losses <m, X> and <m S' B, Y> differ by the same number for all actions."""
        return np.ascontiguousarray(self.S.T @ self.B)

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
                f"a set whose hull has at most {MOST_DIMENSIONS} dimensions, because its "
                "facets and simplices are listed",
                f"{self.K} actions in {self.r} dimensions",
                "Use LinTS, which does not list actions.",
            )

    def _check_pieces(self, what: str, number: int) -> None:
        if number > MOST_PIECES:
            raise InvalidInput(
                "actions",
                f"a set whose hull has at most {MOST_PIECES} {what}",
                f"at least {number} {what} of {self.K} actions in {self.r} dimensions",
                "Use LinTS, which does not list actions.",
            )


class Spanning:
    """s independent actions that span all of A, and s arms J by which all actions differ.

    Every action a is known by its entries a_J, for the others are linear in them: losses that are
    linear in a are linear in x = a_J. J has the first arms that will do; it depends on nothing
    but A.

    One arm after the other is looked at. For arm i there is one vector u with u_i = 1 that is zero
    outside i and J, and orthogonal to the actions found so far. If the oracle finds no a with
    <u, a> != 0, then a_i follows from a_J. Otherwise a is independent of the actions found so far:
    it joins them, and i joins J.

    Attributes
    ----------
    E : array of shape (s, d)
        The spanning actions, as rows.
    J : array of shape (s,)
        The numbers of the arms.
    X : array of shape (s, s)
        The spanning actions in coordinates, E[:, J]; it has an inverse.
    log_det : float
        ln det X'X.

    Examples
    --------
    >>> from multiplay import Transport
    >>> plans = Transport([1, 4, 5], [4, 6]).spanning
    >>> plans.J
    array([0, 1, 2])
    >>> plans.E
    array([[1, 0, 0, 4, 3, 2],
           [0, 1, 0, 4, 4, 1],
           [0, 1, 4, 0, 0, 5]])
    """

    def __init__(self, E: IntArray, J: IntArray) -> None:
        self.E, self.J = E, J
        self.X: IntArray = np.ascontiguousarray(E[:, J])
        self.s = len(J)
        self.log_det = 2 * float(np.linalg.slogdet(self.X)[1])

    @cached_property
    def follows(self) -> FloatArray:
        """The matrix with which a = a_J follows, for all actions, (s, d)."""
        matrix: FloatArray = np.linalg.solve(self.X, self.E)
        return matrix

    @classmethod
    def of(cls, oracle: Callable[[FloatArray], IntArray], d: int) -> Self:
        """Call the oracle, which returns the best action for each row of costs, 2 d times."""
        _check_span(d <= MOST_ARMS, f"a set of at most {MOST_ARMS} arms", f"{d} arms")
        E = np.zeros((0, d), dtype=np.int64)
        J: list[int] = []
        follows = np.zeros((0, d))  # a = a_J follows, for all actions found
        for i in range(d):
            u = np.zeros(d)
            u[i] = 1.0
            u[J] = -follows[:, i]
            both = oracle(np.array([u, -u]))
            size = np.abs((both * u).sum(axis=1))
            a = both[size.argmax()]
            if size.max() <= ZERO * np.abs(u).max() * a.sum():
                continue
            new = (a - (a[J, None] * follows).sum(axis=0)) / (a * u).sum()
            follows = np.vstack([follows - follows[:, i, None] * new, new])
            follows[:, i] = 0.0
            follows[-1, i] = 1.0
            E, J = np.vstack([E, a]), [*J, i]
            most = f"a set of at most {MOST_SPANNED} dimensions"
            _check_span(len(J) <= MOST_SPANNED, most, f"more, with {d} arms")
        return cls(E, np.array(J, dtype=np.int64))


def _basis(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the space that the rows span, one column for each vector."""
    _, size, vectors = np.linalg.svd(rows, full_matrices=False)
    kept = size > NEGLIGIBLE * size.max(initial=0.0)
    # signs of singular vectors are chance: the largest entry is made positive
    basis = vectors[kept]
    largest = np.abs(basis).argmax(axis=1)
    signs = np.sign(basis[np.arange(len(basis)), largest])
    return np.ascontiguousarray((basis * signs[:, None]).T)


def _check_span(fits: bool, expected: str, got: str) -> None:
    """Raise ``InvalidInput`` for a set that is too large to fit a loss to totals."""
    if not fits:
        raise InvalidInput(
            "actions",
            f"{expected}, for learning from totals alone",
            got,
            "Use PooledCTS or another policy that learns from the losses of the arms.",
        )
