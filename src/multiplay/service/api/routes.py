"""The HTTP interface: the verbs of a study, one route for each."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import JSONResponse, Response

from multiplay.errors import InvalidInput
from multiplay.service.api import events, models, paging
from multiplay.service.api.context import Reading, StudyVisit, Visit, Writing
from multiplay.service.api.openapi import ANSWERS, NOT_MODIFIED
from multiplay.service.api.strict import StrictRoute, token_of
from multiplay.service.studies import bounded_verbs
from multiplay.storage import Journal, Store
from multiplay.studies import Study, play_history, wire
from multiplay.studies.export import of_entry

Id = Annotated[int, Path(ge=0, le=models.MOST, description="The id of the play.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`next` of the page before; the first if none.")
]
Rows = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
Number = Annotated[
    int, Query(ge=0, le=models.MOST, description="Of the first entry, without a cursor.")
]
Level = Annotated[float, Query(gt=0, lt=1, description="Of the intervals.")]

router = APIRouter(prefix="/v1", route_class=StrictRoute, responses=ANSWERS)
STUDY, PLAY = "/studies/{study}", "/studies/{study}/plays/{play}"
DAILY: list[str | Enum] = ["Every day"]
KNOWN: list[str | Enum] = ["What is known"]
JOURNAL: list[str | Enum] = ["The journal"]


# ------------------------------------------------------------ keys and studies


@router.get("/key", response_model=models.Key, tags=["Keys"])
async def key(request: Request) -> Response:
    """Say which key this is, and what it may do."""
    visit = Visit(request)
    caller = await visit.office.caller(token_of(visit.request))
    return JSONResponse({name: getattr(caller, name) for name in ("id", "name", "study", "can")})


@router.get("/studies", response_model=models.Studies, tags=["Studies"])
async def list_studies(request: Request, cursor: Cursor = None, limit: Rows = 100) -> Response:
    """List the studies."""
    visit = Visit(request)
    after = paging.from_cursor(cursor, "")
    names = [name for name in await visit.office.names(visit.caller) if name > after]
    rest = names[limit - 1] if len(names) > limit else None
    return JSONResponse(paging.page([{"name": name} for name in names[:limit]], rest))


@router.post("/studies", status_code=201, response_model=models.Study, tags=["Studies"])
async def create_study(request: Request, body: models.NewStudy) -> Response:
    """Begin a study: what may be played, how to learn, and what a unit can cost."""
    visit = Visit(request)
    office, caller, limits = visit.office, visit.caller, visit.limits
    given = body.model_dump()
    name, known = given.pop("name"), given.pop("key") or _request_key(visit)
    if name in (".", ".."):  # not a name that a path can have
        raise InvalidInput("name", "a name", repr(name), "Give a short name of letters.")

    for unit in ("losses", "rewards"):
        given[unit] = _ranges(given[unit])

    def made(store: Store) -> Study:
        return bounded_verbs.create(limits, store, name, key=known, by=caller.id, **given)

    await office.create(name, caller, made)
    return JSONResponse(await office.read(name, caller, of_study), status_code=201)


@router.get(STUDY, response_model=models.Study, tags=["Studies"], responses=NOT_MODIFIED)
async def show_study(request: Request) -> Response:
    """Show a study: its set, its policy, its arms, and how much was done."""
    visit = Reading(request)
    return await visit.read(of_study)


@router.delete(STUDY, status_code=204, tags=["Studies"])
async def delete_study(request: Request) -> Response:
    """Remove a study with all that it knows, for good."""
    visit = StudyVisit(request)
    await visit.office.delete(visit.study, visit.caller)
    return Response(status_code=204)


# ------------------------------------------------------------ plays


@router.post(f"{STUDY}/ask", response_model=models.Play, tags=DAILY)
async def ask(request: Request, body: models.Ask | None = None) -> Response:
    """Choose the next play. The same key gives the same play for ever."""
    visit = Writing(request)
    body, limits = body or models.Ask(), visit.limits
    given = await _limited(visit, body)
    given |= {"key": body.key, "time_limit": body.time_limit, "at": _time(body.at)}
    return await visit.write(lambda study: bounded_verbs.ask(limits, study, **given), wire.of_play)


@router.post(f"{PLAY}/tell", response_model=models.Receipt, tags=DAILY)
async def tell(request: Request, play: Id, body: models.Tell) -> Response:
    """Learn from the losses of a play. The same report again changes nothing."""
    visit = Writing(request)
    given = body.model_dump() | {"at": _time(body.at)}
    return await visit.write(lambda study: study.tell(play, **given), wire.of_receipt)


@router.post(f"{PLAY}/close", response_model=models.Receipt, tags=DAILY)
async def close(request: Request, play: Id, body: models.End | None = None) -> Response:
    """Learn from what was told of a play so far: the rest will not come."""
    visit = Writing(request)
    given = _end(body)
    return await visit.write(lambda study: study.close(play, **given), wire.of_receipt)


@router.post(f"{PLAY}/cancel", status_code=204, tags=DAILY)
async def cancel(request: Request, play: Id, body: models.End | None = None) -> Response:
    """Forget a play that was never driven: nothing is learned from it."""
    visit = Writing(request)
    given = _end(body)
    return await visit.write(lambda study: study.cancel(play, **given))


@router.post(f"{STUDY}/expire", response_model=models.Ended, tags=DAILY)
async def expire(request: Request, body: models.Expire) -> Response:
    """End the plays that were asked longer ago than this."""
    visit = Writing(request)
    given = body.model_dump() | {"at": _time(body.at)}
    return await visit.write(lambda study: study.expire(**given), lambda ids: {"plays": ids})


@router.post(f"{STUDY}/learn", response_model=models.Receipt, tags=DAILY)
async def learn(request: Request, body: models.Learn) -> Response:
    """Learn from a plan that somebody else chose."""
    visit = Writing(request)
    given, limits = body.model_dump() | {"at": _time(body.at)}, visit.limits
    given["actions"] = await visit.actions(body.actions)
    return await visit.write(
        lambda study: bounded_verbs.learn(limits, study, **given), wire.of_receipt
    )


@router.post(f"{STUDY}/learn-table", response_model=models.Receipt, tags=DAILY)
async def learn_table(request: Request, body: models.Table) -> Response:
    """Learn from years of history: one entry of each list for each unit."""
    visit = Writing(request)
    columns = {name: getattr(body, name) for name in ("arm", "round", "loss")}
    if len({len(column) for column in columns.values()}) > 1:
        got = ", ".join(f"{len(column)} of {name}" for name, column in columns.items())
        raise InvalidInput("table", "three lists of the same length", got, "Check the lists.")
    table = wire.to_logged_table(columns)
    return await visit.write(
        lambda study: bounded_verbs.learn_table(study, table, body.key), wire.of_receipt
    )


# ------------------------------------------------------------ what is known


@router.get(f"{STUDY}/pending", response_model=models.Pending, tags=KNOWN, responses=NOT_MODIFIED)
async def pending(request: Request, cursor: Cursor = None, limit: Rows = 100) -> Response:
    """Return the plays that wait for their losses, oldest first."""
    visit = Reading(request)
    last = paging.from_cursor(cursor, 0)  # an id: others may end plays between two pages

    def act(study: Study) -> Any:
        found = [play for play in study.pending() if play.id > last]
        after = found[limit - 1].id if len(found) > limit else None
        return paging.page([wire.of_play(play) for play in found[:limit]], after)

    return await visit.read(act)


@router.get(f"{STUDY}/plays", response_model=models.Plays, tags=KNOWN, responses=NOT_MODIFIED)
async def plays(request: Request, cursor: Cursor = None, limit: Rows = 100) -> Response:
    """Return all plays, oldest first: what was asked, and what became of it."""
    visit = Reading(request)
    first = paging.from_cursor(cursor, 0)

    def act(journal: Journal) -> Any:
        table, after = play_history.page(journal, first, limit)
        return paging.page(wire.of_table(table), after)

    return await visit.look(act)


@router.get(PLAY, response_model=models.OnePlay, tags=KNOWN, responses=NOT_MODIFIED)
async def play(request: Request, play: Id) -> Response:
    """Return one play: what was asked, and what became of it."""
    visit = Reading(request)

    def act(journal: Journal) -> Any:
        pair = play_history.pair_of(play_history.about(journal, play))
        (row,) = wire.of_table(play_history.table_of([pair]))
        return {**row, "plan": pair[0].record.header["plan"]}

    return await visit.look(act)


@router.get(f"{STUDY}/arms", response_model=models.Arms, tags=KNOWN, responses=NOT_MODIFIED)
async def arms(request: Request, level: Level = 0.95) -> Response:
    """Return all arms: units seen, the mean with an interval, when last seen, share of plans."""
    visit = Reading(request)
    return await visit.read(lambda study: {"items": wire.of_table(study.arms(level))})


@router.get(f"{STUDY}/drift", response_model=models.Drifts, tags=KNOWN, responses=NOT_MODIFIED)
async def drift(request: Request, level: Level = 0.05) -> Response:
    """Return the arms whose recent losses do not fit the old ones."""
    visit = Reading(request)
    return await visit.read(lambda study: {"items": wire.of_table(study.drift(level))})


@router.post(f"{STUDY}/best", response_model=models.Plan, tags=KNOWN)
async def best(request: Request, body: models.Best | None = None) -> Response:
    """Return the best plan by what is known now, without exploration; it is no play."""
    visit = StudyVisit(request)
    given, limits = await _limited(visit, body or models.Best()), visit.limits
    return await _read(
        visit, lambda study: wire.of_plan(bounded_verbs.best(limits, study, **given))
    )


@router.post(f"{STUDY}/expect", response_model=models.Estimate, tags=KNOWN)
async def expect(request: Request, body: models.Expect) -> Response:
    """Say what a plan of yours should cost, with an interval."""
    visit = StudyVisit(request)
    given, limits = body.model_dump() | {"actions": await visit.actions(body.actions)}, visit.limits
    return await _read(
        visit, lambda study: wire.of_estimate(bounded_verbs.expect(limits, study, **given))
    )


# ------------------------------------------------------------ the journal


@router.get(f"{STUDY}/entries", response_model=models.Entries, tags=JOURNAL, responses=NOT_MODIFIED)
async def entries(
    request: Request, start: Number = 0, cursor: Cursor = None, limit: Rows = 100
) -> Response:
    """Return the entries of the journal, oldest first: the same as an export has."""
    visit = Reading(request)
    first = paging.from_cursor(cursor, start)

    def act(journal: Journal) -> Any:
        last = journal.head().number
        found = [of_entry(entry, last) for entry in islice(journal.entries(first), limit)]
        return paging.page(found, first + limit if first + limit <= last else None)

    return await visit.look(act)


@router.post(f"{STUDY}/verify", response_model=models.Verified, tags=JOURNAL)
async def verify(request: Request) -> Response:
    """Replay the whole journal, and compare every play and the state, bit for bit."""
    visit = StudyVisit(request)
    found = await visit.office.verify(visit.study, visit.caller)
    return JSONResponse({**found._asdict(), "ok": found.ok})


@router.get(
    f"{STUDY}/events",
    tags=JOURNAL,
    response_class=Response,
    responses={
        200: {
            "description": "An event called `changed` for every change; its data is the number of "
            "the last entry.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def watch(request: Request) -> Response:
    """Watch a study: server-sent events."""
    visit = StudyVisit(request)
    return await events.stream(visit.office, visit.study, token_of(visit.request))


# ------------------------------------------------------------ inside


def of_study(study: Study) -> dict[str, Any]:
    """Return what a study is."""
    head = study.head
    return {
        "name": study.name,
        "summary": study.summary,
        "unit": study.unit,
        "actions": wire.to_plain("actions", study.actions),
        "policy": wire.to_plain("policy", study.policy),
        "arms": list(study.actions.names),
        "asked": study.asked,
        "pending": study.open_plays,
        "clipped": study.clipped,
        "entries": head.number + 1,
        "digest": head.digest.hex(),
    }


async def _read(visit: StudyVisit, act: Any) -> Response:
    return JSONResponse(await visit.office.read(visit.study, visit.caller, act))


def _request_key(visit: Visit) -> str | None:
    """Return the key of a study that is made by a request that may come twice."""
    again = visit.again
    return None if again is None else visit.caller.request(again)[:200]


async def _limited(visit: Visit, body: models.Limited) -> dict[str, Any]:
    """Return what ``ask`` and ``best`` are given of a set and its limits."""
    return {
        "actions": await visit.actions(body.actions),
        "at_most": body.at_most,
        "exclude": tuple(body.exclude),
        "fixed": body.fixed,
    }


def _end(body: models.End | None) -> dict[str, Any]:
    """Return what ``close`` and ``cancel`` are given."""
    return {} if body is None else {"key": body.key, "at": _time(body.at)}


def _ranges(given: Any) -> Any:
    """Return what a unit can cost, as pairs."""
    if isinstance(given, dict):
        return {arm: tuple(pair) for arm, pair in given.items()}
    return None if given is None else tuple(given)


def _time(at: float | str | None) -> datetime | float | None:
    if not isinstance(at, str):
        return at
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        expected, hint = "a time with its zone", "Write 2026-11-15T08:00:00Z, or leave it out."
        raise InvalidInput("at", expected, repr(at)[:60], hint)
    return found
