"""Schemas of requests and responses, with examples for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from multiplay import savings
from multiplay._support import words
from multiplay._support.words import LONGEST_WORD
from multiplay.learner import allowance, logged_data, plays, promises, switching
from multiplay.learner.engine import LONGEST_KEY
from multiplay.learner.past_plans import DRIVEN
from multiplay.learner.plays import FAR
from multiplay.policies.pooledcts import DEFAULT
from multiplay.service.api import paging
from multiplay.service.api.class_schemas import of_class
from multiplay.service.api.schemas import Shown, response_of
from multiplay.service.studies.limits import (
    POLICIES,
    RULES,
    SETS,
)
from multiplay.storage.base import LONGEST_NAME
from multiplay.studies import replica, results
from multiplay.studies.commands.base import either, none_of, some_of
from multiplay.studies.commands.constraints import CO2
from multiplay.studies.commands.external import EXAMPLE_PLAN
from multiplay.studies.commands.settings import EXAMPLE_WORDS
from multiplay.studies.imports import Import
from multiplay.studies.wire import KINDS, to_plain

POLICY = to_plain("policy", DEFAULT)
MOST = 2**53  # the largest whole number that all languages represent exactly
# Without control characters, and not blank; which other characters are not printable, no pattern
# says in all languages.
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0][^\x00-\x1f\x7f-\x9f]*$"
PRINTED = {"pattern": PRINTABLE}
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Name = Annotated[Text, Field(json_schema_extra=PRINTED)]
KeyText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_KEY,
        description="The same request with the same key has the same result.",
    ),
]


def whole(value: Any) -> Any:
    """Return 3 for 3.0: JSON does not distinguish whole numbers from others."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Units = Annotated[int, Field(ge=0, le=MOST), BeforeValidator(whole)]
