"""What notebooks show of objects, as IPython asks for it."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from effort import TIME_LIMIT
from examples_of_sets import SETS
from IPython.core.formatters import DisplayFormatter

from multiplay import (
    ActionSet,
    Bernoulli,
    Budget,
    Corrupted,
    GenAdaINF,
    GenCTS,
    GenLBINFV,
    Learner,
    LinTS,
    Result,
    Stochastic,
    Study,
    TimeVarying,
    Transport,
    Uniform,
    simulate,
    theory,
)
from multiplay._support.formatting import between, legible, number, percent
from multiplay.types import FloatArray

NASTY = "<script>alert('1')</script>&\"\n\x1b[31m"
COSTS = np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])
PLANS = Transport([1, 4, 5], [4, 6], names=(["Lyon", "Lille", NASTY], ["north", "south"]))
SMALL = 60_000  # letters of what a notebook keeps of an object


class Read(HTMLParser):
    """What a browser sees: tags that close each other, and the cells of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("br",):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data


def shown(thing: Any) -> Read:
    """Return what a notebook shows, after checking that it is whole, small and harmless."""
    formats, _ = DisplayFormatter().format(thing)  # type: ignore[no-untyped-call]
    html = formats["text/html"]
    read = Read(html)
    assert read.open == []
    assert "script" not in read.tags
    assert set(re.findall("background[^;]*", html)) == {"background: none"}
    assert "#fff" not in html
    assert len(html) < SMALL
    return read


def rows_of(table: Any) -> list[Any]:
    return [*table.itertuples(index=False)]


def told(learner: Any, rounds: int) -> list[list[int]]:
    """Play some rounds; return the plans."""
    plans = []
    for t in range(rounds):
        play = learner.ask(at=t)
        plans.append(play.action.tolist())
        losses = {arm: [0.1 * (t % 7)] * units for arm, units in play.plan.items()}
        learner.tell(play.id, losses, at=t)
    return plans


# ---------------------------------------------------------------- results


@pytest.fixture(scope="module")
def result() -> Result:
    world = Corrupted(before=Uniform(0, 2 * COSTS), after=Uniform(1 - 2 * COSTS, 1), at=20)
    policies = {NASTY: GenCTS(), "other": GenLBINFV()}
    return simulate(PLANS, world, policies, 3000, trials=4, seed=5)


def test_a_result_shows_what_was_run_its_summary_and_its_curves(result: Result) -> None:
    read = shown(result)
    facts = dict(row for row in read.rows if len(row) == 2)
    assert facts["set"].startswith("Transport(supply=[1, 4, 5], demand=[4, 6]")
    assert facts["environment"].startswith("Corrupted(before=Uniform, after=Uniform")
    assert (facts["rounds"], facts["trials"], facts["seed"]) == ("3000", "4", "5")
    table = {row[0]: row[1:] for row in read.rows if len(row) == 4}
    for policy, mean, low, high, time in rows_of(result.summary().reset_index()):
        assert table[legible(policy)] == [number(mean), between(low, high), number(time)]
    assert read.tags.count("svg") == 1
    assert "corruption from round 21" in read.text


def test_a_plot_is_a_picture_without_any_magic() -> None:
    run = simulate(PLANS, Stochastic(Uniform(0, 2 * COSTS)), {"A": GenCTS()}, 20, trials=2, seed=5)
    formats, _ = DisplayFormatter().format(run.plot())  # type: ignore[no-untyped-call]
    assert formats["image/png"].startswith(b"\x89PNG")


def test_pictures_of_different_results_share_no_id(result: Result) -> None:
    other = simulate(PLANS, Stochastic(Bernoulli(COSTS)), {"A": GenCTS()}, 50, trials=2)
    first, second = (set(re.findall(' id="([^"]*)"', one._repr_html_())) for one in (result, other))
    assert first
    assert not first & second


