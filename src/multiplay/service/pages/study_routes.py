"""Routes of the pages of one study, and of the forms for its plans and their costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from multiplay._support.words import noun_of
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput, NotFound
from multiplay.learner.plays import PendingPlay, Receipt
from multiplay.service.api import events
from multiplay.service.pages import (
    bills,
    constraints,
    features,
    forms,
    journal_views,
    plan_forms,
    savings,
    views,
)
from multiplay.service.pages.forms import Form
from multiplay.service.pages.page_route import Page, StudyPageContext, to
from multiplay.service.studies import bounded_verbs
from multiplay.service.studies.limits import build_constraint
from multiplay.studies import Study, entry_codec, play_history
from multiplay.studies.commands.constraints import AddConstraint
from multiplay.studies.commands.external import Learn
from multiplay.studies.commands.plays import Ask
from multiplay.studies.commands.queries import Expect

PARTS = (
    "state",
    "plan",
    "tell",
    "other",
    "costs",
    "pending",
    "journal",
    "allowance",
    "constraints",
    "drivers",
    "arms",
)
MOST_DAYS = 36_500  # of an age in days

STUDY, PLAY = "/studies/{study}", "/studies/{study}/plays/{play}"
SearchText = Annotated[str, Field(max_length=200)]


class PartsQuery(BaseModel):
    """The arms to show: those that contain a text, and whether all of them."""

    arms: SearchText = ""
    all: str = ""


class StudyQuery(PartsQuery):
    """The arms to show, and what a form has done."""

    done: str = ""
    play: int | None = None
    count: int | None = None


class JournalQuery(BaseModel):
    """The entry before which the page ends."""

    before: int | None = None


class PlayQuery(BaseModel):
    """What a form has done."""

    done: str = ""


# ------------------------------------------------------------ one study


async def study_page(context: StudyPageContext, query: StudyQuery) -> Response:
    """Show a study."""
    done = done_text(query.done, query.play, query.count)
    return await _study_page(context, query.arms, bool(query.all), done=done)


async def _study_page(
    context: StudyPageContext, arms: str = "", whole: bool = False, status: int = 200, **shown: Any
) -> Response:
    content = {"done": ""} | await _content(context, arms, whole) | shown
    return await context.page("study.html", status, **content)


async def parts(context: StudyPageContext, query: PartsQuery) -> Response:
    """Return the current content of the parts of a study's page that change."""
    content = await _content(context, query.arms, bool(query.all))
    return await context.page("parts.html", parts=PARTS, **content)


async def _content(context: StudyPageContext, arms: str, whole: bool) -> dict[str, Any]:
    """Return the content of the page of a study."""
    now = datetime.now(UTC)
    words = await context.read(lambda study: study.words)
    recent, lines = await context.read_journal(
        lambda journal: (
            journal_views.recent_plays(journal),
            journal_views.last_entries(journal, words=words),
        )
    )
    seen: views.Overview = await context.read(
        lambda study: views.overview(study, recent, now, arms, whole)
    )
    queue = await context.read_journal(
        lambda journal: views.pending_rows(journal, seen.queue, now, seen.words)
    )
    partly = {row.id for row in queue.rows if row.told}
    query = f"?{context.request.url.query}" if arms or whole else ""
    return {
        "name": context.name,
        "base": context.base,
        "note": context.manager.settings.notes.get(context.name, ""),
        "seen": seen,
        "queue": queue,
        "lines": await _with_key_names(context, lines),
        "query": query,
        "telling": _telling(seen.queue, partly),
        "tell_form": Form(),
        "ask_form": Form(),
        "other_form": Form(),
        "expire_form": Form(),
        "restart_form": Form(),
        "constraint_form": Form(),
        "promise_kinds": constraints.KINDS,
        "answer": None,
        "usual": plan_forms.usual_values(seen.actions),
        "rules": plan_forms.RULES,
        "rule_rows": plan_forms.rule_rows,
        "today": f"{now:%Y-%m-%d}",
        "next_day": plan_forms.next_day(recent.plays["key"], now.date()),
    }


