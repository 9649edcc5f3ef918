"""Operations of the HTTP API: the verbs of a study, one handler for each, and their table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from multiplay._support.words import Words
from multiplay.learner.plays import of_text
from multiplay.learner.reports import Reports
from multiplay.service.api import events, models, paging
from multiplay.service.api.bodies import annotations_of
from multiplay.service.api.context import RequestContext, StudyContext
from multiplay.service.api.many import of_many
from multiplay.service.api.routing import Operation, token_of
from multiplay.service.studies import bounded_verbs
from multiplay.service.studies.limits import check_path_name
from multiplay.storage import Journal, Store
from multiplay.studies import Study, play_history, results, wire
from multiplay.studies.commands.base import (
    OF_PLAY,
    QUERIES,
    AnyCommand,
    C,
    Command,
    Query,
)
from multiplay.studies.commands.base import (
    STUDIES as MANAGE,
)
from multiplay.studies.commands.constraints import AddConstraint, Constraints, EndConstraint
from multiplay.studies.commands.corrections import Correct, Retract
from multiplay.studies.commands.counting import Forget, Unforget
from multiplay.studies.commands.external import (
    CheckTable,
    Imports,
    Learn,
    LearnTable,
    SetArmFeatures,
)
from multiplay.studies.commands.notes import WriteNote
from multiplay.studies.commands.plays import Ask, Cancel, Close, Expire, Tell
from multiplay.studies.commands.queries import (
    Arms,
    Best,
    CompareArms,
    Drift,
    Effects,
    EstimateSavings,
    Expect,
    Explain,
)
from multiplay.studies.commands.settings import SetRange, SetVersus, SetWords
from multiplay.studies.commands.values import zoned_time
from multiplay.studies.entry_codec import Request
from multiplay.studies.export import of_entry

T = TypeVar("T")

STUDIES, STUDY = "/v1/studies", "/v1/studies/{study}"
PLAY = f"{STUDY}/plays/{{play}}"
KEYS, JOURNAL = "Keys", "Journal"


# ------------------------------------------------------------ commands and queries


def of_command(command: type[Command[Any]], answer: type[BaseModel] | None = None) -> Operation:
    """Return the operation of a verb that changes a study; ``answer`` is the schema of its result.

    Without one it has no result.
    """

    async def handle(
        context: StudyContext,
        play: str | None = None,
        query: models.PlayQuery | None = None,
        body: BaseModel | None = None,
    ) -> Response:
        given, limits = {} if body is None else body.model_dump(), context.limits
        key, at = given.pop("key", None), _time(given.pop("at", None))
        make = await context.build(command, given, **_path(play))

        def act(study: Study) -> Any:
            return _named(make(), query, lambda one: bounded_verbs.do(limits, study, one, key, at))

        return await context.write(act, command.present if answer else None, key)

    return _operation(command, handle, answer, idempotency_key=True)


def of_query(command: type[Query[Any]], answer: type[BaseModel]) -> Operation:
    """Return the operation of a verb that reads a study; ``answer`` is the schema of its result."""
    etag = command.http.method == "GET" and not command.http.path.startswith(OF_PLAY)

    async def handle(
        context: StudyContext,
        play: str | None = None,
        query: BaseModel | None = None,
        body: BaseModel | None = None,
    ) -> Response:
        content, limits = (body if play or query is None else query), context.limits
        given = {} if content is None else content.model_dump()
        make = await context.build(command, given, **_path(play))

        def act(study: Study) -> Any:
            found = _named(make(), query, lambda one: bounded_verbs.read(limits, study, one))
            return command.present(found)

        if command is EstimateSavings:
            return JSONResponse(await context.manager.saved(context.study, context.caller, act))
        return await (context.read_with_etag if etag else context.read)(act)

    return _operation(command, handle, answer, etag=etag)


def _operation(
    command: type[AnyCommand],
    handle: Callable[..., Awaitable[Response]],
    answer: type[BaseModel] | None,
    **options: Any,
) -> Operation:
    """Return the operation of a verb, whose parameters are those of the command."""
    http = command.http
    handle.__name__, handle.__doc__ = command.verb, command.__doc__
    handle.__annotations__ = annotations_of(command)
    status = 200 if answer else 204
    path = f"{STUDY}/{http.path}"
    return Operation(http.method, path, handle, http.tag, answer, status=status, **options)


def _path(play: str | None) -> dict[str, str]:
    """Return the arguments in the path of a request."""
    return {} if play is None else {"play": play}


def _named(made: C, query: Any, act: Callable[[C], T]) -> T:
    """Call a function with a command whose play is named by a text: an id, or a key."""
    play = getattr(made, "play", None)
    if play is None or query.by == "key":
        return act(made)
    return of_text(play, lambda one: act(made.of_play(one)))


# ------------------------------------------------------------ keys and studies


async def get_key(context: RequestContext) -> Response:
    """Return the key of this request, and its permission."""
    caller = await context.manager.caller(token_of(context.request))
    return JSONResponse({name: getattr(caller, name) for name in ("id", "name", "study", "can")})


async def list_studies(context: RequestContext, query: models.StudiesQuery) -> Response:
    """List the studies."""
    after = paging.from_cursor(query.cursor, "")
    names = await context.manager.names(context.caller, query.prefix, after, query.limit + 1)
    rest = names[query.limit - 1] if len(names) > query.limit else None
    return JSONResponse(paging.page([{"name": name} for name in names[: query.limit]], rest))


async def create_study(context: RequestContext, body: models.NewStudy) -> Response:
    """Create a study: a set, a policy, and the range of losses."""
    manager, caller, limits = context.manager, context.caller, context.limits
    given, request = body.model_dump(), _of_store(context)
    name = given.pop("name")
    check_path_name(name)
    if given["like"] is not None:
        caller.check("manage")  # of all studies
    given["loss_range"] = _ranges(given["loss_range"])
    given["reports"] = Reports(**given["reports"])
    given["words"] = Words(**body.words.model_dump(exclude_none=True))

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


# ------------------------------------------------------------ queries


async def list_pending(context: StudyContext, query: models.PageQuery) -> Response:
    """Return the plays without a final report, oldest first."""
    last = paging.from_cursor(query.cursor, 0)  # an id: plays may end between two pages
    limit, size = query.limit, context.limits.page

    def act(study: Study) -> Any:
        plays = ((play.id, results.to_plain(play)) for play in study.pending_after(last))
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
        read = partial(play_history.about, journal)
        about = read(play) if query.by == "key" else of_text(play, read)
        return wire.of_played_plan(play_history.play_with_plan(journal, about))

    return await context.read_journal(act)


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
    return JSONResponse(results.to_plain(found))


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
ASK, TELL = of_command(Ask, models.Play), of_command(Tell, models.Receipt)
# Routes are tried in this order, so the most frequent operations come first.
OPERATIONS = (
    ASK,
    TELL,
    of_many("/v1/plays", ASK, "Choose the next plays of many studies."),
    of_many("/v1/reports", TELL, "Add reports to plays of many studies."),
    Operation("GET", "/v1/key", get_key, KEYS, models.Key),
    Operation("GET", STUDIES, list_studies, MANAGE, models.Studies),
    _writing("POST", STUDIES, create_study, MANAGE, models.Study, status=201),
    Operation("GET", STUDY, get_study, MANAGE, models.Study, etag=True),
    _writing("DELETE", STUDY, delete_study, MANAGE, status=204),
    _writing("POST", f"{STUDY}/rename", rename_study, MANAGE, models.StudyName),
    _writing("POST", f"{STUDY}/copy", copy_study, MANAGE, models.Copied, status=201),
    of_command(Close, models.Receipt),
    of_command(Cancel),
    of_command(Correct, models.Receipt),
    of_command(Retract),
    of_command(Expire, models.Ended),
    of_command(Forget, models.Remaining),
    of_command(Unforget, models.Remaining),
    of_command(Learn, models.Receipt),
    of_command(LearnTable, models.Receipt),
    of_query(CheckTable, models.TableCheck),
    of_command(SetArmFeatures),
    of_command(SetWords),
    of_command(SetVersus),
    of_command(SetRange),
    of_command(AddConstraint),
    of_command(EndConstraint),
    of_command(WriteNote),
    Operation("GET", f"{STUDY}/pending", list_pending, QUERIES, models.Pending, etag=True),
    Operation("GET", f"{STUDY}/plays", list_plays, QUERIES, models.Plays, etag=True),
    Operation("GET", PLAY, get_play, QUERIES, models.OnePlay, etag=True),
    of_query(Explain, models.Why),
    of_query(Arms, models.Arms),
    of_query(CompareArms, models.Arms),
    of_query(Effects, models.Effects),
    of_query(Constraints, models.ConstraintReports),
    of_query(Imports, models.Imports),
    of_query(Drift, models.Drifts),
    of_query(Best, models.Plan),
    of_query(Expect, models.Estimate),
    of_query(EstimateSavings, models.Savings),
    Operation("GET", f"{STUDY}/entries", list_entries, JOURNAL, models.Entries, etag=True),
    Operation("GET", f"{STUDY}/export", export, QUERIES, responses=EXPORTED),
    Operation("POST", f"{STUDY}/verify", verify, JOURNAL, models.Verified),
    Operation("GET", f"{STUDY}/events", watch, JOURNAL, responses=EVENTS),
)


# ------------------------------------------------------------ inside


def of_study(study: Study) -> dict[str, Any]:
    """Return a study as plain data."""
    head, rule = study.head, study.versus
    return {
        "name": study.name,
        "summary": study.summary,
        "loss_range": study.loss_range,
        "words": results.to_plain(study.words),
        "actions": wire.to_plain("actions", study.actions),
        "policy": wire.to_plain("policy", study.policy),
        "features": wire.to_plain("features", study.features),
        "versus": None if rule is None else wire.to_plain("versus", rule),
        "constraints": [*map(wire.of_constraint, study.constrained_by)],
        "promised": list(study.promised),
        "arms": list(study.actions.names),
        "asked": study.asked,
        "pending": study.open_plays,
        "clipped": study.clipped,
        "entries": head.number + 1,
        "digest": head.digest.hex(),
    }


def _of_store(context: RequestContext) -> Request | None:
    """Return a request that creates or deletes a study; the store knows it by its verb too."""
    found = context.repeatable
    return None if found is None else found._replace(id=f"{context.verb}:{found.id}")


def _ranges(given: Any) -> Any:
    """Return the range of losses, as pairs."""
    if isinstance(given, dict):
        return {arm: tuple(pair) for arm, pair in given.items()}
    return None if given is None else tuple(given)


def _time(at: float | str | None) -> datetime | float | None:
    return zoned_time("at", at) if isinstance(at, str) else at