# RFC 3339, within FAR. Whether a month has 31 days cannot be said by a pattern.
DATE = r"^(1[789]|2[01])[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
DATE_TIME = DATE + (
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
When = Annotated[
    Annotated[float, Field(ge=-FAR, le=FAR)] | Annotated[str, Field(pattern=DATE_TIME)],
    Field(
        description="A time such as 2026-11-15T08:00:00Z, or seconds since 1970; now by default."
    ),
]


Day = Annotated[str, Field(pattern=rf"({DATE}$)|({DATE_TIME})")]


Set = Annotated[
    dict[str, Any],
    Field(
        description="The possible plans: a class of multiplay and its arguments. An optimisation "
        "model is a `Model`: its columns, rows, nonzero coefficients and arms, without `n`; the "
        "text of a model file is not accepted.",
        json_schema_extra=of_class(SETS),
    ),
]
Chosen = Annotated[dict[str, Any], Field(json_schema_extra=of_class(POLICIES))]
Declared = Annotated[
    dict[str, Any],
    Field(
        description="The features of arms and days: `Features` with its columns, each a `Number`, "
        "a `Category` or a `Flag`, and their products.",
        json_schema_extra=of_class(["Features"]),
    ),
]
FeatureValue = bool | int | float | str
Cell = FeatureValue | None
Column = Annotated[list[Cell], Field(json_schema_extra={"minItems": 1})]
FeatureName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Features = Annotated[
    dict[FeatureName, FeatureValue | dict[str, FeatureValue]],
    Field(
        description="By feature, its value for all arms, or its values by arm; `*` stands for all "
        "other arms."
    ),
]
FeaturesByArm = Annotated[
    dict[FeatureName, dict[str, FeatureValue]],
    Field(description="By feature, its value for each arm."),
]
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
Range = Pair | dict[str, Pair]
UnitsByArm = dict[str, Units] | list[Units]
Loss = float | None
LossesByArm = dict[str, float | list[Loss] | None] | list[float | list[Loss] | None] | float
Missing = Literal["refuse", "ignore"]
Seconds = Annotated[float, Field(gt=0, le=1e6)]
Level = Annotated[float, Field(gt=0, lt=1)]
Share = Annotated[float, Field(gt=0, le=1e6)]

TRANSPORT = {
    "type": "Transport",
    "supply": [2, 1],
    "demand": [1, 2],
    "names": [["Lyon", "Lille"], ["north", "south"]],
}
COLUMNS = {
    "type": "Features",
    "columns": {
        "km": {"type": "Number", "centre": 300, "scale": 100, "unit": "km"},
        "weekday": {"type": "Category", "levels": ["Mon", "Tue", "Wed", "Thu", "Fri"]},
        "rain": {"type": "Flag"},
    },
    "products": [["km", "rain"]],
}
DAY = {"weekday": "Tue", "rain": {"Lyon->south": True, "*": False}}
EXPECTED = {"total": 375.0, "low": 120.5, "high": 629.5}
WHEN = "2026-11-15T08:00:00.000000+00:00"


REPORT: dict[str, Any] = {"name": "CO2", "constraint": CO2, "used": 12_300.0}
REPORT |= {"expected_end": 39_800.0, "low": 39_100.0, "high": 40_000.0, "price": 0.31}
REPORT |= {"holds": "sure", "left_plays": 15, "external": 0.0}


class Body(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(*rules: dict[str, Any], **fields: Any) -> ConfigDict:
    """Return the configuration of a model with an example, and rules about several fields."""
    also: Any = {"allOf": [*rules]} if rules else {}
    return ConfigDict(json_schema_extra={"examples": [fields], **also})


# ------------------------------------------------------------ query parameters


NEXT = "`next` of the previous page; none for the first."


class PageQuery(BaseModel):
    """A page of a list."""

    cursor: str | None = Field(default=None, pattern=paging.NUMBER, description=NEXT)
    limit: int = Field(default=100, ge=1, le=1000, description="The largest number of items.")


class PlaysQuery(PageQuery):
    """A page of the list of plays."""

    plans: bool = Field(default=False, description="Whether plays have their plan and losses.")
    external: bool = Field(
        default=False,
        description="The external plans and imported days instead of plays, in order of time.",
    )


class PlayQuery(BaseModel):
    """The kind of name in the path."""

    by: Literal["key"] | None = Field(
        default=None,
        description="`key`: the play in the path is a key, also if it consists of digits.",
    )


class ExportQuery(BaseModel):
    """A file of plans."""

    format: Literal["xlsx", "csv", "jsonl"] = Field(
        default="xlsx",
        description="A workbook with plans, bills, arms and a summary; or the plans as CSV or JSON "
        "lines.",
    )
    wide: bool = Field(
        default=False, description="Whether a plan is one row, with a column for each arm."
    )


class StudiesQuery(PageQuery):
    """A page of the list of studies."""

    cursor: str | None = Field(default=None, max_length=1100, pattern=paging.NAME, description=NEXT)
    prefix: str = Field(
        default="", max_length=LONGEST_NAME, description="The text with which the names begin."
    )


class EntriesQuery(PageQuery):
    """A page of the journal."""

    start: int = Field(
        default=0, ge=0, le=MOST, description="The number of the first entry, without a cursor."
    )


# ------------------------------------------------------------ requests


Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD, json_schema_extra=PRINTED)]
CurrencyWord = Annotated[
    str, Field(max_length=LONGEST_WORD, json_schema_extra={"pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"})
]


class GivenWords(Body):
    """Words in which plans and costs are shown; nouns in the singular."""

    model_config = example(**EXAMPLE_WORDS)

    currency: CurrencyWord | None = Field(default=None, description="The unit of costs.")
    unit: Word | None = Field(default=None, description="A unit of a plan.")
    arm: Word | None = Field(default=None, description="An arm.")
    round: Word | None = Field(default=None, description="A round.")


Constraint = Annotated[
    dict[str, Any],
    Field(
        description="What the plans must keep or pay: a promise over a period, a baseline with an "
        "allowance, or a switching cost; a class of multiplay and its arguments. In `of`, a name "
        "counts before a pattern (`Lyon->*`), the last pattern that fits decides, and `*` is for "
        "all other arms. The rule `each day` means that every ask has its own baseline.",
        json_schema_extra=of_class(KINDS),
    ),
]


class GivenReports(Body):
    """The treatment of losses outside their range, and of units that a final report leaves out."""

    outside: Literal["refuse", "clip", "grow"] | None = Field(
        default=None, description="By default `grow` without a range, otherwise `refuse`."
    )
    missing: Missing = "refuse"


