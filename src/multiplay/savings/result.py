"""Savings: the estimated saving of plays against a rule, as users see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from multiplay._support.formatting import Table, left_out, percent, plural
from multiplay._support.html import HasPanel, Panel
from multiplay._support.words import Words
from multiplay.types import MaybeKnown, Note, PlainName, Sense

if TYPE_CHECKING:
    import pandas as pd  # imported where it is used: it takes as long as all the rest
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLAIN = Words()
MOST_SHOWN = 20  # rows of a table in a notebook
WORTH_A_SENTENCE = 0.01  # share of the rule's units on arms with few bills


class WeekSavings(NamedTuple):
    """The saving of one week.

    Attributes
    ----------
    week : str
        Its first day, such as "2026-03-02"; or its plays, where they have no times.
    days : int
        The number of its plays that were compared.
    saved, low, high : float
        The expected saving with its interval, in the user's unit.
    """

    week: str
    days: int
    saved: MaybeKnown
    low: MaybeKnown
    high: MaybeKnown


class Evidence(NamedTuple):
    """An arm that the rule or the plays used, and what is known of it.

    Attributes
    ----------
    arm : str
        Its name.
    rule_units, played_units : int
        Its units in the rule's plans, and in the plays.
    bills : int
        The number of units that were reported, also by external plans.
    last_seen : str
        The day of its last report; "" if it has none, or if the day is not known.
    """

    arm: str
    rule_units: int
    played_units: int
    bills: int
    last_seen: str


@dataclass(frozen=True)
class Savings(HasPanel):
    r"""The expected saving of the plays of a study against a rule, with an interval.

    For plays :math:`a_t` and the plans :math:`b_t` of the rule on the same sets,

    .. math::

        S = \sum_t \langle b_t - a_t, \mu_t \rangle,

    where :math:`\mu_t` are the mean costs of a unit on day t. It is the expected saving given the
    plans: the luck of single bills is not part of it. For rewards the sign is changed, so that more
    is better.

    Attributes
    ----------
    total, low, high : float
        The saving with its interval, in the user's unit.
    share : float
        The saving as a share of what the rule would have cost.
    by_week : tuple of WeekSavings
        The saving of each week; ``weeks`` is the same as a data frame.
    evidence : tuple of Evidence
        The arms of the rule and of the plays, and how many bills each has; ``rests_on`` is the same
        as a data frame.
    thin, never, stale : float
        The share of the rule's units on arms with fewer than 5 bills, with none, and with fewer
        than 5 in the last four weeks.
    left_out : int
        The number of plays that were not compared: the rule has no plan for them.
    method : "model", "dr" or "ips"
        How the total was estimated.
    agrees : bool or None
        Whether the doubly robust estimate is within 3 standard errors; None if it cannot be
        computed.
    trust : str
        Why the interval may be wrong; "" if there is no reason.
    entry : int or None
        The last entry of the journal that was read.
    paid : float
        What the plays cost; units that were not reported count as estimated.
    days : int
        The number of plays that were compared.
    simulated : bool
        Whether the rule is a policy whose plays were simulated.
    learning : bool
        Whether it is a cost of learning: what the plays cost more, not less.
    rule : str
        The rule, in words.
    level : float
        The level of the intervals.
    words : Words
        The words in which it is shown.
    sense : "min" or "max"
        Whether units bring losses or rewards.

    Examples
    --------
    >>> saved = Savings(total=1200.0, low=900.0, high=1500.0, share=0.1, rule="in proportion",
    ...               paid=10800.0, days=60, words=Words("EUR"))
    >>> print(saved)
    saved 1,200 EUR against in proportion, 95 %: 900 to 1,500; paid 10,800 EUR on 60 days.
    """

    total: MaybeKnown
    low: MaybeKnown
    high: MaybeKnown
    share: Annotated[MaybeKnown, "As a share of what the rule would have cost."]
    by_week: Annotated[tuple[WeekSavings, ...], PlainName("weeks")] = ()
    evidence: Annotated[tuple[Evidence, ...], PlainName("rests_on")] = ()
    thin: Annotated[float, "Share of the rule's units on arms with fewer than 5 bills."] = 0.0
    never: Annotated[float, "Share of the rule's units on arms without bills."] = 0.0
    stale: Annotated[float, "Share on arms with fewer than 5 bills in four weeks."] = 0.0
    left_out: Annotated[int, "Plays for which the rule has no plan."] = 0
    method: str = "model"
    agrees: Annotated[bool | None, "Whether the doubly robust estimate agrees."] = None
    trust: Annotated[str, "Why the interval may be wrong; empty if there is no reason."] = ""
    entry: Annotated[int | None, "The last entry of the journal that was read."] = None
    paid: MaybeKnown = 0.0
    days: int = 0
    simulated: bool = False
    learning: bool = False
    rule: str = ""
    level: float = 0.95
    words: Words = PLAIN
    sense: Sense = "min"

    def __str__(self) -> Annotated[str, Note.SHOWN]:
        return " ".join([self.sentence, *self.remarks])

    @property
    def sentence(self) -> str:
        """The total with its interval, and what was paid."""
        words, does = self.words, "saved" if self.sense == "min" else "gained"
        against = f" against {self.rule}" if self.rule else ""
        if self.learning:
            does, against = "learning cost", ""
        paid = "paid" if self.sense == "min" else "brought in"
        simulated = " (simulated)" if self.simulated else ""
        return (
            f"{does} {words.money(self.total)}{against}{simulated}, {percent(self.level)}: "
            f"{words.ends(self.low, self.high)}; {paid} {words.money(self.paid)} "
            f"on {words.rounds(self.days)}."
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what the total rests on; an empty tuple if nothing is to be said."""
        words, found = self.words, []
        if self.thin >= WORTH_A_SENTENCE:
            share, arms = percent(self.thin), words.arms(2).partition(" ")[2]
            units = plural(words.unit)
            found.append(f"{share} of the rule's {units} are on {arms} with fewer than 5 bills.")
        if self.left_out:
            found.append(f"{words.rounds(self.left_out)} left out: the rule has no plan there.")
        if self.agrees is False:
            found.append("The doubly robust estimate differs by more than 3 standard errors.")
        if self.trust:
            found.append(f"The interval may be wrong: {self.trust}.")
        return tuple(found)

    @property
    def weeks(self) -> pd.DataFrame:
        """The saving of each week: week, days, saved, low and high."""
        return _frame(WeekSavings, self.by_week)

    @property
    def rests_on(self) -> pd.DataFrame:
        """The arms: arm, rule_units, played_units, bills and last_seen."""
        return _frame(Evidence, self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data, for JSON.

        Examples
        --------
        >>> Savings(12.0, 8.0, 16.0, 0.5).to_dict()["share"]
        0.5
        """
        plain = asdict(self)
        del plain["by_week"], plain["evidence"]
        plain["weeks"] = [week._asdict() for week in self.by_week]
        plain["rests_on"] = [arm._asdict() for arm in self.evidence]
        return plain | {"words": self.words._asdict()}

    def tables(self, most: int | None = MOST_SHOWN) -> tuple[Table, ...]:
        """Return the last weeks, and the arms that it rests on, as text; all of them for None."""
        words, first = self.words, 0 if most is None else max(len(self.by_week) - most, 0)
        weeks = [
            [row.week, str(row.days), words.money(row.saved), words.ends(row.low, row.high)]
            for row in self.by_week[first:]
        ]
        arms = [
            [row.arm, str(row.rule_units), str(row.played_units), str(row.bills), row.last_seen]
            for row in self.evidence[:most]
        ]
        days, ends = plural(words.round), f"{percent(self.level)} interval"
        what = "cost" if self.learning else "saved" if self.sense == "min" else "gained"
        return (
            Table("By week", ["week", days, what, ends], weeks),
            Table(
                "What it rests on",
                [words.arm, f"rule's {plural(words.unit)}", "played", "bills", "last seen"],
                arms,
                left_out(len(self.evidence) - len(arms), plural(words.arm)),
                folded=True,
            ),
        )

    def plot(
        self, ax: Axes | str | PathLike[str] | None = None, title: str | None = None
    ) -> Figure:
        """Draw the saving of each week as a bar, with its interval.

        Parameters
        ----------
        ax
            Axes to draw into, or the file to save the figure to, such as "saved.png"; a new figure
            if not given.
        title
            The title; that with the total if not given.

        Examples
        --------
        >>> weeks = [WeekSavings(day, 7, 60.0, 40.0, 80.0) for day in ("2026-03-02", "2026-03-09")]
        >>> len(Savings(120.0, 90.0, 150.0, 0.1, tuple(weeks)).plot().axes[0].patches)
        2
        """
        from multiplay.results.plots import plot_bars, save_figure

        path = ax if isinstance(ax, str | PathLike) else None
        axes = None if isinstance(ax, str | PathLike) else ax
        label = self.words.in_currency("cost of learning" if self.learning else "saved")
        rows = [(row.week, row.saved, row.low, row.high) for row in self.by_week]
        figure = plot_bars(rows, axes, title or self.sentence.partition(";")[0], label)
        if path is not None:
            save_figure(figure, path)
        return figure

    def _panel(self) -> Panel:
        return Panel(self.sentence, {}, self.tables(), note=" ".join(self.remarks))


def _frame(kind: Any, rows: Sequence[Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(kind._fields))