def _telling(queue: list[PendingPlay], partly: set[int]) -> dict[str, Any] | None:
    """Return the play of the form for losses: the oldest pending play."""
    if not queue:
        return None
    play = queue[0]
    plan = views.reportable(play.plan)
    return {"id": play.id, "key": play.key, "plan": plan, "partly": play.id in partly}


async def _with_key_names(
    context: StudyPageContext, page: journal_views.JournalPage
) -> journal_views.JournalPage:
    """Return entries with the names of the keys that wrote them."""
    names = await context.key_names({line.by for line in page.rows if line.by})
    return page._replace(rows=journal_views.with_key_names(page.rows, names))


async def chart(context: StudyPageContext) -> Response:
    """Return the data of the chart."""
    recent = await context.read_journal(journal_views.recent_plays)
    now = datetime.now(UTC)
    found = await context.read(
        lambda study: journal_views.chart_data(
            views.recent_facts(study, recent, now), recent, study.words
        )
    )
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


async def watch(context: StudyPageContext) -> Response:
    """Send an event whenever the study changes."""
    return await events.stream(context.manager, context.name, context.visitor.token)


async def journal(context: StudyPageContext, query: JournalQuery) -> Response:
    """Show a page of the journal."""
    words = await context.read(lambda study: study.words)
    page = await context.read_journal(
        lambda journal: journal_views.last_entries(journal, journal_views.PAGE, query.before, words)
    )
    lines = await _with_key_names(context, page)
    return await context.page("journal.html", name=context.name, base=context.base, lines=lines)


# ------------------------------------------------------------ what was saved


class SavingsQuery(BaseModel):
    """What a form has done."""

    done: str = ""


async def saved(context: StudyPageContext) -> Response:
    """Return what the plans saved, for the page of the study, which does not wait for it."""
    found = await _saved(context, savings.saved_or_reason)
    return await context.page("saved.html", saved=found, base=context.base)


async def savings_page(context: StudyPageContext, query: SavingsQuery) -> Response:
    """Show what the plans saved, and what it rests on."""
    done = "The rule was saved." if query.done else ""
    return await _savings_page(context, Form(), done)


async def _savings_page(
    context: StudyPageContext, form: Form, done: str = "", status: int = 200
) -> Response:
    found = await _saved(context, savings.comparison)
    shown = {"name": context.name, "base": context.base, "rules": savings.RULES}
    return await context.page("savings.html", status, form=form, found=found, done=done, **shown)


async def _saved(context: StudyPageContext, act: Callable[[Study], Any]) -> Any:
    return await context.manager.saved(context.name, context.caller, act)


