"""Baseline with an allowance: plans whose cost stays within a share of that of a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from multiplay._support import hints
from multiplay._support.checks import check_instance, is_number, shortened
from multiplay._support.hints import Hint, Option
from multiplay.actions import ActionSet, Rule
from multiplay.actions.base import owners, unit_numbers
from multiplay.beliefs.features import FeatureRegression
from multiplay.constraints.constraint import Constraint
from multiplay.constraints.terms import Cheapest, Keeps, Term, is_network
from multiplay.errors import InvalidInput
from multiplay.kernels import moments as columns
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

ETAS = 2.0 ** (np.arange(-10, 13) / 2)  # multipliers of the safety constraint
RENEWALS = 3  # of the point at which the deviation is bounded by a parabola
TINY = 1e-12  # deviation, so that one can divide by it
BASELINE = np.inf  # eta where no plan was found to be safe
PSEUDO = 4.0  # units that the noise of all arms counts for, in the noise of one
WEEK = "week"
ROUNDS_OF_WEEK = 7  # in a simulation, whose rounds have no dates

EACH_DAY = "each day"

Known = Callable[[IntArray], FloatArray]  # the known cost of actions along the last axis


@dataclass(frozen=True)
class Baseline(Constraint):
    r"""Plans cost at most a share more than those of a baseline.

    With plays a(s), a rule's plans b(s) on the same sets and the mean losses :math:`\mu`, in every
    round t

    .. math::

        \sum_{s \le t} \langle a(s), \mu \rangle
            \le (1 + \alpha) \sum_{s \le t} \langle b(s), \mu \rangle,

    with high probability; for rewards, at least :math:`1 - \alpha` times as much. The weights of
    both sides are known, so that only one number must be bounded, :math:`\langle W, \mu \rangle`
    with :math:`W = \sum_s ((1 + \alpha) b(s) - a(s))`. A plan with which this number may be
    negative is replaced by one between it and the baseline: on networks the best one that was
    found, elsewhere the baseline (see ``Allowed``). Random numbers are those of the policy alone.
    Units that were not seen count in the sums, as played, and teach nothing.

    What is proved, and what is measured: a proof would need a confidence interval for each arm that
    holds in all rounds; with such intervals the rule is safe and useless, for in 60 rounds it
    hardly ever leaves the baseline. The bound here is for all arms together, a Chernoff bound of
    what is believed (see ``Margin``), for each round on its own. That it holds in all rounds is
    measured, in the worlds of ``benchmarks/allowance.py``, and not proved. Where means drift, old
    plays are judged by the means of now: use ``per="week"``. Expected costs count, not single
    bills.

    Parameters
    ----------
    rule
        The rule; "each day" in learners and studies, where ``ask(baseline=...)`` gives the plan.
    allowance
        :math:`\alpha`, a share above 0.
    sure
        The probability of the bound, that of each round on its own.
    per
        "week": the sums begin again every Monday, UTC, and every 7 rounds in simulations.

    References
    ----------
    Wu, Shariff, Lattimore, Szepesvari: Conservative Bandits, ICML 2016.
    Kazerouni, Ghavamzadeh, Abbasi-Yadkori, Van Roy: Conservative Contextual Linear Bandits,
    NeurIPS 2017. (Both play the proposal or the baseline, and bound each arm.)

    Examples
    --------
    >>> from multiplay import Baseline, Constrained, GenCTS, InProportion, Stochastic, Transport
    >>> from multiplay import Uniform, simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.6, 0.4, 0.7, 0.3, 0.2])
    >>> world = Stochastic(Uniform(means - 0.1, means + 0.1))
    >>> safe = Constrained(GenCTS(), [Baseline(InProportion(), 0.05)])
    >>> result = simulate(plans, world, {"free": GenCTS(), "safe": safe}, horizon=60, trials=5)
    >>> result.final("safe").shape
    (5,)
    """

    rule: Rule | str
    allowance: float = 0.03
    sure: float = field(default=0.99, kw_only=True)
    per: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        rule = self.rule
        if not isinstance(rule, Rule) and not (isinstance(rule, str) and rule == EACH_DAY):
            given = Option("baseline", "{...}", "ask({})")
            rules = hints.Term("InProportion()", "Rule")
            hint = Hint(
                "Use {}, or 'each day', and give the plan of the day with {}.", rules, given
            )
            got = shortened(repr(rule))
            raise InvalidInput("rule", "a rule that a journal can keep", got, hint)
        check_allowance(self.allowance, self.sure, self.per)
        object.__setattr__(self, "allowance", float(self.allowance))
        object.__setattr__(self, "sure", float(self.sure))

    @property
    def name(self) -> str:
        """Its name: there is one for all plans."""
        return "baseline"

    @property
    def text(self) -> str:
        """The settings in a few words.

        Examples
        --------
        >>> from multiplay import InProportion
        >>> Baseline(InProportion(), 0.025, per="week").text
        '2.5 % more than a split in proportion, each week'
        """
        named = self.rule.text if isinstance(self.rule, Rule) else "the plan of each day"
        share = f"{100 * self.allowance:.3g} % more than {named}"
        return share if self.per is None else f"{share}, each {self.per}"


class Together(NamedTuple):
    r"""What is believed of the cost of many plans together, by a model of features.

    The cost of units w whose features sum to x is :math:`\langle w, b \rangle + \langle x, \theta
    \rangle`, of which the joint posterior of :math:`(\theta, b)` gives the mean and the variance.
    Where features multiply, a unit counts in w and x with the slopes of its cost, and has a
    constant: see ``FeatureRegression.slopes``.

    Attributes
    ----------
    model, arrays
        The model, and its state for the arms of the round and then others.
    phi : array of shape (rows, d, p)
        The features of the arms of the round.
    slopes : tuple of arrays of shape (rows, d, p) and (rows, d)
        What a unit of each of these adds to x and to w.
    price : array of shape (rows, d)
        Its constant, in the user's unit.
    rest : tuple of arrays of shape (rows, p), (rows, d) and (rows,)
        What earlier plays add to x, to w and to the constants, beyond their units as units of the
        round.
    others : array of shape (rows, others)
        The weights w of other arms.
    scale : float
        The unit of the model.
    z : float
        How many standard deviations are subtracted.
    """

    model: FeatureRegression
    arrays: Arrays
    phi: FloatArray
    slopes: tuple[FloatArray, FloatArray]
    price: FloatArray
    rest: tuple[FloatArray, FloatArray, FloatArray]
    others: FloatArray
    scale: float
    z: float

    def of(self, left: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and doubt of the cost of units of the arms of the round, (rows, k, d)."""
        (by_unit, weight), (rest, more, known) = self.slopes, self.rest
        others = np.broadcast_to(self.others[:, None], (*left.shape[:2], self.others.shape[1]))
        units = np.concatenate([more[:, None] + left * weight[:, None], others], axis=2)
        x = rest[:, None] + np.einsum("rkd,rdp->rkp", left, by_unit)
        mean, deviation = self.model.weighted(self.arrays, units, x)
        constants = known[:, None] + np.einsum("rkd,rd->rk", left, self.price)
        return constants + self.scale * mean, self.z * self.scale * deviation


