"""Promises of a learner: what its plays have used, their prices, and plans that keep them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multiplay._support import deadline
from multiplay._support.checks import check_instance, is_list, shortened
from multiplay._support.hints import LEARNER, Hint, Option
from multiplay._support.patterns import matches
from multiplay._support.serialization import pack, set_digest
from multiplay._support.suggestions import suggestion
from multiplay._support.words import money_text
from multiplay.actions import ActionSet
from multiplay.actions.base import added
from multiplay.constraints.prices import OVER, Prices, RemainingSet, best_plan, overshot, paid_for
from multiplay.constraints.promise import Promise, promise_of
from multiplay.constraints.promised import MOST_PAST, Promised, Promises, RemainingPeriod
from multiplay.constraints.reserve import PROBABLE, LikelyReserve, ThriftyPlans, used_by
from multiplay.constraints.terms import FAR
from multiplay.errors import InvalidInput
from multiplay.learner.beliefs import Beliefs
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.reports import Report
from multiplay.learner.round_set import NO_LIMITS, RoundSet, check_storable
from multiplay.policies import Play
from multiplay.policies.index import orders_units
from multiplay.random import PRICE, Streams
from multiplay.types import Arrays, FloatArray, IntArray

NUMBERS, PRICES, HELD, CHOSEN = "promises", "prices", "held", "list"  # in the memo of a play
MOST_KNOWN = 500  # sets whose plans, amounts and digests are kept
SPREADS = 1.96  # standard deviations of an interval of 95 %
SOFT = Option("hard", "False")


class PromiseReport(NamedTuple):
    """How a promise stands, by what is believed now.

    Attributes
    ----------
    name : str
        Its name.
    constraint : Promise
        Its settings.
    used : float
        What the plays have used so far: those that are pending as planned, those that were told by
        the units of their reports.
    expected_end : float
        What is used at the end, if prices continue.
    low, high : float
        An interval of 95 % of it: sets of plays that are not known yet vary.
    price : float
        What a unit of it is worth, in the user's unit; negative for ``AtLeast``.
    holds : str
        "sure": a list of plans for all remaining plays keeps it, whatever is learned. "likely": it
        will probably be kept. "no longer sure": no such list was found. "no: at best 41.2": it
        cannot be kept, and this is the least overshoot. Of promises that exclude each other, the
        first one is kept, and the others say by how much they are broken: "no: at best 41.2, 1.2
        too much".
    left_plays : int
        The number of plays that are left.
    external : float
        The part of ``used`` that external plans (``learn``) have used.

    Examples
    --------
    >>> from multiplay import AtMost, Budget, Learner
    >>> co2 = AtMost(100, of={"air": 5, "sea": 1}, plays=5, name="CO2")
    >>> plans = Budget(2, [2, 2], names=["air", "sea"])
    >>> learner = Learner(plans, loss_range=(0, 9), constraints=[co2])
    >>> (report,) = learner.constraints()
    >>> report.constraint.kind, report.constraint.limit, report.used, report.left_plays
    ('at most', 100, 0.0, 5)
    """

    name: str
    constraint: Promise
    used: Annotated[float, "What the plays have used so far, pending ones as planned."]
    expected_end: float
    low: float
    high: float
    price: Annotated[float, "What a unit of it is worth; negative for `at least`."]
    holds: Annotated[str, "`sure`, `likely`, `no longer sure`, or `no: at best` and the amount."]
    left_plays: int
    external: Annotated[float, "The part of `used` that external plans have used."]


@dataclass
class ActivePromise:
    """A promise and the units that count for it, of all arms ever seen."""

    number: int
    settings: Promise
    plays: int = 0
    units: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    external: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def count(self, places: IntArray, units: IntArray, external: bool = False) -> None:
        """Add units of the arms at these places."""
        more = int(places.max(initial=-1)) + 1 - len(self.units)
        if more > 0:
            self.units, self.external = (
                np.pad(one, (0, more)) for one in (self.units, self.external)
            )
        self.units[places] += units
        if external:
            self.external[places] += units

    def used(self, names: Sequence[str], units: IntArray) -> float:
        """Return the amount of some units of all arms."""
        (which,) = units.nonzero()
        amounts = self.settings.amounts([names[i] for i in which.tolist()])
        return float((units[which] * amounts).sum())

    @property
    def left(self) -> int:
        """The number of plays that are left."""
        return max(self.settings.plays - self.plays, 0)


class PromisedPlay(NamedTuple):
    """The promises that count for a play.

    Attributes
    ----------
    kept : list of ActivePromise
        The promises.
    period : RemainingPeriod
        What this play and those after it may use.
    prices : array of shape (promises,)
        The shadow prices.
    before : array of integers or None
        The list of the last play, if it is of these promises and plays.
    """

    kept: list[ActivePromise]
    period: RemainingPeriod
    prices: FloatArray
    before: IntArray | None

    def term(self, round_set: RoundSet) -> Promised:
        """Return the promises as a constraint of the round."""
        dearest = float(np.abs(round_set.bounds).max())
        return Promised(
            [(self.period.today(self.before), self.prices)], dearest, round_set.ranges.scale
        )

    def memo(self, term: Promised | None = None, plan: IntArray | None = None) -> Arrays:
        """Return what is remembered of a play; without a term, prices alone changed the plan."""
        held, chosen = False, np.zeros(0, dtype=np.int64)
        if term is not None and plan is not None:
            (made,) = term.final(plan)
            held, chosen = made.held, made.chosen.astype(np.int64)
        return {
            NUMBERS: np.array([[one.number for one in self.kept]]),
            PRICES: self.prices[None],
            HELD: np.array([[held]]),
            CHOSEN: chosen[None],
        }

    def priced(
        self, state: PolicyState, round_set: RoundSet, label: str, until: float
    ) -> tuple[Play, bool]:
        """Return the play of a policy without an index, on the set with prices.

        With it, whether it is truncated.
        """
        paid = paid_for(self.period.sets[0].amounts, self.prices) / state.ranges.scale
        arrays = state.arms.to_choose(state.begin_round(round_set))
        with deadline.before(until) as limit:
            play = state.policy.choose(_shifted(round_set.actions, paid), arrays, state.rng)
        made = Play(play.action, play.memo | self.memo(), play.cache)
        state.check(round_set, made, label)
        return made, limit.truncated


class PromiseBook:
    """All promises of a learner.

    Plays count when they are asked for, as planned. A final report that leaves units out says that
    these were not used; a play that is cancelled does not count. Sums are whole numbers.

    Attributes
    ----------
    initial : tuple of Promise
        The promises of a new learner.
    kept : dict
        The promises that were added and not ended, by name.
    made : int
        The number of promises ever added.
    past : list of ActionSet
        The sets of the last plays.
    ahead : tuple of ActionSet
        The sets of the plays after the last one, as far as they are known.
    chosen : array of integers
        The list of the remaining plays, as numbers of weights; empty if there is none.
    listed : tuple of int
        The numbers of the promises of this list.
    latest : float
        The latest time of a play.
    """

    def __init__(self, initial: Iterable[Promise] = ()) -> None:
        self.initial = tuple(initial)
        self.kept: dict[str, ActivePromise] = {}
        self.made = 0
        self.past: list[ActionSet] = []
        self.ahead: tuple[ActionSet, ...] = ()
        self.chosen = np.zeros(0, dtype=np.int64)
        self.listed: tuple[int, ...] = ()
        self.latest = -math.inf
        self._made: dict[tuple[Hashable, int], tuple[ActionSet, Any]] = {}
        self._amounts: dict[tuple[Any, ...], FloatArray] = {}
        for promise in self.initial:
            self.start(promise)

    def __bool__(self) -> bool:
        return bool(self.initial or self.made)

    # ------------------------------------------------------------ promises

    def check(self, state: PolicyState, promise: Promise, strict: bool) -> None:
        """Raise ``InvalidInput`` unless a promise fits the parts of a learner.

        ``strict``: every pattern must fit an arm, because the set does not change.
        """
        self._check_policy(state, promise)
        self.check_set(state, state.actions)
        promise.amounts(state.actions.names)
        for pattern in promise.of if strict else ():
            if pattern not in state.arms.index and not any(
                "*" in pattern and matches(pattern, name) for name in state.arms.names
            ):
                to_come = Option("varying_set", "True")
                hint = Hint("Check the spelling, or use {} for arms to come.", to_come)
                hint += suggestion(pattern, state.arms.names)
                expected = f"names or patterns of arms, such as {state.arms.names[0]!r}"
                raise InvalidInput("of", expected, repr(pattern), hint)

    def _check_policy(self, state: PolicyState, promise: Promise) -> None:
        policy = state.policy
        if state.has_index:
            return
        if promise.hard:
            raise InvalidInput(
                "constraints",
                f"hard=False for {type(policy).__name__}, whose plans are not the best for one "
                "vector of costs",
                f"{promise.name!r} with hard=True",
                Hint("Use {}: then only its price counts. Or use PooledCTS or GenCTS.", SOFT),
            )
        if not policy.changing:
            expected = "a policy for changing sets, because prices change them"
            raise InvalidInput("policy", expected, f"{policy!r}", "Use PooledCTS or GenLBINFV.")

    def check_set(self, state: PolicyState, actions: ActionSet, argument: str = "actions") -> None:
        """Raise ``InvalidInput`` if prices cannot be computed for a set."""
        if not actions.affine:
            expected = "a set whose costs are sums over units, or known"
            raise InvalidInput(argument, expected, f"{actions!r}", "Leave out the promises.")
        if actions.has_known and not state.has_index:
            expected = f"a set without known costs for {type(state.policy).__name__} and promises"
            raise InvalidInput(argument, expected, f"{actions!r}", "Use PooledCTS or GenCTS.")

    def start(self, promise: Promise, past: Iterable[ActionSet] = ()) -> None:
        """Add a promise: plays count from now on; ``past`` are the sets of earlier plays."""
        if not self.made:  # equal sets are one object, as in a journal that is read again
            known = dict[bytes, ActionSet]()
            self.past = [known.setdefault(self.digest(one), one) for one in past]
        self.made += 1
        self.kept[promise.name] = ActivePromise(self.made, promise)
        self.chosen = np.zeros(0, dtype=np.int64)

    def end(self, name: str) -> None:
        """End a promise."""
        del self.kept[name]
        self.chosen = np.zeros(0, dtype=np.int64)

    # ------------------------------------------------------------ sets

    def checked_ahead(self, state: PolicyState, given: Any) -> tuple[ActionSet, ...]:
        """Return the sets of the plays after this one, for the argument of ``ask``."""
        if given is None:
            return ()
        if not self.kept:
            some = Option("constraints", "[AtMost(...)]")
            hint = Hint("Create the {} with {}, or leave it out.", LEARNER, some)
            raise InvalidInput("ahead", "no sets without promises", "sets", hint)
        known = {self.digest(one): one for one in (state.actions, *self.past, *self.ahead)}
        found = []
        for k, one in enumerate(given_sets(given)):
            argument = f"ahead[{k}]"
            if one.sense != state.actions.sense:
                expected, got = f"sense={state.actions.sense!r}", f"sense={one.sense!r}"
                raise InvalidInput(argument, expected, got, "Use one learner for each sense.")
            self.check_set(state, one, argument)
            check_storable(one, state.actions)
            self.amounts(one.names)
            found.append(known.setdefault(self.digest(one), one))
        return tuple(found)

    def digest(self, actions: ActionSet) -> bytes:
        """Return the digest of a set, computed once for each object."""
        made: bytes = self._once("digest", actions, lambda: set_digest(*pack(actions, "actions")))
        return made

    def amounts(
        self, names: tuple[str, ...], kept: list[ActivePromise] | None = None
    ) -> FloatArray:
        """Return what a unit of each arm counts for each promise, as upper limits."""
        kept = list(self.kept.values()) if kept is None else kept
        key = (*(one.number for one in kept), names)
        if key not in self._amounts:
            if len(self._amounts) > MOST_KNOWN:
                self._amounts.clear()
            rows = [one.settings.sign * one.settings.amounts(names) for one in kept]
            self._amounts[key] = np.stack(rows)
        return self._amounts[key]

    # ------------------------------------------------------------ plans

    def active(self, when: float) -> list[ActivePromise]:
        """Return the promises for which a play at this time counts."""
        return [one for one in self.kept.values() if not when > _end(one.settings)]

    def period(
        self,
        state: PolicyState,
        beliefs: Beliefs,
        kept: list[ActivePromise],
        ahead: Sequence[ActionSet],
        today: RoundSet | None = None,
    ) -> RemainingPeriod:
        """Return the sets of the remaining plays, and their reserve."""
        known: list[ActionSet] = list(ahead)
        pool = self.past[-MOST_PAST:] or [state.actions]
        left = np.array([one.left for one in kept])
        if today is not None:
            given = self._known_set(today.given)
            known.insert(0, today.limits.apply(given) if today.limits else given)
            pool = [*self.past, given][-MOST_PAST:]
            left = np.maximum(left, 1)
        means, indexed = _means(state, beliefs), draws_costs(state, kept)

        def costs(actions: ActionSet, number: int) -> FloatArray:
            found = self._drawn(state, actions, number, today) if indexed else None
            return _of_names(state, means, actions.names) if found is None else found

        made = Promises(
            [one.settings for one in kept],
            lambda actions: self.amounts(actions.names, kept),
            partial(self._thrifty_plans, kept),
            costs,
            indexed,
        )
        rest = np.array([self._rest(state, one) for one in kept])
        return made.period(known, pool, left, rest)

    def _drawn(
        self, state: PolicyState, actions: ActionSet, number: int, today: RoundSet | None
    ) -> FloatArray | None:
        """Return what units cost in a remaining play, as the policy may draw it then.

        Random numbers are those of the number of the play, the same on every day, so that prices
        change only with what is learned. None for arms never seen, and for features to come.
        """
        if any(name not in state.arms.index for name in actions.names):
            return None
        if state.policy.learns_from == "round" and self.digest(actions) != self.digest(
            state.actions
        ):
            return None  # totals say nothing of arms in other sets
        if number or today is None:
            if state.policy.reads_features:
                return None
            today = self._once("prepared", actions, lambda: state.prepared(actions, NO_LIMITS))
        arrays = state.arms.to_choose(state.arms.places(actions.names))
        theta = state.policy.index(today.actions, arrays, Streams(_words(number).copy()))
        assert theta is not None
        return added(today.ranges.scale * _finite(theta)[0], today.bounds.low)

    def _once(self, what: Hashable, actions: ActionSet, make: Callable[[], Any]) -> Any:
        """Return what was made of a set before, or make it."""
        key = what, id(actions)
        known = self._made.get(key)
        if known is None or known[0] is not actions:  # an id may be used again
            if len(self._made) > MOST_KNOWN:
                self._made.clear()
            known = self._made[key] = actions, make()
        return known[1]

    def _list_of(self, kept: list[ActivePromise], known: int) -> IntArray | None:
        """Return the list of the last play, if it is of these promises and plays."""
        same = self.listed == tuple(one.number for one in kept)
        return self.chosen if same and len(self.chosen) == known else None

    def _rest(self, state: PolicyState, one: ActivePromise) -> float:
        return one.settings.sign * (one.settings.limit - one.used(state.arms.names, one.units))

    def _thrifty_plans(
        self, kept: list[ActivePromise], actions: ActionSet, scale: FloatArray
    ) -> ThriftyPlans:
        """Return the thrifty plans of a set, computed once for each set and promises."""

        def thrifty() -> ThriftyPlans:
            amounts = self.amounts(actions.names, kept)
            return ThriftyPlans.of(RemainingSet(actions, 1.0, np.zeros(actions.d), amounts), scale)

        made: ThriftyPlans = self._once(tuple(one.number for one in kept), actions, thrifty)
        return made

    def of_play(
        self,
        state: PolicyState,
        beliefs: Beliefs,
        round_set: RoundSet,
        ahead: tuple[ActionSet, ...],
        when: float,
    ) -> PromisedPlay | None:
        """Return the promises that count for the next play, with their prices; None without."""
        kept = self.active(when)
        if not kept:
            return None
        self.check_set(state, round_set.given)
        self.amounts(round_set.given.names, kept)
        period = self.period(state, beliefs, kept, ahead, round_set)
        found = period.prices
        if not round_set.limits and all(one.plays == 0 for one in kept):
            _check_possible(kept, period, found)
        return PromisedPlay(kept, period, found.prices, self._list_of(kept, period.known))

    # ------------------------------------------------------------ what counts

    def add(
        self, state: PolicyState, round_set: RoundSet, play: Play, when: float, ahead: Any
    ) -> None:
        """Count a play that was asked for."""
        if not math.isnan(when):
            self.latest = max(self.latest, when)
        self._count(state, round_set, play, play.action[0], 1)
        self.chosen, self.listed = self.chosen[:0], ()
        if CHOSEN in play.memo:
            self.chosen = play.memo[CHOSEN][0]
            self.listed = tuple(play.memo[NUMBERS][0].tolist())
        self.past = [*self.past, self._known_set(round_set.given)][-MOST_PAST:]
        self.ahead = ahead

    def _known_set(self, given: ActionSet) -> ActionSet:
        """Return the same set that was given before, whose plans are known."""
        digest = self.digest(given)
        return next((one for one in (*self.ahead, *self.past) if self.digest(one) == digest), given)

    def remove(self, state: PolicyState, round_set: RoundSet, play: Play) -> None:
        """Leave out a play that was cancelled."""
        self._count(state, round_set, play, -play.action[0], -1)

    def told(self, state: PolicyState, round_set: RoundSet, play: Play, used: IntArray) -> None:
        """Count the units that a final report says were used, instead of those of the plan."""
        self._count(state, round_set, play, used - play.action[0], 0)

    def _count(
        self, state: PolicyState, round_set: RoundSet, play: Play, units: IntArray, plays: int
    ) -> None:
        if NUMBERS not in play.memo or not (plays or units.any()):
            return
        numbers = {*play.memo[NUMBERS][0].tolist()}
        for one in self.kept.values():
            if one.number in numbers:
                one.plays += plays
                one.count(_places(state, round_set), units)

    def learn(self, state: PolicyState, round_set: RoundSet, action: IntArray, when: float) -> None:
        """Count an external plan."""
        for one in self.active(when):
            one.plays += 1
            one.count(_places(state, round_set), action, external=True)
            self.chosen = self.chosen[:0]

    def over(self, play: Play) -> list[Promise]:
        """Return the promises with one play more than they were made for, by this play."""
        numbers = {*play.memo[NUMBERS][0].tolist()} if NUMBERS in play.memo else set[int]()
        return [
            one.settings
            for one in self.kept.values()
            if one.number in numbers and one.plays == one.settings.plays + 1
        ]

    # ------------------------------------------------------------ reports

    def prices_of(self, play: Play) -> dict[str, float]:
        """Return the prices of a play by the names of promises; those that ended are left out."""
        if NUMBERS not in play.memo:
            return {}
        by_number = {one.number: one.settings for one in self.kept.values()}
        pairs = zip(play.memo[NUMBERS][0].tolist(), play.memo[PRICES][0].tolist(), strict=True)
        return {
            by_number[k].name: by_number[k].sign * price + 0.0
            for k, price in pairs
            if k in by_number
        }

    def paid(self, round_set: RoundSet, play: Play) -> FloatArray:
        """Return what a unit of each arm pays for promises in a play, as policies see losses."""
        prices, actions = self.prices_of(play), round_set.actions
        paid = np.zeros(actions.d)
        for name, price in prices.items():
            paid += price * self.kept[name].settings.amounts(actions.names)
        return actions.sign * paid / round_set.ranges.scale

    def report(self, state: PolicyState, beliefs: Beliefs) -> list[PromiseReport]:
        """Return how every promise stands."""
        rows = {one.number: self._ended(state, one) for one in self.kept.values()}
        going = [one for one in self.active(self.latest) if one.left]
        if going:
            self._expect(rows, going, self.period(state, beliefs, going, self.ahead))
        return list(rows.values())

    def _expect(
        self, rows: dict[int, PromiseReport], kept: list[ActivePromise], period: RemainingPeriod
    ) -> None:
        """Add to reports what the remaining plays are expected to use."""
        found = period.prices
        stands, spread = self._stands(kept, period), _spread(period, found)
        for k, one in enumerate(kept):
            promise, sign = one.settings, one.settings.sign
            ends = [found.use[k] + z * spread[k] for z in (0.0, -SPREADS, SPREADS)]
            over = float(found.over[k])
            if _is_over(over, promise.limit):
                holds = f"no: at best {money_text(promise.limit + sign * over)}"
                if len(kept) > 1:
                    holds += f", {money_text(over)} too {'much' if sign > 0 else 'little'}"
            elif promise.hard and not stands:
                holds = "no longer sure"
            else:
                holds = "sure" if promise.hard and not period.unknown[k] else "likely"
            ended = rows[one.number]
            middle, low, high = (ended.used + sign * float(end) for end in ends)
            rows[one.number] = ended._replace(
                expected_end=middle,
                low=min(low, high),
                high=max(low, high),
                price=sign * float(found.prices[k]) + 0.0,
                holds=holds,
                left_plays=one.left,
            )

    def _stands(self, kept: list[ActivePromise], period: RemainingPeriod) -> bool:
        """Return whether a list keeps the hard promises, or what is left is probably enough."""
        if isinstance(period.reserve, LikelyReserve):
            return bool(period.reserve.margin(period.kept) >= PROBABLE)
        listed = self._list_of(kept, period.known)
        if listed is None or not period.reserve.stands(listed, period.kept):
            listed = period.reserve.new_list(period.kept)
        return period.reserve.stands(listed, period.kept)

    def _ended(self, state: PolicyState, one: ActivePromise) -> PromiseReport:
        """Return how a promise stands after its last play."""
        promise, names = one.settings, state.arms.names
        used = one.used(names, one.units)
        over = promise.sign * (used - promise.limit)
        holds = f"no: at best {money_text(used)}" if _is_over(over, promise.limit) else "sure"
        external, ends = one.used(names, one.external), (used, used, used, used)
        return PromiseReport(promise.name, promise, *ends, 0.0, holds, 0, external)

    # ------------------------------------------------------------ records

    def record(self) -> tuple[dict[str, Any], Arrays]:
        """Return the state as plain data and arrays, without the sets."""
        header: dict[str, Any] = {
            "initial": [one.record() for one in self.initial],
            "kept": [[one.number, one.settings.record(), one.plays] for one in self.kept.values()],
            "made": self.made,
            "listed": list(self.listed),
            "latest": None if self.latest == -math.inf else self.latest,
        }
        arrays: Arrays = {"list": self.chosen}
        for one in self.kept.values():
            arrays |= {f"{one.number}/units": one.units, f"{one.number}/external": one.external}
        return header, arrays

    @classmethod
    def restored(
        cls,
        header: dict[str, Any],
        arrays: Arrays,
        past: Iterable[ActionSet],
        ahead: Iterable[ActionSet],
    ) -> PromiseBook:
        """Return the state of a record."""
        book = cls()
        book.initial = tuple(promise_of(one) for one in header["initial"])
        for k, plain, plays in header["kept"]:
            units = (arrays[f"{k}/{name}"].astype(np.int64) for name in ("units", "external"))
            promise = promise_of(plain)
            book.kept[promise.name] = ActivePromise(k, promise, plays, *units)
        book.made, book.chosen = header["made"], arrays["list"].astype(np.int64)
        book.listed = tuple(header["listed"])
        book.latest = -math.inf if header["latest"] is None else header["latest"]
        book.past, book.ahead = [*past], tuple(ahead)
        return book


def draws_costs(state: PolicyState, kept: Sequence[ActivePromise]) -> bool:
    """Return whether prices are those of costs that the policy draws, and not of means.

    Means where it has none, and where units are ordered for soft promises alone: so plays of old
    journals stay the same.
    """
    return state.has_index and (
        any(one.settings.hard for one in kept) or not orders_units(state.policy)
    )


def given_sets(given: Any) -> Sequence[ActionSet]:
    """Return the sets of plays to come, after checking that they are sets; none for None."""
    if given is None:
        return ()
    if isinstance(given, ActionSet) or not is_list(given):
        hint = "Use ahead=[set of tomorrow, ...]."
        raise InvalidInput("ahead", "a list of sets", shortened(repr(given)), hint)
    for k, one in enumerate(given):
        check_instance(f"ahead[{k}]", one, ActionSet, "Transport([1, 4, 5], [4, 6])")
    sets: Sequence[ActionSet] = given
    return sets


def used_units(report: Report) -> IntArray:
    """Return the units that a final report says were used.

    A unit that a list marks with None was used, and its bill is missing. Units that a report leaves
    out were not used.
    """
    if report.whole or report.round is not None:
        return report.played
    used = report.seen.copy()
    for arm in report.excused:
        used[arm] = report.played[arm]
    return used


def is_held(play: Play) -> bool:
    """Return whether a promise changed a play beyond its price."""
    return HELD in play.memo and bool(play.memo[HELD].any())


def _finite(theta: FloatArray) -> FloatArray:
    """Return an index where an arm that must be seen first is far better than others."""
    finite: FloatArray = np.nan_to_num(theta, nan=0.5, posinf=FAR, neginf=-FAR)
    return finite


@lru_cache(maxsize=MOST_KNOWN)
def _words(number: int) -> NDArray[np.uint64]:
    """Return the words of the random stream of a remaining play."""
    words: NDArray[np.uint64] = Streams.spawn(0, PRICE, [number]).state
    return words


def _shifted(actions: ActionSet, paid: FloatArray) -> ActionSet:
    """Return the set where units also pay the prices of what they use."""
    offset = actions.sign * paid
    return actions.shifted(offset if actions.offset is None else actions.offset + offset)


def _check_possible(kept: list[ActivePromise], period: RemainingPeriod, found: Prices) -> None:
    """Raise ``InvalidInput`` if known sets make a hard promise impossible from the start."""
    for k, one in enumerate(kept):
        promise, over = one.settings, float(found.over[k])
        if not promise.hard or period.unknown[k] or not _is_over(over, promise.limit):
            continue
        best = money_text(_outward(promise.limit + promise.sign * over, promise.sign))
        at_most = promise.sign > 0
        least, change = ("least", "Raise") if at_most else ("most", "Lower")
        broken = "overshot" if at_most else "missed by"
        raise InvalidInput(
            "constraints",
            f"at {least} {best} of {promise.name} for these {promise.plays} plays",
            f"{promise.limit:,.10g}",
            Hint("{} it, or use {}: then it is {} as little as possible.", change, SOFT, broken),
        )


def _spread(period: RemainingPeriod, found: Prices) -> FloatArray:
    """Return the standard deviation of what plays on unknown sets use in total."""
    pool = period.sets[period.known :]
    if not pool:
        return np.zeros(len(period.rest))
    plans = [best_plan(one, found.prices) for one in pool]
    use = np.stack([used_by(plan, one.amounts) for plan, one in zip(plans, pool, strict=True)])
    n = len(use)
    mean = use.sum(axis=0) / n
    spread = np.sqrt(((use - mean) ** 2).sum(axis=0) / max(n - 1, 1))
    deviation: FloatArray = spread * np.sqrt(period.unknown * (1 + period.unknown / n))
    return deviation


def _means(state: PolicyState, beliefs: Beliefs) -> FloatArray:
    """Return the believed means of all arms in the user's unit; the middle where not known."""
    low, high = state.ranges.of(state.arms.names)
    means = beliefs.means()
    return np.where(np.isnan(means), (low + high) / 2, means)