class NewStudy(Body):
    """A study to create."""

    model_config = example(
        either(none_of("arm_features"), some_of("features")),
        name="lanes",
        actions=TRANSPORT,
        policy=POLICY,
        loss_range=[0, 250],
        seed=7,
    )

    name: Name
    actions: Set
    policy: Chosen | None = Field(
        default=None,
        description="The policy: a class of multiplay and its arguments. By default `PooledCTS` "
        "that follows changes; with features, `FeatureCTS` that does.",
    )
    loss_range: Range | None = Field(
        default=None,
        description="The range of the loss of a unit, or of its reward if the set has the sense "
        "`max`: [low, high], or ranges by arm.",
    )
    reports: GivenReports = GivenReports()
    varying_set: bool = False
    features: Declared | None = None
    arm_features: FeaturesByArm | None = None
    words: GivenWords = GivenWords()
    constraints: list[Constraint] = Field(
        default=[], description="What the plans must keep or pay, any of them together."
    )
    like: Text | Annotated[list[Text], Field(min_length=1)] | None = Field(
        default=None,
        description="Names of studies, or patterns such as `west/*`: the new study expects costs "
        "like those of their arms. Needs a key for all studies.",
    )
    seed: Units = 0
    key: KeyText | None = None


class NewName(Body):
    """The new name of a study."""

    model_config = example(name="lanes of 2026")

    name: Name


Round = Annotated[
    Units | Annotated[str, Field(pattern=DATE_TIME)],
    Field(description="The number of a round, or a time such as 2026-11-15T08:00:00Z."),
]


class TableColumns(Body):
    """The names of the columns of the user's table, for messages."""

    arm: Annotated[list[Text], Field(min_length=1)] = ["arm"]
    round: Text = "round"
    loss: Text = "loss"
    id: Text = "id"


class TableRows(Body):
    """Logged data: one entry of each list for each unit."""

    model_config = example(
        arm=["Lyon->north", "Lille->south"], round=["2025-11-03"] * 2, loss=[120.0, None]
    )

    arm: Column | Annotated[list[Column], Field(min_length=1)] = Field(
        description="The arm of each unit; or several lists, whose texts are joined: "
        '`[["Lyon"], ["north"]]` for `Lyon->north`.'
    )
    round: Column = Field(
        description="The round of each unit: a date, which also sets the time, or a label."
    )
    loss: Column
    id: Column | None = Field(
        default=None, description="The id of each unit, such as the number of its invoice."
    )
    features: dict[FeatureName, list[Cell]] = Field(
        default={}, description="By feature, its value for each unit."
    )
    columns: TableColumns | None = None
    row: Units | list[Units] = Field(
        default=0, description="The number of the first row, or of each, for messages."
    )
    day_first: bool | None = Field(
        default=None, description="Whether `03/04/2026` is in April, if no date shows it."
    )


class Table(TableRows):
    """Logged data to learn from."""

    model_config = example(
        arm=["Lyon->north", "Lille->south"],
        round=["2025-11-03"] * 2,
        loss=[120.0, None],
        key="2025",
    )

    skip_bad: bool = Field(
        default=False, description="Learn from the other rows if some have problems."
    )
    again: Literal["skip", "add", "refuse"] = Field(
        default="skip", description="What to do with rows that were learned before."
    )
    source: Text | None = Field(
        default=None, description="The name of the table, for the list of imports and `retract`."
    )
    key: KeyText | None = None
    at: When | None = None


Rule = Annotated[
    dict[str, Any],
    Field(
        description="A rule: a class of multiplay and its arguments.",
        json_schema_extra=of_class(RULES),
    ),
]


class PlanOfKey(Body):
    """A plan for the play with a key; arms that are left out have no units."""

    key: KeyText
    plan: dict[str, Units]


class GivenPlans(Body):
    """Plans by the keys of plays."""

    plans: Annotated[list[PlanOfKey], Field(min_length=1)]


def kind_of_versus(given: Any) -> str:
    """Return which kind of ``Versus`` is given: plans have the key ``plans``, and no ``type``."""
    if isinstance(given, str):
        return DRIVEN
    plans = isinstance(given, dict) and "plans" in given and "type" not in given
    return "by key" if plans or isinstance(given, GivenPlans) else "of class"


Versus = Annotated[
    Annotated[GivenPlans, Tag("by key")]
    | Annotated[Literal["driven"], Tag(DRIVEN), Field(description="What imported days have.")]
    | Annotated[
        dict[str, Any],
        Tag("of class"),
        Field(
            description="A rule; or another policy, whose plays are then simulated.",
            json_schema_extra=of_class([*RULES, *POLICIES]),
        ),
    ],
    Discriminator(kind_of_versus),
]


# ------------------------------------------------------------ responses