class Margin(NamedTuple):
    r"""How far a plan stays within the allowance, with the doubt about the means subtracted.

    After plays with units A in total, where the baseline would have had B, and with today's
    baseline b, the expected cost of all plays is at most :math:`1 + \alpha` times that of the
    baseline if

    .. math::

        \langle T - a, \mu \rangle \ge 0, \qquad T = (1 + \alpha)(B + b) - A.

    T is known; only the means :math:`\mu` are not. With means m, squared doubts q and tails c of
    what is believed of them (see ``ArmBeliefs``), a plan counts as safe if

    .. math::

        g(a) = \langle T - a, m \rangle - \sqrt{\textstyle\sum_i q_i (T_i - a_i)^2}
            - \max_i c_i (a_i - T_i) \ge 0,

    where the last term is 0 if it is negative. Rewards have :math:`1 - \alpha`, and
    :math:`\langle a - T, \mu \rangle`. One bound for all arms together is much less strict than one
    for each arm, and that is what makes it useful.

    Attributes
    ----------
    sign : float
        1 for losses, -1 for rewards.
    target, mean, square, tail : arrays of shape (rows, d)
        T, m, q and c.
    gain, doubt, most : arrays of shape (rows,)
        What arms outside of the set add to the mean and to the sum of squares, and the largest of
        their tails; known costs are part of the first.
    together : Together or None
        What is believed of all arms together, where features are read. q are those of single arms
        then, by which plans are searched, and not tested.

    Examples
    --------
    Two arms, of which the second is not known well: three units of it are too many.

    >>> target, mean, square = np.array([[4.0, 1.0]]), np.array([[0.5, 0.4]]), [[0.0, 0.16]]
    >>> nothing = np.zeros(1)
    >>> moments = target, mean, np.array(square), 0 * mean
    >>> margin = Margin(1.0, *moments, nothing, nothing, nothing)
    >>> margin.of(np.array([[[3, 1], [1, 3]]])).round(3)
    array([[ 0.5, -0.1]])
    """

    sign: float
    target: FloatArray
    mean: FloatArray
    square: FloatArray
    tail: FloatArray
    gain: FloatArray
    doubt: FloatArray
    most: FloatArray
    together: Together | None = None

    def of(self, actions: IntArray, known: Known | None = None) -> FloatArray:
        """Return g of some actions for each row, (rows, k, d)."""
        left = self.target[:, None] - actions
        if self.together is None:
            mean, doubt = np.einsum("rkd,rd->rk", left, self.mean), self.deviation(left)
        else:
            mean, doubt = self.together.of(left)
        mean = self.sign * mean + self.gain[:, None]
        if known is not None:
            mean -= self.sign * known(actions)
        tail = np.maximum(tail_of(self.sign * left, self.tail[:, None]), self.most[:, None])
        margin: FloatArray = mean - doubt - tail
        return margin

    def deviation(self, left: FloatArray) -> FloatArray:
        """Return the part of the doubt about <left, means> that is as for a normal number."""
        if self.together is not None:
            return self.together.of(left)[1]
        squares = np.einsum("rkd,rd->rk", left * left, self.square)
        deviation: FloatArray = np.sqrt(squares + self.doubt[:, None])
        return deviation

    def rows(self, which: IntArray) -> Margin:
        """Return the margins of some rows."""
        target, mean, square, tail = (
            one[which] for one in (self.target, self.mean, self.square, self.tail)
        )
        others = self.gain[which], self.doubt[which], self.most[which]
        return Margin(self.sign, target, mean, square, tail, *others, self.together)


