"""What the theory promises, for an instance or for a finished run.

Each promise says what it needs to be proved, and whether the instance has it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import check_instance, for_each_arm, numbers, positive_integer
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.policies import GenLBINFV
from multiplay.results import Result
from multiplay.results.intervals import Interval, interval
from multiplay.theory.lower_bound import ranked
from multiplay.types import Arrays, FloatArray

if TYPE_CHECKING:
    from multiplay._support.html import Panel

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

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget
    >>> from multiplay.theory import Instance, gencts
    >>> promise = gencts(Instance(Budget(1, [1, 1]), [0.2, 0.5]))
    >>> promise.formula, promise.proved
    ('20 log T, leading term', True)
    >>> promise.curve(np.array([1000, 1_000_000])).round(1)
    array([138.2, 276.3])
    """

    formula: str
    needs: str
    proved: bool
    curve: Callable[[FloatArray], FloatArray]

    def _repr_html_(self) -> str:
        from multiplay._support.html import render  # most sessions are not notebooks

        return render(self._panel())

    def _panel(self) -> "Panel":
        """Return what is promised, and whether it is proved for this instance."""
        from multiplay._support.html import Panel

        proved = "yes" if self.proved else "no: the proof does not cover this instance"
        facts = {"regret": f"at most {self.formula}", "proved": proved, "for": self.needs}
        return Panel("Guarantee", facts)


