"""The base class of all policies, plays, and checks of a policy against a set."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self, TypeAlias

from multiplay._support.hints import Hint, Option
from multiplay.actions import ActionSet, OracleSet, TimeVarying
from multiplay.actions.base import whole_box
from multiplay.actions.costs import Requirement
from multiplay.beliefs.restart import Restart
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.random import Rng
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

LearnsFrom: TypeAlias = Literal["units", "totals", "round"]

# Limits within which plans take seconds; all of them were measured.
LISTED_ARMS = 50  # of a set whose actions are listed: 10,000 flows may take 200,000 dead ends
POLYNOMIAL_ARMS = 200  # of a set whose hull is explored by thousands of calls of the oracle
SEARCH_ARMS = 20  # of a set whose oracle is a search without a time limit
SOLVED_ACTIONS = 100  # of a set that is listed by tens of solves for each action


class PolicyCost(NamedTuple):
    """Cost of a policy, declared by its class.

    Attributes
    ----------
    oracle : "once", "often" or "often in update"
        Calls of the oracle in a round: about one, or as many as a minimisation over the hull
        takes. The time limit of a play does not cover calls in ``update``.
    step : float
        Time of a round for each arm, relative to GenCTS.
    most_arms : int or None
        The most arms with which the first play takes seconds.
    most_actions : int or None
        The most actions, if the policy lists all of them.
    capped : tuple of strings
        Settings that increase the cost; the service allows at most the default.
    """

    oracle: Literal["once", "often", "often in update"] = "once"
    step: float = 1.0
    most_arms: int | None = None
    most_actions: int | None = None
    capped: tuple[str, ...] = ()


@dataclass(frozen=True, init=False)
class Play:
    """An action in every trial, and what the policy needs of it later.

    Attributes
    ----------
    action : array of shape (trials, d)
        How many units of each arm to play.
    memo : dict of arrays
        What the policy must remember of the play until its losses come.
    cache : dict of arrays
        What makes the next choice faster: entries of the state by their names, newer than those
        that the state has. It may be dropped at any time without changing what is computed beyond
        rounding; a random action may then be another one, with the same mean.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import GenLBINFV, Streams, Transport
    >>> plans, policy = Transport([1, 4, 5], [4, 6]), GenLBINFV()
    >>> state = policy.start(plans, horizon=1000, trials=3)
    >>> play = policy.choose(plans, state, Streams.spawn(seed=0, purpose=0, trials=range(3)))
    >>> play.action.shape
    (3, 6)
    >>> sorted(play.memo)  # the mean of the action, n less that mean, and what was predicted
    ['q', 'rest', 'x']
    """

    action: IntArray
    memo: Arrays
    cache: Arrays

    def __init__(  # of every round: faster than setting one frozen field after the other
        self, action: IntArray, memo: Arrays | None = None, cache: Arrays | None = None
    ) -> None:
        fields = self.__dict__
        fields["action"] = action
        fields["memo"] = {} if memo is None else memo
        fields["cache"] = {} if cache is None else cache


class Policy(ABC):
    r"""A frozen configuration; what it learns is in a state, a plain dict of arrays.

    Its actions a(t) are to have little regret against the best fixed action, whatever the mean
    losses :math:`\ell(t)` of the units are:

    .. math::

        R_T = \sum_{t=1}^{T} \langle a(t), \ell(t) \rangle
            - \min_{a \in \mathcal{A}} \sum_{t=1}^{T} \langle a, \ell(t) \rangle.

    Every array of the state has the trials first. So a state can be copied, compared and saved
    without knowing the policy, and late feedback is judged by the memo of its own play. A policy is
    a frozen dataclass, whose fields are its settings.

    Attributes
    ----------
    cost : PolicyCost or None
        What a round costs. The service offers no class that does not declare it.
    learns_from : "units", "totals" or "round"
        What ``update`` reads of the feedback: the loss of every single unit, or no more than the
        totals of the arms, or no more than the total of the round, which is then all that it is
        shown. A class attribute: write it without a type, or a dataclass takes it for a setting.
    needs_linear : bool
        Whether the expected loss (or reward) of an action must be :math:`\langle a, \ell \rangle`.
        A class attribute.
    uses_known : bool
        Whether a policy that needs a linear objective uses known costs of whole actions,
        ``actions.known``, beside it. A class attribute.
    changing : bool
        Whether the set may be another one in every round. Then every array of the state has shape
        (trials,), or (trials, d, ...) with the arms on its second axis, beside what ``warm`` and
        ``shared`` name: the arms of today are cut out of it by their names, and put back. A class
        attribute.
    shared : tuple of strings
        The names of arrays of the state that belong to all arms together, such as coefficients of
        features. A class attribute.
    reads_features : bool
        Whether it reads ``ActionSet.features``. A class attribute.
    partial : bool
        Whether it may be shown feedback of which some units are missing. A class attribute.
    needs_range : bool
        Whether the range of losses must be known, and cannot change later.
    absorbs : bool
        Whether it can learn from external plans, by ``absorb``. A class attribute.
    restarts : bool
        Whether single arms can forget earlier reports, by ``restart``. A class attribute.
    pools : bool
        Whether arms that are absent from a round teach of those in it, by ``taught``. A class
        attribute.

    Examples
    --------
    A policy that repeats its first action:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from multiplay import Learner, Play, Policy, Transport
    >>> @dataclass(frozen=True)
    ... class Stubborn(Policy):
    ...     def start(self, actions, horizon, trials):
    ...         return {"told": np.zeros(trials)}
    ...
    ...     def choose(self, actions, state, rng):
    ...         return Play(actions.argmin(np.zeros((len(state["told"]), actions.d))))
    ...
    ...     def update(self, actions, state, play, feedback, rng):
    ...         state["told"] += 1
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), Stubborn(), seed=0)
    >>> learner.ask().plan == learner.ask().plan
    True
    """

    cost: ClassVar[PolicyCost | None] = None
    does: ClassVar[str] = ""  # a sentence for readers of plans
    learns_from: LearnsFrom = "totals"
    needs_linear: bool = False
    uses_known: bool = False
    changing: bool = False
    shared: ClassVar[tuple[str, ...]] = ()
    reads_features: bool = False
    partial: bool = False
    absorbs: bool = False
    needs_range: bool = True
    restarts: bool = False
    pools: bool = False

    @abstractmethod
    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state before the first round."""

    @classmethod
    def example(cls) -> Self:
        """Return an instance for examples, with the defaults of all settings."""
        return cls()

    @property
    def summary(self) -> str:
        """What the policy does, in one or two sentences; the name of a class that does not say it.

        Examples
        --------
        >>> from multiplay import PooledCTS
        >>> PooledCTS(discount=0.99).summary.split(". ")[1]
        'Old results count less.'
        """
        return self.does or f"{type(self).__name__}."

    def requirements(self, actions: ActionSet) -> Iterator[Requirement]:
        """Yield the quantities that must be limited on a set; cheap ones first.

        Read them one by one, and stop at the first that exceeds its limit: to count the next may
        take long then.

        Examples
        --------
        >>> from multiplay import GenCTS, Transport
        >>> for one in GenCTS(window=100).requirements(Transport([1, 4, 5], [4, 6])):
        ...     print(one.argument, one.amount, one.unit)
        policy.window 600 rounds times arms
        """
        cost, name, d = self.cost or PolicyCost(), type(self).__name__, actions.d
        oracle = actions.cost.oracle if actions.cost else "search"
        if cost.most_actions is not None:
            unit = f"arms for {name}, which lists all actions"
            yield Requirement("policy", d, LISTED_ARMS, unit)
            most = cost.most_actions if oracle != "solver" else SOLVED_ACTIONS
            yield _number_of_actions(actions, min(most, cost.most_actions), name)
        if cost.most_arms is not None:
            yield Requirement("policy", d, cost.most_arms, f"arms for {name}")
        if cost.oracle != "once" and oracle != "flow":
            unit = f"arms for {name} on a {type(actions).__name__}"
            updates = cost.oracle == "often in update"
            yield Requirement("policy", d, POLYNOMIAL_ARMS, unit)
            if oracle == "solver" or (oracle == "search" and updates):
                yield Requirement("policy", d, SEARCH_ARMS, unit)
            if oracle == "solver" and updates:
                unit, got = "calls of the solver for a report", f"many by {name}"
                yield Requirement("policy", d, 0, unit, got, "Use PooledCTS or GenLBINFV.")

    def effort(self, actions: ActionSet) -> float:
        """Return the time of a round, relative to the time of an arm of GenCTS."""
        return actions.d * (self.cost or PolicyCost()).step

    @abstractmethod
    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Choose an action in every trial; the state does not change."""

    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray | None:
        r"""Return the :math:`\theta` of which ``choose`` plays the best action, (trials, d).

        It draws the same random numbers as ``choose``, which plays ``actions.best(index)`` where
        all arms were seen. Of shape (trials, d, K) if each unit of an arm has a number of its own,
        which do not decrease (for rewards: increase). None if the policy does not play the best
        action for such numbers; then no constraint can change its plans.

        Examples
        --------
        >>> from multiplay import CombUCB, FollowTheLeader, GenLBINFV, Streams, Transport
        >>> plans, rng = Transport([1, 4, 5], [4, 6]), Streams.spawn(0, 0, [0])
        >>> for policy in (FollowTheLeader(), GenLBINFV()):
        ...     print(policy.index(plans, policy.start(plans, None, 1), rng))
        [[0. 0. 0. 0. 0. 0.]]
        None
        """
        return None

    def memo(self, actions: ActionSet, action: IntArray) -> Arrays:
        """Return what ``update`` needs to know of the actions that are played in the end.

        A constraint may replace the action of ``choose``, and then adds this to its memo.
        """
        return {}

    @abstractmethod
    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn from the losses of one play, and change the state."""

    def warm(self, actions: ActionSet) -> tuple[str, ...]:
        """Return the names of the entries of the state that belong to this set."""
        return ()

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:  # noqa: B027
        """Update the state for rounds in which some arms could not be played.

        ``state`` has no other arms, and the arrays that ``shared`` names. ``offset`` is what a unit
        of them is known to lose beside what is learned, as in ``ActionSet.offset``. ``update`` of
        the arms that could be played comes after it.
        """

    def taught(self, state: Arrays, offset: FloatArray) -> Arrays:
        """Return entries that ``choose`` and ``index`` find in their state, of absent arms.

        ``state`` and ``offset`` are those of ``absent``.
        """
        return {}

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn from an external plan, and change the state."""
        raise NotImplementedError(f"{type(self).__name__} does not learn from external plans")

    def restart(self, state: Arrays, restart: Restart) -> None:
        """Let only the reports of a restart count of its arms, and change the state."""
        raise NotImplementedError(f"{type(self).__name__} does not forget reports of single arms")

    def believed(self, state: Arrays) -> FloatArray | None:
        """Return the mean loss that a unit of each arm is believed to have, (trials, d).

        None if the policy has no such belief.
        """
        return None

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the posterior interval of the mean loss of each arm, with probability ``level``.

        None if the policy has no posterior.
        """
        return None


