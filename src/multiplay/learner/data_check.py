"""What a table of losses is like: its size, noise, persistence, weeks and trend, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from multiplay._support.formatting import percent, plural
from multiplay._support.html import HasPanel, Panel
from multiplay._support.words import Words, noun_of
from multiplay.types import MaybeKnown, Note, Sense

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLAIN = Words(arm="arm", round="round")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TOLD_APART = 4.0  # (2 standard errors)^2 of a difference, over the variance of two arms' difference
MOST_ARMS = 20  # in the picture
NONE, ALIKE, EACH, TOO_FEW = "none", "alike", "each arm", "unknown"


class ArmSpread(NamedTuple):
    """The losses of an arm of a table.

    Attributes
    ----------
    arm : str
        Its name.
    units : int
        The number of its units.
    mean, deviation : float
        Their average, and their standard deviation.
    """

    arm: str
    units: int
    mean: float
    deviation: MaybeKnown


class GapCorrelation(NamedTuple):
    """How alike the losses of an arm are that lie some rounds apart.

    Attributes
    ----------
    gap : int
        The number of rounds.
    correlation : float
        The correlation of the deviations from the mean of the arm.
    """

    gap: int
    correlation: float


class WeekdayEffect(NamedTuple):
    """What a weekday costs more than an average one.

    Attributes
    ----------
    weekday : str
        Its name.
    more : float
        A share of the mean of the arm if ``relative``, else in the unit of the losses.
    """

    weekday: str
    more: float


class PeriodMean(NamedTuple):
    """The losses of some rounds, less the means of their arms.

    Attributes
    ----------
    round : float
        The number of the round in the middle, from 1.
    more : float
        The average, as ``WeekdayEffect.more``.
    """

    round: float
    more: float


@dataclass(frozen=True)
class DataCheck(HasPanel):
    r"""What a table of losses is like, and which policy fits it, in five sentences.

    The average y of the units of arm i in round t is fitted as

    .. math::

        y = \mu_i + \langle \beta, z_{it} \rangle + x_{it} + \text{noise}, \qquad
        x_{i,t+1} = \rho\, x_{it} + \text{noise},

    with regressors z for weekdays and a trend. See docs/data-check.md.

    Attributes
    ----------
    arms, rounds, units : int
        The numbers of arms, of rounds, and of units with a loss.
    first, last : datetime or None
        The first and the last date; None if the rounds have no dates.
    at_once : float
        The number of arms in an average round.
    noise, apart : float
        The standard deviations of losses around the mean of their arm, and of these means.
    persists : bool or None
        Whether losses persist from round to round, at the level of 0.01; None if there are too few.
    rho, low, high : float
        The share of a deviation that is left after a round, with its 95 % interval; NaN if nothing
        persists.
    share : float
        The share of the variance of an arm's losses that persists.
    week, trend : "none", "alike", "each arm" or "unknown"
        Whether there is a pattern of the week, or a trend, alike for all arms or different.
    weekdays : tuple of WeekdayEffect
        What weekdays cost more, if the pattern is alike.
    slope, slope_low, slope_high : float
        The change from the first to the last round, if it is alike, with its 95 % interval.
    relative : bool
        Whether these are shares of the means of arms.
    by_gap : tuple of GapCorrelation
        The correlations over gaps.
    course : tuple of PeriodMean
        The losses of equal numbers of rounds, less the means of their arms.
    by_arm : tuple of ArmSpread
        The arms, those with the most units first.
    words : Words
        The words in which it is shown.
    sense : "min" or "max"
        Whether units bring losses or rewards.

    Examples
    --------
    >>> from multiplay import check_data
    >>> bills = {"arm": ["air", "sea"] * 2, "round": [1, 1, 2, 2], "loss": [80, 20, 82, 21]}
    >>> print(check_data(bills).sentences[0])
    There are 4 units of 2 arms in 2 rounds, with 2.0 arms in an average round.
    """

    arms: int
    rounds: int
    units: int
    first: datetime | None
    last: datetime | None
    at_once: float
    noise: MaybeKnown
    apart: MaybeKnown
    persists: bool | None
    rho: MaybeKnown
    low: MaybeKnown
    high: MaybeKnown
    share: MaybeKnown
    week: str
    trend: str
    weekdays: tuple[WeekdayEffect, ...]
    slope: MaybeKnown
    slope_low: MaybeKnown
    slope_high: MaybeKnown
    relative: bool
    by_gap: tuple[GapCorrelation, ...]
    course: tuple[PeriodMean, ...]
    by_arm: tuple[ArmSpread, ...]
    words: Words = PLAIN
    sense: Sense = "min"

    def __str__(self) -> Annotated[str, Note.SHOWN]:
        return "\n".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Five sentences: size, noise, persistence, week and trend, and what they mean."""
        return self._size, self._noise, self._persistence, self._patterns, self._advice

    @property
    def policy(self) -> Annotated[str, Note.SHOWN]:
        """The policy that fits, as it is written in Python."""
        if self.persists:
            return "PooledCTS(memory=Persists())"
        return (
            "FeatureCTS(memory=Changes())" if self.week == EACH else "PooledCTS(memory=Changes())"
        )

    @property
    def _size(self) -> str:
        words, dates = self.words, ""
        if self.first is not None and self.last is not None:
            dates = f" from {self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}"
        each = f"{self.at_once:.1f} {plural(words.arm)}"
        size = (
            f"{words.units(self.units)} of {words.arms(self.arms)} in {words.rounds(self.rounds)}"
        )
        are = "is" if self.units == 1 else "are"
        return f"There {are} {size}{dates}, with {each} in an average {words.round}."

    @property
    def _noise(self) -> str:
        words, noun = self.words, noun_of(self.sense)
        if np.isnan(self.noise):
            return f"How much {noun}s differ within one {words.arm} is not known yet: each has one."
        text = f"The {noun} of a {words.unit} is typically {words.money(self.noise)} away from the "
        text += f"mean of its {words.arm}"
        if np.isnan(self.apart):
            return f"{text}; there are no two {plural(words.arm)} to compare."
        text += f", and these means are {words.money(self.apart)} away from their mean"
        if self.apart == 0:
            return f"{text}: no difference is visible in the noise."
        need = max(int(np.ceil(TOLD_APART * (self.noise / self.apart) ** 2)), 1)
        two = f"two typical {plural(words.arm)}"
        return f"{text}: {two} can be told apart after about {words.units(need)} of each."

    @property
    def _persistence(self) -> str:
        words, noun = self.words, noun_of(self.sense)
        if self.persists is None:
            return f"There are too few {plural(words.round)} to say whether {noun}s persist."
        if not self.persists:
            return f"Nothing is seen to persist from one {words.round} to the next."
        half = np.log(0.5) / np.log(self.rho)
        left = f"{_share(self.rho)} ({_share(self.low)} to {_share(self.high)})"
        after = words.rounds(max(round(half), 1))
        return (
            f"Deviations persist: {left} of one is left after one {words.round}, half of it after "
            f"about {after}, and this is {percent(self.share)} of the variance within one "
            f"{words.arm}."
        )

    @property
    def _patterns(self) -> str:
        words = self.words
        if self.week == TOO_FEW and self.trend == TOO_FEW:
            few = f"There are too few {plural(words.round)} to say"
            return f"{few} whether there is a week pattern or a trend."
        week = "no week pattern is seen"
        if self.week == TOO_FEW:
            week = "weekdays cannot be compared without their dates in three weeks"
        elif self.week == EACH:
            week = f"weekdays differ, and not alike for all {plural(words.arm)}"
        elif self.week == ALIKE:
            most = max(self.weekdays, key=lambda one: one.more)
            least = min(self.weekdays, key=lambda one: one.more)
            week = (
                f"weekdays differ, from {least.weekday} ({self._amount(least.more)}) to "
                f"{most.weekday} ({self._amount(most.more)})"
            )
        trend = "no trend"
        if self.trend == EACH:
            trend = f"each {words.arm} has a trend of its own"
        elif self.trend == ALIKE:
            ends = f"{self._amount(self.slope_low)} to {self._amount(self.slope_high)}"
            trend = f"there is a trend, {self._amount(self.slope)} over all ({ends})"
        return f"{week[0].upper()}{week[1:]}, and {trend}."

    @property
    def _advice(self) -> str:
        name, weekday = f"Use {self.policy}", ""
        if self.week == EACH:
            weekday = (
                "; FeatureCTS with the weekday as a feature is the other choice, compare both"
                if self.persists
                else ", with the weekday of each arm as a feature".replace("arm", self.words.arm)
            )
        elif self.week == ALIKE:
            weekday = "; the weekday as a feature would take out noise, and changes few plans"
        why = "it follows changes, and costs nothing where there are none"
        if self.persists:
            why = f"it plans for the next {self.words.round}, from what the last ones were like"
        if self.persists is None:
            why = "it learns quickly, and follows changes; check again with more data"
        return f"{name}: {why}{weekday}."

    def _amount(self, value: float) -> str:
        sign = "+" if value >= 0 else "-"
        size = abs(value)
        return f"{sign}{100 * size:.2g} %" if self.relative else f"{sign}{self.words.money(size)}"

    def plot(self, path: str | PathLike[str] | None = None, title: str | None = None) -> Figure:
        """Draw the means of arms with deviations, correlations over gaps, and the course.

        Parameters
        ----------
        path
            The file to save the figure to, such as "bills.png"; it is not saved if not given.
        title
            The title; none if not given.

        Examples
        --------
        >>> from multiplay import check_data
        >>> bills = {"arm": ["air", "sea"] * 2, "round": [1, 1, 2, 2], "loss": [80, 20, 82, 21]}
        >>> len(check_data(bills).plot().axes)
        3
        """
        from multiplay.results.plots import Drawing, save_figure

        figure = Drawing(figsize=(10.0, 3.4), layout="constrained")
        arms, gaps, course = figure.subplots(1, 3)
        self._draw_arms(arms)
        self._draw_gaps(gaps)
        self._draw_course(course)
        for ax in (arms, gaps, course):
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(axis="y", alpha=0.25)
        if title is not None:
            figure.suptitle(title, parse_math=False)
        if path is not None:
            save_figure(figure, path)
        return figure

    def _draw_arms(self, ax: Axes) -> None:
        rows = sorted(self.by_arm[:MOST_ARMS], key=lambda one: one.mean)
        places = np.arange(len(rows))
        width = [0.0 if np.isnan(one.deviation) else one.deviation for one in rows]
        ax.errorbar(places, [one.mean for one in rows], width, fmt="o", ms=4, capsize=2, lw=1)
        step = max(1, -(-len(rows) // 10))
        names = [one.arm for one in rows[::step]]
        ax.set_xticks(places[::step], names, rotation=45, ha="right", fontsize=7, parse_math=False)
        label = f"{noun_of(self.sense)} of a {self.words.unit}: mean, and one deviation"
        ax.set_ylabel(self.words.in_currency(label), fontsize=8, parse_math=False)

    def _draw_gaps(self, ax: Axes) -> None:
        gaps = [one.gap for one in self.by_gap]
        ax.plot(gaps, [one.correlation for one in self.by_gap], "o", ms=4, label="measured")
        if self.persists and gaps:
            fine = np.linspace(1, max(gaps), 100)
            ax.plot(fine, self.share * self.rho**fine, label="fitted")
            ax.legend(frameon=False, fontsize=8)
        ax.axhline(0, color="#444444", lw=0.8)
        ax.set_ylim(top=1)
        ax.set_xlabel(f"gap, {plural(self.words.round)}", parse_math=False)
        ax.set_ylabel("correlation of deviations", fontsize=8)

    def _draw_course(self, ax: Axes) -> None:
        size = 100.0 if self.relative else 1.0
        rounds = [one.round for one in self.course]
        ax.plot(rounds, [size * one.more for one in self.course], "o-", ms=3, lw=1)
        ax.axhline(0, color="#444444", lw=0.8)
        ax.set_xlabel(self.words.round, parse_math=False)
        label = f"less the mean of the {self.words.arm}"
        label = f"{label}, %" if self.relative else self.words.in_currency(label)
        ax.set_ylabel(label, fontsize=8, parse_math=False)

    def _panel(self) -> Panel:
        size, *others = self.sentences
        return Panel(size, {}, note=" ".join(others))


def _share(rho: float) -> str:
    """Return a share that may be close to 1."""
    return f"{rho:.2f}" if rho < 0.985 else f"{rho:.4f}"
