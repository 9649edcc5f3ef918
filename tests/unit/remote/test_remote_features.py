"""Features in studies of a service: the same answers as from a study that is here."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from featured import FEATURES, KM, SETTINGS, ask_and_tell, bills, day, featured_study
from serving import connected, serving
from trucks import plans, tables

import multiplay as mp
from multiplay.errors import InvalidInput
from multiplay.storage import MemoryStore
from multiplay.studies import wire

MEMORY = "memory://remote-features"
Pair = tuple[mp.Study, mp.RemoteStudy]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(MEMORY) as found:
        yield found


@pytest.fixture
def pair(url: str) -> Iterator[Pair]:
    """The same study here, and in a service."""
    with connected(url) as service, service.create("lanes", plans(), **SETTINGS) as there:
        yield featured_study(MemoryStore()), there
        service.delete("lanes")


def history(rounds: int = 6) -> pd.DataFrame:
    rows = []
    for number in range(rounds):
        given = day(number)
        for arm, costs in bills(number, dict.fromkeys(KM, 1)).items():
            rain = given["rain"] if isinstance(given["rain"], bool) else arm == "Lyon->south"
            row = {"lane": arm, "day": number, "loss": costs[0], "weekday": given["weekday"]}
            rows.append(row | {"fuel": given["fuel"], "rain": rain, "note": "-"})
    return pd.DataFrame(rows)


def check_same(here: mp.Study, there: mp.RemoteStudy) -> None:
    """Raise ``AssertionError`` unless both studies have the same answers, to the last bit."""
    assert tables(here) == tables(there)
    assert here.features == there.features
    for by in ("feature", "arm"):
        one, other = here.effects(0.9, by), there.effects(0.9, by)
        pd.testing.assert_frame_equal(one, other, check_exact=True)
        assert one.attrs == other.attrs
    for given in (None, day(3)):
        one, other = here.arms(0.9, given), there.arms(0.9, given)
        pd.testing.assert_frame_equal(
            one.drop(columns="last_seen"), other.drop(columns="last_seen")
        )
    assert here.best(features=day(2)).plan == there.best(features=day(2)).plan
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    assert here.expect(plan, features=day(1)) == there.expect(plan, features=day(1))


def test_a_study_of_a_service_has_the_same_answers(pair: Pair) -> None:
    here, there = pair
    for study in pair:
        assert study.policy == mp.FeatureCTS(memory=mp.Changes())
        ask_and_tell(study, 12)
        plan = {"Lyon->north": 1, "Lyon->south": 1, "Lille->north": 3}
        study.learn(plan, bills(4, plan), features=day(4), at=20)
        study.learn_table(history(), "lane", "day")
        study.set_arm_features({"km": {"Lyon->south": 140, "Reims->south": 200}}, key="distances")
        study.ask(features=day(13), key="today", at=21)
    check_same(here, there)
    assert there.verify().ok


def test_tables_are_values_of_a_day(pair: Pair) -> None:
    frame = pd.DataFrame({"arm": ["*", "Lyon->south"], "rain": [False, True]})
    by_name = {"rain": {"*": False, "Lyon->south": True}}
    rest = {"fuel": np.float64(1.7), "weekday": "Tue"}
    assert wire.plain_features(frame) == by_name
    for study in pair:
        study.set_arm_features(pd.DataFrame({"rain": [True] * 4}, index=list(KM)))
        both = [study.best(features=given) for given in (rest, rest | by_name)]
        assert both[0].expected.total == pytest.approx(both[1].expected.total)
        study.ask(features=pd.DataFrame({"arm": ["*"], "fuel": [1.7], "weekday": ["Tue"]}), at=0)
    check_same(*pair)


WRONG: list[tuple[str, Any]] = [
    ("ask", {"features": {"fuel": 1.7}}),
    ("ask", {"features": {"fuel": "dear", "weekday": "Tue", "rain": False}}),
    ("ask", {"features": {"fuel": 1e9, "weekday": "Tue", "rain": False}}),
    ("ask", {"features": {"fuel": 1.7, "weekday": "Sun", "rain": False}}),
    ("ask", {"features": {"fuel": 1.7, "weekday": "Tue", "rain": {"nowhere": True}}}),
    ("ask", {"features": {"snow": 1.7}}),
    ("set_arm_features", {"table": {"km": {"Lyon->north": "far"}}}),
    ("set_arm_features", {"table": {"km": {"*": 3}}}),
    ("set_arm_features", {"table": {"miles": {"Lyon->north": 3}}}),
    ("best", {"features": {"snow": 1}}),
    ("arms", {"features": {"snow": 1}}),
    ("expect", {"plan": {"Lyon->north": 2}, "features": {"fuel": 1.7}}),
    ("effects", {"by": "lane"}),
    ("effects", {"level": 2}),
]


@pytest.mark.parametrize(("verb", "given"), WRONG)
def test_errors_are_the_same(pair: Pair, verb: str, given: dict[str, Any]) -> None:
    said = []
    for study in pair:
        before = study.head
        with pytest.raises(InvalidInput) as caught:
            getattr(study, verb)(**given)
        error = caught.value
        said.append((error.argument, error.expected, str(error.got), error.hint))
        assert study.head == before, "nothing has changed"
    assert said[0] == said[1]


@pytest.mark.parametrize("value", [float("nan"), None, [1], 1j])
def test_a_value_that_no_feature_has_is_not_sent(value: Any) -> None:
    with pytest.raises(InvalidInput, match="fuel"):
        wire.plain_features({"fuel": value})
    with pytest.raises(InvalidInput, match="Lyon"):
        wire.plain_features({"fuel": {"Lyon->south": value}})


def test_declared_features_are_sent_without_loss() -> None:
    plain = wire.to_plain("features", FEATURES)
    assert wire.builder().build("features", plain) == FEATURES
    odd = mp.Features(columns={"type": mp.Number(), "a b": mp.Category(["1", "x"], others=True)})
    assert wire.builder().build("features", wire.to_plain("features", odd)) == odd


def test_a_study_without_features_has_none(url: str) -> None:
    with connected(url) as service, service.create("plain", plans(), loss_range=(0, 250)) as there:
        assert there.features is None
        assert isinstance(there.policy, mp.PooledCTS)
        for act in (there.effects, lambda: there.ask(features={"fuel": 1})):
            with pytest.raises(InvalidInput, match="no declared features"):
                act()
        service.delete("plain")
