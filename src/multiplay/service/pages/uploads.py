"""Tables that users upload or paste: limits on files, probable columns, and a study of them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from itertools import permutations
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay._support.csv_format import CsvFormat, decoded, format_of
from multiplay._support.formatting import legible
from multiplay._support.frames import TableFile, is_excel, read_text
from multiplay._support.sheets import TableLimits, sheet_text
from multiplay.actions.transport import sides_of
from multiplay.errors import InvalidInput
from multiplay.service.pages.forms import MOST_LINES, Form, UploadedFile, as_lines
from multiplay.service.studies.limits import ServiceLimits
from multiplay.storage.base import LONGEST_NAME

if TYPE_CHECKING:
    import pandas as pd

PASTED = "pasted.csv"  # the name of a table without a file
# Reading a file then takes less than 64 MB; its text is sent again in a form
LIMITS = TableLimits(
    unpacked=2**24, rows=100_000, cells=2**18, characters=ServiceLimits().body, columns=200
)
TRIED = 50  # different values of a column that are compared with the names of arms
WITH_DIGITS_ONLY = re.compile(r"[\W\d]*")  # dates, numbers and nothing
ARROW = "->"
CURRENCIES = {"eur": "EUR", "euro": "EUR", "euros": "EUR", "usd": "USD", "gbp": "GBP", "chf": "CHF"}

# Words in the names of columns
WORDS = {
    "source": ("depot", "supplier", "from", "origin", "source", "warehouse", "plant"),
    "target": ("customer", "demander", "to", "destination", "target", "town", "store", "client"),
    "arm": ("lane", "arm", "route", "item", "use", "product", "channel"),
    "round": ("day", "date", "round", "week"),
    "loss": ("cost", "costs", "loss", "euros", "eur", "price", "amount", "bill", "reward"),
}


INVOICE = ("invoice", "bill", "rechnung", "beleg", "fact", "fatt", "receipt")  # begins of words
NUMBER = ("id", "no", "nr", "num", "number", "nummer", "numero")


class Upload(NamedTuple):
    """A table of the user.

    Attributes
    ----------
    name : str
        The name of the file.
    text : str
        Its content as CSV, so that a form can send it again.
    format : CsvFormat or None
        The format of a CSV file.
    """

    name: str
    text: str
    format: CsvFormat | None

    def read(self, texts: Iterable[str] = ()) -> TableFile:
        """Return the table; ``texts`` names columns of text."""
        source = "" if self.name == PASTED else self.name
        return read_text(self.text, texts, self.format, "file", LIMITS)._replace(source=source)


class Columns(NamedTuple):
    """The columns of a table of bills: of the arm (one, or supplier and customer), day and cost.

    And of the number of its invoice, if there is one.
    """

    arm: tuple[str, ...]
    round: str
    loss: str
    id: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of text."""
        return (*self.arm, self.id) if self.id else self.arm


def uploaded(form: Form) -> Upload:
    """Return the table of a form: the file ``file``, or the text ``content``.

    A file that cannot be read, or that needs too much memory, raises ``InvalidInput``.
    """
    file = form.files.get("file")
    if file is None:
        content = form.get("content")
        if not content.strip():
            hint = "Choose a file, or paste the rows of a spreadsheet with their header."
            raise InvalidInput("file", "a table", "nothing", hint)
        file = UploadedFile(PASTED, content.encode())
    text, encoding = text_of(file)
    given = form.get("source") if file.name == PASTED else file.name
    name = legible(given)[:LONGEST_NAME] or PASTED
    found = Upload(name, text, None if encoding is None else format_of(text, encoding))
    if not len(found.read().frame):
        hint = "Write the names of the columns in the first line, and one row for each unit."
        raise InvalidInput("file", "rows", "none", hint)
    return found


def text_of(file: UploadedFile) -> tuple[str, str | None]:
    """Return the content of a file as CSV, and its encoding; None for an Excel file."""
    if is_excel(file.name):
        return sheet_text(file.data, "file", LIMITS), None
    return decoded(file.data, "file")


