r"""Missing reports: the chance that a unit is reported, and the weights of the reports that come.

Policies that divide losses by the mean number of units :math:`x_i` estimate the loss of a unit by

.. math::

    e_i = q_i + \frac{1}{p_i x_i} \sum_{j \text{ seen}} (L_{ij} - q_i)
        = q_i + \frac{a_i}{x_i} \, g_i (k_i - q_i), \qquad
    g_i = \frac{\text{seen}_i}{p_i a_i},

with :math:`k_i` the average of the units seen, and :math:`p_i` the chance that a unit of arm i is
reported. :math:`e_i` is unbiased for every dependence between the reports of a round, if they do
not depend on the losses. The chance is learned from the reports before this one,

.. math::

    p_i = \frac{20 \cdot \text{pool} + \text{seen so far}_i}{20 + \text{played so far}_i}
        \in [0.05, 1], \qquad
    \text{pool} = \frac{1 + \text{seen so far}}{1 + \text{played so far}}
        \text{ of all arms of the set}.

While all units are seen, :math:`p_i = g_i = 1` exactly. External plans are not counted: their
reports may come in a different way.
"""

import numpy as np

from multiplay.feedback import Feedback
from multiplay.kernels import ftrl as kernels
from multiplay.types import Arrays, FloatArray

COUNTS = ("played", "seen")  # entries of the state


def report_counts(trials: int, d: int) -> Arrays:
    """Return the entries of a state before any report: units played and seen of each arm."""
    return {name: np.zeros((trials, d)) for name in COUNTS}


def counts_reports(state: Arrays) -> bool:
    """Return whether a state counts reports: one that version 0.9 began does not."""
    return COUNTS[0] in state


def stop_counting(state: Arrays) -> None:
    """Make a state one that version 0.9 began: all reports have weight 1."""
    for name in COUNTS:
        state.pop(name, None)


def report_weights(state: Arrays, feedback: Feedback) -> FloatArray:
    """Return g of a report, shape (trials, d), and count the report.

    If reports are not counted: 1 where a unit was seen, or none was played.
    """
    if not counts_reports(state):
        return np.where(feedback.seen >= np.minimum(feedback.count, 1), 1.0, 0.0)
    g = np.empty(feedback.count.shape)
    played, seen = (state[name] for name in COUNTS)
    kernels.weigh_reports(feedback.count, feedback.seen, played, seen, g)
    return g
