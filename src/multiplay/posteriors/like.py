"""Arms of other studies, moved to the level of the arms here."""

import numpy as np

from multiplay.kernels.moments import COLUMNS, MEAN, SEEN, N
from multiplay.types import FloatArray

STUDY = COLUMNS  # the column of the number of the study, after the moments
ALIKE = 1e-12  # a smaller variance between levels is none


def recentred(like: FloatArray, own: FloatArray) -> FloatArray:
    r"""Return the moments of arms of other studies, with their means around the level here.

    Arms teach how far arms of one study are apart. The levels of studies may differ: with the
    variance :math:`s_w^2` of means within a study, :math:`s_b^2` of levels, their mean G, and the
    averages :math:`\bar k_i` of the n arms seen here, each other study is moved to

    .. math::

        L = \frac{\sum_i \bar k_i + \kappa G}{n + \kappa}, \qquad \kappa = s_w^2 / s_b^2.

    So levels that are alike are believed, and those that differ are not, once arms are seen.
    """
    rows, study = like[:, :COLUMNS].copy(), like[:, STUDY].astype(np.int64)
    arms = np.bincount(study)
    levels = np.bincount(study, rows[:, MEAN]) / arms
    rows[:, MEAN] -= levels[study]
    within = float((rows[:, MEAN] ** 2).sum()) / max(len(rows) - len(levels), 1)
    between = np.inf
    if len(levels) > 1:
        between = max(levels.var(ddof=1) - within * (1.0 / arms).mean(), ALIKE)
    seen, kappa, G = own[own[:, N] > SEEN, MEAN], within / between, levels.mean()
    if len(seen) + kappa > 0.0:
        G = (seen.sum() + kappa * G) / (len(seen) + kappa)
    rows[:, MEAN] += G
    return rows
