"""Tables of past costs: what was read, what is probably wrong, and learning from the rest.

One page shows a table before anything is made of it, for a new study and for one that exists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel
from starlette.responses import Response

from multiplay._support.formatting import counted
from multiplay._support.frames import TableFile
from multiplay._support.words import Words, noun_of
from multiplay.actions.importers.table_cleaning import (
    DUPLICATE,
    MISSPELT,
    NEGATIVE,
    ROWS,
    SUBTOTAL,
    TIMES,
    Finding,
    cleaned,
    findings,
)
from multiplay.actions.importers.table_columns import (
    Columns,
    guessed_columns,
    has_rewards,
    ignored_columns,
    words_of,
)
from multiplay.actions.importers.table_sets import usual_set
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.learner import check_data
from multiplay.learner.logged_data import KnownArms, ReadTable, TableCheck, read_table
from multiplay.service.pages import features
from multiplay.service.pages.forms import MOST_LINES, Form, as_lines, policy_title
from multiplay.service.pages.page_route import Page, PageContext, StudyPageContext, to
from multiplay.service.pages.uploads import (
    PASTED,
    Upload,
    columns_of_form,
    fields_of,
    remember,
    uploaded,
    with_remembered,
)
from multiplay.service.studies import bounded_verbs
from multiplay.studies import Study, wire
from multiplay.studies.commands.external import CheckTable, LearnTable

if TYPE_CHECKING:
    import pandas as pd

STUDY = "/studies/{study}"
SHOWN_ROWS, SHOWN_FINDINGS = 6, 8
DAY_ORDERS = {"": None, "first": True, "month": False}
PROPOSED = (
    "kind",
    "sense",
    "supply",
    "demand",
    "caps",
    "total",
    "slack",
    "surplus",
)  # fields of the set
CHOICE = "columns for the names, the date and the cost"
CHANGED = "The columns have changed: check what is read now, then continue."
DONE = {"undone": "The import was undone. Its rows no longer count."}
HEADINGS = {
    DUPLICATE: ("row is twice in the table", "rows are twice in the table"),
    SUBTOTAL: ("row is a sum of others", "rows are sums of others"),
    NEGATIVE: ("row has a negative cost", "rows have negative costs"),
    MISSPELT: ("name may be misspelt", "names may be misspelt"),
    TIMES: ("column of dates has times", ""),
}


class FindingChoice(NamedTuple):
    """The tick that accepts a finding, or several of them."""

    field: str
    text: str
    ticked: bool


class FindingGroup(NamedTuple):
    """The findings of one kind."""

    heading: str
    choices: list[FindingChoice]


class TableDraft(NamedTuple):
    """A table of the user, as it would be learned.

    Attributes
    ----------
    upload : Upload
        The table as it was given.
    file, raw : TableFile
        The rows without those of the findings that are accepted, and all rows as texts.
    columns : Columns
        The columns that are learned from.
    found, accepted : list of Finding
        What is probably wrong, and what of it is left out or joined.
    is_new : bool
        Whether the page has not shown these columns yet.
    candidates : list of Candidate
        The other columns, of which a new study can have features.
    features : Features or None
        Those that are declared.
    """

    upload: Upload
    file: TableFile
    raw: TableFile
    columns: Columns
    found: list[Finding]
    accepted: list[Finding]
    is_new: bool
    candidates: list[features.Candidate]
    features: Features | None

    @property
    def is_complete(self) -> bool:
        """Whether the columns that are needed are known."""
        return bool(self.columns.arm and self.columns.round and self.columns.loss)


class TableView(NamedTuple):
    """A table as a page shows it, before it is learned.

    Attributes
    ----------
    source, content, format : str
        The name of the file, the table as CSV, and the format that was recognised.
    columns, ignored : list of str
        The names of all columns, and of those that are not used.
    chosen : dict
        The column of each field.
    roles : dict
        What each column has that is used.
    rows : list of lists of str
        The first rows.
    check : TableCheck or None
        The content, if all columns are chosen.
    groups : list of FindingGroup
        What is probably wrong.
    state : str
        A digest of the columns, by which the next form is compared with this page.
    skip : bool
        Whether rows with problems are left out.
    left_out : int
        The number of rows that are left out for what was found.
    candidates : list of Candidate
        Columns that may be features of a new study.
    """

    source: str
    content: str
    format: str
    columns: list[str]
    ignored: list[str]
    chosen: dict[str, str]
    roles: dict[str, str]
    rows: list[list[str]]
    check: TableCheck | None
    groups: list[FindingGroup]
    state: str
    skip: bool
    left_out: int
    candidates: list[features.Candidate]


# ---------------------------------------------------------------- what was read


def read_draft(form: Form, study: KnownArms | None = None) -> TableDraft:
    """Return the table of a form; its columns are those of the form, or are guessed.

    ``study`` are the arms and the features of a study that exists.
    """
    known = () if study is None else study.names
    upload = uploaded(form)
    decimal = "." if upload.format is None else upload.format.decimal
    raw = upload.read(upload.columns)  # with signs of currencies, and as the user wrote it
    columns = columns_of_form(form)
    is_chosen = bool(form.get("state")) or bool(
        columns.arm and {*columns.used} <= {*upload.columns}
    )
    if not is_chosen:
        columns = guessed_columns(raw.frame, known, decimal)
    if missing := [name for name in columns.used if name not in upload.columns]:
        hint = "Choose one of the columns of the table."
        raise InvalidInput("file", "columns of the table", repr(missing[0])[:80], hint)
    file = upload.read(columns.texts)
    is_new = form.get("state") != _state(columns, form)
    draft = TableDraft(upload, file, raw, columns, [], [], is_new, [], None)
    if not draft.is_complete or len({*columns.used}) < len(columns.used):
        return draft
    draft = draft._replace(found=findings(raw, columns, known))
    choices = _choices(form, draft)
    accepted = [one for _, choice, ones in choices if choice.ticked for one in ones]
    file = cleaned(file, columns, accepted)
    if not len(file.frame):
        raise InvalidInput("file", "rows to learn from", "none", "Keep some of the rows.")
    if study is None:
        others = features.candidates(file.frame, columns, decimal)
        given = features.declared(form, others)
        draft = draft._replace(candidates=others)
    else:
        given = study.features
    file = file._replace(frame=features.with_numbers(file.frame, given, decimal))
    return draft._replace(file=file, accepted=accepted, features=given)


def _state(columns: Columns, form: Form) -> str:
    return hashlib.sha256(repr((tuple(columns), form.get("order"))).encode()).hexdigest()[:16]


def view_of(form: Form, draft: TableDraft, check: TableCheck | None, noun: str) -> TableView:
    """Return a table as a page shows it."""
    frame, chosen = draft.raw.frame, draft.columns
    fields = fields_of(chosen)
    titles = ("from" if len(chosen.arm) > 1 else "name", "to", "date", noun, "invoice", "units")
    roles = {name: title for name, title in zip(fields.values(), titles, strict=True) if name}
    own = () if draft.features is None else draft.features.columns
    roles |= {name: "feature" for name in own if name in frame}
    return TableView(
        "" if draft.upload.name == PASTED else draft.upload.name,
        draft.upload.text,
        "" if draft.raw.format is None else str(draft.raw.format),
        [*map(str, frame.columns)],
        [name for name in ignored_columns(frame, chosen) if name not in roles],
        fields,
        roles,
        _first_rows(frame),
        check,
        _groups(form, draft),
        _state(chosen, form),
        draft.is_new or bool(form.get("skip")),
        len({row for one in draft.accepted if one.kind in ROWS for row in one.rows}),
        draft.candidates,
    )


def _first_rows(frame: pd.DataFrame) -> list[list[str]]:
    head = frame.head(SHOWN_ROWS)
    rows: list[list[str]] = head.where(head.notna(), "").astype(str).to_numpy().tolist()
    return rows


def _choices(form: Form, draft: TableDraft) -> list[tuple[str, FindingChoice, list[Finding]]]:
    """Return the kind, the tick and the findings of each choice.

    Those of a kind beyond the ones that are shown have one tick together.
    """
    choices = []
    for kind in HEADINGS:
        own = [one for one in draft.found if one.kind == kind]
        parts = [[one] for one in own[:SHOWN_FINDINGS]] + [own[SHOWN_FINDINGS:]]
        for part in filter(None, parts):
            first = part[0].rows[0] + draft.raw.first
            field = f"{kind}-{first}"
            ticked = part[0].is_sure if draft.is_new else bool(form.get(field))
            text = f"row {first}: {part[0].text}" if len(part) == 1 else f"{len(part):,} more"
            action = "Leave out"
            if kind == TIMES:
                action, text = "Read as days:", f"{part[0].text} as {part[0].meant}"
            if kind == MISSPELT:
                action = "Join"
                rows = counted(len(part[0].rows), "row")
                text = f"“{part[0].text}” ({rows}) to “{part[0].meant}”" if len(part) == 1 else text
            choices.append((kind, FindingChoice(field, f"{action} {text}", ticked), part))
    return choices


def _groups(form: Form, draft: TableDraft) -> list[FindingGroup]:
    """Return the findings by kind, with their ticks as the form has them."""
    groups = []
    choices = _choices(form, draft)
    for kind, (single, several) in HEADINGS.items():
        count = sum(one.kind == kind for one in draft.found)
        if count:
            heading = f"{count:,} {single if count == 1 else several}"
            groups.append(FindingGroup(heading, [one for k, one, _ in choices if k == kind]))
    return groups


# ---------------------------------------------------------------- a new study


def read_alone(form: Form, draft: TableDraft) -> ReadTable | None:
    """Return what a table contains before there is a study.

    None for a table of lanes without dates and costs, which has nothing to learn from.
    """
    columns = draft.columns
    if not columns.arm:
        raise InvalidInput("", "columns for the names", "none", "Choose the columns.")
    if not draft.is_complete:
        return None
    order, id = DAY_ORDERS.get(form.get("order")), columns.id or None
    given = draft.file, columns.arm, columns.round, columns.loss
    return read_table(*given, KnownArms(features=draft.features), order, id)


def filled(form: Form, draft: TableDraft) -> Form:
    """Return the form of a new study, with what a table shows where it is not filled in.

    The set is proposed anew where the columns or the rows have changed, unless it was edited.
    """
    values = dict(form.values)
    if draft.is_new or values.get("proposed") == _digest(values):
        values |= proposed(draft)
        values["proposed"] = _digest(values)
    if draft.is_new:
        name = "" if draft.upload.name == PASTED else PurePath(draft.upload.name).stem
        words = words_of(draft.raw.frame, draft.columns)._asdict()
        values |= {"name": form.get("name") or name, **words}
    return Form(values, form.errors, form.files)


def proposed(draft: TableDraft) -> dict[str, str]:
    """Return the input of the form of a new study that fits a table.

    A row counts as a unit even if its cost is no number.
    """
    columns = draft.columns
    rows = draft.file.frame.dropna(subset=[*columns.arm])
    if not len(rows):
        hint = "Write the supplier and the customer, or the lane, into columns of each row."
        raise InvalidInput("file", "rows with names", "none", hint)
    rows = rows.assign(**{name: rows[name].astype(str) for name in columns.arm})
    found = usual_set(rows, columns)
    sense = "max" if has_rewards(columns.loss) else "min"
    given = {"kind": found.kind, "sense": sense, "slack": "yes" if found.slack else ""}
    if found.kind == "transport":
        given |= {"supply": _lines(found.supply), "demand": _lines(found.demand)}
        peaks = [*found.peaks.items()][:SHOWN_FINDINGS]
        given["peaks"] = ", ".join(f"{name} {units}" for name, units in peaks)
    else:
        given |= {"caps": _lines(found.supply), "total": str(found.total)}
    if any(len(text.splitlines()) > MOST_LINES for text in given.values()):
        raise InvalidInput("file", f"at most {MOST_LINES} names", "more", "Use the HTTP API.")
    return given


def words_of_form(form: Form) -> Words:
    """Return the words of a form; the usual ones where it has none."""
    return Words(**{name: form.get(name) for name in Words._fields if form.get(name)})


def _digest(values: Mapping[str, str]) -> str:
    """Return a digest of what a page proposes, by which a form shows whether it was edited."""
    texts = [values.get(name, "").split() for name in PROPOSED]
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]


def _lines(units: dict[str, int]) -> str:
    return as_lines([*units], [*units.values()])


def feature_settings(form: Form, draft: TableDraft, arms: Sequence[str]) -> dict[str, Any]:
    """Return the declared features and the values of arms, as settings of a new study.

    Records an error in the form for a feature that is not known for all arms.
    """
    if draft.features is None:
        return {}
    known = features.by_arm(draft.file.frame, draft.columns, draft.features, draft.candidates)
    for one in draft.candidates:
        lacking = [arm for arm in arms if one.name in known and arm not in known[one.name]]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            text = f"The table has no value for {lacking[0]}{more}. Leave this feature out."
            form.errors[one.field] = text
    settings: dict[str, Any] = {"features": wire.to_plain("features", draft.features)}
    return settings | ({"arm_features": known} if known else {})


def learn_of(form: Form, draft: TableDraft) -> LearnTable:
    """Return the command that learns from a table."""
    arguments = (*_arguments(form, draft), bool(form.get("skip")))
    return LearnTable(draft.file, *arguments)


def _arguments(form: Form, draft: TableDraft) -> tuple[Any, ...]:
    """Return the columns of a table, and the order of its dates, as arguments of a command."""
    columns, order = draft.columns, DAY_ORDERS.get(form.get("order"))
    return columns.arm, columns.round, columns.loss, order, columns.id or None


async def likeness(
    context: PageContext, form: Form, draft: TableDraft, words: Words, sense: str
) -> tuple[str, ...]:
    """Return the five sentences of ``check_data`` if the form asks what a table is like."""
    if not form.get("like") or not draft.is_complete:
        return ()
    arm, round, loss, order, _ = _arguments(form, draft)
    given: dict[str, Any] = {"sense": sense, "day_first": order, "skip_bad": True, "words": words}
    try:
        found = await context.in_thread(partial(check_data, draft.file, arm, round, loss, **given))
    except InvalidInput as error:
        form.note(context.without_store(error))
        return ()
    *facts, advice = found.sentences
    advice = advice.replace(found.policy, f"“{policy_title(found.policy)}”")
    return *facts, advice.replace("FeatureCTS(memory=Changes())", "the default").replace(
        "FeatureCTS", "the default"
    )


# ---------------------------------------------------------------- a study that exists


class ImportQuery(BaseModel):
    """What a form has done."""

    done: str = ""


async def import_page(context: StudyPageContext, query: ImportQuery) -> Response:
    """Show the form for a table of past costs, and the tables that were imported."""
    context.caller.check("play", context.name)
    return await _import_page(context, Form(), done=DONE.get(query.done, ""))


async def to_import(context: StudyPageContext) -> Response:
    """Redirect from the URL of a form to its page."""
    return to(f"{context.base}/import")


async def _import_page(
    context: StudyPageContext, form: Form, status: int = 200, done: str = ""
) -> Response:
    imports = await context.read(lambda study: study.imports())
    shown = {"form": form, "imports": imports[::-1], "done": done}
    return await context.study_page("import.html", "import", status, **shown)


async def learn_table(context: StudyPageContext) -> Response:
    """Show what a table contains; learn from it if the form of the preview was sent."""
    form = with_remembered(await context.play_form(), context.request)
    try:
        known, words, sense = await context.read(
            lambda study: (
                KnownArms(study.known_arms, features=study.features),
                study.words,
                study.actions.sense,
            )
        )
        draft = await context.in_thread(partial(read_draft, form, known))
    except InvalidInput as error:
        form.note(context.without_store(error), "file")
        return await _import_page(context, form, 422)
    check = None
    try:
        check = await context.read(partial(_check, context, form, draft))
        if form.get("learn") and not changed_note(form, draft):
            check_skip(form, check)
            limits, learn = context.manager.settings.limits, learn_of(form, draft)
            told = await context.write(form, lambda study: bounded_verbs.do(limits, study, learn))
            done = to(f"{context.base}?done=imported&count={told.seen + told.missing}")
            remember(done, context.base, draft.columns)
            return done
    except InvalidInput as error:
        form.note(context.without_store(error), *noted(error))
    noun = noun_of(sense)
    like = await likeness(context, form, draft, words, sense)
    shown = {"view": view_of(form, draft, check, noun), "words": words, "noun": noun, "like": like}
    shown |= {"name": context.name, "base": context.base, "note": changed_note(form, draft)}
    return await context.page("table.html", 422 if form.errors else 200, form=form, **shown)


def noted(error: InvalidInput) -> tuple[str, ...]:
    """Return the field of an error, if it has one."""
    return ("skip",) if error.argument == "skip" else ()


def changed_note(form: Form, draft: TableDraft) -> str:
    """Return why a table is shown again although the form was to learn from it."""
    is_sent = form.get("state") and (form.get("learn") or form.get("create"))
    return CHANGED if is_sent and draft.is_new else ""


def check_skip(form: Form, check: TableCheck | None) -> None:
    """Raise ``InvalidInput`` if rows with problems are neither corrected nor left out."""
    if check is not None and check.problems and not form.get("skip"):
        got = counted(len(check.problems), "row with a problem")
        raise InvalidInput("skip", "rows without problems", got, "Correct or leave them out.")


def _check(context: PageContext, form: Form, draft: TableDraft, study: Study) -> TableCheck:
    if not draft.is_complete:
        raise InvalidInput("", CHOICE, "none", "Choose the columns.")
    limits = context.manager.settings.limits
    return bounded_verbs.read(limits, study, CheckTable(draft.file, *_arguments(form, draft)))


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
    Page("GET", f"{STUDY}/import", import_page),
    Page("POST", f"{STUDY}/import", learn_table),
    Page("GET", f"{STUDY}/undo-import", to_import),
    Page("POST", f"{STUDY}/undo-import", undo_import),
)
