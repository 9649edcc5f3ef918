"""What a world says of one round."""

from typing import NamedTuple

from multiplay.feedback import Feedback
from multiplay.types import FloatArray


class Observation(NamedTuple):
    """All that a world says of one round. Policies are given the feedback only.

    Attributes
    ----------
    feedback : Feedback
        The losses of the units that were played.
    means : array of shape (trials, d)
        The expected loss of one unit of each arm.
    averages : array of shape (trials, d)
        The average loss of all n_i units of each arm, played or not.
    """

    feedback: Feedback
    means: FloatArray
    averages: FloatArray
