"""Guarantees: upper bounds on regret, for an instance or for a finished run.

Each guarantee says what its proof needs, and whether the instance has it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import (
    check_instance,
    for_each_arm,
    is_number,
    numbers,
    positive_integer,
)
from multiplay._support.html import HasPanel, Panel
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.policies import GenLBINFV
from multiplay.policies.genlbinfv import DEFAULT_EPSILON
from multiplay.results import Result
from multiplay.results.intervals import Interval, interval
from multiplay.theory.lower_bound import ranked
from multiplay.types import Arrays, FloatArray

LARGEST_PRINTED = 35.0  # logarithm of the largest number of rounds that is written out
TRADES = np.geomspace(1e-8, 1.0, 401)  # chi: each gives a bound, and neighbours differ by 5 %


@dataclass(frozen=True)
class Guarantee(HasPanel):
    """An upper bound on regret.

    Attributes
    ----------
    formula
        The bound.
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

    def _panel(self) -> Panel:
        """Return the bound, and whether it is proved for this instance."""
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
        self.best, others, gaps = ranked(actions, everything, self.means)
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
        """M, or the :math:`n_i` of all arms that the best action leaves out, if that is less."""
        return min(self.actions.M, int(self.actions.n[self.best == 0].sum()))


def gencts(instance: Instance) -> Guarantee:
    r"""Return the bound for GenCTS: the leading term of theorem 1.

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
    epsilon: float | Sequence[float] = DEFAULT_EPSILON,
) -> Guarantee:
    r"""Return the bound for GenLBINFV on stochastic losses: the leading term of its proof.

    .. math::

        \Bigl(\sum_{i \,:\, a^*_i = 0} h_i(z_i) + 2 \sum_{i \,:\, a^*_i > 0} b_i\Bigr) \log T,
            \qquad z_i = \frac{\lambda_{\mathcal{A}} s_i^2}{\Delta_i}, \quad
            b_i = n_i (1 + \epsilon_i).

    The theorem says :math:`O(\sum z_i \log T)` over the first of these arms, with :math:`s_i^2`
    the variance of a unit, but its constant depends on the instance: where losses hardly vary,
    :math:`b_i` is what remains. With :math:`\delta_i = (1 + \epsilon_i) / (3 \epsilon_i)`,

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
        :math:`\epsilon_i` of the policy, one for all arms or one for each.

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
    terms = _Terms(instance, variances, eta, epsilon)
    constant = float(terms.logarithmic(1.0))
    return Guarantee(
        formula=f"{constant:.4g} log T, leading term",
        needs=terms.needs,
        proved=terms.proved,
        curve=lambda rounds: constant * np.log(rounds),
    )


