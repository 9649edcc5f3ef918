"""Routes of the pages, and of their forms."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import FileResponse, JSONResponse, Response

from multiplay.errors import InvalidInput, NotFound, StoreError
from multiplay.learner.plays import PendingPlay, Receipt
from multiplay.service.api import events
from multiplay.service.pages import api_reference, forms, journal_views, render, sessions, views
from multiplay.service.pages.forms import Form
from multiplay.service.pages.page_route import ALook, AStudy, Look, PageRoute, StudyLook, to
from multiplay.service.studies import bounded_verbs
from multiplay.storage import Store
from multiplay.studies import Study, play_history

PART_OF_LIST = 50  # studies on one page
PARTS = ("state", "plan", "tell", "costs", "pending", "journal", "arms")

router = APIRouter(route_class=PageRoute, include_in_schema=False)
STUDY, PLAY = "/studies/{study}", "/studies/{study}/plays/{play}"
Id = Annotated[int, Path(ge=0, lt=2**63)]
SearchText = Annotated[str, Query(max_length=200)]


# ------------------------------------------------------------ files and documents


@router.get("/static/{path:path}")
async def static(path: str) -> Response:
    """Serve a static file."""
    file = render.files().get(path)
    if file is None:
        return Response(status_code=404)
    kind, kept = render.KINDS[file.suffix], {"Cache-Control": "public, max-age=31536000, immutable"}
    return FileResponse(file, headers=kept, media_type=kind)


@router.get("/docs")
async def docs(look: ALook) -> Response:
    """Show the API reference."""
    document = look.request.app.openapi()
    server = f"{look.request.url.scheme}://{look.request.url.netloc}"
    shown = {"about": document["info"]["description"].split("\n\n"), "server": server}
    found = api_reference.operation_groups(document, server)
    return await look.page("docs.html", groups=found, openapi_url="/openapi.json", **shown)


# ------------------------------------------------------------ sessions


@router.get("/login")
async def login_page(look: ALook, next: SearchText = "/") -> Response:
    """Show the login form, or redirect where no key is needed."""
    if look.visitor.known and not look.visitor.session:
        return to("/")
    return await look.page("login.html", form=Form(), next=sessions.local_path(next))


@router.post("/login")
async def log_in(look: ALook) -> Response:
    """Start a session."""
    form = await look.form()
    token = await sessions.log_in(look.office, form.get("key"))
    target = sessions.local_path(form.get("next", "/"))
    if token is None:
        form.errors["key"] = "The API key is not valid. Check that you copied all of it."
        return await look.page("login.html", 401, form=form, next=target)
    answer, secure = to(target), look.visitor.secure
    sessions.set_cookie(answer, sessions.SESSION, token, secure, sessions.LONGEST)
    return answer


@router.get("/logout")
async def logged_in(look: ALook) -> Response:
    """Redirect from the URL of a form to its page."""
    return to("/")


@router.post("/logout")
async def log_out(look: ALook) -> Response:
    """End the session."""
    await look.form()
    token, secure = look.visitor.token, look.visitor.secure
    if token is not None:
        await look.office.with_keys(lambda keyring: sessions.log_out(keyring, token))
    answer = to("/login")
    sessions.set_cookie(answer, sessions.SESSION, "", secure, 0)
    return answer


# ------------------------------------------------------------ all studies


@router.get("/")
async def studies(look: ALook, after: SearchText = "") -> Response:
    """Show all studies."""
    names = [name for name in await look.office.names(look.caller) if name > after]
    shown = names[:PART_OF_LIST]
    cards = await asyncio.gather(*(_card(look, name) for name in shown))
    more = shown[-1] if len(names) > len(shown) else None
    return await look.page("studies.html", cards=cards, after=more)


async def _card(look: Look, name: str) -> views.StudyCard:
    try:
        card = await look.office.read(name, look.caller, views.study_card)
        return await look.office.look(name, look.caller, partial(views.with_last_cost, card))
    except InvalidInput as error:
        return views.StudyCard(name, problem=f"Cannot be shown: {error.got}. {error.hint}")
    except StoreError as error:
        return views.StudyCard(name, problem=f"Cannot be read now: {error.reason}.")


@router.get("/new")
async def new_page(look: ALook) -> Response:
    """Show the form of a new study."""
    look.caller.check("manage", look.caller.study)
    return await look.page("new.html", form=Form(), kinds=forms.KINDS, policies=forms.POLICIES)


@router.post("/new")
async def create(look: ALook) -> Response:
    """Create a study."""
    caller, form = look.caller, await look.form()
    caller.check("manage", caller.study)
    given = forms.new_study(form)
    if given is not None:
        try:
            await look.office.create(given.name, caller, partial(_create, look, given))
            return to(render.url(given.name) + "?done=created")
        except InvalidInput as error:
            form.note(look.discreet(error), *forms.NEW_FIELDS)
    shown = {"form": form, "kinds": forms.KINDS, "policies": forms.POLICIES}
    return await look.page("new.html", 422, **shown)


def _create(look: Look, given: forms.StudyInput, store: Store) -> Study:
    limits = look.office.settings.limits
    return bounded_verbs.create(
        limits,
        store,
        given.name,
        given.actions,
        given.policy,
        losses=given.losses,
        rewards=given.rewards,
        outside=given.outside,
        by=look.caller.id,
    )


# ------------------------------------------------------------ one study


@router.get(STUDY)
async def study_page(
    look: AStudy, arms: SearchText = "", all: str = "", done: str = "", play: int | None = None
) -> Response:
    """Show a study."""
    return await _study_page(look, arms, bool(all), done_text(done, play))


async def _study_page(
    look: StudyLook,
    arms: str = "",
    whole: bool = False,
    done: str = "",
    ask_form: Form | None = None,
    status: int = 200,
) -> Response:
    shown = await _content(look, arms, whole) | {"done": done, "ask_form": ask_form or Form()}
    return await look.page("study.html", status, **shown)


@router.get(STUDY + "/parts")
async def parts(look: AStudy, arms: SearchText = "", all: str = "") -> Response:
    """Return the current content of the parts of a study's page that change."""
    return await look.page("parts.html", parts=PARTS, **await _content(look, arms, bool(all)))


