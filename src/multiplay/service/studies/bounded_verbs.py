"""Operations on studies with limits on sizes, pending plays and time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from multiplay.actions import ActionSet
from multiplay.errors import Conflict, InvalidInput, NotFound, UnknownOutcome
from multiplay.learner.engine import default_policy
from multiplay.learner.logged_data import TableCheck
from multiplay.learner.plays import Estimate, PendingPlay, Plan, Receipt, Why
from multiplay.policies import Policy
from multiplay.savings import Saved
from multiplay.service.server import metrics
from multiplay.service.studies.batching import NOT_RECOGNISED
from multiplay.service.studies.limits import (
    MOST_PROMISES,
    ServiceLimits,
    build_actions,
    build_against,
    build_features,
    build_policy,
    build_promise,
    build_rule,
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
from multiplay.studies.entry_codec import Request, different_request, used_before
from multiplay.studies.export import history_in
from multiplay.studies.replica import same_first_entry
from multiplay.studies.synced import forget

if TYPE_CHECKING:
    import pandas as pd

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
    baseline: Any = None,
    promises: Sequence[Mapping[str, Any]] = (),
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
    if isinstance(baseline, Mapping):
        baseline = build_rule("baseline", baseline, limits)
    if promises:
        check_quick("promises", made)
    made_of = [build_promise(f"promises[{k}]", one, limits) for k, one in enumerate(promises)]
    settings |= {"features": declared, "key": key, "baseline": baseline, "promises": made_of}
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


def ask(
    limits: ServiceLimits,
    study: Study,
    actions: ActionSet | None,
    *,
    key: str | None = None,
    time_limit: float | None = None,
    ahead: Sequence[ActionSet] | None = None,
    **given: Any,
) -> PendingPlay:
    """Choose the next play of a study; raise if too many plays are pending."""
    pending = study.open_plays
    if pending >= limits.pending and not study.is_asked(key):
        expected = f"fewer than {limits.pending} pending plays"
        hint = "Tell, close or cancel some of them first."
        raise Conflict("study", expected, f"{pending}", hint)
    _check_day(limits, study, actions)
    check_ahead(ahead or ())
    if actions is not None and takes_long(actions) and study.promise_reports():
        check_quick("actions", actions)
    seconds = min(time_limit or limits.seconds, limits.seconds)
    return study.ask(actions, key=key, time_limit=seconds, ahead=ahead, **given)


def promise(limits: ServiceLimits, study: Study, promise: Mapping[str, Any], **given: Any) -> None:
    """Make a promise, from plain data."""
    check_quick("promise", study.actions)
    count = len(study.promise_reports())
    if count >= MOST_PROMISES:
        expected, hint = f"fewer than {MOST_PROMISES} promises before it", "Release some of them."
        raise InvalidInput("promise", expected, f"{count}", hint)
    study.promise(build_promise("promise", promise, limits), **given)


def learn(limits: ServiceLimits, study: Study, actions: ActionSet | None, **given: Any) -> Receipt:
    """Learn from an external plan."""
    _check_day(limits, study, actions)
    return study.learn(actions=actions, **given)


def check_table(
    limits: ServiceLimits,
    study: Study,
    table: Any,
    arm: str | Sequence[str],
    round: str,
    loss: str,
    *,
    day_first: bool | None = None,
) -> TableCheck:
    """Return what a table of past rounds contains, after checking that it is not too large."""
    check = study.check_table(table, arm, round, loss, day_first=day_first)
    arms, features = len(study.known_arms) + len(check.added), study.features
    for name in check.added:
        check_name("table", name)
    if check.added and arms > limits.arms:
        raise too_many_arms("table", arms, limits)
    check_history(check.rounds, arms)
    check_features(features, check.rows, "table")
    check_rebuilt(features, study.policy, check.rounds, arms)
    return check


def learn_table(
    limits: ServiceLimits,
    study: Study,
    table: Any,
    arm: str | Sequence[str],
    round: str,
    loss: str,
    *,
    day_first: bool | None = None,
    **given: Any,
) -> Receipt:
    """Learn from a table of past rounds."""
    check_table(limits, study, table, arm, round, loss, day_first=day_first)
    return study.learn_table(table, arm, round, loss, day_first=day_first, **given)


def describe(
    limits: ServiceLimits, study: Study, features: Mapping[str, Mapping[str, Any]], **given: Any
) -> None:
    """Keep features of arms, also of arms that no set has had so far."""
    named = {arm for values in features.values() for arm in values}
    for arm in named:
        check_name("features", arm)
    arms = len(named.union(study.described_arms))
    if arms > limits.arms:
        raise too_many_arms("features", arms, limits)
    check_features(study.features, arms)
    study.describe(features, **given)


def arms(study: Study, features: Any, level: float) -> pd.DataFrame:
    """Return the statistics of all arms at some features."""
    check_features(study.features, len(study.known_arms))
    return study.arms(level, features)


def best(limits: ServiceLimits, study: Study, actions: ActionSet | None, **given: Any) -> Plan:
    """Return the best plan by current estimates."""
    _check_day(limits, study, actions)
    with in_time("actions", limits):
        return study.best(actions, **given)


def why(limits: ServiceLimits, study: Study, play: int | str) -> Why:
    """Return why a play differs from the best plan."""
    with in_time("play", limits):
        return study.why(play)


def expect(
    limits: ServiceLimits, study: Study, actions: ActionSet | None, **given: Any
) -> Estimate:
    """Return the expected cost of a plan."""
    _check_day(limits, study, actions)
    return study.expect(actions=actions, **given)


def set_compare(limits: ServiceLimits, study: Study, rule: Any, **given: Any) -> None:
    """Set the rule that plays are compared with, from plain data."""
    study.set_compare(None if rule is None else build_rule("rule", rule, limits), **given)


def cost_of_learning(study: Study, *, against: Any, method: str, **given: Any) -> Saved:
    """Return what learning cost; nothing else can be asked at the same time."""
    if against is not None or method != "model":
        expected, hint = "no against or method with learning", "Leave them out."
        raise InvalidInput("learning", expected, "true", hint)
    check_compared(study.asked, len(study.known_arms), simulated=False)
    return study.cost_of_learning(**given)


def saved(limits: ServiceLimits, study: Study, against: Any, **given: Any) -> Saved:
    """Return what was saved against a rule, a policy, or plans by key, from plain data."""
    chosen: Any = None
    if against is not None and against.keys() == {"plans"}:
        chosen = wire.to_plans(against["plans"])
        for key, plan in chosen.by_key.items():
            check_arms(f"against[{key!r}]", plan, limits)
    elif against is not None:
        chosen = build_against("against", against, limits)
    if isinstance(chosen, Policy):
        check_together(study.actions, chosen, limits)
    check_compared(study.asked, len(study.known_arms), isinstance(chosen, Policy))
    with in_time("against", limits):
        return study.saved(chosen, **given)


def _check_day(limits: ServiceLimits, study: Study, actions: ActionSet | None) -> None:
    """Raise ``InvalidInput`` for a set of a round that is too large for the policy or the study."""
    if actions is not None:
        check_together(actions, study.policy, limits)
        check_known(set(study.known_arms), actions, limits)
        check_features(study.features, actions.d, "actions")