@pytest.mark.filterwarnings("ignore:all actions")  # one arm: there is one action
@pytest.mark.parametrize(("horizon", "trials"), [(1, 1), (1, 3), (60, 1)])
def test_the_smallest_results_are_shown(horizon: int, trials: int) -> None:
    one_arm = Budget(1, [1])
    world = Stochastic(Bernoulli([0.5]))
    read = shown(simulate(one_arm, world, {"only": GenCTS()}, horizon, trials))
    assert ["only", "0", "none" if trials == 1 else "0 to 0"] in [row[:3] for row in read.rows]


def test_of_many_policies_the_lowest_are_shown() -> None:
    policies = {f"policy {k}": GenCTS() for k in range(40)}
    many = simulate(Budget(1, [1, 1]), Stochastic(Bernoulli([0.1, 0.9])), policies, 60, 2)
    read = shown(many)
    listed = [row[0] for row in read.rows if row[0].startswith("policy ")]
    assert listed == many.ranked[: len(listed)]
    assert f"And {40 - len(listed)} more policies" in read.text
    assert "The 8 policies that end lowest." in read.text


# ---------------------------------------------------------------- learners, studies, plays


@pytest.mark.parametrize("policy", [GenCTS(), GenCTS(discount=0.9), GenLBINFV(), LinTS()])
def test_a_learner_shows_the_beliefs_that_arms_gives(policy: Any) -> None:
    learner = Learner(PLANS, policy, seed=3, loss_range=(0, 250))
    assert "0 asked, 0 told" in shown(learner).text
    told(learner, 20)
    pending = learner.ask(key="<today>")
    read = shown(learner)
    assert "21 asked, 20 told, 1 pending" in read.text
    assert [str(pending.id), "<today>"] in [row[:2] for row in read.rows]
    rows = {row[0]: row[1:] for row in read.rows if len(row) == 5}
    assert len(rows) == PLANS.d + 1  # and the head
    for arm in rows_of(learner.arms()):
        seen, mean, ends, share = rows[legible(arm.arm)]
        assert (seen, share) == (str(arm.seen), percent(arm.share))
        assert ends == between(arm.low, arm.high)
        assert mean == ("-" if np.isnan(arm.mean) else number(arm.mean))


def test_who_only_looks_changes_nothing() -> None:
    for policy in (GenCTS(), GenLBINFV(), GenAdaINF()):
        plans = []
        for looks in (False, True):
            learner = Learner(Transport([1, 4, 5], [4, 6]), policy, seed=11)
            for _ in range(5):
                if looks:
                    shown(learner)
                    shown(learner.actions)
                    shown(learner.best())
                plans.append(told(learner, 3))
        assert plans[:5] == plans[5:]


def test_what_a_play_should_cost_is_not_fixed_by_looking() -> None:
    learner = Learner(Budget(1, [1]), GenCTS(), seed=1)
    play = learner.ask()
    assert "0.5, 0 to 1" in shown(play).text
    learner.tell(play.id, [[1.0]])
    assert play.expected.total > 0.6


def test_a_play_shows_its_plan() -> None:
    learner = Learner(PLANS, GenCTS(), seed=2)
    play = learner.ask(key="<Monday>")
    read = shown(play)
    assert ["key", "<Monday>"] in read.rows
    played = [units for units in play.plan.values() if units]
    assert [int(row[1]) for row in read.rows if "->" in row[0]] == played
    assert ["expected", learner.words.estimate(*play.expected)] in read.rows
    assert ["units", "10"] in shown(learner.best()).rows


def test_a_day_without_demand_is_shown() -> None:
    learner = Learner(Transport([0, 0], [0, 0]), GenCTS())
    assert ["nothing", "0"] in shown(learner.ask()).rows
    assert "1 asked" in shown(learner).text


