"""FeatureModel: the mean losses of the arms by a model of their features."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from multiplay._support.checks import is_integer
from multiplay.actions import ActionSet
from multiplay.beliefs.features import PRIORS, SIZES, FeatureRegression, Reports
from multiplay.errors import InvalidInput
from multiplay.features.rows import FeatureRows
from multiplay.feedback import Feedback
from multiplay.posteriors.base import Posterior, as_means
from multiplay.posteriors.memories import Discount
from multiplay.random import Rng, standard_normal
from multiplay.types import Arrays, FloatArray

OWN = ("fade", "counts")  # the model forgets all coefficients together, by methods of its own


@dataclass(frozen=True, repr=False)
class FeatureModel(Posterior):
    """The exact posterior of a ``FeatureRegression``, at the features of the set of each round.

    It forgets by a discount, or looks for changes of all coefficients at once. Windows, and changes
    of single arms, would need the features of old rounds.

    Parameters
    ----------
    memory
        ``Keep()``, ``Discount(...)`` or ``Changes()``.
    effects
        Whether arms and rounds have effects of their own.
    priors
        3, or 1 and 2 for the priors of older studies, which continue with them.

    Examples
    --------
    >>> from multiplay import Composed, FeatureModel, Features, Flag, Learner, OptimisticQuantile
    >>> from multiplay import Transport
    >>> policy = Composed(FeatureModel(), OptimisticQuantile())
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), policy, features=Features(rain=Flag()))
    >>> sum(learner.ask(features={"rain": True}).plan.values())
    10
    """

    restarts = False
    shared = FeatureRegression.SHARED

    effects: bool = True
    priors: int = PRIORS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.effects, bool):
            raise InvalidInput("effects", "True or False", repr(self.effects), "Leave it out.")
        if not (is_integer(self.priors) and self.priors in SIZES):
            raise InvalidInput("priors", "1, 2 or 3", repr(self.priors), "Leave it out.")

    def lacks(self, method: str) -> str | None:
        """Return why a method cannot be called."""
        return None if method in OWN else super().lacks(method)

    @cached_property
    def model(self) -> FeatureRegression:
        """The model, with the settings of the posterior."""
        memory = self.memory
        discount = memory.discount if isinstance(memory, Discount) else None
        return FeatureRegression(self.effects, discount, memory.follows, self.priors)

    def start(self, actions: ActionSet, trials: int) -> Arrays:
        """Return the posterior before anything is seen."""
        offset = 0.0 if actions.offset is None else float(actions.offset.min())
        rows = rows_of(actions)
        state = self.model.start(actions.d, rows.p, trials, rows.factors, offset)
        return state | {"origin": np.full(trials, offset)}

    def empty(self, trials: int, d: int) -> Arrays:
        """Return the posterior of arms without features."""
        return self.model.start(d, 1, trials)

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Refuse reports without features: ``learn`` has them."""
        raise NotImplementedError("a report needs the features of its play")

    def learn(self, actions: ActionSet, state: Arrays, memo: Arrays, feedback: Feedback) -> None:
        """Add the report of each arm; ``memo`` has the arms that were played and their features."""
        offset = actions.offset
        if offset is not None:
            offset = offset - state["origin"][0]
        self.model.learn(state, Reports.of(memo["arms"], memo["phi"], feedback, offset))

    def draw(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return one draw of the mean loss of each arm, less the offset of the set."""
        return self._shifted(actions, state, self.model.draw(state, rows_of(actions), rng))

    def mean(self, actions: ActionSet, state: Arrays, rng: Rng | None = None) -> FloatArray:
        """Return the mean loss of each arm, less the offset of the set."""
        return self._shifted(actions, state, self.model.posterior(state, rows_of(actions))[0])

    def deviation(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the standard deviation of the mean loss of each arm."""
        return self.model.posterior(state, rows_of(actions))[1]

    def optimistic(
        self, c: float, actions: ActionSet, state: Arrays, rng: Rng | None = None
    ) -> FloatArray:
        """Return means less c deviations."""
        mean, deviation = self.model.posterior(state, rows_of(actions))
        return self._shifted(actions, state, mean - actions.sign * c * deviation)

    def quantile(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return an optimistic quantile, see ``OptimisticQuantile``, of normal distributions.

        They have the mean and the deviation of what is believed of each arm.
        """
        mean, deviation = self.model.posterior(state, rows_of(actions))
        xi, u = standard_normal((len(mean), 1), rng), rng.random(mean.shape)
        x = np.maximum((1 + u) / 2 * np.sqrt(np.log(state["t"] + 10)[:, None] / 2), xi)
        return self._shifted(actions, state, mean - actions.sign * x * deviation)

    def _shifted(self, actions: ActionSet, state: Arrays, means: FloatArray) -> FloatArray:
        if actions.offset is not None:
            means += state["origin"][:, None] - actions.offset
        return as_means(actions, means)


def rows_of(actions: ActionSet) -> FeatureRows:
    """Return the features of a set; an intercept if it has none."""
    return FeatureRows.none(actions.d) if actions.features is None else actions.features


def check_width(state: Arrays, rows: FeatureRows) -> None:
    """Raise ``InvalidInput`` if a set has more or fewer features than the state."""
    p = state["X"].shape[2]
    if rows.p != p:
        raise InvalidInput(
            "actions",
            f"a set with {p} features, as at the start",
            f"{rows.p}",
            "Declare the same columns for all rounds.",
        )
