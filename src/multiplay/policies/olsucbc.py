"""OLS-UCB-C: optimism action by action, with estimated covariances of the arms."""

import math
from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import integer_setting, is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import covariance as kernels
from multiplay.policies.base import Play, PolicyCost, all_actions, known_values
from multiplay.policies.index import ArmPolicy
from multiplay.posteriors.averages import Averages, averages
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray


@dataclass(frozen=True)
class OLSUCBC(ArmPolicy):
    r"""Play the action with the most optimistic value, by estimated covariances of the arms.

    A round s with :math:`k_i(s)` units of arm i shows their total :math:`T_i(s)`, and the round
    mean :math:`T_i(s) / k_i(s)`. Units that were not seen count for nothing. With
    :math:`N_i = \sum_s k_i(s)` and :math:`\hat{\mu}_i = \sum_s T_i(s) / N_i`, the covariance of the
    round means of two arms is estimated from the rounds that use both:

    .. math::

        Q_{ij} &= \sum_s k_i(s) k_j(s), \qquad
        n_{ij} = Q_{ij}^2 \Big/ \sum_s k_i(s)^2 k_j(s)^2, \\
        \hat{\Sigma}_{ij} &= \frac{1}{Q_{ij}} \sum_s T_i(s) T_j(s) - \hat{\mu}_i \hat{\mu}_j, \\
        \overline{\Sigma}_{ij} &= \min\Bigl\{\frac{1}{4}, \hat{\Sigma}_{ij} + \frac{1}{4} \Bigl(
            \frac{5 h}{\sqrt{n_{ij}}} + \frac{h^2}{n_{ij}} + \frac{1}{n_{ij}^2} \Bigr)\Bigr\},
        \qquad h = \kappa \sqrt{\ln t + \ln d}.

    Every pair of arms that an action can use together is seen once: as long as some are left, the
    action with the most of them is played. Then, in round t, the action of the least index:

    .. math::

        \operatorname{index}(a) &= \langle a, \hat{\mu} \rangle
            - f(t) \sqrt{x^\top G x}, \qquad x_i = a_i / N_i, \\
        G_{ij} &= Q_{ij} \overline{\Sigma}_{ij} + [i = j] \bigl(Q_{ii} \overline{\Sigma}_{ii}
            + n_i^2\bigr), \qquad
        f(t) = \alpha (\ln t + d \ln \ln t).

    :math:`n_i` is the largest number of units of arm i in an action, and :math:`\ln \ln t` counts
    as 0 up to t = e. Rewards have + in place of -, and the largest index. The variance of
    :math:`\langle a, \hat{\mu} \rangle` is
    :math:`\sum_{ij} a_i a_j Q_{ij} \Sigma_{ij} / (N_i N_j)`, whatever the numbers of units were, so
    losses of arms that cancel each other (negative covariances) are explored less.

    Where all :math:`k_i` are 0 or 1, :math:`n_{ij}` counts the rounds with both arms,
    :math:`n_i = 1`, and this is the published index, beside the limit of 1/4, which losses in
    [0, 1] allow. As in ``ESCB`` no oracle for linear costs finds the least index: all actions are
    compared, and a set with more than ``limit`` of them is refused. The objective must be linear,
    beside known costs.

    Parameters
    ----------
    alpha
        :math:`\alpha`, how much doubt about totals; less explores less.
    kappa
        :math:`\kappa`, how much doubt about covariances; 0 trusts the estimates.
    limit
        Most actions to compare in every round and trial.

    See Also
    --------
    COSV : By variances only, with one call of the oracle in a round.
    ESCB : Without covariances: for independent losses.

    Notes
    -----
    The article maximises rewards. Its abstract was read, and the estimates, bounds and index as
    Kim et al. restate them, with f of order :math:`\ln t + d \ln \ln t` and h of order
    :math:`\sqrt{\ln t + \ln d}`. The article's algorithm box, proofs and constants were not read:
    :math:`\alpha = \kappa = 1` are the constants here. Numbers of units other than 0 and 1 are an
    extension without a proof.

    References
    ----------
    Zhou, Gaillard, Rahier, Zenati, Arbel: Towards Efficient and Optimal Covariance-Adaptive
    Algorithms for Combinatorial Semi-Bandits, NeurIPS 2024. (OLS-UCB-C.)
    Kim, Vojnovic, Oh: Oracle-Efficient Combinatorial Semi-Bandits, NeurIPS 2025. (Section 4.1; what
    was read of the article: see ``Rarely``.)

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import OLSUCBC, Explicit, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), OLSUCBC(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    Two pairs of arms with the average 1/2 and the variance 1/4. The losses of the first pair cancel
    each other, those of the second are the same: its total may still be much less.

    >>> two = Explicit([[1, 1, 0, 0], [0, 0, 1, 1]])
    >>> both = np.kron(np.eye(2), np.full((2, 2), 1e4))[None]  # rounds with both arms
    >>> products = np.zeros((1, 4, 4))
    >>> products[0, :2, :2] = 5e3 * np.array([[1, 0], [0, 1]])
    >>> products[0, 2:, 2:] = 5e3
    >>> state = {"t": np.array([20_000]), "count": np.full((1, 4), 1e4),
    ...          "sum": np.full((1, 4), 5e3), "products": products,
    ...          "pairs": both, "squares": both}
    >>> OLSUCBC(alpha=0.1).indices(two, state).round(3)
    array([[0.985, 0.977]])
    >>> OLSUCBC(alpha=0.1).covariance(state)[0, :2, :2]
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """

    does = "Plays the plan whose total may still be the best, as the arms vary together."
    cost = PolicyCost(step=3.0, most_actions=10_000, capped=("limit",))
    needs_linear = True
    uses_known = True
    changing = False  # the sums belong to pairs of arms
    restarts = False

    posterior = Averages()

    alpha: float = 1.0
    kappa: float = 1.0
    limit: int = 10_000

    def __post_init__(self) -> None:
        check_doubt(self.alpha, self.kappa)
        integer_setting(self, "limit", "Leave it out for 10000.")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state before round 1; raise ``InvalidInput`` for too many actions."""
        used = (self.compared(actions) > 0).astype(float)
        unseen = np.tile((used.T @ used > 0).astype(float), (trials, 1, 1))
        pairs = {name: np.zeros(unseen.shape) for name in ("products", "pairs", "squares")}
        return super().start(actions, horizon, trials) | pairs | {"unseen": unseen}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Compare all actions, or play one with the most pairs of arms that were not seen."""
        everything, unseen = self.compared(actions), state["unseen"]
        early = unseen.reshape(len(unseen), -1).max(axis=1) > 0
        best = np.empty(len(unseen), dtype=np.int64)
        if early.any():
            used = (everything > 0).astype(np.int64)
            best[early] = quadratic_forms(used, unseen[early]).argmax(axis=1)
        if not early.all():
            late = {name: array[~early] for name, array in state.items()}
            best[~early] = (actions.sign * self.indices(actions, late)).argmin(axis=1)
        return Play(everything[best])

    def indices(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the index of every action, in the order of ``actions.enumerate()``."""
        everything = self.compared(actions)
        t = state["t"].astype(float)
        f = self.alpha * (np.log(t) + actions.d * np.log(np.log(np.maximum(t, math.e))))
        value = np.zeros((len(t), len(everything)))
        value += known_values(actions, everything)
        for mean, a in zip(averages(state).T, everything.T, strict=True):  # in the same order
            value += mean[:, None] * a
        weights = np.empty(state["pairs"].shape)
        h = doubt(self.kappa, t, actions.d)
        kernels.ellipsoids(h, *pair_sums(state), actions._n, weights)
        squared = np.maximum(quadratic_forms(everything, weights), 0.0)
        index: FloatArray = value - actions.sign * f[:, None] * np.sqrt(squared)
        return index

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count every unit and every pair of arms, also those of external plans."""
        super().absorb(actions, state, feedback, rng)
        sums = (state[name] for name in ("products", "pairs", "squares", "unseen"))
        kernels.add(feedback.seen, feedback.total, *sums)

    def covariance(self, state: Arrays) -> FloatArray:
        r"""Return :math:`\hat{\Sigma}`, (trials, d, d); 0 for arms that were not seen together."""
        mean, pairs = averages(state), state["pairs"]
        estimate = state["products"] / np.maximum(pairs, 1.0) - mean[:, :, None] * mean[:, None, :]
        return np.where(pairs > 0, estimate, 0.0)

    def compared(self, actions: ActionSet) -> IntArray:
        """Return all actions, or raise ``InvalidInput`` if there are too many."""
        instead = "COSV, CombUCB or GaussianCTS, which compute one best action only"
        return all_actions("OLSUCBC", actions, self.limit, instead)


def check_doubt(scale: float, kappa: float, name: str = "alpha") -> None:
    """Raise ``InvalidInput`` unless the first setting is positive, and kappa is not negative."""
    if not (is_number(scale) and 0 < scale < np.inf):
        raise InvalidInput(name, "a positive number", repr(scale), "Leave it out for 1.")
    if not (is_number(kappa) and 0 <= kappa < np.inf):
        raise InvalidInput("kappa", "a number of at least 0", repr(kappa), "Leave it out for 1.")


def doubt(kappa: float, t: FloatArray, d: int) -> FloatArray:
    """Return h of every trial, kappa sqrt(ln t + ln d)."""
    h: FloatArray = kappa * np.sqrt(np.log(t) + math.log(d))
    return h


def pair_sums(state: Arrays) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the sums from which covariances, or variances, are estimated."""
    N, S, products = state["count"], state["sum"], state["products"]
    return N, S, products, state["pairs"], state["squares"]


def quadratic_forms(actions: IntArray, weights: FloatArray) -> FloatArray:
    """Return a' W a of every action a, (trials, actions)."""
    value = np.empty((len(weights), len(actions)))
    kernels.quadratic_forms(actions.copy(), weights, value)  # compiled for arrays of its own
    return value
