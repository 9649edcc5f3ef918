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
        (mp.FollowTheLeader(window=9), mp.Composed(mp.Averages(mp.Window(9)), mp.Mean())),
        (
            mp.EpsilonGreedy(0, memory=mp.Changes()),
            mp.Composed(mp.Averages(mp.Changes()), mp.Mean()),
        ),
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
    ("named", "composed"),
    [
        (mp.FeatureCTS(), mp.Composed(mp.FeatureModel(), mp.Draw())),
        (
            mp.FeatureCTS(discount=0.95, optimism=2.0, replan="rarely"),
            mp.Composed(mp.FeatureModel(mp.Discount(0.95)), mp.Optimism(2.0), replan="rarely"),
        ),
    ],
    ids=repr,
)
def test_features_are_read_by_a_composition_as_by_the_policy_with_a_name(
    named: mp.Policy, composed: mp.Policy
) -> None:
    def plans(policy: mp.Policy) -> list[Any]:
        features = mp.Features(rain=mp.Flag())
        learner = mp.Learner(PLANS, policy, seed=2, features=features, varying_set=True)
        rng, found = np.random.default_rng(0), []
        for day in range(40):
            limits: dict[str, Any] = {"exclude": [PLANS.names[1]]} if day % 5 == 2 else {}
            play = learner.ask(features={"rain": day % 3 == 0}, **limits)
            found += [play.plan, learner.expect(play.plan, features={"rain": False}).total]
            losses = np.clip(MEANS + 0.3 * (day % 3 == 0) + rng.normal(0, 0.05, 6), 0, 1)
            learner.tell(play, [[x] * k for x, k in zip(losses.tolist(), play.action, strict=True)])
        return found

    assert plans(named) == plans(composed)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("rule", [*RULES, mp.OptimisticQuantile()], ids=repr)
def test_a_model_of_features_works_with_the_rules_that_fit(rule: Any, sense: str) -> None:
    if rule in (mp.Bound(0.3), mp.Draw(shared=True)):
        with pytest.raises(mp.InvalidInput) as refused:
            mp.Composed(mp.FeatureModel(), rule)
        assert refused.value.argument == "rule"
        return
    policy = mp.Composed(mp.FeatureModel(), rule)
    check_policy(policy, PLANS)
    phi = np.column_stack([np.ones(4), np.linspace(-1, 1, 4)])
    actions = mp.Budget(3, [3] * 4, sense=sense).featured(mp.FeatureRows.of(phi))
    state, rng = policy.start(actions, None, 2), Streams.spawn(0, POLICY, range(2))
    for _ in range(30):
        play = policy.choose(actions, state, rng)
        losses = play.action * (0.5 + 0.3 * phi[:, 1])
        policy.update(actions, state, play, mp.Feedback(play.action, losses), rng)
    model = policy.posterior
    assert isinstance(model, mp.FeatureModel)
    mean, deviation = model.mean(actions, state), model.deviation(actions, state)
    better = actions.sign * (mean - policy.index(actions, state, rng)) / deviation
    if rule == mp.OptimisticQuantile():
        least = 0.5 * np.sqrt(0.5 * np.log(31 + 10))  # at u = 0, and twice as much at u = 1
        assert (better > least).all()
        assert (better < max(4.0, 2 * least)).all()
    elif rule != mp.Draw():
        assert np.allclose(better, 1.0 if rule == mp.Optimism(1.0) else 0.0)
    best = [3, 0, 0, 0] if sense == "min" else [0, 0, 0, 3]
    assert (policy.choose(actions, state, rng).action == best).all() or rule == mp.Mean()


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
