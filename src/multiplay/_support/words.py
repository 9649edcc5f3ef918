"""Words of the user: the currency, and what a unit, an arm and a round are called."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from multiplay._support.formatting import UNKNOWN, counted
from multiplay.errors import InvalidInput

LONGEST_WORD = 40  # characters
LARGEST = 1e15  # larger amounts are written with an exponent
EXAMPLES = {"currency": "EUR", "unit": "truck", "arm": "lane", "round": "day"}


class Words(NamedTuple):
    """The words of a learner or study, in which its plans and costs are shown.

    Attributes
    ----------
    currency : str
        The unit of costs, such as "EUR"; "" if it has no name.
    unit, arm, round : str
        A unit of a plan, an arm and a round, each as a noun in the singular: "truck", "lane",
        "day".

    Examples
    --------
    >>> words = Words("EUR", "lorry", "lane", "day")
    >>> words.money(1877.6), words.units(2), words.arms(1), words.rounds(30)
    ('1,878 EUR', '2 lorries', '1 lane', '30 days')
    >>> words.between(1769.4, 1990.2)
    '1,769 to 1,990 EUR'
    """

    currency: str = ""
    unit: str = "unit"
    arm: str = "item"
    round: str = "day"

    def money(self, amount: float) -> str:
        """Return an amount with the currency; a dash if it is not known."""
        text = money_text(amount)
        return f"{text} {self.currency}" if self.currency and text != UNKNOWN else text

    def between(self, low: float, high: float) -> str:
        """Return an interval of amounts with the currency; a dash if it is not known."""
        text = self.ends(low, high)
        return f"{text} {self.currency}" if self.currency and text != UNKNOWN else text

    @staticmethod
    def ends(low: float, high: float) -> str:
        """Return an interval of amounts without the currency; a dash if it is not known."""
        if not (math.isfinite(low) and math.isfinite(high)):
            return UNKNOWN
        return f"{money_text(low)} to {money_text(high)}"

    def estimate(self, total: float, low: float, high: float) -> str:
        """Return an expected total with its interval, for ``*play.expected``.

        Examples
        --------
        >>> Words("EUR").estimate(1878.0, 1769.0, 1990.0)
        '1,878 EUR, 1,769 to 1,990'
        """
        if math.isnan(total):
            return "not known yet"
        ends = self.ends(low, high)
        return self.money(total) + (f", {ends}" if ends != UNKNOWN else "")

    def in_currency(self, head: str) -> str:
        """Return the head of a column of amounts.

        Examples
        --------
        >>> Words("EUR").in_currency("mean"), Words().in_currency("mean")
        ('mean, EUR', 'mean')
        """
        return f"{head}, {self.currency}" if self.currency else head

    def units(self, count: int) -> str:
        """Return a number of units."""
        return counted(count, self.unit)

    def arms(self, count: int) -> str:
        """Return a number of arms."""
        return counted(count, self.arm)

    def rounds(self, count: int) -> str:
        """Return a number of rounds."""
        return counted(count, self.round)


USUAL_WORDS = Words()


def given_words(**given: Any) -> dict[str, str]:
    """Return the words that are given and not None, after checking them.

    Examples
    --------
    >>> given_words(currency="EUR", unit=None)
    {'currency': 'EUR'}
    """
    return {name: _checked(name, word) for name, word in given.items() if word is not None}


def _checked(name: str, word: Any) -> str:
    good = isinstance(word, str) and len(word) <= LONGEST_WORD and word.isprintable()
    text = word.strip() if good else ""
    if not good or (not text and name != "currency"):
        expected = f"a text of at most {LONGEST_WORD} characters"
        hint = f"Use a word such as {EXAMPLES[name]!r}, or leave it out."
        raise InvalidInput(name, expected, repr(word)[:80], hint)
    return str(text)


def noun_of(sense: str) -> str:
    """Return what a unit has, by the sense of its set: a cost or a reward."""
    return "cost" if sense == "min" else "reward"


def verb_of(sense: str) -> str:
    """Return what a plan does, by the sense of its set: cost or bring something."""
    return "cost" if sense == "min" else "bring"


def money_text(amount: float) -> str:
    """Return an amount: whole from 100 on, with three digits below; a dash for NaN.

    Examples
    --------
    >>> [money_text(x) for x in (1234567.8, 132.4, 35.0, 9.876, 0.01234, -1.7e-15, float("nan"))]
    ['1,234,568', '132', '35', '9.88', '0.0123', '0', '-']
    """
    if math.isnan(amount):
        return UNKNOWN
    size = abs(amount)
    if size < 1e-9:
        return "0"
    if size < 99.95:
        return f"{amount:.3g}"
    return f"{amount:,.0f}" if size < LARGEST else f"{amount:.3g}"
