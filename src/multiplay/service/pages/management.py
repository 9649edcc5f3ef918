"""Management of a study: its words, its range and its name, copies, and deletion."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.responses import Response

from multiplay._support.formatting import brief_policy
from multiplay._support.words import Words
from multiplay.errors import InvalidInput
from multiplay.service.pages import exports, forms, render
from multiplay.service.pages.forms import Form, range_of, range_text
from multiplay.service.pages.page_route import Page, StudyPageContext, to
from multiplay.studies.commands.settings import SetWords

STUDY = "/studies/{study}"
WORDS, CURRENCY = Words._fields, "currency"
DONE = {
    "words": "The words were saved.",
    "range": "The range was saved. All bills were learned again with it.",
    "renamed": "The study has its new name.",
    "copied": "This is the copy.",
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
            forms.policy_title(brief_policy(study.policy)),
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
)
