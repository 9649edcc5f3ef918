"""Transport plans: units from suppliers to demanders."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import (
    EXACT,
    is_list,
    is_number,
    true_or_false,
    whole_numbers,
    with_last_axis,
)
from multiplay._support.formatting import UNKNOWN, Table, left_out, number
from multiplay._support.hints import Hint, Option
from multiplay.actions.base import Duplicate, owners, read_only, texts, visible
from multiplay.actions.costs import SetCost, SetSize, length
from multiplay.actions.flow import FlowSet, MinimumCostFlow
from multiplay.errors import InvalidInput
from multiplay.hull import Hull, TransportHull
from multiplay.hull.graph import Graph, bipartite
from multiplay.types import IntArray

Names = Sequence[str] | tuple[Sequence[str], Sequence[str]]
MOST_SUPPLIERS_SHOWN, MOST_DEMANDERS_SHOWN = 20, 12  # in a notebook
UNMET = "unmet->"  # how the name of units begins that cannot be served
MAY_BE_UNMET = Hint(
    "If some demand may stay unmet, write {}, what each unmet unit costs in the unit of the "
    "losses: usually more than a unit on any lane.",
    Option("shortage", "..."),
)
SLACK = Option("slack", "True")
SLACK_HINT = Hint("Write {} if supply may be left over.", SLACK)
SURPLUS_HINT = Hint("Write {} if more than the demand may be delivered.", Option("surplus", "True"))


class Transport(FlowSet):
    r"""Plans that send units from suppliers to demanders, all supplied and all demanded.

    .. math::

        \mathcal{A} = \Bigl\{a \in \mathbb{Z}_{\ge 0}^d :
            \; & \sum_y a_{xy} = \text{supply}_x, \\
            & \sum_x a_{xy} = \text{demand}_y\Bigr\}

    Arm (x, y), number ``x * len(demand) + y``, is the lane from supplier x to demander y, and
    :math:`a_{xy}` the number of units (trucks, for example) sent along it, at most
    :math:`n_{xy} = \min(\text{supply}_x, \text{demand}_y)`.

    Parameters
    ----------
    supply, demand
        Whole numbers with equal sums.
    names
        The suppliers' and the demanders' names, as a pair of lists, or one name for each lane.
    capacities
        What each lane can carry, shape (suppliers, demanders):
        :math:`a_{xy} \le \text{capacities}_{xy}`, 0 where there is no lane.
    slack
        True: :math:`\sum_y a_{xy} \le \text{supply}_x`. Supply may stay with its supplier; every
        demander still gets exactly what is demanded.
    sense
        "min" if units bring losses, "max" if they bring rewards.
    shortage
        What an unmet unit costs, 0 or more, in the unit of the losses. Where supply or lanes are
        too small for the demand, as many units as possible are delivered, no demander gets more
        than demanded, and what cannot be delivered stays with its supplier. All actions leave the
        same number of units unmet, so the penalty has no influence on the lanes that are used.
        Where all demand can be met, nothing changes. Without it, a shortage is an error.
    surplus
        True: :math:`\sum_y a_{xy} \le \text{supply}_x` and
        :math:`\sum_x a_{xy} \ge \text{demand}_y`. More than the demand may be delivered; this
        includes ``slack``.

    See Also
    --------
    Assignment : One unit for everyone.
    Network : Any graph, with stations between supply and demand.

    Examples
    --------
    >>> plans = Transport(supply=[1, 4, 5], demand=[4, 6])
    >>> plans.d, plans.m, plans.M, len(plans.enumerate())
    (6, 5, 10, 9)
    >>> plans.argmin([0.1, 0.9, 0.5, 0.2, 0.3, 0.4])
    array([1, 0, 0, 4, 3, 2])
    >>> Transport([2], [1, 1], names=(["Lyon"], ["north", "south"])).names
    ('Lyon->north', 'Lyon->south')
    >>> Transport([3, 3], [2, 2], slack=True).argmin([0.1, 0.9, 0.2, 0.8])
    array([2, 0, 0, 2])
    >>> Transport([3, 3], [2, 2], slack=True).M, Transport([3, 3], [2, 2], surplus=True).M
    (4, 6)
    >>> short = Transport([1, 2], [3, 2], shortage=5.0)
    >>> short.argmin([0.1, 0.9, 0.3, 0.2]), short.unmet([1, 0, 0, 2])
    (array([1, 0, 0, 2]), {'unmet->d1': 2, 'unmet->d2': 0})
    """

    cost = SetCost(
        SetSize("supply, demand", lambda s: length(s["supply"]) * length(s["demand"])),
        oracle="flow",
    )
    arm_word = "lane"

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(supply=[1, 4, 5], demand=[4, 6])

    def __init__(
        self,
        supply: ArrayLike,
        demand: ArrayLike,
        names: Names | None = None,
        capacities: ArrayLike | None = None,
        slack: bool = False,
        sense: str = "min",
        shortage: float | None = None,
        surplus: bool = False,
    ) -> None:
        self.supply, supplied = _side("supply", supply)
        self.demand, demanded = _side("demand", demand)
        self.surplus = true_or_false("surplus", surplus, SURPLUS_HINT)
        self.slack = true_or_false("slack", slack, SLACK_HINT) or self.surplus
        self.shortage = None if shortage is None else _penalty(shortage)
        self.penalty = self.shortage or 0.0
        spare = supplied - demanded
        self._check_sums(spare)
        extra = max(spare, 0) if self.surplus else 0
        lanes = np.minimum.outer(self.supply, self.demand + extra)
        self.capacities = None if capacities is None else _capacities(capacities, lanes.shape)
        if self.capacities is not None:
            lanes = np.minimum(lanes, self.capacities)
        capacity, graph = lanes.ravel(), bipartite(self.supply, self.demand)
        self._has_flow = self.capacities is None or self.shortage is not None
        self._units_unmet = max(-spare, 0)
        if self.capacities is not None and self.shortage is not None:
            self._units_unmet = _least_unmet(graph, self.supply, self.demand, capacity)
        if self._units_unmet > 0:
            graph, free = _with_shortage(graph, self.supply, self.demand, self._units_unmet)
            capacity = np.concatenate([capacity, free])
        elif spare > 0:
            graph, leftover = _with_spare(graph, self.supply, spare, self.surplus)
            capacity = np.concatenate([capacity, leftover])
        try:
            super().__init__(
                graph,
                capacity,
                np.arange(lanes.size),
                n=lanes.ravel() if capacities is None else None,
                names=lane_names(names, *lanes.shape),
                sense=sense,
            )
        except InvalidInput as error:
            if error.argument != "capacities":
                raise
            raise InvalidInput(
                "capacities",
                "lanes that carry enough for all of the demand",
                "lanes that are too small",
                "Raise capacities. " + MAY_BE_UNMET,
            ) from None

    def _check_sums(self, spare: int) -> None:
        """Raise ``InvalidInput`` for a surplus without slack, or a shortage without a penalty."""
        short = spare < 0 and self.shortage is None
        if not short and (spare <= 0 or self.slack):
            return
        too_much = Hint("Write {} if supply may be left over, or correct the numbers.", SLACK)
        raise InvalidInput(
            "supply, demand",
            "a supply of at least the demand" if self.slack else "equal sums",
            f"{self.supply.sum()} supplied and {self.demand.sum()} demanded",
            "Raise the supply. " + MAY_BE_UNMET if short else too_much,
        )

    def __repr__(self) -> str:
        loose = ", capacities=..." if self.capacities is not None else ""
        loose += ", surplus=True" if self.surplus else ", slack=True" if self.slack else ""
        loose += f", shortage={self.shortage:g}" if self.shortage is not None else ""
        return f"Transport(supply={self.supply.tolist()}, demand={self.demand.tolist()}{loose})"

    def _facts(self) -> dict[str, str]:
        facts = super()._facts() | {
            "suppliers": f"{len(self.supply)}, with {self.supply.sum()} units",
            "demanders": f"{len(self.demand)}, for {self.demand.sum()} units",
        }
        if self.slack:
            facts["slack"] = "supply may be left over"
        if self.surplus:
            facts["surplus"] = "more than the demand may be delivered"
        if self.shortage is not None:
            facts["shortage"] = f"an unmet unit costs {number(self.shortage)}"
        return facts

    def _table(self) -> Table:
        """Return suppliers by demanders: the most units of each lane, with supply and demand."""
        suppliers, demanders = len(self.supply), len(self.demand)
        x, y = min(suppliers, MOST_SUPPLIERS_SHOWN), min(demanders, MOST_DEMANDERS_SHOWN)
        most = self.n.reshape(suppliers, demanders)[:x, :y]
        names = [self.names[k * demanders : k * demanders + y] for k in range(x)]
        sources = [row[0].partition("->")[0] for row in names]
        targets = [name.partition("->")[2] for name in names[0]]
        cells = [[str(units) if units else UNKNOWN for units in row] for row in most.tolist()]
        if names != [tuple(f"{source}->{target}" for target in targets) for source in sources]:
            # the names of the lanes do not name suppliers and demanders
            sources = [f"supplier {k + 1}" for k in range(x)]
            targets = [f"demander {k + 1}" for k in range(y)]
            pairs = zip(names, cells, strict=True)
            cells = [[f"{a}: {b}" for a, b in zip(*pair, strict=True)] for pair in pairs]
        hidden = ["..."] if y < demanders else []
        rows = [
            [source, *row, *hidden, str(units)]
            for source, row, units in zip(sources, cells, self.supply[:x].tolist(), strict=True)
        ]
        rows.append(["demand", *map(str, self.demand[:y].tolist()), *hidden, ""])
        more = left_out(suppliers - x, "suppliers"), left_out(demanders - y, "demanders")
        note = " ".join(["Cells: the most units of a lane.", *more]).strip()
        return Table("", ["", *targets, *hidden, "supply"], rows, note, ruled=(x - 1,))

    def unmet(self, action: ArrayLike) -> dict[str, int]:
        """Return the unmet demand, in a round with a shortage: {"unmet->north": 2, ...}.

        Examples
        --------
        >>> day = Transport([2], [1, 3], names=(["Lyon"], ["north", "south"]), shortage=5.0)
        >>> day.unmet([0, 2])
        {'unmet->north': 1, 'unmet->south': 1}
        """
        if self._units_unmet == 0:
            return {}
        shape = len(self.supply), len(self.demand)
        arrived = with_last_axis("action", action, self.d).reshape(shape).sum(axis=0)
        names = _demanders(self.names, shape[1])
        missing = (self.demand - arrived).astype(np.int64).tolist()
        return {f"{UNMET}{name}": units for name, units in zip(names, missing, strict=True)}

    @property
    def _plain(self) -> bool:
        return self.capacities is None and self._all_arcs_are_arms

    @property
    def copies(self) -> int:
        """The number of arms of ``duplicate``: without capacities, units of supply times demand."""
        if self.capacities is None:
            return int(self.supply.sum()) * len(self.demand)
        return super().copies

    @cached_property
    def _duplicate(self) -> Duplicate:
        """Copies: a supplier for each unit of supply, with supply_x copies of lane (x, y).

        Where lanes have capacities these would bind the copies together: there each lane becomes
        n_xy parallel arcs.
        """
        if self.capacities is not None:
            return super()._duplicate
        owners(np.repeat(self.supply, len(self.demand)))  # refuses too many
        supplier = owners(self.supply)
        lanes = np.arange(self.d).reshape(len(self.supply), len(self.demand))
        copies = Transport(
            np.ones(len(supplier)),
            self.demand,
            slack=self.slack,
            sense=self.sense,
            shortage=self.shortage,
            surplus=self.surplus,
        )
        return Duplicate(copies, lanes[supplier].ravel())

    @cached_property
    def hull(self) -> Hull:
        """The transport polytope."""
        return TransportHull(self.supply, self.demand) if self._plain else super().hull


def _with_spare(
    graph: Graph, supply: IntArray, spare: int, surplus: bool
) -> tuple[Graph, IntArray]:
    """Join nodes to a new one that takes what is left over; return the new capacities too.

    The suppliers are joined: what they keep does not reach a demander. With ``surplus`` the
    demanders are joined too: what they get beyond the demand goes on to the new node.
    """
    nodes = len(graph.balance)
    joined = np.arange(nodes if surplus else len(supply))
    tail = np.concatenate([graph.tail, joined])
    head = np.concatenate([graph.head, np.full(len(joined), nodes)])
    leftover = np.full(len(joined), spare)
    leftover[: len(supply)] = np.minimum(supply, spare)
    return Graph(tail, head, np.append(graph.balance, -spare)), leftover


def _with_shortage(
    graph: Graph, supply: IntArray, demand: IntArray, unmet: int
) -> tuple[Graph, IntArray]:
    """Add a node that takes what cannot be delivered, and one that sends what stays unmet.

    Their balances say how much: so every flow delivers as much as can be delivered.
    """
    left = int(supply.sum() - demand.sum()) + unmet
    suppliers, nodes = len(supply), len(graph.balance)
    takes, sends = np.full(suppliers, nodes), np.full(nodes - suppliers, nodes + 1)
    tail = np.concatenate([graph.tail, np.arange(suppliers), sends])
    head = np.concatenate([graph.head, takes, np.arange(suppliers, nodes)])
    free = np.concatenate([np.minimum(supply, left), np.minimum(demand, unmet)])
    return Graph(tail, head, np.append(graph.balance, [-left, unmet])), free


def _least_unmet(graph: Graph, supply: IntArray, demand: IntArray, capacity: IntArray) -> int:
    """Return how many units stay unmet when as many as possible are delivered."""
    everything, nodes = int(demand.sum()), len(graph.balance)
    loose, free = _with_shortage(graph, supply, demand, everything)
    # every delivered unit lets another one go from the node that sends to the one that takes
    short_cut = Graph(np.append(loose.tail, nodes + 1), np.append(loose.head, nodes), loose.balance)
    costs = np.zeros((1, len(short_cut.tail)))
    costs[0, -1] = -1.0
    limits = np.concatenate([capacity, free, [everything]])
    flow = MinimumCostFlow(short_cut, limits, has_flow=True)
    return everything - int(flow(costs)[0, -1])


def _demanders(lanes: tuple[str, ...], number: int) -> list[str]:
    """Return what follows the arrow in the names of all lanes to a demander; else d1, d2, ..."""
    ends = [{name.partition("->")[2] for name in lanes[y::number]} for y in range(number)]
    found = ["".join(end) if len(end) == 1 else "" for end in ends]
    if "" in found or len(set(found)) < number:
        return [f"d{y + 1}" for y in range(number)]
    return found


def _penalty(shortage: float) -> float:
    if not is_number(shortage) or not 0 <= shortage < np.inf:
        raise InvalidInput(
            "shortage",
            "the cost of an unmet unit, a number of 0 or more",
            f"{shortage!r}",
            "Leave it out if all demand must be met.",
        )
    return float(shortage)


def _side(argument: str, values: ArrayLike) -> tuple[IntArray, int]:
    side = whole_numbers(argument, values)
    if side.ndim != 1 or len(side) == 0:
        raise InvalidInput(
            argument,
            "a list with at least one number",
            f"{side.tolist()}",
            "Give one number for each; 0 is allowed.",
        )
    total = int(side.sum())
    if total > EXACT:
        raise InvalidInput(argument, "a sum of at most 2^53", f"{total}", "Use larger units.")
    return read_only(side), total


def _capacities(capacities: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    lanes = whole_numbers("capacities", capacities)
    if lanes.shape != shape:
        raise InvalidInput(
            "capacities", f"shape {shape}", f"shape {lanes.shape}", "Give one for each lane."
        )
    return read_only(lanes)


def lane_names(names: Names | None, suppliers: int, demanders: int) -> Sequence[Any]:
    """Return a name for each lane, from those of both sides or as they are given."""
    if names is None:
        return _numbered_lanes(suppliers, demanders)
    if is_list(names) and len(names) == 2 and not any(isinstance(side, str) for side in names):
        sources, targets = (visible(texts("names", side)) for side in names)
        if len(sources) != suppliers or len(targets) != demanders:
            raise InvalidInput(
                "names",
                f"{suppliers} suppliers' and {demanders} demanders' names",
                f"{len(sources)} and {len(targets)}",
                "Give one name for each.",
            )
        return _lanes_between(sources, targets)
    return names


def sides_of(lanes: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return suppliers and demanders, if lanes are named after them, one after the other.

    Examples
    --------
    >>> sides_of(["Lyon->north", "Lyon->south", "Lille->north", "Lille->south"])
    (['Lyon', 'Lille'], ['north', 'south'])
    >>> sides_of(["news", "radio"])
    """
    pairs = [lane.partition("->") for lane in lanes]
    sources, targets = (list(dict.fromkeys(pair[k] for pair in pairs)) for k in (0, 2))
    if len(sources) * len(targets) != len(pairs):  # before names of all lanes are made
        return None
    all_lanes = [f"{source}->{target}" for source in sources for target in targets]
    return (sources, targets) if list(lanes) == all_lanes else None


@lru_cache(maxsize=16)
def _numbered_lanes(suppliers: int, demanders: int) -> tuple[str, ...]:
    sources = tuple(f"s{x + 1}" for x in range(suppliers))
    return _lanes_between(sources, tuple(f"d{y + 1}" for y in range(demanders)))


@lru_cache(maxsize=16)
def _lanes_between(sources: tuple[str, ...], targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of all lanes, from a cache."""
    return tuple(f"{source}->{target}" for source in sources for target in targets)
