"""The base class of all action sets, and sets with a copy of the arm for every unit."""

import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from functools import cached_property, lru_cache, wraps
from typing import Any, ClassVar, NamedTuple, Self, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multiplay._support import deadline
from multiplay._support.checks import for_each_arm, numbers, shortened, with_last_axis
from multiplay._support.formatting import Table, left_out
from multiplay._support.hints import Hint, Option, Term
from multiplay._support.html import HasPanel, Panel
from multiplay.actions.coordinates import Listed, Spanning
from multiplay.actions.costs import Requirement, SetCost
from multiplay.errors import InvalidInput
from multiplay.features.rows import FeatureRows
from multiplay.hull import DecompositionHull, Hull
from multiplay.kernels.rows import finite
from multiplay.types import BoolArray, FloatArray, IntArray

Scalar = TypeVar("Scalar", bound=np.generic)
Value = TypeVar("Value")

SENSES = {"min": 1.0, "max": -1.0}
LARGEST_BOX = 10_000_000  # vectors that enumeration looks at
MOST_COPIES = 10_000_000
MOST_LISTED = 100_000  # actions that are compared one by one, for means by unit
FLOAT = np.dtype(float)
MOST_ARMS_SHOWN = 20  # in a notebook
MOST_ARMS_SOLVED = 1000  # of a set for which a notebook computes m and M
MOST_CHECKED = 64  # tuples of names that are known to be different
ORDERED = Option("unit_means", "'ordered'")  # of a policy
TIE = 1e-12  # between pooled units: solvers are slow where many costs are equal


