"""Promises for pages: what is used and expected, and the price of every play, as drawings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multiplay._support.words import Words, money_text
from multiplay.learner.promises import PromiseReport
from multiplay.service.pages.savings import CostLines, cost_lines
from multiplay.storage import Entry
from multiplay.studies import Study, entry_codec
from multiplay.studies.study import PromiseCurve, promise_curves

HOLDS = {
    "sure": "Yes: plans for all {rounds} to come keep it, whatever is learned.",
    "likely": "Probably: the sets of the {rounds} to come are not known, or it is not hard.",
    "no longer sure": "It is no longer sure: no plans for the {rounds} to come were found that "
    "keep it.",
}


class PromiseView(NamedTuple):
    """A promise: how it stands as text, and drawings of what is used and of its price."""

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
    return HOLDS.get(row.holds, f"{row.holds[:1].upper()}{row.holds[1:]}.").format(rounds=rounds)


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
