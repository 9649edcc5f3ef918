"""Operations of the HTTP API: the verbs of a study, one handler for each, and their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from multiplay.errors import InvalidInput
from multiplay.learner.plays import Remaining, of_text
from multiplay.service.api import events, models, paging
from multiplay.service.api.context import RequestContext, StudyContext
from multiplay.service.api.routing import Operation, token_of
from multiplay.service.studies import bounded_verbs
from multiplay.service.studies.limits import check_path_name
from multiplay.storage import Journal, Store
from multiplay.studies import Study, play_history, wire
from multiplay.studies.entry_codec import Request
from multiplay.studies.export import of_entry

T = TypeVar("T")

STUDIES, STUDY = "/v1/studies", "/v1/studies/{study}"
PLAY = f"{STUDY}/plays/{{play}}"
KEYS, MANAGE, PLAYS, QUERIES, JOURNAL = "Keys", "Studies", "Plays", "Queries", "Journal"


# ------------------------------------------------------------ keys and studies


async def get_key(context: RequestContext) -> Response:
    """Return the key of this request, and its permission."""
    caller = await context.manager.caller(token_of(context.request))
    return JSONResponse({name: getattr(caller, name) for name in ("id", "name", "study", "can")})


async def list_studies(context: RequestContext, query: models.StudiesQuery) -> Response:
    """List the studies."""
    after = paging.from_cursor(query.cursor, "")
    names = [name for name in await context.manager.names(context.caller) if name > after]
    rest = names[query.limit - 1] if len(names) > query.limit else None
    return JSONResponse(paging.page([{"name": name} for name in names[: query.limit]], rest))


async def create_study(context: RequestContext, body: models.NewStudy) -> Response:
    """Create a study: a set, a policy, and the range of losses."""
    manager, caller, limits = context.manager, context.caller, context.limits
    given, request = body.model_dump(), _of_store(context)
    name = given.pop("name")
    check_path_name(name)
    for argument in ("losses", "rewards"):
        given[argument] = _ranges(given[argument])
    given |= given.pop("words")
    if given["sure"] is None:
        del given["sure"]

    def create(store: Store) -> Any:
        made: dict[str, Any] = {"present": of_study, "request": request, "by": caller.id}
        return bounded_verbs.create(limits, store, name, **made, **given)

    return JSONResponse(await manager.create(name, caller, create), status_code=201)


async def get_study(context: StudyContext) -> Response:
    """Return a study: its set, its policy, its arms, and how many plays it has."""
    return await context.read_with_etag(of_study)


async def delete_study(context: StudyContext) -> Response:
    """Delete a study with all its entries. This cannot be undone."""
    await context.manager.delete(context.study, context.caller, _of_store(context))
    return Response(status_code=204)


async def rename_study(context: StudyContext, body: models.NewName) -> Response:
    """Give a study a new name. Its journal and its API keys stay as they are."""
    await context.manager.rename(context.study, context.caller, body.name, _of_store(context))
    return JSONResponse({"name": body.name})


async def copy_study(context: StudyContext, body: models.NewName) -> Response:
    """Copy a study, with all its entries, to a new name."""
    entries = await context.manager.copy(
        context.study, context.caller, body.name, _of_store(context)
    )
    return JSONResponse({"name": body.name, "entries": entries}, status_code=201)


# ------------------------------------------------------------ plays


async def ask(context: StudyContext, body: models.Ask | None = None) -> Response:
    """Choose the next play. The same request with the same key returns the same play."""
    body, limits = body or models.Ask(), context.limits
    given = await _constraints(context, body)
    given |= {"key": body.key, "time_limit": body.time_limit, "at": _time(body.at)}
    given |= {"baseline": body.baseline, "replace": body.replace}
    if body.ahead is not None:
        given["ahead"] = [
            await context.build_actions(one, f"ahead[{k}]") for k, one in enumerate(body.ahead)
        ]
    return await context.write(
        lambda study: bounded_verbs.ask(limits, study, **given), wire.of_play, body.key
    )


async def tell(
    context: StudyContext, play: str, query: models.PlayQuery, body: models.Tell
) -> Response:
    """Report the losses of a play. The same report again changes nothing."""
    return await _write_play(context, Study.tell, play, query, body, wire.of_receipt)


async def close(
    context: StudyContext, play: str, query: models.PlayQuery, body: models.End | None = None
) -> Response:
    """Learn from the losses reported so far for a play, when no more will be reported."""
    return await _write_play(context, Study.close, play, query, body, wire.of_receipt)


async def cancel(
    context: StudyContext, play: str, query: models.PlayQuery, body: models.End | None = None
) -> Response:
    """Discard a play that was not carried out, without learning from it."""
    return await _write_play(context, Study.cancel, play, query, body)


async def correct(
    context: StudyContext, play: str, query: models.PlayQuery, body: models.Correct
) -> Response:
    """Replace the losses of a play, or of the external plan with this key, by the right ones."""
    return await _write_play(context, Study.correct, play, query, body, wire.of_receipt)


async def retract(
    context: StudyContext, play: str, query: models.PlayQuery, body: models.End | None = None
) -> Response:
    """Withdraw the losses of a play, which is then pending again, or of an external plan."""
    return await _write_play(context, Study.retract, play, query, body)


async def expire(context: StudyContext, body: models.Expire) -> Response:
    """End the pending plays that are older than a given age."""
    return await _write(context, Study.expire, _arguments(body), lambda ids: {"plays": ids})


async def forget(context: StudyContext, body: models.Forget) -> Response:
    """Forget the losses of an arm, or of all arms, that were reported before a round."""
    given = _arguments(body) | {"before": _round("before", body.before)}
    return await _write(context, Study.forget, given, Remaining._asdict)


async def keep(context: StudyContext, body: models.Keep) -> Response:
    """Let all losses of an arm since a round count again, also those that were forgotten."""
    given = _arguments(body) | {"since": _round("since", body.since)}
    return await _write(context, Study.keep, given, Remaining._asdict)


async def learn(context: StudyContext, body: models.Learn) -> Response:
    """Learn from an external plan and its losses."""
    given = _arguments(body)
    given["actions"] = await context.build_actions(body.actions)
    verb = partial(bounded_verbs.learn, context.limits)
    return await _write(context, verb, given, wire.of_receipt)


async def learn_table(context: StudyContext, body: models.Table) -> Response:
    """Learn from logged data: one entry of each list for each unit."""
    table, limits = wire.to_logged_table(body.model_dump()), context.limits
    given = {name: getattr(body, name) for name in ("skip_bad", "day_first", "key")}
    given["at"] = _time(body.at)
    return await context.write(
        lambda study: bounded_verbs.learn_table(limits, study, *table, **given),
        wire.of_receipt,
        body.key,
    )


async def check_table(context: StudyContext, body: models.TableRows) -> Response:
    """Return what would be learned from logged data, and the problems of the rows."""
    table, limits = wire.to_logged_table(body.model_dump()), context.limits
    return await context.read(
        lambda study: wire.of_table_check(
            bounded_verbs.check_table(limits, study, *table, day_first=body.day_first)
        )
    )


async def describe(context: StudyContext, body: models.Describe) -> Response:
    """Keep features of arms. Values that an arm had before are replaced."""
    return await _write(context, partial(bounded_verbs.describe, context.limits), _arguments(body))


async def set_words(context: StudyContext, body: models.SetWords) -> Response:
    """Set the words in which plans and costs are shown; others stay as they are."""
    return await _write(context, Study.set_words, _arguments(body))


async def set_compare(context: StudyContext, body: models.SetCompare) -> Response:
    """Set the rule that plays are compared with, which GET returns as `compare`; null for none."""
    verb = partial(bounded_verbs.set_compare, context.limits)
    return await _write(context, verb, _arguments(body))


async def promise(context: StudyContext, body: models.NewPromise) -> Response:
    """Promise what the plays from now on use in all, at most or at least."""
    return await _write(context, partial(bounded_verbs.promise, context.limits), _arguments(body))


async def release(context: StudyContext, body: models.Release) -> Response:
    """End a promise by its name."""
    return await _write(context, Study.release, _arguments(body))


# ------------------------------------------------------------ queries


async def list_pending(context: StudyContext, query: models.PageQuery) -> Response:
    """Return the plays without a final report, oldest first."""
    last = paging.from_cursor(query.cursor, 0)  # an id: plays may end between two pages
    limit, size = query.limit, context.limits.page

    def act(study: Study) -> Any:
        plays = ((play.id, wire.of_play(play)) for play in study.pending_after(last))
        return paging.EncodedPage(plays, limit, size)

    return await context.read_with_etag(act)


async def list_plays(context: StudyContext, query: models.PlaysQuery) -> Response:
    """Return all plays with their results, oldest first; with plans and losses if requested."""
    first, limit, size = paging.from_cursor(query.cursor, 0), query.limit, context.limits.page

    def act(journal: Journal) -> Any:
        if query.external:
            days = play_history.external_days(journal)
            after = first + limit if first + limit < len(days) else None
            return paging.page(wire.of_table(days[first : first + limit]), after)
        if query.plans:
            found = play_history.played_plans(journal, first, limit + 1)
            rows = ((number + 1, wire.of_played_plan(played)) for number, played in found)
            return paging.EncodedPage(rows, limit, size)
        table, after = play_history.table_page(journal, first, limit)
        return paging.page(wire.of_table(table), after)

    return await context.read_journal(act)


async def get_play(context: StudyContext, play: str, query: models.PlayQuery) -> Response:
    """Return one play with its plan, its results, and the losses that were told of it."""

    def act(journal: Journal) -> Any:
        about = _named(play, query, lambda one: play_history.about(journal, one))
        return wire.of_played_plan(play_history.play_with_plan(journal, about))

    return await context.read_journal(act)


async def why(context: StudyContext, play: str, query: models.PlayQuery) -> Response:
    """Return how a pending play differs from the best plan by present beliefs, and what for."""
    limits = context.limits
    return await context.read(
        lambda study: wire.of_why(
            _named(play, query, lambda one: bounded_verbs.why(limits, study, one))
        )
    )


async def list_arms(context: StudyContext, query: models.ArmsQuery) -> Response:
    """Return the statistics of all arms: units seen, mean with interval, time last seen, share."""
    return await context.read_with_etag(lambda study: wire.of_beliefs(study.arms(query.level)))


async def compare_arms(context: StudyContext, body: models.CompareArms | None = None) -> Response:
    """Return the statistics of all arms at given features; those of the last play by default."""
    given = (body or models.CompareArms()).model_dump()
    return await context.read(lambda study: wire.of_beliefs(bounded_verbs.arms(study, **given)))


async def list_effects(context: StudyContext, query: models.EffectsQuery) -> Response:
    """Return what the features do to the loss of a unit, or what arms have for themselves."""
    return await context.read_with_etag(
        lambda study: wire.of_beliefs(study.effects(query.level, query.by))
    )


async def get_allowance(context: StudyContext) -> Response:
    """Return how much of the allowance against the baseline is left, by what is believed now."""
    return await context.read_with_etag(lambda study: study.allowance()._asdict())


async def list_promises(context: StudyContext) -> Response:
    """Return how every promise stands: used, expected, its price, and whether it holds."""
    return await context.read_with_etag(
        lambda study: {"items": wire.of_promises(study.promise_reports())}
    )


async def list_drift(context: StudyContext, query: models.DriftQuery) -> Response:
    """Return the arms whose recent losses differ from their earlier losses."""
    return await context.read_with_etag(
        lambda study: {"items": wire.of_table(study.drift(query.level))}
    )


async def best(context: StudyContext, body: models.Best | None = None) -> Response:
    """Return the best plan by the current estimates, without exploration; it is not a play."""
    given, limits = await _constraints(context, body or models.Best()), context.limits
    return await context.read(
        lambda study: wire.of_plan(bounded_verbs.best(limits, study, **given))
    )


async def expect(context: StudyContext, body: models.Expect) -> Response:
    """Return the expected loss of a plan, with an interval."""
    given, limits = await _constraints(context, body), context.limits
    given |= {"plan": body.plan, "level": body.level}
    return await context.read(
        lambda study: wire.of_estimate(bounded_verbs.expect(limits, study, **given))
    )


async def saved(context: StudyContext, body: models.Compare | None = None) -> Response:
    """Return what the plays saved against a rule on the same days, with an interval."""
    given, limits = (body or models.Compare()).model_dump(), context.limits
    learning = given.pop("learning")

    def act(study: Study) -> Any:
        if learning:
            return wire.of_saved(bounded_verbs.cost_of_learning(study, **given))
        return wire.of_saved(bounded_verbs.saved(limits, study, **given))

    return JSONResponse(await context.manager.saved(context.study, context.caller, act))


# ------------------------------------------------------------ journal


async def list_entries(context: StudyContext, query: models.EntriesQuery) -> Response:
    """Return the entries of the journal, oldest first, as an export has them."""
    first = paging.from_cursor(query.cursor, query.start)
    limit, size = query.limit, context.limits.page

    def act(journal: Journal) -> Any:
        last, found = journal.head().number, journal.entries(first)
        rows = ((entry.number + 1, of_entry(entry, last)) for entry in found)
        return paging.EncodedPage(rows, limit, size)

    return await context.read_journal(act)


async def export(context: StudyContext, query: models.ExportQuery) -> Response:
    """Return a file with the plans of all plays, expected and actual, for a spreadsheet."""
    content = await context.manager.export(context.study, context.caller, query.format, query.wide)
    return file_response(context.study, query.format, content)


def file_response(study: str, format: str, content: bytes) -> Response:
    """Return a response that a browser saves as a file."""
    name = quote(f"{study}.{format}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(content, 200, headers, FILES[format])


async def verify(context: StudyContext) -> Response:
    """Replay the whole journal, and compare every play and the state, bit for bit."""
    found = await context.manager.verify(context.study, context.caller)
    return JSONResponse({**found._asdict(), "ok": found.ok})


async def watch(context: StudyContext) -> Response:
    """Watch a study: server-sent events."""
    return await events.stream(context.manager, context.study, token_of(context.request))


# ------------------------------------------------------------ the table of operations

NUMBER = {"type": "string", "pattern": "^[0-9]+$"}
EVENT = {
    "type": "object",
    "properties": {"id": NUMBER, "event": {"const": "changed"}, "data": NUMBER},
    "required": ["id", "event", "data"],
}
EVENTS: Mapping[str, Any] = {
    "200": {
        "description": "An event named `changed` for every change; its data is the number of the "
        "last entry.",
        "content": {"text/event-stream": {"schema": EVENT}},
    }
}
FILES = {
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
}
BINARY = {"type": "string", "format": "binary"}
EXPORTED: Mapping[str, Any] = {
    "200": {
        "description": "The file.",
        "content": {kind.partition(";")[0]: {"schema": BINARY} for kind in FILES.values()},
    }
}
_writing = partial(Operation, idempotency_key=True)
# Routes are tried in this order, so the most frequent operations come first.
OPERATIONS = (
    _writing("POST", f"{STUDY}/ask", ask, PLAYS, models.Play),
    _writing("POST", f"{PLAY}/tell", tell, PLAYS, models.Receipt),
    Operation("GET", "/v1/key", get_key, KEYS, models.Key),
    Operation("GET", STUDIES, list_studies, MANAGE, models.Studies),
    _writing("POST", STUDIES, create_study, MANAGE, models.Study, status=201),
    Operation("GET", STUDY, get_study, MANAGE, models.Study, etag=True),
    _writing("DELETE", STUDY, delete_study, MANAGE, status=204),
    _writing("POST", f"{STUDY}/rename", rename_study, MANAGE, models.StudyName),
    _writing("POST", f"{STUDY}/copy", copy_study, MANAGE, models.Copied, status=201),
    _writing("POST", f"{PLAY}/close", close, PLAYS, models.Receipt),
    _writing("POST", f"{PLAY}/cancel", cancel, PLAYS, status=204),
    _writing("POST", f"{PLAY}/correct", correct, PLAYS, models.Receipt),
    _writing("POST", f"{PLAY}/retract", retract, PLAYS, status=204),
    _writing("POST", f"{STUDY}/expire", expire, PLAYS, models.Ended),
    _writing("POST", f"{STUDY}/forget", forget, PLAYS, models.Remaining),
    _writing("POST", f"{STUDY}/keep", keep, PLAYS, models.Remaining),
    _writing("POST", f"{STUDY}/learn", learn, PLAYS, models.Receipt),
    _writing("POST", f"{STUDY}/learn-table", learn_table, PLAYS, models.Receipt),
    Operation("POST", f"{STUDY}/check-table", check_table, QUERIES, models.TableCheck),
    _writing("PUT", f"{STUDY}/arms", describe, PLAYS, status=204),
    _writing("PUT", f"{STUDY}/words", set_words, MANAGE, status=204),
    _writing("PUT", f"{STUDY}/compare", set_compare, MANAGE, status=204),
    _writing("POST", f"{STUDY}/promises", promise, MANAGE, status=204),
    _writing("POST", f"{STUDY}/release", release, MANAGE, status=204),
    Operation("GET", f"{STUDY}/pending", list_pending, QUERIES, models.Pending, etag=True),
    Operation("GET", f"{STUDY}/plays", list_plays, QUERIES, models.Plays, etag=True),
    Operation("GET", PLAY, get_play, QUERIES, models.OnePlay, etag=True),
    Operation("GET", f"{PLAY}/why", why, QUERIES, models.Why),
    Operation("GET", f"{STUDY}/arms", list_arms, QUERIES, models.Arms, etag=True),
    Operation("POST", f"{STUDY}/arms", compare_arms, QUERIES, models.Arms),
    Operation("GET", f"{STUDY}/effects", list_effects, QUERIES, models.Effects, etag=True),
    Operation("GET", f"{STUDY}/allowance", get_allowance, QUERIES, models.Allowance, etag=True),
    Operation("GET", f"{STUDY}/promises", list_promises, QUERIES, models.Promised, etag=True),
    Operation("GET", f"{STUDY}/drift", list_drift, QUERIES, models.Drifts, etag=True),
    Operation("POST", f"{STUDY}/best", best, QUERIES, models.Plan),
    Operation("POST", f"{STUDY}/expect", expect, QUERIES, models.Estimate),
    Operation("POST", f"{STUDY}/saved", saved, QUERIES, models.Saved),
    Operation("GET", f"{STUDY}/entries", list_entries, JOURNAL, models.Entries, etag=True),
    Operation("GET", f"{STUDY}/export", export, QUERIES, responses=EXPORTED),
    Operation("POST", f"{STUDY}/verify", verify, JOURNAL, models.Verified),
    Operation("GET", f"{STUDY}/events", watch, JOURNAL, responses=EVENTS),
)


# ------------------------------------------------------------ inside


def of_study(study: Study) -> dict[str, Any]:
    """Return a study as plain data."""
    head, rule = study.head, study.compare
    limit = study.baseline
    return {
        "name": study.name,
        "summary": study.summary,
        "loss_range": study.loss_range,
        "words": study.words._asdict(),
        "actions": wire.to_plain("actions", study.actions),
        "policy": wire.to_plain("policy", study.policy),
        "features": wire.to_plain("features", study.features),
        "compare": None if rule is None else wire.to_plain("compare", rule),
        "baseline": None if limit is None else _plain_baseline(limit.baseline),
        **{name: getattr(limit, name, None) for name in ("allowance", "sure", "per")},
        "change": study.change,
        "promised": list(study.promised),
        "arms": list(study.actions.names),
        "asked": study.asked,
        "pending": study.open_plays,
        "clipped": study.clipped,
        "entries": head.number + 1,
        "digest": head.digest.hex(),
    }


def _plain_baseline(baseline: Any) -> Any:
    return baseline if isinstance(baseline, str) else wire.to_plain("baseline", baseline)


def _of_store(context: RequestContext) -> Request | None:
    """Return a request that creates or deletes a study; the store knows it by its verb too."""
    found = context.repeatable
    return None if found is None else found._replace(id=f"{context.verb}:{found.id}")


async def _constraints(context: RequestContext, body: models.Constraints) -> dict[str, Any]:
    """Return the arguments of ``ask``, ``best`` and ``expect`` that restrict the set."""
    return {
        "actions": await context.build_actions(body.actions),
        "at_most": body.at_most,
        "exclude": tuple(body.exclude),
        "fixed": body.fixed,
        "features": body.features,
    }


def _arguments(body: models.Body) -> dict[str, Any]:
    """Return the fields of a body that has a time, as arguments of a verb."""
    given = body.model_dump()
    return given | {"at": _time(given["at"])}


async def _write(
    context: StudyContext,
    verb: Callable[..., Any],
    given: dict[str, Any],
    present: Callable[[Any], Any] | None = None,
) -> Response:
    """Respond with what ``present`` makes of the result of a verb, if given."""
    return await context.write(lambda study: verb(study, **given), present, given.get("key"))


async def _write_play(
    context: StudyContext,
    verb: Callable[..., Any],
    play: str,
    query: models.PlayQuery,
    body: models.Body | None,
    present: Callable[[Any], Any] | None = None,
) -> Response:
    """Respond as ``_write``, for a verb of the play in the path."""

    def act(study: Study, **given: Any) -> Any:
        return _named(play, query, lambda one: verb(study, one, **given))

    return await _write(context, act, {} if body is None else _arguments(body), present)


def _named(play: str, query: models.PlayQuery, act: Callable[[int | str], T]) -> T:
    return act(play) if query.by == "key" else of_text(play, act)


def _ranges(given: Any) -> Any:
    """Return the range of losses, as pairs."""
    if isinstance(given, dict):
        return {arm: tuple(pair) for arm, pair in given.items()}
    return None if given is None else tuple(given)


def _time(at: float | str | None) -> datetime | float | None:
    return _datetime("at", at) if isinstance(at, str) else at


def _round(argument: str, given: int | str | None) -> datetime | int | None:
    return _datetime(argument, given) if isinstance(given, str) else given


def _datetime(argument: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        expected, hint = "a time with a time zone", "Use 2026-11-15T08:00:00Z, or omit it."
        raise InvalidInput(argument, expected, repr(text)[:60], hint)
    return found
