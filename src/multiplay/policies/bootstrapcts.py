"""BootstrapCTS: combinatorial Thompson sampling that learns the noise of the losses."""

from dataclasses import dataclass, field

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.beliefs.restart import Restart, restart_hypotheses
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import bootstrap as kernels
from multiplay.kernels import change
from multiplay.kernels import moments as columns
from multiplay.kernels.hypotheses import COLUMNS, HYPOTHESES, MARKS, OCTAVES, new_hypotheses
from multiplay.policies.base import PolicyCost, arm_totals
from multiplay.policies.ordered import UnitOrder
from multiplay.policies.replan import drop_plans
from multiplay.policies.shared_seed import check_shared_seed, seeds
from multiplay.random import Rng, stream_words
from multiplay.types import Arrays, FloatArray

NO_UNITS = np.zeros((1, 0))
NO_SEEDS = np.zeros((1, 0))
NO_FIRST = np.zeros(1, dtype=np.int64)
NOT_KEPT = np.zeros((1, 1, 0, columns.KEPT))
NEVER_FORGETS = (1.0, np.inf)
NOTHING = (
    np.zeros((1, 1, 0, COLUMNS)),
    np.zeros((1, 1, MARKS)),
    np.zeros((1, 1, OCTAVES, 3)),
    np.zeros(1, dtype=np.int64),
)


