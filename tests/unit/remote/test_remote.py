"""Studies of a service: the same as those that are here, over a network that fails as well."""

import inspect
import json
import logging
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from constraint_reports import baseline_report, promise_reports
from facilities import facility
from flaky import make_flaky
from processes import in_processes, in_threads
from refusal import refused
from serving import connected, serving
from study_contract import check_study
from trucks import STORES, ask_and_tell, euros, new_study, plans, store_of, tables

import multiplay as mp
from multiplay import actions, policies
from multiplay._support.builder import classes_of
from multiplay._support.serialization import pack
from multiplay.errors import Conflict, InvalidInput, NotFound
from multiplay.remote import study as remote_study
from multiplay.remote.client import ServiceClient
from multiplay.service.auth import keys
from multiplay.storage import MemoryStore, store_at
from multiplay.studies import synced, wire

MEMORY = "memory://remote"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A service with studies in memory, and without keys."""
    with serving(MEMORY) as found:
        yield found


@pytest.fixture
def service(url: str) -> Iterator[mp.RemoteStudy]:
    with connected(url) as found:
        yield found
        for name in found.names():
            found.delete(name)


@pytest.fixture
def study(service: mp.RemoteStudy) -> Iterator[mp.RemoteStudy]:
    with made(service) as found:
        yield found


def made(service: mp.RemoteStudy, name: str = "lanes", **settings: Any) -> mp.RemoteStudy:
    """Make the study that ``new_study`` makes."""
    given: dict[str, Any] = {"loss_range": (0, 250), "seed": 7} | settings
    policy = given.pop("policy", mp.GenCTS())
    return service.create(name, plans(), policy, **given)


# ---------------------------------------------------------------- the contract

SMALL = [("memory", mp.GenCTS()), ("sqlite", mp.GenLBINFV()), ("postgresql", mp.GenCTS())]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "policy"), SMALL)
def test_contract(
    kind: str,
    policy: mp.Policy,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 5)
    with serving(place(kind, request, tmp_path)) as url, connected(url) as service:
        check_study(service, policy, examples=4, steps=20)
        assert service.names() == []


@pytest.mark.slow
def test_contract_where_requests_and_answers_get_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = make_flaky(monkeypatch, seed=1)
    with connected(url) as service:
        check_study(service, examples=4, steps=20, seed=3)
        assert service.names() == []
    # how often depends on hypothesis: its old versions draw other requests from the same seed
    assert min(seen.values()) > 10, "all of it has happened"
    assert len(seen) == 6


@pytest.mark.soak
@pytest.mark.parametrize("flaky", [False, True])
@pytest.mark.parametrize("policy", [mp.GenCTS(), mp.GenLBINFV(), mp.Hybrid(), mp.LinTS()])
@pytest.mark.parametrize("kind", STORES)
def test_contract_for_long(
    kind: str,
    policy: mp.Policy,
    flaky: bool,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(synced, "SNAPSHOT_EVERY", 5)
    if flaky:
        make_flaky(monkeypatch, seed=2)
    with serving(place(kind, request, tmp_path)) as url, connected(url) as service:
        check_study(service, policy, examples=27, steps=40, seed=1)


def place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "memory":
        return f"memory://{request.node.name}"
    if kind == "postgresql":
        found: str = request.getfixturevalue("postgresql").new_url()
        return found
    return store_of(kind, request, tmp_path).url


ELSEWHERE = {
    "import_journal",
    "import_learner",
    "together",
    "foresee",
    "once",
    "pending_after",
    "is_asked",
    "described_arms",
    "day_features",
    "accept",  # of the machine that has the store, as the next one
    "compile_all",
}
LEFT_OUT = {"open": ("actions", "policy"), "verify": ("progress",)}


PUBLIC = [name for name in dir(mp.Study) if not name.startswith("_") and hasattr(mp.Study, name)]


@pytest.mark.parametrize("name", PUBLIC)
def test_what_a_study_has_a_remote_one_has_too(name: str) -> None:
    """With the same arguments, but for those that belong to a store."""
    if name in ELSEWHERE:
        assert not hasattr(mp.RemoteStudy, name)
        return
    mine, other = getattr(mp.Study, name), getattr(mp.RemoteStudy, name)
    assert isinstance(mine, property) == isinstance(other, property)
    if callable(mine):
        left_out = {"self", "cls", "store", *LEFT_OUT.get(name, ())}
        left_out |= set() if name == "effects" else {"by"}  # the author of an entry
        one, two = (inspect.signature(each).parameters for each in (mine, other))
        wanted = [each for key, each in one.items() if key not in left_out]
        assert [each for key, each in two.items() if key != "self"] == wanted


def test_it_shows_what_a_study_shows(study: mp.RemoteStudy) -> None:
    """The same to the last bit, and of the same types."""
    local = new_study(MemoryStore())
    for one in (study, local):
        for k in range(12):
            play = one.ask(key=f"{k}", at=1e9 + k / 3)
            more = 80.0 if k > 6 else 0.0
            one.tell(play.id, euros(play, more), at=datetime(2026, 11, 15, k, tzinfo=UTC))
        one.ask(at=1e9)
        one.learn_table({"arm": ["Lyon->north"] * 300, "round": range(300), "loss": [3.5] * 300})
        later = {"arm": ["Lyon->north"] * 99, "round": range(99), "loss": [249.5] * 99}
        one.learn_table(later)
    pairs = [
        (study.plays(), local.plays()),
        (study.arms(), local.arms()),
        (study.arms(0.5), local.arms(0.5)),
        (study.drift(), local.drift()),
        (study.drift(0.9), local.drift(0.9)),
    ]
    for mine, other in pairs:
        assert mine.equals(other)
        pd.testing.assert_frame_equal(mine, other)
    assert len(local.drift()) > 0
    assert tables(study) == tables(local)
    for name in ("loss_range", "words", "summary", "asked", "clipped", "open_plays", "name"):
        assert getattr(study, name) == getattr(local, name)
    assert study.policy == local.policy
    assert wire.to_plain("set", study.actions) == wire.to_plain("set", local.actions)
    assert study.actions is study.actions
    last = [*study.entries()][-1]
    assert study.head == (last.number, last.digest)


def test_notebooks_show_what_they_show_of_a_study(study: mp.RemoteStudy) -> None:
    ask_and_tell(study, 3)
    study.ask(key="<today>")
    here = mp.Study.open("lanes", store=MEMORY)
    ours, theirs = (one._repr_html_().split("<p>Pending plans")[1] for one in (here, study))
    assert ours == theirs
    assert "4 asked, 1 pending" in study._repr_html_()
    gone = mp.RemoteStudy(study._client, "gone")
    assert f'<td class="words free">{study.url}</td>' in gone._repr_html_()


@pytest.mark.parametrize(
    "kind", [one for one in classes_of(actions, policies).values() if hasattr(one, "example")]
)
def test_sets_and_policies_arrive_as_they_are(kind: Any) -> None:
    thing = kind.example()
    text = json.dumps(wire.to_plain("thing", thing), allow_nan=False)
    again = wire.builder().build("thing", json.loads(text))
    (one, arrays), (other, others) = pack(thing), pack(again)
    assert one == other
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.dtype == others[name].dtype
        assert array.tobytes() == others[name].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [mp.BootstrapCTS(), mp.GenLBINFV()])
def test_a_study_of_a_model_is_that_of_a_local_one(
    service: mp.RemoteStudy, policy: mp.Policy
) -> None:
    """Programs are solved in another process there, with the same answers."""
    settings: dict[str, Any] = {"loss_range": (0, 2), "seed": 3, "varying_set": True}
    model, other = facility([0.6, 0.5, 1.2]), facility([0.2, 0.9, 0.1], demand=3)
    local = mp.Study.create("depots", model, policy, store=MemoryStore(), **settings)
    when = datetime(2026, 11, 16, 8, tzinfo=UTC)
    days: list[dict[str, Any]] = [{}, {"at_most": {"depot 1": 1}}, {"actions": other}]
    both: list[Any] = [service.create("depots", model, policy, **settings), local]
    assert both[0].actions.n.tolist() == model.n.tolist()
    for one in both:
        for day, given in enumerate(days):
            play = one.ask(**given, at=when + timedelta(days=day))
            losses = {arm: [0.3 * units] for arm, units in play.plan.items() if units == 1}
            losses |= {arm: [0.2] * units for arm, units in play.plan.items() if units > 1}
            one.tell(play.id, losses, at=when + timedelta(days=day, hours=5))
        one.learn({"depot 3": 4}, {"depot 3": [0.1] * 4}, at=when + timedelta(days=4))
        with pytest.raises(InvalidInput, match="plan: expected a plan of Model"):
            one.expect({"depot 3": 3})
        one.ask(fixed={"depot 2": 2}, at=when + timedelta(days=5))
        assert one.verify().ok
    assert tables(both[0]) == tables(local)
    assert both[0].why(4) == local.why(4)
    assert both[0].expect({"depot 1": 4}) == local.expect({"depot 1": 4})


# ---------------------------------------------------------------- what people tell

TOLD: dict[str, Any] = {
    "lists": lambda play: euros(play),
    "totals": lambda play: {lane: sum(units) for lane, units in euros(play).items()},
    "arrays": lambda play: {lane: np.array(units) for lane, units in euros(play).items()},
    "fractions": lambda play: {lane: Fraction(1, 3) * k for lane, k in play.plan.items() if k},
    "decimals": lambda play: {lane: [Decimal("0.1")] * k for lane, k in play.plan.items()},
    "tiny": lambda play: {lane: [5e-324, 0.1 + 0.2, 1 / 3][:k] for lane, k in play.plan.items()},
    "gaps": lambda play: {lane: [None, *units[1:]] for lane, units in euros(play).items()},
    "NaN": lambda play: {lane: np.r_[np.nan, units[1:]] for lane, units in euros(play).items()},
    "NA": lambda play: {lane: [pd.NA, *units[1:]] for lane, units in euros(play).items()},
    "masked": lambda play: {
        lane: np.ma.masked_array(units, [True, *[False] * (len(units) - 1)])
        for lane, units in euros(play).items()
    },
    "in order": lambda play: [[np.float32(1.1)] * k for k in play.plan.values()],
    "a Series": lambda play: pd.Series(euros(play)),
    "a numbered Series": lambda play: pd.Series([1.5 * k for k in play.plan.values()]),
    "whole numbers": lambda play: {lane: [np.int64(3)] * k for lane, k in play.plan.items()},
    "an array": lambda play: np.array([*play.plan.values()]) / 3,
    "text": lambda play: {lane: ["3"] * k for lane, k in play.plan.items()},
    "infinity": lambda play: {lane: [np.inf] * k for lane, k in play.plan.items()},
    "numbers for names": lambda play: {1: [3.0]},
    "nothing": lambda play: None,
    "a name": lambda play: "Lyon->north",
    "lists in lists": lambda play: {lane: [[3.0]] * k for lane, k in play.plan.items()},
    "too many": lambda play: {lane: [3.0] * (k + 1) for lane, k in play.plan.items()},
    "an unknown arm": lambda play: {"Lyon": [3.0]},
    "twice": lambda play: pd.Series([1.0, 2.0], index=["Lyon->north"] * 2),
    "outside": lambda play: {lane: [251.0] * k for lane, k in play.plan.items()},
}


@pytest.mark.parametrize("form", TOLD)
def test_losses_arrive_exactly(form: str, study: mp.RemoteStudy) -> None:
    """Whatever their form: what a study learns, or why it refuses."""
    local = new_study(MemoryStore())
    answers: list[Any] = []
    for one in (study, local):
        play = one.ask(key="k", at=60.0)
        try:
            answers.append(one.tell(play.id, TOLD[form](play), missing="ignore", at=120.0))
        except InvalidInput as error:
            answers.append((type(error), error.argument[:6], error.got))
    assert answers[0] == answers[1]
    assert study.plays().equals(local.plays())
    assert study.arms().equals(local.arms())


PLANS: dict[str, Any] = {
    "a dict": {"Lyon->north": np.int64(2), "Lille->north": 2, "Lille->south": 1},
    "a list": [2, 0, 2, 1],
    "an array": np.array([2, 0, 2, 1]),
    "a Series": pd.Series({"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}),
    "halves": [2, 0, 2, 1.5],
    "negative": {"Lyon->north": -1},
    "no names": {0: 2},
    "not in the set": [1, 0, 2, 1],
    "too short": [1],
    "text": "Lyon->north",
}


@pytest.mark.parametrize("form", PLANS)
def test_plans_arrive_exactly(form: str, study: mp.RemoteStudy) -> None:
    local, plan = new_study(MemoryStore()), PLANS[form]
    answers: list[Any] = []
    for one in (study, local):
        try:
            told = one.learn(plan, [[10.0, 20.0], [], [30.0, 40.0], [50.0]], at=1.5)
            answers.append((told, one.expect(plan), one.expect(plan, level=0.5)))
        except InvalidInput as error:
            answers.append(type(error))
    assert answers[0] == answers[1]
    assert study.arms().equals(local.arms())


TODAY = mp.Transport([2, 1], [1, 3], names=(["Lyon", "Lille"], ["north", "east"]), shortage=90)
OPTIONS: list[dict[str, Any]] = [
    {"actions": TODAY},
    {"actions": TODAY, "at_most": {"Lyon->east": np.int64(1)}},
    {"exclude": {"Lyon->south"}},
    {"fixed": pd.Series({"Lyon->north": 1})},
    {"at_most": {"Lyon": 1}},
    {"at_most": {"Lyon->north": 1.5}},
    {"at_most": [1, 2]},
    {"exclude": "Lyon->north"},
    {"exclude": 3},
    {"exclude": [3]},
    {"actions": "lanes"},
]


def test_limits_and_sets_of_a_day_arrive_exactly(service: mp.RemoteStudy) -> None:
    local = new_study(MemoryStore(), varying_set=True)
    with made(service, varying_set=True) as study:
        for options in OPTIONS:
            answers: list[Any] = []
            for one in (study, local):
                try:
                    play, best = one.ask(**options, at=5.0), one.best(**options)
                    answers.append((play.id, play.plan, play.expected, best.plan, best.expected))
                except InvalidInput as error:
                    answers.append((type(error), error.argument))
            assert answers[0] == answers[1], options
        assert study.plays().equals(local.plays())


@pytest.mark.parametrize(
    "options",
    [{"time_limit": 0}, {"key": ""}, {"key": "\ud800"}, {"key": 3}, {"at": "noon"}, {"at": 1e10}],
)
def test_nonsense_is_refused_before_it_is_sent(
    options: dict[str, Any], study: mp.RemoteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServiceClient, "_send", None)
    with refused(next(iter(options))):
        study.ask(**options)


def test_times_are_those_that_were_given(study: mp.RemoteStudy) -> None:
    noon = datetime(2026, 11, 15, 12, 0, 0, 125000, tzinfo=UTC)
    play = study.ask(at=noon)
    study.tell(play.id, euros(play), at=noon.timestamp() + 0.25)
    (row,) = study.plays().itertuples()
    asked = pd.Timestamp(noon)
    assert (row.asked, row.told) == (asked, asked + timedelta(seconds=0.25))
    assert study.ask(at=noon - timedelta(days=9)).id == 2
    assert study.expire(timedelta(days=8), at=noon) == [2]


@pytest.mark.parametrize("rule", [mp.InProportion(), "each day"])
def test_an_allowance_is_kept_by_a_service(service: mp.RemoteStudy, rule: Any) -> None:
    usual = {"Lyon->north": 1, "Lyon->south": 1, "Lille->north": 3}
    given: dict[str, Any] = {"baseline": usual} if rule == "each day" else {}
    local = new_study(MemoryStore(), constraints=[mp.Baseline(rule, 0.1, sure=0.9, per="week")])
    remote = made(service, constraints=[mp.Baseline(rule, 0.1, sure=0.9, per="week")])
    seen = []
    for one in (local, remote):
        plays = [one.ask(at=1.8e9, **given)]
        for k in range(8):
            one.tell(plays[-1].id, euros(plays[-1]), at=1.8e9)
            plays.append(one.ask(at=1.8e9 + 86_400.0 * k, **given))
        shown = [(p.plan, p.baseline, p.explores, p.restricted) for p in plays]
        seen.append((shown, baseline_report(one), one.constrained_by, one.pending()[0].baseline))
    assert seen[0] == seen[1]
    assert {restricted for *_, restricted in seen[0][0]} == {True, False}
    assert seen[0][2] == (mp.Baseline(rule, 0.1, sure=0.9, per="week"),)


@pytest.mark.parametrize(
    "given",
    [
        {"constraints": [mp.Baseline(mp.InProportion())], "policy": mp.GenLBINFV()},
        {"constraints": [mp.Baseline(mp.InProportion())], "loss_range": (-5, 5)},
        {"constraints": [mp.Baseline(mp.PriceList({"Lyon->north": 3}))]},
        {"constraints": [mp.Baseline(mp.FixedPlan({"Lyon->north": 3}))]},
        {"constraints": [mp.Baseline("each day"), mp.Baseline(mp.InProportion())]},
        {"constraints": "switching cost"},
        {"constraints": [15]},
        {"constraints": [mp.SwitchingCost(15)], "policy": mp.GenLBINFV()},
    ],
)
def test_an_allowance_is_refused_alike(service: mp.RemoteStudy, given: dict[str, Any]) -> None:
    there = reason(lambda: made(service, **given))
    assert there == reason(lambda: new_study(MemoryStore(), **given))
    assert service.names() == []


def test_a_switching_cost_is_kept_by_a_service(service: mp.RemoteStudy) -> None:
    local, remote = (
        new_study(MemoryStore(), constraints=[mp.SwitchingCost(3)]),
        made(service, constraints=[mp.SwitchingCost(3)]),
    )
    seen = []
    for one in (local, remote):
        plays = [one.ask(key="1")]
        for k in range(2, 9):
            one.tell(plays[-1].id, euros(plays[-1]))
            plays.append(one.ask(key=str(k)))
        shown = [(play.plan, play.change_cost) for play in plays]
        again = [one.ask(key=str(k)).change_cost for k in range(1, 9)]
        seen.append((shown, again, one.constraints(), str(one.why(plays[-1].id))))
    assert seen[0] == seen[1]
    assert any(cost for _, cost in seen[0][0])
    assert [cost for _, cost in seen[0][0]] == seen[0][1]


def reason(act: Callable[[], Any]) -> str:
    with pytest.raises(InvalidInput) as caught:
        act()
    return str(caught.value)


def test_without_a_baseline_there_is_no_allowance(study: mp.RemoteStudy) -> None:
    local = new_study(MemoryStore())
    assert study.constraints() == [] == local.constraints()
    plan = {"Lyon->north": 1}
    assert reason(lambda: study.ask(baseline=plan)) == reason(lambda: local.ask(baseline=plan))
    assert study.asked == 0


def test_promises_are_kept_by_a_service(service: mp.RemoteStudy) -> None:
    """Prices, plans and reports are those of a study, with sets ahead and without."""
    co2 = mp.AtMost(640, {"*": 20, "Lyon->*": 40}, until="2027-02-01", plays=4, name="CO2")
    south = mp.AtLeast(3, {"*": 0, "Lyon->south": 1}, plays=4, name="south", hard=False)
    more = mp.Transport([3, 3], [4, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    local = new_study(MemoryStore(), constraints=[co2, south])
    remote = made(service, constraints=[co2, south])
    seen = []
    for one in (local, remote):
        plays = [one.ask(at=1.8e9, ahead=[more, plans(), plans()])]
        one.tell(plays[-1].id, euros(plays[-1]), at=1.8e9)
        reports = promise_reports(one)
        plays.append(one.ask(more, at=1.8e9))
        again = mp.AtMost(9_000, co2.of, plays=9, name="more")
        for _ in range(2):
            one.add_constraint(again, key="more", at=1.8e9)
        with refused("constraints"):
            one.add_constraint(again)
        with pytest.raises(InvalidInput, match="was used for a different constraint"):
            one.add_constraint(co2, key="more")
        one.end_constraint("south", key="end")
        one.end_constraint("south", key="end")
        with pytest.raises(NotFound, match=r"name.*'CO'.*Did you mean 'CO2'"):
            one.end_constraint("CO")
        plays.append(one.ask(at=1.8e9))
        shown = [(p.plan, p.prices, p.held) for p in plays]
        seen.append((shown, reports, promise_reports(one), one.pending()[0].prices))
    assert seen[0] == seen[1]
    shown, reports, later, _ = seen[0]
    assert [(row.name, row.holds, row.left_plays) for row in reports] == [
        ("CO2", "sure", 3),
        ("south", "likely", 3),
    ]
    assert [row.name for row in later] == ["CO2", "more"]
    assert [*shown[0][1]] == ["CO2", "south"]
    assert [*shown[2][1]] == ["CO2", "more"]
    assert remote.verify().ok


@pytest.mark.parametrize(
    "given",
    [
        {"constraints": 3},
        {"constraints": ["CO2 <= 3"]},
        {"constraints": [mp.AtMost(3, {"Lyon->nord": 1, "*": 1}, plays=2)]},
        {"constraints": [mp.AtMost(3, {"Lyon->*": 1}, plays=2)]},
        {"constraints": [mp.AtMost(3, {"*": 1}, plays=2)] * 2},
        {"constraints": [mp.AtMost(3, {"*": 1}, plays=2)], "policy": mp.GenLBINFV()},
    ],
)
def test_promises_are_refused_alike(service: mp.RemoteStudy, given: dict[str, Any]) -> None:
    there = reason(lambda: made(service, **given))
    assert there == reason(lambda: new_study(MemoryStore(), **given))
    assert service.names() == []


def test_sets_ahead_and_promises_are_refused_alike(service: mp.RemoteStudy) -> None:
    promises = [mp.AtMost(1000, {"*": 1}, plays=2, name="units")]
    both: list[Any] = [new_study(MemoryStore(), constraints=promises)]
    both.append(made(service, constraints=promises))
    for given in (plans(), "tomorrow", [3], [plans(), None]):
        texts = [reason(partial(one.ask, ahead=given)) for one in both]
        assert texts[0] == texts[1]
    assert reason(lambda: both[0].add_constraint("CO2")) == reason(
        lambda: both[1].add_constraint("CO2")
    )
    impossible = mp.AtMost(3, {"*": 1}, plays=2, name="few")
    for one in both:
        one.add_constraint(impossible)
    usual = [plans()]
    assert reason(lambda: both[0].ask(ahead=usual)) == reason(lambda: both[1].ask(ahead=usual))
    assert both[1].asked == 0


@pytest.mark.slow
def test_savings_are_those_of_a_study(study: mp.RemoteStudy, tmp_path: Path) -> None:
    """Against rules and plans by key, in a period, and after a change."""
    local = new_study(MemoryStore(), policy=mp.RandomAction())
    other = made(study.open("lanes"), "others", policy=mp.RandomAction())
    plan = {"Lyon->north": 2, "Lille->north": 2, "Lille->south": 1}
    keys = [f"2026-03-{day:02}" for day in range(1, 16)]
    table = pd.DataFrame([(k, *row) for k in keys for row in plan.items()])
    table = table.set_axis(["key", "arm", "units"], axis=1)
    table.to_csv(tmp_path / "split.csv", index=False)
    given = [mp.InProportion(), mp.PriceList(dict.fromkeys(plans().names, 1.0)), table]
    given += [mp.FixedPlan(plan, nearest=True), dict.fromkeys(keys, plan), tmp_path / "split.csv"]
    found = []
    bills: dict[str, Any] = {"arm": [arm for arm, n in plan.items() for _ in range(n)]}
    bills |= {"round": ["2025-03-01"] * 5, "loss": [60.0] * 5}
    given.append("driven")
    for one in (local, other):
        one.learn_table(bills)
        for key in keys:
            play = one.ask(key=key)
            one.tell(play, euros(play))
        one.versus = mp.InProportion()
        assert one.versus == mp.InProportion()
        answers = [one.savings(versus) for versus in given]
        assert one.savings() == answers[0]
        assert answers[2] == answers[4] == answers[5]
        period: dict[str, Any] = {"since": "2026-03-02", "until": datetime(2026, 3, 14, 12)}
        answers += [one.savings(given[1], **period), one.savings(mp.GenCTS(), level=0.5)]
        answers += [one.savings(given[1], level=0.5), one.cost_of_learning(level=0.9, **period)]
        assert {answer.entry for answer in answers} == {one.head.number}
        found.append([replace(answer, entry=None) for answer in answers])
        one.versus = None
        assert one.versus is None
    assert found[0] == found[1]
    assert [one.days for one in found[0]] == [15] * 7 + [13, 15, 15, 13]


def test_histories_arrive_from_tables_and_files(study: mp.RemoteStudy, tmp_path: Path) -> None:
    local, path = new_study(MemoryStore()), tmp_path / "years.csv"
    days = ["2025-01-02", "2025-01-01", "2025-01-01", "2025-03-01"]
    years = pd.DataFrame({"lane": ["Lyon->north", *["Lille->south"] * 3], "day": days})
    years["cost"] = [99.5, None, 0.1 + 0.2, 7.0]
    years.to_csv(path, index=False)
    columns, errors = ("lane", "day", "cost"), list[str]()
    parts, bad = years["lane"].str.split("->", expand=True), years.assign(cost=[9e9, 1, 2, "?"])
    split = years.assign(depot=parts[0], customer=parts[1])
    for one in (study, local):
        assert one.learn_table(years, *columns, key="years").seen == 3
        assert one.learn_table(path, *columns, key="years").repeated
        assert one.learn_table(path, *columns).known == 4
        assert one.learn_table({"arm": ["Lyon->north"], "round": [1], "loss": [np.nan]}).seen == 0
        assert one.learn_table(years.replace("Lyon->north", "Lyon"), *columns).added == ("Lyon",)
        told = one.learn_table(split, ["depot", "customer"], *columns[1:], at=86_400.0, again="add")
        assert (told.seen, told.added) == (3, ())
        told = one.learn_table(bad, *columns, skip_bad=True)
        assert told == mp.Receipt(None, 2, 0, skipped=2)
        with refused("table"):
            one.learn_table(years)
        with pytest.raises(InvalidInput) as caught:
            one.learn_table(bad, *columns)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert "row 0, cost: 9e+09 is outside 0 to 250" in errors[0]
    assert "row 3, cost: '?' is not a number" in errors[0]
    both: tuple[Any, Any] = study, local
    chunks = [list(each.plays(external=True, chunk=4)) for each in both]
    assert [len(part) for part in chunks[0]] == [len(part) for part in chunks[1]]
    assert pd.concat(chunks[0]).equals(pd.concat(chunks[1]))
    assert study.plays(external=True).equals(local.plays(external=True))
    for table in (path, bad, split):
        assert study.check_table(table, *columns) == local.check_table(table, *columns)
    assert study.arms().equals(local.arms())
    assert study.drift().equals(local.drift())


# ---------------------------------------------------------------- what is refused


class Stubborn(mp.GenCTS):
    """A policy of one's own."""


