"""Operations on studies with limits on sizes, pending plays and time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeVar

from multiplay.actions import ActionSet, Rule
from multiplay.constraints import Constraint, Promise
from multiplay.errors import Conflict, InvalidInput, NotFound, UnknownOutcome
from multiplay.learner.comparison import PlansByKey
from multiplay.learner.engine import default_policy
from multiplay.learner.logged_data import TableCheck
from multiplay.learner.past_plans import DRIVEN
from multiplay.learner.plays import When
from multiplay.policies import Policy
from multiplay.service.server import metrics
from multiplay.service.studies.batching import NOT_RECOGNISED
from multiplay.service.studies.limits import (
    MOST_PROMISES,
    ServiceLimits,
    build_actions,
    build_constraint,
    build_features,
    build_policy,
    build_rule,
    build_versus,
    check_ahead,
    check_arms,
    check_compared,
    check_features,
    check_history,
    check_known,
    check_name,
    check_quick,
    check_rebuilt,
    check_together,
    in_time,
    takes_long,
    too_many_arms,
)
from multiplay.storage import Entry, MemoryStore, Store
from multiplay.storage.base import AnsweredRequest, name_in_use
from multiplay.studies import Study, backup, wire
from multiplay.studies.commands.base import Command, Query
from multiplay.studies.commands.constraints import AddConstraint
from multiplay.studies.commands.external import (
    CheckTable,
    Learn,
    LearnTable,
    SetArmFeatures,
)
from multiplay.studies.commands.plays import Ask
from multiplay.studies.commands.queries import Best, CompareArms, EstimateSavings, Expect, Explain
from multiplay.studies.entry_codec import Request, different_request, used_before
from multiplay.studies.export import history_in
from multiplay.studies.like import arms_like
from multiplay.studies.replica import same_first_entry
from multiplay.studies.synced import forget

R = TypeVar("R")
T = TypeVar("T")


def create(
    limits: ServiceLimits,
    store: Store,
    name: str,
    actions: Any,
    policy: Any = None,
    *,
    present: Callable[[Study], Any],
    request: Request | None = None,
    key: str | None = None,
    features: Any = None,
    constraints: Sequence[Mapping[str, Any]] = (),
    like: str | Sequence[str] | None = None,
    **settings: Any,
) -> Any:
    """Create a study from plain data; return what ``present`` makes of the new study.

    The same request again returns the same, whatever happened to the study since; so does the same
    ``key``, as long as the study exists.
    """
    known = _answered(store, request)
    if known is not None:  # before anything is built
        return known.answer
    made = build_actions("actions", actions, limits)
    declared = None if features is None else build_features("features", features)
    check_features(declared, made.d)
    chosen = default_policy(declared) if policy is None else build_policy("policy", policy, limits)
    check_together(made, chosen, limits)
    places = (f"constraints[{k}]" for k in range(len(constraints)))
    kept = [build_constraint(*one, limits) for one in zip(places, constraints, strict=True)]
    _check_promises([one for one in kept if isinstance(one, Promise)], made)
    settings |= {"features": declared, "key": key, "constraints": kept}
    if like is not None:
        settings["like"] = arms_like(like, made, store, Study)
    with in_time("actions", limits):
        draft = Study.create(name, made, chosen, store=MemoryStore(), **settings)
    first, answer = next(draft.entries()), present(draft)

    def store_it() -> Any:
        recorded = _answer_of(request, answer)
        store.create(name, first.record, first.labels, request=recorded).close()
        return answer

    try:
        return _once(store, request, store_it, key)
    except Conflict:
        if key is None:
            raise
        return present(_created_before(store, name, first))


def delete(
    store: Store,
    name: str,
    request: Request | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Delete a study; the same request again deletes nothing more.

    ``check`` is called in the transaction, and nothing is deleted if it raises.
    """

    def delete_it() -> None:
        store.delete(name, request=_answer_of(request, None), check=check)
        forget(store, name)

    _once(store, request, delete_it)


def rename(store: Store, name: str, new: str, request: Request | None = None) -> None:
    """Give a study a new name; the same request again renames nothing more."""

    def rename_it() -> None:
        store.rename(name, new, request=_answer_of(request, None))
        forget(store, name)

    _once(store, request, rename_it)


