"""Contextual losses: means that depend on features of arms and rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from multiplay._support.checks import is_list, is_number, numbers
from multiplay.actions import ActionSet
from multiplay.environments.base import Environment, Observation, Slots, World
from multiplay.environments.contexts import ArrayContexts, Contexts, NormalContexts, TableContexts
from multiplay.environments.distributions import Law
from multiplay.environments.replay import Log
from multiplay.errors import InvalidInput
from multiplay.features.rows import FeatureRows
from multiplay.kernels.losses import COIN, STRAIGHT
from multiplay.random import INSTANCE, LOSSES, Streams, standard_normal
from multiplay.types import FloatArray, IntArray

EVERY_UNIT = 1 << 15  # up to this many units in all, each has a loss of its own in every round
KINDS = {"uniform": STRAIGHT, "bernoulli": COIN}
LINKS = ("identity", "logistic")


@dataclass(frozen=True, eq=False)
class Contextual(Environment):
    r"""Losses whose means depend on features :math:`\phi_{ti}` of arm i in round t.

    .. math::

        \ell_i(t) &= \bigl[g(\langle \theta_t, \phi_{ti} \rangle + b_i)\bigr]_0^1, \qquad
        b_i \sim \mathcal{N}(\text{effects}_i, \text{arm_sd}^2), \\
        \lambda_i(t) &= \ell_i(t) + [u_{ti} + v_t]_{-w}^{w}, \qquad
        w = \min\{\ell_i(t), 1 - \ell_i(t)\}, \\
        u_{ti} &\sim \mathcal{N}(0, \text{round_sd}^2), \qquad
        v_t \sim \mathcal{N}(0, \text{day_sd}^2)

    Here :math:`[x]_a^b` is x, but at least a and at most b, and g is the link. The units of arm i
    in round t lose :math:`\lambda_i(t)` on average, each independently, and :math:`\ell_i(t)` is
    the mean over the rounds with these features. Regret is measured against the best action of
    each round for :math:`\ell(t)`, unless ``against`` says otherwise.

    ``simulate`` shows the features of a round to policies that read them
    (``Policy.reads_features``). Other policies play without them.

    Parameters
    ----------
    theta
        The coefficients :math:`\theta`, of shape (p,), (rounds, p) or (trials, rounds, p). Rounds
        begin again after the last one.
    contexts
        The features: ``NormalContexts``; an array of shape (d, p), (rounds, d, p) or
        (trials, rounds, d, p) with ones in the first column; or a table (a data frame, a dict of
        columns or the path of a CSV file) with the columns "arm", "round" and the features, to
        which the first column is added. Without "round" the features stay. Rounds begin again
        after the last one. Afterwards the attribute of a table is a ``Log``, which identifies it.
    effects
        What the features do not say of an arm: a number, or an array (d,) or (trials, d).
    arm_sd
        The standard deviation of further effects of arms, drawn for each trial.
    round_sd
        The standard deviation of an effect that the units of an arm share in a round.
    day_sd
        The standard deviation of an effect that all arms share in a round.
    losses
        "uniform": :math:`\lambda \pm` ``width``, or less where losses would leave [0, 1].
        "bernoulli": losses of 0 and 1.
    width
        Half of the width of uniform losses.
    link
        g: "identity", "logistic" (:math:`1 / (1 + e^{-x})`), or the coefficients
        :math:`c_0, c_1, \ldots` of a polynomial :math:`\sum_k c_k x^k`.

    See Also
    --------
    NormalContexts : Random features.
    Replay : Logged outcomes, with columns of features.

    Examples
    --------
    A longer lane costs more:

    >>> from multiplay import Transport
    >>> plans = Transport([2], [1, 1], names=(["Lyon"], ["north", "south"]))
    >>> km = {"arm": ["Lyon->north", "Lyon->south"], "km": [-1.0, 2.0]}
    >>> world = Contextual([0.5, 0.1], km).open(plans, horizon=5, trials=[0], seed=0)
    >>> world.contexts(1).arm
    array([[[ 1., -1.],
            [ 1.,  2.]]])
    >>> world.observe(np.array([[1, 1]])).means
    array([[0.4, 0.7]])
    """

    contextual = True

    theta: Any
    contexts: Any
    effects: Any = 0.0
    arm_sd: float = 0.0
    round_sd: float = 0.0
    day_sd: float = 0.0
    losses: str = "uniform"
    width: float = 0.2
    link: Any = "identity"
    source: Contexts = field(init=False, repr=False)

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        effects = [0.0, 0.1, -0.1, 0.05, 0.0, 0.2]
        return cls([0.5, 0.1], NormalContexts(2), effects, round_sd=0.05)

    def __post_init__(self) -> None:
        own = self.__dict__
        theta = numbers("theta", self.theta)
        if theta.ndim not in (1, 2, 3) or 0 in theta.shape:
            raise InvalidInput(
                "theta",
                "shape (p,), (rounds, p) or (trials, rounds, p)",
                f"shape {theta.shape}",
                "Give one coefficient for each column of the features.",
            )
        own["theta"], own["effects"] = theta.copy(), numbers("effects", self.effects).copy()
        own["source"] = _source(self.contexts)
        if isinstance(own["source"], ArrayContexts):
            own["contexts"] = numbers("contexts", self.contexts).copy()
        elif isinstance(own["source"], TableContexts):
            own["contexts"] = Log(own["source"].rows, own["source"].digest())
        p = own["source"].p
        if theta.shape[-1] != p:
            raise InvalidInput(
                "theta",
                f"{p} coefficients, one for each column of the features (the first is 1)",
                f"{theta.shape[-1]}",
                "Give as many as the contexts have columns.",
            )
        for name in ("arm_sd", "round_sd", "day_sd", "width"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < np.inf:
                raise InvalidInput(
                    name, "a number of at least 0", repr(value), "Give 0, or leave it out."
                )
            own[name] = float(value)
        if not isinstance(self.losses, str) or self.losses not in KINDS:
            raise InvalidInput(
                "losses", "'uniform' or 'bernoulli'", repr(self.losses), "Leave it out."
            )
        own["link"] = _link(self.link)

    def shows_units(self, actions: ActionSet) -> bool:
        """Return whether feedback has the loss of every single unit, not only totals."""
        return bool(actions.n.sum() <= EVERY_UNIT)

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless shapes fit the arms and trials."""
        self.source.check(actions, trials)
        if self.theta.ndim == 3 and len(self.theta) not in (1, trials):
            raise InvalidInput(
                "theta",
                f"coefficients for {trials} trials",
                f"shape {self.theta.shape}",
                "Give shape (p,) for all trials, or (trials, 1, p).",
            )
        if self.effects.shape not in ((), (actions.d,), (trials, actions.d)):
            raise InvalidInput(
                "effects",
                f"a number, or shape ({actions.d},), or ({trials}, {actions.d})",
                f"shape {self.effects.shape}",
                "Give one number for all arms, or one for each.",
            )

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return ContextualWorld(self, actions, trials, seed)