def test_a_study_shows_its_store_and_one_that_is_gone_too() -> None:
    study = Study.create("<lanes>", PLANS, GenCTS(), store="memory://displays")
    told(study, 2)
    read = shown(study)
    assert ["store", "memory://displays"] in read.rows
    assert "2 asked, 2 told" in read.text
    Study.delete("<lanes>", store="memory://displays")
    assert "Study <lanes>" in shown(study).text


# ---------------------------------------------------------------- sets


@pytest.mark.parametrize("actions", [*SETS, TimeVarying.example()], ids=repr)
def test_every_set_is_shown(actions: ActionSet) -> None:
    read = shown(actions)
    assert ["arms, d", str(actions.d)] in read.rows
    for symbol in ("m", "M"):
        said = [row[1] for row in read.rows if row[0].endswith(f" play, {symbol}")]
        assert said in ([], [f"at most {getattr(actions, symbol)}"] if said else [])


def test_sets_of_a_function_are_shown() -> None:
    read = shown(TimeVarying(lambda t: Transport([t, 2], [t, 2])))
    assert ["1, 2, ...", "from a function"] in read.rows


class Own(ActionSet):
    """A set of somebody else, whose oracle must not be asked by those who only look."""

    def __init__(self) -> None:
        self.n = np.array([2, 2])
        super().__init__([NASTY, "plain"])

    def oracle(self, costs: FloatArray) -> Any:
        raise AssertionError("nobody asked for a plan")

    def contains(self, action: Any) -> bool:
        raise AssertionError("nobody asked for a plan")


def test_a_set_of_others_is_shown_without_its_oracle() -> None:
    assert ["plain", "2"] in shown(Own()).rows


def test_transport_is_a_table_of_suppliers_and_demanders() -> None:
    lanes = Transport([3, 3, 2], [2, 2], slack=True, capacities=[[2, 1], [1, 2], [0, 2]])
    read = shown(lanes)
    assert ["", "d1", "d2", "supply"] in read.rows
    assert ["s3", "-", "2", "2"] in read.rows
    assert ["demand", "2", "2", ""] in read.rows
    named = shown(Transport([1], [1, 0], names=["<first>", "second"]))
    assert ["supplier 1", "<first>: 1", "second: -", "1"] in named.rows


def test_of_many_arms_some_are_shown() -> None:
    lanes = Transport([7] * 200, [7] * 200)
    assert "And 180 more suppliers. And 188 more demanders." in shown(lanes).text
    learner = Learner(Budget(5, np.ones(50_000, dtype=int)), GenCTS())
    play = learner.ask()
    assert "And 49,980 more items" in shown(learner).text
    assert "49,995 items without a unit." in shown(play).text
    assert "read .expected" in shown(play).text
    long = Budget(1, [1], names=["x" * 10**6])
    assert "xxx..." in shown(long).text


# ---------------------------------------------------------------- bounds


def test_bounds_are_shown() -> None:
    plans = Transport([1, 4, 5], [4, 6])
    bound = theory.lower_bound(plans, COSTS, theory.Gaussian(0.02))
    read = shown(bound)
    assert f"at least {number(bound.constant)} log T" in read.text
    rates = [row[2] for row in read.rows if len(row) == 3][1:]
    assert rates == [number(rate) for rate in bound.rates]
    promise = theory.gencts(theory.Instance(plans, COSTS))
    assert ["regret", f"at most {promise.formula}"] in shown(promise).rows
    world = Stochastic(Bernoulli(0.3))
    run = theory.genadainf_realised(plans, world, horizon=20, trials=2)
    means = [row[1] for row in shown(run).rows if row[0] == "bound"]
    assert means == [number(run.bound.mean())]


def test_looking_at_a_set_needs_no_figures() -> None:
    code = (
        "import sys, multiplay as mp\n"
        "plans = mp.Transport([1, 1], [2])\n"
        "assert '<table>' in plans._repr_html_()\n"
        "assert not {'matplotlib', 'pandas'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=TIME_LIMIT)
