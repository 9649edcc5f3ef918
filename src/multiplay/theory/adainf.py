"""The realised bound of GenAdaINF: its estimated regret, and the costs that a run has paid."""

from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import check_instance, positive_integer
from multiplay._support.formatting import Table, between, number
from multiplay._support.html import HasPanel, Panel
from multiplay.actions import ActionSet
from multiplay.environments import Environment
from multiplay.policies import GenAdaINF
from multiplay.policies.base import shown
from multiplay.policies.genadainf import minimiser
from multiplay.random import POLICY, Streams
from multiplay.types import Arrays, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Realised(HasPanel):
    r"""Both sides of the bound of GenAdaINF in every trial of a run.

    Attributes
    ----------
    estimated : array of shape (trials,)
        :math:`\sum_t \langle e_t, x_t - y^* \rangle`, the regret in the losses as the policy
        estimates them. Its mean is that of the regret, up to
        :math:`\langle \text{losses}, y^* - a^* \rangle \le M`.
    bound : array of shape (trials,)
        What ``estimated`` cannot exceed, in no trial: start + paid + shrunk.
    start, paid, shrunk : arrays of shape (trials,)
        :math:`\Psi_T(y^*)`, the sum of the costs :math:`\delta_t`, and N, what is lost when
        :math:`w_i` follows :math:`q_i` down.
    regret : array of shape (trials,)
        The pseudo-regret of the same run.
    ratio : array of shape (trials,)
        :math:`\rho`, the largest :math:`\kappa_i D_i / (w_i (1 + \log t))` of any arm and round: by
        how much of its weight an arm paid at once. The costs that the weights :math:`w_i` pay for
        are at most :math:`\tfrac12 (1 + \sqrt{1 + 2 \rho}) (1 + \log T) \sum_i \sqrt{S_i}`.

    Examples
    --------
    >>> from multiplay import Bernoulli, Stochastic, Transport
    >>> from multiplay.theory import genadainf_realised
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> run = genadainf_realised(plans, Stochastic(Bernoulli(0.3)), horizon=50, trials=3)
    >>> bool((run.bound == run.start + run.paid + run.shrunk).all())
    True
    """

    estimated: FloatArray
    start: FloatArray
    paid: FloatArray
    shrunk: FloatArray
    regret: FloatArray
    ratio: FloatArray

    @property
    def bound(self) -> FloatArray:
        """The sum start + paid + shrunk."""
        return self.start + self.paid + self.shrunk

    def _panel(self) -> Panel:
        """Return both sides of the bound: mean, smallest and largest over the trials."""
        sides = {
            "regret": self.regret,
            "estimated regret": self.estimated,
            "bound": self.bound,
            "bound: start": self.start,
            "bound: paid": self.paid,
            "bound: shrunk": self.shrunk,
        }
        rows = [
            [name, number(float(each.mean())), between(float(each.min()), float(each.max()))]
            for name, each in sides.items()
        ]
        within = int((self.estimated <= self.bound).sum())
        trials = str(len(self.regret))
        facts = {"trials": trials, "estimated regret within the bound": f"in {within}"}
        return Panel("Realised", facts, (Table("", ["", "mean", "least to largest"], rows),))


