"""Features on pages: columns of a table, fields of a day, and a table of what drives the costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.dates import moment_of
from multiplay._support.formatting import Table, left_out, plural
from multiplay._support.words import Words, money_text
from multiplay.actions.importers.table_columns import (
    ARROW,
    Columns,
    ignored_columns,
    numbers_in,
)
from multiplay.errors import InvalidInput
from multiplay.features import Category, Features, Flag, Number
from multiplay.features.columns import TO_DEVIATION, Column
from multiplay.features.schema import RESERVED
from multiplay.learner import facts
from multiplay.learner.logged_data import ReadTable
from multiplay.service.pages.forms import Form, a_number, error_text
from multiplay.studies import Study

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 200  # of a table
MOST_LEVELS = 30  # different texts of a column that may be a feature
KNOWN = 0.9  # share of the rows that have a value of it
ADDS, MULTIPLIES = "adds", "multiplies"
EFFECTS = {
    "": "Not used",
    ADDS: "Adds to the {noun}",
    MULTIPLIES: "Changes the {noun} by a percentage",
}


class Candidate(NamedTuple):
    """A column of a table that may be a feature.

    Attributes
    ----------
    field, name : str
        The name of its field, and that of the column.
    column : Column
        Its kind.
    of_arm : bool
        Whether its value is the same on all days, so that it is a feature of an arm.
    """

    field: str
    name: str
    column: Column
    of_arm: bool

    def text(self, words: Words) -> str:
        """Return what the column has, in the words of the user."""
        of = words.arm if self.of_arm else words.round
        if isinstance(self.column, Category):
            return f"of each {of}: {', '.join(self.column.levels[:4])}" + (
                ", ..." if len(self.column.levels) > 4 else ""
            )
        return (
            f"of each {of}: a number"
            if isinstance(self.column, Number)
            else f"of each {of}: 0 or 1"
        )


# ---------------------------------------------------------------- columns of a table


def candidates(rows: pd.DataFrame, columns: Columns, decimal: str) -> list[Candidate]:
    """Return the columns that are not used, and have one value for each arm or for each round.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"lane": ["a", "b"] * 2, "day": [1, 1, 2, 2], "cost": [9, 7, 8, 6]})
    >>> rows = rows.assign(km=[120, 450] * 2, rain=[0, 0, 1, 1], kg=[7, 8, 9, 10])
    >>> found = candidates(rows, Columns(("lane",), "day", "cost"), ".")
    >>> [(one.field, one.name, one.of_arm) for one in found]
    [('feature-3', 'km', True), ('feature-4', 'rain', False)]
    """
    names, found = [*map(str, rows.columns)], list[Candidate]()
    keys = [*columns.arm], [columns.round]
    for name in ignored_columns(rows, columns):
        if names.count(name) > 1 or name in RESERVED or rows[name].count() < KNOWN * len(rows):
            continue
        column = _column_of(rows[name], decimal)
        of = [bool((rows.groupby(key)[name].nunique() <= 1).all()) for key in keys]
        if column is not None and any(of):
            found.append(Candidate(f"feature-{names.index(name)}", name, column, of[0]))
    return found


def _column_of(values: pd.Series[Any], decimal: str) -> Column | None:
    """Return the kind of feature of a column; None for dates, many texts, and one value."""
    different = values.dropna().drop_duplicates()
    numbers = numbers_in(different, decimal)
    if len(different) < 2:
        return None
    if np.isfinite(numbers).all():
        if {*numbers.tolist()} == {0.0, 1.0}:
            return Flag()
        low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75]).tolist()
        scale = _round((high - low) / TO_DEVIATION or float(np.ptp(numbers)))
        return Number(round(middle / scale) * scale, scale)
    texts = [one.strip() for one in different if isinstance(one, str)]
    is_text = len(texts) == len(different) and len({*texts}) == len(texts) <= MOST_LEVELS
    is_date = is_text and any(moment_of(one) is not None for one in texts)
    return Category(sorted(texts)) if is_text and not is_date else None


def _round(scale: float) -> float:
    """Return 1, 2 or 5 times a power of ten near a scale, for effects that can be read.

    Examples
    --------
    >>> _round(0.083), _round(371.0), _round(18.0)
    (0.1, 500.0, 20.0)
    """
    power = math.floor(math.log10(scale))
    share = min((1, 2, 5, 10), key=lambda one: abs(math.log(scale / 10.0**power / one)))
    return float(f"{share}e{power}")


def declared(form: Form, found: Sequence[Candidate]) -> Features | None:
    """Return the features that a form declares; None if there are none.

    Examples
    --------
    >>> found = [Candidate("feature-3", "km", Number(300, 100), True)]
    >>> declared(Form({"feature-3": "multiplies"}), found)
    Features(km=Number(centre=300.0, scale=100.0, unit=''), multiplies=['km'])
    """
    chosen = {one.name: one for one in found if form.get(one.field) in (ADDS, MULTIPLIES)}
    columns = {name: one.column for name, one in chosen.items()}
    factors = [name for name, one in chosen.items() if form.get(one.field) == MULTIPLIES]
    return Features(columns=columns, multiplies=factors) if columns else None


def with_numbers(rows: pd.DataFrame, features: Features | None, decimal: str) -> pd.DataFrame:
    """Return a table with numbers in the columns of features that are numbers."""
    if features is None:
        return rows
    kinds = {name: column for name, column in features.columns.items() if name in rows}
    numbers = {
        name: numbers_in(rows[name], decimal)
        for name, column in kinds.items()
        if isinstance(column, Number) and rows[name].dtype.kind not in "biuf"
    }
    texts = {
        name: rows[name].str.strip()
        for name, column in kinds.items()
        if isinstance(column, Category) and rows[name].dtype.kind not in "biuf"
    }
    return rows.assign(**numbers, **texts)


def by_arm(
    rows: pd.DataFrame, columns: Columns, features: Features, found: Sequence[Candidate]
) -> dict[str, dict[str, Any]]:
    """Return the values of the features of arms: by feature, by arm."""
    arms = rows[columns.arm[0]].astype(str)
    for part in columns.arm[1:]:
        arms = arms + ARROW + rows[part].astype(str)
    names = [one.name for one in found if one.of_arm and one.name in features.columns]
    firsts = rows[names].groupby(arms.str.strip(), sort=False).first()
    return {name: {f"{arm}": x for arm, x in firsts[name].dropna().items()} for name in names}


def last_day(read: ReadTable, features: Features, found: Sequence[Candidate]) -> dict[str, Any]:
    """Return the values of the features of days in the last round of a table."""
    logged, values = read.logged, {}
    for name in (one.name for one in found if not one.of_arm and one.name in features.columns):
        codes = logged.features[name]
        values[name] = features.columns[name].value(float(codes[int(logged.round.argmax())]))
    return values


# ---------------------------------------------------------------- fields of a day


class DayField(NamedTuple):
    """A field of a form for a feature of a day.

    Attributes
    ----------
    field : str
        The name of the field, which does not depend on the name of the feature.
    feature : str
        The name of the feature.
    kind : str
        "number", "category" or "flag".
    hint : str
        The unit, and the value of the last plan.
    levels : tuple of str
        The levels of a category.
    """

    field: str
    feature: str
    kind: str
    hint: str
    levels: tuple[str, ...] = ()


class EffectRow(NamedTuple):
    """The effect of a feature as text."""

    feature: str
    text: str
    changes_plans: bool


class Drivers(NamedTuple):
    """What drives the costs: effects of features and of arms, and what they do not explain."""

    rows: list[EffectRow]
    arms: Table
    misfit: str


def day_fields(study: Study) -> list[DayField]:
    """Return a field for each feature that is not kept for all arms."""
    declared = study.features
    if declared is None:
        return []
    fields = []
    for place, (name, last) in enumerate(study.day_features().items()):
        column, known = declared.columns[name], "" if last is None else f"last plan: {_shown(last)}"
        unit = column.unit if isinstance(column, Number) else ""
        hint = ", ".join(filter(None, (unit and f"in {unit}", known)))
        kind = "flag" if isinstance(column, Flag) else "number"
        levels: tuple[str, ...] = ()
        if isinstance(column, Category):
            kind, levels = "category", tuple(column.levels)
        fields.append(DayField(f"feature{place}", name, kind, hint, levels))
    return fields


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else f"{value}"


def day_values(form: Form, fields: Sequence[DayField]) -> dict[str, Any] | None:
    """Return the values of a day from the fields of a form; errors are recorded in it.

    Examples
    --------
    >>> fuel, rain = DayField("feature0", "fuel", "number", ""), DayField("f1", "rain", "flag", "")
    >>> day_values(Form({"feature0": "1.72"}), [fuel, rain])
    {'fuel': 1.72, 'rain': False}
    """
    values: dict[str, Any] = {}
    for one in fields:
        typed = form.get(one.field).strip()
        if one.kind == "flag":
            values[one.feature] = bool(typed)
        elif one.kind == "number":
            with form.noting(one.field):
                values[one.feature] = a_number(one.field, typed)
        elif typed:
            values[one.feature] = typed
        else:
            form.errors[one.field] = "Choose one of the options."
    return values or None


def note_feature(form: Form, error: InvalidInput, fields: Sequence[DayField]) -> bool:
    """Record an error beside the feature that it names; return whether it names one."""
    for one in fields:
        if error.argument.startswith(f"features[{one.feature!r}]"):
            form.errors.setdefault(one.field, error_text(error))
            return True
    return False


def drivers(study: Study) -> Drivers | None:
    """Return what drives the costs of a study; None if it has no features."""
    if study.features is None:
        return None
    effects, own = study.effects(), study.effects(by="arm")
    rows = [
        EffectRow(str(row.feature), str(row.text), bool(row.changes_plans))
        for row in facts.rows_of(effects.head(MOST_ROWS))
    ]
    return Drivers(rows, _arms(own, study.words), effects.attrs.get("misfit", ""))


def _arms(own: pd.DataFrame, words: Words) -> Table:
    """Return the own effects of arms, the largest first."""
    order = own["effect"].abs().sort_values(ascending=False, kind="stable").index[:MOST_ROWS]
    cells = [
        [str(row.arm), money_text(row.effect), words.ends(row.low, row.high)]
        for row in facts.rows_of(own.loc[order])
    ]
    note = left_out(len(own) - len(cells), plural(words.arm))
    return Table("", [words.arm, "own effect", "95 % interval"], cells, note)
