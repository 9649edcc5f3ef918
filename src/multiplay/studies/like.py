"""Arms of other studies, from which a new study learns what arms usually cost."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.kernels.moments import COLUMNS, MEAN, SEEN, B, F, N, W
from multiplay.posteriors.like import STUDY
from multiplay.storage import Store
from multiplay.types import FloatArray

if TYPE_CHECKING:
    from multiplay.learner.policy_state import PolicyState

Like: TypeAlias = str | Sequence[str] | FloatArray
MOST_ARMS = 1_000  # of other studies: a plan pools all of them with its own


def arms_like(like: Like, actions: ActionSet, store: Store, study: Any) -> FloatArray:
    """Return the moments of the arms of the studies that a pattern names, in the user's unit.

    After them, each row has the number of its study. ``study`` is the class of studies, which
    imports this module.

    Of many arms, some from all studies are taken. Studies whose costs mean something else are
    left out: rewards instead of losses, declared features, ranges that differ by arm.
    """
    if isinstance(like, np.ndarray):  # read before, from another store
        return like
    patterns = [like] if isinstance(like, str) else list(like)
    chosen = [name for name in store.names() if any(fnmatchcase(name, one) for one in patterns)]
    found = [np.zeros((0, COLUMNS + 1))]
    for name in chosen:
        with study.open(name, store=store) as one, one._current() as engine:
            if engine.state.actions.sense == actions.sense:
                moments = moments_of(engine.state)
                found.append(np.column_stack([moments, np.full(len(moments), len(found))]))
    rows = np.concatenate(found)
    if not len(rows):
        got = "studies without such costs" if chosen else f"no study named {like!r}"
        noun = "losses" if actions.sense == "min" else "rewards"
        expected = f"studies with {noun} of single arms, and one range for all arms"
        raise InvalidInput("like", expected, got, "Write west/*, for example.")
    if len(rows) > MOST_ARMS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ARMS).astype(np.int64)]
    rows[:, STUDY] = np.unique(rows[:, STUDY], return_inverse=True)[1]
    return rows


NO_ARMS: FloatArray = np.zeros((0, COLUMNS))


def moments_of(state: PolicyState) -> FloatArray:
    """Return the moments of the arms of a study that were seen, in the user's unit."""
    ranges, sums = state.ranges, state.moments.sums
    if state.features is not None or not ranges.alike:
        return NO_ARMS
    rows, width = sums[sums[:, N] > SEEN].copy(), ranges.span
    rows[:, MEAN] = ranges.origin + width * rows[:, MEAN]
    rows[:, [B, W]] *= width**2
    rows[:, F] *= width**4
    return rows