def copy(store: Store, name: str, new: str, request: Request | None = None) -> int:
    """Copy a study to a new name; return the number of entries, also to the same request again."""

    def copy_it() -> int:
        opened = history_in(store, name)
        return backup.copy(opened, store, new, answer=lambda n: _answer_of(request, n))

    return _once(store, request, copy_it)


def _once(store: Store, request: Request | None, act: Callable[[], T], key: str | None = None) -> T:
    """Call a function that changes a store and records a request; return the response to it.

    After a commit without an answer, a request with a key is carried out again: it is found in the
    store, or refused, if the commit succeeded.
    """
    try:
        return _unless_answered(store, request, act)
    except UnknownOutcome as error:
        if request is None and key is None:
            raise UnknownOutcome(error.store, error.reason, NOT_RECOGNISED) from error
    return _unless_answered(store, request, act)


def _unless_answered(store: Store, request: Request | None, act: Callable[[], T]) -> T:
    """Call a function, unless the request was carried out before or is by another process."""
    known = _answered(store, request)
    if known is None:
        try:
            return act()
        except UnknownOutcome:
            metrics.count_unknown_commit()
            raise
        except (NotFound, Conflict):
            known = _answered(store, request)  # the same request at the same time
            if known is None:
                raise
    answer: T = known.answer
    return answer


class _Known(NamedTuple):
    """The response to a request."""

    answer: Any


def _answered(store: Store, request: Request | None) -> _Known | None:
    """Return the response to a request that was carried out before."""
    found = None if request is None else store.answered(request.id)
    if request is None or found is None:
        return None
    if found.body != request.body:
        raise different_request()
    return _Known(json.loads(found.answer))


def _answer_of(request: Request | None, answer: Any) -> AnsweredRequest | None:
    if request is None:
        return None
    return AnsweredRequest(request.id, request.body, json.dumps(answer), time.time())


def _created_before(store: Store, name: str, first: Entry) -> Study:
    """Return the study that was created with the same key, as it was then."""
    with closing(store.open(name)) as journal:
        there = next(journal.entries())
    if there.labels.key != first.labels.key:
        raise name_in_use(name, store.url)
    if not same_first_entry(there.record, first.record):
        raise used_before(there, "was used for a different study")
    copied = MemoryStore()
    copied.create(name, there.record, there.labels)
    return Study.open(name, store=copied)


# ------------------------------------------------------------ verbs of a study


class LimitedBuild:
    """Builds the arguments of verbs from plain data, within the limits of the service."""

    def __init__(self, limits: ServiceLimits) -> None:
        self._limits = limits

    def actions(self, where: str, plain: Any) -> ActionSet:
        """Return a set."""
        return build_actions(where, plain, self._limits)

    def rule(self, where: str, plain: Any) -> Rule:
        """Return a rule."""
        return build_rule(where, plain, self._limits)

    def constraint(self, where: str, plain: Any) -> Constraint:
        """Return a constraint."""
        return build_constraint(where, plain, self._limits)

    def versus(self, where: str, plain: Any) -> Rule | Policy | PlansByKey | Literal["driven"]:
        """Return a rule, a policy, plans by key, or what was driven."""
        if plain == DRIVEN:
            return DRIVEN
        if plain.keys() != {"plans"}:
            return build_versus(where, plain, self._limits)
        plans = wire.to_plans(plain["plans"])
        for key, plan in plans.by_key.items():
            check_arms(f"{where}[{key!r}]", plan, self._limits)
        return plans


def do(
    limits: ServiceLimits,
    study: Study,
    command: Command[R],
    key: str | None = None,
    at: When = None,
) -> R:
    """Run a verb that changes a study; raise if it is too large for the service."""
    if isinstance(command, Ask):
        _check_pending(limits, study, key)
    check = CHECKS.get(type(command))
    if check is not None:
        command = check(limits, study, command) or command
    return study.do(command, key, at)


def read(limits: ServiceLimits, study: Study, query: Query[R]) -> R:
    """Run a verb that reads a study; raise if it is too large for the service."""
    check = CHECKS.get(type(query))
    if check is not None:
        check(limits, study, query)
    with in_time(TIMED[type(query)], limits) if type(query) in TIMED else nullcontext():
        found = study.read(query)
    if isinstance(found, TableCheck):
        _check_size(limits, study, found)
    return found


