"""Policies made of parts: a posterior with a memory, a rule, and a planner."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from multiplay._support.checks import check_instance
from multiplay._support.serialization import settings
from multiplay.actions import ActionSet
from multiplay.actions.costs import Requirement
from multiplay.beliefs.features import played_rows
from multiplay.beliefs.restart import Restart
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback, arm_totals
from multiplay.kernels.averages import pass_round
from multiplay.policies.base import LearnsFrom, Play, Policy, PolicyCost
from multiplay.policies.planners import EveryRound, Plan, Rarely, check_replan
from multiplay.policies.rules import (
    Bound,
    Draw,
    Index,
    Mean,
    Optimism,
    OptimisticQuantile,
    Rule,
    check_shared_seed,
)
from multiplay.posteriors.averages import Normal
from multiplay.posteriors.base import Posterior
from multiplay.posteriors.by_unit import ORDERED
from multiplay.posteriors.features import FeatureModel, check_width, rows_of
from multiplay.posteriors.memories import (
    ROUND,
    Changes,
    Discount,
    Keep,
    Memory,
    Persists,
    Window,
)
from multiplay.posteriors.moments import LossMoments
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray

FITTING: dict[str, tuple[Memory | Rule, ...]] = {  # parts to use instead of one that does not fit
    "memory": (Keep(), Discount(0.99), Window(100), Changes(), Persists()),
    "rule": (Draw(), Draw(shared=True), Bound(), Optimism(1.0), OptimisticQuantile(), Mean()),
}
ROUNDS_TIMES_ARMS = 1_000_000  # of a window: all of them are kept, and saved


PARTS_OF_POLICIES = (Memory, Posterior, Rule)  # classes of settings


class Parts(NamedTuple):
    """The parts of a policy with an index."""

    posterior: Posterior
    rule: Rule
    planner: EveryRound | Rarely = EveryRound()


class ArmPolicy(Policy):
    """A policy that keeps a posterior of each arm; a subclass defines it, and ``choose``."""

    changing = True
    partial = True
    absorbs = True
    needs_range = False
    uses_known = True

    def __repr__(self) -> str:
        said = {k: v for k, v in settings(self).items() if v is not None and v is not False}
        given = [f"{name}={value!r}" for name, value in said.items()]
        return f"{type(self).__name__}({', '.join(given)})"

    @cached_property
    @abstractmethod
    def posterior(self) -> Posterior:
        """What is believed of each arm, and which reports count."""

    @property
    def summary(self) -> str:
        """What the policy does, in one or two sentences."""
        memory = self.posterior.memory
        ordered = "Each further unit may be worth less." if self.posterior.by_unit else ""
        return " ".join(filter(None, [super().summary, memory.says, ordered]))

    @cached_property
    def learns_from(self) -> LearnsFrom:  # type: ignore[override]
        """Single units, if each has a mean of its own; else totals."""
        return "units" if self.posterior.by_unit else "totals"

    @cached_property
    def needs_linear(self) -> bool:  # type: ignore[override]
        """Whether the value of an action must be a sum over its units."""
        return self.posterior.by_unit

    @cached_property
    def shared(self) -> tuple[str, ...]:  # type: ignore[override]
        """The arrays of the state that belong to all arms together."""
        return self.posterior.shared

    @cached_property
    def restarts(self) -> bool:  # type: ignore[override]
        """Whether single arms can forget."""
        return self.posterior.restarts

    @cached_property
    def pools(self) -> bool:  # type: ignore[override]
        """Whether arms that are absent from a round teach of those in it."""
        return self.posterior.pools

    def requirements(self, actions: ActionSet) -> Iterator[Requirement]:
        """Yield the rounds of a window, and units with means of their own, which count as arms."""
        memory = self.posterior.memory
        if isinstance(memory, Window):
            short = getattr(self, "window", None) is not None
            argument, unit = "policy.window" if short else "policy.memory", "rounds times arms"
            yield Requirement(argument, memory.window * actions.d, ROUNDS_TIMES_ARMS, unit)
        if self.posterior.by_unit:
            most = actions.cost.arms.most if actions.cost else None
            for limit in (most, None):
                unit = "units for unit_means='ordered'"
                yield Requirement("policy", actions.copies, limit, unit)
        yield from super().requirements(actions)

    def effort(self, actions: ActionSet) -> float:
        """Return the time of a round: with means of units, that of each unit."""
        if not self.posterior.by_unit:
            return super().effort(actions)
        return 2.0 * actions.copies * (self.cost or PolicyCost()).step

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state of the posterior before the first round."""
        return self.posterior.start(actions, trials)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Forget as the memory does, and learn the losses of the round."""
        state |= play.cache
        forget = self._forget
        if forget is not None:
            forget(state, 1)
        if "t" in state:
            pass_round(state["t"])
        memory = self.posterior.memory
        if isinstance(memory, Persists) and ROUND in play.memo:
            memory.learn(self.posterior, state, feedback, rng, play.memo[ROUND])
        else:
            self.absorb(actions, state, feedback, rng)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn the losses of every unit, also those of external plans."""
        self._learn(state, feedback, rng)

    @cached_property
    def _forget(self) -> Any:
        """What lets rounds pass; None where nothing is forgotten."""
        memory = self.posterior.memory
        return partial(memory.forget, self.posterior) if memory.forgets else None

    @cached_property
    def _learn(self) -> Any:
        """What learns a report: the posterior itself, where all reports count alike."""
        posterior = self.posterior
        if type(posterior.memory).learn is Memory.learn:
            return posterior.add
        return partial(posterior.memory.learn, posterior)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Forget arms that could not be played at the same rate as all other arms."""
        self.posterior.memory.forget(self.posterior, state, rounds)

    def taught(self, state: Arrays, offset: FloatArray) -> Arrays:
        """Return what absent arms teach the posterior."""
        return self.posterior.taught(state, offset)

    def restart(self, state: Arrays, restart: Restart) -> None:
        """Let only the reports of a restart count of its arms; planning begins again."""
        for name in Rarely.entries:
            state.pop(name, None)
        self.posterior.memory.restart(self.posterior, state, restart)

    def believed(self, state: Arrays) -> FloatArray | None:
        """Return the mean loss that a unit of each arm is believed to have, (trials, d)."""
        return self.posterior.believed(state)

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the interval of the posterior; None if it has none."""
        return self.posterior.interval(state, level)