class Instance:
    r"""The quantities of an instance that bounds are made of, from all its actions.

    With :math:`\ell` the means and :math:`a^*` the best action, of which there must be one,

    .. math::

        \Delta_i &= \min \{\langle a - a^*, \ell \rangle \,:\, a \ne a^*, \; a_i \ge 1\}, \\
        \lambda_{\mathcal{A}} &= \min\Bigl\{M, \sum_{i \,:\, a^*_i = 0} n_i\Bigr\}, \qquad
            W = \sum_{i=1}^{d} n_i, \qquad \kappa = \max_i n_i.

    :math:`\kappa` is the Lipschitz constant of a linear loss:
    :math:`|\langle a, \ell \rangle - \langle a, k \rangle|` is at most :math:`\kappa` times the sum
    of :math:`|\ell_i - k_i|` over the arms that a plays, in which no arm is weighted.

    Attributes
    ----------
    best : array of shape (d,)
        :math:`a^*`.
    Delta : array of shape (d,)
        :math:`\Delta_i`; infinite where there is no such action.
    W, lambda_A, kappa : int
        :math:`W`, :math:`\lambda_{\mathcal{A}}` and :math:`\kappa`.

    Examples
    --------
    >>> from multiplay import Budget
    >>> from multiplay.theory import Instance
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
        r"""All units, :math:`\sum_i n_i`."""
        return int(self.actions.n.sum())

    @cached_property
    def kappa(self) -> int:
        r"""The most units of an arm, :math:`\max_i n_i`."""
        return int(self.actions.n.max())

    @cached_property
    def lambda_A(self) -> int:  # noqa: N802
        """M, or the :math:`n_i` of all arms that the best action leaves out, if they are less."""
        return min(self.actions.M, int(self.actions.n[self.best == 0].sum()))


def gencts(instance: Instance) -> Guarantee:
    r"""Return what is promised for GenCTS: the leading term of theorem 1.

    .. math::

        \sum_{i=1}^{d} \frac{\kappa^2 (6 + 2 \log m)}{\Delta_i} \log T

    The constant is that of the proof, as :math:`\epsilon` goes to 0; terms that do not grow with T
    are left out, and they are large. The proof counts :math:`\sum 1 / N_i` over the arms that are
    played, which controls :math:`\sum |\theta_i - \ell_i|`; its weights :math:`a_i` belong to
    :math:`\kappa` (docs/mathematics.md).

    Examples
    --------
    Half the gap, twice the promise:

    >>> from multiplay import Budget
    >>> from multiplay.theory import Instance, gencts
    >>> for other in (0.6, 0.4, 0.3):
    ...     gencts(Instance(Budget(1, [1, 1]), [0.2, other])).formula
    '15 log T, leading term'
    '30 log T, leading term'
    '60 log T, leading term'
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
    r"""Return what is promised for GenLBINFV on stochastic losses: the leading term of its proof.

    .. math::

        \Bigl(\sum_{i \,:\, a^*_i = 0} h_i(z_i) + 2 \sum_{i \,:\, a^*_i > 0} b_i\Bigr) \log T,
            \qquad z_i = \frac{\lambda_{\mathcal{A}} s_i^2}{\Delta_i}, \quad
            b_i = n_i (1 + \epsilon).

    The theorem says :math:`O(\sum z_i \log T)` over the first of these arms, with :math:`s_i^2`
    the variance of a unit, but its constant depends on the instance: where losses hardly vary,
    :math:`b_i` is what remains. With :math:`\delta_i = (1 + \epsilon) / (3 \epsilon)`,

    .. math::

        h_i(z) = \max_{y \ge 1} \Bigl\{4 b_i y + 4 n_i \delta_i \log y
            - \frac{b_i^2 (y^2 - 1)}{z}\Bigr\} - 2 b_i,

    which is about 4 z for large z. The proof needs every :math:`a^*_i` to be 0 or :math:`n_i`: it
    uses :math:`n_i - x_i` on the arms of the best action where its lower bound has
    :math:`a^*_i - a_i`.

    Parameters
    ----------
    instance
        The set and its means.
    variances
        :math:`s_i^2`, one for all arms or one for each.
    eta
        The step :math:`\eta` of gradient descent, which divides :math:`z_i` by
        :math:`1 - 2 \eta`. The proof then also needs :math:`n_i = 1` on the arms that the best
        action leaves out: it adds up weights :math:`(a_i / n_i)^2` as if they were the same in
        every round.
    epsilon
        That of the policy.

    Examples
    --------
    Where losses hardly vary, what is left is the price of the first weights:

    >>> from multiplay import Budget
    >>> from multiplay.theory import Instance, genlbinfv_stochastic
    >>> two = Instance(Budget(1, [1, 1]), [0.2, 0.5])
    >>> for variance in (0.25, 0.15, 0.01, 0.0001):
    ...     genlbinfv_stochastic(two, variance).formula
    '10.3 log T, leading term'
    '6.967 log T, leading term'
    '4.8 log T, leading term'
    '4.8 log T, leading term'
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
    r"""Return what is promised for GenLBINFV on a finished run, whatever its losses were.

    It is the leading term

    .. math::

        2 \sqrt{\frac{Z \log T}{1 - 2 \eta} \sum_{i=1}^{d} n_i^2}, \qquad
            Z = \min\Bigl\{L^*, \; M T - L^*, \; Q_2, \; \frac{2 V_1}{\eta}\Bigr\}.

    :math:`\eta` is the step of gradient descent; least squares have neither :math:`1 - 2 \eta` nor
    :math:`2 V_1 / \eta`. :math:`L^*`, :math:`Q_2` and :math:`V_1` are means over the trials of
    ``policy``, which must be named where several policies were run and met different numbers. Terms
    that grow like :math:`\log T` are left out.

    With :math:`k_i(t)` the average of the units that were played, and sums over the rounds that
    play arm i, one after the other,

    .. math::

        Q_2 = \sum_{i=1}^{d} \sum_t (k_i(t) - \bar{k}_i)^2, \qquad
            V_1 = \sum_{i=1}^{d} \sum_t |k_i(t) - k_i(\text{before})|

    (``Q2_played`` and ``V1_played`` of the result). :math:`k_i(t)` has no value where arm i is not
    played, and needs none: there :math:`a_i(t) = 0`, the prediction stays as it is, and the proof
    adds nothing. The averages over all slots will not do: a policy that plays one of two units with
    the losses 0 and 1 sees noise where they do not vary. docs/mathematics.md has the proof.

    Parameters
    ----------
    actions
        The set of the run.
    result
        What ``simulate`` returned.
    eta
        :math:`\eta`, for gradient descent; leave it out for least squares.
    policy
        The name of the policy in the run.

    Examples
    --------
    Losses of one tenth the spread, one tenth the promise:

    >>> import numpy as np
    >>> from multiplay import GenLBINFV, Stochastic, Transport, Uniform, simulate
    >>> from multiplay.theory import genlbinfv_adversarial
    >>> plans, least = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])
    >>> for spread in (0.4, 0.04):
    ...     world = Stochastic(Uniform(least, least + spread))
    ...     result = simulate(plans, world, {"GenLBINFV": GenLBINFV()}, horizon=300, trials=5)
    ...     genlbinfv_adversarial(plans, result).formula
    '139.6 at T = 300, leading term'
    '13.95 at T = 300, leading term'
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
    r"""Return what GenLBINFV's regret is at most, from the weights that it ended with (lemma 3).

    .. math::

        \log T \sum_{i=1}^{d} n_i \,\mathbb{E}\Bigl[2 \beta_i(T + 1) - \beta_i(1)
            + 2 \delta_i \log \frac{\beta_i(T + 1)}{\beta_i(1)}\Bigr]
            + d W + W + 2 \sum_{i=1}^{d} n_i \delta_i,

    with :math:`\delta_i = (n_i + e_i) / (3 e_i)` and :math:`e_i / n_i = \epsilon`; the printed
    lemma loses the W. Its proof needs :math:`\log T - 1 \ge 1/2 + (1 + \epsilon) / (3 \epsilon)`,
    which is :math:`T \ge 34` for :math:`\epsilon = 0.2`, :math:`T \ge 176` for 0.1 and more than
    :math:`10^{15}` for 0.01; a shorter horizon is refused.

    Parameters
    ----------
    actions, policy, horizon
        What was played, how, and for how many rounds.
    state
        That of the policy after the last round, trials first; the expectation is their mean, with
        its confidence interval.

    Examples
    --------
    The less the weights have grown, the less was there to regret:

    >>> import numpy as np
    >>> from multiplay import Budget, GenLBINFV
    >>> from multiplay.theory import realised_bound
    >>> two, policy = Budget(1, [1, 1]), GenLBINFV()
    >>> for weight in (1.2, 2.0, 4.0):  # beta, of both arms in three trials; it began as 1.2
    ...     state = {"beta2": np.full((3, 2), weight**2)}
    ...     print(round(realised_bound(two, policy, state, horizon=1000).mean, 1))
    30.6
    80.9
    174.5
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
