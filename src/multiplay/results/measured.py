"""Measured quantities of a simulation: their names, meanings and axes."""

from typing import NamedTuple, TypeAlias

from multiplay.types import FloatArray

# By the name of a quantity; every array has the trials first.
Measured: TypeAlias = dict[str, FloatArray]

MEASURES = {"min": "regret", "max": "reward lost"}  # by the sense of the action set
FIXED, EACH_ROUND = COMPARATORS = ("fixed", "each round")  # the best fixed action, or of each round


class Quantity(NamedTuple):
    """A quantity that is measured in every trial.

    Attributes
    ----------
    label, meaning
        Its name in tables, and its definition.
    dims
        Its axes beside policy and trial: "round" (those recorded) or "arm".
    averaged
        Whether tables show its mean over the trials.

    Examples
    --------
    >>> from multiplay.results import QUANTITIES
    >>> QUANTITIES["regret"].meaning, QUANTITIES["regret"].dims
    ('pseudo-regret, from the means', ('round',))
    >>> [name for name, quantity in QUANTITIES.items() if quantity.dims == ("arm",)]
    ['excess']
    """

    label: str
    meaning: str
    dims: tuple[str, ...] = ()
    averaged: bool = False


QUANTITIES = {
    "regret": Quantity("regret", "pseudo-regret, from the means", ("round",)),
    "realised": Quantity("realised regret", "regret in the losses that were paid", ("round",)),
    "excess": Quantity(
        "suboptimal plays",
        "sum_t (a_i(t) - a*_i)^+; missing where a* depends on what is played",
        ("arm",),
    ),
    "switches": Quantity("switches", "how often the action changed", averaged=True),
    "L_star": Quantity(
        "L*",
        "total loss of the best fixed action in hindsight",
        averaged=True,
    ),
    "Q2": Quantity("Q2", "squared distance of the losses from their mean", averaged=True),
    "V1": Quantity("V1", "path length of the losses", averaged=True),
    "Q2_played": Quantity("Q2 played", "Q2 of the units that were played", averaged=True),
    "V1_played": Quantity("V1 played", "V1 of the units that were played", averaged=True),
    "corruption": Quantity(
        "C", "the corruption, a sum over rounds of the largest change to any loss", averaged=True
    ),
    "seconds": Quantity("seconds", "time of a trial"),
}
