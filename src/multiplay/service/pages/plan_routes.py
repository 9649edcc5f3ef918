"""Routes of the first page of a study, and of its forms: plans asked for, and own plans."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.learner.plays import PendingPlay, Receipt
from multiplay.service.pages import (
    bills,
    cost_views,
    features,
    forms,
    plan_forms,
    play_views,
    render,
    views,
)
from multiplay.service.pages.forms import Form
from multiplay.service.pages.page_route import Page, StudyPageContext, done_text, to
from multiplay.service.studies import bounded_verbs
from multiplay.studies import Study
from multiplay.studies.commands.external import Learn
from multiplay.studies.commands.plays import Ask
from multiplay.studies.commands.queries import Expect

MOST_DAYS = 36_500  # of an age in days
PARTS = ("state", "plan", "tell", "other", "pending")
STUDY = "/studies/{study}"
DONE = {
    "imported": "New rows that were imported: {count:,}. The study has learned from them.",
    "began": "The study has learned from {count:,} rows. This is its first plan.",
    "created": "The study was created. Ask for its first plan.",
    "asked": "Plan {play} was made.",
    "asked-before": "Plan {play} was made before for this date, by the same request.",
    "own": "Your own plan was saved. The study has learned from it.",
    "expired": "Plans that were closed or cancelled: {count}.",
}


class PlanQuery(BaseModel):
    """What a form has done, and the arms that an older address of the page shows."""

    done: str = ""
    play: int | None = None
    count: int | None = None
    arms: str = ""
    all: str = ""


async def plan_page(context: StudyPageContext, query: PlanQuery) -> Response:
    """Show the plan of a study, with its forms."""
    if query.arms or query.all:  # an address of older versions
        return to(f"{context.base}/lanes?{context.request.url.query}")
    done = done_text(DONE, query.done, play=query.play, count=query.count or 0)
    return await _plan_page(context, done=done if query.count is None else render.local(done))


async def _plan_page(context: StudyPageContext, status: int = 200, **shown: Any) -> Response:
    given = {"done": ""} | await plan_content(context) | shown
    return await context.study_page("plan.html", "plan", status, **given)


async def plan_content(context: StudyPageContext) -> dict[str, Any]:
    """Return the content of the page."""
    now = datetime.now(UTC)
    recent = await context.read_journal(cost_views.recent_plays)
    seen: views.PlanTab = await context.read(views.plan_tab)
    words = await context.read(lambda study: study.words)
    queue = await context.read_journal(
        lambda journal: views.pending_rows(journal, seen.queue, now, words)
    )
    partly = {row.id for row in queue.rows if row.told}
    return {
        "note": context.manager.settings.notes.get(context.name, ""),
        "seen": seen,
        "queue": queue,
        "telling": _telling(seen.queue, partly),
        "tell_form": Form(),
        "ask_form": Form(),
        "other_form": Form(),
        "expire_form": Form(),
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
    plan = play_views.reportable(play.plan)
    return {"id": play.id, "key": play.key, "plan": plan, "partly": play.id in partly}


async def to_plan(context: StudyPageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(context.base)


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
    return await _plan_page(context, ask_form=form, status=422)


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
    return await _plan_page(context, other_form=form, answer=answer, status=status)


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
    return await _plan_page(context, other_form=form, status=422)


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
    return await _plan_page(context, expire_form=form, status=422)


PAGES = (
    Page("GET", STUDY, plan_page),
    Page("GET", f"{STUDY}/ask", to_plan),
    Page("POST", f"{STUDY}/ask", ask),
    Page("GET", f"{STUDY}/expect", to_plan),
    Page("POST", f"{STUDY}/expect", expect),
    Page("GET", f"{STUDY}/own-plan", to_plan),
    Page("POST", f"{STUDY}/own-plan", own_plan),
    Page("GET", f"{STUDY}/expire", to_plan),
    Page("POST", f"{STUDY}/expire", expire),
)
