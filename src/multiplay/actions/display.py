"""What notebooks show of action sets: never more than some arms of a large one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multiplay._support import html
from multiplay._support.formatting import UNKNOWN, Table, number
from multiplay.actions.base import ActionSet
from multiplay.actions.changing import Changing
from multiplay.actions.flow import FlowSet
from multiplay.actions.graphs import SpanningTree
from multiplay.actions.knapsack import Knapsack

if TYPE_CHECKING:
    from multiplay.actions.transport import Transport

MOST_ARMS = 20
MOST_SUPPLIERS, MOST_DEMANDERS = 20, 12
MOST_SETS = 7  # of those that take turns
FEW = 1000  # arms of a set that is asked for its m and M, which takes an oracle
QUICK = (FlowSet, Knapsack, SpanningTree)  # sets whose oracles are fast, and our own
SENSES = {"min": "losses, to be minimised", "max": "rewards, to be maximised"}


def shown(actions: ActionSet) -> str:
    """Return the numbers of a set, and what each arm can have; of a large set, the first arms."""
    if isinstance(actions, Changing):
        return html.panel("Changing", _facts(actions), html.shown(_sets(actions)))
    return html.panel(type(actions).__name__, _facts(actions), html.shown(_arms(actions)))


def shown_transport(actions: Transport) -> str:
    """Return suppliers and demanders as a table, with what each lane can carry."""
    facts = _facts(actions) | {
        "suppliers": f"{len(actions.supply)}, with {actions.supply.sum()} units",
        "demanders": f"{len(actions.demand)}, for {actions.demand.sum()} units",
    }
    if actions.slack:
        facts["slack"] = "supply may be left over"
    if actions.shortage is not None:
        facts["shortage"] = f"an unmet unit costs {number(actions.shortage)}"
    return html.panel("Transport", facts, html.shown(_lanes(actions)))


def _facts(actions: ActionSet) -> dict[str, str]:
    facts = {"arms, d": str(actions.d)}
    known = vars(actions)
    quick = isinstance(actions, QUICK) and actions.d <= FEW
    if "m" in known or quick:
        facts["different arms in a play, m"] = f"at most {actions.m}"
    if "M" in known or quick:
        facts["units in a play, M"] = f"at most {actions.M}"
    if "_n" in known:
        least, most = int(actions.n.min()), int(actions.n.max())
        ends = f"{most}" if least == most else f"{least} to {most}, depending on the arm"
        facts["units of an arm, n"] = f"at most {ends}"
    facts["units bring"] = SENSES[actions.sense]
    if not actions.linear:
        facts["value"] = "not the sum of what its units bring"
    return facts


def _arms(actions: ActionSet) -> Table:
    arms = zip(actions.names[:MOST_ARMS], actions.n[:MOST_ARMS].tolist(), strict=True)
    rows = [[name, str(most)] for name, most in arms]
    return Table("", ["arm", "most units"], rows, _more(actions.d - len(rows), "arms"))


def _sets(actions: Changing) -> Table:
    sets = actions.sets
    if not isinstance(sets, tuple):
        return Table("", ["round", "set"], [["1, 2, ...", "from a function"]], labels=2)
    rows = [[str(t), repr(one)] for t, one in enumerate(sets[:MOST_SETS], start=1)]
    note = f"{_more(len(sets) - len(rows), 'sets')} Then they begin again.".strip()
    return Table("", ["round", "set"], rows, note, labels=2)


def _lanes(actions: Transport) -> Table:
    """Return the most units of every lane, with supply and demand at its ends."""
    suppliers, demanders = len(actions.supply), len(actions.demand)
    x, y = min(suppliers, MOST_SUPPLIERS), min(demanders, MOST_DEMANDERS)
    most = actions.n.reshape(suppliers, demanders)[:x, :y]
    names = [actions.names[k * demanders : k * demanders + y] for k in range(x)]
    sources = [row[0].partition("->")[0] for row in names]
    targets = [name.partition("->")[2] for name in names[0]]
    cells = [[_carried(units) for units in row] for row in most.tolist()]
    if names != [tuple(f"{source}->{target}" for target in targets) for source in sources]:
        # the lanes have names of their own
        sources, targets = _numbered("supplier", x), _numbered("demander", y)
        pairs = zip(names, cells, strict=True)
        cells = [[f"{a}: {b}" for a, b in zip(*pair, strict=True)] for pair in pairs]
    hidden = ["..."] if y < demanders else []
    rows = [
        [source, *row, *hidden, str(units)]
        for source, row, units in zip(sources, cells, actions.supply[:x].tolist(), strict=True)
    ]
    rows.append(["demand", *map(str, actions.demand[:y].tolist()), *hidden, ""])
    left_out = [_more(suppliers - x, "suppliers"), _more(demanders - y, "demanders")]
    note = " ".join(["Cells: the most units of a lane.", *left_out]).strip()
    columns = ["", *targets, *hidden, "supply"]
    return Table("", columns, rows, note, ruled=(x - 1,))


def _carried(most: int) -> str:
    return str(most) if most else UNKNOWN


def _numbered(thing: str, count: int) -> list[str]:
    return [f"{thing} {k + 1}" for k in range(count)]


def _more(count: int, things: str) -> str:
    return f"And {count} more {things}." if count > 0 else ""
