"""Policies must play actions of the set."""

import numpy as np

from multiplay.actions import ActionSet
from multiplay.kernels.units import inside_box
from multiplay.policies import Policy
from multiplay.policies.feasible import no_action
from multiplay.types import IntArray

JUDGED_AT_ONCE = 1 << 14  # numbers in the actions that wait to be compared with the set


class Referee:
    """Makes sure that a policy plays actions of the set, at a cost that does not show.

    Every action must lie between 0 and n. Those of round 1 and of all recorded rounds must also be
    in the set of their round; many rounds of one set are judged at once, since asking for one takes
    as long as playing it.
    """

    def __init__(self, policy: Policy, today: ActionSet, trials: int, rounds: IntArray) -> None:
        self.policy, self.today, self.shape = policy, today, (trials, today.d)
        self.recorded = {1, *rounds.tolist()}
        self.seen: dict[int, IntArray] = {}

    def watch(self, t: int, today: ActionSet, action: IntArray) -> None:
        """See what is played in round t, on the set ``today``, before anybody else does."""
        if today is not self.today:
            self.judge()
            self.today = today
        if action.shape != self.shape or not inside_box(action, today._n):
            raise self._foul(t)
        if t in self.recorded:
            self.seen[t] = action
            if t == 1 or len(self.seen) * action.size > JUDGED_AT_ONCE:
                self.judge()

    def judge(self) -> None:
        """Compare what was seen with the set."""
        if self.seen:
            rows = np.concatenate(list(self.seen.values()))
            inside = self.today.contains(rows).reshape(-1, self.shape[0]).all(axis=1)
            if not inside.all():
                raise self._foul(list(self.seen)[int(inside.argmin())])
        self.seen = {}

    def _foul(self, t: int) -> ArithmeticError:
        return no_action(self.policy, self.today, self.shape[0], f"round {t}")
