"""Schemas of requests and responses, with examples for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from multiplay._support.words import LONGEST_WORD
from multiplay.learner.engine import LONGEST_KEY
from multiplay.learner.plays import FAR
from multiplay.policies.bootstrapcts import FOLLOWING
from multiplay.service.api import paging
from multiplay.service.api.class_schemas import of_class
from multiplay.service.studies.limits import (
    MOST_AHEAD,
    MOST_PLAYS,
    MOST_PROMISES,
    POLICIES,
    RULES,
    SETS,
)
from multiplay.storage.base import LONGEST_NAME
from multiplay.studies.wire import to_plain

POLICY = to_plain("policy", FOLLOWING)
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
PLAN = {"Lyon->north": 1, "Lyon->south": 1, "Lille->north": 0, "Lille->south": 1}
LOSSES = {"Lyon->north": [120.0], "Lyon->south": [95.0], "Lille->south": 310.5}
COLUMNS = {
    "type": "Features",
    "columns": {
        "km": {"type": "Number", "centre": 300, "scale": 100, "unit": "km"},
        "weekday": {"type": "Category", "levels": ["Mon", "Tue", "Wed", "Thu", "Fri"]},
        "rain": {"type": "Flag"},
    },
    "products": [["km", "rain"]],
}
KM = {"km": {"Lyon->north": 450, "Lyon->south": 120, "Lille->north": 90, "Lille->south": 700}}
DAY = {"weekday": "Tue", "rain": {"Lyon->south": True, "*": False}}
EXPECTED = {"total": 375.0, "low": 120.5, "high": 629.5}
WHEN = "2026-11-15T08:00:00.000000+00:00"


REPORT: dict[str, Any] = {"name": "CO2", "limit": 40_000.0, "used": 12_300.0}
REPORT |= {"expected_end": 39_800.0, "low": 39_100.0, "high": 40_000.0, "price": 0.31}
REPORT |= {"holds": "sure", "left_plays": 15, "kind": "at most", "until": "2026-11-30"}
REPORT |= {"plays": 22, "hard": True, "external": 0.0}


class Body(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(*rules: dict[str, Any], **fields: Any) -> ConfigDict:
    """Return the configuration of a model with an example, and rules about several fields."""
    also: Any = {"allOf": [*rules]} if rules else {}
    return ConfigDict(json_schema_extra={"examples": [fields], **also})


def some_of(*names: str) -> dict[str, Any]:
    """Return the rule that one of these fields is given, or several."""
    given = {"not": {"type": "null"}}
    return {"anyOf": [{"required": [name], "properties": {name: given}} for name in names]}


def none_of(*names: str) -> dict[str, Any]:
    """Return the rule that none of these fields is given."""
    return {"properties": {name: {"type": "null"} for name in names}}


def either(*rules: dict[str, Any]) -> dict[str, Any]:
    """Return the rule that one of these rules holds, or several."""
    return {"anyOf": [*rules]}


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


class EntriesQuery(PageQuery):
    """A page of the journal."""

    start: int = Field(
        default=0, ge=0, le=MOST, description="The number of the first entry, without a cursor."
    )


class ArmsQuery(BaseModel):
    """The level of the intervals."""

    level: float = Field(default=0.95, gt=0, lt=1, description="The confidence of the intervals.")


class EffectsQuery(ArmsQuery):
    """The level of the intervals, and whose effects."""

    by: Literal["feature", "arm"] = Field(
        default="feature", description="The effects of features, or the own effects of arms."
    )


class DriftQuery(BaseModel):
    """The level of the test for drift."""

    level: float = Field(
        default=0.05, gt=0, lt=1, description="The chance that certain is ever false."
    )


# ------------------------------------------------------------ requests


Word = Annotated[str, Field(min_length=1, max_length=LONGEST_WORD, json_schema_extra=PRINTED)]
CurrencyWord = Annotated[
    str, Field(max_length=LONGEST_WORD, json_schema_extra={"pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"})
]
WORDS = {"currency": "EUR", "unit": "truck", "arm": "lane", "round": "day"}


class GivenWords(Body):
    """Words in which plans and costs are shown; nouns in the singular."""

    model_config = example(**WORDS)

    currency: CurrencyWord | None = Field(default=None, description="The unit of costs.")
    unit: Word | None = Field(default=None, description="A unit of a plan.")
    arm: Word | None = Field(default=None, description="An arm.")
    round: Word | None = Field(default=None, description="A round.")


CO2 = {"type": "AtMost", "limit": 40_000, "of": {"*": 80, "Lyon->*": 120}, "plays": 22}
CO2 |= {"until": "2026-11-30", "name": "CO2", "hard": True}
Amount = Annotated[float, Field(ge=0)]


class Promise(Body):
    """A limit on what the plays until a date use in all."""

    model_config = example(**CO2)

    type: Literal["AtMost", "AtLeast"]
    limit: Amount = Field(description="The amount of all plays together.")
    of: dict[str, Amount] = Field(
        description="What a unit of an arm uses. A name counts before a pattern (`Lyon->*`), the "
        "last pattern that fits decides, and `*` is for all other arms."
    )
    until: Annotated[str, Field(pattern=rf"{DATE}$")] | None = Field(
        default=None, description="The date until which it counts."
    )
    plays: Annotated[int, Field(ge=1, le=MOST_PLAYS), BeforeValidator(whole)] = Field(
        description="The number of plays until then."
    )
    name: Annotated[str, Field(max_length=LONGEST_NAME)] = ""
    hard: bool = Field(
        default=True, description="Whether plans keep it; false: only its price changes them."
    )


class NewStudy(Body):
    """A study to create."""

    model_config = example(
        either(none_of("losses"), none_of("rewards")),
        either(none_of("allowance", "sure", "per"), some_of("baseline")),
        either(none_of("arms"), some_of("features")),
        name="lanes",
        actions=TRANSPORT,
        policy=POLICY,
        losses=[0, 250],
        seed=7,
    )

    name: Name
    actions: Set
    policy: Chosen | None = Field(
        default=None,
        description="The policy: a class of multiplay and its arguments. By default `BootstrapCTS` "
        "that follows changes; with features, `FeatureCTS` that does.",
    )
    losses: Range | None = Field(
        default=None, description="The range of the loss of a unit: [low, high]."
    )
    rewards: Range | None = Field(
        default=None, description="The range of the reward of a unit, in place of losses."
    )
    outside: Literal["refuse", "clip"] = "refuse"
    missing: Missing = "refuse"
    changing: bool = False
    features: Declared | None = None
    arms: FeaturesByArm | None = None
    words: GivenWords = GivenWords()
    baseline: Rule | Literal["each day"] | None = Field(
        default=None,
        description="What is done today: a rule, or `each day` if every ask has its own baseline. "
        "The plans then cost at most a share more than the baseline, in total and on every day.",
    )
    allowance: Share | None = Field(
        default=None, description="That share, such as 0.03; 0.03 by default."
    )
    sure: Level | None = Field(
        default=None, description="The probability with which it is kept; 0.99 by default."
    )
    per: Literal["week"] | None = Field(
        default=None, description="`week`: the allowance starts anew every week."
    )
    promises: Annotated[list[Promise], Field(max_length=MOST_PROMISES)] = Field(
        default=[], description="What the plays until a date use in all, at most or at least."
    )
    change: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="What each unit that differs from the last plan costs."
    )
    seed: Units = 0
    key: KeyText | None = None


class NewName(Body):
    """The new name of a study."""

    model_config = example(name="lanes of 2026")

    name: Name


class Constraints(Body):
    """A set for this round, and constraints; the set of the study by default."""

    actions: Set | None = Field(default=None, description="The set of this round, if it differs.")
    at_most: dict[str, Units] | None = Field(
        default=None, description="The largest number of units, by arm."
    )
    exclude: list[str] = Field(default=[], description="Arms that are not played in this round.")
    fixed: dict[str, Units] | None = Field(
        default=None, description="The exact number of units, by arm."
    )
    features: Features | None = None


class Ask(Constraints):
    """A play to choose."""

    model_config = example(key="2026-11-15", at_most={"Lyon->north": 1})

    key: KeyText | None = None
    time_limit: Seconds | None = Field(default=None, description="Seconds to choose the play.")
    baseline: UnitsByArm | None = Field(
        default=None,
        description="The plan that you would use, for a study whose baseline is `each day`.",
    )
    ahead: Annotated[list[Set], Field(max_length=MOST_AHEAD)] | None = Field(
        default=None,
        description="The sets of the plays after this one, in order, as far as they are known, for "
        "a study with promises.",
    )
    replace: bool = Field(
        default=False,
        description="True to cancel the pending play of this key, and to choose a new one.",
    )
    at: When | None = None


class Tell(Body):
    """The losses of the units of a play."""

    model_config = example(losses=LOSSES, key="report-2026-11-15")

    losses: LossesByArm = Field(
        description="By arm, the loss of every unit (null if it was not observed), or the total."
    )
    final: bool = Field(default=True, description="False if more losses will be reported.")
    missing: Missing | None = None
    key: KeyText | None = None
    at: When | None = None


class Correct(Body):
    """The right losses of a play that was told."""

    model_config = example(losses=LOSSES, key="correction-2026-11-15")

    losses: LossesByArm = Field(
        description="All losses of the play, by arm as in a report; they replace those told before."
    )
    missing: Missing | None = None
    key: KeyText | None = None
    at: When | None = None


class End(Body):
    """A play to close, to cancel or to retract."""

    model_config = example(key="end-of-2026-11-15")

    key: KeyText | None = None
    at: When | None = None


class Expire(Body):
    """The age of plays to end."""

    model_config = example(older_than=604800)

    older_than: Annotated[float, Field(ge=0, le=1e12)] = Field(description="The age in seconds.")
    key: KeyText | None = None
    at: When | None = None


Round = Annotated[
    Units | Annotated[str, Field(pattern=DATE_TIME)],
    Field(description="The number of a round, or a time such as 2026-11-15T08:00:00Z."),
]
ArmName = Annotated[str | None, Field(description="The name of an arm; all arms by default.")]


class Forget(Body):
    """The round before which reports no longer count."""

    model_config = example(arm="Lyon->north", before=12)

    arm: ArmName = None
    before: Annotated[Round, Field(json_schema_extra={"minimum": 1})]
    key: KeyText | None = None
    at: When | None = None


class Keep(Body):
    """The round since which all reports count again; by default the last forgetting is undone."""

    model_config = example(some_of("arm", "since"), arm="Lyon->north", since=0)

    arm: ArmName = None
    since: Round | None = None
    key: KeyText | None = None
    at: When | None = None


class Learn(Body):
    """An external plan and its losses."""

    model_config = example(plan=PLAN, losses=LOSSES, key="2026-11-14")

    plan: UnitsByArm
    losses: LossesByArm
    actions: Set | None = Field(default=None, description="The set of that round, if it differs.")
    features: Features | None = None
    missing: Missing | None = None
    key: KeyText | None = None
    at: When | None = None


class TableColumns(Body):
    """The names of the columns of the user's table, for messages."""

    arm: Annotated[list[Text], Field(min_length=1)] = ["arm"]
    round: Text = "round"
    loss: Text = "loss"


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
    key: KeyText | None = None
    at: When | None = None


