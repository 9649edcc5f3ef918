"""Worst cases: lower bounds on regret that hold on some instance of a given size.

They are those of section 2.5 of the paper. ``lower_bound.py`` has the bound of one instance.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import check_instance, is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.theory.lower_bound import checked_copies
from multiplay.types import FloatArray


@dataclass(frozen=True)
class WorstCase:
    """A regret that every policy has on some instance of a given size.

    Attributes
    ----------
    formula
        The bound.
    instance
        The instance of the proof.
    curve
        From numbers of rounds to regret.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget
    >>> from multiplay.theory import adversarial_worst_case
    >>> worst = adversarial_worst_case(Budget(2, [1, 1, 1, 1, 1, 1]))
    >>> worst.formula, worst.instance
    ('0.1 sqrt(3 T)', '2 groups of 3 arms, one arm of each group is played')
    >>> worst.curve(np.array([100, 10_000])).round(1)
    array([ 1.7, 17.3])
    """

    formula: str
    instance: str
    curve: Callable[[FloatArray], FloatArray]


def adversarial_worst_case(actions: ActionSet) -> WorstCase:
    r"""Return a lower bound on the worst regret against adversaries, by the size of a set.

    .. math::

        \frac{g}{20} \min\{\sqrt{K T}, T\}, \qquad g = \min\{M, W - M\}, \quad
            K = 1 + \Bigl\lfloor \frac{W - M}{g} \Bigr\rfloor, \quad W = \sum_{i=1}^{d} n_i.

    It is :math:`\sqrt{M W T} / 20` where W is a multiple of M, at least 2 M, and :math:`T \ge K`:
    the :math:`\sqrt{M W T}` of the paper, with a constant. The instance has g games side by side
    and :math:`M - g` arms that every action plays. Each game has K arms, of which one is played;
    one of them, drawn at random, is better by :math:`\min\{1, \sqrt{K / T}\} / 4`. A policy has
    the regret of a bandit in each game.

    The bound is for some set with the M and W of this one, not for this one: a set with a single
    action has no regret.

    References
    ----------
    Auer, Cesa-Bianchi, Freund, Schapire (2002). The nonstochastic multiarmed bandit problem. SIAM
    Journal on Computing 32, theorem 5.1.

    Audibert, Bubeck, Lugosi (2014). Regret in online combinatorial optimization. Mathematics of
    Operations Research 39.

    Examples
    --------
    >>> from multiplay import Transport
    >>> from multiplay.theory import adversarial_worst_case
    >>> adversarial_worst_case(Transport([1, 4, 5], [4, 6])).formula
    '0.45 sqrt(2 T)'
    """
    check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
    groups, arms = _largest(int(actions.n.sum()), actions.M)
    return WorstCase(
        formula=f"{groups / 20:.4g} sqrt({arms} T)",
        instance=f"{groups} groups of {arms} arms, one arm of each group is played",
        curve=lambda rounds: groups / 20 * np.minimum(np.sqrt(arms * np.asarray(rounds)), rounds),
    )


def _largest(units: int, most: int) -> tuple[int, int]:
    """Return g and K: g K units and ``most`` - g common ones are at most ``units``."""
    groups = min(most, units - most)
    return groups, 1 + (units - most) // max(groups, 1)


def duplicated_worst_case(actions: ActionSet, gap: float, copies: ArrayLike) -> WorstCase:
    r"""Return the regret of every consistent policy on copied arms, by size and gap.

    .. math::

        \frac{(K - 1) g^2}{4 \Delta} \log T, \qquad g = \min\{M, B - M\}, \quad
            K = 1 + \Bigl\lfloor \frac{B - M}{g} \Bigr\rfloor, \quad B = \sum_{i=1}^{d} b_i,

    with :math:`b_i` copies of arm i and the gap :math:`\Delta`. It is
    :math:`(B - M) M / (4 \Delta)` times :math:`\log T` where B is a multiple of M and at least 2 M:
    the :math:`B M / \Delta` of the paper, with a constant. A policy is consistent if it plays
    every other action than the best :math:`o(T^p)` times, for every p > 0 and on every instance.

    The instance has K actions of g copies, beside :math:`M - g` copies that all of them have. The g
    copies of an action have the same loss, 0 or 1, with mean 1/2 for the best action and
    :math:`1/2 + \Delta / g` for all others. So the bound allows losses that depend on each other.
    Where all losses are independent, as in the stochastic regime of the paper, the bound is lower:
    ``lower_bound`` with ``copies``.

    Parameters
    ----------
    actions
        The set before arms are copied.
    gap
        :math:`\Delta`, what the second best action loses beyond the best one, in (0, g / 2].
    copies
        :math:`b_i`, one number for each arm: ``np.bincount(actions.duplicate().owner)``.

    References
    ----------
    Kveton, Wen, Ashkan, Szepesvari (2015). Tight regret bounds for stochastic combinatorial
    semi-bandits. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Transport
    >>> from multiplay.theory import Gaussian, duplicated_worst_case, lower_bound
    >>> plans, costs = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> copies = np.bincount(plans.duplicate().owner)
    >>> duplicated_worst_case(plans, gap=0.2, copies=copies).formula
    '125 log T'
    >>> round(lower_bound(plans, costs, Gaussian(0.25), copies).constant, 4)  # independent losses
    15.0
    """
    check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
    groups, paths = _largest(int(checked_copies(actions, copies).sum()), actions.M)
    if not (is_number(gap) and gap > 0 and (gap <= groups / 2 or groups == 0)):
        raise InvalidInput(
            "gap",
            f"a number in (0, g / 2], g = {groups}",
            repr(gap),
            "Give the regret of a round with the second best action.",
        )
    constant = (paths - 1) * groups**2 / (4 * gap)
    return WorstCase(
        formula=f"{constant:.4g} log T",
        instance=f"{paths} actions of {groups} copies with the same loss",
        curve=lambda rounds: constant * np.log(np.asarray(rounds)),
    )