Estimate = response_of(
    plays.Estimate,
    example(**EXPECTED),
    description="The expected total loss of a plan, with an interval; null where it is unknown.",
)
Plan = response_of(
    plays.Plan,
    example(plan=EXAMPLE_PLAN, action=[*EXAMPLE_PLAN.values()], expected=EXPECTED),
    description="Units by arm, the same in the order of the arms, and the expected loss.",
)
Play = response_of(
    plays.PendingPlay,
    example(
        id=1,
        key="2026-11-15",
        truncated=False,
        gap=None,
        plan=EXAMPLE_PLAN,
        action=[*EXAMPLE_PLAN.values()],
        expected=EXPECTED,
        baseline=None,
        explores=None,
        restricted=False,
        prices={"CO2": 0.31},
        held=False,
        change_cost=0.0,
        repeated=False,
    ),
    name="Play",
    description="A play; its losses are reported by its id.",
)
Words = response_of(
    words.Words,
    example(**EXAMPLE_WORDS),
    description="The words in which plans and costs are shown.",
)
Why = response_of(
    plays.Why,
    example(
        text="1 truck on Lyon->south to learn: 24 bills so far, 132 to 200 EUR; expected extra "
        "cost of learning today 35 EUR.",
        explores=True,
        extra=35.0,
        expected=EXPECTED,
        best={"total": 340.0, "low": 110.5, "high": 569.5},
        rows=[
            {
                "arm": "Lyon->south",
                "units": 1,
                "best_units": 0,
                "mean": 166.0,
                "low": 132.0,
                "high": 200.0,
                "seen": 24,
                "reason": "to learn",
            }
        ],
        words=EXAMPLE_WORDS,
        sense="min",
        wanted={},
        prices={},
        held=False,
        changed=0,
        change_cost=0.0,
        promise_first=False,
        asked=None,
        untried=None,
    ),
    description="Why a play differs from the best plan, by present beliefs.",
)
Receipt = response_of(
    plays.Receipt,
    example(
        id=1, seen=3, missing=0, clipped=0, repeated=False, final=True, added=[], skipped=0, known=0
    ),
)
TableCheck = response_of(
    logged_data.TableCheck,
    example(
        rows=2,
        rounds=1,
        arms=["Lyon->north", "Lille->south"],
        added=[],
        problems=[],
        first="2025-11-03T00:00:00+00:00",
        last="2025-11-03T00:00:00+00:00",
        total=120.0,
        missing=1,
        known=0,
        changed=0,
    ),
    description="What a table contains, before it is learned.",
)


class Ended(BaseModel):
    """The ids of the plays that were ended."""

    model_config = example(plays=[1, 2])

    plays: list[int]


Remaining = response_of(
    plays.Remaining,
    example(since=12, units=9),
    description="The first round whose reports count, and the number of their units.",
)


class PlayRow(BaseModel):
    """A play and its results."""

    id: int
    key: str | None
    status: Literal["pending", "told", "cancelled", "external"]
    asked: str | None
    told: str | None
    units: int
    seen: int
    expected: float | None
    realised: float | None
    clipped: int


class OnePlay(PlayRow):
    """A play, its results, its plan, and the losses that were told of it.

    The losses of an arm are those of its units, null where one is missing, or their total.
    """

    plan: dict[str, int]
    losses: dict[str, list[float | None] | float]
    prices: dict[str, float] = Field(description="The prices of promises.")
    held: bool = Field(description="Whether a promise changed the plan beyond its price.")


class Effects(BaseModel):
    """Effects of features or arms; without intervals if the features do not explain the losses."""

    model_config = example(
        items=[
            {
                "feature": "km",
                "per": "100 km",
                "effect": 31.2,
                "low": 27.1,
                "high": 35.3,
                "changes_plans": True,
                "text": "each 100 km costs 31.2 (27.1 to 35.3)",
            }
        ],
        misfit="",
    )

    items: list[Annotated[results.Effect, Shown]] | list[Annotated[results.ArmEffect, Shown]]
    misfit: str = Field(description="What the features do not explain; empty if nothing.")


response_of(savings.WeekSavings, name="SavingsWeek")
Savings = response_of(
    savings.Savings,
    description="What plays saved against a rule on the same days, in the unit of the study.",
)


