"""Savings and allowance for pages: rules of forms, results as text, and drawings of both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from multiplay._support.formatting import Table, left_out, percent, plural
from multiplay._support.words import Words, money_text, noun_of
from multiplay.actions.rules import FixedPlan, InProportion, PriceList, Rule
from multiplay.constraints import Baseline, Constraint
from multiplay.errors import InvalidInput
from multiplay.learner.allowance import BaselineReport
from multiplay.learner.constraints import ConstraintReport
from multiplay.savings import Savings
from multiplay.service.pages import bills
from multiplay.service.pages.forms import Form, a_number, as_lines, as_typed, error_text
from multiplay.storage import Entry
from multiplay.studies import Study, entry_codec
from multiplay.studies.study import allowance_curve
from multiplay.types import FloatArray

WIDTH, HEIGHT = 360.0, 150.0  # as wide as a phone: text keeps its size there
TOP, BOTTOM, RIGHT = 8.0, 20.0, 6.0  # margins; the left one has the labels of the axis
CHARACTER = 6.4  # width of a character of a label
MOST_WEEKS = 53  # bars: more are not legible
MOST_POINTS = 200  # of a line
MOST_LABELS = 5  # below the bars
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MARKS = 4  # of an axis, about
LONGEST_LABEL = 8  # characters
MOST_ARMS = 50  # rows of what a saving rests on


NO_RULE, IN_PROPORTION, PRICES, FIXED = "", "proportion", "prices", "fixed"
RULES = {
    NO_RULE: "no rule",
    IN_PROPORTION: "in proportion to supply and demand",
    PRICES: "the cheapest plan by a price list",
    FIXED: "always the same plan",
}

BASELINES = RULES | {NO_RULE: "no baseline"}
FIELDS = ("allowance", "sure", "rule")  # of the form of a new study


# ---------------------------------------------------------------- rules of forms


def rule_of_form(form: Form, arms: Sequence[str]) -> Rule | None:
    """Return the rule that a form has chosen; None for no rule, or after recording errors.

    Examples
    --------
    >>> rule_of_form(Form({"rule": "fixed", "rows": "Lyon->north 2"}), ["Lyon->north"])
    FixedPlan(units={'Lyon->north': 2}, nearest=True)
    """
    kind = form.get("rule")
    if kind not in RULES:
        form.errors["rule"] = "Choose one of the options."
    if kind not in (PRICES, FIXED):
        return InProportion() if kind == IN_PROPORTION else None
    what = "price" if kind == PRICES else "number of units"
    if not bills.has_rows(form):
        form.errors[bills.ROWS] = f"Enter one row for each name, with its {what}."
        return None
    read = bills.of_form(form, arms, None, "Check the spelling.")
    place = bills.FILE if bills.FILE in form.files else bills.ROWS
    with form.noting(place):
        for arm, numbers in ({} if read is None else read.costs).items():
            if len(numbers) != 1 or numbers[0] is None:
                hint = "Write one row for each name."
                raise InvalidInput(place, f"one {what} for {arm}", f"{len(numbers)}", hint)
    if read is None or form.errors:
        return None
    found = {arm: number for arm, (number,) in read.costs.items() if number is not None}
    with form.noting(place):
        if kind == PRICES:
            return PriceList(found)
        whole = {arm: int(k) if k == int(k) else k for arm, k in found.items()}
        return FixedPlan(whole, nearest=True)  # type: ignore[arg-type]  # it checks them
    return None


def baseline_of_form(form: Form, arms: Sequence[str]) -> list[Constraint]:
    """Return the baseline of a new study; empty for none, or after errors.

    Examples
    --------
    >>> baseline_of_form(Form({"rule": "proportion", "allowance": "2,5", "sure": "99"}), [])
    [Baseline(rule=InProportion(), allowance=0.025, sure=0.99, per=None)]
    """
    rule = rule_of_form(form, arms) if form.get("rule") else None
    if rule is None:
        return []
    found = dict[str, float]()
    for name in ("allowance", "sure"):
        with form.noting(name):
            found[name] = a_number(name, form.get(name)) / 100
    if form.errors:
        return []
    return [Baseline(rule, **found, per="week" if form.get("per") else None)]


# ---------------------------------------------------------------- drawings


class Mark(NamedTuple):
    """A label of an axis, its place, and which of its ends is there."""

    at: float
    text: str
    anchor: str = "end"


class WeekBar(NamedTuple):
    """A bar from 0 to what was saved in a week, and its interval, as places."""

    x: float
    width: float
    y: float
    height: float
    middle: float
    low: float
    high: float
    loss: bool
    text: str


class WeekBars(NamedTuple):
    """A drawing of what was saved, with a bar for each week."""

    width: float
    height: float
    left: float
    zero: float
    bars: list[WeekBar]
    marks: list[Mark]
    labels: list[Mark]
    left_out: int


class CostLines(NamedTuple):
    """A drawing of cumulative costs: of the plans, and of the most that is permitted."""

    width: float
    height: float
    left: float
    zero: float
    plan: str
    most: str
    doubt: str
    marks: list[Mark]
    labels: list[Mark]


def week_bars(weeks: Sequence[tuple[str, float, float, float]]) -> WeekBars | None:
    """Return bars for weeks: their names, what was saved, and the ends of its interval.

    Only the last ``MOST_WEEKS`` weeks are drawn. None without weeks.

    Examples
    --------
    >>> drawn = week_bars([("2026-11-02", -20.0, -60.0, 20.0), ("2026-11-09", 80.0, 40.0, 120.0)])
    >>> [bar.loss for bar in drawn.bars], [mark.text for mark in drawn.marks]
    ([True, False], ['-100', '-50', '0', '50', '100', '150'])
    >>> drawn.bars[1].y + drawn.bars[1].height == drawn.zero == drawn.bars[0].y
    True
    """
    shown = weeks[-MOST_WEEKS:]
    if not shown:
        return None
    axis = _Axis([0.0, *(value for _, *values in shown for value in values)])
    step = (WIDTH - RIGHT - axis.left) / len(shown)
    wide = round(min(0.7 * step, 26.0), 1)
    bars = []
    for place, (name, saved, low, high) in enumerate(shown):
        middle = round(axis.left + (place + 0.5) * step, 1)
        ends = sorted((axis.place(0.0), axis.place(saved)))
        height = round(ends[1] - ends[0], 1)
        text = f"{name}: {money_text(saved)}, {money_text(low)} to {money_text(high)}"
        bars.append(
            WeekBar(
                x=round(middle - wide / 2, 1),
                width=wide,
                y=ends[0],
                height=height,
                middle=middle,
                low=axis.place(low),
                high=axis.place(high),
                loss=saved < 0,
                text=text,
            )
        )
    every = -(-len(shown) // MOST_LABELS)
    labels = [
        Mark(bar.middle, _short(shown[place][0]), "middle") for place, bar in enumerate(bars)
    ][::every]
    left_out = len(weeks) - len(shown)
    return WeekBars(WIDTH, HEIGHT, axis.left, axis.place(0.0), bars, axis.marks, labels, left_out)


def cost_lines(
    days: Sequence[str], plan: FloatArray, most: FloatArray, doubt: FloatArray
) -> CostLines | None:
    """Return lines of cumulative costs: of the plans, and of the most that is permitted.

    ``doubt`` is the half width of the interval of the difference between the two, which is drawn
    around the line of the plans. None for fewer than two days.

    Examples
    --------
    >>> two = np.array([100.0, 210.0]), np.array([103.0, 206.0]), np.array([5.0, 8.0])
    >>> drawn = cost_lines(["2026-11-02", "2026-11-03"], *two)
    >>> drawn.plan.split()[0] > drawn.most.split()[0], [label.text for label in drawn.labels]
    (True, ['11-02', '11-03'])
    """
    if len(days) < 2:
        return None
    kept = np.unique(np.linspace(0, len(days) - 1, min(len(days), MOST_POINTS)).round().astype(int))
    plan, most, doubt = plan[kept], most[kept], doubt[kept]
    low, high = plan - doubt, plan + doubt
    axis = _Axis([0.0, *low.tolist(), *high.tolist(), *most.tolist()])
    across = np.linspace(axis.left, WIDTH - RIGHT, len(kept))

    def path(values: FloatArray, x: FloatArray = across) -> str:
        places = zip(x.tolist(), values.tolist(), strict=True)
        return " ".join(f"{a:.1f},{axis.place(b):.1f}" for a, b in places)

    around = f"{path(high)} {path(low[::-1], across[::-1])}"
    ends = [
        Mark(round(float(across[at]), 1), _short(days[kept[at]]), anchor)
        for at, anchor in ((0, "start"), (-1, "end"))
    ]
    lines = path(plan), path(most), around
    return CostLines(WIDTH, HEIGHT, axis.left, axis.place(0.0), *lines, axis.marks, ends)


def _short(name: str) -> str:
    """Return the name of a week or day as a label: the day of a date, or the last word.

    Examples
    --------
    >>> _short("2026-11-02"), _short("plays 8 to 14"), _short("Monday")
    ('11-02', '14', 'Monday')
    """
    last = name.rpartition(" ")[2]
    return last[5:] if re.fullmatch(r"\d{4}-\d\d-\d\d", last) else last[-LONGEST_LABEL:]


class _Axis:
    """A vertical axis that has some values, with round numbers as its marks."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        rough = (high - low or 1.0) / MARKS
        size = 10.0 ** np.floor(np.log10(rough))
        step = size * next(one for one in STEPS if one * size >= rough * 0.999)
        first = np.floor(low / step)
        last = max(np.ceil(high / step), first + 1)
        self._low, self._high = first * step, last * step
        numbers = [float(k * step) for k in np.arange(first, last + 1)]
        texts = [money_text(one) for one in numbers]
        self.left = round(max(map(len, texts)) * CHARACTER + 8, 1)
        self.marks = [Mark(self.place(n), text) for n, text in zip(numbers, texts, strict=True)]

    def place(self, value: float) -> float:
        """Return the height of a value in the drawing."""
        share = (value - self._low) / (self._high - self._low)
        return round(float(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)), 1)


