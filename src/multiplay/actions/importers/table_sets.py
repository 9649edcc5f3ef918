"""The action set of a table of logged data: suppliers and customers, or uses of a budget."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay.actions.importers.table_columns import ARROW, STATED, Columns, column_named
from multiplay.actions.transport import sides_of

if TYPE_CHECKING:
    import pandas as pd

# A depot can send what it sent on one of ten days; the largest number may be a mistake. A customer
# gets what is usual.
SUPPLY, DEMAND = 0.9, 0.5
STATED_SUPPLY, STATED_DEMAND = STATED[:3], STATED[3:]


class TableSet(NamedTuple):
    """The set that a table shows.

    Attributes
    ----------
    kind : "transport" or "budget"
        Whether arms lead from suppliers to customers.
    supply, demand : dict
        The usual units of each supplier and customer; of a budget, the most units of each arm,
        and nothing.
    total : int
        The units of a budget.
    peaks : dict
        The most units of each supplier that sent more on single rounds.
    """

    kind: str
    supply: dict[str, int]
    demand: dict[str, int]
    total: int = 0
    peaks: Mapping[str, int] = MappingProxyType({})

    @property
    def slack(self) -> bool:
        """Whether supply is left over."""
        return sum(self.supply.values()) > sum(self.demand.values())


def usual_set(rows: pd.DataFrame, columns: Columns) -> TableSet:
    """Return the set of a table: its names, and the usual units of a round.

    Supplies are a high quantile of the units of the rounds in which a supplier was used, so that
    neither a mistake nor a late opening counts; demands are their median.

    Examples
    --------
    >>> import pandas as pd
    >>> days = [(day, "Lyon", "north") for day in range(20) for _ in range(2)]
    >>> rows = pd.DataFrame([*days, (3, "Lyon", "north")], columns=["day", "from", "to"])
    >>> usual_set(rows, Columns(("from", "to"), "day", ""))
    TableSet(kind='transport', supply={'Lyon': 2}, demand={'north': 2}, total=0, peaks={'Lyon': 3})
    """
    if len(columns.arm) == 1:
        (name,) = columns.arm
        split = rows[name].str.partition(ARROW)
        if sides_of([*dict.fromkeys(rows[name])]) is None and not (split[1] == ARROW).all():
            return _budget(rows, columns, name)
        rows = rows.assign(**{"from": split[0], "to": split[2]})
        columns = columns._replace(arm=("from", "to"))
    source, target = columns.arm
    supply = _units(rows, columns, source, SUPPLY, STATED_SUPPLY)
    demand = _units(rows, columns, target, DEMAND, STATED_DEMAND)
    have, want = sum(supply.values()), sum(demand.values())
    if have < want:  # rows of few rounds: the numbers of different rounds do not add up
        first = next(iter(supply))
        supply[first] += want - have
    most = _units(rows, columns, source, 1.0, STATED_SUPPLY)
    peaks = {name: units for name, units in most.items() if units > supply[name]}
    return TableSet("transport", supply, demand, peaks=peaks)


def _budget(rows: pd.DataFrame, columns: Columns, name: str) -> TableSet:
    """Return the most units of each arm, and the usual units of a round."""
    caps, total = _units(rows, columns, name, 1.0), len(rows)
    if columns.round:
        usual = rows.groupby(columns.round, sort=False).size().median()
        total = int(usual) if math.isfinite(usual) else total
    return TableSet("budget", caps, {}, total)


def _units(
    rows: pd.DataFrame,
    columns: Columns,
    name: str,
    quantile: float,
    stated: Collection[str] = (),
) -> dict[str, int]:
    """Return the units of each name: stated in a column, or a quantile of those of its rounds."""
    names, numbers = list(dict.fromkeys(rows[name])), column_named(rows, stated)
    if numbers and rows[numbers].dtype.kind in "iuf":
        found: Any = rows.groupby(name)[numbers].max()
    elif columns.round:
        of_rounds = rows.groupby([name, columns.round]).size().groupby(level=0)
        found = of_rounds.quantile(quantile, interpolation="higher")
    else:
        return dict.fromkeys(names, 1)
    return {one: _whole(found.get(one, 1) or 1) for one in names}


def _whole(number: float) -> int:
    """Return a number of units, rounded up; 1 for NaN and infinity."""
    return max(math.ceil(number), 0) if math.isfinite(number) else 1
