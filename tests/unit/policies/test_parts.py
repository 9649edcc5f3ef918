"""Parts of policies: what they make together, which pairs are refused, and what they cost."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import multiplay as mp
from multiplay.posteriors.base import Additive
from multiplay.posteriors.by_unit import OrderedUnits
from multiplay.random import POLICY, Streams
from multiplay.testing import check_policy

PLANS = mp.Transport([1, 4, 5], [4, 6])
MEANS = np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])
TURNED = mp.Corrupted(mp.Bernoulli(MEANS), mp.Bernoulli(1 - MEANS), at=200)
MEMORIES = (mp.Keep(), mp.Discount(0.9), mp.Window(4), mp.Changes())
POSTERIORS = (mp.Coins, mp.Averages, mp.Normal, mp.Moments)
RULES = (mp.Draw(), mp.Draw(shared=True), mp.Bound(0.3), mp.Optimism(1.0), mp.Mean())
REFUSED = {
    *((mp.Averages, rule) for rule in (mp.Draw(), mp.Draw(shared=True), mp.Optimism(1.0))),
    (mp.Moments, mp.Bound(0.3)),
}


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("kind", POSTERIORS)
def test_all_memories_work_with_the_rules_that_fit(kind: Any, rule: Any) -> None:
    for memory in MEMORIES:
        if (kind, rule) in REFUSED:
            with pytest.raises(mp.InvalidInput) as refused:
                mp.Composed(kind(memory), rule)
            assert refused.value.argument == "rule"
        else:
            for actions in (PLANS, mp.Coverage.example()):
                check_policy(mp.Composed(kind(memory), rule), actions)


@pytest.mark.parametrize(
    ("named", "composed"),
    [
        (mp.GenCTS(window=5), mp.Composed(mp.Coins(mp.Window(5)), mp.Draw())),
        (mp.GaussianCTS(0.5), mp.Composed(mp.Normal(beta=0.5), mp.Draw())),
        (mp.CombUCB(0.3), mp.Composed(mp.Averages(), mp.Bound(0.3))),
        (mp.FollowTheLeader(), mp.Composed(mp.Averages(), mp.Mean())),
        (
            mp.BootstrapCTS(memory=mp.Changes(), shared_seed=True, replan="rarely"),
            mp.Composed(mp.Moments(mp.Changes()), mp.Draw(shared=True), replan="rarely"),
        ),
    ],
    ids=repr,
)
def test_a_policy_with_a_name_is_its_parts(named: mp.Policy, composed: mp.Policy) -> None:
    result = mp.simulate(PLANS, TURNED, {"one": named, "two": composed}, 300, 3)
    assert (result.final("one") == result.final("two")).all()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: mp.BootstrapCTS(0.5, shared_seed=True), "shared_seed"),
        (lambda: mp.Composed(mp.Moments(w=0.5), mp.Draw(shared=True)), "rule"),
        (lambda: mp.GenCTS(unit_means="ordered", window=9), "window"),
        (lambda: mp.GenCTS(unit_means="ordered", memory=mp.Changes()), "memory"),
        (lambda: mp.FeatureCTS(memory=mp.Window(9)), "memory"),
        (lambda: mp.Composed(OrderedUnits(mp.Changes()), mp.Draw()), "posterior"),
        (lambda: mp.GenCTS(discount=0.9, window=9), "window"),
        (lambda: mp.GenCTS(discount=0.9, memory=mp.Keep()), "memory"),
        (lambda: mp.GenCTS(memory=0.9), "memory"),  # type: ignore[arg-type]
        (lambda: mp.Coins(0.9), "memory"),  # type: ignore[arg-type]
        (lambda: mp.Composed(mp.GenCTS(), mp.Draw()), "posterior"),  # type: ignore[arg-type]
        (lambda: mp.Composed(mp.Coins(), mp.Coins()), "rule"),  # type: ignore[arg-type]
        (lambda: mp.Discount(1.0), "discount"),
        (lambda: mp.Window(0), "window"),
        (lambda: mp.Optimism(-1.0), "c"),
        (lambda: mp.Bound(0.0), "alpha"),
        (lambda: mp.Draw(shared=1), "shared"),  # type: ignore[arg-type]
        (lambda: mp.Moments(curiosity=0.1), "curiosity"),
    ],
)
def test_parts_that_do_not_fit_are_refused_when_the_policy_is_made(
    make: Any, argument: str
) -> None:
    with pytest.raises(mp.InvalidInput) as refused:
        make()
    assert refused.value.argument == argument


@pytest.mark.parametrize(
    ("keeps", "follows"),
    [
        (mp.GenCTS(), mp.GenCTS(memory=mp.Changes())),
        (mp.GaussianCTS(), mp.GaussianCTS(memory=mp.Changes())),
        (mp.CombUCB(0.3), mp.CombUCB(0.3, memory=mp.Changes())),
        (mp.GenCTS(), mp.GenCTS(memory=mp.Changes(), shared_seed=True, replan="rarely")),
        (mp.GaussianCTS(), mp.Composed(mp.Moments(mp.Changes()), mp.Optimism(1.0))),
    ],
    ids=repr,
)
def test_changes_are_followed_by_every_posterior(keeps: mp.Policy, follows: mp.Policy) -> None:
    """The regret after all means turn is smaller by at least 100; paired t-test at 1e-4, seed 0."""
    result = mp.simulate(PLANS, TURNED, {"keeps": keeps, "follows": follows}, 500, 10)
    less = result.final("keeps") - result.final("follows")
    assert stats.ttest_1samp(less, 100, alternative="greater").pvalue < 1e-4


def test_hypotheses_are_picked_by_their_weights() -> None:
    """Of two hypotheses with weights 0.3 and 0.7; the shares of 20,000 draws, five deviations."""
    state = mp.GenCTS(memory=mp.Changes()).start(mp.Budget(1, [1]), None, 20_000)
    state["hypotheses"][:, 0, :2, :4] = [[1, 0.3, 900, 0.2], [50, 0.7, 90, 0.8]]
    state["marks"][:, 0, 5] = 2
    posterior = mp.Coins(mp.Changes())
    rng = Streams.spawn(0, POLICY, range(20_000))
    spread = 5 * np.sqrt(0.3 * 0.7 / 20_000)
    for draw in (posterior.draw, posterior.draw_shared):
        theta = draw(mp.Budget(1, [1]), state, rng)
        assert abs((theta < 0.5).mean() - 0.3) < spread
    p, q = posterior.sums(state)  # 0.7 is not sure enough: the older one
    assert (p[0, 0], q[0, 0]) == (181, 721)


def test_a_posterior_of_sums_gets_all_memories() -> None:
    class Days(Additive):
        names, prior = ("p", "q"), 1.0

        def gains(self, feedback: Any, rng: Any) -> Any:
            seen = feedback.seen > 0
            return seen * feedback.mean, seen * (1 - feedback.mean)

        def counts(self, units: Any, total: Any) -> Any:
            return total, units - total

        def draw(self, actions: Any, state: Any, rng: Any) -> Any:
            return rng.beta(*self.sums(state, rng))

    for memory in MEMORIES:
        check_policy(mp.Composed(Days(memory), mp.Draw()), PLANS)


def test_the_service_limits_windows_of_memories() -> None:
    (one,) = mp.GenCTS(memory=mp.Window(100)).requirements(PLANS)
    assert (one.argument, one.amount) == ("policy.memory", 600)