class Study(BaseModel):
    """A study."""

    name: str
    summary: str
    loss_range: str
    words: Annotated[words.Words, Shown]
    actions: dict[str, Any]
    policy: dict[str, Any]
    features: dict[str, Any] | None
    versus: dict[str, Any] | None = Field(description="The rule that plays are compared with.")
    constraints: list[dict[str, Any]] = Field(
        description="The constraints that count now; `GET …/constraints` says what became of them."
    )
    promised: list[str] = Field(description="The names of all promises so far.")
    arms: list[str]
    asked: int
    pending: int
    clipped: int
    entries: int
    digest: str = Field(description="The digest of the last entry, which covers all entries.")


BaselineReport = response_of(
    allowance.BaselineReport,
    example(
        name="baseline",
        constraint={"type": "Baseline", "rule": {"type": "InProportion"}, "allowance": 0.03},
        spent=-2310.0,
        left=3120.0,
        sure_of=2400.0,
        days=14,
        restricted=5,
    ),
    description="How much of an allowance is left, by what is believed now, in the unit of the "
    "study.",
)
SwitchingReport = response_of(
    switching.SwitchingReport,
    example(
        name="switching cost",
        constraint={"type": "SwitchingCost", "cost": 15.0},
        changed=12,
        spent=180.0,
    ),
)
PromiseReport = response_of(promises.PromiseReport, example(**REPORT))


class Imports(BaseModel):
    """The tables of logged data that were learned."""

    model_config = example(
        items=[
            {
                "name": "march.csv",
                "at": "2026-04-01T08:00:00+00:00",
                "units": 213,
                "rounds": 21,
                "known": 5120,
                "skipped": 0,
                "total": 29820.0,
                "first": "2026-03-01T00:00:00+00:00",
                "last": "2026-03-31T00:00:00+00:00",
                "retracted": False,
            }
        ]
    )

    items: list[Annotated[Import, Shown]]


class ConstraintReports(BaseModel):
    """What became of all constraints so far."""

    model_config = example(items=[REPORT])

    items: list[
        Annotated[allowance.BaselineReport, Shown]
        | Annotated[switching.SwitchingReport, Shown]
        | Annotated[promises.PromiseReport, Shown]
    ]


class StudyName(BaseModel):
    """The name of a study."""

    name: str


class Entry(BaseModel):
    """An entry of the journal; arrays are a NumPy archive in base64."""

    number: int
    last: int
    kind: str
    key: str | None
    play: int | None
    at: float
    time: str
    content: dict[str, Any]
    arrays: str
    digest: str


Verified = response_of(
    replica.Verified,
    example(entries=3, plays=1, problems=[], unchecked=0, solvers=None, ok=True),
    description="The result of a replay of the journal.",
)


class Key(BaseModel):
    """The key of this request: null where the service is open."""

    model_config = example(id="4f2a91c07b3e", name="night job", study="lanes", can="play")

    id: str | None
    name: str | None
    study: str | None
    can: Literal["read", "play", "manage"]


class Studies(BaseModel):
    """Names of studies, and the cursor of the next page."""

    items: list[StudyName]
    next: str | None


class Copied(BaseModel):
    """A copy of a study: its name, and the number of its entries."""

    name: str
    entries: int


class Pending(BaseModel):
    """Plays without a final report, oldest first, and the cursor of the next page."""

    items: list[Annotated[plays.PendingPlay, Shown]]
    next: str | None


class Plays(BaseModel):
    """Plays, oldest first, and the cursor of the next page."""

    items: list[OnePlay | PlayRow]
    next: str | None


class Arms(BaseModel):
    """All arms of the study, in all its sets."""

    items: list[Annotated[results.Arm, Shown]]
    misfit: str = Field(
        default="", description="What the features do not explain; empty if nothing."
    )


class Drifts(BaseModel):
    """Changes of arms; empty if there is none."""

    items: list[Annotated[results.Drift, Shown]]


class Entries(BaseModel):
    """Entries of the journal, oldest first, and the cursor of the next page."""

    items: list[Entry]
    next: str | None


class Problem(BaseModel):
    """A problem (RFC 9457): the argument, what was expected, what was given, and what to do."""

    model_config = example(
        type="urn:multiplay:invalid-input",
        title="Invalid input",
        status=422,
        detail="losses['Lyon->north']: expected numbers from 0 to 250, got 310. Check the unit.",
        instance="urn:request:6f1d2c",
        argument="losses['Lyon->north']",
        expected="numbers from 0 to 250",
        got="310",
        hint="Check the unit.",
    )

    type: str
    title: str
    status: int
    detail: str
    instance: str
    argument: str | None = None
    expected: str | None = None
    got: str | None = None
    hint: str | None = None