class Allowed(Term):
    r"""An allowance in one round: plans that are safe, or else a safe plan of little cost.

    On networks, the safe plan of the least cost is searched by a multiplier :math:`\eta`. With
    :math:`\sqrt{Q} \le Q / (2 s) + s / 2` the constraint is a sum over the arms, and unit k of arm
    i costs

    .. math::

        c_i + \eta \Bigl(m_i + \frac{q_i}{2 s} \bigl((T_i - k)^2 - (T_i - k + 1)^2\bigr)\Bigr),

    which increases with k: ``actions.argmin_increasing``. Changes of the last plan and prices of
    promises are added to :math:`c_i`. 23 values of :math:`\eta` are tried, and s is renewed twice;
    every plan that is found is tested by the exact margin, and by the constraints before this one.
    The result is safe, and not always the best safe plan. Without a safe plan, and on other sets,
    it is the baseline; and the plan of the constraints before this one, where these do not permit
    the baseline.

    Parameters
    ----------
    baseline
        The plans of the rule, (rows, d).
    margin
        What is safe.
    known
        The known cost of actions, for a set that has one.
    scale
        The unit of the margin, in the unit of the policy.

    Attributes
    ----------
    wanted : array of shape (rows, d)
        The plans before the allowance.
    eta : array of shape (rows,)
        The multiplier with which the plan was found; 0 for a plan that is safe, infinite where no
        safe plan was found.

    Examples
    --------
    The proposal would put three units on an arm that is not known; one is within the allowance.

    >>> from multiplay import Budget
    >>> from multiplay.constraints.terms import planned
    >>> plans, nothing = Budget(3, caps=[3, 3]), np.zeros(1)
    >>> target, mean, square = np.array([[[4.0, 0.0]], [[0.5, 0.5]], [[0.0, 0.16]]])
    >>> margin = Margin(1.0, target, mean, square, 0 * mean, nothing, nothing, nothing)
    >>> sampled, proposal, baseline = np.array([[0.5, 0.1]]), np.array([[0, 3]]), np.array([[3, 0]])
    >>> planned(plans, lambda: sampled, proposal, [Allowed(baseline, margin)])
    array([[2, 1]])
    """

    def __init__(
        self, baseline: IntArray, margin: Margin, known: Known | None = None, scale: float = 1.0
    ) -> None:
        self.baseline, self.margin, self.known, self.scale = baseline, margin, known, scale

    def enforce(self, plan: IntArray, cheapest: Cheapest, keeps: Keeps) -> IntArray:
        """Return the plans where they are safe, and otherwise safe plans of little cost."""
        self.wanted, action, self.eta = plan, plan.copy(), np.zeros(len(plan))
        unsafe = ~self.holds(plan[:, None])[:, 0] & (plan != self.baseline).any(axis=1)
        which = np.flatnonzero(unsafe)
        if len(which):
            permitted = keeps(self.baseline[:, None])[which]
            action[which] = np.where(permitted, self.baseline[which], plan[which])
            self.eta[which] = BASELINE
            if self.known is None and is_network(cheapest.actions):
                self._search(action, which, cheapest, keeps, permitted)
        return action

    def holds(self, plans: IntArray) -> BoolArray:
        """Return which plans are safe."""
        return self.margin.of(plans, self.known) >= 0.0

    def _search(
        self,
        action: IntArray,
        which: IntArray,
        cheapest: Cheapest,
        keeps: Keeps,
        permitted: BoolArray,
    ) -> None:
        """Replace actions of some rows by safe plans of less cost than the baseline.

        The first parabola touches the deviation of the plans that are wanted, the next ones those
        of the best plans so far.
        """
        part, actions, margin = cheapest.rows(which), cheapest.actions, self.margin.rows(which)
        n, rows = actions.n, np.arange(len(which))
        owner, k = owners(n), unit_numbers(n)
        costs, changes = self.scale * part.costs(), part.changes
        cheap = costs[:, owner]
        if changes is not None:
            cheap = cheap + self.scale * changes.by_unit(owner, k)

        def of_changes(plans: IntArray) -> FloatArray | float:
            return 0.0 if changes is None else self.scale * changes.of(plans)

        base = self.baseline[which, None]
        safe = (margin.of(base) >= 0.0) & permitted
        of_base = (costs * base[:, 0]).sum(axis=1)[:, None] + of_changes(base)
        least = np.where(safe, of_base, np.inf)[:, 0]
        target, mean = margin.target[:, owner], margin.sign * margin.mean[:, owner]
        near = self.wanted[which]
        for _ in range(RENEWALS):
            s = np.maximum(margin.deviation((margin.target - near)[:, None]), TINY)
            slope = margin.square[:, owner] * (2 * (k - target) - 1) / (2 * s)
            priced = cheap[:, None] + ETAS[:, None] * (mean + slope)[:, None]
            found = actions.argmin_increasing(priced)
            margins = margin.of(found)
            good = margins >= 0.0
            if good.any():
                good &= self._kept(found, which, keeps)
            total = np.einsum("rkd,rd->rk", found, costs) + of_changes(found)
            costing = np.where(good, total, np.inf)
            chosen = costing.argmin(axis=1)
            best, ending = found[rows, chosen], costing[rows, chosen]
            better = ending < least
            action[which[better]] = best[better]
            self.eta[which[better]] = ETAS[chosen][better]
            least = np.minimum(least, ending)
            near = found[rows, np.where(np.isinf(ending), margins.argmax(axis=1), chosen)]

    def _kept(self, found: IntArray, which: IntArray, keeps: Keeps) -> BoolArray:
        """Return which plans of some rows the constraints before this one permit."""
        plans = np.repeat(self.wanted[:, None], found.shape[1], axis=1)
        plans[which] = found
        return keeps(plans)[which]


