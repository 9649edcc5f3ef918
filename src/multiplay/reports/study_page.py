"""HTML page about a study, in one file: its facts, figures and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.formatting import abbreviated, legible, minute
from multiplay.errors import InvalidInput
from multiplay.reports import study_text
from multiplay.reports.page import html_table, whole_page
from multiplay.reports.study import StudyFacts
from multiplay.results.svg import WIDTH, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 500  # of a table
MOST_ARMS = 20  # in the figure
LONGEST_NAME = 24  # characters there
HEIGHT = 3.2  # inches of a figure
LINE = 0.24  # inches of an arm in its figure
SMALL = 9  # points of text


def study_report(facts: StudyFacts, store: str | None = None) -> str:
    """Return the page of a study: the content of ``multiplay study show``, with figures.

    ``store`` is the option --store of the commands on it, if needed.
    """
    return whole_page(f"multiplay: study {facts.name}", "".join(_parts(facts, store)))


def _parts(facts: StudyFacts, store: str | None) -> Iterator[str]:
    for line in [*study_text.head(facts), f"In {facts.store}, on {minute(facts.now)} UTC"]:
        yield f"<p>{escape(line)}.</p>\n"
    yield '<div class="figures">\n'
    yield from _figures(facts)
    yield "</div>\n<ul>\n"
    for name, said in study_text.outcomes(facts).items():
        yield f"<li><b>{escape(name)}</b>: {escape(said)}</li>\n"
    yield "</ul>\n"
    for note in study_text.notes(facts):
        yield f'<p class="note">{escape(note)}</p>\n'
    if no_alarm := study_text.no_alarm(facts):
        yield f"<p>{escape(no_alarm)}</p>\n"
    yield "<h3>Next steps</h3>\n"
    for step in study_text.next_steps(facts, store):
        yield f"<p>{escape(step.why)}</p>\n<pre><code>{escape(step.command)}</code></pre>\n"
    yield html_table(facts.pending_table(MOST_ROWS))
    yield html_table(study_text.alarms_table(facts, MOST_ROWS))
    yield html_table(facts.arms_table(MOST_ROWS))
    yield html_table(study_text.last_plays_table(facts))


# ---------------------------------------------------------------- figures


def _figures(facts: StudyFacts) -> Iterator[str]:
    noun = study_text.wording(facts).noun
    if facts.curve.known:
        said = "; ".join(f"{name}: {text}" for name, text in study_text.outcomes(facts).items())
        label = f"{noun.capitalize()} per {facts.words.round}. {said}."
        yield _figure(svg(partial(draw_rounds, facts), "rounds-", label), _caption(facts))
    shown = facts.most_played(MOST_ARMS)
    words, of = facts.words, study_text.level(facts)
    many = f" The {len(shown)} of {words.arms(len(facts.arms))} that are in most plans."
    caption = f"Mean and {of} interval of the {noun} of a {words.unit}, by {words.arm}."
    caption += many if len(shown) < len(facts.arms) else ""
    yield _figure(svg(partial(draw_arms, facts), "arms-", caption), caption)


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>\n"


def _caption(facts: StudyFacts) -> str:
    together = facts.curve.stretches()[0].last
    words = facts.words
    some = f"each {words.round}" if together == 1 else words.rounds(together)
    dots = f"One dot for {some}"
    return f"{dots}, in the order in which they were asked."


def draw_rounds(facts: StudyFacts) -> Figure:
    """Draw the costs of rounds, the trend, the expected costs, and those of the best plan."""
    from multiplay.results.plots import COLOURS

    figure, ax = _axes(HEIGHT)
    stretches = facts.curve.stretches()
    at = np.array([(one.first + one.last) / 2 for one in stretches])
    realised, expected = (
        np.array([getattr(one.average, name) for one in stretches])
        for name in ("realised", "expected")
    )
    blue, orange, green, _, _, light = COLOURS[:6]
    noun = study_text.wording(facts).noun
    ax.plot(at, realised, ".", ms=4, color=light, label=noun)
    if facts.curve.change() is not None:
        ax.plot(at, facts.curve.trend(), color=blue, lw=1.8, label="trend")
    if not np.isnan(expected).all():
        known = ~np.isnan(expected)
        marker = "_" if known.sum() == 1 else ""
        look: Any = {"color": orange, "ls": "--", "lw": 1.2, "marker": marker}
        ax.plot(at[known], expected[known], label="expected", **look)
    if not isinstance(facts.best, InvalidInput):
        total, low, high = facts.best.expected
        ax.axhline(total, color=green, lw=1.4, ls=(0, (1, 1)), label="best plan")
        if np.isfinite([low, high]).all():
            ax.axhspan(low, high, color=green, alpha=0.12, lw=0)
    ax.set_xlim(0.5, facts.curve.rounds + 0.5)
    ax.set_xlabel(facts.words.round)
    ax.set_ylabel(facts.words.in_currency(f"{noun} per {facts.words.round}"))
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=SMALL)
    return figure


def draw_arms(facts: StudyFacts) -> Figure:
    """Draw the mean of every arm with its interval; without a dot where no unit was seen."""
    from multiplay.results.plots import COLOURS

    shown = facts.most_played(MOST_ARMS)
    figure, ax = _axes(0.9 + LINE * max(len(shown), 4))
    places = np.arange(len(shown))
    ax.hlines(places, shown["low"], shown["high"], color=COLOURS[5], lw=2.2)
    ax.plot(shown["mean"], places, "o", ms=5, color=COLOURS[0])
    names = abbreviated([legible(name) for name in shown["arm"]], LONGEST_NAME)
    ax.set_yticks(places, names)
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
    ax.set_ylim(max(len(shown), 4) - 0.5, -0.5)
    noun, words = study_text.wording(facts).noun, facts.words
    ax.set_xlabel(words.in_currency(f"{noun} of a {words.unit}"))
    return figure


def _axes(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    ax = figure.add_subplot()
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL)
    return figure, ax
