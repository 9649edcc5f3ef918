"""One seed for all arms: normal numbers of a round, at whose quantiles all arms draw."""

from multiplay._support.checks import true_or_false
from multiplay.random import Rng, standard_normal
from multiplay.types import FloatArray


def check_shared_seed(shared_seed: object) -> None:
    """Raise ``InvalidInput`` unless it is True or False."""
    true_or_false("shared_seed", shared_seed, "Write True for one seed for all arms.")


def seeds(trials: int, rng: Rng, numbers: int = 1) -> FloatArray:
    r"""Return z of each trial, shape (trials, numbers), which all its arms share.

    An arm draws the quantile :math:`F_i^{-1}(\Phi(z))` of its posterior :math:`F_i`, so that its
    draws are distributed as with a seed of its own. But all draws rise and fall together: they are
    all at most the means :math:`\ell_i`, which is optimism for losses, with probability
    :math:`\min_i F_i(\ell_i)`, where independent draws have :math:`\prod_i F_i(\ell_i)`, which
    falls exponentially in the number of arms. For rewards optimism is a high z. Since z and -z are
    as likely, both senses use the same numbers.
    """
    return standard_normal((trials, numbers), rng)
