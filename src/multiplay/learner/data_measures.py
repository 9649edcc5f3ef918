"""Measures of a table of losses: noise, correlations, and what is fitted to arms and rounds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from multiplay._support.words import Words
from multiplay.errors import InvalidInput
from multiplay.learner.data_check import (
    ALIKE,
    DAYS,
    EACH,
    NONE,
    PLAIN,
    TOO_FEW,
    ArmSpread,
    DataCheck,
    GapCorrelation,
    PeriodMean,
    WeekdayEffect,
)
from multiplay.learner.logged_data import KnownArms, LoggedData, read_table
from multiplay.learner.persistence_fit import Cells, Filters, averages, better, in_common
from multiplay.types import FloatArray, IntArray

WEEKS = 3 * 7 * 86_400.0  # seconds of dates, from which weekdays are compared
MOST_CELLS = 10_000  # arms by rounds, of the arms with the most rounds
FEWEST = 20  # forecasts, from which anything is said of persistence, weeks and trend
CERTAIN = 0.01  # p-value of a week pattern, and of a trend
STEADY = 3.0  # units that the noise of all arms counts for, in that of one
MOST_GAPS, MOST_PERIODS = 30, 60  # in the picture


def check_data(
    table: Any,
    arm: str | Sequence[str] = "arm",
    round: str = "round",
    loss: str = "loss",
    *,
    sense: str = "min",
    day_first: bool | None = None,
    skip_bad: bool = False,
    words: Words = PLAIN,
) -> DataCheck:
    """Return what a table of losses is like: noise, persistence, weeks, trend, and what to use.

    Parameters
    ----------
    table
        A table with a row for each unit, as for ``learn_table``: a data frame, or the name of a
        CSV or Excel file.
    arm, round, loss
        The columns; an arm may be in several ones.
    sense
        "min" for losses, "max" for rewards.
    day_first
        How 03/04/2026 is read, if no date of the table shows it.
    skip_bad
        Whether rows with problems are left out.
    words
        The words in which it is shown.

    Examples
    --------
    >>> bills = {"arm": ["air", "sea"] * 2, "round": [1, 1, 2, 2], "loss": [80, 20, 82, 21]}
    >>> check_data(bills).policy
    'PooledCTS(memory=Changes())'
    """
    if sense not in ("min", "max"):
        hint = 'Use "min" for costs, and "max" for rewards.'
        raise InvalidInput("sense", '"min" or "max"', repr(sense), hint)
    read = read_table(table, arm, round, loss, KnownArms(), day_first)
    logged = read.learned(skip_bad)
    logged = logged.rows(~np.isnan(logged.loss))
    if not len(logged.loss):
        hint = f"Write the losses into the column {loss!r}."
        raise InvalidInput("table", "a loss in a row", "none", hint)
    return _checked(logged, words, sense)


def _checked(logged: LoggedData, words: Words, sense: str) -> DataCheck:
    d, T = len(logged.arms), logged.rounds
    every = np.bincount(logged.arm, minlength=d)
    sums = np.bincount(logged.arm, weights=logged.loss)
    means = sums / every
    apart = np.bincount(logged.arm, weights=(logged.loss - means[logged.arm]) ** 2)
    free = int((every - 1).sum())
    pooled = float(apart.sum()) / free if free else np.nan
    order = np.argsort(-every, kind="stable")
    ends = logged.times[[0, -1]].tolist() if len(logged.times) else []
    first, last = [datetime.fromtimestamp(at, UTC) for at in ends] or (None, None)
    cells = len(np.unique(logged.round * d + logged.arm))
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.sqrt(apart / (every - 1))
    found = _fitted(logged, every, means, apart, pooled) if pooled > 0 else {}
    return DataCheck(
        arms=d,
        rounds=T,
        units=len(logged.loss),
        first=first,
        last=last,
        at_once=cells / T,
        noise=float(np.sqrt(pooled)),
        **(UNFITTED | {"apart": _spread(means, every, pooled)} | found),
        relative=bool(means.min() > 0),
        course=_course(logged, means),
        by_arm=tuple(
            ArmSpread(logged.arms[i], int(every[i]), float(means[i]), float(own[i]))
            for i in order.tolist()
        ),
        words=words,
        sense=sense,
    )


def _course(logged: LoggedData, means: FloatArray) -> tuple[PeriodMean, ...]:
    """Return the losses of periods, less the means of arms, or as shares of these."""
    less = logged.loss - means[logged.arm]
    if means.min() > 0:
        less = less / means[logged.arm]
    size = -(-logged.rounds // MOST_PERIODS)
    period = logged.round // size
    sums, count = np.bincount(period, weights=less), np.bincount(period)
    middles = (np.arange(len(count)) * size + 1 + (size - 1) / 2).tolist()
    return tuple(map(PeriodMean, middles, (sums / count).tolist()))


UNFITTED: dict[str, Any] = {
    "persists": None,
    **dict.fromkeys(("rho", "low", "high", "share"), np.nan),
    **dict.fromkeys(("week", "trend"), TOO_FEW),
    "weekdays": (),
    **dict.fromkeys(("slope", "slope_low", "slope_high"), np.nan),
    "by_gap": (),
}


def _spread(means: FloatArray, units: IntArray, noise: float) -> float:
    """Return the standard deviation of the means of arms, without the noise of their averages."""
    if len(means) < 2:
        return np.nan
    noise = 0.0 if np.isnan(noise) else noise
    return float(np.sqrt(max(means.var(ddof=1) - noise * (1 / units).mean(), 0.0)))


def _fitted(
    logged: LoggedData, every: IntArray, means: FloatArray, apart: Any, pooled: float
) -> dict[str, Any]:
    """Return what is fitted to the arms with the most units."""
    places, T = _used(logged), logged.rounds
    number = np.full(len(logged.arms), -1)
    number[places] = np.arange(len(places))
    kept = number[logged.arm] >= 0
    shape = T, len(places)
    units, mean, within = averages(
        number[logged.arm[kept]], logged.round[kept], logged.loss[kept], shape
    )
    scale = np.sqrt((apart + STEADY * pooled) / (every - 1 + STEADY))[places]
    relative = bool(means.min() > 0)
    size = means[places] / scale if relative else np.sqrt(pooled) / scale
    days, columns = _regressors(logged)
    z = columns[:, None] * size[:, None]
    y = (mean - means[places]) / scale
    found: dict[str, Any] = {"by_gap": _gaps(y)}
    errors = int((units > 0).sum()) - len(places)
    if errors < FEWEST:
        return found
    common = in_common(units, mean / scale, within / scale**2)
    filters = Filters(Cells(y, units, z, common))
    trend = columns.shape[1] - 1
    shared, own, kinds = list[int](), list[int](), dict[str, str]()
    for name, group in (("week", [*range(trend)]), ("trend", [trend])):
        kinds[name] = _kind(filters, shared, own, group)
        shared += group if kinds[name] == ALIKE else []
        own += group if kinds[name] == EACH else []
    fit = filters.fit(shared, own)
    if fit.persists:
        fit = filters.finer(fit).fit(shared, own)
    found |= {"persists": fit.persists, **kinds}
    if fit.persists:
        found |= {"rho": fit.rho, "low": fit.low, "high": fit.high, "share": fit.share}
    unit = 1.0 if relative else float(np.sqrt(pooled))
    if kinds["trend"] == ALIKE:
        at, z95 = shared.index(trend), 1.96 * unit
        slope, error = unit * float(fit.coefficients[at]), z95 * float(fit.errors[at])
        found |= {"slope": slope, "slope_low": slope - error, "slope_high": slope + error}
    if kinds["week"] == ALIKE:
        more = unit * np.append(0.0, fit.coefficients[:trend])
        more -= more.mean()
        found["weekdays"] = tuple(
            WeekdayEffect(DAYS[day], float(one)) for day, one in zip(days, more, strict=True)
        )
    return found


def _used(logged: LoggedData) -> IntArray:
    """Return the arms with the most rounds, as far as their cells are not too many."""
    d = len(logged.arms)
    cells = np.unique(logged.arm * logged.rounds + logged.round) // logged.rounds
    rounds = np.bincount(cells, minlength=d)
    order = np.argsort(-rounds, kind="stable")
    fits = int(np.searchsorted(rounds[order].cumsum(), MOST_CELLS, side="right"))
    return np.sort(order[: max(fits, 1)])


def _regressors(logged: LoggedData) -> tuple[list[int], FloatArray]:
    """Return the weekdays that occur, and columns for all but the first, and for a trend."""
    T, times = logged.rounds, logged.times
    at = times if len(times) else np.arange(T, dtype=float)
    span = float(at[-1] - at[0])
    trend = (at - at[0]) / span - 0.5 if span else np.zeros(T)
    days: list[int] = []
    columns = np.zeros((T, 0))
    if len(times) and span >= WEEKS:
        weekday = (times // 86_400 + 3).astype(np.int64) % 7  # 1970-01-01 was a Thursday
        days = np.unique(weekday).tolist() if len(np.unique(weekday)) > 1 else []
        columns = np.stack([weekday == day for day in days[1:]], axis=1) * 1.0 if days else columns
    return days, np.concatenate([columns, trend[:, None]], axis=1)


def _kind(filters: Filters, shared: list[int], own: list[int], group: list[int]) -> str:
    """Return whether regressors count, alike for all arms or for each arm."""
    if not group:
        return TOO_FEW
    arms, more = filters.cells.y.shape[1], int(filters.used[:, group].sum())
    small, alike, each = (shared, own), (shared + group, own), (shared, own + group)
    enough = arms > 1 and filters.errors >= 2 * more + FEWEST
    if enough and better(filters, alike, each) < CERTAIN:
        return EACH
    return ALIKE if better(filters, small, alike) < CERTAIN else NONE


def _gaps(y: FloatArray) -> tuple[GapCorrelation, ...]:
    """Return the correlation of deviations over gaps, where there are pairs of them."""
    found = []
    for gap in range(1, min(MOST_GAPS, len(y) // 3) + 1):
        pairs = ~np.isnan(y[gap:]) & ~np.isnan(y[:-gap])
        if pairs.sum() >= FEWEST:
            one, other = y[gap:][pairs], y[:-gap][pairs]
            size = float(np.sqrt((one @ one) * (other @ other)))
            if size:
                found.append(GapCorrelation(gap, float(one @ other) / size))
    return tuple(found)