def _check_pending(limits: ServiceLimits, study: Study, key: str | None) -> None:
    """Raise ``Conflict`` if too many plays are pending, and the key names none of them."""
    pending = study.open_plays
    if pending >= limits.pending and not study.is_asked(key):
        expected = f"fewer than {limits.pending} pending plays"
        hint = "Tell, close or cancel some of them first."
        raise Conflict("study", expected, f"{pending}", hint)


def _check_ask(limits: ServiceLimits, study: Study, ask: Ask) -> Ask:
    """Return the command with a time limit; raise if its sets are too large."""
    _check_day(limits, study, ask)
    check_ahead(ask.ahead or ())
    if ask.actions is not None and takes_long(ask.actions):
        _check_promises(_promises(study), ask.actions, "actions")
    return replace(ask, time_limit=min(ask.time_limit or limits.seconds, limits.seconds))


def _check_day(limits: ServiceLimits, study: Study, given: Ask | Learn | Best | Expect) -> None:
    """Raise ``InvalidInput`` for a set of a round that is too large for the policy or the study."""
    actions = given.actions
    if actions is not None:
        check_together(actions, study.policy, limits)
        check_known(set(study.known_arms), actions, limits)
        check_features(study.features, actions.d, "actions")


def _check_added(limits: ServiceLimits, study: Study, command: AddConstraint) -> None:
    if isinstance(command.constraint, Promise):
        _check_promises([*_promises(study), command.constraint], study.actions)


def _promises(study: Study) -> list[Promise]:
    return [one for one in study.constrained_by if isinstance(one, Promise)]


def _check_promises(
    promises: Sequence[Promise], actions: ActionSet, argument: str = "constraints"
) -> None:
    """Raise ``InvalidInput`` for more promises than a study may have, or a set that is slow."""
    if promises:
        check_quick(argument, actions)
    if len(promises) > MOST_PROMISES:
        expected, hint = f"at most {MOST_PROMISES} promises", "End some of them."
        raise InvalidInput(argument, expected, f"{len(promises)}", hint)


def _check_table(limits: ServiceLimits, study: Study, given: LearnTable) -> None:
    columns = given.arm, given.round, given.loss, given.day_first, given.id
    _check_size(limits, study, study.read(CheckTable(given.table, *columns)))


def _check_size(limits: ServiceLimits, study: Study, check: TableCheck) -> None:
    """Raise ``InvalidInput`` if a table of past rounds is too large."""
    arms, features = len(study.known_arms) + len(check.added), study.features
    for name in check.added:
        check_name("table", name)
    if check.added and arms > limits.arms:
        raise too_many_arms("table", arms, limits)
    check_history(check.rounds, arms)
    check_features(features, check.rows, "table")
    check_rebuilt(features, study.policy, check.rounds, arms)


def _check_described(limits: ServiceLimits, study: Study, given: SetArmFeatures) -> None:
    """Raise ``InvalidInput`` if features are kept for too many arms, also those of no set."""
    named = {arm for values in given.table.values() for arm in values}
    for arm in named:
        check_name("features", arm)
    arms = len(named.union(study.described_arms))
    if arms > limits.arms:
        raise too_many_arms("features", arms, limits)
    check_features(study.features, arms)


def _check_arms(limits: ServiceLimits, study: Study, query: CompareArms) -> None:
    check_features(study.features, len(study.known_arms))


def _check_saved(limits: ServiceLimits, study: Study, query: EstimateSavings) -> None:
    simulated = isinstance(query.versus, Policy)
    if simulated:
        check_together(study.actions, query.versus, limits)
    check_compared(study.asked, len(study.known_arms), simulated)


# By the class of a command: each checks it, and may return a smaller one.
CHECKS: dict[type, Callable[[ServiceLimits, Study, Any], Any]] = {
    Ask: _check_ask,
    Learn: _check_day,
    Best: _check_day,
    Expect: _check_day,
    AddConstraint: _check_added,
    LearnTable: _check_table,
    SetArmFeatures: _check_described,
    CompareArms: _check_arms,
    EstimateSavings: _check_saved,
}
TIMED: dict[type, str] = {
    Best: "actions",
    Explain: "play",
    EstimateSavings: "versus",
}  # with an argument