class ArmBeliefs(NamedTuple):
    r"""What is believed of the mean of each arm, for the bound of an allowance.

    The n units of an arm, with their mean and the sum S of their squared deviations from it, and
    one pseudo unit at each end of the range, have Dirichlet weights: with N = n + 2 and the mean m
    of all of these, the variance is

    .. math::

        v = \frac{1}{N (N + 1)} \sum_k (x_k - m)^2 = v_0 + v_1, \qquad v_1 = \frac{S}{N (N + 1)}.

    For losses of 0 and 1 this is the beta distribution of a uniform prior. A beta distribution with
    these moments, on a range from l to h, has for :math:`\lambda > 0`

    .. math::

        \log E e^{\lambda (\mu - m)} \le \frac{\lambda^2 v}{2 (1 - \lambda \max(b, 0))}, \qquad
        b = \frac{l + h - 2 m}{M + 2}, \quad M = \frac{(m - l) (h - m)}{v} - 1.

    2 b is its third central moment over its variance (Skorski 2023 has a bound of the same two
    numbers for one such variable; this one was checked on a grid). So by Chernoff, independent arms
    with weights w have :math:`\langle w, \mu - m \rangle \le \sqrt{2 L \sum_i v_i w_i^2} + L
    \max_i(b_i w_i)^+` with the probability :math:`1 - e^{-L}` = ``sure``.

    The bound is read in every round. What was seen fluctuates from round to round, and has the
    factor 2 L; what two pseudo units add does not, and has the square of the quantile z of one
    normal number: ``square`` is :math:`z^2 v_0 + 2 L v_1`. ``tail`` is L b.

    Attributes
    ----------
    mean, square, tail : arrays
        m, the squared doubt, and the tail of each arm.

    References
    ----------
    Skorski: Bernstein-type bounds for beta distribution, Modern Stochastics 10, 2023.

    Examples
    --------
    Of ten units of the second arm, one lost 1, and the others nothing.

    >>> n, mean, low = np.array([0.0, 10.0]), np.array([0.0, 0.1]), np.zeros(2)
    >>> found = ArmBeliefs.of(n, mean, n * mean * (1 - mean), low, low + 1, 0.99)
    >>> for one in found:
    ...     print(one.round(3))
    [0.5   0.167]
    [0.451 0.08 ]
    [0.    0.219]
    """

    mean: FloatArray
    square: FloatArray
    tail: FloatArray

    @classmethod
    def of(
        cls,
        n: FloatArray,
        mean: FloatArray,
        squares: FloatArray,
        low: FloatArray,
        high: FloatArray,
        sure: float,
    ) -> ArmBeliefs:
        """Return what n units of each arm say, with their mean and sum of squared deviations."""
        total, risk = n + 2.0, -math.log(1.0 - sure)
        m = (n * mean + low + high) / total
        rest = n * (mean - m) ** 2 + (low - m) ** 2 + (high - m) ** 2
        seen, rest = (one / (total * (total + 1.0)) for one in (squares, rest))
        units = (m - low) * (high - m) / np.maximum(seen + rest, np.finfo(float).tiny) - 1.0
        scale = (low + high - 2.0 * m) / (np.maximum(units, 0.0) + 2.0)
        return cls(m, z_of(sure) ** 2 * rest + 2.0 * risk * seen, risk * scale)