# ---------------------------------------------------------------- columns


def guessed_columns(table: pd.DataFrame, arms: Collection[str] = ()) -> Columns:
    """Return the columns that a table of bills probably has; "" for one that is not recognised.

    Arms are recognised by their names, or by the names of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> bills = pd.DataFrame({"Depot": ["Lyon"], "Customer": ["north"], "Date": [1], "EUR": [9.5]})
    >>> guessed_columns(bills)
    Columns(arm=('Depot', 'Customer'), round='Date', loss='EUR', id='')
    """
    names = [name for name in map(str, table.columns) if list(table.columns).count(name) == 1]
    free = dict.fromkeys(names)

    def take(role: str) -> str:
        found = next((name for name in free if _words(name) & {*WORDS[role]}), "")
        free.pop(found, None)
        return found

    arm = _named_arms(table, names, arms)
    for name in arm:
        free.pop(name)
    loss, round = take("loss"), take("round")
    if not arm:
        source = take("source")
        target = take("target") or (_names_beside(table, free) if source else "")
        free.pop(target, None)
        arm = (source, target) if source and target else tuple(filter(None, [take("arm")]))
        if source and not target and not arm:
            arm = (source,)
    numeric = [name for name in free if table[name].dtype.kind in "fiu"]
    if not loss and numeric:
        loss = numeric[-1]
        free.pop(loss)
    if not arm and free:
        arm = (next(iter(free)),)
        free.pop(arm[0])
    id = next((name for name in free if _are_ids(table, name)), "")
    free.pop(id, None)
    if not round and free:
        round = next(iter(free))
    return Columns(arm, round, loss, id)


def _are_ids(table: pd.DataFrame, name: str) -> bool:
    """Return whether a column has the numbers of invoices, by its name and different values."""
    words, values = _words(name), table[name].dropna()
    named = any(word.startswith(INVOICE) for word in words) or bool(words & {*NUMBER})
    return named and values.dtype.kind != "f" and 2 * values.nunique() > len(values)


def column_named(table: pd.DataFrame, words: Collection[str]) -> str:
    """Return the first column whose name has one of these words; "" if there is none."""
    return next((str(one) for one in table.columns if _words(str(one)) & {*words}), "")


def _names_beside(table: pd.DataFrame, columns: Iterable[str]) -> str:
    """Return the first of these columns that has names which occur often; "" if there is none.

    It has the customers, if the column of depots is known and customers have a word of their own.
    """
    for name in columns:
        values = table[name].dropna()
        different = values.unique()
        if values.dtype.kind == "O" and 2 * len(different) <= len(values):
            texts = [str(value) for value in different[:TRIED]]
            if not any(map(WITH_DIGITS_ONLY.fullmatch, texts)):
                return name
    return ""


def _words(name: str) -> set[str]:
    return {*re.findall(r"[^\W\d_]+", name.casefold())}


def _named_arms(table: pd.DataFrame, names: list[str], arms: Collection[str]) -> tuple[str, ...]:
    """Return the columns whose values are mostly names of these arms."""
    if not arms:
        return ()
    some, known = table.drop_duplicates().head(TRIED), {*arms}
    texts = {name: [str(value).strip() for value in some[name].tolist()] for name in names}

    def fits(values: Collection[str]) -> bool:
        return 2 * sum(value in known for value in values) > len(values)

    for name, values in texts.items():
        if fits(values):
            return (name,)
    words = [name for name in names if some[name].dtype.kind not in "f"][:12]
    for first, second in permutations(words, 2):
        if fits([*map(ARROW.join, zip(texts[first], texts[second], strict=True))]):
            return (first, second)
    return ()


# ---------------------------------------------------------------- the study of a table


