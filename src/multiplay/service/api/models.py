"""What is sent and answered: the schemas of the OpenAPI document, with examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from multiplay.learner.engine import LONGEST_KEY
from multiplay.storage.base import LONGEST_NAME

MOST = 2**53  # all languages can hold it
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
KeyText = Annotated[
    str, Field(min_length=1, max_length=LONGEST_KEY, description="The same key, the same answer.")
]


def whole(value: Any) -> Any:
    """Return 3 for 3.0: JSON has one kind of numbers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Units = Annotated[int, Field(ge=0, le=MOST), BeforeValidator(whole)]
When = Annotated[
    float | str,
    Field(description="A time, 2026-11-15T08:00:00Z, or seconds since 1970; now if left out."),
]
Set = Annotated[
    dict[str, Any],
    Field(
        description="What may be played: a class of multiplay, and its arguments.",
        json_schema_extra={"required": ["type"], "properties": {"type": {"type": "string"}}},
    ),
]
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
Range = Pair | dict[str, Pair]
UnitsByArm = dict[str, Units] | list[Units]
Loss = float | None
LossesByArm = dict[str, float | list[Loss] | None] | list[float | list[Loss] | None] | float
Missing = Literal["refuse", "ignore"]
Seconds = Annotated[float, Field(gt=0, le=1e6)]
Level = Annotated[float, Field(gt=0, lt=1)]

TRANSPORT = {
    "type": "Transport",
    "supply": [2, 1],
    "demand": [1, 2],
    "names": [["Lyon", "Lille"], ["north", "south"]],
}
PLAN = {"Lyon->north": 1, "Lyon->south": 1, "Lille->north": 0, "Lille->south": 1}
LOSSES = {"Lyon->north": [120.0], "Lyon->south": [95.0], "Lille->south": 310.5}
EXPECTED = {"total": 375.0, "low": 120.5, "high": 629.5}
WHEN = "2026-11-15T08:00:00.000000+00:00"


class Body(BaseModel):
    """A body of a request; fields that nobody knows are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(**fields: Any) -> ConfigDict:
    """Return the configuration of a model with an example."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


# ------------------------------------------------------------ requests


class NewStudy(Body):
    """A study to begin."""

    model_config = example(
        name="lanes", actions=TRANSPORT, policy={"type": "GenCTS"}, losses=[0, 250], seed=7
    )

    name: Text
    actions: Set
    policy: Set = Field(default={"type": "GenCTS"}, description="How to learn.")
    losses: Range | None = Field(default=None, description="What a unit can cost: [low, high].")
    rewards: Range | None = Field(
        default=None, description="What a unit can bring, instead of losses."
    )
    outside: Literal["refuse", "clip"] = "refuse"
    missing: Missing = "refuse"
    changing: bool = False
    seed: Units = 0
    key: KeyText | None = None


class Limited(Body):
    """A set of today, and limits; the usual set if nothing is said."""

    actions: Set | None = Field(default=None, description="The set of today, if another.")
    at_most: dict[str, Units] | None = Field(default=None, description="The most units of arms.")
    exclude: list[str] = Field(default=[], description="Arms that are not played today.")
    fixed: dict[str, Units] | None = Field(default=None, description="Exactly so many units.")


class Ask(Limited):
    """A play to choose."""

    model_config = example(key="2026-11-15", at_most={"Lyon->north": 1})

    key: KeyText | None = None
    time_limit: Seconds | None = Field(default=None, description="Seconds in which to choose.")
    at: When | None = None


class Tell(Body):
    """What the units of a play have cost."""

    model_config = example(losses=LOSSES, key="report of Monday")

    losses: LossesByArm = Field(
        description="For each arm, the loss of every unit (null: it did not report), or a total."
    )
    final: bool = Field(default=True, description="False: more will come.")
    missing: Missing | None = None
    key: KeyText | None = None
    at: When | None = None


class End(Body):
    """A play to close or to cancel."""

    model_config = example(key="Monday is over")

    key: KeyText | None = None
    at: When | None = None


class Expire(Body):
    """Plays to end because they are old."""

    model_config = example(older_than=604800)

    older_than: Annotated[float, Field(ge=0, le=1e12)] = Field(description="In seconds.")
    key: KeyText | None = None
    at: When | None = None


class Learn(Body):
    """A plan that somebody else chose, and what it cost."""

    model_config = example(plan=PLAN, losses=LOSSES, key="2026-11-14")

    plan: UnitsByArm
    losses: LossesByArm
    actions: Set | None = Field(default=None, description="The set of that day, if another.")
    missing: Missing | None = None
    key: KeyText | None = None
    at: When | None = None


