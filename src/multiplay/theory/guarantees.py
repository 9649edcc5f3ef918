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
from multiplay.checks import check_instance, for_each_arm, numbers, positive_integer
from multiplay.errors import InvalidInput
from multiplay.policies import GenLBINFV
from multiplay.results import Result
from multiplay.results.intervals import Interval, interval
from multiplay.theory.lower_bound import ranked
from multiplay.types import Arrays, FloatArray

DEFAULT_EPSILON = 0.2  # what GenLBINFV() takes
SAYABLE = 35.0  # logarithm of the largest number of rounds that is written out


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

    def _repr_html_(self) -> str:
        from multiplay.theory.display import shown_guarantee  # most sessions are no notebooks

        return shown_guarantee(self)


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
    kappa : int
        max_i n_i, the Lipschitz constant of a linear loss: |<a, l> - <a, k>| is at most kappa times
        the sum of |l_i - k_i| over the arms that a plays, in which no arm is weighted.

    Examples
    --------
    >>> from multiplay import Budget
    >>> two = Instance(Budget(1, [1, 1]), [0.2, 0.5])
    >>> two.Delta.round(9), two.W, two.lambda_A, two.kappa
    (array([inf, 0.3]), 2, 1, 1)
    """

    def __init__(self, actions: ActionSet, means: ArrayLike, limit: int = 100_000) -> None:
        if not actions.linear:
            raise InvalidInput(
                "actions",
                "a linear objective <a, means>",
                repr(actions),
                "Use a set with a linear objective.",
            )
        self.actions, self.means = actions, for_each_arm("means", means, actions.d)
        if self.means.ndim != 1:
            got = f"shape {self.means.shape}"
            raise InvalidInput("means", f"{actions.d} numbers", got, "Give the means of one trial.")
        everything = actions.enumerate(limit)
        self.best, others, gaps = ranked(everything, actions.sign * self.means)
        played = np.where(others >= 1, gaps[:, None], np.inf)
        self.Delta: FloatArray = played.min(axis=0, initial=np.inf)

    @cached_property
    def W(self) -> int:  # noqa: N802
        """sum_i n_i."""
        return int(self.actions.n.sum())

    @cached_property
    def kappa(self) -> int:
        """max_i n_i."""
        return int(self.actions.n.max())

    @cached_property
    def lambda_A(self) -> int:  # noqa: N802
        """min(M, sum of the n_i of the arms that a* leaves out)."""
        return min(self.actions.M, int(self.actions.n[self.best == 0].sum()))


def gencts(instance: Instance) -> Guarantee:
    """GenCTS: sum_i kappa^2 (6 + 2 log m) / Delta_i log T, the leading term of theorem 1.

    The constant is that of the proof, as epsilon goes to 0; terms that do not grow with T are left
    out, and they are large. The proof counts sum 1 / N_i over the arms that are played, which
    controls sum |theta_i - l_i|; its weights a_i belong to kappa (docs/mathematics.md).
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
    instance: Instance,
    variances: ArrayLike,
    eta: float | None = None,
    epsilon: float = DEFAULT_EPSILON,
) -> Guarantee:
    """GenLBINFV: the leading term of its proof, sum_J* h_i(z_i) + 2 sum_I* b_i, times log T.

    The theorem says O(sum over J* of z_i log T), with z_i = lambda_A s_i^2 / Delta_i, but its
    constant depends on the instance: where losses hardly vary, b_i = n_i (1 + epsilon) is what
    remains. With delta_i = (1 + epsilon) / (3 epsilon),

        h_i(z) = max over y >= 1 of 4 b_i y + 4 n_i delta_i log y - b_i^2 (y^2 - 1) / z, less 2 b_i,

    which is about 4 z for large z. With ``eta``, the step of gradient descent, z_i is divided by
    1 - 2 eta. The proof needs every a*_i to be 0 or n_i: it uses n_i - x_i on the arms of the best
    action where its lower bound has a*_i - a_i. With gradient descent it also needs n_i = 1 on the
    other arms: it adds up weights (a_i / n_i)^2 as if they were the same in every round.
    """
    _check_settings(eta, epsilon)
    s2 = np.broadcast_to(numbers("variances", variances), instance.means.shape)
    left_out, n = instance.best == 0, instance.actions.n
    z = instance.lambda_A * s2 / instance.Delta / (1 - 2 * (eta or 0.0))
    b, push = n * (1 + epsilon), n * _delta(epsilon)
    y = np.maximum((z + np.sqrt(z**2 + 2 * push * z)) / np.maximum(b, 1), 1.0)
    cost = np.divide(b**2 * (y**2 - 1), z, out=np.zeros_like(z), where=y > 1)
    h = 4 * b * y + 4 * push * np.log(y) - cost - 2 * b
    constant = float(np.where(left_out, h, 2 * b).sum())
    needs = "independent losses, one best action, which plays each arm either never or n_i times"
    proved = (left_out | (instance.best == n)).all()
    if eta is not None:
        needs += "; n_i = 1 for the arms that it never plays"
        proved &= (n[left_out] <= 1).all()
    return Guarantee(
        formula=f"{constant:.4g} log T, leading term",
        needs=needs,
        proved=bool(proved),
        curve=lambda rounds: constant * np.log(rounds),
    )


