"""Routes of the page of a play, and of the forms for its costs."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from multiplay._support.words import noun_of
from multiplay.errors import InvalidInput, NotFound
from multiplay.learner.plays import PendingPlay, Receipt
from multiplay.service.pages import bills, journal_views, play_views, uploads
from multiplay.service.pages.forms import Form, range_text
from multiplay.service.pages.page_route import Page, StudyPageContext, done_text, to
from multiplay.studies import Study, entry_codec, play_history

PLAY = "/studies/{study}/plays/{play}"
DONE = {
    "told": "The outcome of plan {play} was saved. The study has learned from it.",
    "part": "A part of the outcome of plan {play} was saved. More may follow.",
    "closed": "Plan {play} was closed. The study has learned from what was reported.",
    "cancelled": "Plan {play} was cancelled. The study does not learn from it.",
    "corrected": "The correction of plan {play} was saved. The study has learned from it.",
    "retracted": "The report of plan {play} no longer counts. The plan waits for its costs again.",
}


class PlayQuery(BaseModel):
    """What a form has done."""

    done: str = ""


async def to_play(context: StudyPageContext, play: int) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(f"{context.base}/plays/{play}")


async def play_page(context: StudyPageContext, play: int, query: PlayQuery) -> Response:
    """Show a play."""
    return await _play_page(context, play, done=done_text(DONE, query.done, play=play))


async def _play_page(
    context: StudyPageContext,
    play: int,
    form: Form | None = None,
    done: str = "",
    status: int = 200,
) -> Response:
    about = await _about(context, play)
    form = Form() if form is None else form

    def act(study: Study) -> dict[str, Any]:
        found = play_views.play_page(study, about)
        return {
            "page": found,
            "range": range_text(study.loss_range, study.words),
            "w": study.words,
            "noun": noun_of(study.actions.sense),
            "by_round": study.policy.learns_from == "round",
            "correction": form if form.values else Form(play_views.reported_fields(about)),
            "typed": [
                (arm, form.get(bills.field_of(place))) for place, arm in enumerate(found.fields)
            ],
        }

    shown = await context.read(act)
    names = await context.key_names({line.by for line in shown["page"].lines if line.by})
    lines = journal_views.with_key_names(shown["page"].lines, names)
    shown["page"] = shown["page"]._replace(lines=lines)
    shown |= {"name": context.name, "base": context.base, "form": form, "done": done}
    return await context.page("play.html", status, **shown)


async def _about(context: StudyPageContext, play: int) -> Any:
    """Return the entries of a play; raise ``NotFound`` if it does not exist."""
    return await context.read_journal(lambda journal: play_history.about(journal, play))


async def fill(context: StudyPageContext, play: int) -> Response:
    """Show the costs of a play in their fields, from rows of a spreadsheet; save nothing."""
    form = await context.play_form()
    about = await _about(context, play)
    plan = about[0].record.header["plan"]
    if not bills.has_rows(form) and not form.get(bills.TABLE):
        form.errors[bills.ROWS] = "Paste rows here, or choose a file."
        return await _play_page(context, play, form, status=422)
    key = entry_codec.shown_key(about[0].labels)
    form = await _filled(context, form, plan, key)
    done = "" if form.errors else "Check the numbers, and save them."
    response = await _play_page(context, play, form, done, status=422 if form.errors else 200)
    if form.columns:
        uploads.remember(response, context.base, uploads.columns_of_form(form))
    return response


async def _filled(
    context: StudyPageContext, form: Form, plan: dict[str, int], key: str | None
) -> Form:
    """Return a form with costs from rows, read with the columns that were last used."""
    form = uploads.with_remembered(form, context.request)
    return await context.in_thread(partial(bills.filled, form, plan, key))


async def tell(context: StudyPageContext, play: int) -> Response:
    """Learn from the losses of a play."""
    form = await context.play_form()

    def pending(study: Study) -> tuple[PendingPlay | None, bool]:
        found = next((one for one in study.pending() if one.id == play), None)
        return found, study.policy.learns_from == "round"

    found, by_round = await context.read(pending)
    if found is None:
        await _about(context, play)  # raises NotFound for a play that does not exist
        form.errors[""] = "This plan no longer waits for a report. The values below were not saved."
        return await _play_page(context, play, form, status=409)
    plan = play_views.reportable(found.plan)
    if bills.has_rows(form):
        form = await _filled(context, form, plan, found.key)
    partly = bool(form.get("part"))
    told = None if form.errors else bills.losses(form, plan, by_round, partly)
    if told is not None and not await _questioned(context, form, told, plan):
        given: dict[str, Any] = {"final": not partly, "missing": bills.missing(told)}
        try:
            done: Receipt = await context.write(form, lambda study: study.tell(play, told, **given))
            return to(f"{context.base}/plays/{play}?done={'told' if done.final else 'part'}")
        except InvalidInput as error:
            bills.note_loss(form, context.without_store(error), plan)
    return await _play_page(context, play, form, status=422)


async def correct(context: StudyPageContext, play: int) -> Response:
    """Replace the losses that were told of a play."""
    form = await context.play_form()
    about = await _about(context, play)
    plan, key = about[0].record.header["plan"], entry_codec.shown_key(about[0].labels)
    by_round = await context.read(lambda study: study.policy.learns_from == "round")
    if bills.has_rows(form):
        form = await _filled(context, form, plan, key)
    told = None if form.errors else bills.losses(form, plan, by_round, partly=False)
    if told is not None and not await _questioned(context, form, told, plan):
        missing = bills.missing(told)
        try:
            await context.write(form, lambda study: study.correct(play, told, missing=missing))
            return to(f"{context.base}/plays/{play}?done=corrected")
        except InvalidInput as error:
            bills.note_loss(form, context.without_store(error), plan)
    return await _play_page(context, play, form, status=422)


async def _questioned(
    context: StudyPageContext, form: Form, told: Any, plan: dict[str, int]
) -> bool:
    """Return whether the form now asks about costs that are far from what is believed."""
    if not isinstance(told, dict):
        return False
    asks: bool = await context.read(lambda study: bills.questioned(form, study, told, plan))
    return asks


async def retract(context: StudyPageContext, play: int) -> Response:
    """Withdraw the losses that were told of a play."""
    return await _end(context, play, "retracted", lambda study: study.retract(play))


async def close(context: StudyPageContext, play: int) -> Response:
    """Learn from the losses of a play so far."""
    return await _end(context, play, "closed", lambda study: study.close(play))


async def cancel(context: StudyPageContext, play: int) -> Response:
    """Discard a play that was not carried out."""
    return await _end(context, play, "cancelled", lambda study: study.cancel(play))


async def _end(context: StudyPageContext, play: int, done: str, act: Any) -> Response:
    form = await context.play_form()
    try:
        await context.write(form, act)
    except NotFound:
        raise
    except InvalidInput as error:
        form.note(context.without_store(error))
        return await _play_page(context, play, form, status=409)
    return to(f"{context.base}/plays/{play}?done={done}")


PAGES = (
    Page("GET", PLAY, play_page),
    Page("GET", f"{PLAY}/{{verb}}", to_play),
    Page("POST", f"{PLAY}/fill", fill),
    Page("POST", f"{PLAY}/tell", tell),
    Page("POST", f"{PLAY}/correct", correct),
    Page("POST", f"{PLAY}/retract", retract),
    Page("POST", f"{PLAY}/close", close),
    Page("POST", f"{PLAY}/cancel", cancel),
)
