"""Routes of the pages of one study beside its plan: arms, constraints, history and savings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field
from starlette.responses import Response

from multiplay.errors import InvalidInput, NotFound
from multiplay.service.api import events
from multiplay.service.pages import (
    arm_views,
    constraints,
    cost_views,
    forms,
    journal_views,
    past_days,
    plan_forms,
    plan_routes,
    plans,
    savings,
)
from multiplay.service.pages.forms import Form
from multiplay.service.pages.page_route import Page, StudyPageContext, done_text, to
from multiplay.service.studies import bounded_verbs
from multiplay.service.studies.limits import build_constraint
from multiplay.studies import Study
from multiplay.studies.commands.constraints import AddConstraint
from multiplay.studies.imports import tables_that_count

STUDY = "/studies/{study}"
MOST_KNOWN = 24  # studies whose imported days are kept in memory, as texts
_known: dict[bytes, past_days.PastDays | None] = {}  # by the digest of the last entry
DONE = {
    "forgot": "Earlier reports no longer count. “Unforget” undoes this.",
    "kept": "The reports count again.",
    "constrained": "It was added, and counts the plans from now on.",
    "ended": "It has ended, and no longer changes plans.",
    "compared": "The rule was saved.",
}
SearchText = Annotated[str, Field(max_length=200)]


class TabQuery(BaseModel):
    """What to show, and what a form has done.

    Attributes
    ----------
    arms, all : str
        The arms whose names contain a text, and whether all of them.
    arm, first, last : str
        The arm and the days of the chart.
    before : int or None
        The entry of the journal before which the page ends.
    done : str
        What a form has done.
    """

    arms: SearchText = ""
    all: str = ""
    arm: SearchText = ""
    first: SearchText = ""
    last: SearchText = ""
    before: int | None = None
    done: str = ""


class SavedQuery(BaseModel):
    """The part of a page to return: a line, or all of a page, of a report, or of learning."""

    part: Literal["line", "page", "report", "learning"] = "line"


class SavingsQuery(BaseModel):
    """What a form has done, and whether the page waits for what takes long to compute."""

    done: str = ""
    wait: str = ""


class PartsQuery(TabQuery):
    """The page whose parts are requested."""

    tab: Literal["plan", "lanes", "promises", "history"] = "plan"


# ------------------------------------------------------------ contents of the pages


async def _plan(context: StudyPageContext, query: TabQuery) -> dict[str, Any]:
    return await plan_routes.plan_content(context)


async def _arms(context: StudyPageContext, query: TabQuery) -> dict[str, Any]:
    recent = await context.read_journal(cost_views.recent_plays)
    now = datetime.now(UTC)

    def read(study: Study) -> arm_views.ArmsTab:
        found = cost_views.recent_facts(study, recent, now)
        return arm_views.arms_tab(study, found, query.arms, bool(query.all))

    return {"seen": await context.read(read), "restart_form": Form()}


async def _constraints(context: StudyPageContext, query: TabQuery) -> dict[str, Any]:
    recent = await context.read_journal(cost_views.recent_plays)
    seen = await context.read(lambda study: constraints.constraints_tab(study, recent.asked))
    return {"seen": seen, "constraint_form": Form(), "promise_kinds": constraints.KINDS}


async def _history(context: StudyPageContext, query: TabQuery) -> dict[str, Any]:
    period = cost_views.Period(*map(plan_forms.a_day, (query.first, query.last)))
    now, words = datetime.now(UTC), await context.read(lambda study: study.words)
    arm = cost_views.ArmDays()
    recent, lines = await context.read_journal(
        lambda journal: (
            cost_views.recent_plays(journal, period),
            journal_views.last_entries(journal, before=query.before, words=words),
        )
    )
    if query.arm:
        arm = await context.read_journal(
            lambda journal: cost_views.arm_days(journal, query.arm, period)
        )
    seen = await context.read(lambda study: cost_views.history_tab(study, recent, now, arm))
    names = await context.key_names({line.by for line in lines.rows if line.by})
    rows = journal_views.with_key_names(lines.rows, names)
    return {"seen": seen, "lines": lines._replace(rows=rows), "query": query}


class Tab(NamedTuple):
    """A page of a study: its content, and the parts of it that follow the study."""

    content: Callable[[StudyPageContext, TabQuery], Awaitable[dict[str, Any]]]
    parts: tuple[str, ...]


TABS = {
    "plan": Tab(_plan, plan_routes.PARTS),
    "lanes": Tab(_arms, ("changes", "arms", "drivers")),
    "promises": Tab(_constraints, ("allowance", "constraints")),
    "history": Tab(_history, ("costs", "journal")),
}


async def parts(context: StudyPageContext, query: PartsQuery) -> Response:
    """Return the current content of the parts of a page that change."""
    chosen = TABS[query.tab]
    content = await chosen.content(context, query)
    return await context.study_page("parts.html", query.tab, parts=chosen.parts, **content)


async def _tab(
    context: StudyPageContext,
    tab: str,
    query: TabQuery | None = None,
    status: int = 200,
    **shown: Any,
) -> Response:
    given = TabQuery() if query is None else query
    content = await TABS[tab].content(context, given)
    content |= {"done": done_text(DONE, given.done)} | shown
    return await context.study_page(f"{tab}.html", tab, status, **content)


async def lanes(context: StudyPageContext, query: TabQuery) -> Response:
    """Show what is believed of the arms of a study."""
    return await _tab(context, "lanes", query)


async def promises(context: StudyPageContext, query: TabQuery) -> Response:
    """Show the constraints of a study."""
    return await _tab(context, "promises", query)


async def history(context: StudyPageContext, query: TabQuery) -> Response:
    """Show the costs of past days, and the journal."""
    return await _tab(context, "history", query)


async def to_history(context: StudyPageContext, query: TabQuery) -> Response:
    """Redirect from the address of the journal of older versions."""
    more = "" if query.before is None else f"?before={query.before}"
    return to(f"{context.base}/history{more}#journal-heading")


async def watch(context: StudyPageContext) -> Response:
    """Send an event whenever the study changes."""
    return await events.stream(context.manager, context.name, context.visitor.token)


# ------------------------------------------------------------ reports that are forgotten


async def to_lanes(context: StudyPageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(f"{context.base}/lanes")


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
            return to(f"{context.base}/lanes?done={done}")
        except InvalidInput as error:
            form.note(context.without_store(error), "round", "arm")
    return await _tab(context, "lanes", restart_form=form, status=422)


# ------------------------------------------------------------ constraints


async def to_promises(context: StudyPageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(f"{context.base}/promises")


async def add_constraint(context: StudyPageContext) -> Response:
    """Add a constraint."""
    form = await context.play_form()
    limits, plain = context.manager.settings.limits, constraints.constraint_of_form(form)
    if not form.errors:
        try:
            made = AddConstraint(build_constraint("constraint", plain, limits))
            await context.write(form, lambda study: bounded_verbs.do(limits, study, made))
            return to(f"{context.base}/promises?done=constrained")
        except InvalidInput as error:
            constraints.note_constraint(form, context.without_store(error))
    return await _tab(context, "promises", constraint_form=form, status=422)


async def end_constraint(context: StudyPageContext) -> Response:
    """End a constraint."""
    form = await context.play_form()
    try:
        await context.write(form, lambda study: study.end_constraint(form.get("name")))
    except NotFound as error:  # another user has ended it
        form.errors[""] = forms.error_text(context.without_store(error))
        return await _tab(context, "promises", constraint_form=form, status=404)
    return to(f"{context.base}/promises?done=ended")


# ------------------------------------------------------------ what was saved


async def saved(context: StudyPageContext, query: SavedQuery) -> Response:
    """Return what the plans saved, for pages that do not wait for it."""
    shown = {"part": query.part, **await _what_was_saved(context, query.part)}
    return await context.study_page("saved.html", "savings", **shown)


async def _what_was_saved(context: StudyPageContext, part: str) -> dict[str, Any]:
    """Return what the plans saved, or what learning cost: in seconds, where many are reported."""
    if part == "learning":
        return {"saved": None, "learning": await _saved(context, savings.learning_text)}
    act = savings.saved_against_past if part == "report" else savings.saved_or_reason
    return {"saved": await _saved(context, act), "learning": ""}


async def savings_page(context: StudyPageContext, query: SavingsQuery) -> Response:
    """Show what the plans saved, and what it rests on."""
    shown: dict[str, Any] = {}
    if query.wait:  # a browser without scripts
        shown = await _what_was_saved(context, "page")
        shown |= {"learning": (await _what_was_saved(context, "learning"))["learning"]}
    form, done = Form(), done_text(DONE, query.done)
    return await _savings_page(context, form, done=done, wait=bool(query.wait), **shown)


async def _savings_page(
    context: StudyPageContext, form: Form, status: int = 200, **shown: Any
) -> Response:
    found = await context.read(savings.comparison)
    given = {"form": form, "found": found, "done": "", "saved": None, "learning": "", "wait": False}
    return await context.study_page("savings.html", "savings", status, **given | shown)


async def _saved(context: StudyPageContext, act: Callable[[Study], Any]) -> Any:
    return await context.manager.saved(context.name, context.caller, act)


async def driven(context: StudyPageContext) -> Response:
    """Return what imported days cost, for the page of the study, which does not wait for it."""
    return await context.study_page("driven.html", "plan", past=await _past(context))


async def report_page(context: StudyPageContext, query: SavingsQuery) -> Response:
    """Show on one page to print what imported days cost, and what their plans would have."""
    past, now = await _past(context), datetime.now(UTC)
    best = await context.read(lambda study: plans.current_plan(study, []))
    shown = {"past": past, "best": best, "today": f"{now:%Y-%m-%d}", "saved": None}
    if past is not None and query.wait:  # a browser without scripts
        shown |= await _what_was_saved(context, "report")
    return await context.study_page("report.html", "report", wait=bool(query.wait), **shown)


async def _past(context: StudyPageContext) -> past_days.PastDays | None:
    """Return what imported days cost, from a cache as long as the study does not change."""
    head, tables = await context.read_journal(
        lambda journal: (journal.head().digest, tables_that_count(journal))
    )
    if head not in _known:
        _known[head] = await _saved(context, lambda study: past_days.past_days(study, tables))
        while len(_known) > MOST_KNOWN:
            _known.pop(next(iter(_known)))
    return _known.get(head)


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


PAGES = (
    Page("GET", f"{STUDY}/lanes", lanes),
    Page("GET", f"{STUDY}/promises", promises),
    Page("GET", f"{STUDY}/history", history),
    Page("GET", f"{STUDY}/journal", to_history),
    Page("GET", f"{STUDY}/parts", parts),
    Page("GET", f"{STUDY}/events", watch),
    Page("GET", f"{STUDY}/saved", saved),
    Page("GET", f"{STUDY}/driven", driven),
    Page("GET", f"{STUDY}/report", report_page),
    Page("GET", f"{STUDY}/savings", savings_page),
    Page("GET", f"{STUDY}/versus", to_savings),
    Page("POST", f"{STUDY}/versus", compare),
    Page("GET", f"{STUDY}/forget", to_lanes),
    Page("POST", f"{STUDY}/forget", forget),
    Page("GET", f"{STUDY}/unforget", to_lanes),
    Page("POST", f"{STUDY}/unforget", unforget),
    Page("GET", f"{STUDY}/add-constraint", to_promises),
    Page("POST", f"{STUDY}/add-constraint", add_constraint),
    Page("GET", f"{STUDY}/end-constraint", to_promises),
    Page("POST", f"{STUDY}/end-constraint", end_constraint),
)
