"""Constraints for pages: what is used and expected, prices as drawings, and their forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.words import Words, money_text
from multiplay.constraints.promise import PROMISES
from multiplay.errors import InvalidInput
from multiplay.learner.constraints import ConstraintReport
from multiplay.learner.promises import PromiseReport
from multiplay.learner.switching import SwitchingReport
from multiplay.reports.study_text import constraint_report_text
from multiplay.service.pages.drawings import CostLines, cost_lines
from multiplay.service.pages.forms import (
    Form,
    a_number,
    a_whole_number,
    error_text,
    named_numbers,
)
from multiplay.service.pages.savings import AllowanceView, allowance_view
from multiplay.storage import Entry
from multiplay.studies import Study, entry_codec
from multiplay.studies.study import PromiseCurve, promise_curves

HOLDS = {
    "sure": "Yes: plans for all {rounds} to come keep it, whatever is learned.",
    "likely": "Probably. It is not sure, because the sets of the {rounds} to come are not known.",
    "likely, soft": "Probably. It is not sure, because plans only count a cost for it.",
    "no longer sure": "It is no longer sure: no plans for the {rounds} to come were found that "
    "keep it.",
}
KINDS = {name: promise.kind for name, promise in PROMISES.items()}
FIELDS = ("name", "limit", "of", "until", "plays", "hard")  # of a promise, after PREFIX
PREFIX = "promise-"  # other forms of the page have fields of the same names
PLACES = {name: PREFIX + name for name in FIELDS} | {"cost": "switching-cost"}
PLACES |= {name: f"baseline-{name}" for name in ("allowance", "sure")}
TYPE = "constraint-type"


class PromiseView(NamedTuple):
    """A promise: how it stands as text, and drawings of what is used and of its price."""

    name: str
    title: str
    line: str
    holds: str
    good: bool
    used: CostLines | None
    prices: CostLines | None


class ConstraintsTab(NamedTuple):
    """The page of all constraints of a study."""

    allowance: AllowanceView | None
    promises: list[PromiseView]
    switching: str


def constraints_tab(study: Study, recent: Sequence[Entry]) -> ConstraintsTab:
    """Return all constraints of a study, with its last plays."""
    rows = study.constraints()
    return ConstraintsTab(
        allowance_view(study, rows, recent),
        promise_views(study, rows, recent),
        switching_text(rows, study.words),
    )


def promise_views(
    study: Study, rows: Sequence[ConstraintReport], recent: Sequence[Entry]
) -> list[PromiseView]:
    """Return all promises of a study, with its last plays."""
    curves, words = promise_curves(study, recent), study.words
    promises = (row for row in rows if isinstance(row, PromiseReport))
    return [_view(row, curves[row.name], words) for row in promises]


def switching_text(rows: Sequence[ConstraintReport], words: Words) -> str:
    """Return what changes of the plans cost, and have cost; "" if they cost nothing."""
    texts = [constraint_report_text(row, words) for row in rows if isinstance(row, SwitchingReport)]
    return "".join(text[:1].upper() + text[1:] for text in texts)


def _view(row: PromiseReport, curve: PromiseCurve, words: Words) -> PromiseView:
    until = "" if row.constraint.until is None else f" until {row.constraint.until}"
    limit = f"{row.constraint.kind} {money_text(row.constraint.limit)}"
    line = f"{money_text(row.used)} is used."
    if row.left_plays:
        ends = f" ({words.ends(row.low, row.high)})" if row.low < row.high else ""
        line = (
            f"{line} {money_text(row.expected_end)} is expected at the end{ends}, after "
            f"{words.rounds(row.left_plays)} more. Plans now count "
            f"{words.money(row.price)} for a unit of it."
        )
    days = [entry_codec.shown_key(one.labels) or f"{one.labels.play}" for one in curve.asked]
    nothing = np.zeros(len(days))
    prices = cost_lines(days, curve.prices, nothing, nothing) if curve.prices.any() else None
    return PromiseView(
        row.name,
        f"{row.name}: {limit}{until}",
        line,
        _holds(row, words),
        row.holds in ("sure", "likely"),
        _used(row, curve, days),
        None if prices is None else prices._replace(most="", doubt=""),
    )


def _holds(row: PromiseReport, words: Words) -> str:
    """Return whether a promise holds, as a sentence."""
    if not row.left_plays:
        return "It was kept." if row.holds == "sure" else "It was not kept."
    rounds = words.rounds(2).split(" ", 1)[1]
    holds = row.holds if row.constraint.hard or row.holds != "likely" else "likely, soft"
    return HOLDS.get(holds, f"{row.holds[:1].upper()}{row.holds[1:]}.").format(rounds=rounds)


def _used(row: PromiseReport, curve: PromiseCurve, days: list[str]) -> CostLines | None:
    """Return the line of what is used, up to the expected end, and the straight line."""
    promise = row.constraint
    done = promise.plays - row.left_plays
    ahead = np.arange(1, row.left_plays + 1) / max(row.left_plays, 1)
    used = np.concatenate([curve.used, row.used + ahead * (row.expected_end - row.used)])
    straight = np.arange(done - len(days) + 1, promise.plays + 1) * promise.limit / promise.plays
    doubt = np.concatenate([np.zeros(len(days)), ahead * (row.high - row.low) / 2])
    labels = days + [promise.until or "end"] * row.left_plays
    if len(straight) != len(used):  # more plays than it was made for
        straight = np.full(len(used), promise.limit)
    return cost_lines(labels, used, straight, doubt)


# ---------------------------------------------------------------- forms


def constraint_of_form(form: Form) -> dict[str, Any]:
    """Return the constraint of a form as plain data; errors are recorded in the form."""
    kind = form.get(TYPE)
    if kind == "SwitchingCost":
        return {"type": kind, "cost": _number(form, "switching-cost")}
    if kind == "Baseline":
        share, sure = (_number(form, f"baseline-{name}") for name in ("allowance", "sure"))
        per = "week" if form.get("baseline-per") else None
        plain = {"type": kind, "rule": {"type": "InProportion"}, "per": per}
        return plain | {"allowance": share / 100, "sure": sure / 100}
    return _promise_of_form(form)


def _number(form: Form, name: str) -> float:
    with form.noting(name):
        return a_number(name, form.get(name))
    return 0.0


def _promise_of_form(form: Form) -> dict[str, Any]:
    typed = {name: form.get(f"{PREFIX}{name}").strip() for name in FIELDS}
    plain: dict[str, Any] = {
        "type": form.get(f"{PREFIX}type"),
        "name": typed["name"],
        "until": typed["until"] or None,
        "hard": bool(typed["hard"]),
    }
    if plain["type"] not in KINDS:
        form.errors[f"{PREFIX}type"] = "Choose one of the options."
    if not plain["name"]:
        form.errors[f"{PREFIX}name"] = "Enter a name, for example: CO2"
    for name, read in (("limit", a_number), ("plays", a_whole_number)):
        with form.noting(f"{PREFIX}{name}"):
            plain[name] = read(name, typed[name])
    with form.noting(f"{PREFIX}of"):
        lanes = typed["of"].replace(" → ", "->").replace("→", "->")  # as pages write them
        plain["of"] = named_numbers("of", lanes, whole=False, lanes=True)
    return plain


def note_constraint(form: Form, error: InvalidInput) -> None:
    """Record an error of a constraint for the field that it names, or for the whole form."""
    argument = error.argument.removeprefix("constraint.")
    named = [field for name, field in PLACES.items() if argument.startswith(name)]
    form.errors.setdefault(named[0] if named else "", error_text(error))
