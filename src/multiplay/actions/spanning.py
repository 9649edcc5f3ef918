"""Some actions that span all others, found without listing them."""

from collections.abc import Callable
from typing import Self

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.types import FloatArray, IntArray

NEGLIGIBLE = 1e-11  # <u, a> below this, relative to the largest that it could be, is zero
MOST_DIMENSIONS = 500  # whoever fits a loss to totals keeps s x s numbers for each trial
MOST_ARMS = 10_000


class Spanning:
    """s independent actions that span all of A, and s arms J that tell all actions apart.

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

    @classmethod
    def of(cls, oracle: Callable[[FloatArray], IntArray], d: int) -> Self:
        """Ask the oracle, which returns the best action for each row of costs, 2 d questions."""
        check_size(d <= MOST_ARMS, f"a set of at most {MOST_ARMS} arms", f"{d} arms")
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
            if size.max() <= NEGLIGIBLE * np.abs(u).max() * a.sum():
                continue
            new = (a - (a[J, None] * follows).sum(axis=0)) / (a * u).sum()
            follows = np.vstack([follows - follows[:, i, None] * new, new])
            follows[:, i] = 0.0
            follows[-1, i] = 1.0
            E, J = np.vstack([E, a]), [*J, i]
            most = f"a set of at most {MOST_DIMENSIONS} dimensions"
            check_size(len(J) <= MOST_DIMENSIONS, most, f"more, with {d} arms")
        return cls(E, np.array(J, dtype=np.int64))


def check_size(fits: bool, expected: str, got: str) -> None:
    """Refuse a set that is too large to fit a loss to totals."""
    if not fits:
        raise InvalidInput(
            "actions",
            f"{expected}, for learning from totals alone",
            got,
            "Use GenCTS or another policy that learns from the losses of the arms.",
        )
