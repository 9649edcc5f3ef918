"""Scheduling: the number of trials in a block, so that few processes wait for the last one."""

import heapq
from collections.abc import Sequence

from multiplay.actions import ActionSet
from multiplay.policies import Policy

LARGEST_BLOCK = 250  # trials; more do not make a round cheaper, and blocks bound the memory
ROUND = 200  # cost of a round besides its arms, in arms


def effort(actions: ActionSet, policy: Policy, trials: int) -> float:
    """Return the estimated cost of a round of this many trials, in arms."""
    return ROUND + trials * policy.effort(actions)


def sizes_of_blocks(
    actions: ActionSet, policies: Sequence[Policy], trials: int, jobs: int
) -> list[int]:
    """Return the largest number of trials in a block, for each policy.

    A block of half the trials takes more than half the time. So there are about as many blocks as
    jobs, or a few times as many if that is balanced better; expensive policies get more blocks.
    """
    whole = [effort(actions, policy, trials) for policy in policies]
    fewest = -(-trials // LARGEST_BLOCK)

    def cut(blocks: int) -> list[int]:
        pieces = (max(fewest, round(blocks * one / sum(whole))) for one in whole)
        return [-(-trials // some) for some in pieces]

    def duration(sizes: list[int]) -> float:
        efforts = [
            effort(actions, policy, size)
            for policy, size in zip(policies, sizes, strict=True)
            for _ in range(-(-trials // size))
        ]
        busy = [0.0] * min(jobs, len(efforts))
        for one in sorted(efforts, reverse=True):
            heapq.heappushpop(busy, busy[0] + one)
        return max(busy)

    return min((cut(times * jobs) for times in (1, 2, 4)), key=duration)