@dataclass(frozen=True, repr=False)
class BootstrapCTS(UnitOrder):
    r"""Play the best action for means drawn by a Bayesian bootstrap of the losses seen.

    Of the :math:`N_i` losses of arm i, with the average :math:`\bar{k}_i`, each round draws

    .. math::

        (V_0, V_1, V_N) &\sim \operatorname{Dirichlet}(w, w, N_i), \\
        \theta_i &= V_0 \cdot 0 + V_1 \cdot 1 + V_N\, \kappa_i, \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle,

    where :math:`\kappa_i` has a beta distribution with mean :math:`\bar{k}_i` and the variance
    :math:`\text{deff}_i \sum_j (k_{ij} - \bar{k}_i)^2 / (N_i (N_i + 1))`: that of the mean of these
    losses under Dirichlet weights, times :math:`\text{deff}_i \ge 1`, the design effect of units
    that share a day. So w pseudo units lie at each end of the range, and the draws are as wide as
    the losses are noisy. For losses of 0 and 1, :math:`\theta_i \sim
    \operatorname{Beta}(1 + S_i, 1 + N_i - S_i)` for w = 1, the posterior of ``GenCTS``.

    An arm never seen draws from :math:`\operatorname{Beta}(w, n_i w)`, with :math:`n_i` the most
    units of it in an action: for w = 1 the best of one uniform draw for each unit, so that arms
    with many units are tried early. Rewards have :math:`1 - \theta_i` there, and arg max.

    It needs no horizon. It learns from units and from totals; units that were not seen count for
    nothing. Where the range of an arm is known, as in ``Learner(losses={...})``, the ends are those
    of its own range.

    Parameters
    ----------
    w
        Pseudo units at each end of the range, positive. Less explores less: 10 to 20 % less regret
        where losses have little noise, and a larger probability to miss rare cheap losses.
    change
        "follow": an arm whose losses changed forgets what it was told before, by itself. Each arm
        keeps up to 16 hypotheses "the same mean since round s", weighed by how well they foresaw
        each report, where a unit counts as :math:`1/\varphi` coins and :math:`\varphi`, the noise,
        is learned; a draw picks one of them by its weight. The oldest is dropped when its weight
        falls below 0.001. Arms that were not seen of late may have moved as those that were; a
        change that most arms share, by a factor or by a difference, moves idle arms as well.
        "ignore": all losses count alike. A ``Learner`` and a ``Study`` have "follow" unless a
        policy is given.
    curiosity
        With "follow": how far, as a share of the range, an idle arm is taken to have moved in 1,000
        rounds (a standard deviation), even if no arm was ever seen to move. 0 tries an idle arm
        again only after others were seen to change; 0.1 finds an idle arm that became cheap, at a
        price where nothing changes: see "Non-stationary losses" in docs/choosing.md.
    discount
        For losses that drift: in (0, 1), the weight of a report fades by this factor for every
        round told.
    window
        The same by W, a number of rounds: only the last W rounds told count.
    shared_seed
        The same random numbers for all arms of a round (docs/choosing.md#one-seed-for-all-arms):
        one for :math:`\kappa_i`, at whose quantile all arms draw it; one for the weights, at
        whose quantile they draw :math:`\theta_i` given :math:`\kappa_i`; with "follow", one for
        the hypotheses, ordered by their means. An arm draws as it does alone, and its draw
        increases in each number. Needs w = 1. False: each arm draws on its own.
    replan
        "rarely": the solver is called in few rounds, and the best of the plans that it found is
        played in the others, for sets whose plans take long to compute: see "Few calls of the
        solver" in docs/choosing.md. None: it is called in every round.
    units
        "ordered": the k-th unit of an arm has a mean of its own, which does not decrease in k (for
        rewards: increase). Its posterior is normal, from the losses of that unit, of its neighbours
        and of all arms, with learned noise: see docs/diminishing.md.

    References
    ----------
    Riou, Honda: Bandit Algorithms Based on Thompson Sampling for Bounded Reward Distributions,
    ALT 2020. (Dirichlet weights over the rewards seen and the upper end, for one play a round.)
    Baudry, Saux, Maillard: From Optimality to Robustness: Dirichlet Sampling Strategies in
    Stochastic Bandits, NeurIPS 2021.
    Adams, MacKay: Bayesian Online Changepoint Detection, 2007. (Hypotheses, for ``change``.)
    Jin, Zhao, Tan, Gu: Avoiding exp(k*) Scaling for Thompson Sampling in Combinatorial
    Semi-Bandits: From Multiple Seeds to a Single Seed, COLT 2026 (``shared_seed``; only the
    abstract was read).

    Examples
    --------
    >>> from multiplay import BootstrapCTS, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), BootstrapCTS(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    Where losses have little noise, it explores less than the paper's sampler:

    >>> import numpy as np
    >>> from multiplay import GenCTS, Stochastic, Uniform, simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> world = Stochastic(Uniform(np.subtract(means, 0.05), np.add(means, 0.05)))
    >>> policies = {"GenCTS": GenCTS(), "BootstrapCTS": BootstrapCTS()}
    >>> simulate(plans, world, policies, horizon=300, trials=5).ranked
    ['BootstrapCTS', 'GenCTS']

    It follows a change by itself:

    >>> from multiplay import Bernoulli, Corrupted
    >>> world = Corrupted(Bernoulli(means), Bernoulli(np.subtract(1, means)), at=100)
    >>> policies = {name: BootstrapCTS(change=name) for name in ("ignore", "follow")}
    >>> simulate(plans, world, policies, horizon=400, trials=5).ranked
    ['follow', 'ignore']
    """

    does = "Plays each plan as often as it is likely to be the best, by the results so far."
    cost = PolicyCost(step=2.0, rounds_kept="window")
    changing = True
    partial = True
    absorbs = True

    w: float = 1.0
    change: str = field(default="ignore", kw_only=True)
    curiosity: float = field(default=0.0, kw_only=True)
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    shared_seed: bool = field(default=False, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)
    units: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shared_seed(self.shared_seed)
        if not (is_number(self.w) and 0 < self.w < np.inf):
            raise InvalidInput("w", "a positive number", repr(self.w), "Leave it out for 1.")
        if self.shared_seed and self.w != 1.0:
            hint = "Leave out w or shared_seed: the quantiles of the draws are known for w = 1."
            raise InvalidInput("shared_seed", "False unless w = 1", f"w = {self.w:g}", hint)
        if not isinstance(self.change, str) or self.change not in ("follow", "ignore"):
            hint = "Use 'follow' for costs that may change, or leave it out."
            if is_number(self.change):
                hint = "A switching cost is Learner(change=15), or SwitchingCost(policy, 0.06)."
            raise InvalidInput("change", "'follow' or 'ignore'", repr(self.change), hint)
        if not (is_number(self.curiosity) and 0 <= self.curiosity <= 1):
            hint = "Leave it out for 0, or try 0.1."
            raise InvalidInput("curiosity", "a number from 0 to 1", repr(self.curiosity), hint)
        if self.curiosity and not self.follows:
            hint = "Use change='follow' with it."
            raise InvalidInput("curiosity", "0 unless changes are followed", self.curiosity, hint)
        if self.follows and self.memory != NEVER_FORGETS:
            raise InvalidInput(
                "change",
                "'ignore' with a discount or a window",
                "'follow'",
                "Leave out discount and window: changes are found without them.",
            )

    def not_ordered(self) -> dict[str, object]:
        """Return the settings that must be left out with ``units="ordered"``."""
        return {"change": self.change if self.change == "follow" else None}

    @property
    def pseudo_units(self) -> float:
        """Return w."""
        return float(self.w)

    @property
    def follows(self) -> bool:
        """Whether it follows changes by itself."""
        return self.change == "follow"

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return moments of 0, and room for the reports of a window, or for hypotheses."""
        if self.is_ordered:
            return self.start_ordered(actions, trials)
        shape = trials, actions.d
        state: Arrays = {"moments": np.zeros((*shape, columns.COLUMNS))}
        if self.window is not None:
            state["t"] = np.ones(trials, dtype=np.int64)
            state["kept"] = np.zeros((*shape, self.window, columns.KEPT))
        if self.follows:
            state["t"] = np.ones(trials, dtype=np.int64)
            state |= new_hypotheses(*shape)
        return state

    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray | None:
        r"""Return :math:`\theta`, one draw of the mean of each arm; None if units are ordered."""
        if self.is_ordered:
            return None
        moments, d = state["moments"], actions.d
        theta = np.empty(moments.shape[:2])
        shift = np.zeros(d) if actions.offset is None else actions.offset
        upper = np.ones(d) if actions.upper is None else actions.upper
        sign = 1.0 if actions.sense == "min" else -1.0
        hypotheses, marks, snaps, t = NOTHING
        if self.follows:
            hypotheses, marks = state["hypotheses"], state["marks"]
            snaps, t = state["snaps"], state["t"]
        words = stream_words(rng, len(moments))
        z = seeds(len(moments), rng, numbers=3) if self.shared_seed else NO_SEEDS
        settings = actions._n, float(self.w), float(self.curiosity), sign, z
        kernels.draw(words, moments, hypotheses, marks, snaps, t, shift, upper, *settings, theta)
        return theta

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add the report of each arm, also those of external plans."""
        if self.is_ordered:
            self.absorb_ordered(state, feedback, rng)
            return
        moments = state["moments"]
        total = arm_totals(feedback, moments[:, :, columns.N])
        units, first = feedback.units, feedback.first
        if units is None or first is None:
            units, first = NO_UNITS, NO_FIRST
        reports = np.empty((*moments.shape[:2], columns.KEPT))
        kernels.summarise(feedback.seen, total, units, first, reports)
        if self.follows:
            common = np.zeros((len(moments), 2))
            hypotheses, noises, marks, snaps = (state[name] for name in HYPOTHESES)
            arrays = hypotheses, noises, marks, snaps, state["t"]
            change.learn(moments, common, *arrays, reports)
            return
        kept, slot = state.get("kept", NOT_KEPT), np.zeros(len(moments), dtype=np.int64)
        if self.window is not None:
            slot = (state["t"] - 2) % self.window
        kernels.learn(moments, kept, slot, reports)
        if self.window is not None:
            kernels.rebuild(moments, kept, (state["t"] - 1) % self.window)

    def restart(self, state: Arrays, restart: Restart) -> None:
        """Let only the reports of a restart count of its arms."""
        drop_plans(state)
        moments = state["moments"]
        if self.follows:
            hypotheses, _, marks, snaps = (state[name] for name in HYPOTHESES)
            for one in zip(moments, hypotheses, marks, snaps, strict=True):
                restart_hypotheses(*one, restart, offset=1)  # t is that of the next round
            return
        moments[:, restart.places] = restart.sums
        if self.window is not None:
            state["kept"][:, restart.places] = restart.kept

    def forget(self, state: Arrays, rounds: int) -> None:
        """Let old reports fade, or drop those that leave the window."""
        if self.is_ordered:
            self.forget_ordered(state, rounds)
        elif self.discount is not None:
            kernels.fade_all(state["moments"], self.discount**rounds)
        elif self.window is not None:
            trials = np.arange(len(state["t"]))
            for k in range(min(rounds, self.window)):
                slot = (state["t"] - 1 + k) % self.window
                state["kept"][trials, :, slot] = 0.0
            kernels.rebuild(state["moments"], state["kept"], state["t"] % self.window)

    def believed(self, state: Arrays) -> FloatArray:
        r"""Return the mean of the draws, :math:`(w + N_i \bar{k}_i) / (2 w + N_i)`."""
        if self.is_ordered:
            return self.believed_ordered(state)
        n, mean = (state["moments"][:, :, column] for column in (columns.N, columns.MEAN))
        expected: FloatArray = (self.w + n * mean) / (2 * self.w + n)
        return expected


FOLLOWING = BootstrapCTS(change="follow")  # the policy of a Learner or a Study by default
