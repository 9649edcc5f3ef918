"""The imported days of a study: what they cost, and what the plans of these days would have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from multiplay._support.formatting import Table, left_out, number, percent, plural
from multiplay._support.words import Words, money_text
from multiplay.actions import ActionSet, Transport
from multiplay.actions.transport import sides_of
from multiplay.errors import InvalidInput
from multiplay.learner import facts
from multiplay.learner.logged_data import LoggedData
from multiplay.service.pages.drawings import ChartDay, CostChart, cost_chart, date_of
from multiplay.studies import Study
from multiplay.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

MOST_DAYS = 1_000  # the last ones
MOST_ROWS = 11  # of the table of arms: the report is one page
DRAWN = 400  # days
FEW_BILLS = 5


class DrivenDays(NamedTuple):
    """Imported days in order of time: names of arms, and for each day its units and its cost."""

    names: list[str]
    times: FloatArray
    units: IntArray
    costs: FloatArray


class PastDays(NamedTuple):
    """What imported days cost, and what their plans would have, as text, table and chart."""

    line: str
    remarks: list[str]
    chart: CostChart | None
    arms: Table


def driven_days(tables: Sequence[LoggedData]) -> DrivenDays:
    """Return the days of imported tables; units without a loss cost as much as the others."""
    names = list(dict.fromkeys(name for table in tables for name in table.arms))
    times, units, costs = list[float](), list[IntArray](), list[float]()
    for table in tables:
        places = np.array([names.index(name) for name in table.arms], dtype=np.int64)[table.arm]
        counts = np.zeros((table.rounds, len(names)), dtype=np.int64)
        np.add.at(counts, (table.round, places), 1)
        for row, (when, all_units, seen, total) in zip(counts, table.totals(), strict=True):
            if not seen:
                continue
            whole = total * all_units / seen
            if when in times:  # a day of two tables
                same = times.index(when)
                units[same], costs[same] = units[same] + row, costs[same] + whole
            else:
                times, units, costs = [*times, when], [*units, row], [*costs, whole]
    order = np.argsort(np.array(times), kind="stable")[-MOST_DAYS:]
    return DrivenDays(
        names,
        np.array(times)[order],
        np.array(units, dtype=np.int64).reshape(len(units), len(names))[order],
        np.array(costs)[order],
    )


def past_days(study: Study, tables: Sequence[LoggedData]) -> PastDays | None:
    """Return what imported days cost, and what their plans would have; None if it is not known."""
    driven, words = driven_days(tables), study.words
    known = study.arms().set_index("arm").reindex(study.actions.names)
    means = known["mean"].to_numpy(dtype=float)
    if not len(driven.costs) or not np.isfinite(means).all():
        return None
    plans = plans_of_days(study.actions, driven, means)
    compared = np.array([plan is not None for plan in plans])
    if not compared.any():
        return None
    planned = np.array([plan for plan in plans if plan is not None])
    average, halves = planned.mean(axis=0), _half_widths(known)
    expected, half = float(average @ means), float(np.sqrt(((average * halves) ** 2).sum()))
    low, high = expected - half, expected + half
    if (planned == planned[0]).all():
        with suppress(InvalidInput):  # one plan: the same interval as that of the best plan
            _, low, high = study.expect(planned[0].tolist())
    mean = float(driven.costs[compared].mean())
    did, day = "cost" if study.actions.sense == "min" else "brought", plural(words.round)
    line = f"Your {day} {did} {words.money(mean)} on average. The best plan by these bills: "
    line += words.money(expected) + (f" ({words.ends(low, high)})." if isfinite(half) else ".")
    then = plans_of_days(study.actions, driven, means, then=True)
    costs = np.array([np.nan if plan is None else plan @ means for plan in then])
    days = [
        ChartDay(when, date_of(when) or f"{k}", None, cost, expected=plan)
        for k, (when, cost, plan) in enumerate(
            zip(driven.times.tolist(), driven.costs.tolist(), costs.tolist(), strict=True), 1
        )
    ][-DRAWN:]
    bills = known["seen"].to_numpy()
    remarks = _remarks(words, compared, average, bills)
    if not np.allclose(costs[compared], planned @ means):
        remarks.insert(
            1,
            f"The picture has the suppliers of each {words.round}: who has sent nothing until then "
            f"is left out. With them the plans would have {did} "
            f"{words.money(float(np.nanmean(costs)))} on average.",
        )
    table = _arms(words, study, driven, compared, average, known)
    return PastDays(line, remarks, cost_chart(days, words), table)


def _half_widths(known: pd.DataFrame) -> FloatArray:
    low, high = (known[end].to_numpy(dtype=float) for end in ("low", "high"))
    return np.asarray((high - low) / 2)


def plans_of_days(
    actions: ActionSet, driven: DrivenDays, means: FloatArray, then: bool = False
) -> list[IntArray | None]:
    """Return the cheapest plan by mean costs for the demand of each day; None where it has none.

    The demand of a day is what its customers got; suppliers have their usual supply, or what they
    sent on the day, if that was more; with ``then``, those that have sent something until the day.
    For other sets than transport it is the best plan of the set on days whose units are an action
    of it.

    Examples
    --------
    >>> day = DrivenDays(["Lyon->x", "Lille->x"], np.zeros(1), np.array([[3, 1]]), np.ones(1))
    >>> actions = Transport([3, 2], [3], names=[["Lyon", "Lille"], ["x"]], slack=True)
    >>> [plan.tolist() for plan in plans_of_days(actions, day, np.array([9.0, 5.0]))]
    [[2, 2]]
    """
    places = [driven.names.index(name) if name in driven.names else -1 for name in actions.names]
    own = np.pad(driven.units, ((0, 0), (0, 1)))[:, places]
    whole = own.sum(axis=1) == driven.units.sum(axis=1)
    sides = sides_of(list(actions.names)) if isinstance(actions, Transport) else None
    if sides is None or not isinstance(actions, Transport):
        best = actions.argmin(means * actions.sign)
        fits = whole & actions.contains(own)
        return [best if one else None for one in fits.tolist()]
    made: dict[tuple[bytes, bytes], IntArray] = {}
    plans = list[IntArray | None]()
    grid = own.reshape(len(own), *map(len, sides))
    sent = grid.sum(axis=2)
    usual = actions.supply * (np.cumsum(sent, axis=0) > 0) if then else [actions.supply] * len(own)
    for supply, units, one in zip(np.maximum(usual, sent), grid, whole.tolist(), strict=True):
        demand = units.sum(axis=0)
        key = supply.tobytes(), demand.tobytes()
        if one and key not in made:
            day = Transport(supply.tolist(), demand.tolist(), slack=True, capacities=_most(actions))
            try:
                made[key] = day.argmin(means * actions.sign)
            except InvalidInput:  # capacities do not permit it
                one = False
        plans.append(made[key] if one else None)
    return plans


def _most(actions: Transport) -> list[list[int]] | None:
    return None if actions.capacities is None else actions.capacities.tolist()


def _remarks(words: Words, compared: BoolArray, average: FloatArray, bills: IntArray) -> list[str]:
    """Return what the comparison rests on, as sentences."""
    days, skipped = int(compared.sum()), int((~compared).sum())
    seen, total = int(bills.sum()), max(float(average.sum()), 1e-9)
    found = [
        f"Of {words.rounds(days)}, each with the plan for its own demand, at what {seen:,} bills "
        f"teach today about the {plural(words.arm)}. The 95 % interval is that of the mean costs: "
        "the luck of single bills is not part of it."
    ]
    thin = float(average[bills < FEW_BILLS].sum()) / total
    if thin >= 0.01:
        found.append(
            f"{percent(thin)} of the {plural(words.unit)} of these plans are on "
            f"{plural(words.arm)} with fewer than {FEW_BILLS} bills: what these cost is a guess."
        )
    if skipped:
        found.append(f"{words.rounds(skipped)} are not compared: no plan of the study fits them.")
    return found


def _arms(
    words: Words,
    study: Study,
    driven: DrivenDays,
    compared: BoolArray,
    average: FloatArray,
    known: pd.DataFrame,
) -> Table:
    """Return the arms of the days and of the plans, those with most units of the plans first."""
    past = dict(zip(driven.names, driven.units[compared].mean(axis=0), strict=True))
    units, rows = plural(words.unit), []
    order = np.argsort(-average, kind="stable")
    shown = [k for k in order.tolist() if average[k] or past.get(study.actions.names[k])]
    for k, arm in zip(shown, facts.rows_of(known.iloc[shown[:MOST_ROWS]]), strict=False):
        name = study.actions.names[k]
        texts = number(round(past.get(name, 0.0), 1)), number(round(float(average[k]), 1))
        ends = words.ends(arm.low, arm.high)
        rows.append([name, *texts, money_text(arm.mean), ends, f"{arm.seen:.0f}"])
    heads = [f"{units} per {words.round} so far", "in the plans", words.in_currency("mean")]
    note = left_out(len(shown) - MOST_ROWS, plural(words.arm))
    return Table("", [words.arm, *heads, "95 % interval", "bills"], rows, note)
