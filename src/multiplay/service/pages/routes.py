"""Routes of the pages, and of their forms."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from multiplay._support.hints import Surface, rendered
from multiplay._support.words import noun_of
from multiplay.actions import Model
from multiplay.constraints import Constraint, SwitchingCost
from multiplay.errors import InvalidInput, StoreError
from multiplay.learner.logged_data import ReadTable
from multiplay.service.api import openapi
from multiplay.service.api.routing import Endpoint
from multiplay.service.pages import (
    api_reference,
    exports,
    features,
    forms,
    guide,
    home,
    management,
    new_model,
    plan_routes,
    play_routes,
    render,
    savings,
    sessions,
    study_routes,
    tables,
    uploads,
)
from multiplay.service.pages.forms import Form
from multiplay.service.pages.page_route import Page, PageContext, StudyPageContext, to
from multiplay.service.studies import bounded_verbs
from multiplay.storage import Store
from multiplay.studies import wire
from multiplay.studies.commands.plays import Ask

DONE = {"deleted": "The study was deleted."}
PART_OF_LIST = 20  # studies on one page
MOST_CARDS = 2_000  # that are kept
CHOICES: dict[str, Any] = {"policies": forms.POLICIES, "baselines": savings.BASELINES}
FIELD_OF = {"baseline": "rule", "loss_range": "low"}  # of a new study
SearchText = Annotated[str, Field(max_length=200)]


# ------------------------------------------------------------ query parameters


class LoginQuery(BaseModel):
    """The path to go to after the login."""

    next: SearchText = "/"


class ListQuery(BaseModel):
    """How names begin, the last study of the previous page, and what a form has done."""

    prefix: SearchText = ""
    after: SearchText = ""
    done: str = ""


# ------------------------------------------------------------ files and documents


async def static(request: Request) -> Response:
    """Serve a static file."""
    file = render.files().get(request.path_params["path"])
    if file is None:
        return Response(status_code=404)
    kind, kept = render.KINDS[file.suffix], {"Cache-Control": "public, max-age=31536000, immutable"}
    return FileResponse(file, headers=kept, media_type=kind)


async def docs(context: PageContext) -> Response:
    """Show the API reference."""
    document = openapi.document()
    server = f"{context.request.url.scheme}://{context.request.url.netloc}"
    shown = {"about": document["info"]["description"].split("\n\n"), "server": server}
    found = api_reference.operation_groups(document, server)
    return await context.page("docs.html", groups=found, openapi_url="/openapi.json", **shown)


async def help_page(context: PageContext) -> Response:
    """Show the guide to the pages."""
    return await context.page("help.html", guide=guide.GUIDE, about=guide.ABOUT)


# ------------------------------------------------------------ sessions


async def login_page(context: PageContext, query: LoginQuery) -> Response:
    """Show the login form, or redirect where no key is needed."""
    if context.visitor.known and not context.visitor.session:
        return to("/")
    return await context.page("login.html", form=Form(), next=sessions.local_path(query.next))


async def log_in(context: PageContext) -> Response:
    """Start a session."""
    form = await context.form()
    token = await sessions.log_in(context.manager, form.get("key"))
    target = sessions.local_path(form.get("next", "/"))
    if token is None:
        form.errors["key"] = "The API key is not valid. Check that you copied all of it."
        return await context.page("login.html", 401, form=form, next=target)
    answer, secure = to(target), context.visitor.secure
    sessions.set_cookie(answer, sessions.SESSION, token, secure, sessions.LONGEST)
    return answer


async def logged_in(context: PageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to("/")


async def log_out(context: PageContext) -> Response:
    """End the session."""
    await context.form()
    token, secure = context.visitor.token, context.visitor.secure
    if token is not None:
        await context.manager.use_keyring(lambda keyring: sessions.log_out(keyring, token))
    answer = to("/login")
    sessions.set_cookie(answer, sessions.SESSION, "", secure, 0)
    return answer


# ------------------------------------------------------------ all studies


async def studies(context: PageContext, query: ListQuery) -> Response:
    """Show all studies: what a planner needs in the morning."""
    more_than_shown = PART_OF_LIST + 1
    names = await context.manager.names(context.caller, query.prefix, query.after, more_than_shown)
    shown, now = names[:PART_OF_LIST], datetime.now(UTC)
    cards = await asyncio.gather(*(_card(context, name, now) for name in shown))
    more = shown[-1] if len(names) > len(shown) else None
    done = DONE.get(query.done, "")
    about: dict[str, Any] = {"today": f"{now:%Y-%m-%d}", "notes": context.manager.settings.notes}
    about |= {"cards": cards, "after": more, "done": done, "form": Form()}
    about["prefix"] = query.prefix
    return await context.page("studies.html", **about)


_cards: dict[tuple[str, str, bytes, str], home.StudyCard] = {}  # of a state of a study, and a day


async def _card(context: PageContext, name: str, now: datetime) -> home.StudyCard:
    manager, caller = context.manager, context.caller
    try:
        head = await manager.read_journal(name, caller, lambda journal: journal.head())
        place = manager.store.url, name, head.digest, f"{now:%Y-%m-%d}"
        if place not in _cards:
            today = await manager.read(name, caller, home.study_today)
            card = await manager.read_journal(
                name, caller, lambda journal: home.study_card(today, journal, now)
            )
            if len(_cards) >= MOST_CARDS:
                _cards.clear()
            _cards[place] = card
        return _cards[place]
    except InvalidInput as error:
        hint = rendered(error.hint, Surface.PAGE)
        return home.StudyCard(name, problem=f"Cannot be shown: {error.got}. {hint}")
    except StoreError as error:
        return home.StudyCard(name, problem=f"Cannot be read now: {error.reason}.")


async def new_page(context: PageContext) -> Response:
    """Show the field for a table, with which a new study begins."""
    return await _start_page(context, Form())


async def _start_page(context: PageContext, form: Form, status: int = 200) -> Response:
    context.caller.check("manage", context.caller.study)
    return await context.page("start.html", status, form=form)


async def new_form(context: PageContext) -> Response:
    """Show the form of a new study without a table."""
    context.caller.check("manage", context.caller.study)
    return await _new_page(context, Form())


async def _new_page(context: PageContext, form: Form, status: int = 200) -> Response:
    return await context.page("new.html", status, form=form, kinds=forms.KINDS, **CHOICES)


async def new_from_table(context: PageContext) -> Response:
    """Show a table of lanes or past costs, and the study that fits it; create it if requested."""
    form = await context.form()
    context.caller.check("manage", context.caller.study)
    file = form.files.get("file")
    if file is not None and file.name.lower().endswith(".mps"):
        return await _model_page(context, form)
    try:
        draft = await context.in_thread(lambda: tables.read_draft(form))
    except InvalidInput as error:
        form.note(context.without_store(error), "file")
        return await _start_page(context, form, 422)
    read, check = None, None
    try:
        read = await context.in_thread(lambda: tables.read_alone(form, draft))
        check = None if read is None else read.check
        form = await context.in_thread(partial(tables.filled, form, draft))
        if form.get("create") and not tables.changed_note(form, draft):
            tables.check_skip(form, check)
            name = await _created_from(context, form, draft)
            if name is not None:
                return await _first_plan(context, name, draft, read)
    except InvalidInput as error:
        form.note(context.without_store(error), *tables.noted(error))
    sense = form.get("sense", "min")
    noun = noun_of(sense)
    shown: dict[str, Any] = {"view": tables.view_of(form, draft, check, noun), "base": ""}
    words = tables.words_of_form(form)
    shown |= {"words": words, "noun": noun, "name": "", **CHOICES}
    shown["like"] = await tables.likeness(context, form, draft, words, sense)
    shown["effects"] = features.EFFECTS
    shown["note"] = tables.changed_note(form, draft)
    name = form.get("name")
    shown["known"] = name in await context.manager.names(context.caller, name, limit=1)
    return await context.page("table.html", 422 if form.errors else 200, form=form, **shown)


async def _created_from(context: PageContext, form: Form, draft: tables.TableDraft) -> str | None:
    """Create a study that has learned from a table; None after recording errors in the form."""
    name = await _created(context, form, draft)
    if name is None or not draft.is_complete:
        return name
    study = StudyPageContext(context.request, context.visitor, context.verb, name)
    limits, learn = context.manager.settings.limits, tables.learn_of(form, draft)
    try:
        await study.write(
            Form(), lambda it: bounded_verbs.do(limits, it, learn), verb="learn_table"
        )
    except InvalidInput:  # a study that has not learned from its table is not kept
        await context.manager.delete(name, context.caller)
        raise
    return name


async def _first_plan(
    context: PageContext, name: str, draft: tables.TableDraft, read: ReadTable | None
) -> Response:
    """Ask a new study for the plan of today, and go to its page.

    Features of the day are those of the last day of the table.
    """
    study = StudyPageContext(context.request, context.visitor, context.verb, name)
    limits, today = context.manager.settings.limits, f"{datetime.now(UTC):%Y-%m-%d}"
    count = len(draft.file.frame) if draft.is_complete else 0
    done, values = f"{study.base}?done=began&count={count}", None
    if draft.features is not None and read is not None:
        values = features.last_day(read, draft.features, draft.candidates) or None
    try:
        act = partial(bounded_verbs.do, limits, command=Ask(features=values), key=today)
        id = await study.write(Form(), act, lambda play: play.id, verb="ask")
        done += f"&play={id}"
    except InvalidInput:  # there is no plan, and the page of the study says so
        pass
    response = to(done)
    uploads.remember(response, study.base, draft.columns)
    return response


async def new_from_model(context: PageContext) -> Response:
    """Show how an optimisation model was understood; create its study if the form says so."""
    form = await context.form()
    context.caller.check("manage", context.caller.study)
    return await _model_page(context, form)


async def _model_page(context: PageContext, form: Form) -> Response:
    try:
        uploaded = await context.in_thread(lambda: new_model.uploaded_model(form))
    except InvalidInput as error:
        form.note(error, "file")
        return await _start_page(context, form, 422)
    view = new_model.model_view(uploaded)
    if form.get("arms").strip():
        try:
            plain = await context.in_thread(
                lambda: new_model.chosen_settings(uploaded.content, form)
            )
            made = await context.manager.build_actions(plain)
        except InvalidInput as error:
            new_model.noted(form, error)
        else:
            view = new_model.understood(uploaded, plain, cast(Model, made))
            given = forms.study_of(form, plain) if form.get("create") else None
            if given is not None and await _created_of_model(context, form, given):
                return to(f"{render.url(given.name)}?done=created")
    elif form.get("create") or "arms" in form.values:
        form.errors["arms"] = "Enter a pattern of columns, for example: x[*]"
    shown = {"form": form, "model": view, "known": new_model.KNOWN, "policies": forms.POLICIES}
    return await context.page("model.html", 422 if form.errors else 200, **shown)


async def _created_of_model(context: PageContext, form: Form, given: forms.StudyInput) -> bool:
    """Create a study of a model; return whether it was, after recording errors in the form."""
    try:
        act = partial(_create, context, given, [])
        await context.manager.create(given.name, context.caller, act)
    except InvalidInput as error:
        new_model.noted(form, context.without_store(error))
        return False
    return True


async def create(context: PageContext) -> Response:
    """Create a study without a table."""
    form = await context.form()
    context.caller.check("manage", context.caller.study)
    name = await _created(context, form)
    if name is None:
        return await _new_page(context, form, status=422)
    return to(f"{render.url(name)}?done=created")


async def _created(
    context: PageContext, form: Form, draft: tables.TableDraft | None = None
) -> str | None:
    """Create the study of a form; return its name, or None after recording errors in the form.

    ``draft`` is the table with the features that the form declares.
    """
    given = forms.new_study(form)
    if given is None:
        return None
    try:
        actions = await context.manager.build_actions(given.actions)
        names = [] if actions is None else actions.names
        more = {} if draft is None else tables.feature_settings(form, draft, names)
        limits = await context.in_thread(lambda: savings.baseline_of_form(form, names))
        if form.get("cost"):
            with form.noting("cost"):
                limits.append(SwitchingCost(forms.a_number("cost", form.get("cost"))))
        if form.errors:
            return None
        act = partial(_create, context, given, limits, more=more)
        await context.manager.create(given.name, context.caller, act)
    except InvalidInput as error:
        known = context.without_store(error)
        if known.argument in FIELD_OF:
            form.errors[FIELD_OF[known.argument]] = forms.error_text(known)
        else:
            form.note(known, *forms.NEW_FIELDS, *savings.FIELDS)
        return None
    return given.name


async def to_new(context: PageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to("/new")


def _create(
    context: PageContext,
    given: forms.StudyInput,
    constraints: list[Constraint],
    store: Store,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    limits = context.manager.settings.limits
    bounded_verbs.create(
        limits,
        store,
        given.name,
        given.actions,
        None if more else given.policy,  # with features, the usual one that reads them
        **more,
        loss_range=given.loss_range,
        reports=given.reports,
        words=given.words,
        constraints=[*map(wire.of_constraint, constraints)],
        by=context.caller.id,
        present=lambda study: None,
    )


PAGES = (
    Endpoint("GET", "/static/{path:path}", static),
    Page("GET", "/docs", docs),
    Page("GET", "/help", help_page),
    Page("GET", "/login", login_page),
    Page("POST", "/login", log_in),
    Page("GET", "/logout", logged_in),
    Page("POST", "/logout", log_out),
    Page("GET", "/", studies),
    Page("GET", "/new", new_page),
    Page("POST", "/new", create),
    Page("GET", "/new/form", new_form),
    Page("GET", "/new/table", to_new),
    Page("POST", "/new/table", new_from_table),
    Page("GET", "/new/model", to_new),
    Page("POST", "/new/model", new_from_model),
    *exports.PAGES,
    *management.PAGES,
    *tables.PAGES,
    *plan_routes.PAGES,
    *study_routes.PAGES,
    *play_routes.PAGES,
)
