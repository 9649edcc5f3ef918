"""Sets that differ from round to round, over the same arms."""

import zlib
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np

from multiplay._support.checks import is_list, positive_integer
from multiplay._support.formatting import Table, left_out
from multiplay._support.hints import Hint, Term
from multiplay.actions.base import ActionSet, Duplicate
from multiplay.actions.transport import Transport
from multiplay.errors import InvalidInput
from multiplay.hull import Hull
from multiplay.types import IntArray

MOST_SETS_SHOWN = 7  # in a notebook


class TimeVarying(ActionSet, vectorised=True):
    r"""A different set in each round, over the same arms.

    .. math::

        a(t) &\in \mathcal{A}_t, \\
        R_T &= \sum_{t=1}^T \Bigl(\langle a(t), \ell(t) \rangle
            - \min_{a \in \mathcal{A}_t} \langle a, \ell(t) \rangle\Bigr)

    ``simulate`` plays round t on :math:`\mathcal{A}_t`, and measures the regret :math:`R_T` against
    the best action of each round, for the means :math:`\ell(t)` of its losses. An arm that cannot
    be played in some round has :math:`n_i = 0` there, such as a closed lane. A policy starts with
    the
    set of round 1.

    What one set has, a best action or a hull, this one has not: ask ``at(t)`` for it.

    Parameters
    ----------
    sets
        A list of action sets, or a function of t = 1, 2, ... that returns the set of round t. A
        list begins again after its last set: seven sets are the pattern of a week. All sets have
        the same arms, of the same names in the same order, and the same sense.

        A function must give the same set whenever it is asked for the same round: it may be asked
        again for each policy, and in other processes. ``simulate`` asks it once for all rounds
        before the first one is played. For ``jobs`` > 1 it stands at the top level of a module.

    Attributes
    ----------
    n : array of shape (d,), read-only
        The largest :math:`n_i` of all sets; those of a function are known once there is a horizon,
        from ``over(horizon)``.

    Examples
    --------
    >>> from multiplay import Bernoulli, GenCTS, Stochastic, simulate
    >>> week = TimeVarying([Transport([3, 2], [4, 1]), Transport([2, 3], [1, 4])])
    >>> week.n, week.at(3)
    (array([3, 2, 2, 3]), Transport(supply=[3, 2], demand=[4, 1]))
    >>> result = simulate(week, Stochastic(Bernoulli([0.2, 0.5, 0.4, 0.3])),
    ...                   {"GenCTS": GenCTS()}, horizon=50, trials=2)
    >>> result.label
    'regret against the best action of each round'
    >>> TimeVarying(lambda t: Transport([t, 2], [t, 2])).over(horizon=10).n
    array([10,  2,  2,  2])
    """

    sets: tuple[ActionSet, ...] | Callable[[int], ActionSet]

    cost = None  # not offered by the service

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls([Transport([1, 4, 5], [4, 6]), Transport([2, 2, 2], [6, 0])])

    def __init__(self, sets: Sequence[ActionSet] | Callable[[int], ActionSet]) -> None:
        first: ActionSet
        if isinstance(sets, ActionSet) or not (callable(sets) or (is_list(sets) and len(sets))):
            raise InvalidInput(
                "sets",
                "a list of action sets, or a function of t that returns one",
                repr(sets),
                "Use TimeVarying([monday, tuesday]), for example.",
            )
        if callable(sets):
            self.sets, first = sets, _one_set(1, sets(1))
        else:
            first, *_ = self.sets = tuple(_one_set(t, one) for t, one in enumerate(sets, start=1))
        self.names, self.sense, self.linear = first.names, first.sense, first.linear
        self.extra = first.extra
        self._digests = np.empty(0, dtype=np.uint32)  # of the sets of a function, once it was asked
        if isinstance(self.sets, tuple):
            for t, today in enumerate(self.sets, start=1):
                self._check_arms(t, today)
            self.n = np.max([one.n for one in self.sets], axis=0)
            self.linear = all(one.linear for one in self.sets)
            self.extra = not self.linear and all(one.affine for one in self.sets)

    def __repr__(self) -> str:
        sets = f"{len(self.sets)} sets" if isinstance(self.sets, tuple) else "a function of t"
        return f"TimeVarying({sets}, {self.d} arms)"

    def _table(self) -> Table:
        """Return the sets of the first rounds."""
        columns = ["round", "set"]
        if not isinstance(self.sets, tuple):
            return Table("", columns, [["1, 2, ...", "from a function"]], labels=2)
        rows = [[str(t), repr(one)] for t, one in enumerate(self.sets[:MOST_SETS_SHOWN], start=1)]
        more = left_out(len(self.sets) - len(rows), "sets")
        return Table("", columns, rows, f"{more} Then they repeat.".strip(), labels=2)

    @property
    def d(self) -> int:
        """Number of arms."""
        return len(self.names)

    @ActionSet.n.getter  # type: ignore[attr-defined, untyped-decorator]
    def n(self) -> IntArray:
        """max over all sets of a_i; read-only."""
        if "_n" not in vars(self):
            raise InvalidInput(
                "actions",
                "a horizon, because the sets come from a function",
                "none",
                "Use actions.over(horizon), which calls the function for all rounds.",
            )
        return self._shown_n

    @property
    def period(self) -> int:
        """The number of sets after which ``at`` repeats; 1 for a function."""
        return len(self.sets) if isinstance(self.sets, tuple) else 1

    def at(self, t: int) -> ActionSet:
        """Return the set of round t, for t = 1, 2, ..."""
        t = positive_integer("t", t, "Rounds are numbered from 1.")
        if isinstance(self.sets, tuple):
            return self.sets[(t - 1) % len(self.sets)]
        today = _one_set(t, self.sets(t))
        self._check_arms(t, today)
        if t <= len(self._digests) and self._digests[t - 1] != _digest(today):
            raise InvalidInput(
                "sets",
                "a function that always returns the same set for the same round",
                f"two different sets for round {t}",
                "Let it depend on t only, with random numbers of np.random.default_rng([seed, t]).",
            )
        return today

    def over(self, horizon: int) -> Self:
        """Return the same set, with n for so many rounds: a function is called for each."""
        if isinstance(self.sets, tuple) or len(self._digests) == horizon:
            return self
        known, most = copy(self), np.zeros(self.d, dtype=np.int64)
        known._digests = np.empty(horizon, dtype=np.uint32)
        affine = known.linear = True
        for t in range(1, horizon + 1):
            today = self.at(t)
            np.maximum(most, today.n, out=most)
            known._digests[t - 1] = _digest(today)
            known.linear &= today.linear
            affine &= today.affine
        known.extra = affine and not known.linear
        known.n = most
        return known

    def _check_arms(self, t: int, today: ActionSet) -> None:
        """Raise ``InvalidInput`` for a set whose arms are not those of round 1."""
        if today.names == self.names and today.sense == self.sense:
            return
        expected, got = f"{len(self.names)} arms as in round 1", f"{len(today.names)} arms"
        if len(today.names) == len(self.names):
            pairs = zip(self.names, today.names, strict=True)
            differ = ((i, *pair) for i, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
            i, ours, theirs = next(differ, (0, "", ""))
            expected, got = f"arm {i} to be {ours!r} as in round 1", repr(theirs)
            if not i:
                expected, got = f"the sense {self.sense!r} as in round 1", repr(today.sense)
        raise InvalidInput(
            "sets",
            expected,
            f"{got} in round {t}",
            "Give all sets the same arms in the same order; a closed arm has n_i = 0.",
        )

    # What only one set has.

    def oracle(self, costs: object) -> NoReturn:
        """Raise ``InvalidInput``: every round has its own best action."""
        raise self._no_set()

    def contains(self, action: object) -> NoReturn:
        """Raise ``InvalidInput``: every round has its own actions."""
        raise self._no_set()

    def value(self, action: object, means: object) -> NoReturn:
        """Raise ``InvalidInput``: every round has its own objective."""
        raise self._no_set()

    def best(self, means: object) -> NoReturn:
        """Raise ``InvalidInput``: every round has its own best action."""
        raise self._no_set()

    def enumerate(self, limit: int = 100_000) -> NoReturn:
        """Raise ``InvalidInput``: every round has its own actions."""
        raise self._no_set()

    def shifted(self, offset: object, scale: float = 1.0) -> NoReturn:
        """Raise ``InvalidInput``: every round has its own objective."""
        raise self._no_set()

    @cached_property
    def m(self) -> int:
        """Raise ``InvalidInput``: every round has its own actions."""
        raise self._no_set()

    @cached_property
    def hull(self) -> Hull:
        """Raise ``InvalidInput``: every round has its own hull."""
        raise self._no_set()

    @cached_property
    def _duplicate(self) -> Duplicate:
        raise self._no_set()

    def _no_set(self) -> InvalidInput:
        return InvalidInput(
            "actions",
            "the set of one round",
            f"{self!r}, which has a different set in each round",
            "Use actions.at(t), the set of round t.",
        )


def _one_set(t: int, given: Any) -> ActionSet:
    """Return the set of round t, or raise ``InvalidInput`` unless it is an ordinary set."""
    if not isinstance(given, ActionSet) or isinstance(given, TimeVarying):
        raise InvalidInput(
            "sets",
            "an action set for every round",
            f"{given!r} for round {t}",
            Hint("Use {}, for example.", Term("Transport([1, 4, 5], [4, 6])", "ActionSet")),
        )
    return given


def _digest(actions: ActionSet) -> int:
    """Return a number that almost always differs where n differs."""
    return zlib.crc32(actions._n.tobytes())