class Describe(Body):
    """Features of arms; values that an arm had before are replaced."""

    model_config = example(features=KM, key="distances")

    features: FeaturesByArm
    key: KeyText | None = None
    at: When | None = None


class NewPromise(Body):
    """A promise to make."""

    model_config = example(promise=CO2, key="November")

    promise: Promise
    key: KeyText | None = None
    at: When | None = None


class Release(Body):
    """The name of a promise to end."""

    model_config = example(name="CO2")

    name: Text
    key: KeyText | None = None
    at: When | None = None


class SetWords(GivenWords):
    """Words to set; the others stay as they are."""

    key: KeyText | None = None
    at: When | None = None


Rule = Annotated[
    dict[str, Any],
    Field(
        description="A rule: a class of multiplay and its arguments.",
        json_schema_extra=of_class(RULES),
    ),
]


class SetCompare(Body):
    """The rule that plays are compared with; null for none."""

    model_config = example(rule={"type": "InProportion"})

    rule: Rule | None
    key: KeyText | None = None
    at: When | None = None


class PlanOfKey(Body):
    """A plan for the play with a key; arms that are left out have no units."""

    key: KeyText
    plan: dict[str, Units]


class GivenPlans(Body):
    """Plans by the keys of plays."""

    plans: Annotated[list[PlanOfKey], Field(min_length=1)]


