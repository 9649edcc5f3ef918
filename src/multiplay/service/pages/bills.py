"""Bills: the costs of the units of a plan, typed, pasted from a spreadsheet, or in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from multiplay._support import deadline
from multiplay._support.csv_format import CsvFormat, format_of, rows_of
from multiplay._support.dates import moment_of
from multiplay._support.suggestions import suggestion
from multiplay._support.words import money_text
from multiplay.actions.importers.table_cleaning import is_sum
from multiplay.actions.importers.table_columns import Columns, guessed_columns
from multiplay.errors import InvalidInput
from multiplay.learner.reports import losses_argument
from multiplay.service.pages import uploads
from multiplay.service.pages.forms import (
    MISSING,
    SIGN,
    Form,
    UploadedFile,
    a_number,
    a_whole_number,
    as_typed,
    error_text,
)
from multiplay.service.pages.plan_forms import a_day, by_spelling, spelling
from multiplay.service.pages.render import local
from multiplay.service.pages.uploads import LIMITS, columns_of_form, fields_of
from multiplay.studies import Study

MOST_ROWS, MOST_CELLS = 20_000, 200_000
ARROW = "->"
DAY_FIRST = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})")
CURRENCY = re.compile(r"(?<=\d)[^\S\t\r\n]*(?:[€$£¥]|[A-Z]{3})(?=[\t;\r\n]|$)")  # after a number
ROWS, FILE, TABLE = "rows", "file", "table"  # names of the fields; TABLE: what filled in others
SURE = "sure"  # the field that says that unusual costs are right
FEWEST, FAR, FAR_SHARE = 5, 5.0, 0.25  # units seen; spreads, and a share, from the mean
OTHER_PLAN = "Check the spelling. If you carried out another plan, enter it under “Another plan”."


NO_COLUMNS = Columns((), "", "")


class Row(NamedTuple):
    """A row of a table: its line, and its cells."""

    line: int
    cells: list[str]


class Bills(NamedTuple):
    """Costs of units by arm, None for a unit that was not reported.

    Attributes
    ----------
    costs : dict
        The costs by arm, in the order of the rows.
    left_out : int
        How many rows are of another day.
    columns : Columns
        The columns that were read, if the first row has their names.
    names : sequence of str
        The names of all columns then.
    text : str
        The table as text, so that a form can send it again.
    """

    costs: dict[str, list[float | None]]
    left_out: int
    columns: Columns = NO_COLUMNS
    names: Sequence[str] = ()
    text: str = ""


def field_of(place: int) -> str:
    """Return the name of the field of an arm, which does not depend on the name of the arm."""
    return f"arm{place}"


# ---------------------------------------------------------------- one field for each arm


def losses(
    form: Form, plan: Mapping[str, int], by_round: bool, partly: bool
) -> dict[str, Any] | float | None:
    """Return the losses from one field for each arm, or from one total of the round.

    Examples
    --------
    >>> form = Form({"arm0": "120 95,5 -", "arm1": "310"})
    >>> losses(form, {"Lyon->north": 3, "Lyon->south": 2}, by_round=False, partly=False)
    {'Lyon->north': [120, 95.5, None], 'Lyon->south': 310}
    """
    if by_round:
        with form.noting("total"):
            return a_number("total", form.get("total"))
        return None
    told: dict[str, Any] = {}
    for place, (arm, units) in enumerate(plan.items()):
        name = field_of(place)
        with form.noting(name):
            found = _units(name, form.get(name), units, partly)
            if found is not None:
                told[arm] = found
    if not told and not form.errors:
        form.errors[""] = "Enter at least one value."
    return None if form.errors else told


def missing(told: Any) -> str | None:
    """Return how missing losses are treated: one that is marked as not reported is left out."""
    units = [told] if not isinstance(told, dict) else [*told.values()]
    return "ignore" if any(isinstance(one, list) and None in one for one in units) else None


def of_plan(
    form: Form, plan: Mapping[str, int] | None, names: Sequence[str], key: str, by_round: bool
) -> tuple[dict[str, int], Any] | None:
    """Return a plan of the user and its losses; None after recording errors in the form.

    Where no units were typed, the plan has one unit for each cost.
    """
    if by_round:
        if plan is None:
            form.errors[""] = "Enter the units of the plan."
        with form.noting("total"):
            total = a_number("total", form.get("total"))
        return None if form.errors or plan is None else (dict(plan), total)
    if not has_rows(form):
        form.errors[ROWS] = "Enter the costs, one row for each."
        return None
    found = of_form(form, [*plan] if plan else names, key)
    if found is None:
        return None
    driven = dict(plan or {arm: len(costs) for arm, costs in found.costs.items()})
    told: dict[str, Any] = {}
    for arm, units in driven.items():
        costs = found.costs.get(arm, [])
        total = len(costs) == 1 and units > 1 and costs[0] is not None
        if len(costs) != units and not total:
            one = "a cost" if units == 1 else f"{units} costs, or one total,"
            form.errors[ROWS] = f"Expected {one} for {arm}, got {len(costs)}."
            return None
        told[arm] = costs[0] if total else costs
    return driven, told


def questioned(form: Form, study: Study, told: Mapping[str, Any], plan: Mapping[str, int]) -> bool:
    """Ask once about costs that are far from what is believed; return whether the form asks.

    ``sure`` in the form is the answer that they are right.
    """
    if form.get(SURE):
        return False
    facts = study.arms().set_index("arm")
    usual = {
        arm: (float(facts["mean"][arm]), float(facts["spread"][arm]))
        for arm in told
        if arm in facts.index and facts["seen"][arm] >= FEWEST
    }
    for place, arm in enumerate(plan):
        if arm not in usual or told.get(arm) is None:
            continue
        mean, spread = usual[arm]
        units = told[arm] if isinstance(told[arm], list) else [told[arm] / max(plan[arm], 1)]
        least = max(FAR * spread, FAR_SHARE * abs(mean))
        far = [one for one in units if one is not None and abs(one - mean) > least]
        if far:
            around = f"{study.words.money(mean)} ± {money_text(spread)}"
            form.errors[field_of(place)] = local(f"Is {as_typed(far[0])} right? Usual is {around}.")
    if form.errors:
        form.errors[""] = "Nothing was saved yet: a value is far from what is usual. Is it right?"
        form.errors[SURE] = ""
    return bool(form.errors)


def note_loss(form: Form, error: InvalidInput, plan: Mapping[str, int]) -> None:
    """Record an error in losses for the arm that it names."""
    arms = list(plan)
    places = [place for place, arm in enumerate(arms) if error.argument == losses_argument(arm)]
    form.errors[field_of(places[0]) if places else ""] = error_text(error)


def _units(name: str, text: str, units: int, partly: bool) -> Any:
    """Return the losses of one arm: a list with one per unit, their total, or None."""
    typed = re.split(r"[\s;]+", SIGN.sub("", text).strip(" \t\r\n;"))
    if typed == [""]:
        if partly:
            return None
        hint = f"Write {MISSING} for a unit that was not reported, or select “More will follow”."
        many = "a number" if units == 1 else f"{units} numbers, or one total"
        raise InvalidInput(name, many, "nothing", hint)
    if len(typed) == 1 and units > 1 and typed != [MISSING]:
        return a_number(name, typed[0])
    if typed == [MISSING]:
        return [None] * units
    if len(typed) != units and not (partly and len(typed) < units):
        hint = f"Write a number or {MISSING} for each unit, separated by spaces."
        raise InvalidInput(name, f"{units} numbers, or one total", f"{len(typed)}", hint)
    return [None if one == MISSING else a_number(name, one) for one in typed]


# ---------------------------------------------------------------- rows of a spreadsheet


def has_rows(form: Form) -> bool:
    """Return whether rows were pasted or a file was uploaded."""
    return bool(form.get(ROWS).strip() or FILE in form.files)


def filled(form: Form, plan: Mapping[str, int], key: str | None) -> Form:
    """Return the form with the fields of arms filled from the rows that were pasted or uploaded.

    Without them, the rows that filled in the form before are read again, with the columns that were
    chosen. Errors are recorded for the field of the rows or of the file; the form is then as it
    was.
    """
    if not has_rows(form):
        form = Form(dict(form.values) | {ROWS: form.get(TABLE)}, form.errors)
    found = of_form(form, [*plan], key)
    if found is None:
        return form
    values = dict(form.values) | {ROWS: "", TABLE: found.text, **fields_of(found.columns)}
    for place, arm in enumerate(plan):
        if arm in found.costs:
            values[field_of(place)] = cost_text(found.costs[arm])
    return Form(values, form.errors, columns=found.names)


def cost_text(costs: Iterable[float | None]) -> str:
    """Return costs as they are typed into the field of an arm."""
    return " ".join(MISSING if cost is None else as_typed(cost) for cost in costs)


def of_form(
    form: Form, arms: Sequence[str], key: str | None, hint: str = OTHER_PLAN
) -> Bills | None:
    """Return the bills that were pasted or uploaded; None after recording an error.

    ``hint`` says what to do about a name that is not among the arms.
    """
    place = FILE if FILE in form.files else ROWS
    with form.noting(place):
        if place == FILE:
            text, rows, format = _rows_of_file(form.files[FILE])
        else:
            text = form.get(ROWS)
            rows, format = _rows_of_text(text, arms)
        found = of_rows(rows, format, arms, key, hint, columns_of_form(form))
        return found._replace(text=text if found.names else "")
    return None


def of_rows(
    rows: Sequence[Row],
    found: CsvFormat | None,
    arms: Sequence[str],
    key: str | None,
    hint: str = OTHER_PLAN,
    wanted: Columns = NO_COLUMNS,
) -> Bills:
    """Return the bills in rows: the name of an arm, in one cell or two, and its cost.

    The first row may have the names of the columns; there may then be other columns, and those with
    the arm, the date and the cost are the ones that are ``wanted``, or are recognised. Rows with a
    date other than that of the plan, and sums, are left out.

    Examples
    --------
    >>> table = [Row(1, ["date", "depot", "to", "EUR"]), Row(2, ["17.11.2026", "Lyon", "n", "95"])]
    >>> of_rows(table, CsvFormat(decimal=","), ["Lyon->n"], "2026-11-17").costs
    {'Lyon->n': [95.0]}
    """
    day, known = a_day(key or ""), by_spelling(arms)
    header = _header(rows, known, found)
    columns, names = _columns(rows, arms, found, wanted) if header else None, list[str]()
    if columns is not None:
        names, rows, header = rows[0].cells, [*_of_columns(rows, columns, found)], False
    costs: dict[str, list[float | None]] = {}
    left_out = 0
    for row in rows[1:] if header else rows:
        deadline.check("rows")
        cells = [cell for cell in row.cells if _date(cell) is None]
        days = [when for cell in row.cells if (when := _date(cell)) is not None]
        if day is not None and days and day not in days:
            left_out += 1
            continue
        arm, rest = _arm(row, cells, known, found, hint)
        numbers = [cell for cell in rest if cell and (_is_cost(cell, found) or not header)]
        if not numbers or (header and len(numbers) > 1):
            got = ", ".join(map(repr, numbers)) or "none"
            hint = f"Write one cost in each row, or {MISSING} for one that is not known."
            raise InvalidInput("rows", f"one cost in row {row.line}", got[:80], hint)
        costs.setdefault(arm, []).extend(_cost(row, cell, found) for cell in numbers)
    if not costs:
        got = f"{left_out} rows of other days" if left_out else "none"
        hint = "Copy the rows with the costs, or choose another file."
        raise InvalidInput("rows", f"rows of {key}" if left_out else "rows", got, hint)
    return Bills(costs, left_out, columns or NO_COLUMNS, names)


def _header(rows: Sequence[Row], known: Mapping[str, str], found: CsvFormat | None) -> bool:
    """Return whether the first row has the names of columns: no arm, no cost and no date."""
    cells = rows[0].cells if rows else []
    value = any(_is_cost(cell, found) or _date(cell) for cell in cells)
    return bool(cells) and not value and _named(cells, known) is None


def _columns(
    rows: Sequence[Row], arms: Sequence[str], format: CsvFormat | None, wanted: Columns
) -> Columns | None:
    """Return the columns of rows with a header: those that are wanted, if the table has them."""
    names, width = rows[0].cells, len(rows[0].cells)
    if width > LIMITS.columns:
        expected, hint = f"at most {LIMITS.columns} columns", "Remove columns that are not needed."
        raise InvalidInput("rows", expected, f"{width:,}", hint)
    if wanted.loss and {*wanted.used} <= {*names}:
        return wanted
    import pandas as pd

    cells = [(row.cells + [""] * width)[:width] for row in rows[1:]]
    frame = pd.DataFrame(cells, columns=names).replace("", None)
    found = guessed_columns(frame, arms, "." if format is None else format.decimal)
    return found if found.arm and found.loss and len(rows) > 1 else None


def _of_columns(rows: Sequence[Row], columns: Columns, format: CsvFormat | None) -> Iterator[Row]:
    """Yield rows with the date, the name and the cost of each unit alone."""
    names = rows[0].cells
    for row in rows[1:]:
        cells = dict(zip(names, row.cells + [""] * (len(names) - len(row.cells)), strict=False))
        day, arm = cells.get(columns.round, ""), [cells[name] for name in columns.arm]
        if any(map(is_sum, row.cells)) and not (all(arm) and (day or not columns.round)):
            continue
        cost, units = cells[columns.loss], 1
        if columns.units:
            units = a_whole_number("rows", cells[columns.units])
        if units != 1 and cost != MISSING:
            share = repr((_cost(row, cost, format) or 0.0) / max(units, 1))
            cost = share if format is None else share.replace(".", format.decimal)
        days = [day] if _date(day) is not None else []
        for _ in range(units):
            yield Row(row.line, [*days, *arm, cost])


def _arm(
    row: Row, cells: Sequence[str], known: Mapping[str, str], table: CsvFormat | None, hint: str
) -> tuple[str, list[str]]:
    """Return the arm that a row names, and its other cells."""
    found = _named(cells, known)
    if found is None:
        got = ", ".join(map(repr, cells))[:80]
        name = " ".join(cell for cell in cells if not _is_cost(cell, table))
        hint = f"{hint}{suggestion(name, known.values())}"
        raise InvalidInput("rows", f"a name of this plan in row {row.line}", got, hint)
    return found


def _named(cells: Sequence[str], known: Mapping[str, str]) -> tuple[str, list[str]] | None:
    """Return the arm that one cell or two name, and the other cells."""
    for width in (1, 2):
        for k in range(len(cells) - width + 1):
            arm = known.get(spelling(ARROW.join(cells[k : k + width])))
            if arm is not None:
                return arm, [*cells[:k], *cells[k + width :]]
    return None


def _cost(row: Row, cell: str, found: CsvFormat | None) -> float | None:
    if cell == MISSING:
        return None
    if found is None:
        try:
            return a_number("rows", cell)
        except InvalidInput as error:
            expected = f"{error.expected} in row {row.line}"
            raise InvalidInput("rows", expected, error.got, error.hint) from None
    if not _is_cost(cell, found):
        hint = f"Write 120, or {MISSING} for a cost that is not known."
        raise InvalidInput("rows", f"a number in row {row.line}", repr(cell)[:60], hint)
    return float(_plain(cell, found))


def _is_cost(cell: str, found: CsvFormat | None) -> bool:
    text = cell if found is None else _plain(cell, found)
    return cell == MISSING or bool(re.fullmatch(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)", text))


def _plain(cell: str, found: CsvFormat) -> str:
    """Return the number in a cell with a decimal point, and without marks for thousands."""
    text = cell.replace(found.thousands, "") if found.thousands else cell
    text = re.sub(r"(?<=\d)[\s\u202f\u2019'](?=\d{3})", "", text)  # 1 234 and 1'234
    return text.replace(found.decimal, ".")


def _date(cell: str) -> date | None:
    """Return the day in a cell, such as 2026-11-17, 17.11.26 08:15 or 17/11/2026."""
    text = cell.strip()
    if match := DAY_FIRST.fullmatch(text):
        text = "{2}-{1:0>2}-{0:0>2}".format(*match.groups())
    found = None if text.isdigit() else moment_of(text) or moment_of(cell)
    return None if found is None else found.date()


def _rows_of_text(text: str, arms: Sequence[str]) -> tuple[list[Row], CsvFormat | None]:
    """Return pasted rows: cells with tabs or semicolons between them, or typed lines."""
    separator = _sure_separator(text)
    if separator is not None:
        return _cells(text, "utf-8", separator)
    text = SIGN.sub("", text)
    names = sorted(map(spelling, arms), key=len, reverse=True)
    lines = text.splitlines()
    return _few(_typed_cells(line, names) if line.strip() else [] for line in lines), None


def _sure_separator(text: str) -> str | None:
    """Return the tab or semicolon that is in every line; it is no part of a name or number."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = (one for one in ("\t", ";") if lines and all(one in line for line in lines))
    return next(found, None)


