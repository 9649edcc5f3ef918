"""Lower bounds, which no policy can beat, and guarantees, which the policies of the paper have."""

from multiplay.theory.adainf import Realised, genadainf_realised
from multiplay.theory.families import Bernoulli, Family, Gaussian
from multiplay.theory.guarantees import (
    Guarantee,
    Instance,
    gencts,
    genlbinfv_adversarial,
    genlbinfv_corrupted,
    genlbinfv_stochastic,
    realised_bound,
)
from multiplay.theory.lower_bound import LowerBound, lower_bound
from multiplay.theory.worst_case import WorstCase, adversarial_worst_case, duplicated_worst_case

__all__ = [
    "Bernoulli",
    "Family",
    "Gaussian",
    "Guarantee",
    "Instance",
    "LowerBound",
    "Realised",
    "WorstCase",
    "adversarial_worst_case",
    "duplicated_worst_case",
    "genadainf_realised",
    "gencts",
    "genlbinfv_adversarial",
    "genlbinfv_corrupted",
    "genlbinfv_stochastic",
    "lower_bound",
    "realised_bound",
]