def tail_of(weight: FloatArray, tail: FloatArray) -> FloatArray:
    """Return the largest tail of weights of arms along the last axis, at least 0.

    Weights are the units that a margin counts: many of an arm that may cost less than is believed
    are as bad as few of one that may cost more.
    """
    largest: FloatArray = (-weight * tail).max(axis=-1, initial=0.0)
    return largest


def beliefs_of(
    sums: FloatArray, low: FloatArray, high: FloatArray, settings: Baseline
) -> ArmBeliefs:
    r"""Return what is believed of arms by the moments of their losses, (..., d, columns).

    Arms are independent of each other. The model of ``Learner.arms`` shares more between the arms:
    its doubt about an arm of which nothing is known is smaller, and a bound with it is not a sum
    over the arms, which the search for a safe plan needs.

    A report whose units are not known tells one square of the same expectation as that of a unit.
    With ``per="week"``, means are taken to move: the present mean of a random walk differs from its
    average by twice the variance of the walk around that average, which is what days differ more
    than their units do, :math:`\tau^2` of all arms together. Then v has :math:`2 \tau^2` more.
    """
    n, reports, mean, between, within, dof, squares = (
        sums[..., column]
        for column in (
            columns.N,
            columns.R,
            columns.MEAN,
            columns.B,
            columns.W,
            columns.DOF,
            columns.A2,
        )
    )
    told = np.maximum(dof + reports, 1.0)
    deviations = (within + between) * np.maximum(n / told, 1.0)
    found = ArmBeliefs.of(n, mean, deviations, low, high, settings.sure)
    if settings.per is None:
        return found
    pooled = within.sum(axis=-1) / np.maximum(dof.sum(axis=-1), 1.0)
    unit = (within + PSEUDO * pooled[..., None]) / (dof + PSEUDO)
    beyond = (between - np.maximum(reports - 1.0, 0.0) * unit).sum(axis=-1)
    weight = (n - squares / np.maximum(n, 1.0)).sum(axis=-1)
    moved = np.maximum(beyond, 0.0) / np.maximum(weight, 1.0)
    more = 2.0 * z_of(settings.sure) ** 2 * moved[..., None]
    return found._replace(square=found.square + more)