class Narrow(mp.Budget):
    """A set of one's own."""


def test_classes_of_ones_own_are_refused_before_they_are_sent(study: mp.RemoteStudy) -> None:
    with pytest.raises(InvalidInput, match=r"policy: expected a class of multiplay.*Stubborn"):
        study.create("mine", plans(), Stubborn())
    with pytest.raises(InvalidInput, match=r"actions: expected a class of multiplay.*Narrow"):
        study.ask(Narrow(1, [1, 1]))
    with refused("policy"):
        study.create("mine", plans(), "GenCTS")  # type: ignore[arg-type]
    assert study.names() == ["lanes"]


def test_errors_are_those_of_a_study(study: mp.RemoteStudy, service: mp.RemoteStudy) -> None:
    local = new_study(MemoryStore())
    both: list[Any] = [study, local]
    for one in both:
        play = one.ask()
        one.tell(play.id, euros(play), key="k")
        one.cancel(one.ask().id)
    acts: list[Callable[[Any], Any]] = [
        lambda one: one.tell(7, {}),
        lambda one: one.tell(1, {"Lyon->north": [1.0]}),
        lambda one: one.tell(2, {}),
        lambda one: one.tell(1, {}, key="k"),
        lambda one: one.close(1),
        lambda one: one.close(2**80),
        lambda one: one.cancel(1.5),
        lambda one: one.tell(1, {}, missing="forget"),
        lambda one: one.tell(1, {}, final="no"),
        lambda one: one.expire(-1),
        lambda one: one.forget("nowhere", before=1),
        lambda one: one.forget(7, before=1),
        lambda one: one.forget(before=0),
        lambda one: one.forget(before=99),
        lambda one: one.unforget("nowhere"),
        lambda one: one.arms(level=2),
        lambda one: one.plays(chunk=0),
        lambda one: one.why(99),
        lambda one: one.set_words(mp.Words(unit="")),
        lambda one: one.set_words(mp.Words(arm=3)),  # type: ignore[arg-type]
        lambda one: one.set_versus("in proportion"),
        lambda one: one.savings(),
        lambda one: one.savings(mp.InProportion()),
        lambda one: one.savings(lambda actions: actions.n),
        lambda one: one.savings("nowhere.csv"),
        lambda one: one.savings({"a": {"Lyon->north": -1}}),
        lambda one: one.savings(mp.InProportion(), level=2),
        lambda one: one.savings(mp.InProportion(), method="magic"),
        lambda one: one.savings(mp.InProportion(), since="tomorrow"),
        lambda one: one.cost_of_learning(until="2026-02-30"),
        lambda one: one.ask(mp.Budget(1, [1, 1], names=["a", "b"])),
    ]
    for act in acts:
        found = []
        for one in both:
            with pytest.raises(InvalidInput) as caught:
                act(one)
            error = caught.value
            found.append((type(error), error.argument, error.expected, str(error.got), error.hint))
        assert found[0] == found[1]
    with pytest.raises(Conflict, match=r"name: expected a new name here, got 'lanes'"):
        made(service)
    with pytest.raises(NotFound, match=r"expected an existing name here, got 'lane'.*'lanes'\?"):
        service.open("lane")
    with pytest.raises(NotFound, match="nowhere"):
        service.delete("nowhere")
    with refused("loss_range"):
        made(service, "other", loss_range=(0, np.inf))
    with refused("seed"):
        made(service, "other", seed=object())
    with refused("name"):
        made(service, "")