def kind_of_against(given: Any) -> str:
    """Return which kind of ``Against`` is given: plans have the key ``plans``, and no ``type``."""
    plans = isinstance(given, dict) and "plans" in given and "type" not in given
    return "by key" if plans or isinstance(given, GivenPlans) else "of class"


Against = Annotated[
    Annotated[GivenPlans, Tag("by key")]
    | Annotated[
        dict[str, Any],
        Tag("of class"),
        Field(
            description="A rule; or another policy, whose plays are then simulated.",
            json_schema_extra=of_class([*RULES, *POLICIES]),
        ),
    ],
    Discriminator(kind_of_against),
]


class Compare(Body):
    """What plays are compared with: a rule, a policy, or plans by key."""

    model_config = example(
        either(none_of("against"), {"properties": {"learning": {"const": False}}}),
        either(
            {"properties": {"method": {"const": "model"}}},
            {"properties": {"learning": {"const": False}}},
        ),
        against={"type": "InProportion"},
        since="2026-03-01",
    )

    against: Against | None = Field(
        default=None, description="By default the rule that was set for the study."
    )
    learning: bool = Field(
        default=False, description="Compare with the best plans known at the end instead."
    )
    since: Day | None = Field(default=None, description="The first day, such as 2026-03-01.")
    until: Day | None = Field(default=None, description="The last day, such as 2026-03-31.")
    level: Level = 0.95
    method: Literal["model", "dr", "ips"] = Field(
        default="model",
        description="`dr` (doubly robust) and `ips` need a policy that logs the means of plays.",
    )