def _typed_cells(line: str, names: Sequence[str]) -> list[str]:
    """Return the name and the numbers of a typed line, such as ``Lyon->north 120 95,5``."""
    plain = spelling(line)
    name = next((name for name in names if plain.startswith(name)), None)
    if name is None:
        return line.split()
    return [name, *re.split(r"[\s:=]+", plain[len(name) :].strip(" :=,"))]


def _rows_of_file(file: UploadedFile) -> tuple[str, list[Row], CsvFormat | None]:
    """Return the text and the rows of a CSV or Excel file."""
    text, encoding = uploads.text_of(file)
    if encoding is None:
        return text, _few(rows_of(text, ",")), CsvFormat()
    return text, *_cells(text, encoding, _sure_separator(text))


def _cells(text: str, encoding: str, separator: str | None) -> tuple[list[Row], CsvFormat]:
    text = CURRENCY.sub("", text)
    found = format_of(text, encoding, separator)
    return _few(rows_of(text, found.separator)), found


def _few(table: Iterable[list[str]]) -> list[Row]:
    """Return the rows of a table that are not empty, and no more than a form may have."""
    found, cells = list[Row](), 0
    for line, row in enumerate(table, 1):
        if not any(map(str.strip, row)):
            continue
        cells += len(row)
        if len(found) == MOST_ROWS or cells > MOST_CELLS:
            expected = f"at most {MOST_ROWS} rows and {MOST_CELLS} cells"
            hint = "Import the history of a study from its page."
            raise InvalidInput("rows", expected, "more", hint)
        deadline.check("rows")
        found.append(Row(line, [cell.strip() for cell in row]))
    return found