class ActionSet(HasPanel, ABC):
    r"""The actions that may be played: a finite set of vectors of whole numbers.

    .. math::

        \mathcal{A} \subset \mathbb{Z}_{\ge 0}^d, \qquad n_i = \max_{a \in \mathcal{A}} a_i,

    and :math:`a_i` says how often arm i is played.

    A subclass sets ``n``, calls ``super().__init__(names, sense)``, and writes ``oracle`` and
    ``contains``; everything else follows from these, slowly, until it is written too. To start
    from nothing but an oracle for one cost vector, see ``OracleSet``.

    A subclass writes ``contains(self, action)`` for one vector of shape (d,), and returns one bool.
    It may be asked about many vectors all the same: it is then called for one after the other. A
    subclass whose ``contains`` works along the last axis says so, and is called once:
    ``class Mine(ActionSet, vectorised=True)``.

    Parameters
    ----------
    names
        Names of the arms; "arm 1", "arm 2" and so on if not given.
    sense
        "min" if units bring losses, "max" if they bring rewards.

    Attributes
    ----------
    n : array of shape (d,), read-only
        The most units of each arm, :math:`n_i`.
    names : tuple of d strings
        Names of the arms.
    sense : "min" or "max"
        Whether units bring losses, to be minimised, or rewards, to be maximised.
    cost : SetCost or None
        The cost of a set, declared by each class. The service offers no class without it.
    linear : bool
        Whether the expected loss (or reward) of an action is :math:`\langle a, \mu \rangle`, where
        :math:`\mu` are the means of the arms.
    extra : bool
        Whether a known cost of each action is added that is not linear in it: the value of an
        action then is :math:`\langle a, \mu + \text{offset} \rangle + h(a)`. See ``Model.known``.
    has_known : bool
        Whether the set has known costs in the user's unit.
    offset : array of shape (d,), or None
        What a unit of each arm is known to lose beside what is learned: the value of an action is
        then :math:`\langle a, \mu + \text{offset} \rangle`. See ``shifted``.
    upper : array of shape (d,), or None
        What a unit of each arm is known to lose at most, beside the offset. See ``bounded``.
    features : FeatureRows or None
        The features of the arms in this round. See ``featured``.
    penalty : float
        What a unit costs that is asked for and left out, in the unit of the losses. See ``unmet``.

    Examples
    --------
    >>> class Pair(ActionSet):
    ...     '''Two people, both on the same shift.'''
    ...     def __init__(self):
    ...         self.n = np.array([2, 2, 2])
    ...         super().__init__(names=["early", "late", "night"])
    ...     def oracle(self, costs):
    ...         return 2 * np.eye(3, dtype=int)[costs.argmin(axis=1)]
    ...     def contains(self, action):
    ...         return sorted(action) == [0, 0, 2]
    >>> Pair().argmin([0.4, 0.1, 0.3])
    array([0, 2, 0])
    >>> Pair().enumerate()
    array([[0, 0, 2],
           [0, 2, 0],
           [2, 0, 0]])
    """

    cost: ClassVar[SetCost | None] = None
    linear: bool = True
    extra: bool = False
    has_known: bool = False
    quick_oracle: ClassVar[bool] = False  # whether a notebook may compute m and M
    searches: bool = False  # whether HiGHS finds its actions: ties are broken by its version
    arm_word: ClassVar[str] = "item"  # what pages and commands call an arm
    offset: FloatArray | None = None
    upper: FloatArray | None = None
    features: FeatureRows | None = None
    penalty: float = 0.0

    def __init_subclass__(cls, vectorised: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        writer = next(one for one in cls.__mro__ if "contains" in vars(one))
        if not issubclass(writer, ActionSet) or (writer is cls and not vectorised):
            cls.contains = _one_by_one(cls.contains)  # type: ignore[assignment,method-assign]

    def __init__(self, names: Sequence[str] | None = None, sense: str = "min") -> None:
        if not isinstance(sense, str) or sense not in SENSES:
            expected = "'min' (units bring losses) or 'max' (rewards)"
            raise InvalidInput("sense", expected, repr(sense), "Leave it out for losses.")
        if "_n" not in vars(self):
            raise InvalidInput(
                f"{type(self).__name__}.n",
                "the most units of each arm, set before super().__init__()",
                "no attribute n",
                "Write self.n = np.array([...]) first, and then super().__init__(names, sense).",
            )
        self.sense = sense
        self.names = _checked_names(names, self.d)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d} arms)"

    def _panel(self) -> Panel:
        """Return the numbers of the set, and a table of its arms, or of the first ones."""
        return Panel(type(self).__name__, self._facts(), (self._table(),))

    def _facts(self) -> dict[str, str]:
        """Return d, m, M and n as far as they are known or quick to compute."""
        facts = {"arms, d": str(self.d)}
        known = vars(self)
        quick = self.quick_oracle and self.d <= MOST_ARMS_SOLVED
        if "m" in known or quick:
            facts["different arms in a play, m"] = f"at most {self.m}"
        if "M" in known or quick:
            facts["units in a play, M"] = f"at most {self.M}"
        if "_n" in known:
            least, most = int(self.n.min()), int(self.n.max())
            ends = f"{most}" if least == most else f"{least} to {most}, depending on the arm"
            facts["units of an arm, n"] = f"at most {ends}"
        goal = "losses, to be minimised" if self.sense == "min" else "rewards, to be maximised"
        facts["units bring"] = goal
        if not self.linear:
            facts["value"] = "not the sum of the losses or rewards of its units"
        return facts

    def _table(self) -> Table:
        """Return the first arms, and the most units of each."""
        arms = zip(self.names[:MOST_ARMS_SHOWN], self.n[:MOST_ARMS_SHOWN].tolist(), strict=True)
        rows = [[name, str(most)] for name, most in arms]
        return Table("", ["arm", "most units"], rows, left_out(self.d - len(rows), "arms"))

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples: without arguments, where possible.

        Examples
        --------
        >>> from multiplay import Explicit
        >>> Explicit.example().enumerate()
        array([[0, 3],
               [2, 2],
               [5, 0]])
        """
        return cls()

    @property
    def n(self) -> IntArray:
        """max over A of a_i; read-only."""
        return self._shown_n

    @n.setter
    def n(self, most: IntArray) -> None:
        self._n = np.array(most)  # kernels take this one: they are compiled for writable arrays
        self._shown_n = read_only(self._n)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "_n" in state:  # what was read-only is not when it is unpickled or copied
            self.n = state["_n"]

    @property
    def d(self) -> int:
        """Number of arms."""
        return len(self._n)

    @property
    def copies(self) -> int:
        """Number of arms of ``duplicate``."""
        return int(self.n.sum())

    def requirements(self) -> list[Requirement]:
        """Return quantities that must be limited, beside the arms and the units of a play."""
        return []

    @property
    def sign(self) -> float:
        """1 for losses, -1 for rewards: sign * value is always minimised."""
        return SENSES[self.sense]

    @cached_property
    def m(self) -> int:
        """Largest number of different arms in one action."""
        if self.n.max() <= 1:
            return self.M
        return int((self.enumerate() > 0).sum(axis=1).max())

    @cached_property
    def M(self) -> int:  # noqa: N802
        """Largest number of units in one action."""
        with deadline.before(math.inf):  # it is kept for ever
            return int(self.argmin(-np.ones(self.d)).sum())

    def argmin(self, costs: ArrayLike) -> IntArray:
        r"""Return the cheapest action for every cost vector c along the last axis.

        .. math::

            \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, c \rangle
        """
        if self._as_policies_give(costs):
            return self.oracle(costs)
        return self._argmin(with_last_axis("costs", costs, self.d))

    def _as_policies_give(self, rows: ArrayLike) -> TypeGuard[FloatArray]:
        """Whether these are finite floats (trials, d), as kernels take them."""
        return (
            type(rows) is np.ndarray
            and rows.dtype is FLOAT
            and rows.shape[1:] == self._n.shape
            and rows.flags.carray
            and finite(rows)
        )

    def _argmin(self, costs: FloatArray) -> IntArray:
        rows = np.require(costs.reshape(-1, self.d), requirements=["C", "W"])  # as kernels want
        return self.oracle(rows).reshape(costs.shape)

    @abstractmethod
    def oracle(self, costs: FloatArray) -> IntArray:
        """Return the best action for each row of ``costs``, which are finite and (rows, d)."""

    def argmin_increasing(self, costs: ArrayLike) -> IntArray:
        r"""Return the cheapest action where each unit of an arm costs no less than the one before.

        .. math::

            \operatorname*{arg\,min}_{a \in \mathcal{A}} \sum_i \sum_{k=1}^{a_i} c_{ik},
            \qquad c_{i1} \le c_{i2} \le \dots \le c_{i n_i}

        So the cost of an arm is convex in its units. The last axis of ``costs`` has the
        :math:`n_1` units of arm 1, then the units of arm 2, and so on.

        Examples
        --------
        >>> from multiplay import Budget
        >>> Budget(3, caps=[3, 2]).argmin_increasing([1, 4, 9, 2, 3])  # 1 + 2 + 3
        array([1, 2])
        """
        given = with_last_axis("costs", costs, int(self.n.sum()))
        rows = given.reshape(math.prod(given.shape[:-1]), given.shape[-1])
        return self._argmin_increasing(rows).reshape(*given.shape[:-1], self.d)

    def _argmin_increasing(self, costs: FloatArray) -> IntArray:
        used = np.flatnonzero(self.n)
        if self.n.max() <= 1:
            rows = np.zeros((len(costs), self.d))
            rows[:, used] = costs
            return self.oracle(rows)
        chosen = self._interchangeable.actions.argmin(costs)
        action = np.zeros((len(costs), self.d), dtype=np.int64)
        first = (np.cumsum(self.n) - self.n)[used]
        action[:, used] = np.add.reduceat(chosen, first, axis=1)
        return action

    def best_by_unit(self, means: ArrayLike) -> IntArray:
        r"""Return the best action where the k-th unit of arm i has a mean of its own.

        .. math::

            \operatorname*{arg\,min}_{a \in \mathcal{A}} \sum_i \sum_{k=1}^{a_i}
                (\mu_{ik} + \text{offset}_i),

        and arg max for rewards. ``means`` has shape (..., d, K); units beyond the K-th have the
        mean of the K-th. Where losses do not decrease in k (rewards do not increase), it is
        ``argmin_increasing``. Other means, and sets without it, are solved by listing at most
        100,000 actions.

        Examples
        --------
        >>> from multiplay import Budget
        >>> Budget(3, caps=[3, 2]).best_by_unit([[0.1, 0.4, 0.9], [0.2, 0.3, 0.3]])
        array([1, 2])
        """
        given, shape = self._by_unit(means)
        sign = self.sign
        increasing = (np.diff(sign * given, axis=2) >= 0).all()
        if increasing and self._solves_units:
            costs = np.ascontiguousarray(self.costs_by_unit(given))
            return self._argmin_by_unit(costs).reshape(shape)
        everything = self._listed_by_unit(bool(increasing))
        values = np.stack([self.value_by_unit(everything, row) for row in given])
        best: IntArray = everything[(sign * values).argmin(axis=1)].reshape(shape)
        return best

    def value_by_unit(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        """Return the expected loss or reward of actions where each unit has a mean of its own.

        ``means`` is as in ``best_by_unit``.

        Examples
        --------
        >>> from multiplay import Budget
        >>> Budget(3, caps=[3, 2]).value_by_unit([1, 2], [[0.1, 0.4, 0.9], [0.2, 0.3, 0.3]])
        array(0.6)
        """
        given, _ = self._by_unit(means)
        a = with_last_axis("action", action, self.d).astype(np.int64)
        rows = a.reshape(-1, self.d)
        each = sums_by_unit(given, rows)
        if self.offset is not None:
            each = each + rows * self.offset
        values: FloatArray = each.sum(axis=1).reshape(a.shape[:-1])
        return values + self.known(a) if self.extra else values

    def _by_unit(self, means: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
        """Return means by unit as (rows, d, K), and the shape of the actions that they give."""
        given = numbers("means", means)
        if given.ndim < 2 or given.shape[-2] != self.d or given.shape[-1] == 0:
            expected = f"shape (..., {self.d}, K): a row for each arm, a column for each unit"
            hint = "Give the mean of the first unit, of the second unit and so on."
            raise InvalidInput("means", expected, f"shape {given.shape}", hint)
        return given.reshape(-1, *given.shape[-2:]), given.shape[:-1]

    def _argmin_by_unit(self, costs: FloatArray) -> IntArray:
        """Return a best action for costs that increase, by the fastest method of the set."""
        return self._argmin_increasing(costs)

    @cached_property
    def _solves_units(self) -> bool:
        """Whether ``best_by_unit`` solves the set for increasing costs, without a list."""
        if not self.linear or self.extra:
            return False
        try:
            self._argmin_increasing(np.zeros((1, int(self.n.sum()))))
        except InvalidInput:
            return False
        return True

    def check_by_unit(self) -> None:
        """Raise ``InvalidInput`` unless ``best_by_unit`` solves the set for increasing costs."""
        if not self._solves_units:
            self._listed_by_unit(True)

    def _listed_by_unit(self, increasing: bool) -> IntArray:
        if not self.affine:
            expected = "a set whose value is a sum over the units, for means by unit"
            hint = Hint("Use a policy without {}.", ORDERED)
            raise InvalidInput("actions", expected, f"{self!r}", hint)
        try:
            return self.all_actions(MOST_LISTED)
        except InvalidInput as error:
            if error.argument != "limit":
                raise
            raise InvalidInput(
                "actions" if increasing else "means",
                f"a flow, budget, knapsack or program, or a set of at most {MOST_LISTED} actions"
                if increasing
                else "means of losses that do not decrease by unit (of rewards: increase)",
                f"{self!r}",
                Hint("Use a smaller set, or a policy without {}.", ORDERED),
            ) from error

    def value(self, action: ArrayLike, means: ArrayLike) -> FloatArray:
        r"""Return the expected loss or reward of an action, along the last axis.

        .. math::

            \langle a, \mu + \text{offset} \rangle, \qquad \mu = \text{means}

        A single number stands for the means of all arms, here as in ``best``.
        """
        action = with_last_axis("action", action, self.d)
        values: FloatArray = (action * self._whole("means", means)).sum(axis=-1)
        return values

    def best(self, means: ArrayLike) -> IntArray:
        """Return the action of the smallest loss, or the largest reward, ``value(a, means)``.

        A set whose ``value`` is not linear writes its own, and says ``linear = False``.
        """
        if self.offset is None and self.sense == "min" and self._as_policies_give(means):
            return self.oracle(means)
        return self._argmin(self.costs_of(for_each_arm("means", means, self.d)))

    def costs_of(self, means: FloatArray) -> FloatArray:
        """Return sign * (means + offset): on a linear set, ``argmin`` of these costs is the best.

        Examples
        --------
        >>> from multiplay import Budget
        >>> Budget(3, caps=[3, 2], sense="max").costs_of(np.array([0.25, 0.5]))
        array([-0.25, -0.5 ])
        """
        return self.sign * (means if self.offset is None else means + self.offset)

    def costs_by_unit(self, means: FloatArray) -> FloatArray:
        """Return ``costs_of`` every unit, (rows, copies), for means of arms or of their units.

        Examples
        --------
        >>> from multiplay import Budget
        >>> Budget(3, caps=[3, 2]).costs_by_unit(np.array([[[0.1, 0.4], [0.2, 0.3]]]))
        array([[0.1, 0.4, 0.4, 0.2, 0.3]])
        """
        owner = owners(self.n)
        if means.ndim == 2:
            return self.costs_of(means)[:, owner]
        unit = np.minimum(unit_numbers(self.n), means.shape[2]) - 1
        offset = 0.0 if self.offset is None else self.offset[owner]
        return self.sign * (means[:, owner, unit] + offset)

    def _whole(self, argument: str, means: ArrayLike) -> FloatArray:
        """Return means + offset."""
        learned = for_each_arm(argument, means, self.d)
        return learned if self.offset is None else learned + self.offset

    @property
    def affine(self) -> bool:
        """Whether the value of an action is affine in the means of its arms."""
        return self.linear or self.extra

    def known(self, action: ArrayLike) -> FloatArray:
        """Return h(a), the known cost of whole actions beside the offset; 0 without ``extra``."""
        return np.zeros(np.shape(action)[:-1])

    def known_cost(self, action: ArrayLike) -> FloatArray:
        """Return the cost of actions that is known and not told, in the user's unit."""
        return np.zeros(np.shape(action)[:-1])

    def shifted(self, offset: FloatArray, scale: float = 1.0) -> Self:
        """Return the same set, where a unit of arm i loses a known offset_i beside its loss.

        ``scale`` is the unit of the losses: known costs of the set itself are divided by it.
        """
        other = copy(self)
        other.offset = offset
        return other

    def bounded(self, upper: FloatArray) -> Self:
        """Return the same set, where a unit of arm i is known to lose at most upper_i <= 1."""
        other = copy(self)
        other.upper = upper
        return other

    def featured(self, features: FeatureRows | None) -> Self:
        r"""Return the same set, with the features :math:`\phi` of its arms in this round.

        Only policies with ``reads_features`` look at them.
        """
        other = object.__new__(type(self))  # of every round: faster than copy
        other.__dict__.update(self.__dict__)
        other.features = features
        return other

    def _within(self, most: IntArray, fixed: IntArray) -> "tuple[ActionSet, IntArray]":
        """Return a set and the units to add to its actions: together they are a ``Limited`` set.

        Where units are added, the set has n_i = 0. ``fixed`` is at most ``most``, and that n. Where
        no action is left, ``InvalidInput`` is raised; ``Limited`` then says what is wrong.
        """
        raise InvalidInput(
            "actions",
            "a set that can express at_most, exclude and fixed",
            f"{self!r}",
            "Build the set of this round without the excluded actions.",
        )

    def _fresh(self) -> Self:
        """Return a copy without the cached values."""
        other = copy(self)
        for name in list(vars(other)):
            if isinstance(getattr(type(self), name, None), cached_property):
                del vars(other)[name]
        other._everything = other._coordinates = None
        return other

    def unmet(self, action: ArrayLike) -> dict[str, int]:
        """Return the units of demand that an action leaves unmet, by their names.

        Each costs ``penalty``. Most sets ask for nothing.
        """
        return {}

    def at(self, t: int) -> "ActionSet":
        """Return the set of round t, for t = 1, 2, ...: this one, unless it changes."""
        return self

    @property
    def period(self) -> int:
        """The number of sets after which ``at`` repeats: 1, unless it changes."""
        return 1

    def over(self, horizon: int) -> Self:
        """Return a set whose n holds for so many rounds: this one, unless a function changes it."""
        return self

    @cached_property
    def closed(self) -> IntArray:
        """The arms that cannot be played: n_i = 0."""
        return np.flatnonzero(self._n == 0)

    @abstractmethod
    def contains(self, action: Any) -> Any:
        """Return for every vector along the last axis whether it is in A.

        A set of your own gets one vector at a time, and returns True or False.
        """

    def enumerate(self, limit: int = 100_000) -> IntArray:
        """Return all actions, one in each row; at most ``limit``."""
        sizes = [int(n) + 1 for n in self.n]
        if np.prod(sizes, dtype=float) > LARGEST_BOX:
            raise too_many(limit)
        found, total = [], int(np.prod(sizes))
        for start in range(0, total, LARGEST_BOX // 100):
            numbers = np.arange(start, min(start + LARGEST_BOX // 100, total))
            box = np.column_stack(np.unravel_index(numbers, sizes)).astype(np.int64)
            found.append(box[self.contains(box)])
            if sum(map(len, found)) > limit:
                raise too_many(limit)
        return np.concatenate(found)

    def all_actions(self, limit: int = 100_000) -> IntArray:
        """Return ``enumerate(limit)``, read-only; the list is cached."""
        if self._everything is None:
            self._everything = self.enumerate(limit)
        if len(self._everything) > limit:
            raise too_many(limit)
        return read_only(self._everything)

    def listed(self, limit: int = 10_000) -> Listed:
        """Return all actions, in coordinates, which are cached."""
        everything = self.all_actions(limit)
        if self._coordinates is None:
            self._coordinates = Listed(everything)
        return self._coordinates

    @cached_property
    def spanning(self) -> Spanning:
        """Some actions that span all others; no list of actions is needed for them."""
        return Spanning.of(self.argmin, self.d)

    _everything: IntArray | None = None
    _coordinates: Listed | None = None

    def duplicate(self) -> "Duplicate":
        """Return the same problem with an arm of its own for every copy, all n_i = 1."""
        if len(self.closed) == self.d:  # nothing to copy
            return Duplicate(self, np.arange(self.d))
        return self._duplicate

    @cached_property
    def _duplicate(self) -> "Duplicate":
        """The cached duplicate; a set of 0/1 vectors is its own, and other sets override this."""
        if self.n.max() <= 1:
            return Duplicate(self, np.arange(self.d))
        raise InvalidInput(
            "actions", "a set that can be duplicated", type(self).__name__, "Implement duplicate()."
        )

    @property
    def _interchangeable(self) -> "Duplicate":
        """A copied problem with n_i copies of arm i, each of which can replace another one."""
        return self._duplicate

    @cached_property
    def hull(self) -> Hull:
        """conv(A): minimise over it, and draw an action with a given mean."""
        return DecompositionHull(self.oracle, self.n)


class Duplicate(NamedTuple):
    r"""The same problem with an arm of its own for every copy of an arm.

    .. math::

        \mathcal{A} = \Bigl\{a : a_i = \sum_{k : \text{owner}_k = i} a'_k, \;
            a' \in \mathcal{A}' \subseteq \{0, 1\}^{d'}\Bigr\}

    ``actions.duplicate()`` makes it. A policy for 0/1 actions can play :math:`\mathcal{A}'`.

    Attributes
    ----------
    actions : ActionSet
        The set :math:`\mathcal{A}'` of the copied problem.
    owner : array of shape (d',)
        The arm that each copy stands for.

    Examples
    --------
    >>> from multiplay import Budget
    >>> copied, owner = Budget(2, caps=[2, 1]).duplicate()
    >>> owner
    array([0, 0, 1])
    >>> copied.enumerate()
    array([[0, 1, 1],
           [1, 0, 1],
           [1, 1, 0]])
    """

    actions: ActionSet
    owner: IntArray


def _one_by_one(rule: Callable[[Any, Any], Any]) -> Callable[[Any, Any], BoolArray]:
    """Return a ``contains`` for all vectors along the last axis, from one for a single vector."""

    @wraps(rule)
    def contains(self: ActionSet, action: ArrayLike) -> BoolArray:
        shape = with_last_axis("action", action, self.d).shape
        rows = np.asarray(action).reshape(-1, self.d)
        inside = np.array([_one_bool(rule(self, row)) for row in rows], dtype=bool)
        return inside.reshape(shape[:-1])

    return contains


def _one_bool(answer: Any) -> bool:
    if np.shape(answer) != () or np.asarray(answer).dtype != bool:
        raise InvalidInput(
            "contains",
            "True or False, for one action",
            f"{answer!r}",
            "Fix contains(): it gets one vector and must return one bool.",
        )
    return bool(answer)


def remember(table: dict[bytes, Value], key: bytes, value: Value, most: int) -> None:
    """Add an entry to a table of at most so many; the oldest one is dropped."""
    if len(table) >= most:
        del table[next(iter(table))]
    table[key] = value


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def owners(n: IntArray) -> IntArray:
    """Return the arm of every copy, n_i copies of arm i, where there are not too many."""
    if n.sum() > MOST_COPIES:
        raise InvalidInput(
            "actions",
            f"at most {MOST_COPIES // 10**6} million copied arms",
            f"{n.sum()} units",
            "Use the policy without Duplicated: it needs no copies.",
        )
    return np.repeat(np.arange(len(n)), n)


def unit_numbers(n: IntArray) -> IntArray:
    """Return the number of every copy among those of its arm, from 1."""
    first = np.repeat(np.cumsum(n) - n, n)
    return np.arange(1, int(n.sum()) + 1) - first


def sums_by_unit(means: FloatArray, action: IntArray) -> FloatArray:
    """Return the sum of the means of the first a_i units of each arm, (rows, d).

    ``means`` has shape (rows, d, K), or (1, d, K) for all rows of ``action``; units beyond the K-th
    have the mean of the K-th.

    Examples
    --------
    >>> sums_by_unit(np.array([[[0.1, 0.4], [0.2, 0.3]]]), np.array([[1, 3], [0, 2]])).round(2)
    array([[0.1, 0.8],
           [0. , 0.5]])
    """
    d, K = means.shape[1:]
    sums = np.concatenate([np.zeros((*means.shape[:2], 1)), means.cumsum(axis=2)], axis=2)
    row, arm = np.arange(len(action))[:, None] if len(means) > 1 else 0, np.arange(d)
    beyond = np.maximum(action - K, 0) * means[row, arm, K - 1]
    total: FloatArray = sums[row, arm, np.minimum(action, K)] + beyond
    return total


def best_of(actions: ActionSet, theta: FloatArray) -> IntArray:
    """Return the best actions for numbers of arms, (rows, d), or of their units, (rows, d, K)."""
    if theta.ndim == 2:
        return actions.best(theta)
    return actions.best_by_unit(theta + actions.sign * TIE * np.arange(theta.shape[2]))


def values_of(actions: ActionSet, plans: IntArray, theta: FloatArray) -> FloatArray:
    """Return the values of plans for each row, (rows, k, d), for numbers as in ``best_of``."""
    if theta.ndim == 2:
        return actions.value(plans, theta[:, None])
    both = zip(plans, theta, strict=True)
    return np.stack([actions.value_by_unit(own, means) for own, means in both])


def added(theta: FloatArray, by_arm: FloatArray) -> FloatArray:
    """Return numbers of arms, or of their units, with what is added to each unit of an arm."""
    return theta + (by_arm if theta.ndim == by_arm.ndim else by_arm[..., None])


def whole_box(action: FloatArray, n: IntArray) -> BoolArray:
    """Return for every vector along the last axis whether it is made of integers from 0 to n_i."""
    inside: BoolArray = ((action >= 0) & (action <= n) & (action == np.floor(action))).all(axis=-1)
    return inside


def extensions(least: IntArray, most: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for each row in turn, its number beside every integer from least to most."""
    choices = np.maximum(most - least + 1, 0)
    row = np.repeat(np.arange(len(choices)), choices)
    value = least[row] + np.arange(len(row)) - np.repeat(choices.cumsum() - choices, choices)
    return row, value


def _checked_names(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"arm {i + 1}" for i in range(d))
    given, checked = _checked.get(id(names), (None, ()))
    if given is names and len(checked) == d:  # those of yesterday
        return checked
    checked = texts("names", names)
    if len(checked) != d:
        raise InvalidInput("names", f"{d} names", f"{len(checked)}", "Give one for each arm.")
    checked = _different(checked)
    if isinstance(names, tuple):  # which cannot change
        if len(_checked) == MOST_CHECKED:
            _checked.clear()
        _checked[id(names)] = names, checked
    return checked


def texts(argument: str, names: Any) -> tuple[str, ...]:
    """Return names as texts, or raise ``InvalidInput`` if there are no names."""
    with suppress(TypeError):
        if not isinstance(names, str):  # which is a list of its characters
            return tuple(map(str, names))
    hint = Hint("Use {}, for example.", Term("names=['north', 'south']", "names"))
    raise InvalidInput(argument, "a list of names", shortened(repr(names)), hint)


# Names that were given, and what became of them: by identity, which holds as long as they are kept.
_checked: dict[int, tuple[Sequence[str], tuple[str, ...]]] = {}


@lru_cache(maxsize=16)
def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that look different; sets of many days share one tuple of them."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput("names", "different names", f"{twice!r} twice", "Rename one of them.")
    together = "".join(names)
    if together.isascii() and together.isprintable() and all(map(str.strip, names)):
        return names  # those of most sets: they look as they are written
    visible(names)
    others = {name: look(name) for name in names if not name.isascii()}
    alike: dict[str, str] = {name: name for name in names if name.isascii()}
    for name, shown in others.items():
        if shown in alike and not _is_stored(name, alike[shown]):
            got = f"{alike[shown]!a} and {name!a}, which look the same"
            raise InvalidInput("names", "names that look different", got, "Rename one of them.")
        alike[shown] = name
    return names


def visible(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that can be seen; raise ``InvalidInput`` for empty and invisible ones."""
    for name in names:
        if not look(name).strip() and not _is_stored(name):
            hint = "Write a name for every arm."
            raise InvalidInput("names", "names that can be seen", ascii(name), hint)
    return names


def look(name: str) -> str:
    """Return a name without characters of no width, and with combined accents.

    Examples
    --------
    >>> look("Lyo\u200bn"), look("u\u0308") == "\u00fc"
    ('Lyon', True)
    """
    if name.isascii():
        return name
    shown = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", shown)


# Names in stores of version 0.9, which accepted all names: their studies and sets can be continued.
_stored: set[str] = set()
_is_reading: ContextVar[bool] = ContextVar("is_reading", default=False)


@contextmanager
def stored_names() -> Iterator[None]:
    """Accept invisible and similar names in the block, which builds a set from a store."""
    token = _is_reading.set(True)
    try:
        yield
    finally:
        _is_reading.reset(token)


def _is_stored(*names: str) -> bool:
    """Return whether all of these names are in a store."""
    if _is_reading.get():
        _stored.update(names)
    return _stored.issuperset(names)


def too_many(limit: int) -> InvalidInput:
    """Return the error of an ``enumerate`` that exceeds its limit."""
    return InvalidInput(
        "limit",
        f"a set of at most {limit} actions",
        "a set with more actions",
        "Raise the limit, or use argmin, which needs no list of actions.",
    )
