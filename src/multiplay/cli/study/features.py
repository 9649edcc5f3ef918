"""Command study effects, and the features in options and files of other commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from multiplay._support.builder import Builder, made, unknown
from multiplay._support.formatting import Table, between, number, plural
from multiplay._support.toml_files import read_toml
from multiplay.cli.screen import print_table
from multiplay.cli.study.app import AsJson, Name, StoreAt, print_json
from multiplay.cli.study.csv_files import read_csv
from multiplay.cli.study.open_study import opened
from multiplay.errors import InvalidInput
from multiplay.features import Features, Flag, Number
from multiplay.features.columns import Column
from multiplay.features.schema import first_double
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies import Study
from multiplay.studies.wire import FEATURES

FeaturesFile = Annotated[
    Path | None,
    typer.Option(
        "--features",
        metavar="FILE.toml",
        help="The declared features: a table for each, with its type.",
    ),
]
FeatureValues = Annotated[
    str | None,
    typer.Option(
        "--feature-values",
        metavar="TODAY.csv",
        help="Features of this round, a row for each arm; the arm * stands for all others.",
    ),
]
Feature = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        metavar="NAME=VALUE",
        help="A feature of this round, for all arms; repeatable.",
    ),
]
EXAMPLE = 'Write [km] and below it type = "Number", for example.'
COLUMNS = {name: kind for name, kind in FEATURES.items() if issubclass(kind, Column)}


def read_features(path: Path) -> Features:
    """Return the features that a file declares, by name or below ``columns``.

    No code is imported for it.
    """
    plain = read_toml("--features", path, "a TOML file with features", EXAMPLE)
    of_all = {name: plain.pop(name, []) for name in ("products", "multiplies")}
    tables = plain.pop("columns", {})
    if not isinstance(tables, dict):
        raise InvalidInput("columns", "a table for each feature", repr(tables), EXAMPLE)
    builder, columns = Builder(COLUMNS), dict[str, Column]()
    for name, table in (tables | plain).items():
        if isinstance(table, dict) and table.get("type") not in COLUMNS:
            raise unknown(f"{name}.type", table.get("type"), COLUMNS)
        columns[name] = made(builder, name, table, Column)
    return Features(columns=columns, **of_all)


def values_of(texts: list[str] | None) -> dict[str, str]:
    """Return the values of --feature, by name.

    Examples
    --------
    >>> values_of(["fuel=1.72", "weekday=Tue"])
    {'fuel': '1.72', 'weekday': 'Tue'}
    """
    found = dict[str, str]()
    for text in texts or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or name in found:
            got = f"{name!r} twice" if name in found else repr(text)
            hint = "Write --feature fuel=1.72, for example."
            raise InvalidInput("--feature", "each feature once, with its value", got, hint)
        found[name] = value.strip()
    return found


def day_features(known: Study, path: str | None, given: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the features of a round: those of a file, with those of --feature in their place."""
    if path is None and not given:
        return None
    columns = {} if known.features is None else known.features.columns
    found: dict[str, Any] = {} if path is None else _read_day(path)
    return found | {name: value_of(columns.get(name), text) for name, text in given.items()}


def value_of(column: Column | None, text: str) -> float | str:
    """Return the value of a feature from its text: a number where one is expected.

    Examples
    --------
    >>> value_of(Number(), "1.72"), value_of(Flag(), "1"), value_of(None, "Tue")
    (1.72, 1.0, 'Tue')
    """
    if isinstance(column, Number | Flag):
        try:
            return float(text)
        except ValueError:
            return text  # refused where the feature is known by name
    return text


def _read_day(path: str) -> dict[str, Any]:
    """Return the values in a CSV file, by feature and arm; empty cells give no value."""
    table = read_csv(path, "arm", "--feature-values")
    if "arm" not in table.columns:
        hint = "Write arm,fuel in the first line, for example, and *,1.72 in the second."
        got = ", ".join(map(str, table.columns)) or "none"
        raise InvalidInput("--feature-values", "a column 'arm'", got, hint)
    arms = table["arm"].tolist()
    twice = first_double(arms)
    if twice is not None:
        hint = "Leave one of the two rows out."
        raise InvalidInput("--feature-values", "one row for each arm", f"{twice!r} twice", hint)
    found = {}
    for name in table.columns.drop("arm"):
        values = zip(arms, table[name].tolist(), strict=True)
        found[str(name)] = {arm: value for arm, value in values if value == value}  # not NaN
    return {name: values for name, values in found.items() if values}


def effects(
    name: Name,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    by_arm: Annotated[
        bool, typer.Option("--by-arm", help="The own effects of arms instead.")
    ] = False,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show what drives the costs: the effect of each feature on the cost of a unit.

    An effect is what a unit costs more where the feature is larger by the scale of its column, and
    everything else is the same; a level of a category is compared with the average of its levels.
    Of a feature that multiplies it is a percentage, and a level is compared with the others.
    With [b]--by-arm[/b], show what each arm costs more than the average arm, where features do not
    say it. Intervals are those of the model; if the features do not explain the costs, there are
    none, and a sentence says so.

    Examples:

        multiplay study effects lanes

        multiplay study effects lanes --level 0.5 --by-arm

    JSON: misfit (a sentence, or empty), effects: a list with feature, per, effect, low, high,
    changes_plans, text; with --by-arm a list with arm, effect, low, high.
    """
    with opened(name, store) as known:
        table, words = known.effects(level, by="arm" if by_arm else "feature"), known.words
    misfit, rows = table.attrs.get("misfit", ""), table.to_dict("records")
    if as_json:
        return print_json({"misfit": misfit, "effects": rows})
    intervals = f"{level:.0%} interval".replace("%", " %")
    if by_arm:
        cells = [
            [row["arm"], number(row["effect"]), between(row["low"], row["high"])] for row in rows
        ]
        title = f"Own effects of the {plural(words.arm)} of {name}"
        columns = [words.arm, words.in_currency("effect"), intervals]
        print_table(Table(title, columns, cells))
    else:
        cells = [
            [row["feature"], row["text"], "" if row["changes_plans"] else "changes no plan"]
            for row in rows
        ]
        columns = ["feature", f"effect, with its {intervals}", ""]
        print_table(Table(f"What drives the costs of {name}", columns, cells, labels=3))
    if misfit:
        typer.echo(misfit)
    return None
