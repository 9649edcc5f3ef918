"""A plan as people read it: suppliers by demanders with the flows drawn, or a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from multiplay._support.formatting import chosen, counted, number
from multiplay.actions import ActionSet, Budget, Knapsack, Transport
from multiplay.actions.transport import UNMET, sides_of
from multiplay.learner.plays import Estimate, PendingPlay
from multiplay.reports.study_words import outlook
from multiplay.service.pages import flows
from multiplay.studies import Study

MOST_ROWS = 200  # of a list of arms


class Side(NamedTuple):
    """A supplier, with what it sends to each demander, and in all."""

    name: str
    units: list[int]
    total: int


class Grid(NamedTuple):
    """Units from suppliers to demanders."""

    targets: list[str]
    rows: list[Side]
    unmet: Side | None
    totals: list[int]
    total: int
    drawing: flows.Drawing | None


class Planned(NamedTuple):
    """A plan on a page.

    Attributes
    ----------
    play : PendingPlay or None
        The play that it is of; None for the best plan, which is none.
    words : str
        What it should cost.
    grid : Grid or None
        For transport.
    arms : list of pairs
        Otherwise: the arms that are played, with their units.
    left_out : int
        How many more of them there are.
    others : int
        Arms of which nothing is played.
    """

    play: PendingPlay | None
    words: str
    grid: Grid | None
    arms: list[tuple[str, int]]
    left_out: int
    others: int


def planned(study: Study, pending: Sequence[PendingPlay]) -> Planned | None:
    """Return the newest play that waits, or the best plan; None if nobody knows one."""
    sense = study.actions.sense
    if pending:
        return described(pending[-1].plan, pending[-1].expected, sense, pending[-1])
    try:
        best = study.best()
    except ValueError:  # only totals of rounds were told: no plan is known to be best
        return None
    return described(best.plan, best.expected, sense)


def described(
    plan: Mapping[str, int], expected: Estimate | None, sense: str, play: PendingPlay | None = None
) -> Planned:
    """Return a plan for a page."""
    words = "" if expected is None else outlook(expected, sense)
    grid = grid_of(plan)
    played = list(chosen(dict(plan)).items())
    others = len(plan) - len(played)
    rows = [] if grid is not None else played[:MOST_ROWS]
    return Planned(play, words, grid, rows, len(played) - MOST_ROWS, others)


def grid_of(plan: Mapping[str, int]) -> Grid | None:
    """Return a plan as suppliers by demanders, if its arms are lanes.

    Examples
    --------
    >>> grid = grid_of({"Lyon->north": 2, "Lyon->south": 0, "unmet->south": 1})
    >>> grid.targets, grid.rows, grid.unmet.units
    (['north', 'south'], [Side(name='Lyon', units=[2, 0], total=2)], [0, 1])
    """
    lacks = {name: units for name, units in plan.items() if name.startswith(UNMET)}
    lanes = {name: units for name, units in plan.items() if name not in lacks}
    sides = sides_of(list(lanes))
    if sides is None:
        return None
    sources, targets = sides
    sent = [Side(x, found := [lanes[f"{x}->{y}"] for y in targets], sum(found)) for x in sources]
    totals = [sum(column) for column in zip(*(row.units for row in sent), strict=True)]
    unmet = {y: lacks.get(f"{UNMET}{y}", 0) for y in targets}
    lacking = Side("unmet", [*unmet.values()], sum(unmet.values())) if lacks else None
    flow = {(row.name, y): k for row in sent for y, k in zip(targets, row.units, strict=True)}
    return Grid(targets, sent, lacking, totals, sum(totals), flows.drawn(flow, unmet))


def what_it_is(actions: ActionSet) -> str:
    """Say in words what may be played.

    Examples
    --------
    >>> what_it_is(Transport([1, 4, 5], [4, 6])), what_it_is(Budget(9, [6, 4, 2]))
    ('Transport: 3 suppliers, 2 demanders', 'Budget: 9 units over 3 arms')
    """
    if isinstance(actions, Transport):
        sides = counted(len(actions.supply), "supplier"), counted(len(actions.demand), "demander")
        return f"Transport: {', '.join(sides)}"
    if isinstance(actions, Knapsack):
        items = counted(actions.d, "item")
        return f"Knapsack: {items}, capacity {number(actions.capacity)}"
    if isinstance(actions, Budget):
        units = counted(actions.total, "unit")
        return f"Budget: {units} over {counted(actions.d, 'arm')}"
    return f"{type(actions).__name__}: {counted(actions.d, 'arm')}"