def genlbinfv_adversarial(
    actions: ActionSet, result: Result, eta: float | None = None, policy: str | None = None
) -> Guarantee:
    """GenLBINFV on a finished run: 2 sqrt(sum_i n_i^2 Z log T), the leading term.

    Z = min{L*, M T - L*, Q2}, and 2 V1 / eta besides for gradient descent, which divides by
    sqrt(1 - 2 eta). L*, Q2 and V1 are means over the trials of ``policy``, which must be named
    where several policies were run and met different numbers. Terms that grow like log T are left
    out.

    The k_i(t) of Q2 and V1 is the average of the units that were played. It has no value where arm
    i is not played, and needs none: there a_i(t) = 0, the prediction stays as it is, and the proof
    adds nothing. So Q2 = sum_i sum_t (k_i(t) - mean)^2 and V1 = sum_i sum_t |k_i(t) - k_i before|
    run over the rounds that play arm i (``Q2_played`` and ``V1_played`` of the result). The
    averages over all slots will not do: a policy that plays one of two units with the losses 0 and
    1 sees noise where they do not vary. docs/mathematics.md has the proof.
    """
    _check_settings(eta, DEFAULT_EPSILON)
    horizon = int(result.dataset["round"][-1])
    L_star, Q2, V1 = _own(result, policy, ("L_star", "Q2_played", "V1_played"))
    Z = min(L_star, actions.M * horizon - L_star, Q2)
    shrink = 1.0
    if eta is not None:
        Z, shrink = min(Z, 2 * V1 / eta), 1 - 2 * eta
    squares = float((actions.n.astype(float) ** 2).sum())
    value = 2 * math.sqrt(squares * max(Z, 0.0) * math.log(horizon) / shrink)
    return Guarantee(
        formula=f"{value:.4g} at T = {horizon}, leading term",
        needs="any losses that do not depend on this round's action, slots in random order; where "
        "they depend on past actions, a best action that is the same in every trial",
        proved=True,
        curve=lambda rounds: np.full(np.shape(rounds), value),
    )


def _own(result: Result, policy: str | None, names: tuple[str, ...]) -> list[float]:
    """Return the means over the trials of one policy's quantities."""
    missing = [name for name in names if name not in result.dataset]
    if missing:
        raise InvalidInput(
            "result",
            f"a result that has {', '.join(names)}",
            f"one without {', '.join(missing)}",
            "Run the experiment again with this version.",
        )
    one = policy if policy is not None else result.policies[0]
    if one not in result.policies:
        raise InvalidInput(
            "policy", f"one of {', '.join(result.policies)}", repr(one), "Check the spelling."
        )
    rows = result.dataset[list(names)]
    own = rows.sel(policy=one)
    if policy is None and not (rows == own).to_array().all():
        raise InvalidInput(
            "policy",
            f"one of {', '.join(result.policies)}",
            "none, where their losses differ",
            "Name the policy that the promise is for: policy='...'.",
        )
    return [float(own[name].mean()) for name in names]


def realised_bound(actions: ActionSet, policy: GenLBINFV, state: Arrays, horizon: int) -> Interval:
    """GenLBINFV's regret is at most this, from the beta that it ended with (lemma 3).

        log T sum_i n_i E[2 beta_i(T+1) - beta_i(1) + 2 delta_i log(beta_i(T+1) / beta_i(1))]
            + d W + W + 2 sum_i n_i delta_i,      delta_i = (n_i + e_i) / (3 e_i),

    with e_i / n_i = epsilon; the printed lemma loses the W. Its proof needs
    log T - 1 >= 1/2 + (1 + epsilon) / (3 epsilon), which is T >= 34 for epsilon = 0.2, T >= 176 for
    0.1 and more than 10^15 for 0.01; a shorter horizon is refused. ``state`` is that of the policy
    after the last round, trials first; the expectation is their mean, with its confidence interval.
    """
    check_instance("policy", policy, GenLBINFV, "GenLBINFV()")
    if policy.initial != "paper":
        raise InvalidInput(
            "policy",
            "the weights that the proof begins with, GenLBINFV(initial='paper')",
            f"initial={policy.initial!r}",
            "Leave initial out: nothing is proved for other weights.",
        )
    if "t" in state:
        raise InvalidInput(
            "state",
            "that of a run whose horizon was known: the proof has g = log T in every round",
            "that of a run without a horizon",
            "Leave anytime out, and give the horizon.",
        )
    epsilon = DEFAULT_EPSILON if policy.epsilon is None else policy.epsilon
    delta = _delta(epsilon)
    _check_horizon(horizon, epsilon, delta)
    n, W, g = actions.n, int(actions.n.sum()), math.log(horizon)
    first, last = 1 + epsilon, np.sqrt(state["beta2"])
    grown = 2 * last - first + 2 * delta * np.log(last / first)
    return interval(g * (n * grown).sum(axis=1) + actions.d * W + W + 2 * W * delta)


def _check_settings(eta: float | None, epsilon: float) -> None:
    """Refuse what the policy itself would refuse."""
    GenLBINFV(epsilon=epsilon, eta=GenLBINFV.eta if eta is None else eta)


def _delta(epsilon: float) -> float:
    return (1 + epsilon) / (3 * epsilon)


def _check_horizon(horizon: int, epsilon: float, delta: float) -> None:
    rounds = positive_integer("horizon", horizon, "Give the number of rounds that were played.")
    least = 1.5 + delta
    if math.log(rounds) < least:
        enough = f"{math.ceil(math.exp(least)):,}" if least < SAYABLE else f"e^{least:.1f}"
        raise InvalidInput(
            "horizon",
            f"at least {enough} rounds, from which on the bound is proved for epsilon = {epsilon}",
            f"{rounds:,}",
            "Run more rounds, or use a larger epsilon.",
        )