@pytest.mark.parametrize("name", ["north/south 100%", "ü 中 ?#&=+", "a.b", "new", "%2F", "v1"])
def test_any_name_can_be_called(name: str, service: mp.RemoteStudy, url: str) -> None:
    with made(service, name) as study:
        assert study.ask().id == 1
        assert service.names() == [name]
        assert service.open(name).name == name
        with connected(url, study=name) as other:
            assert other.pending()[0].plan == study.pending()[0].plan
    service.delete(name)
    for nothing in (name, ".", ".."):
        with pytest.raises(NotFound, match="name: expected"):
            service.open(nothing)


def test_a_study_is_copied_and_renamed(
    study: mp.RemoteStudy, service: mp.RemoteStudy, tmp_path: Path
) -> None:
    ask_and_tell(study, 1)
    study.copy(tmp_path / "here.db")
    seen: list[int] = []
    assert study.copy(name="lanes/2") == study.head.number + 1
    assert study.copy(tmp_path / "here.db", name="too", progress=seen.append) == seen[-1]
    service.rename("lanes", "Straßen")
    assert service.names() == ["Straßen", "lanes/2"]
    copies: list[Any] = [service.open(name) for name in service.names()]
    for name in mp.Study.names(store=tmp_path / "here.db"):
        copies.append(mp.Study.open(name, store=tmp_path / "here.db"))
    assert len({copy.head for copy in copies}) == 1
    assert all(copy.verify().ok for copy in copies)
    with pytest.raises(NotFound, match="'lanes'"):
        study.ask()
    for new in ("Straßen", "lanes/2", "", "..", "a\nb"):
        for act in (copies[0].copy, lambda name: service.rename("Straßen", name)):
            with refused("name"):
                act(name=new)
    assert made(service).ask().id == 1  # the old name can be used again
    assert service.names() == ["Straßen", "lanes", "lanes/2"]


