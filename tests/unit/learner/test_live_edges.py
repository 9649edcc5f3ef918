"""Edges of live use that are easy to get wrong: gaps in parts, and names in errors."""

from refusal import refused

import multiplay as mp

PLANS = mp.Transport([2, 2], [2, 2], names=(["A", "B"], ["x", "y"]))


def test_a_gap_in_one_lane_does_not_excuse_the_others() -> None:
    learner = mp.Learner(PLANS, mp.GenCTS(), seed=1)
    play = learner.ask()
    first, second = (lane for lane, trucks in play.plan.items() if trucks == 2)
    learner.tell(play.id, {first: [None, 0.5]}, final=False)
    with refused(f"losses of {second!r}: expected 2 more losses"):
        learner.tell(play.id, {})
    told = learner.tell(play.id, {second: [0.25, 0.75]})
    assert (told.seen, told.missing) == (3, 1)


def test_limits_that_leave_nothing_are_named_as_they_were_given() -> None:
    learner = mp.Learner(PLANS, mp.GenCTS())
    with refused("exclude: expected limits that leave at least one action"):
        learner.ask(exclude=["A->x", "B->x"])
    with refused("at_most: expected limits that leave at least one action"):
        learner.ask(at_most={"A->x": 0, "B->x": 1})
    with refused("exclude, fixed: expected limits that leave at least one action"):
        learner.ask(exclude=["A->x"], fixed={"B->x": 1})
    assert learner.asked == 0