def _number_of_actions(actions: ActionSet, most: int, policy: str) -> Requirement:
    """Return the number of actions, which are counted up to ``most``."""
    unit = f"actions for {policy}"
    try:
        return Requirement("policy", len(actions.all_actions(most)), most, unit)
    except InvalidInput as error:
        if error.argument != "limit":
            raise
        return Requirement("policy", most + 1, most, unit, f"more in {actions!r}")


def drop_warm_start(policy: Policy, state: Arrays, actions: ActionSet) -> None:
    """Drop what belongs to a set from a state, before a different set."""
    for name in policy.warm(actions):
        state.pop(name, None)


def shown(policy: Policy, feedback: Feedback) -> Feedback:
    """Return the feedback of a policy: only the round's total, if it learns from that."""
    return feedback.round_only() if policy.learns_from == "round" else feedback


def check_fits(policy: Policy, actions: ActionSet, horizon: int | None, shows_units: bool) -> None:
    """Raise ``InvalidInput`` before round 1 if a policy cannot play here, or cannot learn.

    ``shows_units`` says whether the loss of every single unit will be known; otherwise it is the
    total of each arm.

    Examples
    --------
    >>> from multiplay import GenLBINFV, Transport
    >>> check_fits(GenLBINFV(), Transport([1, 4, 5], [4, 6]), horizon=1000, shows_units=True)
    """
    name = type(policy).__name__
    if isinstance(actions, TimeVarying) and horizon is None:
        raise InvalidInput(
            "actions",
            "the usual set of a learner",
            f"{actions!r}",
            Hint(
                "Give one set here, and the set of each day when you ask: {}.",
                Option("actions", "today", "learner.ask({})"),
            ),
        )
    if isinstance(actions, TimeVarying) and not policy.changing:
        raise InvalidInput(
            "policy",
            f"a policy that can play on changing sets, for {actions!r}",
            f"{policy!r}, which needs a fixed set",
            "Use PooledCTS, CombUCB or GenLBINFV, for example.",
        )
    if policy.needs_linear and not (actions.linear or (policy.uses_known and actions.extra)):
        raise InvalidInput(
            "actions",
            f"a set with a linear objective <a, means>, which {name} needs",
            f"{actions!r}",
            "Use PooledCTS or CombUCB.",
        )
    if policy.learns_from == "units" and not shows_units:
        raise InvalidInput(
            "policy",
            f"a policy that learns from the total losses of the arms, because {actions!r} has "
            f"{actions.n.sum()} units, too many to report the loss of each",
            f"{policy!r}, which needs the loss of every unit",
            "Use GenCTS or GenLBINFV themselves, without copies, or a set with fewer units.",
        )
    for t in range(1, actions.period + 1):
        policy.start(actions.at(t), horizon, 1)