class IndexPolicy(ArmPolicy):
    r"""A policy that plays the best action for :math:`\theta`, one number for each arm.

    A subclass is a dataclass of settings, and defines ``parts``. Each part is bound once, so that a
    round calls no more than what it needs; parts that do not fit are refused when the policy is
    made.
    """

    def __post_init__(self) -> None:
        check_parts(self, self._parts)

    @abstractmethod
    def parts(self) -> Parts:
        """Return the posterior with its memory, the rule and the planner."""

    @cached_property
    def _parts(self) -> Parts:
        return self.parts()

    @cached_property
    def posterior(self) -> Posterior:
        """What is believed of each arm, and which reports count."""
        return self._parts.posterior

    @cached_property
    def _theta(self) -> Index:
        return self._parts.rule.of(self.posterior)

    @cached_property
    def _index(self) -> Any:
        """The rule itself, unless a subclass has an index of its own."""
        return self._theta if type(self).index is IndexPolicy.index else self.index

    @cached_property
    def _plan(self) -> Plan:
        return self._parts.planner.of(self.posterior)

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state of the posterior before the first round."""
        state = super().start(actions, horizon, trials)
        if self._parts.rule.counts_rounds and "t" not in state:
            state["t"] = np.ones(trials, dtype=np.int64)
        return state

    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        r"""Return :math:`\theta`, for which ``choose`` plays the best action, (trials, d).

        Of shape (trials, d, K) if each unit has a number of its own.
        """
        return self._theta(actions, state, rng)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for the index; late reports need its round where losses persist."""
        play = self._plan(actions, state, self._index(actions, state, rng))
        if isinstance(self.posterior.memory, Persists):
            return Play(play.action, play.memo | {ROUND: state["t"] + 1}, play.cache)
        return play

    def warm(self, actions: ActionSet) -> tuple[str, ...]:
        """Return what the planner keeps of the set."""
        return self._parts.planner.entries


