"""What a world says of one round."""

from typing import NamedTuple

from multiplay.feedback import Feedback
from multiplay.types import FloatArray


class Observation(NamedTuple):
    r"""All that a world says of one round. Policies are given the feedback only.

    .. math::

        \text{means}_i = \mathbb{E}[L_{ij}], \qquad
        \text{averages}_i = \frac{1}{n_i} \sum_{j=1}^{n_i} L_{ij}

    Attributes
    ----------
    feedback : Feedback
        The losses of the units that were played.
    means : array of shape (trials, d)
        The expected loss of one unit of each arm.
    averages : array of shape (trials, d)
        The average loss of all :math:`n_i` units of each arm, played or not.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Bernoulli, Budget, Stochastic
    >>> coins = Stochastic(Bernoulli([0.5, 0.25]))
    >>> world = coins.open(Budget(2, caps=[2, 2]), horizon=5, trials=[0], seed=6)
    >>> seen = world.observe(np.array([[2, 0]]))
    >>> seen.feedback.total  # arm 2 is not played
    array([[1., 0.]])
    >>> seen.means, seen.averages
    (array([[0.5 , 0.25]]), array([[0.5, 0.5]]))
    """

    feedback: Feedback
    means: FloatArray
    averages: FloatArray