# ---------------------------------------------------------------- what was saved


class SavedView(NamedTuple):
    """What the plans saved, as text and as a drawing of its weeks; or why it is not known."""

    line: str
    remarks: Sequence[str] = ()
    bars: WeekBars | None = None
    weeks: Table | None = None
    rests_on: Table | None = None


class ComparisonPage(NamedTuple):
    """The page of the savings of a study.

    Attributes
    ----------
    words : Words
        The words of the study.
    noun : str
        Cost or reward.
    rule : str
        The rule in a few words; "" if none is named.
    chosen : str
        Its choice in the form.
    rows : str
        Its prices or units, as they are typed.
    saved : SavedView or None
        What the plans saved against it.
    learning : str
        The cost of learning as a sentence; "" if it is not known.
    """

    words: Words
    noun: str
    rule: str
    chosen: str
    rows: str
    saved: SavedView | None
    learning: str


def saved_view(saved: Savings) -> SavedView:
    """Return what was saved for a page.

    Examples
    --------
    >>> from multiplay.savings import WeekSavings
    >>> week = WeekSavings("2026-11-02", 5, 120.0, 90.0, 150.0)
    >>> view = saved_view(Savings(120.0, 90.0, 150.0, 0.1, (week,), days=5))
    >>> view.line[:10], view.weeks.rows
    ('Saved 120,', [['2026-11-02', '5', '120', '90 to 150']])
    """
    words, ends = saved.words, f"{percent(saved.level)} interval"
    did = "saved" if saved.sense == "min" else "gained"
    columns = ["week", plural(words.round), words.in_currency(did), ends]
    weeks = [
        [one.week, f"{one.days}", money_text(one.saved), words.ends(one.low, one.high)]
        for one in saved.by_week
    ]
    units = plural(words.unit)
    known = [words.arm, f"rule's {units}", f"{units} of plans", "bills", "last bill"]
    arms = [
        [one.arm, f"{one.rule_units}", f"{one.played_units}", f"{one.bills}", one.last_seen]
        for one in saved.evidence[:MOST_ARMS]
    ]
    note = left_out(len(saved.evidence) - len(arms), plural(words.arm))
    return SavedView(
        _capital(saved.sentence),
        saved.remarks,
        week_bars([(one.week, one.saved, one.low, one.high) for one in saved.by_week]),
        Table("", columns, weeks),
        Table("", known, arms, note),
    )


