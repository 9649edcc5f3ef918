"""Promises for pages: what is used and expected, prices as drawings, and the form of a promise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from multiplay._support.words import Words, money_text
from multiplay.constraints.promise import PROMISES
from multiplay.errors import InvalidInput
from multiplay.learner.promises import PromiseReport
from multiplay.service.pages.forms import (
    Form,
    a_number,
    a_whole_number,
    error_text,
    named_numbers,
)
from multiplay.service.pages.savings import CostLines, cost_lines
from multiplay.storage import Entry
from multiplay.studies import Study, entry_codec
from multiplay.studies.study import PromiseCurve, promise_curves

HOLDS = {
    "sure": "Yes: plans for all {rounds} to come keep it, whatever is learned.",
    "likely": "Probably. It is not sure, because the sets of the {rounds} to come are not known.",
    "likely, soft": "Probably. It is not sure, because only its price changes the plans.",
    "no longer sure": "It is no longer sure: no plans for the {rounds} to come were found that "
    "keep it.",
}
KINDS = {name: promise.kind for name, promise in PROMISES.items()}
FIELDS = ("name", "limit", "of", "until", "plays", "hard")  # of the form, after PREFIX
PREFIX = "promise-"  # other forms of the page have fields of the same names


class PromiseView(NamedTuple):
    """A promise: how it stands as text, and drawings of what is used and of its price."""

    name: str
    title: str
    line: str
    holds: str
    good: bool
    used: CostLines | None
    prices: CostLines | None


def promise_views(study: Study, recent: Sequence[Entry]) -> list[PromiseView]:
    """Return all promises of a study, with its last plays."""
    curves, words = promise_curves(study, recent), study.words
    return [_view(row, curves[row.name], words) for row in study.promise_reports()]


def _view(row: PromiseReport, curve: PromiseCurve, words: Words) -> PromiseView:
    limit = f"{row.kind} {money_text(row.limit)}"
    until = "" if row.until is None else f" until {row.until}"
    line = f"{money_text(row.used)} is used."
    if row.left_plays:
        ends = f" ({words.ends(row.low, row.high)})" if row.low < row.high else ""
        line = (
            f"{line} {money_text(row.expected_end)} is expected at the end{ends}, after "
            f"{words.rounds(row.left_plays)} more. Its price is now {words.money(row.price)} "
            "for a unit of it."
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
    holds = row.holds if row.hard or row.holds != "likely" else "likely, soft"
    return HOLDS.get(holds, f"{row.holds[:1].upper()}{row.holds[1:]}.").format(rounds=rounds)


def _used(row: PromiseReport, curve: PromiseCurve, days: list[str]) -> CostLines | None:
    """Return the line of what is used, up to the expected end, beside the straight line."""
    done = row.plays - row.left_plays
    ahead = np.arange(1, row.left_plays + 1) / max(row.left_plays, 1)
    used = np.concatenate([curve.used, row.used + ahead * (row.expected_end - row.used)])
    straight = np.arange(done - len(days) + 1, row.plays + 1) * row.limit / row.plays
    doubt = np.concatenate([np.zeros(len(days)), ahead * (row.high - row.low) / 2])
    labels = days + [row.until or "end"] * row.left_plays
    if len(straight) != len(used):  # more plays than it was made for
        straight = np.full(len(used), row.limit)
    return cost_lines(labels, used, straight, doubt)


# ---------------------------------------------------------------- the form of a promise


def can_promise(study: Study) -> bool:
    """Return whether a page offers the form: not with features, an allowance, or costly changes."""
    return study.features is None and study.baseline is None and study.change is None


def promise_of_form(form: Form) -> dict[str, Any]:
    """Return the promise of a form as plain data; errors are recorded in the form."""
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


def note_promise(form: Form, error: InvalidInput) -> None:
    """Record an error of a promise for the field that it names, or for the whole form."""
    argument = error.argument.removeprefix("promise.")
    named = [name for name in FIELDS if argument.startswith(name)]
    form.errors.setdefault(PREFIX + named[0] if named else "", error_text(error))