def all_actions(policy: str, actions: ActionSet, limit: int, instead: str) -> IntArray:
    """Return all actions, or raise ``InvalidInput`` with the policies to use instead."""
    try:
        return actions.all_actions(limit)
    except InvalidInput as error:
        if error.argument != "limit":
            raise
        raise InvalidInput(
            "actions",
            f"a set of at most {limit} actions: {policy} enumerates all of them",
            f"more in {actions!r}",
            Hint("Use {}; or write {}.", instead, Option("limit", "...", policy + "({})")),
        ) from error


def known_values(actions: ActionSet, everything: IntArray) -> FloatArray | float:
    """Return what is known of the value of each action: its offsets, and h(a)."""
    values: FloatArray | float = 0.0
    if actions.offset is not None:
        values = everything @ actions.offset
    return values + actions.known(everything) if actions.extra else values


def check_play(
    policy: Policy,
    actions: ActionSet,
    play: Play,
    trials: int,
    when: str,
    *,
    restored: bool = False,
) -> None:
    """Raise ``ArithmeticError`` unless a policy has chosen an action of the set in every trial.

    ``restored`` says that the policy's state came from another process.
    """
    action, shape = play.action, (trials, actions.d)
    if action.shape != shape or False in _inside(actions, action, restored).tolist():
        raise no_action(policy, actions, trials, when)


def no_action(policy: Policy, actions: ActionSet, trials: int, when: str) -> ArithmeticError:
    """Return the error of a play that is outside the set."""
    return ArithmeticError(
        f"{policy!r} chose in {when} a vector that is not an action of {actions!r}. Fix choose(): "
        f"it must return actions of the set, in an array of shape {(trials, actions.d)}."
    )


def _inside(actions: ActionSet, action: IntArray, restored: bool) -> BoolArray:
    """Return which actions are in the set, as far as that can be computed.

    A set that is defined by an oracle has the actions that the oracle returned in this process; a
    restored state may have others.
    """
    if restored and isinstance(actions, OracleSet) and type(actions).contains is OracleSet.contains:
        return whole_box(action.astype(float), actions.n)
    inside: BoolArray = actions.contains(action)
    return inside
