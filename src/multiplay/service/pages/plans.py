"""Plans for pages: suppliers by customers with a drawing of the flows, or a list of arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import NamedTuple

from multiplay._support.formatting import abbreviated, chosen, counted, number
from multiplay._support.words import noun_of, verb_of
from multiplay.actions import ActionSet, Budget, Knapsack, Transport
from multiplay.actions.transport import UNMET, sides_of
from multiplay.learner.plays import Estimate, PendingPlay
from multiplay.studies import Study

MOST_ROWS = 200  # of a list of arms


class GridRow(NamedTuple):
    """A supplier, with its units for each customer, and their sum."""

    name: str
    units: list[int]
    total: int


class PlanGrid(NamedTuple):
    """Units from suppliers to customers."""

    targets: list[str]
    rows: list[GridRow]
    unmet: GridRow | None
    totals: list[int]
    total: int
    drawing: FlowDrawing | None


class PlanView(NamedTuple):
    """A plan on a page.

    Attributes
    ----------
    play : PendingPlay or None
        The play of the plan; None for the best plan, which is not a play.
    words : str
        The expected cost as text.
    grid : PlanGrid or None
        For transport.
    arms : list of pairs
        Otherwise: the arms that are played, with their units.
    left_out : int
        How many more arms are played.
    unused : int
        How many arms are not played.
    units : dict
        The whole plan by name, with units that cannot be served.
    """

    play: PendingPlay | None
    words: str
    grid: PlanGrid | None
    arms: list[tuple[str, int]]
    left_out: int
    unused: int
    units: Mapping[str, int]


def current_plan(study: Study, pending: Sequence[PendingPlay]) -> PlanView | None:
    """Return the newest pending play, or the best plan; None if neither is known."""
    if pending:
        return plan_view(pending[-1].plan, pending[-1].expected, study, pending[-1])
    try:
        best = study.best()
    except ValueError:  # only totals of rounds were told: the best plan is not known
        return None
    return plan_view(best.plan, best.expected, study)


def plan_view(
    plan: Mapping[str, int],
    expected: Estimate | None,
    study: Study,
    play: PendingPlay | None = None,
) -> PlanView:
    """Return a plan for a page."""
    words = "" if expected is None else outlook(expected, study)
    grid = grid_of(plan)
    played = list(chosen(dict(plan)).items())
    unused = len(plan) - len(played)
    rows = [] if grid is not None else played[:MOST_ROWS]
    return PlanView(play, words, grid, rows, len(played) - MOST_ROWS, unused, plan)


def outlook(expected: Estimate, study: Study) -> str:
    """Return the expected total of a plan as text: the end of a sentence."""
    verb = verb_of(study.actions.sense)
    if isnan(expected.total):
        return f"has a {noun_of(study.actions.sense)} that is not known yet"
    return f"should {verb} {study.words.estimate(*expected)}"


def grid_of(plan: Mapping[str, int]) -> PlanGrid | None:
    """Return a plan as suppliers by customers, if its arms are lanes.

    Examples
    --------
    >>> grid = grid_of({"Lyon->north": 2, "Lyon->south": 0, "unmet->south": 1})
    >>> grid.targets, grid.rows, grid.unmet.units
    (['north', 'south'], [GridRow(name='Lyon', units=[2, 0], total=2)], [0, 1])
    """
    lacks = {name: units for name, units in plan.items() if name.startswith(UNMET)}
    lanes = {name: units for name, units in plan.items() if name not in lacks}
    sides = sides_of(list(lanes))
    if sides is None:
        return None
    sources, targets = sides
    sent = [GridRow(x, found := [lanes[f"{x}->{y}"] for y in targets], sum(found)) for x in sources]
    totals = [sum(column) for column in zip(*(row.units for row in sent), strict=True)]
    unmet = {y: lacks.get(f"{UNMET}{y}", 0) for y in targets}
    lacking = GridRow("unmet", [*unmet.values()], sum(unmet.values())) if lacks else None
    flows = {(row.name, y): k for row in sent for y, k in zip(targets, row.units, strict=True)}
    return PlanGrid(targets, sent, lacking, totals, sum(totals), draw_flows(flows, unmet))


def set_summary(actions: ActionSet) -> str:
    """Return the kind and the size of an action set as text.

    Examples
    --------
    >>> set_summary(Transport([1, 4, 5], [4, 6])), set_summary(Budget(9, [6, 4, 2]))
    ('Transport: 3 suppliers, 2 customers', 'Budget: 9 units over 3 arms')
    """
    if isinstance(actions, Transport):
        sides = counted(len(actions.supply), "supplier"), counted(len(actions.demand), "customer")
        more = ", more than the demand may be delivered" if actions.surplus else ""
        return f"Transport: {', '.join(sides)}{more}"
    if isinstance(actions, Knapsack):
        items = counted(actions.d, "item")
        return f"Knapsack: {items}, capacity {number(actions.capacity)}"
    if isinstance(actions, Budget):
        units = counted(actions.total, "unit")
        return f"Budget: {units} over {counted(actions.d, 'arm')}"
    return f"{type(actions).__name__}: {counted(actions.d, 'arm')}"


# ---------------------------------------------------------------- drawings of flows

WIDTH = 360.0  # as wide as a phone: text keeps its size there
CHARACTER, SPACE = 6.9, 14.0  # width of a character, and of the space around names
BAR = 10.0  # width of a node
GAP = 16.0  # between two nodes: the height of a line of text
HEIGHT = 150.0  # of all units together
THINNEST = 14.0  # height of a node: its name needs a line
LONGEST = 13  # characters of a name
MOST_NODES = 24  # on one side: more are not legible


class FlowNode(NamedTuple):
    """A supplier or a customer, as a bar with a name beside it."""

    name: str
    label: str
    units: int
    x: float
    y: float
    height: float
    text_x: float
    anchor: str


class FlowBand(NamedTuple):
    """Units from a supplier to a customer, as a path with a width."""

    source: str
    target: str
    units: int
    path: str
    width: float
    unmet: bool


class FlowDrawing(NamedTuple):
    """Flows from suppliers to customers: bands whose width is the number of units."""

    width: float
    height: float
    nodes: list[FlowNode]
    bands: list[FlowBand]


def draw_flows(
    flows: Mapping[tuple[str, str], int], unmet: Mapping[str, int] | None = None
) -> FlowDrawing | None:
    """Return a drawing of flows and of unmet demand; None if there are too many nodes.

    Examples
    --------
    >>> drawing = draw_flows({("Lyon", "north"): 2, ("Lille", "north"): 1, ("Lille", "south"): 0})
    >>> [(node.name, node.units) for node in drawing.nodes]
    [('Lyon', 2), ('Lille', 1), ('north', 3)]
    >>> [(band.source, band.target, band.units) for band in drawing.bands]
    [('Lyon', 'north', 2), ('Lille', 'north', 1)]
    """
    missing = {target: units for target, units in (unmet or {}).items() if units}
    used = {pair: units for pair, units in flows.items() if units}
    used |= {("", target): units for target, units in missing.items()}
    if not used:
        return None
    sources = list(dict.fromkeys(source for source, _ in used))
    targets = list(dict.fromkeys(target for _, target in flows if _receives(target, used)))
    targets += [target for target in missing if target not in targets]
    if max(len(sources), len(targets)) > MOST_NODES:
        return None
    scale = HEIGHT / sum(used.values())
    sent = {source: sum(u for (s, _), u in used.items() if s == source) for source in sources}
    received = {target: sum(u for (_, t), u in used.items() if t == target) for target in targets}
    tall = max(_height(side, scale) for side in (sent, received))
    begin, end = _label_width(sent), WIDTH - _label_width(received)
    left = _column(sent, scale, tall, begin, begin - 6, "end")
    right = _column(received, scale, tall, end - BAR, end + 6, "start")
    bands = _bands(used, left, right, scale, (begin + BAR, end - BAR))
    return FlowDrawing(WIDTH, tall, [*left.values(), *right.values()], bands)


def _receives(target: str, used: Mapping[tuple[str, str], int]) -> bool:
    return any(to == target for _, to in used)


def _labels(side: Mapping[str, int]) -> list[str]:
    return abbreviated([name or "unmet" for name in side], LONGEST)


def _label_width(side: Mapping[str, int]) -> float:
    """Return the width of the names of one side, with their units."""
    pairs = zip(_labels(side), side.values(), strict=True)
    return max(len(f"{label} {units}") for label, units in pairs) * CHARACTER + SPACE


def _tall(units: int, scale: float) -> float:
    return max(units * scale, THINNEST)


def _height(side: Mapping[str, int], scale: float) -> float:
    return sum(_tall(units, scale) for units in side.values()) + GAP * len(side)


def _column(
    side: Mapping[str, int], scale: float, tall: float, x: float, text_x: float, anchor: str
) -> dict[str, FlowNode]:
    """Return the nodes of one side, stacked and vertically centred."""
    y = GAP / 2 + (tall - _height(side, scale)) / 2
    nodes: dict[str, FlowNode] = {}
    for (name, units), label in zip(side.items(), _labels(side), strict=True):
        height = _tall(units, scale)
        place = round(x, 1), round(y, 1), round(height, 1), round(text_x, 1)
        nodes[name] = FlowNode(name, label, units, *place, anchor)
        y += height + GAP
    return nodes


def _bands(
    used: Mapping[tuple[str, str], int],
    left: Mapping[str, FlowNode],
    right: Mapping[str, FlowNode],
    scale: float,
    ends: tuple[float, float],
) -> list[FlowBand]:
    """Return a band for every flow, between its places in both nodes."""
    leaves, arrives = _places(used, left, scale, 0), _places(used, right, scale, 1)
    x0, x1 = ends
    middle = (x0 + x1) / 2
    bands = []
    for (source, target), units in used.items():
        y0, y1 = leaves[source, target], arrives[source, target]
        path = f"M{x0:.1f},{y0:.1f} C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        bands.append(FlowBand(source, target, units, path, round(units * scale, 1), source == ""))
    return bands


def _places(
    used: Mapping[tuple[str, str], int], nodes: Mapping[str, FlowNode], scale: float, end: int
) -> dict[tuple[str, str], float]:
    """Return the middle of each flow at its node, where flows lie side by side."""
    order: Sequence[tuple[str, str]] = list(used)
    names = list(nodes)
    if end == 1:
        order = sorted(used, key=lambda pair: names.index(pair[1]))
    next_y = {node.name: node.y + (node.height - node.units * scale) / 2 for node in nodes.values()}
    places = {}
    for pair in order:
        width = used[pair] * scale
        places[pair] = next_y[pair[end]] + width / 2
        next_y[pair[end]] += width
    return places