def genadainf_realised(
    actions: ActionSet,
    environment: Environment,
    horizon: int,
    trials: int = 10,
    seed: int = 0,
    policy: GenAdaINF | None = None,
) -> Realised:
    r"""Run GenAdaINF, and return its regret and the realised bound of this run.

    With :math:`L_t = e_1 + \dots + e_t` and :math:`y^* = (1 - 1/T) \, a^* + x_1 / T`,

    .. math::

        \sum_{t=1}^{T} \langle e_t, x_t - y^* \rangle
            &\le \Psi_T(y^*) + \sum_{t=1}^{T} \delta_t + N, \\
        N &= \sum_{t=1}^{T-1} \max\{0, F_t(L_t) - F_{t+1}(L_t)\}, \\
        F_t(L) &= \min_{x \in \operatorname{conv}(\mathcal{A})} \langle L, x \rangle + \Psi_t(x), \\
        \delta_t &= \langle L_t, x_t \rangle + \Psi_t(x_t) - F_t(L_t),

    whatever the losses are: :math:`x_t` cannot be better than :math:`F_t(L_{t-1})`, and the rest is
    a telescope. For rewards the signs of losses are turned. Here :math:`\Psi` has no constant: its
    least value is 0 for each arm. docs/adainf.md says what each term grows like.

    Parameters
    ----------
    actions, environment, horizon, trials, seed
        As in ``simulate``.
    policy
        ``GenAdaINF()`` if not given.

    Examples
    --------
    >>> from multiplay import Bernoulli, Stochastic, Transport
    >>> from multiplay.theory import genadainf_realised
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> run = genadainf_realised(plans, Stochastic(Bernoulli(0.3)), horizon=50, trials=3)
    >>> bool((run.estimated <= run.bound).all())
    True
    """
    policy = GenAdaINF() if policy is None else policy
    check_instance("policy", policy, GenAdaINF, "GenAdaINF()")
    horizon = positive_integer("horizon", horizon, "Give the number of rounds, a positive integer.")
    trials = positive_integer("trials", trials, "Give the number of trials, a positive integer.")
    environment.check(actions, horizon, trials)
    sign, hull, rows = actions.sign, actions.hull, range(trials)
    world, rng = environment.open(actions, horizon, rows, seed), Streams.spawn(seed, POLICY, rows)
    state = policy.start(actions, horizon, trials)
    L, means, played = (np.zeros((trials, actions.d)) for _ in range(3))
    incurred, paid, shrunk, ratio = (np.zeros(trials) for _ in range(4))
    before: tuple[Arrays, FloatArray] | None = None
    for _ in range(horizon):
        play = policy.choose(actions, state, rng)
        memo, seen = play.memo, world.observe(play.action)
        point = {name: memo[name] for name in hull.point}
        if before is not None:
            z = minimiser(actions, sign * L, memo, point)
            now = _inner(sign * L, z["x"]) + psi(actions, memo, z)
            shrunk += np.maximum(before[1] - now, 0.0)
        else:
            first = memo["x"]
        S = state["S"].copy()
        policy.update(actions, state, play, shown(policy, seen.feedback), rng)
        grown = np.divide(
            state["S"] - S, 2 * memo["w"] ** 2, out=np.zeros_like(S), where=state["S"] > S
        )
        ratio = np.maximum(ratio, grown.max(axis=1))
        e = state["L"] - L
        L = state["L"].copy()
        incurred += _inner(sign * e, memo["x"])
        y = minimiser(actions, sign * L, memo, point)
        least = _inner(sign * L, y["x"]) + psi(actions, memo, y)
        paid += _inner(sign * L, memo["x"]) + psi(actions, memo, memo) - least
        before = memo, least
        means += seen.means
        played += play.action * seen.means
    best = actions.best(means / horizon)
    y_star = (1 - 1 / horizon) * best + first / horizon
    mixed = {"x": y_star, "rest": actions.n - y_star}
    assert before is not None
    estimated = incurred - _inner(sign * L, y_star)
    regret = sign * (played.sum(axis=1) - _inner(means, best))
    return Realised(estimated, psi(actions, before[0], mixed), paid, shrunk, regret, ratio)


def psi(actions: ActionSet, weights: Arrays, point: Arrays) -> FloatArray:
    r"""Return :math:`\Psi(x)` of GenAdaINF, with :math:`\log 2` in place of the constant 1."""
    some = actions.n > 0
    n, w, v = actions.n[some], weights["w"][:, some], weights["v"][:, None]
    u, rest = point["x"][:, some] / n, point["rest"][:, some] / n
    entropy = np.log(2) + _x_log_x(u) + _x_log_x(rest)
    total: FloatArray = (w * (u - 1 - np.log(u)) + v * n * entropy).sum(axis=1)
    return total


def _x_log_x(x: FloatArray) -> FloatArray:
    from scipy.special import xlogy  # here: importing multiplay should not wait for it

    return np.asarray(xlogy(x, x), dtype=float)


def _inner(a: FloatArray, b: FloatArray | IntArray) -> FloatArray:
    product: FloatArray = (a * b).sum(axis=1)
    return product