async def to_savings(context: StudyPageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(f"{context.base}/savings")


async def compare(context: StudyPageContext) -> Response:
    """Name the rule with which plans are compared."""
    form = await context.play_form()
    names = await context.read(lambda study: [*study.actions.names, *study.known_arms])
    rule = await context.in_thread(lambda: savings.rule_of_form(form, [*dict.fromkeys(names)]))
    if not form.errors:
        try:
            await context.write(form, lambda study: study.set_versus(rule), verb="set_versus")
            return to(f"{context.base}/savings?done=compared")
        except InvalidInput as error:
            form.note(context.without_store(error), "rows")
    return await _savings_page(context, form, status=422)


# ------------------------------------------------------------ asking and telling


async def of_form(context: StudyPageContext, play: int | None = None) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(context.base if play is None else f"{context.base}/plays/{play}")


async def ask(context: StudyPageContext) -> Response:
    """Choose a plan."""
    form = await context.play_form()
    most = context.manager.settings.limits
    usual, fields = await context.read(lambda study: (study.actions, features.day_fields(study)))
    plain, values = plan_forms.today(form, usual), features.day_values(form, fields)
    key = form.get("key").strip() or None
    names: list[str] = [*usual.names]
    if not form.errors:
        try:
            actions = await context.manager.build_actions(plain)
            names = names if actions is None else [*actions.names]
            limits = plan_forms.limits(form, names)
            if not form.errors:
                replace = bool(form.get("replace"))
                chosen = Ask(actions, features=values, replace=replace, **limits)
                id, repeated = await context.write(
                    form,
                    lambda study: bounded_verbs.do(most, study, chosen, key),
                    lambda play: (play.id, play.repeated),
                )
                done = "asked-before" if repeated else "asked"
                return to(f"{context.base}?done={done}&play={id}")
        except InvalidInput as error:
            noted = features.note_feature(form, error, fields)
            if not noted and not plan_forms.note_limit(form, error, names):
                form.note(context.without_store(error), "key", *plan_forms.usual_values(usual))
    return await _study_page(context, ask_form=form, status=422)


# ------------------------------------------------------------ a plan of the user


async def expect(context: StudyPageContext) -> Response:
    """Show the expected cost of a plan of the user, beside that of the proposed plan."""
    form = await context.play_form()
    names = await _names_of(context, form)
    plan = plan_forms.own_plan(form, names)
    answer = None
    if plan is None and not form.errors:
        form.errors[""] = "Enter at least one number."
    elif plan is not None:
        limits = context.manager.settings.limits
        try:
            actions = await _set_of(context, plan, names)

            def read(study: Study) -> views.Comparison:
                own = bounded_verbs.read(limits, study, Expect(actions, plan=plan))
                return views.comparison(study, plan, own)

            answer = await context.read(read)
        except InvalidInput as error:
            form.note(context.without_store(error))
    status = 422 if form.errors else 200
    return await _study_page(context, other_form=form, answer=answer, status=status)


async def own_plan(context: StudyPageContext) -> Response:
    """Learn from a plan of the user and its costs; discard the proposed plan, if requested."""
    form = await context.play_form()
    limits = context.manager.settings.limits
    names = await _names_of(context, form)
    plan, key = plan_forms.own_plan(form, names), form.get("day").strip()
    if not key:
        form.errors["day"] = "Enter the date, so that the plan is not saved twice."
    by_round = await context.read(lambda study: study.policy.learns_from == "round")
    losses = None
    if not form.errors:
        read = partial(bills.of_plan, form, plan, names, key, by_round)
        losses = await context.in_thread(read)
    if losses is not None:
        driven, told = losses
        gone = form.get("discard")
        try:
            actions = await _set_of(context, driven, names)
            learn = Learn(driven, told, actions, missing=bills.missing(told))

            def act(study: Study) -> Receipt:
                done = bounded_verbs.do(limits, study, learn, key)
                if any(str(play.id) == gone for play in study.pending()):
                    study.cancel(int(gone))
                return done

            await context.write(form, act, verb="learn")
            return to(f"{context.base}?done=own")
        except InvalidInput as error:
            form.note(context.without_store(error), "day" if error.argument == "key" else "rows")
    return await _study_page(context, other_form=form, status=422)


async def _names_of(context: StudyPageContext, form: Form) -> list[str]:
    """Return the arms of the fields of a form, which the form contains."""
    known: list[str] = await context.read(
        lambda study: list(dict.fromkeys((*study.actions.names, *study.known_arms)))
    )
    try:
        given = json.loads(form.get("names"))
        named = [name for name in given if name in set(known)]
    except (ValueError, TypeError):
        return known
    return named or known


async def _set_of(
    context: StudyPageContext, plan: dict[str, int], names: list[str]
) -> ActionSet | None:
    """Return a set that has a plan of the user; None for the usual set."""
    plain = await context.read(lambda study: plan_forms.set_of_plan(study.actions, plan, names))
    return await context.manager.build_actions(plain)


# ------------------------------------------------------------ reports that are forgotten, and plays


async def expire(context: StudyPageContext) -> Response:
    """Close or discard all plans that are older than some days."""
    form = await context.play_form()
    with form.noting("days"):
        days = forms.a_number("days", form.get("days"))
        if not 0 < days <= MOST_DAYS:
            expected, hint = f"a number of days up to {MOST_DAYS}", "Write 7, for example."
            raise InvalidInput("days", expected, repr(form.get("days")), hint)
    if not form.errors:
        ended = await context.write(form, lambda study: study.expire(timedelta(days=days)))
        return to(f"{context.base}?done=expired&count={len(ended)}")
    return await _study_page(context, expire_form=form, status=422)


async def forget(context: StudyPageContext) -> Response:
    """Forget the losses of an arm before a round."""
    return await _restart(context, "before", "forgot")


async def unforget(context: StudyPageContext) -> Response:
    """Let the losses of an arm count again."""
    return await _restart(context, "since", "kept")


async def _restart(context: StudyPageContext, field: str, done: str) -> Response:
    form = await context.play_form()
    arm = form.get("arm") or None
    with form.noting("round"):
        given = forms.a_round("round", form.get("round"), required=field == "before")
    if not form.errors:
        try:
            await context.write(
                form, lambda study: getattr(study, context.verb)(arm, **{field: given})
            )
            return to(f"{context.base}?done={done}")
        except InvalidInput as error:
            form.note(context.without_store(error), "round", "arm")
    return await _study_page(context, restart_form=form, status=422)


async def add_constraint(context: StudyPageContext) -> Response:
    """Add a constraint."""
    form = await context.play_form()
    limits, plain = context.manager.settings.limits, constraints.constraint_of_form(form)
    if not form.errors:
        try:
            made = AddConstraint(build_constraint("constraint", plain, limits))
            await context.write(form, lambda study: bounded_verbs.do(limits, study, made))
            return to(f"{context.base}?done=constrained#constraints-section")
        except InvalidInput as error:
            constraints.note_constraint(form, context.without_store(error))
    return await _study_page(context, constraint_form=form, status=422)


async def end_constraint(context: StudyPageContext) -> Response:
    """End a constraint."""
    form = await context.play_form()
    try:
        await context.write(form, lambda study: study.end_constraint(form.get("name")))
    except NotFound as error:  # another user has ended it
        form.errors[""] = forms.error_text(context.without_store(error))
        return await _study_page(context, constraint_form=form, status=404)
    return to(f"{context.base}?done=ended#constraints-section")


async def play_page(context: StudyPageContext, play: int, query: PlayQuery) -> Response:
    """Show a play."""
    return await _play_page(context, play, done=done_text(query.done, play))


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
        found = views.play_page(study, about)
        return {
            "page": found,
            "loss_range": study.loss_range,
            "w": study.words,
            "noun": noun_of(study.actions.sense),
            "by_round": study.policy.learns_from == "round",
            "correction": form if form.values else Form(views.reported_fields(about)),
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
    if not bills.has_rows(form):
        form.errors[bills.ROWS] = "Paste rows here, or choose a file."
        return await _play_page(context, play, form, status=422)
    key = entry_codec.shown_key(about[0].labels)
    form = await context.in_thread(partial(bills.filled, form, plan, key))
    done = "" if form.errors else "Check the numbers, and save them."
    return await _play_page(context, play, form, done, status=422 if form.errors else 200)


async def tell(context: StudyPageContext, play: int) -> Response:
    """Learn from the losses of a play."""
    form = await context.play_form()

    def pending(study: Study) -> tuple[PendingPlay | None, bool]:
        found = next((one for one in study.pending() if one.id == play), None)
        return found, study.policy.learns_from == "round"

    found, by_round = await context.read(pending)
    if found is None:
        await _about(context, play)  # raises NotFound for a play that does not exist
        form.errors[""] = "This plan is not pending any more. The values below were not saved."
        return await _play_page(context, play, form, status=409)
    plan = views.reportable(found.plan)
    if bills.has_rows(form):
        form = await context.in_thread(partial(bills.filled, form, plan, found.key))
    partly = bool(form.get("part"))
    told = None if form.errors else bills.losses(form, plan, by_round, partly)
    if told is not None:
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
        form = await context.in_thread(partial(bills.filled, form, plan, key))
    told = None if form.errors else bills.losses(form, plan, by_round, partly=False)
    if told is not None:
        missing = bills.missing(told)
        try:
            await context.write(form, lambda study: study.correct(play, told, missing=missing))
            return to(f"{context.base}/plays/{play}?done=corrected")
        except InvalidInput as error:
            bills.note_loss(form, context.without_store(error), plan)
    return await _play_page(context, play, form, status=422)


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


DONE = {
    "imported": "New rows that were imported: {count}. The study has learned from them.",
    "created": "The study was created. Ask for its first plan.",
    "asked": "Plan {play} was made.",
    "asked-before": "Plan {play} was made before for this date, by the same request.",
    "told": "The outcome of plan {play} was saved. The study has learned from it.",
    "part": "A part of the outcome of plan {play} was saved. More may follow.",
    "closed": "Plan {play} was closed. The study has learned from what was reported.",
    "forgot": "Earlier reports no longer count. “Unforget” undoes this.",
    "kept": "The reports count again.",
    "constrained": "The constraint was added. It counts the plans from now on.",
    "ended": "The constraint has ended. It no longer changes plans.",
    "cancelled": "Plan {play} was cancelled. The study does not learn from it.",
    "corrected": "The correction of plan {play} was saved. The study has learned from it.",
    "retracted": "The report of plan {play} no longer counts. The plan waits for its costs again.",
    "own": "Your own plan was saved. The study has learned from it.",
    "expired": "Plans that were closed or cancelled: {count}.",
}


def done_text(done: str, play: int | None, count: int | None = None) -> str:
    """Return a message about what a form has done, empty for an unknown code."""
    return DONE[done].format(play=play, count=count) if done in DONE else ""


PAGES = (
    Page("GET", STUDY, study_page),
    Page("GET", f"{STUDY}/parts", parts),
    Page("GET", f"{STUDY}/chart", chart),
    Page("GET", f"{STUDY}/events", watch),
    Page("GET", f"{STUDY}/journal", journal),
    Page("GET", f"{STUDY}/saved", saved),
    Page("GET", f"{STUDY}/savings", savings_page),
    Page("GET", f"{STUDY}/versus", to_savings),
    Page("POST", f"{STUDY}/versus", compare),
    Page("GET", f"{STUDY}/ask", of_form),
    Page("POST", f"{STUDY}/ask", ask),
    Page("GET", f"{STUDY}/expect", of_form),
    Page("POST", f"{STUDY}/expect", expect),
    Page("GET", f"{STUDY}/own-plan", of_form),
    Page("POST", f"{STUDY}/own-plan", own_plan),
    Page("GET", f"{STUDY}/expire", of_form),
    Page("POST", f"{STUDY}/expire", expire),
    Page("GET", f"{STUDY}/forget", of_form),
    Page("POST", f"{STUDY}/forget", forget),
    Page("GET", f"{STUDY}/unforget", of_form),
    Page("POST", f"{STUDY}/unforget", unforget),
    Page("GET", f"{STUDY}/add-constraint", of_form),
    Page("POST", f"{STUDY}/add-constraint", add_constraint),
    Page("GET", f"{STUDY}/end-constraint", of_form),
    Page("POST", f"{STUDY}/end-constraint", end_constraint),
    Page("GET", PLAY, play_page),
    Page("GET", f"{PLAY}/{{verb}}", of_form),
    Page("POST", f"{PLAY}/fill", fill),
    Page("POST", f"{PLAY}/tell", tell),
    Page("POST", f"{PLAY}/correct", correct),
    Page("POST", f"{PLAY}/retract", retract),
    Page("POST", f"{PLAY}/close", close),
    Page("POST", f"{PLAY}/cancel", cancel),
)
