"""Flows from suppliers to demanders, drawn: bands whose width is the number of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from multiplay._support.formatting import shortened

WIDTH = 360.0  # as wide as a phone: letters keep their size there
LETTER, SPACE = 6.9, 14.0  # width of a letter, and what else the names on either side need
BAR = 10.0  # width of a node
GAP = 16.0  # between two nodes: room for a line of letters
HEIGHT = 150.0  # of all units together
THINNEST = 14.0  # height of a node: its name needs a line
LONGEST = 13  # letters of a name
MOST_NODES = 24  # on one side: more cannot be told apart


class Node(NamedTuple):
    """Somebody who sends or receives, as a bar with a name beside it."""

    name: str
    label: str
    units: int
    x: float
    y: float
    height: float
    text_x: float
    anchor: str


class Band(NamedTuple):
    """Units that go from one to another, as a path with a width."""

    source: str
    target: str
    units: int
    path: str
    width: float
    unmet: bool


class Drawing(NamedTuple):
    """All of it, in a box."""

    width: float
    height: float
    nodes: list[Node]
    bands: list[Band]


def drawn(
    flows: Mapping[tuple[str, str], int], unmet: Mapping[str, int] | None = None
) -> Drawing | None:
    """Return a drawing of flows, and of what demanders lack; None if it would be too full.

    Examples
    --------
    >>> drawing = drawn({("Lyon", "north"): 2, ("Lille", "north"): 1, ("Lille", "south"): 0})
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
    begin, end = _room(sent), WIDTH - _room(received)
    left = _column(sent, scale, tall, begin, begin - 6, "end")
    right = _column(received, scale, tall, end - BAR, end + 6, "start")
    bands = _bands(used, left, right, scale, (begin + BAR, end - BAR))
    return Drawing(WIDTH, tall, [*left.values(), *right.values()], bands)


def _receives(target: str, used: Mapping[tuple[str, str], int]) -> bool:
    return any(to == target for _, to in used)


def _labels(side: Mapping[str, int]) -> list[str]:
    return shortened([name or "unmet" for name in side], LONGEST)


def _room(side: Mapping[str, int]) -> float:
    """Return how much room the names of one side need, with their units."""
    pairs = zip(_labels(side), side.values(), strict=True)
    return max(len(f"{label} {units}") for label, units in pairs) * LETTER + SPACE


def _tall(units: int, scale: float) -> float:
    return max(units * scale, THINNEST)


def _height(side: Mapping[str, int], scale: float) -> float:
    return sum(_tall(units, scale) for units in side.values()) + GAP * len(side)


def _column(
    side: Mapping[str, int], scale: float, tall: float, x: float, text_x: float, anchor: str
) -> dict[str, Node]:
    """Stack the nodes of one side, in the middle of the height."""
    y = GAP / 2 + (tall - _height(side, scale)) / 2
    nodes: dict[str, Node] = {}
    for (name, units), label in zip(side.items(), _labels(side), strict=True):
        height = _tall(units, scale)
        place = round(x, 1), round(y, 1), round(height, 1), round(text_x, 1)
        nodes[name] = Node(name, label, units, *place, anchor)
        y += height + GAP
    return nodes


def _bands(
    used: Mapping[tuple[str, str], int],
    left: Mapping[str, Node],
    right: Mapping[str, Node],
    scale: float,
    ends: tuple[float, float],
) -> list[Band]:
    """Draw every flow from its place in one node to its place in the other."""
    leaves, arrives = _places(used, left, scale, 0), _places(used, right, scale, 1)
    x0, x1 = ends
    middle = (x0 + x1) / 2
    bands = []
    for (source, target), units in used.items():
        y0, y1 = leaves[source, target], arrives[source, target]
        path = f"M{x0:.1f},{y0:.1f} C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        bands.append(Band(source, target, units, path, round(units * scale, 1), source == ""))
    return bands


def _places(
    used: Mapping[tuple[str, str], int], nodes: Mapping[str, Node], scale: float, end: int
) -> dict[tuple[str, str], float]:
    """Return where the middle of each flow meets its node; those of a node lie side by side."""
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