def _of_names(state: PolicyState, means: FloatArray, names: Sequence[str]) -> FloatArray:
    """Return the means of some arms; the middle of the range for those never seen."""
    index = state.arms.index
    places = np.array([index.get(name, -1) for name in names])
    found: FloatArray = np.append(means, np.nan)[places]
    if (places < 0).any():
        low, high = state.ranges.of(names)
        found = np.where(places < 0, (low + high) / 2, found)
    return found


def _places(state: PolicyState, round_set: RoundSet) -> IntArray:
    places = state.arms.places(round_set.actions.names)
    return np.arange(len(state.arms.names)) if places is None else places


def _end(promise: Promise) -> float:
    """Return the end of the last day of a promise in seconds since 1970; infinite without one."""
    if promise.until is None:
        return math.inf
    day = date.fromisoformat(promise.until) + timedelta(days=1)
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() - 1e-6


def _outward(limit: float, sign: float) -> float:
    """Return a limit with three digits or as a whole number, rounded so that it can be kept."""
    factor = 10.0 ** max(0, 2 - math.floor(math.log10(max(limit, 1.0))))
    return sign * math.ceil(sign * limit * factor - OVER) / factor


def _is_over(over: float, limit: float) -> bool:
    return bool(overshot(np.array(over), np.array(limit)))
