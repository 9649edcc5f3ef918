"""Features on pages: fields for those of a day, and a table of what drives the costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay._support.formatting import Table, left_out, plural
from multiplay._support.words import Words, money_text
from multiplay.errors import InvalidInput
from multiplay.features import Category, Flag, Number
from multiplay.learner import facts
from multiplay.service.pages.forms import Form, a_number, error_text
from multiplay.studies import Study

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 200  # of a table


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