class FeaturePolicy(IndexPolicy):
    """An index policy that reads features where its posterior is a ``FeatureModel``."""

    @cached_property
    def _model(self) -> FeatureModel | None:
        posterior = self.posterior
        return posterior if isinstance(posterior, FeatureModel) else None

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether the posterior is a model of features."""
        return self._model is not None

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for the index; the memo has the features of what is played."""
        if self._model is None:
            return super().choose(actions, state, rng)
        check_width(state, rows_of(actions))
        play = super().choose(actions, state, rng)
        return Play(play.action, self.memo(actions, play.action), play.cache)

    def memo(self, actions: ActionSet, action: IntArray) -> Arrays:
        """Return the arms that are played, and their features."""
        if self._model is None:
            return {}
        arms, phi = played_rows(action, rows_of(actions))
        return {"arms": arms, "phi": phi}

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Let a round pass, and learn the losses, with the features of the play."""
        if self._model is None:
            super().update(actions, state, play, feedback, rng)
            return
        arm_totals(feedback, state["N"])
        state |= play.cache
        self._model.model.pass_round(state)
        if "t" in state:
            pass_round(state["t"])
        self._model.learn(actions, state, play.memo, feedback)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn the losses of every unit of external plans, with the features of the set."""
        if self._model is None:
            super().absorb(actions, state, feedback, rng)
            return
        arm_totals(feedback, state["N"])
        check_width(state, rows_of(actions))
        self._model.learn(actions, state, self.memo(actions, feedback.seen), feedback)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Let old reports of arms that could not be played fade as those of all other arms."""
        if self._model is None:
            super().absent(state, rounds, offset)
        else:
            self._model.model.absent(state, rounds)


@dataclass(frozen=True, repr=False)
class Composed(FeaturePolicy):
    r"""A policy of a posterior and a rule, for combinations without a name.

    .. math::

        a = \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, \theta \rangle, \qquad
            \theta = \text{rule}(\text{posterior}),

    arg max for rewards, or what ``actions.best`` makes of :math:`\theta`. Where the mean of an arm
    is not known before it was seen, such arms come first. Units that were not seen count for
    nothing.

    Parameters
    ----------
    posterior
        What is believed of each arm, with its memory: ``Coins``, ``Averages``, ``Normal``,
        ``Moments``, ``Pooled``, ``FeatureModel``, or a subclass of your own.
    rule
        How it becomes one number for each arm: ``Draw``, ``Bound``, ``Optimism``,
        ``OptimisticQuantile`` or ``Mean``.
    replan
        "rarely": the solver is called in few rounds, see "Few calls of the solver" in
        docs/choosing.md. None: it is called in every round.

    Examples
    --------
    Upper confidence bounds that follow changes:

    >>> from multiplay import Averages, Bound, Changes, Composed, Learner, Transport
    >>> policy = Composed(Averages(Changes()), Bound(0.3))
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), policy, seed=0)
    >>> sum(learner.ask().plan.values())
    10

    A rule that calls what a posterior does not have is refused:

    >>> from multiplay import Draw, InvalidInput
    >>> try:
    ...     Composed(Averages(), Draw())
    ... except InvalidInput as error:
    ...     print(error.hint)
    Use one of Bound(alpha=1.5), Mean().
    """

    does = "Plays the plan that is best by a rule, for what is believed of each arm."
    cost = PolicyCost(step=2.0)

    posterior: Posterior = field()  # without the default that the base class would be
    rule: Rule
    replan: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_instance("posterior", self.posterior, Posterior, "Coins()")
        check_instance("rule", self.rule, Rule, "Draw()")
        super().__post_init__()

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(Normal(), Draw())

    def parts(self) -> Parts:
        """Return the parts."""
        return Parts(self.posterior, self.rule, planner_of(self.replan, self.posterior.memory))


# ---------------------------------------------------------------- short forms of parts


def memory_of(
    memory: Memory | None, discount: float | None = None, window: int | None = None
) -> Memory:
    """Return the memory of a policy; ``discount`` and ``window`` are short forms."""
    if discount is not None:
        Discount(discount)  # its own check comes first
    if window is not None:
        Window(window)
    both = {"discount": discount, "window": window, "memory": memory}
    given = [name for name, value in both.items() if value is not None]
    if len(given) > 1:
        raise InvalidInput(
            given[-1],
            "one memory: a discount, a window, or another",
            " and ".join(f"{name}={both[name]!r}" for name in given),
            "Leave out all but one of them.",
        )
    if discount is not None:
        return Discount(discount)
    if window is not None:
        return Window(window)
    if memory is not None:
        check_instance("memory", memory, Memory, "Changes()")
    return Keep() if memory is None else memory


def draw_of(shared_seed: bool) -> Draw:
    """Return the draw of a policy, with a seed for each arm or one for all."""
    check_shared_seed(shared_seed, "shared_seed")
    return Draw(shared_seed)


def planner_of(replan: str | None, memory: Memory) -> EveryRound | Rarely:
    """Return the planner of a policy."""
    check_replan(replan)
    return EveryRound() if replan is None else Rarely(memory.remembered)


def follows_changes(policy: Policy) -> bool:
    """Return whether a policy forgets by itself what it was told before a change."""
    posterior = policy.posterior if isinstance(policy, ArmPolicy) else None
    return posterior is not None and posterior.memory.follows and not posterior.by_unit


def expects_changes(policy: Policy) -> bool:
    """Return whether beliefs beside a policy look for changes.

    Only moments say that nothing changes, or as they forget. Where units have means of their
    own, the average unit of an arm changes with the plans, and no change is followed.
    """
    if follows_changes(policy) or not isinstance(policy, ArmPolicy):
        return True
    return not (isinstance(policy.posterior, LossMoments) or policy.posterior.by_unit)


def orders_units(policy: Policy) -> bool:
    """Return whether each unit of an arm has a mean of its own."""
    return isinstance(policy, ArmPolicy) and policy.posterior.by_unit


def is_ordered(unit_means: str | None) -> bool:
    """Return whether each unit has a mean of its own; raise ``InvalidInput`` for other settings."""
    if unit_means is not None and not (isinstance(unit_means, str) and unit_means == ORDERED):
        hint = "Use 'ordered' if the k-th unit of an arm has a mean of its own."
        raise InvalidInput("unit_means", "'ordered', or nothing", repr(unit_means), hint)
    return unit_means is not None


def check_parts(policy: Policy, parts: Parts) -> None:
    """Raise ``InvalidInput`` if a memory or a rule calls what the posterior lacks.

    This is the only place. The argument is the setting of the policy that the part comes from.
    """
    posterior = parts.posterior
    pairs: tuple[tuple[str, Memory | Rule, tuple[str, ...]], ...] = (
        ("memory", posterior.memory, ("discount", "window", "memory", "posterior")),
        ("rule", parts.rule, ("shared_seed", "rule")),
    )
    for kind, part, names in pairs:
        for method in part.calls:
            why = posterior.lacks(method)
            if why is not None:
                given = (name for name in names if getattr(policy, name, None))
                raise InvalidInput(
                    next(given, kind),
                    f"a {kind} that fits the posterior",
                    f"{part!r}, but {posterior!r} {why}",
                    _instead(kind, posterior),
                )


def _instead(kind: str, posterior: Posterior) -> str:
    """Return which parts of a kind fit a posterior, as a sentence."""
    fits = [str(part) for part in FITTING[kind] if not any(map(posterior.lacks, part.calls))]
    return f"Use one of {', '.join(fits)}." if fits else "Use another posterior."