# ---------------------------------------------------------------- which study


def test_the_study_is_found(url: str, service: mp.RemoteStudy) -> None:
    with pytest.raises(InvalidInput, match=r"study: expected a study, .* Create one"):
        service.ask()
    made(service, "lanes").disconnect()
    for place in (url, f"{url}/", f"{url}/v1", f"{url}/v1/studies/lanes", f"{url}/studies/lanes/"):
        with connected(place) as study:
            assert study.name == "lanes"
            assert study.url == url
    made(service, "a b").disconnect()
    with connected(f"{url}/studies/a%20b") as study:
        assert study.name == "a b"
    with connected(url, study="lanes") as study:
        assert study.name == "lanes"
    with connected(url) as several:
        acts: list[Callable[[], Any]] = [several.ask, several.arms, several.verify, several.entries]
        for act in acts:
            with pytest.raises(InvalidInput, match=r"one of 'a b', 'lanes'.* Use study='a b'"):
                act()
        assert several.names() == ["a b", "lanes"]
        assert repr(several) == f"RemoteStudy(at {url})"
        with several.open("lanes") as study:
            assert study.ask().id == 1
            assert repr(study) == (
                f"RemoteStudy('lanes' at {url}, GenCTS on 4 arms: 1 asked, 0 told, 1 pending, "
                "losses from 0 to 250)"
            )
    with pytest.raises(NotFound, match="name"):
        connected(url, study="lane")
    with refused("study"):
        connected(f"{url}/studies/lanes", study="a b")


