"""A horizon that is over: one warning, in plain words, and never a second one."""

import warnings

import pytest

from multiplay import LBINF, Duplicated, GenCTS, GenLBINFV, LinTS, Policy, ScaledScribble
from multiplay.learner.engine import warn_if_over


def warned(policy: Policy, rounds: range) -> list[tuple[int, str]]:
    """Tell these rounds; return when there was a warning, and which."""
    found = []
    for told in rounds:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_if_over(policy, told)
        found += [(told, str(one.message)) for one in caught]
        assert all(one.category is UserWarning for one in caught)
    return found


@pytest.mark.parametrize(
    ("policy", "instead"),
    [
        (GenLBINFV(horizon=365), "GenLBINFV()"),
        (LBINF(horizon=365), "GenLBINFV()"),
        (Duplicated(GenLBINFV(horizon=365)), "GenLBINFV()"),
        (Duplicated(Duplicated(LBINF(horizon=365))), "GenLBINFV()"),
        (ScaledScribble(horizon=365), "LinTS()"),
    ],
    ids=repr,
)
def test_the_first_round_after_the_horizon_warns(policy: Policy, instead: str) -> None:
    ((told, message),) = warned(policy, range(1000))
    assert told == 366
    assert "(horizon=365) is over: round 366 was told" in message
    assert f"use {instead}, which needs no horizon" in message
    assert warned(policy, range(367, 2000)) == [], "a learner that goes on later says nothing"


@pytest.mark.parametrize(
    "policy", [GenLBINFV(), GenLBINFV(anytime=True), GenCTS(), Duplicated(GenCTS()), LinTS()]
)
def test_without_a_horizon_nothing_is_over(policy: Policy) -> None:
    assert warned(policy, range(1000)) == []