def saved_or_reason(study: Study) -> SavedView | None:
    """Return what was saved against the named rule, or why it is not known; None without one."""
    if study.versus is None:
        return None
    try:
        return saved_view(study.savings())
    except InvalidInput as error:
        return SavedView(f"What the plans saved is not known: {error_text(error)}")


def comparison(study: Study) -> ComparisonPage:
    """Return the page of the savings of a study."""
    rule, words = study.versus, study.words
    try:
        learning = _capital(study.cost_of_learning().sentence)
    except InvalidInput:
        learning = ""
    noun = noun_of(study.actions.sense)
    text = "" if rule is None else rule.text
    saved = saved_or_reason(study)
    return ComparisonPage(words, noun, text, *_typed(rule), saved, learning)


def _typed(rule: Rule | None) -> tuple[str, str]:
    """Return the choice of a rule in the form, and its rows."""
    if isinstance(rule, PriceList):
        return PRICES, "\n".join(f"{arm} {as_typed(price)}" for arm, price in rule.prices.items())
    if isinstance(rule, FixedPlan):
        return FIXED, as_lines([*rule.units], [*rule.units.values()])
    return NO_RULE if rule is None else IN_PROPORTION, ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---------------------------------------------------------------- the allowance


class AllowanceView(NamedTuple):
    """The allowance of a study: its rule, what is left, and the drawing of the last plays."""

    rule: str
    line: str
    lines: CostLines | None


def allowance_view(
    study: Study, rows: Sequence[ConstraintReport], recent: Sequence[Entry]
) -> AllowanceView | None:
    """Return the allowance of a study, with its last plays; None without a baseline."""
    used = next((one for one in rows if isinstance(one, BaselineReport)), None)
    words = study.words
    if used is None:
        return None
    curve = allowance_curve(study, recent)
    days = [entry_codec.shown_key(entry.labels) or f"{entry.labels.play}" for entry in recent]
    drawn = None if curve is None else cost_lines(days, *curve)
    line = (
        f"The plans may cost {words.money(used.left)} more than the baseline from now on; "
        f"{words.money(used.sure_of)} of it for sure. So far they are expected to have cost "
        f"{_more(used.spent, words)} than the baseline. The allowance restricted "
        f"{used.restricted} of {words.rounds(used.days)}."
    )
    return AllowanceView(used.constraint.text, line, drawn)


def _more(amount: float, words: Words) -> str:
    return f"{words.money(abs(amount))} {'more' if amount > 0 else 'less'}"