def z_of(sure: float) -> float:
    """Return how many standard deviations a probability stands for, on one side.

    Examples
    --------
    >>> round(z_of(0.99), 2)
    2.33
    """
    return NormalDist().inv_cdf(sure)


def check_allowance(allowance: Any, sure: Any, per: Any) -> None:
    """Raise ``InvalidInput`` unless these are settings of an allowance."""
    if not is_number(allowance) or not 0 < allowance < np.inf:
        hint = "Write 0.03 for 3 %. With 0 only the baseline could ever be played."
        raise InvalidInput("allowance", "a share above 0", repr(allowance), hint)
    if not is_number(sure) or not 0.5 <= sure < 1:
        hint = "Leave it out for 0.99."
        raise InvalidInput("sure", "a probability from 0.5 to below 1", repr(sure), hint)
    if per is not None and not (isinstance(per, str) and per == WEEK):
        hint = "Leave it out for one allowance for all plays."
        raise InvalidInput("per", "None or 'week'", repr(per), hint)


def baseline_plan(rule: Rule, actions: ActionSet) -> IntArray:
    """Return the plan of a rule; raise ``InvalidInput`` that names the baseline."""
    check_instance("baseline", rule, Rule, "InProportion()")
    try:
        return rule.plan(actions)
    except InvalidInput as error:
        raise InvalidInput("baseline", error.expected, error.got, error.hint) from None