def genlbinfv_corrupted(
    instance: Instance,
    variances: ArrayLike,
    corruption: float,
    eta: float | None = None,
    epsilon: float | Sequence[float] = DEFAULT_EPSILON,
) -> Guarantee:
    r"""Return the bound for GenLBINFV on stochastic losses with adversarial corruption.

    An adversary changes the losses :math:`L'_{ij}(t)` of the stochastic regime to
    :math:`L_{ij}(t)`, by

    .. math::

        C = \mathbb{E} \sum_{t=1}^{T} \max_{i, j} |L_{ij}(t) - L'_{ij}(t)|

    in all. The theorem says :math:`O(R + \sqrt{C M R})`, with R the bound of the stochastic regime.
    The leading terms of its proof are, with J the arms that the best action leaves out and I its
    own,

    .. math::

        \min_{0 < \chi \le 1} \Bigl\{& \Bigl[\tfrac{1 + \chi}{2} \sum_{i \in J}
            h_i\Bigl(\tfrac{1 + \chi}{2 \chi} z_i\Bigr)
            + (1 + \chi) \sum_{i \in I} b_i\Bigr] \log T \\
        &+ (1 + \chi) \sqrt{K C \min\{m, |J|\} \sum_{i \in J} n_i^2
            \Bigl(2 + \frac{\delta_i}{1 + \epsilon_i}\Bigr)^2 \log T} + 2 \chi C M\Bigr\},

    where :math:`h_i`, :math:`z_i`, :math:`b_i` and :math:`\delta_i` are those of
    ``genlbinfv_stochastic``, which is the same bound for :math:`C = 0` and :math:`\chi = 1`. For
    large C the first and the last term are together about
    :math:`\sqrt{8 C M \sum_J z_i \log T}`. K = 2 if all arms of J have :math:`n_i = 1`, else 6;
    the paper has 1 (docs/mathematics.md).

    Regret is that of the losses that came, against the action that is best for the means without
    corruption. It is the best action for the losses that came, too, as long as
    :math:`2 C M \le T \min_i \Delta_i`.

    Parameters
    ----------
    instance
        The set and its means without corruption.
    variances
        :math:`s_i^2`, those of a unit without corruption, one for all arms or one for each.
    corruption
        C, as in ``corruption`` of a result.
    eta, epsilon
        As for ``genlbinfv_stochastic``; :math:`1 - 2 \eta` divides K, too.

    Examples
    --------
    Four times the corruption, about twice the bound:

    >>> import numpy as np
    >>> from multiplay import Budget
    >>> from multiplay.theory import Instance, genlbinfv_corrupted
    >>> two = Instance(Budget(1, [1, 1]), [0.2, 0.5])
    >>> for C in (0, 10, 1000, 4000):
    ...     genlbinfv_corrupted(two, 0.25, C).curve(np.array([10_000])).round()
    array([93.])
    array([179.])
    array([892.])
    array([1658.])
    """
    terms = _Terms(instance, variances, eta, epsilon)
    if not (is_number(corruption) and 0 <= corruption < math.inf):
        raise InvalidInput(
            "corruption",
            "a finite number of at least 0",
            repr(corruption),
            "Give C, the sum over the rounds of the largest change of a loss.",
        )
    constants = np.array([terms.logarithmic(chi) for chi in TRADES])
    root, linear = terms.square_root(corruption), 2 * corruption * instance.actions.M

    def curve(rounds: FloatArray) -> FloatArray:
        g = np.log(np.asarray(rounds, dtype=float))[..., None]
        bounds = constants * g + (1 + TRADES) * root * np.sqrt(g) + TRADES * linear
        return np.asarray(bounds.min(axis=-1))

    return Guarantee(
        formula=f"min over chi in (0, 1] of c(chi) log T + {root:.4g} (1 + chi) sqrt(log T) + "
        f"{linear:.4g} chi, c(1) = {constants[-1]:.4g}, leading terms",
        needs=f"corruption of at most {corruption:.4g} in all; without it, {terms.needs}",
        proved=terms.proved,
        curve=curve,
    )


class _Terms:
    """The terms of the two bounds that use gaps: those of arms in J, and those of arms in I."""

    def __init__(
        self,
        instance: Instance,
        variances: ArrayLike,
        eta: float | None,
        epsilon: float | Sequence[float],
    ) -> None:
        fractions = _fractions(instance.actions, eta, epsilon)
        s2 = np.broadcast_to(numbers("variances", variances), instance.means.shape)
        n, self.left_out = instance.actions.n, instance.best == 0
        self.shrink = 1 - 2 * (eta or 0.0)
        self.z = instance.lambda_A * s2 / instance.Delta / self.shrink
        self.b, self.push = n * (1 + fractions), n * _delta(fractions)
        self.n, self.most_arms = n, instance.actions.m
        self.needs = (
            "independent losses, one best action, which plays each arm either never or n_i times"
        )
        self.proved = bool((self.left_out | (instance.best == n)).all())
        if eta is not None:
            self.needs += "; n_i = 1 for the arms that it never plays"
            self.proved &= bool((n[self.left_out] <= 1).all())

    def logarithmic(self, chi: float) -> float:
        r"""Return the factor of :math:`\log T`."""
        b, z = self.b, (1 + chi) / (2 * chi) * self.z
        y = np.maximum((z + np.sqrt(z**2 + 2 * self.push * z)) / np.maximum(b, 1), 1.0)
        cost = np.divide(b**2 * (y**2 - 1), z, out=np.zeros_like(z), where=y > 1)
        h = 4 * b * y + 4 * self.push * np.log(y) - cost - 2 * b
        return float((1 + chi) / 2 * np.where(self.left_out, h, 2 * b).sum())

    def square_root(self, corruption: float) -> float:
        r"""Return the factor of :math:`(1 + \chi) \sqrt{\log T}`."""
        n, push, b = (array[self.left_out] for array in (self.n, self.push, self.b))
        some = n > 0
        weights = n[some] * (2 + push[some] / b[some])
        changed = (2 if (n <= 1).all() else 6) * corruption / self.shrink
        return math.sqrt(changed * min(self.most_arms, len(weights)) * float((weights**2).sum()))


