"""Study of an uploaded optimisation model: the MPS file, its arms, and how it was understood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from multiplay._support.checks import shortened
from multiplay._support.formatting import Table, counted
from multiplay.actions import Model
from multiplay.actions.importers.mps import read_text
from multiplay.actions.importers.selection import ImportedModel, settings
from multiplay.actions.model import MOST_COLUMNS, MOST_ROWS
from multiplay.errors import InvalidInput
from multiplay.service.pages.forms import Form, error_text
from multiplay.service.studies.limits import check_name

MOST_PATTERNS, MOST_SHOWN, MOST_TERMS = 10, 20, 6
LONGEST_PATTERN = 2_000  # characters
KNOWN = {
    "helpers": "Only those of other columns: costs of arms in the file are guesses, to be learned",
    "all": "All of them: what is learned comes on top",
    "nothing": "None of them",
}
FIELDS = ("known", "arms", "policy", "name", "low", "")  # an error without a field is shown on top
GROUP = re.compile(r"[^\W\d_]+[\[({_.]?|.")  # the part of a name that similar columns share


class UploadedModel(NamedTuple):
    """A model of the user: the name of its file, its text, and its columns and rows."""

    name: str
    text: str
    content: ImportedModel


class ModelView(NamedTuple):
    """A model as a page shows it.

    Attributes
    ----------
    name, text : str
        The name and the content of the file.
    facts : list of str
        Its size and its sense.
    sense : "min" or "max"
        Whether costs are minimised.
    groups : Table
        The columns by the beginning of their names, with a pattern for each.
    arms, helpers : Table or None
        The chosen arms, and the other columns with known costs; None before arms are chosen.
    constraints : list of pairs
        Names of rows, and what they say.
    more : int
        The number of other rows.
    """

    name: str
    text: str
    facts: list[str]
    sense: str
    groups: Table
    arms: Table | None = None
    helpers: Table | None = None
    constraints: Sequence[tuple[str, str]] = ()
    more: int = 0


def uploaded_model(form: Form) -> UploadedModel:
    """Return the model of a form: its file, or the text that an earlier page kept.

    Only the strict reader of multiplay reads it: readers of solvers hang on some files.
    """
    file = form.files.get("file")
    name = form.get("source")[:LONGEST_PATTERN] if file is None else file.name
    data = form.get("content").encode() if file is None else file.data
    if not data.strip():
        raise InvalidInput("model", "an MPS file", "nothing", "Choose a file.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        hint = "Write the model as an .mps file in UTF-8, not compressed."
        raise InvalidInput("model", "an MPS file", "a file that is no text", hint) from None
    try:
        model = read_text(text)
    except InvalidInput as error:  # its argument is the line
        expected = f"{error.expected} in {error.argument}"
        raise InvalidInput("model", expected, error.got, error.hint) from None
    for unit, amount, most in (
        ("columns", len(model.names), MOST_COLUMNS),
        ("rows", len(model.low), MOST_ROWS),
    ):
        if amount > most:
            hint = "Use multiplay in Python for larger models."
            raise InvalidInput("model", f"at most {most} {unit}", f"{amount}", hint)
    for column in model.names:
        check_name("model", column)
    return UploadedModel(name, text, model)


def chosen_settings(model: ImportedModel, form: Form) -> dict[str, Any]:
    """Return the set that the arms and the known costs of a form make of a model, as plain data."""
    patterns = form.get("arms")
    if len(patterns) > LONGEST_PATTERN:
        expected, got = f"at most {LONGEST_PATTERN} characters", f"{len(patterns)}"
        raise InvalidInput("arms", expected, got, "Use a pattern such as x[*].")
    known, sense = form.get("known") or None, form.get("sense") or None
    try:
        return {"type": "Model", **settings(model, patterns.split(), known, sense)}
    except InvalidInput as error:
        if error.argument != "known":
            raise
        got, hint = str(error.got).removeprefix("None, and "), "Choose one of the options."
        raise InvalidInput("known", "a choice, because arms have costs", got, hint) from None


def noted(form: Form, error: InvalidInput) -> None:
    """Record an error for the field of the page that it names, or for the whole page."""
    found = next(name for name in FIELDS if name in error.argument.split(".") or not name)
    form.errors.setdefault(found, error_text(error))


# ---------------------------------------------------------------- what was understood


def model_view(uploaded: UploadedModel) -> ModelView:
    """Return a model whose arms are not chosen yet."""
    model = uploaded.content
    whole, costs = sum(map(bool, model.integer)), sum(cost != 0 for cost in model.cost)
    facts = [
        f"{counted(len(model.names), 'column')}, {whole} of them whole numbers",
        counted(len(model.low), "row"),
        f"costs of {counted(costs, 'column')} in the file",
    ]
    if model.constant:
        facts.append(f"a constant of {_number(model.constant)}")
    return ModelView(uploaded.name, uploaded.text, facts, model.sense, _groups(model))


def understood(uploaded: UploadedModel, plain: dict[str, Any], made: Model) -> ModelView:
    """Return a model with its arms, known costs and constraints, as a page shows them."""
    model, places = uploaded.content, plain["arms"]
    least = [max(lower or 0.0, 0.0) for lower in plain["columns"]["lower"]]
    cost = plain["columns"]["cost"]
    arms = [
        [name, _number(least[place]), f"{most}", _cost(cost[place])]
        for name, place, most in zip(made.names, places, made.n.tolist(), strict=True)
    ]
    columns = ["arm", "least units", "most units", "known cost of a unit"]
    texts = [_sentence(model, row, terms) for row, terms in enumerate(_terms(model)[:MOST_SHOWN])]
    names = [*model.rows][: len(texts)]
    return model_view(uploaded)._replace(
        sense=made.sense,
        arms=Table("", columns, arms),
        helpers=_helpers(model, {*places}, cost),
        constraints=[*zip(names, texts, strict=True)],
        more=len(model.low) - len(texts),
    )


def _groups(model: ImportedModel) -> Table:
    """Return the columns by the beginning of their names."""
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(model.names):
        found = GROUP.match(name)
        groups.setdefault(found[0] if found else name, []).append(place)
    rows = []
    for start, places in groups.items():
        first = model.names[places[0]]
        whole = sum(bool(model.integer[place]) for place in places)
        kind = "whole numbers" if whole == len(places) else "continuous" if not whole else "both"
        costs = sum(model.cost[place] != 0 for place in places)
        pattern = _pattern(start, [model.names[place] for place in places])
        rows.append([pattern, str(len(places)), kind, str(costs), shortened(first)])
    more = len(rows) - MOST_PATTERNS
    note = f"And {counted(more, 'more group')}." if more > 0 else ""
    columns = ["pattern", "columns", "kind", "with a cost", "the first one"]
    return Table("", columns, rows[:MOST_PATTERNS], note, labels=1)


def _pattern(start: str, names: Sequence[str]) -> str:
    """Return a pattern of names that begin alike."""
    if len(names) == 1:
        return shortened(names[0])
    last = {name[-1] for name in names}
    end = last.pop() if len(last) == 1 else ""
    return f"{start}*{end if end in '])}' else ''}"


def _helpers(model: ImportedModel, arms: set[int], cost: Sequence[float]) -> Table:
    """Return the columns that are no arms, those with a known cost first."""
    others = [place for place in range(len(model.names)) if place not in arms]
    others.sort(key=lambda place: cost[place] == 0)
    rows = [
        [
            shortened(model.names[place]),
            _bound(model.lower[place], "no limit"),
            _bound(model.upper[place], "no limit"),
            "yes" if model.integer[place] else "no",
            _cost(cost[place]),
        ]
        for place in others[:MOST_SHOWN]
    ]
    more = len(others) - len(rows)
    note = f"And {counted(more, 'more column')}." if more > 0 else ""
    columns = ["column", "least", "most", "whole numbers", "known cost of a unit"]
    return Table("", columns, rows, note)


def _terms(model: ImportedModel) -> list[list[tuple[str, float]]]:
    """Return the columns and coefficients of each row."""
    rows: list[list[tuple[str, float]]] = [[] for _ in model.low]
    for row, column, value in model.entries:
        if value != 0:
            rows[row].append((shortened(model.names[column]), value))
    return rows


def _sentence(model: ImportedModel, row: int, terms: Sequence[tuple[str, float]]) -> str:
    """Return a row in words; with 0 on the right, columns that are subtracted are there instead."""
    low, high = _finite(model.low[row]), _finite(model.high[row])
    if low is None and high is None:
        return f"{_sum(terms)} has no limit"
    if low is not None and high is not None and low != high:
        return f"{_sum(terms)} is from {_number(low)} to {_number(high)}"
    verb = "is at least" if high is None else "is at most" if low is None else "equals"
    limit = low if high is None else high
    left = [one for one in terms if one[1] > 0]
    right = [(name, -value) for name, value in terms if value < 0]
    if limit == 0 and left and right:
        return f"{_sum(left)} {verb} {_sum(right)}"
    return f"{_sum(terms)} {verb} {_number(limit or 0.0)}"


def _sum(terms: Sequence[tuple[str, float]]) -> str:
    """Return a sum of columns as text.

    Examples
    --------
    >>> _sum([("a", 1.0), ("b", -2.0), ("c", 0.5)])
    'a - 2 b + 0.5 c'
    """
    text = ""
    for name, value in terms[:MOST_TERMS]:
        sign = (" - " if value < 0 else " + ") if text else "-" if value < 0 else ""
        factor = "" if abs(value) == 1 else f"{_number(abs(value))} "
        text += f"{sign}{factor}{name}"
    more = len(terms) - MOST_TERMS
    return f"{text} and {counted(more, 'more term')}" if more > 0 else text or "0"


def _finite(value: float | None) -> float | None:
    return None if value is None or abs(value) == float("inf") else value


def _bound(value: float | None, missing: str) -> str:
    found = _finite(value)
    return missing if found is None else _number(found)


def _number(value: float) -> str:
    return f"{value:.12g}"


def _cost(value: float) -> str:
    return _number(value) if value else "none"