class CompareArms(Body):
    """The features at which arms are compared, and the level of the intervals."""

    model_config = example(level=0.95)

    features: Features | None = None
    level: Level = 0.95


class Best(Constraints):
    """The set for the best plan, and constraints."""

    model_config = example(exclude=["Lyon->north"])


class Expect(Constraints):
    """A plan to estimate, which must be within the constraints."""

    model_config = example(plan=PLAN)

    plan: UnitsByArm
    level: Level = 0.95


# ------------------------------------------------------------ responses


class Estimate(BaseModel):
    """The expected total loss of a plan, with an interval; null where it is unknown."""

    model_config = example(**EXPECTED)

    total: float | None
    low: float | None
    high: float | None


class Plan(BaseModel):
    """Units by arm, the same in the order of the arms, and the expected loss."""

    model_config = example(plan=PLAN, action=[*PLAN.values()], expected=EXPECTED)

    plan: dict[str, int]
    action: list[int]
    expected: Estimate


class Play(Plan):
    """A play; its losses are reported by its id."""

    model_config = example(
        id=1,
        key="2026-11-15",
        truncated=False,
        gap=None,
        plan=PLAN,
        action=[*PLAN.values()],
        expected=EXPECTED,
        baseline=None,
        explores=None,
        restricted=False,
        prices={"CO2": 0.31},
        held=False,
        change_cost=0.0,
        repeated=False,
    )

    id: int
    key: str | None
    truncated: bool
    gap: float | None = Field(
        description="How far a truncated plan may be from the best, at the losses it was chosen "
        "for; null if the plan is not truncated, or no bound is known."
    )
    baseline: dict[str, int] | None = Field(description="The plan of the baseline; null without.")
    explores: int | None = Field(description="Units that differ from the baseline; null without.")
    restricted: bool = Field(description="Whether the allowance changed the plan of the policy.")
    prices: dict[str, float] = Field(
        description="What a unit of each promise is worth; negative for `AtLeast`."
    )
    held: bool = Field(description="Whether a promise changed the plan beyond its price.")
    change_cost: float = Field(
        description="What the units that differ from the last plan cost; 0 without such a cost."
    )
    repeated: bool = Field(
        description="Whether the same request was made before with this key: nothing has changed."
    )