def genlbinfv_adversarial(
    actions: ActionSet, result: Result, eta: float | None = None, policy: str | None = None
) -> Guarantee:
    r"""Return the bound for GenLBINFV on a finished run, whatever its losses were.

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
    _fractions(actions, eta, DEFAULT_EPSILON)
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
            f"a result without {', '.join(missing)}",
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
            "None, although the losses of the policies differ",
            "Name the policy that the bound is for: policy='...'.",
        )
    return [float(own[name].mean()) for name in names]


def realised_bound(actions: ActionSet, policy: GenLBINFV, state: Arrays, horizon: int) -> Interval:
    r"""Return a bound on the regret of GenLBINFV, from its last weights (lemma 3).

    .. math::

        \log T \sum_{i=1}^{d} n_i \,\mathbb{E}\Bigl[2 \beta_i(T + 1) - \beta_i(1)
            + 2 \delta_i \log \frac{\beta_i(T + 1)}{\beta_i(1)}\Bigr]
            + d W + W + 2 \sum_{i=1}^{d} n_i \delta_i,

    with :math:`\delta_i = (n_i + e_i) / (3 e_i)` and :math:`e_i / n_i = \epsilon_i`; the printed
    lemma loses the W. Its proof needs :math:`\log T - 1 \ge 1/2 + \max_i \delta_i`, which is
    :math:`T \ge 34` for :math:`\epsilon_i = 0.2`, :math:`T \ge 176` for 0.1 and more than
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
            "the state of a run with a horizon: the proof has g = log T in every round",
            "the state of a run without a horizon",
            "Leave anytime out, and give the horizon.",
        )
    fractions = policy.fractions_of(actions)
    delta = _delta(fractions)
    _check_horizon(horizon, float(fractions.min()), float(delta.max()))
    n, W, g = actions.n, int(actions.n.sum()), math.log(horizon)
    first, last = 1 + fractions, np.sqrt(state["beta2"])
    grown = 2 * last - first + 2 * delta * np.log(last / first)
    return interval(g * (n * grown).sum(axis=1) + actions.d * W + W + 2 * float(n @ delta))


def _fractions(
    actions: ActionSet, eta: float | None, epsilon: float | Sequence[float]
) -> FloatArray:
    """Return epsilon of every arm, or raise the same error as the policy."""
    return GenLBINFV(epsilon=epsilon, eta=GenLBINFV.eta if eta is None else eta).fractions_of(
        actions
    )


def _delta(epsilon: FloatArray) -> FloatArray:
    return np.asarray((1 + epsilon) / (3 * epsilon))


def _check_horizon(horizon: int, epsilon: float, delta: float) -> None:
    rounds = positive_integer("horizon", horizon, "Give the number of rounds that were played.")
    least = 1.5 + delta
    if math.log(rounds) < least:
        enough = f"{math.ceil(math.exp(least)):,}" if least < LARGEST_PRINTED else f"e^{least:.1f}"
        raise InvalidInput(
            "horizon",
            f"at least {enough} rounds, for which the bound is proved with epsilon = {epsilon}",
            f"{rounds:,}",
            "Run more rounds, or use a larger epsilon.",
        )