async def _content(look: StudyLook, arms: str, whole: bool) -> dict[str, Any]:
    """Return the content of the page of a study."""
    now = datetime.now(UTC)
    recent, lines = await look.look(
        lambda journal: (journal_views.recent_plays(journal), journal_views.last_entries(journal))
    )
    seen: views.Overview = await look.read(
        lambda study: views.overview(study, recent, now, arms, whole)
    )
    queue = await look.look(lambda journal: views.pending_rows(journal, seen.queue, now))
    partly = {row.id for row in queue.rows if row.told}
    query = f"?{look.request.url.query}" if arms or whole else ""
    return {
        "name": look.name,
        "base": look.base,
        "seen": seen,
        "queue": queue,
        "lines": await _with_key_names(look, lines),
        "query": query,
        "telling": _telling(seen.queue, partly),
        "tell_form": Form(),
        "usual": forms.usual_values(seen.actions),
        "today": f"{now:%Y-%m-%d}",
    }


def _telling(queue: list[PendingPlay], partly: set[int]) -> dict[str, Any] | None:
    """Return the play of the form for losses: the oldest pending play."""
    if not queue:
        return None
    play = queue[0]
    plan = views.reportable(play.plan)
    return {"id": play.id, "key": play.key, "plan": plan, "partly": play.id in partly}


async def _with_key_names(
    look: StudyLook, page: journal_views.JournalPage
) -> journal_views.JournalPage:
    """Return entries with the names of the keys that wrote them."""
    names = await look.named({line.by for line in page.rows if line.by})
    return page._replace(rows=journal_views.with_key_names(page.rows, names))


@router.get(STUDY + "/chart")
async def chart(look: AStudy) -> Response:
    """Return the data of the chart."""
    recent = await look.look(journal_views.recent_plays)
    now = datetime.now(UTC)
    found = await look.read(
        lambda study: journal_views.chart_data(views.recent_facts(study, recent, now), recent)
    )
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


@router.get(STUDY + "/events")
async def watch(look: AStudy) -> Response:
    """Send an event whenever the study changes."""
    return await events.stream(look.office, look.name, look.visitor.token)


@router.get(STUDY + "/journal")
async def journal(look: AStudy, before: int | None = None) -> Response:
    """Show a page of the journal."""
    page = await look.look(
        lambda journal: journal_views.last_entries(journal, journal_views.PAGE, before)
    )
    lines = await _with_key_names(look, page)
    return await look.page("journal.html", name=look.name, base=look.base, lines=lines)


# ------------------------------------------------------------ asking and telling


@router.get(STUDY + "/ask")
@router.get(PLAY + "/{verb}")
async def of_form(look: AStudy, play: int | None = None) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(look.base if play is None else f"{look.base}/plays/{play}")


