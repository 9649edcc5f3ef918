"""Savings and allowance for pages: rules of forms, and results as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from multiplay._support.formatting import Table, left_out, percent, plural
from multiplay._support.words import Words, money_text
from multiplay.actions.rules import FixedPlan, InProportion, PriceList, Rule
from multiplay.constraints import Baseline, Constraint
from multiplay.errors import InvalidInput
from multiplay.learner.allowance import BaselineReport
from multiplay.learner.constraints import ConstraintReport
from multiplay.learner.past_plans import DRIVEN
from multiplay.savings import Savings
from multiplay.service.pages import bills
from multiplay.service.pages.drawings import CostLines, WeekBars, cost_lines, week_bars
from multiplay.service.pages.forms import Form, a_number, as_lines, as_typed, error_text
from multiplay.storage import Entry
from multiplay.studies import Study, entry_codec
from multiplay.studies.study import allowance_curve

MOST_ARMS = 50  # rows of what a saving rests on


NO_RULE, IN_PROPORTION, PRICES, FIXED = "", "proportion", "prices", "fixed"
RULES = {
    NO_RULE: "no rule",
    IN_PROPORTION: "in proportion to supply and demand",
    PRICES: "the cheapest plan by a price list",
    FIXED: "always the same plan",
}

PAST_DAYS = "the plans of imported days"
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


# ---------------------------------------------------------------- what was saved


class SavedView(NamedTuple):
    """What the plans saved, as text and as a drawing of its weeks; or why it is not known."""

    line: str
    remarks: Sequence[str] = ()
    bars: WeekBars | None = None
    weeks: Table | None = None
    rests_on: Table | None = None


class ComparisonPage(NamedTuple):
    """The page of the savings of a study, without what takes long to compute.

    Attributes
    ----------
    rule : str
        What plans are compared with, in a few words; "" for nothing.
    chosen : str
        The choice of the form.
    rows : str
        The prices or units of the rule, as they are typed.
    rules : dict
        The choices of the form.
    """

    rule: str
    chosen: str
    rows: str
    rules: dict[str, str]


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
        [_of_plans(one.week), f"{one.days}", money_text(one.saved), words.ends(one.low, one.high)]
        for one in saved.by_week
    ]
    units = plural(words.unit)
    known = [words.arm, f"rule's {units}", f"{units} of plans", "bills", "last bill"]
    arms = [
        [
            *(one.arm, f"{one.rule_units}", f"{one.played_units}", f"{one.bills}"),
            _of_plans(one.last_seen),
        ]
        for one in saved.evidence[:MOST_ARMS]
    ]
    note = left_out(len(saved.evidence) - len(arms), plural(words.arm))
    return SavedView(
        _capital(saved.sentence),
        saved.remarks,
        week_bars([(_of_plans(one.week), one.saved, one.low, one.high) for one in saved.by_week]),
        Table("", columns, weeks),
        Table("", known, arms, note),
    )


def _of_plans(label: str) -> str:
    """Return the name of a week or a bill in the words of pages.

    Examples
    --------
    >>> _of_plans("plays 8 to 14"), _of_plans("2026-11-02")
    ('plans 8 to 14', '2026-11-02')
    """
    return re.sub(r"^play(?=s? \d)", "plan", label)


def compared_with(study: Study) -> Rule | Literal["driven"] | None:
    """Return the named rule; without one, what was carried out on imported days, if there are any.

    None if there is nothing to compare with.
    """
    if study.versus is not None:
        return study.versus
    return DRIVEN if any(not one.retracted for one in study.imports()) else None


def compared_text(study: Study) -> str:
    """Return what plans are compared with in a few words; "" for nothing."""
    rule = compared_with(study)
    return rule.text if isinstance(rule, Rule) else PAST_DAYS if rule else ""


def saved_or_reason(study: Study) -> SavedView | None:
    """Return what was saved, or why it is not known; None where nothing is compared."""
    rule = compared_with(study)
    if rule is None:
        return None
    try:
        return saved_view(study.savings(rule))
    except InvalidInput as error:
        return SavedView(f"What the plans saved is not known: {error_text(error)}")


def saved_against_past(study: Study) -> SavedView | None:
    """Return what was saved against the plans of imported days; None if it is not known yet."""
    try:
        return saved_view(study.savings(DRIVEN))
    except InvalidInput:
        return None


def learning_text(study: Study) -> str:
    """Return the cost of learning as a sentence; "" if it is not known."""
    try:
        return _capital(study.cost_of_learning().sentence)
    except InvalidInput:
        return ""


def comparison(study: Study) -> ComparisonPage:
    """Return the page of the savings of a study, in a time that does not grow with its plays."""
    text, rules = compared_text(study), RULES
    if text == PAST_DAYS:
        rules = RULES | {NO_RULE: PAST_DAYS}
    return ComparisonPage(text, *_typed(study.versus), rules)


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
        f"{_more(used.spent, words)} than the baseline. It changed the "
        f"plans of {used.restricted} of {words.rounds(used.days)}."
    )
    return AllowanceView(used.constraint.text, line, drawn)


def _more(amount: float, words: Words) -> str:
    return f"{words.money(abs(amount))} {'more' if amount > 0 else 'less'}"
