"""Draft of a study from a table of lanes or bills: what the form of a new study begins with."""

from __future__ import annotations

import math
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from multiplay._support.formatting import number
from multiplay._support.frames import TableFile
from multiplay.actions.transport import sides_of
from multiplay.errors import InvalidInput
from multiplay.service.pages.forms import MOST_LINES, as_lines
from multiplay.service.pages.uploads import PASTED, Columns, Upload, column_named, guessed_columns

if TYPE_CHECKING:
    import pandas as pd

ARROW = "->"
ROOM = 1.5  # the largest cost of a new study, relative to the largest cost of a bill
CURRENCIES = {"eur": "EUR", "euro": "EUR", "euros": "EUR", "usd": "USD", "gbp": "GBP", "chf": "CHF"}


def draft(table: Upload) -> dict[str, str]:
    r"""Return the input of the form of a new study that fits a table of lanes or bills.

    Two columns of names are suppliers and customers, one column with names such as ``Lyon->north``
    too, and other names are uses of a budget. Supplies are the most units of a day, demands the
    usual number. Costs are expected up to one and a half times the largest.

    Examples
    --------
    >>> bills = "depot,town,day,eur\nLyon,north,1,80\nLyon,north,1,90\nLille,south,2,70\n"
    >>> found = draft(Upload("lanes.csv", bills, bills.encode()))
    >>> found["supply"].splitlines(), found["demand"].splitlines(), found["high"]
    (['Lyon 2', 'Lille 1'], ['north 2', 'south 1'], '140')
    """
    columns = guessed_columns(table.read().frame)
    file = table.read(columns.arm)
    rows = file.frame.dropna(subset=[*columns.arm])
    if not len(rows):
        hint = "Write the supplier and the customer, or the lane, into columns of each row."
        raise InvalidInput("file", "rows with names", "none", hint)
    for name in columns.arm:
        rows[name] = rows[name].astype(str).str.strip()
    found = {"name": "" if table.name == PASTED else PurePath(table.name).stem, "content": ""}
    found |= _amounts(rows, columns) | _range(file, columns)
    if columns.round and columns.loss:
        found |= {"content": table.text, "history": "yes"}
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
                total = int(rows.groupby(columns.round, sort=False).size().median())
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
    return {one: max(math.ceil(found.get(one, 1) or 1), 0) for one in names}


def _lines(units: dict[str, int]) -> str:
    return as_lines([*units], [*units.values()])


def _range(file: TableFile, columns: Columns) -> dict[str, str]:
    """Return the range of costs, and the currency that the name of their column has."""
    import pandas as pd

    words = re.findall(r"[a-z]+", columns.loss.casefold())
    found = {"currency": next((CURRENCIES[word] for word in words if word in CURRENCIES), "")}
    if not columns.loss:
        return found
    costs = file.frame[columns.loss]
    if costs.dtype.kind not in "iuf":  # some rows have no number
        mark = "." if file.format is None else file.format.decimal
        costs = pd.to_numeric(costs.astype(str).str.replace(mark, "."), errors="coerce")
    low, high = float(costs.min()), float(costs.max())
    if not (math.isfinite(low) and math.isfinite(high)) or high <= 0:
        return found
    digits = 1 - math.floor(math.log10(ROOM * high))  # two digits
    rounded = math.ceil(ROOM * high * 10**digits) / 10**digits
    return found | {"low": "0" if low >= 0 else number(ROOM * low), "high": f"{rounded:.12g}"}
