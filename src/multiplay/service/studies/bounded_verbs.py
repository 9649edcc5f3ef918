"""Operations on studies with limits on sizes, pending plays and time."""

from __future__ import annotations

from typing import Any

from multiplay.actions import ActionSet
from multiplay.errors import Conflict
from multiplay.learner.plays import Estimate, PendingPlay, Plan, Receipt
from multiplay.service.studies.limits import (
    ServiceLimits,
    build_actions,
    build_policy,
    check_history,
    check_known,
    check_together,
    in_time,
)
from multiplay.storage import Store
from multiplay.studies import Study


def create(
    limits: ServiceLimits, store: Store, name: str, actions: Any, policy: Any, **settings: Any
) -> Study:
    """Create a study from plain data."""
    made, chosen = build_actions("actions", actions, limits), build_policy("policy", policy, limits)
    check_together(made, chosen, limits)
    with in_time("actions", limits):
        return Study.create(name, made, chosen, store=store, **settings)


def ask(
    limits: ServiceLimits,
    study: Study,
    actions: ActionSet | None,
    *,
    key: str | None = None,
    time_limit: float | None = None,
    **given: Any,
) -> PendingPlay:
    """Choose the next play of a study; raise if too many plays are pending."""
    pending = study.open_plays
    if pending >= limits.pending and not study.is_asked(key):
        expected = f"fewer than {limits.pending} pending plays"
        hint = "Tell, close or cancel some of them first."
        raise Conflict("study", expected, f"{pending}", hint)
    _check_day(limits, study, actions)
    seconds = min(time_limit or limits.seconds, limits.seconds)
    return study.ask(actions, key=key, time_limit=seconds, **given)


def learn(limits: ServiceLimits, study: Study, actions: ActionSet | None, **given: Any) -> Receipt:
    """Learn from an external plan."""
    _check_day(limits, study, actions)
    return study.learn(actions=actions, **given)


def learn_table(study: Study, table: dict[str, Any], key: str | None) -> Receipt:
    """Learn from a table of past rounds."""
    check_history(len(set(table["round"])), len(study.known_arms))
    return study.learn_table(table, key=key)


def best(limits: ServiceLimits, study: Study, actions: ActionSet | None, **given: Any) -> Plan:
    """Return the best plan by current estimates."""
    _check_day(limits, study, actions)
    with in_time("actions", limits):
        return study.best(actions, **given)


def expect(
    limits: ServiceLimits, study: Study, actions: ActionSet | None, **given: Any
) -> Estimate:
    """Return the expected cost of a plan."""
    _check_day(limits, study, actions)
    return study.expect(actions=actions, **given)


def _check_day(limits: ServiceLimits, study: Study, actions: ActionSet | None) -> None:
    """Raise ``InvalidInput`` for a set of a round that is too large for the policy or the study."""
    if actions is not None:
        check_together(actions, study.policy, limits)
        check_known(set(study.known_arms), actions, limits)