class ContextualWorld(World):
    """Features of every round, and losses of every slot around the means that follow from them."""

    def __init__(
        self, contextual: Contextual, actions: ActionSet, trials: Sequence[int], seed: int
    ) -> None:
        self.shape = len(trials), actions.d
        self.setting, self.slots = contextual, Slots(actions.n, contextual.shows_units(actions))
        given = contextual.theta
        theta = given.reshape((1,) * (3 - given.ndim) + given.shape)
        self.theta = theta if len(theta) == 1 else theta[list(trials)]
        self.streams = Streams.spawn(seed, LOSSES, trials)
        self.instance = Streams.spawn(seed, INSTANCE, trials)
        effects = contextual.effects
        self.b = np.zeros(self.shape) + (effects[list(trials)] if effects.ndim == 2 else effects)
        if contextual.arm_sd:
            self.b += contextual.arm_sd * standard_normal(self.shape, self.instance)
        self._rows = contextual.source.open(actions, trials, seed)
        self.round, self.drawn = 0, 0
        self.rows: FeatureRows | None = None
        self.means, self.of = np.empty(0), (-1, -1)

    def contexts(self, t: int) -> FeatureRows:
        """Return the features of round t, which is the next round or the last one played."""
        while self.drawn < t:
            self.drawn += 1
            self.rows = self._rows(self.drawn)
        assert self.rows is not None
        return self.rows

    def observe(self, action: IntArray) -> Observation:
        """Draw the loss of every slot, and return those that are played."""
        self.round += 1
        means, setting = self._means(self.contexts(self.round)), self.setting
        level = means
        if setting.round_sd or setting.day_sd:
            level = means + self._effects_of_round(np.minimum(means, 1 - means))
        if setting.losses == "bernoulli":
            law = Law(COIN, np.array([1 - level, level, level], order="C"))
        else:
            half = np.minimum(setting.width, np.minimum(level, 1 - level))
            law = Law(STRAIGHT, np.array([level - half, 2 * half, level], order="C"))
        return self.slots.drawn(self.streams, self.round, law, action, means)

    def _means(self, rows: FeatureRows) -> FloatArray:
        """Return the means of the arms; the last ones, while neither features nor theta change.

        Columns are added one by one, so that no bit depends on the number of trials.
        """
        place = (self.round - 1) % self.theta.shape[1]
        if self.of != (id(rows), place):
            theta = self.theta[:, place]
            x = np.broadcast_to(self.b, self.shape)
            for j in range(rows.p):
                x = x + rows.arm[:, :, j] * (rows.day[:, j] * theta[:, j])[:, None]
            self.means, self.of = np.clip(_linked(self.setting.link, x), 0, 1), (id(rows), place)
            self.kept = rows  # so that no other rows get its id
        return self.means

    def _effects_of_round(self, most: FloatArray) -> FloatArray:
        """Return u + v, not beyond ``most`` on either side: their mean is 0."""
        effect = np.zeros(self.shape)
        if self.setting.round_sd:
            effect += self.setting.round_sd * standard_normal(self.shape, self.instance)
        if self.setting.day_sd:
            effect += self.setting.day_sd * standard_normal((self.shape[0], 1), self.instance)
        clipped: FloatArray = np.clip(effect, -most, most)
        return clipped


def _source(contexts: Any) -> Contexts:
    """Return contexts from the forms that users give."""
    if isinstance(contexts, Contexts):
        return contexts
    if is_list(contexts):
        return ArrayContexts(contexts)
    return TableContexts(contexts)


def _link(link: Any) -> Any:
    """Return a link: its name, or the coefficients of a polynomial as a tuple."""
    if isinstance(link, str) and link in LINKS:
        return link
    if not is_list(link) or np.ndim(link) != 1 or len(link) == 0:
        raise InvalidInput(
            "link",
            "'identity', 'logistic', or the coefficients of a polynomial",
            repr(link),
            "Leave it out.",
        )
    return tuple(numbers("link", link).tolist())


def _linked(link: Any, x: FloatArray) -> FloatArray:
    """Return g(x)."""
    if link == "identity":
        return x
    if link == "logistic":
        return 1 / (1 + np.exp(-np.clip(x, -500, 500)))
    value = np.zeros_like(x)
    for coefficient in reversed(link):
        value = value * x + coefficient
    return value