@router.post(STUDY + "/ask")
async def ask(look: AStudy) -> Response:
    """Choose a plan."""
    form = await look.form()
    look.caller.check("play", look.name)
    limits = look.office.settings.limits
    usual = await look.read(lambda study: study.actions)
    plain = forms.today(form, usual)
    key = form.get("key").strip() or None
    if not form.errors:
        try:
            actions = await look.office.built(plain)
            id = await look.write(
                form,
                lambda study: bounded_verbs.ask(limits, study, actions, key=key),
                lambda play: play.id,
            )
            return to(f"{look.base}?done=asked&play={id}")
        except InvalidInput as error:
            form.note(look.discreet(error), "key", *forms.usual_values(usual))
    return await _study_page(look, ask_form=form, status=422)


@router.get(PLAY)
async def play_page(look: AStudy, play: Id, done: str = "") -> Response:
    """Show a play."""
    return await _play_page(look, play, done=done_text(done, play))


async def _play_page(
    look: StudyLook, play: int, form: Form | None = None, done: str = "", status: int = 200
) -> Response:
    about = await look.look(lambda journal: play_history.about(journal, play))

    form = form or Form()

    def act(study: Study) -> dict[str, Any]:
        found = views.play_page(study, about)
        return {
            "page": found,
            "unit": study.unit,
            "noun": "cost" if study.actions.sense == "min" else "reward",
            "by_round": study.policy.learns_from == "round",
            "typed": [
                (arm, form.get(forms.field_of(place))) for place, arm in enumerate(found.fields)
            ],
        }

    shown = await look.read(act)
    names = await look.named({line.by for line in shown["page"].lines if line.by})
    lines = journal_views.with_key_names(shown["page"].lines, names)
    shown["page"] = shown["page"]._replace(lines=lines)
    shown |= {"name": look.name, "base": look.base, "form": form, "done": done}
    return await look.page("play.html", status, **shown)


@router.post(PLAY + "/tell")
async def tell(look: AStudy, play: Id) -> Response:
    """Learn from the losses of a play."""
    form = await look.form()
    look.caller.check("play", look.name)

    def pending(study: Study) -> tuple[dict[str, int] | None, bool]:
        found = next((one for one in study.pending() if one.id == play), None)
        by_round = study.policy.learns_from == "round"
        return None if found is None else views.reportable(found.plan), by_round

    plan, by_round = await look.read(pending)
    if plan is None:
        # raises NotFound for a play that does not exist
        await look.look(lambda journal: play_history.about(journal, play))
        form.errors[""] = "This play is not pending any more. The values below were not saved."
        return await _play_page(look, play, form, status=409)
    partly = bool(form.get("part"))
    told = forms.losses(form, plan, by_round, partly)
    if told is not None:
        try:
            done: Receipt = await look.write(
                form, lambda study: study.tell(play, told, final=not partly)
            )
            return to(f"{look.base}/plays/{play}?done={'told' if done.final else 'part'}")
        except InvalidInput as error:
            forms.note_loss(form, look.discreet(error), plan)
    return await _play_page(look, play, form, status=422)


@router.post(PLAY + "/close")
async def close(look: AStudy, play: Id) -> Response:
    """Learn from the losses of a play so far."""
    return await _end(look, play, "closed", lambda study: study.close(play))


@router.post(PLAY + "/cancel")
async def cancel(look: AStudy, play: Id) -> Response:
    """Discard a play that was not carried out."""
    return await _end(look, play, "cancelled", lambda study: study.cancel(play))


async def _end(look: StudyLook, play: int, done: str, act: Any) -> Response:
    form = await look.form()
    look.caller.check("play", look.name)
    try:
        await look.write(form, act)
    except NotFound:
        raise
    except InvalidInput as error:
        form.note(look.discreet(error))
        return await _play_page(look, play, form, status=409)
    return to(f"{look.base}/plays/{play}?done={done}")


DONE = {
    "created": "The study was created. Ask for its first plan.",
    "asked": "Play {play} was planned.",
    "told": "The outcome of play {play} was saved. The study has learned from it.",
    "part": "A part of the outcome of play {play} was saved. More may follow.",
    "closed": "Play {play} was closed. The study has learned from the units that were reported.",
    "cancelled": "Play {play} was cancelled. The study does not learn from it.",
}


def done_text(done: str, play: int | None) -> str:
    """Return a message about what a form has done, empty for an unknown code."""
    return DONE[done].format(play=play) if done in DONE else ""