def test_keys_open_what_they_are_for(tmp_path: Path) -> None:
    store = tmp_path / "trucks.db"
    for name in ("lanes", "ships"):
        new_study(store_at(store), name).disconnect()
    whole = keys.create(store, "manage").token
    night = keys.create(store, "play", study="ships")
    eyes = keys.create(store, "read", study="ships").token
    with serving(store) as url:
        with connected(url, key=night.token) as study:
            assert study.name == "ships"
            assert study.names() == ["ships"]
            assert study.ask(key="k").id == 1
            entry = [*study.entries()][-1]
            assert entry.record.header["by"] == night.row.id
            with refused("key"):
                study.open("lanes")
            with refused("key"):
                study.delete("ships")
        with connected(url, key=eyes) as study:
            assert study.pending()[0].key == "k"
            with pytest.raises(
                InvalidInput,
                match="a key with the permission play, got one with the permission read",
            ):
                study.ask()
        with connected(url, key=whole) as service:
            assert service.names() == ["lanes", "ships"]
            with pytest.raises(InvalidInput, match="Use study="):
                service.ask()
        for wrong in (None, whole[:-1], whole[:-1] + "_", "mp_"):
            with pytest.raises(InvalidInput) as caught:
                connected(url, key=wrong)
            assert caught.value.argument == "key"
            assert whole[:-1] not in str(caught.value)
        keys.revoke(store, night.row.id)
        with pytest.raises(InvalidInput, match="key: expected a valid API key"):
            connected(url, key=night.token)


