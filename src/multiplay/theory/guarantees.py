"""What the theory promises, for an instance or for a finished run.

Each promise says what it needs to be proved, and whether the instance has it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from multiplay.actions import ActionSet
from multiplay.checks import check_instance, for_each_arm, numbers
from multiplay.errors import InvalidInput
from multiplay.policies import GenLBINFV
from multiplay.results import Result
from multiplay.results.intervals import Interval, interval
from multiplay.theory.lower_bound import ranked
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class Guarantee:
    """A promise about regret.

    Attributes
    ----------
    formula
        What it says.
    needs
        For which instances it is proved.
    proved
        Whether this is such an instance.
    curve
        From numbers of rounds to regret.
    """

    formula: str
    needs: str
    proved: bool
    curve: Callable[[FloatArray], FloatArray]


class Instance:
    """The quantities of an instance that bounds are made of, from all its actions.

    Attributes
    ----------
    best : array of shape (d,)
        a*, the best action, of which there must be one.
    Delta : array of shape (d,)
        Delta_i = min {<a - a*, l> : a != a*, a_i >= 1}; infinite where there is no such action.
    W, lambda_A : int
        sum_i n_i, and min(M, sum of the n_i of the arms that a* leaves out).
    kappa : float
        1, the Lipschitz constant of a linear loss in sum_i a_i |change of mean i|.

    Examples
    --------
    >>> from multiplay import Budget
    >>> two = Instance(Budget(1, [1, 1]), [0.2, 0.5])
    >>> two.Delta.round(9), two.W, two.lambda_A
    (array([inf, 0.3]), 2, 1)
    """

    kappa = 1.0

    def __init__(self, actions: ActionSet, means: ArrayLike, limit: int = 100_000) -> None:
        if not actions.linear:
            raise InvalidInput(
                "actions", "a linear objective <a, means>", repr(actions), "Use another set."
            )
        self.actions, self.means = actions, for_each_arm("means", means, actions.d)
        if self.means.ndim != 1:
            got = f"shape {self.means.shape}"
            raise InvalidInput("means", f"{actions.d} numbers", got, "Take one trial at a time.")
        everything = actions.enumerate(limit)
        self.best, others, gaps = ranked(everything, actions.sign * self.means)
        played = np.where(others >= 1, gaps[:, None], np.inf)
        self.Delta: FloatArray = played.min(axis=0, initial=np.inf)

    @cached_property
    def W(self) -> int:  # noqa: N802
        """sum_i n_i."""
        return int(self.actions.n.sum())

    @cached_property
    def lambda_A(self) -> int:  # noqa: N802
        """min(M, sum of the n_i of the arms that a* leaves out)."""
        return min(self.actions.M, int(self.actions.n[self.best == 0].sum()))


def gencts(instance: Instance) -> Guarantee:
    """GenCTS: sum_i kappa^2 (6 + 2 log m) / Delta_i log T, the leading term of theorem 1.

    The constant is that of the proof, as epsilon goes to 0; terms that do not grow with T are left
    out, and they are large.
    """
    m, kappa = instance.actions.m, instance.kappa
    constant = float((kappa**2 * (6 + 2 * math.log(m)) / instance.Delta).sum())
    return Guarantee(
        formula=f"{constant:.4g} log T, leading term",
        needs="independent losses, the same distribution in every round, one best action",
        proved=True,
        curve=lambda rounds: constant * np.log(rounds),
    )


def genlbinfv_stochastic(
    instance: Instance, variances: ArrayLike, eta: float | None = None
) -> Guarantee:
    """GenLBINFV: sum over J* of lambda_A s_i^2 / Delta_i log T, up to a universal constant.

    With ``eta``, the step of gradient descent, it is divided by 1 - 2 eta. The proof needs every
    a*_i to be 0 or n_i: it uses n_i - x_i on the arms of the best action where its lower bound has
    a*_i - a_i.
    """
    s2 = np.broadcast_to(numbers("variances", variances), instance.means.shape)
    left_out = instance.best == 0
    gaps = np.where(left_out, instance.Delta, np.inf)
    constant = float((instance.lambda_A * s2 / gaps).sum()) / (1 - 2 * (eta or 0.0))
    extreme = left_out | (instance.best == instance.actions.n)
    return Guarantee(
        formula=f"{constant:.4g} log T, up to a universal constant",
        needs="independent losses, one best action, which plays each arm either never or n_i times",
        proved=bool(extreme.all()),
        curve=lambda rounds: constant * np.log(rounds),
    )


def genlbinfv_adversarial(
    actions: ActionSet, result: Result, eta: float | None = None
) -> Guarantee:
    """GenLBINFV on a finished run: 2 sqrt(sum_i n_i^2 Z log T), the leading term.

    Z = min{L*, M T - L*, Q2}, and V1 / eta besides for gradient descent, which divides by
    sqrt(1 - 2 eta); L*, Q2 and V1 are those of the run, means over its trials and policies.
    """
    horizon = int(result.dataset["round"][-1])
    L_star, Q2, V1 = (float(result.dataset[name].mean()) for name in ("L_star", "Q2", "V1"))
    Z = min(L_star, actions.M * horizon - L_star, Q2)
    shrink = 1.0
    if eta is not None:
        Z, shrink = min(Z, V1 / eta), 1 - 2 * eta
    squares = float((actions.n.astype(float) ** 2).sum())
    value = 2 * math.sqrt(squares * max(Z, 0.0) * math.log(horizon) / shrink)
    return Guarantee(
        formula=f"{value:.4g} at T = {horizon}, leading term",
        needs="any losses that do not depend on this round's action, slots in random order",
        proved=True,
        curve=lambda rounds: np.full(np.shape(rounds), value),
    )


def realised_bound(actions: ActionSet, policy: GenLBINFV, state: Arrays, horizon: int) -> Interval:
    """GenLBINFV's regret is at most this, from the beta that it ended with (lemma 3).

        log T sum_i n_i E[2 beta_i(T+1) - beta_i(1) + 2 delta_i log(beta_i(T+1) / beta_i(1))]
            + d W + W + 2 sum_i n_i delta_i,      delta_i = (n_i + e_i) / (3 e_i),

    with e_i / n_i = epsilon; the printed lemma loses the W. ``state`` is that of the policy after
    the last round, trials first; the expectation is their mean, with its confidence interval.
    """
    check_instance("policy", policy, GenLBINFV, "GenLBINFV()")
    epsilon = 0.2 if policy.epsilon is None else policy.epsilon
    n, W, g = actions.n, int(actions.n.sum()), math.log(max(horizon, 2))
    first, last = 1 + epsilon, np.sqrt(state["beta2"])
    delta = (1 + epsilon) / (3 * epsilon)
    grown = 2 * last - first + 2 * delta * np.log(last / first)
    return interval(g * (n * grown).sum(axis=1) + actions.d * W + W + 2 * W * delta)
