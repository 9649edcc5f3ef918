"""How good is good: what no policy can beat, and what the theory promises."""

from multiplay.theory.adainf import Realised, genadainf_realised
from multiplay.theory.families import Bernoulli, Family, Gaussian
from multiplay.theory.guarantees import (
    Guarantee,
    Instance,
    gencts,
    genlbinfv_adversarial,
    genlbinfv_stochastic,
    realised_bound,
)
from multiplay.theory.lower_bound import LowerBound, lower_bound

__all__ = [
    "Bernoulli",
    "Family",
    "Gaussian",
    "Guarantee",
    "Instance",
    "LowerBound",
    "Realised",
    "genadainf_realised",
    "gencts",
    "genlbinfv_adversarial",
    "genlbinfv_stochastic",
    "lower_bound",
    "realised_bound",
]
