"""Tables of users in files: CSV of any format, or Excel, with a row for each unit or arm."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from multiplay._support.csv_format import CsvFormat
from multiplay._support.frames import TableFile, read_file
from multiplay.actions.rules import FixedPlan, InProportion, PriceList, Rule
from multiplay.constraints.baseline import EACH_DAY
from multiplay.constraints.promise import AtLeast, AtMost, Promise
from multiplay.errors import InvalidInput
from multiplay.learner.logged_data import TableProblem

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

STDIN = "-"
PLAIN = CsvFormat()
PROPORTION = "in-proportion"
PROMISE = re.compile(
    r"(?P<name>.+?)\s*(?P<kind><=|>=)\s*(?P<limit>\S+)(\s+until\s+(?P<until>\S+))?"
    r"\s+plays\s+(?P<plays>\d{1,9})\s+of\s+(?P<file>.+?)(?P<soft>\s+soft)?"
)
PROMISES = {"<=": AtMost, ">=": AtLeast}

Separator = Annotated[
    str | None,
    typer.Option("--sep", metavar="CHARACTER", help="The separator of columns, if not recognised."),
]
DecimalMark = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", help="The decimal mark, if it is not recognised."),
]


def read_csv(
    path: str,
    arm: str,
    argument: str = "table",
    sep: str | None = None,
    decimal: str | None = None,
) -> "pd.DataFrame":
    """Return a table with the column ``arm`` as text, and a name in every row of it."""
    table = read_table(path, [arm], argument, sep, decimal).frame
    if arm in table:
        empty = table.index[table[arm].isna()]
        if len(empty):
            hint = "Write the name of the arm, or remove the line."
            raise InvalidInput(f"{argument}, line {empty[0] + 2}", f"{arm!r}", "nothing", hint)
        table[arm] = table[arm].str.strip()
    return table


def read_table(
    path: str,
    arms: Sequence[str],
    argument: str = "table",
    sep: str | None = None,
    decimal: str | None = None,
) -> TableFile:
    """Return a table with the columns of arms as text; the path ``-`` is standard input.

    A format other than commas, a decimal point and UTF-8 is reported on standard error.
    """
    source = "standard input" if path == STDIN else path
    content = sys.stdin.buffer.read() if path == STDIN else _content(path, argument)
    file = read_file(source, arms, sep, decimal, data=content, argument=argument)
    if file.format not in (None, PLAIN) and sep is None and decimal is None:
        typer.echo(f"{source}: {file.format}", err=True)
    return file


def rule_named(option: str, text: str) -> Rule:
    """Return the rule in-proportion, or of a file with arms and prices, or arms and units.

    Where a set does not have the plan of a file, the nearest plan counts.

    Examples
    --------
    >>> rule_named("--baseline", "in-proportion")
    InProportion()
    """
    if text == PROPORTION:
        return InProportion()
    if "." not in text:
        hint = f"Write {option} {PROPORTION}, or the name of a file: {option} prices.csv."
        raise InvalidInput(option, "a rule", repr(text), hint)
    kind, values = _by_arm(option, text, ("price", "units"))
    with errors_in(option):
        return PriceList(values) if kind == "price" else FixedPlan(values, nearest=True)


def baseline_named(option: str, text: str) -> Rule | str:
    """Return the rule of a baseline, as ``rule_named``; or "each day" for ``each-day``."""
    return EACH_DAY if text == EACH_DAY.replace(" ", "-") else rule_named(option, text)


def amounts_in(option: str, path: str) -> dict[str, Any]:
    """Return what a unit of each arm uses, from a file with arms, or patterns, and amounts."""
    return _by_arm(option, path, ("amount",))[1]


def promise_named(option: str, text: str) -> Promise:
    """Return the promise of a text and of a file with arms, or patterns, and amounts of a unit.

    The text is such as ``CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv``; ``until`` may be left
    out, and ``soft`` at the end says that only its price changes the plans.
    """
    found = PROMISE.fullmatch(text.strip())
    hint = f"Write {option} 'CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv'."
    if found is None:
        raise InvalidInput(option, "a promise", repr(text), hint)
    try:
        limit = float(found["limit"])
    except ValueError:
        raise InvalidInput(option, "a number as the limit", repr(found["limit"]), hint) from None
    amounts = amounts_in(option, found["file"].strip())
    with errors_in(option):
        return PROMISES[found["kind"]](
            limit,
            amounts,
            until=found["until"],
            plays=int(found["plays"]),
            name=found["name"],
            hard=not found["soft"],
        )


def _by_arm(option: str, path: str, kinds: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return which of some columns a file has, and its numbers by arm."""
    table = read_csv(path, "arm", option)
    found = [name for name in kinds if name in table]
    if "arm" not in table or len(found) != 1:
        expected = ", or ".join(f"arm and {kind}" for kind in kinds)
        hint = f"Name the columns {expected}, in the first line."
        got = ", ".join(map(str, table.columns))
        raise InvalidInput(option, f"the columns {expected}", got, hint)
    (kind,) = found
    twice = table.index[table["arm"].duplicated()]
    if len(twice):
        where, got = f"{option}, line {twice[0] + 2}", f"{table['arm'][twice[0]]!r} again"
        raise InvalidInput(where, "every arm once", got, "Leave one of the lines out.")
    return kind, dict(zip(table["arm"], table[kind].tolist(), strict=True))


@contextmanager
def errors_in(option: str) -> Iterator[None]:
    """Name the option in errors about its content."""
    try:
        yield
    except InvalidInput as error:
        argument = f"{option}, {error.argument}"
        raise InvalidInput(argument, error.expected, error.got, error.hint) from None


def write_skipped(path: Path, file: TableFile, problems: Sequence[TableProblem]) -> None:
    """Write rows with problems to a CSV file: their numbers, the problems, and all columns."""
    rows = file.frame.loc[[problem.row - file.first for problem in problems]].copy()
    rows.insert(0, "problem", [problem.text for problem in problems], allow_duplicates=True)
    rows.insert(0, "row", [problem.row for problem in problems], allow_duplicates=True)
    form = file.format or PLAIN
    try:
        rows.to_csv(path, index=False, sep=form.separator, decimal=form.decimal)
    except OSError as error:
        got, hint = f"{path} ({error.strerror})", "Choose a different file."
        raise InvalidInput("--skipped", "a file that can be written", got, hint) from None


def _content(path: str, argument: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        got = f"{path} ({error.strerror})"
        raise InvalidInput(argument, "a CSV file", got, "Check the name of the file.") from None