def test_a_key_is_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, shown = tmp_path / "trucks.db", []
    for name in ("lanes", "ships"):
        new_study(store_at(store), name).disconnect()
    key = keys.create(store, "play", study="lanes").token
    caplog.set_level(logging.DEBUG)
    with serving(store) as url, connected(url, key=key) as study:
        shown += [repr(study), str(vars(study)), str(vars(study._client))]
        acts: list[Callable[[], Any]] = [
            lambda: study.open("ships"),
            lambda: study.tell(9, {}),
            lambda: study.ask(key=""),
        ]
        for act in acts:
            with pytest.raises(InvalidInput) as caught:
                act()
            shown.append(str(caught.value))
    study._client.options = study._client.options._replace(patience=0.0)
    with pytest.raises(mp.StoreError) as failed:
        study.ask()
    shown += [str(failed.value), repr(study), caplog.text]
    assert "/v1/studies/lanes" in caplog.text
    assert not [text for text in shown if key in text or key[-43:] in text]


# ---------------------------------------------------------------- history


def test_files_are_those_of_the_study_itself(
    study: mp.RemoteStudy, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_study, "LARGE_ROWS", 3)
    monkeypatch.setattr(remote_study, "ROWS", 2)
    ask_and_tell(study, 5)
    study.learn_table({"arm": ["Lyon->north"], "round": [1], "loss": [np.nan]}, key="ü")
    study.ask(exclude=["Lyon->south"])
    with mp.Study.open("lanes", store=MEMORY) as local:
        contents: list[dict[str, Any]] = [{}, {"plays": True}, {"plans": True}, {"wide": True}]
        for content in contents:
            for suffix in ("csv", "jsonl", "parquet"):
                mine, other = tmp_path / f"mine.{suffix}", tmp_path / f"other.{suffix}"
                steps: list[int] = []
                rows = local.export(other, **content)
                assert study.export(mine, **content, progress=steps.append) == rows
                assert mine.read_bytes() == other.read_bytes()
                assert steps == [*range(1, rows + 1)]
        for wide in (False, True):
            assert study.plans(wide=wide).equals(local.plans(wide=wide))
            for one, name in ((study, "mine.xlsx"), (local, "other.xlsx")):
                one.export(tmp_path / name, wide=wide)
            mine_read, other_read = (
                pd.read_excel(tmp_path / f"{name}.xlsx", sheet_name=None)
                for name in ("mine", "other")
            )
            assert [*mine_read] == [*other_read]
            for sheet in [*mine_read][:3]:  # the summary has the time of the export
                assert mine_read[sheet].equals(other_read[sheet])
        entries = [entry.digest for entry in local.entries()]
        assert [entry.digest for entry in study.entries()] == entries
        for start in (1, 4, len(entries) - 1, len(entries), len(entries) + 5):
            assert [entry.digest for entry in study.entries(start)] == entries[start:]
        for chunk in (1, 4, 6, 7):
            pairs = zip(study.plays(chunk=chunk), local.plays(chunk=chunk), strict=True)
            assert all(mine.equals(other) for mine, other in pairs)
        assert study.backup(tmp_path / "copy.db") == len(entries)
        with mp.Study.open("lanes", store=tmp_path / "copy.db") as copy:
            assert copy.head == local.head == study.head
            assert copy.verify().ok
            assert tables(copy) == tables(local) == tables(study)
        with refused("path"):
            study.backup(tmp_path / "copy.db")
        assert study.verify() == local.verify()


