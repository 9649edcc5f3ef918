"""Management of a study: its words and its name, copies, deletion, and past bills."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel
from starlette.responses import Response

from multiplay._support.formatting import brief_policy
from multiplay._support.frames import TableFile
from multiplay._support.words import Words, noun_of
from multiplay.errors import InvalidInput
from multiplay.learner.logged_data import TableCheck
from multiplay.service.pages import exports, render
from multiplay.service.pages.forms import Form, range_of, range_text
from multiplay.service.pages.page_route import Page, PageContext, StudyPageContext, to
from multiplay.service.pages.uploads import PASTED, Columns, Upload, guessed_columns, uploaded
from multiplay.service.studies import bounded_verbs
from multiplay.studies import Study
from multiplay.studies.commands.external import CheckTable, LearnTable
from multiplay.studies.commands.settings import SetWords

STUDY = "/studies/{study}"
WORDS, CURRENCY = Words._fields, "currency"
SHOWN_ROWS, SHOWN_PROBLEMS, SHOWN_ARMS = 5, 10, 20
DAY_ORDERS = {"": None, "first": True, "month": False}
DONE = {
    "words": "The words were saved.",
    "range": "The range was saved. All bills were learned again with it.",
    "renamed": "The study has its new name.",
    "copied": "This is the copy.",
    "undone": "The import was undone. Its bills no longer count.",
}


class ManageQuery(BaseModel):
    """What a form has done."""

    done: str = ""


# ------------------------------------------------------------ words, name, copies, deletion


async def manage_page(context: StudyPageContext, query: ManageQuery) -> Response:
    """Show the page on which a study is managed."""
    return await _manage_page(context, done=DONE.get(query.done, ""))


async def _manage_page(
    context: StudyPageContext, form: Form | None = None, done: str = "", status: int = 200
) -> Response:
    asked, span, policy = await context.read(
        lambda study: (
            study.asked,
            range_text(study.loss_range, study.words),
            brief_policy(study.policy),
        )
    )
    shown = {"asked": asked, "done": done, "range": span, "policy": policy}
    shown["marks"] = exports.marks_of(context.request.headers.get("accept-language", ""))
    form = Form() if form is None else form
    return await context.study_page("settings.html", "settings", status, form=form, **shown)


async def set_words(context: StudyPageContext) -> Response:
    """Set the words of a study."""
    form = await context.play_form()
    typed = {name: form.get(name).strip() for name in WORDS}
    given = {name: word for name, word in typed.items() if word or name == CURRENCY}
    try:
        await context.write(form, lambda study: study.do(SetWords(**given)), verb="set_words")
        return to(f"{context.base}/settings?done=words")
    except InvalidInput as error:
        form.note(context.without_store(error), *WORDS)
        return await _manage_page(context, form, status=422)


async def set_range(context: StudyPageContext) -> Response:
    """Set the range of the costs of a study."""
    form = await context.play_form()
    span = range_of(form)
    if not form.errors:
        try:
            await context.write(form, lambda study: study.set_range(span), verb="set_range")
            return to(f"{context.base}/settings?done=range")
        except InvalidInput as error:
            form.note(context.without_store(error), "high")
    return await _manage_page(context, form, status=422)


async def rename(context: StudyPageContext) -> Response:
    """Give a study a new name."""
    form = await context.form()
    new = form.get("new").strip()
    try:
        await context.manager.rename(context.name, context.caller, new)
        return to(f"{render.url(new)}/settings?done=renamed")
    except InvalidInput as error:
        return await _refused(context, form, "new", error)


async def copy(context: StudyPageContext) -> Response:
    """Copy a study to a new name."""
    form = await context.form()
    new = form.get("copy").strip()
    try:
        await context.manager.copy(context.name, context.caller, new)
        return to(f"{render.url(new)}/settings?done=copied")
    except InvalidInput as error:
        return await _refused(context, form, "copy", error)


async def delete(context: StudyPageContext) -> Response:
    """Delete a study, if its name was typed."""
    form = await context.form()
    if form.get("typed").strip() != context.name:
        context.caller.check("manage", context.name)
        hint = "Type the name of the study to delete it."
        error = InvalidInput("typed", repr(context.name), repr(form.get("typed"))[:60], hint)
        return await _refused(context, form, "typed", error)
    await context.manager.delete(context.name, context.caller)
    return to("/?done=deleted")


async def _refused(
    context: StudyPageContext, form: Form, field: str, error: InvalidInput
) -> Response:
    """Show the error of a form, unless the page itself may not be shown."""
    if error.argument not in ("name", "typed"):
        raise error
    form.note(context.without_store(error), field)
    return await _manage_page(context, form, status=422)


async def to_manage(context: StudyPageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(f"{context.base}/settings")


# ------------------------------------------------------------ past bills


class Preview(NamedTuple):
    """What a table contains, before it is learned.

    Attributes
    ----------
    source : str
        The name of the file; "" for a table that was pasted.
    content : str
        The table as CSV, for the form that learns it.
    format : str
        The format that was recognised; "" for an Excel file.
    columns : list of str
        The names of all columns.
    chosen : Columns
        The columns that are learned from.
    rows : list of lists of str
        The first rows.
    check : TableCheck or None
        The content, if all columns are chosen.
    """

    source: str
    content: str
    format: str
    columns: list[str]
    chosen: Columns
    rows: list[list[str]]
    check: TableCheck | None


async def import_page(context: StudyPageContext, query: ManageQuery) -> Response:
    """Show the form for a table of past bills, and the tables that were imported."""
    context.caller.check("play", context.name)
    return await _import_page(context, Form(), done=DONE.get(query.done, ""))


async def to_import(context: StudyPageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(f"{context.base}/import")


async def _import_page(
    context: StudyPageContext,
    form: Form,
    preview: Preview | None = None,
    status: int = 200,
    done: str = "",
) -> Response:
    words, sense, imports = await context.read(
        lambda study: (study.words, study.actions.sense, study.imports())
    )
    shown = {"name": context.name, "base": context.base, "words": words, "preview": preview}
    shown |= {"imports": imports[::-1], "done": done}
    noun = noun_of(sense)
    return await context.page("import.html", status, form=form, noun=noun, **shown)


async def learn_table(context: StudyPageContext) -> Response:
    """Show what a table contains; learn from it if the form of the preview was sent."""
    form = await context.play_form()
    return await previewed(context, form)


async def previewed(context: StudyPageContext, form: Form) -> Response:
    """Return the preview of a table, or learn from it."""
    preview = None
    try:
        known = await context.read(lambda study: study.known_arms)
        table = await context.in_thread(partial(_read, form, known))
        preview = await context.read(partial(_preview, context, form, table))
        if form.get("learn") and preview.check is not None:
            told = await context.write(form, partial(_learn, context, form, table))
            return to(f"{context.base}?done=imported&count={told.seen + told.missing}")
    except InvalidInput as error:
        form.note(context.without_store(error), "file")
    return await _import_page(context, form, preview, 422 if form.errors else 200)


async def preview_of(context: PageContext, name: str, form: Form) -> Response:
    """Return the preview of bills for a study that was just created."""
    study = StudyPageContext(context.request, context.visitor, context.verb, name)
    table = {field: form.get(field) for field in ("content", "source")}
    return await previewed(study, Form(table))


class ReadTable(NamedTuple):
    """A table of the user, its rows, and the columns that are learned from."""

    upload: Upload
    file: TableFile
    columns: Columns


def _read(form: Form, known: Collection[str]) -> ReadTable:
    """Return the table of a form; its columns are those of the form, or are guessed."""
    upload = uploaded(form)
    if form.get("arm"):
        arm = tuple(filter(None, (form.get("arm"), form.get("second"))))
        columns = Columns(arm, form.get("round"), form.get("loss"), form.get("id"))
    else:
        columns = guessed_columns(upload.read().frame, known)
    return ReadTable(upload, upload.read(columns.texts), columns)


def _preview(context: PageContext, form: Form, table: ReadTable, study: Study) -> Preview:
    upload, file, chosen = table
    check = None
    try:
        if chosen.arm and chosen.round and chosen.loss:
            limits = context.manager.settings.limits
            check = bounded_verbs.read(limits, study, CheckTable(file, *_columns(form, chosen)))
        else:
            form.errors[""] = "Choose the columns."
    except InvalidInput as error:
        form.note(context.without_store(error))
    head = file.frame.head(SHOWN_ROWS).astype(object)
    rows = head.where(head.notna(), "").astype(str).to_numpy().tolist()
    names = [str(name) for name in file.frame.columns]
    format = "" if file.format is None else str(file.format)
    source = "" if upload.name == PASTED else upload.name
    return Preview(source, upload.text, format, names, chosen, rows, check)


def _learn(context: PageContext, form: Form, table: ReadTable, study: Study) -> Any:
    limits, skip = context.manager.settings.limits, bool(form.get("skip"))
    columns = (*_columns(form, table.columns), skip)
    return bounded_verbs.do(limits, study, LearnTable(table.file, *columns))


def _columns(form: Form, chosen: Columns) -> tuple[Any, ...]:
    """Return the columns of a table, and the order of its dates, as arguments of a command."""
    order = DAY_ORDERS.get(form.get("order"))
    return chosen.arm, chosen.round, chosen.loss, order, chosen.id or None


async def undo_import(context: StudyPageContext) -> Response:
    """Retract a table that was imported."""
    form = await context.play_form()
    try:
        await context.write(form, lambda study: study.retract(form.get("name")), verb="retract")
        return to(f"{context.base}/import?done=undone")
    except InvalidInput as error:
        form.note(context.without_store(error))
        return await _import_page(context, form, status=409)


PAGES = (
    Page("GET", f"{STUDY}/settings", manage_page),
    Page("GET", f"{STUDY}/manage", to_manage),
    Page("GET", f"{STUDY}/words", to_manage),
    Page("POST", f"{STUDY}/words", set_words),
    Page("GET", f"{STUDY}/range", to_manage),
    Page("POST", f"{STUDY}/range", set_range),
    Page("GET", f"{STUDY}/rename", to_manage),
    Page("POST", f"{STUDY}/rename", rename),
    Page("GET", f"{STUDY}/copy", to_manage),
    Page("POST", f"{STUDY}/copy", copy),
    Page("GET", f"{STUDY}/delete", to_manage),
    Page("POST", f"{STUDY}/delete", delete),
    Page("GET", f"{STUDY}/import", import_page),
    Page("POST", f"{STUDY}/import", learn_table),
    Page("GET", f"{STUDY}/undo-import", to_import),
    Page("POST", f"{STUDY}/undo-import", undo_import),
)