def draft(table: Upload) -> dict[str, str]:
    r"""Return the input of the form of a new study that fits a table of lanes or bills.

    Two columns of names are suppliers and customers, one column with names such as ``Lyon->north``
    too, and other names are uses of a budget. Supplies are the most units of a day, demands the
    usual number. The range of the costs is learned from the bills.

    Examples
    --------
    >>> bills = "depot,town,day,eur\nLyon,north,1,80\nLyon,north,1,90\nLille,south,2,70\n"
    >>> found = draft(Upload("lanes.csv", bills, CsvFormat()))
    >>> found["supply"].splitlines(), found["demand"].splitlines(), found["currency"]
    (['Lyon 2', 'Lille 1'], ['north 2', 'south 1'], 'EUR')
    """
    columns = guessed_columns(table.read().frame)
    file = table.read(columns.arm)
    rows = file.frame.dropna(subset=[*columns.arm])
    if not len(rows) or not columns.arm:
        hint = "Write the supplier and the customer, or the lane, into columns of each row."
        raise InvalidInput("file", "rows with names", "none", hint)
    for name in columns.arm:
        rows[name] = rows[name].astype(str).str.strip()
    found = {"name": "" if table.name == PASTED else PurePath(table.name).stem, "content": ""}
    found |= _amounts(rows, columns) | {"currency": _currency(columns)}
    if columns.round and columns.loss:
        found |= {"content": table.text, "history": "yes", "source": table.name}
    if any(len(text.splitlines()) > MOST_LINES for text in found.values() if text != table.text):
        raise InvalidInput("file", f"at most {MOST_LINES} names", "more", "Use the HTTP API.")
    return found


def _amounts(rows: pd.DataFrame, columns: Columns) -> dict[str, str]:
    """Return suppliers and customers with their usual units, or uses of a budget."""
    if len(columns.arm) == 1:
        (name,) = columns.arm
        sides = sides_of(list(dict.fromkeys(rows[name])))
        split = rows[name].str.partition(ARROW)
        if sides is None and not (split[1] == ARROW).all():
            caps, total = _units(rows, columns, name, "max"), len(rows)
            if columns.round:
                usual = rows.groupby(columns.round, sort=False).size().median()
                total = int(usual) if math.isfinite(usual) else total
            return {"kind": "budget", "caps": _lines(caps), "total": str(total)}
        rows = rows.assign(**{"from": split[0], "to": split[2]})
        columns = columns._replace(arm=("from", "to"))
    source, target = columns.arm
    supply = _units(rows, columns, source, "max", ("supply", "supplies", "stock"))
    demand = _units(rows, columns, target, "median", ("demand", "demands", "orders"))
    found = {"kind": "transport", "supply": _lines(supply), "demand": _lines(demand)}
    have, want = sum(supply.values()), sum(demand.values())
    if have < want:  # bills of few days: the largest numbers of different days do not add up
        supply |= {name: units + want - have for name, units in [*supply.items()][:1]}
        found["supply"] = _lines(supply)
    return found | ({"slack": "yes"} if have > want else {})


def _units(
    rows: pd.DataFrame, columns: Columns, name: str, how: str, stated: tuple[str, ...] = ()
) -> dict[str, int]:
    """Return the units of each name: stated in a column, or counted for each day."""
    names, numbers = list(dict.fromkeys(rows[name])), column_named(rows, stated)
    if numbers and rows[numbers].dtype.kind in "iuf":
        found: Any = rows.groupby(name)[numbers].max()
    elif columns.round:
        found = rows.groupby([name, columns.round]).size().groupby(level=0).agg(how)
    else:
        return dict.fromkeys(names, 1)
    return {one: _whole(found.get(one, 1) or 1, 1) for one in names}


def _whole(number: float, otherwise: int) -> int:
    """Return a number of units, rounded up; ``otherwise`` for NaN and infinity."""
    return max(math.ceil(number), 0) if math.isfinite(number) else otherwise


def _lines(units: dict[str, int]) -> str:
    return as_lines([*units], [*units.values()])


def _currency(columns: Columns) -> str:
    """Return the currency that the name of the column of costs has; "" if it has none."""
    words = re.findall(r"[a-z]+", columns.loss.casefold())
    return next((CURRENCIES[word] for word in words if word in CURRENCIES), "")