class WhyRow(BaseModel):
    """An arm of a plan, beside the best plan."""

    arm: str
    units: int
    best_units: int = Field(description="Its units in the best plan.")
    mean: float | None = Field(description="The believed cost of a unit; null if unknown.")
    low: float | None
    high: float | None
    seen: int = Field(description="The number of units that were reported so far.")
    reason: Literal["", "to learn", "instead", "fixed", "closed", "at most"]


class Words(BaseModel):
    """The words in which plans and costs are shown."""

    model_config = example(**WORDS)

    currency: str
    unit: str
    arm: str
    round: str


class Why(BaseModel):
    """Why a play differs from the best plan, by present beliefs."""

    model_config = example(
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
        words=WORDS,
        sense="min",
    )

    text: str
    explores: bool = Field(description="Whether it is expected to cost more than the best plan.")
    extra: float = Field(description="What it is expected to cost more, or to bring less.")
    expected: Estimate
    best: Estimate
    rows: list[WhyRow]
    words: Words
    sense: Literal["min", "max"]


class Receipt(BaseModel):
    """The result of a report."""

    model_config = example(
        id=1, seen=3, missing=0, clipped=0, repeated=False, final=True, added=[], skipped=0
    )

    id: int | None
    seen: int
    missing: int
    clipped: int
    repeated: bool
    final: bool
    added: list[str] = Field(description="The arms that a table added.")
    skipped: int = Field(description="The number of rows of a table that were left out.")


class TableProblem(BaseModel):
    """A row of a table that cannot be learned from."""

    row: int
    column: str
    value: str
    reason: str


class TableCheck(BaseModel):
    """What a table contains, before it is learned."""

    model_config = example(
        rows=2,
        rounds=1,
        arms=["Lyon->north", "Lille->south"],
        added=[],
        problems=[],
        first="2025-11-03T00:00:00+00:00",
        last="2025-11-03T00:00:00+00:00",
        total=120.0,
        missing=1,
    )

    rows: int
    rounds: int
    arms: list[str]
    added: list[str]
    problems: list[TableProblem]
    first: str | None
    last: str | None
    total: float
    missing: int


class Ended(BaseModel):
    """The ids of the plays that were ended."""

    model_config = example(plays=[1, 2])

    plays: list[int]


class Remaining(BaseModel):
    """The first round whose reports count, and the number of their units."""

    model_config = example(since=12, units=9)

    since: int
    units: int


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


class Arm(BaseModel):
    """The statistics of an arm, in the unit of the study."""

    arm: str
    seen: int
    mean: float | None
    low: float | None
    high: float | None
    average: float | None
    spread: float
    last_seen: str | None
    share: float


class Drift(BaseModel):
    """A change of the mean loss of an arm, or of several arms at once."""

    arm: str = Field(description='The arm, or "8 of 9 arms" for a change that they share.')
    since: int = Field(description="The round after which the new mean holds.")
    before: float
    after: float
    units: int = Field(description="The number of units since then.")
    sure: float | None = Field(
        description="The probability of the change under the model; null if only the test finds it."
    )
    acted: bool = Field(description="Whether losses from before no longer count.")
    certain: bool = Field(description="Whether the test at the level finds it, without a model.")
    arms: list[str]


class Effect(BaseModel):
    """The effect of a feature on the loss of a unit, in the unit of the study."""

    feature: str = Field(description='The feature; "1" is a unit where all scaled features are 0.')
    per: str = Field(description="By how much the feature differs: the effect is per 100 km.")
    effect: float
    low: float | None
    high: float | None
    changes_plans: bool = Field(
        description="False for a feature that adds the same to the loss of every plan."
    )
    text: str


class ArmEffect(BaseModel):
    """The own effect of an arm: what its features do not say."""

    arm: str
    effect: float
    low: float | None
    high: float | None


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

    items: list[Effect] | list[ArmEffect]
    misfit: str = Field(description="What the features do not explain; empty if nothing.")


class SavedWeek(BaseModel):
    """The saving of one week."""

    week: str
    days: int
    saved: float | None
    low: float | None
    high: float | None