class Table(Body):
    """Years of history: one entry of each list for each unit."""

    model_config = example(
        arm=["Lyon->north", "Lille->south"], round=[1, 1], loss=[120.0, None], key="2025"
    )

    arm: list[str]
    round: list[int | float | str]
    loss: list[Loss]
    key: KeyText | None = None


class Best(Limited):
    """The set for the best plan."""

    model_config = example(exclude=["Lyon->north"])


class Expect(Body):
    """A plan of yours."""

    model_config = example(plan=PLAN)

    plan: UnitsByArm
    actions: Set | None = None
    level: Level = 0.95


# ------------------------------------------------------------ answers


class Estimate(BaseModel):
    """What a plan should cost in all, with an interval; null where nobody knows."""

    model_config = example(**EXPECTED)

    total: float | None
    low: float | None
    high: float | None


class Plan(BaseModel):
    """Units by arm, the same in the order of the arms, and what that should cost."""

    model_config = example(plan=PLAN, action=[*PLAN.values()], expected=EXPECTED)

    plan: dict[str, int]
    action: list[int]
    expected: Estimate


class Play(Plan):
    """A play: its id is what losses are told to."""

    model_config = example(
        id=1,
        key="2026-11-15",
        truncated=False,
        plan=PLAN,
        action=[*PLAN.values()],
        expected=EXPECTED,
    )

    id: int
    key: str | None
    truncated: bool


class Receipt(BaseModel):
    """What became of a report."""

    model_config = example(id=1, seen=3, missing=0, clipped=0, repeated=False, final=True)

    id: int | None
    seen: int
    missing: int
    clipped: int
    repeated: bool
    final: bool


class Ended(BaseModel):
    """The plays that have ended."""

    model_config = example(plays=[1, 2])

    plays: list[int]


class PlayRow(BaseModel):
    """A play, and what became of it."""

    id: int
    key: str | None
    status: Literal["pending", "told", "cancelled"]
    asked: str | None
    told: str | None
    units: int
    seen: int
    expected: float | None
    realised: float | None
    clipped: int


class OnePlay(PlayRow):
    """A play, what became of it, and its plan."""

    plan: dict[str, int]


class Arm(BaseModel):
    """What is known of an arm, in the unit of the study."""

    arm: str
    seen: int
    mean: float | None
    low: float | None
    high: float | None
    last_seen: str | None
    share: float


class Drift(BaseModel):
    """An arm whose recent losses do not fit the old ones."""

    arm: str
    since: int
    before: float
    after: float
    units: int


class Study(BaseModel):
    """A study."""

    name: str
    summary: str
    unit: str
    actions: dict[str, Any]
    policy: dict[str, Any]
    arms: list[str]
    asked: int
    pending: int
    clipped: int
    entries: int
    digest: str = Field(description="Of the last entry, and so of all of them.")


class StudyName(BaseModel):
    """The name of a study."""

    name: str


class Entry(BaseModel):
    """An entry of the journal; arrays are those of numpy, packed, in base64."""

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
    """What replaying the journal has shown."""

    model_config = example(entries=3, plays=1, problems=[], ok=True)

    entries: int
    plays: int
    problems: list[str]
    ok: bool


class Key(BaseModel):
    """The key of this request: null where the service is open."""

    model_config = example(id="4f2a91c07b3e", name="night job", study="lanes", can="play")

    id: str | None
    name: str | None
    study: str | None
    can: Literal["read", "play", "manage"]


class Studies(BaseModel):
    """Names of studies, and where to go on."""

    items: list[StudyName]
    next: str | None


class Pending(BaseModel):
    """Plays that wait for their losses, oldest first, and where to go on."""

    items: list[Play]
    next: str | None


class Plays(BaseModel):
    """Plays, oldest first, and where to go on."""

    items: list[PlayRow]
    next: str | None


class Arms(BaseModel):
    """All arms ever met."""

    items: list[Arm]


class Drifts(BaseModel):
    """Arms that have changed; none if all is well."""

    items: list[Drift]


class Entries(BaseModel):
    """Entries of the journal, oldest first, and where to go on."""

    items: list[Entry]
    next: str | None


class Problem(BaseModel):
    """What went wrong (RFC 9457): the argument, what was expected, what came, and what to do."""

    model_config = example(
        type="urn:multiplay:invalid-input",
        title="The request cannot be used",
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