def test_an_entry_that_was_changed_on_the_way_is_noticed(
    study: mp.RemoteStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_and_tell(study, 2)
    pages = study._client.pages

    def changed(path: str, params: Any) -> Any:
        for page in pages(path, params):
            page[3]["content"]["units"] += 1
            yield page

    monkeypatch.setattr(ServiceClient, "pages", lambda link, *given: changed(*given))
    with pytest.raises(InvalidInput, match="entry 3"):
        study.export(tmp_path / "journal.jsonl")
    with pytest.raises(InvalidInput, match="entry 3"):
        study.backup(tmp_path / "copy.db")
    assert [*tmp_path.iterdir()] == []


def test_changes_are_seen(study: mp.RemoteStudy) -> None:
    seen = study.watch()
    assert next(seen) == 0
    with study.open("lanes") as other:
        other.ask()
    assert next(seen) == 1
    study.ask()
    assert next(seen) == 2
    study.delete("lanes")
    with pytest.raises(NotFound):
        next(seen)


# ---------------------------------------------------------------- threads and processes


def test_a_handle_may_be_pickled_and_forked(study: mp.RemoteStudy) -> None:
    copy = pickle.loads(pickle.dumps(study))
    assert (copy.name, copy.ask(key="a").plan) == ("lanes", study.ask(key="a").plan)
    copy.disconnect()
    assert copy.ask(key="b").id == 2  # opens a connection again

    def work(number: int) -> None:
        for k in range(4):
            play = study.ask(key=f"{number} {k}")
            study.tell(play.id, euros(play))

    in_processes(3, work)
    assert study.plays()["id"].tolist() == [*range(1, 15)]
    assert study.open_plays == 2
    assert study.verify().ok
    copy.disconnect()


def test_threads_may_share_a_handle(study: mp.RemoteStudy) -> None:
    def work(number: int) -> None:
        for k in range(6):
            play = study.ask(key=f"{number} {k}")
            _ = play.expected, study.arms(), len(study.plays()), study.asked
            study.tell(play.id, euros(play), key=f"{number} {k}")
            if k == 3:
                study.disconnect()  # those who are pending for an answer get it

    in_threads(4, work)
    assert sorted(study.plays()["id"]) == [*range(1, 25)]
    assert study.verify().ok


def test_what_is_known_is_not_sent_again(study: mp.RemoteStudy) -> None:
    first = study.ask()
    study.tell(first.id, euros(first))
    statuses: list[int] = []
    client = study._client._opened().client
    client.event_hooks = {"response": [lambda answer: statuses.append(answer.status_code)]}
    before = study.arms(), study.arms(0.5), study.asked, study.clipped
    after = study.arms(), study.arms(0.5), study.loss_range, study.drift(), study.drift()
    assert statuses == [200, 200, 200, 304, 304, 304, 304, 200, 304]
    assert before[0].equals(after[0])
    assert not before[0].equals(after[1])
    after[0].loc[0, "mean"] = 1.0  # what is remembered is not what was given
    assert study.arms().equals(before[0])
    play = study.ask()
    study.tell(play.id, euros(play))
    assert study.asked == 2
    assert not study.arms().equals(before[0])


def test_plays_are_named_by_id_or_key(url: str, study: mp.RemoteStudy) -> None:
    """A text is a key in Python; in a path, digits are an id if such a play exists."""
    one, two, three = (study.ask(key=key) for key in ("2", "a/b?ü", ".."))
    assert study.tell("2", euros(one)).id == one.id
    assert study.close("..", key="none").id == three.id
    path = f"{url}/v1/studies/lanes/plays/"
    found = [httpx.get(path + text).json()["id"] for text in ("2", "2?by=key", "a%2Fb%3F%C3%BC")]
    assert found == [two.id, one.id, two.id]
    assert httpx.get(path + "7").status_code == 404
    study.ask(key="7")
    assert httpx.get(path + "7").json()["key"] == "7"
    study.cancel("a/b?ü")
    for name in ("no", "x" * 300, "", "\0", "\ud800"):
        with pytest.raises(NotFound):
            study.tell(name, {})


def test_a_correction_that_is_sent_again_is_answered_the_same(
    url: str, study: mp.RemoteStudy
) -> None:
    play = study.ask(key="today")
    study.tell("today", euros(play, more=90.0))
    body, key = {"losses": euros(play, more=1.0)}, {"Idempotency-Key": "c-1"}
    path, entries = f"{url}/v1/studies/lanes/plays/today", study.head.number
    answers = [httpx.post(f"{path}/correct", json=body, headers=key).json() for _ in "12"]
    assert answers[0] == answers[1]
    answers = [httpx.post(f"{path}/retract", headers=key).status_code for _ in "12"]
    assert answers == [204, 204]
    assert study.head.number == entries + 2
    body = {"losses": euros(play, more=2.0)}
    assert httpx.post(f"{path}/correct", json=body, headers=key).status_code == 409
