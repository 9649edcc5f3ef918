"""A linear loss fitted to the totals of the rounds, which linear bandits are based on."""

import math

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import regression as kernels
from multiplay.policies.base import Play, Policy
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray

MOST_ARMS = 400  # the search for spanning actions takes 4 s there
SPAN = 1e-6  # of the units of an arm, within which an action is in the linear span
ROUNDING = 1e-9  # of the largest entry of R: smaller pivots are rounding errors


class Regression(Policy):
    r"""Least squares for the total y of each round reported.

    .. math::

        V \leftarrow V + x x^\top, \qquad b \leftarrow b + x y, \qquad \theta = V^{-1} b.

    :math:`x = a_J` are the coordinates of an action in the linear span of the set
    (``actions.spanning``). They are as few as can be: s independent actions make V invertible, and
    nothing else is needed, no ridge and no prior. V is kept as its triangular root, see
    ``kernels.regression``.

    The start of every policy that believes in a linear loss; a subclass is a dataclass with the
    setting below, and writes ``choose``.
    """

    learns_from = "round"
    needs_linear = True
    uses_known = True
    absorbs = True

    sigma: float | None

    def __post_init__(self) -> None:
        if self.sigma is not None and not (is_number(self.sigma) and 0 < self.sigma < np.inf):
            raise InvalidInput(
                "sigma",
                "a positive number",
                repr(self.sigma),
                "Leave it out for the largest deviation of independent losses.",
            )

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return V = 0, b = 0: no action was seen, and t = 1 is the round to be played."""
        s = actions.spanning.s
        return {
            "t": np.ones(trials, dtype=np.int64),
            "seen": np.zeros(trials, dtype=np.int64),
            "R": np.zeros((trials, s, s)),
            "z": np.zeros((trials, s)),
        }

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Add one round to the sums."""
        state["t"] += 1
        _add(actions, state, play.action, feedback.round_total)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add an external plan; one outside of the linear span of the set says nothing of it."""
        action, basis = feedback.seen, actions.spanning
        off: FloatArray = np.abs(action[:, basis.J] @ basis.follows - action)
        spanned = np.logical_and.reduce(off <= SPAN * (1 + action), axis=1)
        _add(actions, state, action * spanned[:, None], feedback.round_total * spanned)

    def doubt(self, actions: ActionSet, state: Arrays, action: IntArray) -> float:
        r"""Return the deviation of the total of an action, :math:`\sigma \sqrt{x^\top V^{-1} x}`.

        In one trial.
        """
        x = action[actions.spanning.J].astype(float)
        return self.deviation(actions) * float(np.linalg.norm(np.linalg.solve(state["R"][0].T, x)))

    def deviation(self, actions: ActionSet) -> float:
        r"""Return :math:`\sigma`, or :math:`\sqrt{M} / 2`, the most of M independent losses."""
        return math.sqrt(actions.M) / 2 if self.sigma is None else self.sigma


def _add(actions: ActionSet, state: Arrays, action: IntArray, total: FloatArray) -> None:
    """Add a round to the sums. Any plans that span the set say as much as the spanning ones."""
    basis, seen, R = actions.spanning, state["seen"], state["R"]
    kernels.add_rounds(action, total, basis.J, basis.X, seen, R, state["z"])
    if min(seen.tolist()) < basis.s:  # faster than numpy for one trial
        pivots = np.abs(np.diagonal(R, axis1=1, axis2=2))
        seen[(pivots > ROUNDING * np.abs(R).max()).all(axis=1)] = basis.s


def estimate(actions: ActionSet, state: Arrays, noise: FloatArray) -> FloatArray:
    """Return R^-1 (z + noise) as losses of all arms: that of an action is <a, losses>.

    Without noise it is theta = V^-1 b. Arms outside J have 0, and what they cost stands with those
    in J. All are 0 as long as not all spanning actions were told.
    """
    losses = np.empty((len(noise), actions.d))
    sums = state["seen"], state["R"], state["z"]
    kernels.estimate(*sums, noise, actions.spanning.J, losses)
    return losses


def unknown_first(actions: ActionSet, state: Arrays, action: IntArray) -> IntArray:
    """Replace the action by the first spanning action that was not reported yet, if any."""
    basis, seen = actions.spanning, state["seen"]
    early = seen < basis.s
    if not early.any():
        return action
    action = action.copy()
    action[early] = basis.E[seen[early]]
    return action