class Evidence(BaseModel):
    """An arm that the rule or the plays used, and what is known of it."""

    arm: str
    rule_units: int
    played_units: int
    bills: int
    last_seen: str


class Saved(BaseModel):
    """What plays saved against a rule on the same days, in the unit of the study."""

    text: str
    total: float | None
    low: float | None
    high: float | None
    share: float | None = Field(description="As a share of what the rule would have cost.")
    weeks: list[SavedWeek]
    rests_on: list[Evidence]
    thin: float = Field(description="Share of the rule's units on arms with fewer than 5 bills.")
    never: float = Field(description="Share of the rule's units on arms without bills.")
    stale: float = Field(description="Share on arms with fewer than 5 bills in four weeks.")
    left_out: int = Field(description="Plays for which the rule has no plan.")
    method: str
    agrees: bool | None = Field(description="Whether the doubly robust estimate agrees.")
    trust: str = Field(description="Why the interval may be wrong; empty if there is no reason.")
    entry: int | None = Field(description="The last entry of the journal that was read.")
    paid: float | None
    days: int
    simulated: bool
    learning: bool
    rule: str
    level: float
    words: Words
    sense: Literal["min", "max"]


class Study(BaseModel):
    """A study."""

    name: str
    summary: str
    loss_range: str
    words: Words
    actions: dict[str, Any]
    policy: dict[str, Any]
    features: dict[str, Any] | None
    compare: dict[str, Any] | None = Field(description="The rule that plays are compared with.")
    baseline: dict[str, Any] | Literal["each day"] | None
    allowance: float | None = Field(
        description="The share that plans may cost more than the baseline; null without one."
    )
    sure: float | None
    per: Literal["week"] | None
    change: float | None = Field(
        description="What each unit that differs from the last plan costs; null without one."
    )
    promised: list[str] = Field(description="The names of all promises ever made.")
    arms: list[str]
    asked: int
    pending: int
    clipped: int
    entries: int
    digest: str = Field(description="The digest of the last entry, which covers all entries.")


class Allowance(BaseModel):
    """How much of an allowance is left, by what is believed now, in the unit of the study."""

    model_config = example(spent=-2310.0, left=3120.0, sure_of=2400.0, days=14, restricted=5)

    spent: float = Field(description="What plays are expected to cost more than the baseline.")
    left: float = Field(description="What they may cost more from now on.")
    sure_of: float = Field(description="The part of it that is certain.")
    days: int = Field(description="The number of plays.")
    restricted: int = Field(description="The number of plays that the allowance changed.")


class PromiseReport(BaseModel):
    """How a promise stands, by what is believed now."""

    model_config = example(**REPORT)

    name: str
    limit: float
    used: float = Field(description="What the plays have used so far, pending ones as planned.")
    expected_end: float
    low: float
    high: float
    price: float = Field(description="What a unit of it is worth; negative for `at least`.")
    holds: str = Field(
        description="`sure`, `likely`, `no longer sure`, or `no: at best` and the amount."
    )
    left_plays: int
    kind: Literal["at most", "at least"]
    until: str | None
    plays: int
    hard: bool
    external: float = Field(description="The part of `used` that external plans have used.")


class Promised(BaseModel):
    """How all promises stand."""

    model_config = example(items=[REPORT])

    items: list[PromiseReport]


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


class Verified(BaseModel):
    """The result of a replay of the journal."""

    model_config = example(entries=3, plays=1, problems=[], unchecked=0, solvers=None, ok=True)

    entries: int
    plays: int
    problems: list[str]
    unchecked: int
    solvers: list[str] | None = Field(
        description="The versions of the solver at creation and now, if they differ."
    )
    ok: bool


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

    items: list[Play]
    next: str | None


class Plays(BaseModel):
    """Plays, oldest first, and the cursor of the next page."""

    items: list[OnePlay | PlayRow]
    next: str | None


class Arms(BaseModel):
    """All arms of the study, in all its sets."""

    items: list[Arm]
    misfit: str = Field(
        default="", description="What the features do not explain; empty if nothing."
    )


class Drifts(BaseModel):
    """Changes of arms; empty if there is none."""

    items: list[Drift]


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
