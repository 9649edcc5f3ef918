"""Results as plain data: they are read as they were written, and their schemas have all fields."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

from multiplay import (
    AtMost,
    Baseline,
    BaselineReport,
    Budget,
    Constraint,
    Number,
    PriceList,
    PromiseReport,
    Study,
    SwitchingCost,
    SwitchingReport,
)
from multiplay import Features as Declared
from multiplay._support.csv_format import CsvFormat
from multiplay._support.words import Words
from multiplay.learner.logged_data import TableCheck, TableProblem
from multiplay.learner.plays import (
    Estimate,
    PendingPlay,
    Plan,
    Receipt,
    Remaining,
    Untried,
    Why,
    WhyRow,
)
from multiplay.savings import Evidence, Savings, WeekSavings
from multiplay.service.api import schemas
from multiplay.service.api.class_schemas import of_classes
from multiplay.service.api.routes import OPERATIONS
from multiplay.studies import results, wire
from multiplay.studies.imports import Import
from multiplay.studies.replica import Verified
from multiplay.studies.results import fields_of, of_plain, to_plain

EXPECTED, UNKNOWN = Estimate(12.5, 10.0, 15.0), Estimate(nan, nan, nan)
ROW = WhyRow("air", 2, 1, 5.0, nan, nan, 3, "to learn")
WORDS = Words("EUR", "box", "lane", "week")
PLAN, ACTION = {"air": 2, "sea": 1}, np.array([2, 1])
DAY = datetime(2026, 3, 1, tzinfo=UTC)
PROBLEM = TableProblem(3, "loss", "'x'", "is not a number")
WEEK, EVIDENCE = WeekSavings("2026-03-02", 5, 12.0, nan, nan), Evidence("air", 3, 4, 5, "")
SAVED = Savings(9.0, nan, 12.0, 0.1, (WEEK,), (EVIDENCE,), thin=0.5, agrees=True, words=WORDS)
CO2 = AtMost(40, {"*": 1}, plays=5, name="CO2")
PROMISE = ("CO2", CO2, 1.5, 2.0, 1.0, 3.0, 0.5, "sure", 4, 0.0)
BASELINE = Baseline(PriceList({"air": 3.5, "type": 2.0}), 0.05, sure=0.9, per="week")
UNTRIED = Untried(("sea",), 95.0, 310.0, 140.0, 0.125)
WHY = replace(
    Why((ROW,), EXPECTED, UNKNOWN, 2.5, WORDS, "max", PLAN, {"CO2": 0.5}, True, 2, 3.0),
    untried=UNTRIED,
    asked=DAY.timestamp(),
)
PLAY = PendingPlay(
    *(3, ACTION, PLAN, "Monday", lambda: UNKNOWN, lambda: WHY, True, lambda: WORDS),
    *({"air": 1, "sea": 2}, True, 2.5, {"CO2": 0.5}, True, 1.5, True),
)
GIVEN: dict[type, dict[str, Any]] = {  # arguments that are no part of plain data
    Plan: {"_expect": lambda: UNKNOWN},
    PendingPlay: {"expect": lambda: UNKNOWN, "why": lambda: WHY},
    TableCheck: {"format": CsvFormat("utf-8", ";", ",")},
}
RESULTS = [
    EXPECTED,
    UNKNOWN,
    ROW,
    UNTRIED,
    WHY,
    Why((), EXPECTED, EXPECTED, 0.0, WORDS, "min"),
    Plan(ACTION, PLAN, lambda: UNKNOWN),
    PLAY,
    PendingPlay(1, ACTION, PLAN, None, lambda: UNKNOWN, lambda: WHY),
    Receipt(None, 3, 1, 2, True, False, ("rail",), 4, 5),
    Import("march.csv", DAY, 213, 21, 5120, 2, 29820.5, DAY, DAY, False),
    Import("table 7", None, 0, 0, 0, 0, 0.0, None, None, True),
    Remaining(3, 12),
    BaselineReport("baseline", BASELINE, -3.5, 2.0, 1.0, 4, 1),
    SwitchingReport("switching cost", SwitchingCost(15), 3, 45.0),
    PromiseReport(*PROMISE),
    PROBLEM,
    TableCheck(
        3, 1, ("air",), (), (PROBLEM,), DAY, None, 5.0, GIVEN[TableCheck]["format"], 1, 2, 1
    ),
    Verified(5, 2, ("entry 3 differs",), 1, ("HiGHS 1.7", "HiGHS 1.8")),
    Verified(5, 2, ()),
    WEEK,
    EVIDENCE,
    SAVED,
    WORDS,
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda one: type(one).__name__)
def test_result_is_read_as_it_was_written(result: Any) -> None:
    """Through JSON, with fields of a newer service, every result comes back."""
    kind: Any = type(result)
    plain = to_plain(result)
    sent = json.loads(json.dumps(plain, allow_nan=False))
    assert sent == plain  # no tuples
    again = of_plain(kind, sent | {"of a newer service": 1}, **GIVEN.get(kind, {}))
    assert isinstance(again, kind)
    assert to_plain(again) == plain
    for one in fields_of(kind):
        values = [getattr(each, one.attribute) for each in (result, again)]
        if one.is_argument:
            assert type(values[0]) is type(values[1]), one.name
            np.testing.assert_equal(values[1], values[0])


@pytest.mark.parametrize("result", RESULTS, ids=lambda one: type(one).__name__)
def test_schema_has_what_is_sent(result: Any) -> None:
    """The model of a response has the same names, and accepts what is sent."""
    model, plain = schemas.model_of(type(result)), to_plain(result)
    assert [*model.model_fields] == [*plain]
    assert model.model_validate(plain, strict=True).model_dump() == plain


def test_every_response_of_a_result_is_tested() -> None:
    """The result classes that the service responds with are those above, and rows of tables."""
    assert len(OPERATIONS) > 30  # their models are made
    tables = {"Arm", "Drift", "Effect", "ArmEffect"}
    tested = {type(one) for one in RESULTS}
    assert {kind for kind in schemas.MODELS if kind.__name__ not in tables} == tested


def test_fields_that_an_older_service_does_not_send_have_defaults() -> None:
    """A client reads responses of services without the newer fields."""
    told = of_plain(Receipt, {"id": 1, "seen": 2, "missing": 0})
    assert told == Receipt(1, 2, 0)
    newer = ("gap", "baseline", "restricted", "prices", "held", "change_cost", "repeated")
    plain = {name: value for name, value in to_plain(PLAY).items() if name not in newer}
    play = of_plain(PendingPlay, plain, **GIVEN[PendingPlay])
    assert (play.gap, play.baseline, play.prices, play.change_cost) == (None, None, {}, 0.0)
    assert play.restricted is play.held is play.repeated is False
    newer_of_why = ("wanted", "prices", "held", "changed", "change_cost", "untried", "asked")
    plain = {name: value for name, value in to_plain(WHY).items() if name not in newer_of_why}
    why = of_plain(Why, plain)
    assert (why.wanted, why.prices, why.held, why.changed, why.change_cost) == ({}, {}, False, 0, 0)
    assert (why.untried, why.asked) == (None, None)


def test_numbers_that_are_not_known() -> None:
    """NaN is null, and null is NaN; a number without a decimal point stays whole."""
    assert to_plain(UNKNOWN) == {"total": None, "low": None, "high": None}
    assert all(map(isnan, of_plain(Estimate, to_plain(UNKNOWN))))
    endless = PromiseReport(*PROMISE)._replace(expected_end=inf)
    assert isnan(of_plain(PromiseReport, to_plain(endless)).expected_end)
    assert type(of_plain(PromiseReport, to_plain(endless)).constraint.limit) is int


def test_columns_of_tables_are_those_of_studies() -> None:
    """The rows of tables in plain data are the rows of the data frames of a study."""
    plans = Budget(2, [2, 2], names=["air", "sea"])
    arms = {"km": {"air": 1.0, "sea": 2.0}}
    study = Study.create(
        "columns",
        plans,
        store="memory://columns",
        loss_range=(0, 9),
        features=Declared(km=Number()),
        arm_features=arms,
    )
    study.learn({"air": 1, "sea": 1}, {"air": [3.0], "sea": [4.0]})
    tables = [
        (study.arms(), results.ARMS),
        (study.drift(), results.DRIFT),
        (study.effects(), results.EFFECTS),
        (study.effects(by="arm"), results.ARM_EFFECTS),
    ]
    for table, columns in tables:
        assert [*table.columns] == [*columns]
        again = wire.to_table(wire.of_table(table), columns)
        assert again.dtypes.equals(table.dtypes), columns


@pytest.mark.parametrize(
    "constraint",
    [
        AtMost(40, {"*": 1, "type": 2}, plays=3, until="2026-11-30", name="CO2", hard=False),
        BASELINE,
        Baseline("each day"),
        SwitchingCost(15),
    ],
)
def test_a_constraint_is_the_same_in_a_request(constraint: Constraint) -> None:
    """It is read from its plain data, and its schema has all fields."""
    plain = wire.of_constraint(constraint)
    assert wire.to_constraint("constraint", json.loads(json.dumps(plain))) == constraint
    schema = of_classes()[type(constraint).__name__]
    assert {*schema["properties"]} == {*plain}
