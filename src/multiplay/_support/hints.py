"""Hints of errors as data: texts for Python, whose parts other surfaces name in their own words."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Surface(Enum):
    """Where a hint is read; the value is its column in ``WORDS``."""

    PYTHON = -1
    COMMAND_LINE = 0
    PAGE = 1
    HTTP = 2


class Option(NamedTuple):
    """An argument with its value; ``within`` is the call that has it, as a template.

    Examples
    --------
    >>> Option("final", "False").python, Option("horizon", "365", "CUCB({})").python
    ('final=False', 'CUCB(horizon=365)')
    """

    name: str
    value: str
    within: str = "{}"

    @property
    def python(self) -> str:
        """The part in Python."""
        return self.within.format(self.key)

    @property
    def key(self) -> str:
        """The key of its words."""
        return f"{self.name}={self.value}"


class Verb(NamedTuple):
    """A call of a method or a function; ``shown`` is what the words of other surfaces quote.

    Examples
    --------
    >>> Verb("tell", "play, losses").python
    'tell(play, losses)'
    """

    name: str
    arguments: str = ""
    shown: str = ""

    @property
    def python(self) -> str:
        """The part in Python."""
        return f"{self.name}({self.arguments})"

    @property
    def key(self) -> str:
        """The key of its words."""
        return f"{self.name}()"


class Term(NamedTuple):
    """Any other word of Python; ``meaning`` is the key of its words."""

    python: str
    meaning: str
    shown: str = ""

    @property
    def key(self) -> str:
        """The key of its words."""
        return self.meaning


Part = Option | Verb | Term | str  # a text is the same on every surface
LEARNER = Term("learner", "learner")


class Hint(str):
    """A hint whose text is that for Python, and whose parts other surfaces can name.

    Parameters
    ----------
    template
        The text, with {} for each part.
    parts
        The parts in order.

    Examples
    --------
    >>> hint = Hint("Use {} if more losses follow.", Option("final", "False"))
    >>> hint
    'Use final=False if more losses follow.'
    >>> rendered(hint + " Or wait.", Surface.COMMAND_LINE)
    'Use --part if more losses follow. Or wait.'
    """

    __slots__ = ("pieces",)
    pieces: tuple[tuple[str, tuple[Part, ...]], ...]

    def __new__(cls, template: str, *parts: Part) -> Hint:
        return _joined(((template, parts),))

    def __add__(self, other: str) -> Hint:
        return _joined((*self.pieces, *_pieces(other)))

    def __radd__(self, other: str) -> Hint:
        return _joined((*_pieces(other), *self.pieces))

    def __reduce__(self) -> tuple[object, ...]:
        return _joined, (self.pieces,)


class Instead(str):
    """Words that replace the whole hint in which the part stands."""

    __slots__ = ()


def rendered(hint: str, surface: Surface) -> str:
    """Return a hint in the words of a surface; a plain text as it is.

    Examples
    --------
    >>> hint = Hint("Write {} if supply may be left over.", Option("slack", "True"))
    >>> for surface in Surface:
    ...     print(rendered(hint, surface))
    Write slack=True if supply may be left over.
    Write slack = true in the file of the set, or --slack for one day if supply may be left over.
    Correct the numbers, or create a study with “Supply may be left over”.
    Write "slack": true if supply may be left over.
    """
    if not isinstance(hint, Hint) or surface is Surface.PYTHON:
        return str(hint)
    sentences = []
    for template, parts in hint.pieces:
        words = [_words(part, surface) for part in parts]
        instead = next((text for text in words if isinstance(text, Instead)), None)
        sentences.append(instead or (template.format(*words) if parts else template))
    return " ".join(text.strip() for text in sentences if text.strip())


def _words(part: Part, surface: Surface) -> str:
    """Return a part in the words of a surface; in Python, if it has no others."""
    if isinstance(part, str):
        return part
    words = WORDS.get(part.key)
    if words is None:
        return part.python
    text = words[surface.value]
    if isinstance(part, Option):
        return text or _field(part)
    return text.format(part.shown) if part.shown and not isinstance(text, Instead) else text


def _field(option: Option) -> str:
    """Return an option as a field of a JSON object.

    Examples
    --------
    >>> _field(Option("loss_range", "(0, 250)")), _field(Option("features", "Features(...)"))
    ('"loss_range": [0, 250]', '"features": ...')
    """
    import ast  # errors are rare
    import json

    try:
        value = json.dumps(ast.literal_eval(option.value))
    except (TypeError, ValueError):  # an object, or any value
        value = "..."
    return f'"{option.name}": {value}'


def _pieces(text: str) -> tuple[tuple[str, tuple[Part, ...]], ...]:
    return text.pieces if isinstance(text, Hint) else ((text, ()),) if text else ()


def _joined(pieces: tuple[tuple[str, tuple[Part, ...]], ...]) -> Hint:
    text = "".join(
        template.format(*(part if isinstance(part, str) else part.python for part in parts))
        if parts
        else template
        for template, parts in pieces
    )
    hint = str.__new__(Hint, text)
    hint.pieces = pieces
    return hint


class Wording(NamedTuple):
    """What a part is called on the command line, on a page, and in HTTP."""

    command_line: str
    page: str
    http: str = ""  # an option without words is a field of its name


ELSEWHERE = Instead("The pages do not have this setting: use the command line or the API.")
OTHER_POLICY = Instead("Choose another answer to “How plans are chosen”.")
OTHER_NUMBERS = Instead("Correct the numbers.")
IN_PYTHON = Instead("Load it in Python, with the object of this class.")
A_RULE = Instead("Choose a rule.")
NO_FEATURES = Instead("Create a study with features, on the command line or by the API.")
A_PENDING_PLAY = Instead("Choose a plan that waits for its report.")
COLUMNS = Instead("Check the names of the columns in the first line.")
NO_THOUSANDS = Instead("Write numbers with one decimal mark, and without a mark for thousands.")
RANGE = Instead("Correct the number, or change the range in “Settings”.")
SET_FILE, POLICY = "in the file of the set", "below [policy] in the file of the set"
FEATURES = Wording("--features FILE.toml", NO_FEATURES)

# The words of each part, by its key. They name options and commands, fields and operations of HTTP,
# labels and buttons; tests compare them with those that exist.
WORDS: dict[str, Wording] = {
    "learner": Wording("study", "study", "study"),
    # verbs
    "ask()": Wording("multiplay study ask", A_PENDING_PLAY, "POST …/ask"),
    "new plan": Wording("multiplay study ask", "“Make the plan”", "POST …/ask"),
    "tell()": Wording("multiplay study tell", Instead("Report on it first."), "POST …/tell"),
    "unforget()": Wording(
        "multiplay study unforget", "“Unforget what was reported since”", "POST …/unforget"
    ),
    "correct()": Wording("multiplay study correct", "“Save the correction”", "POST …/correct"),
    "retract()": Wording(
        "multiplay study retract",
        Instead("Retract its report first, if it was wrong."),
        "POST …/retract",
    ),
    "cancel()": Wording("multiplay study cancel", "“Cancel plan”", "POST …/cancel"),
    "learn()": Wording(  # the command of this name reads a table
        "multiplay study learn-table, with a row for each unit,",
        "“Save my own plan”",
        "POST …/learn",
    ),
    "constraints()": Wording(
        "multiplay study constraints",
        "“Promises and limits”",
        "GET …/constraints",
    ),
    "add_constraint()": Wording(
        "multiplay study add-constraint", "“Add the promise”", "POST …/constraints"
    ),
    "end_constraint()": Wording(
        "multiplay study end-constraint STUDY '{0}'",
        "“End {0}”",
        'POST …/end-constraint with "name": "{0}"',
    ),
    "compared": Wording(
        "--in-proportion, --versus FILE.csv, --prices FILE.csv or --policy NAME",
        A_RULE,
        '"versus": {"type": "InProportion"}, or set the rule with PUT …/versus',
    ),
    "import": Wording("multiplay study learn-table", "“Import”", "POST …/learn-table"),
    "in proportion": Wording(
        "--in-proportion", "“in proportion to supply and demand”", '{"type": "InProportion"}'
    ),
    "Learner.load()": Wording(IN_PYTHON, IN_PYTHON, IN_PYTHON),
    # what was expected
    "pending play": Wording("a pending play", "a plan that waits for its report", "a pending play"),
    "key of a play": Wording("the key of a play", "the name of a plan", "the key of a play"),
    "plays": Wording("plays", "plans", "plays"),
    "plays told": Wording("plays told", "reported plans", "plays told"),
    "round": Wording("a round", "a number", "a round"),
    "datetime": Wording("a datetime", "a date", "a datetime"),
    # arguments of verbs
    "final=False": Wording("--part", "“More will follow”"),
    "missing='ignore'": Wording(
        "--missing ignore", Instead("Write - for each unit that was not reported.")
    ),
    "missing unit": Wording("an empty loss", "-", "null"),
    "replace=True": Wording(
        "--replace", Instead("To make a new plan of this date, use the second button below.")
    ),
    "since=0": Wording("--since 0", "0"),
    "present time": Wording("2026-11-15T08:00", "2026-11-15", "2026-11-15T08:00:00Z"),
    "method='model'": Wording("--method model", Instead("Compare with another rule.")),
    "feature": Wording(
        "--feature '{0}=...'", "in the field of this feature", '"features": {{"{0}": ...}}'
    ),
    "actions=...": Wording(
        Instead("Pass the set of that round: --set FILE.toml."),
        Instead("Enter a plan for the supply and the demand of that day."),
    ),
    "actions=today": Wording("multiplay study ask --set FILE.toml", ELSEWHERE),
    "names=...": Wording(
        Instead("Use the same names in every round."), Instead("Use the same names on every day.")
    ),
    "fixed plan": Wording(
        "a file with the columns arm and units",
        "“always the same plan”",
        '{"type": "FixedPlan", "nearest": true, ...}',
    ),
    # tables
    "skip_bad=True": Wording(
        "--skip-bad", Instead("Correct these rows, or select below them to leave them out.")
    ),
    "day_first=True": Wording("--day-first", "“The day comes first”"),
    "day_first=False": Wording("--month-first", "“The month comes first”"),
    "decimal": Wording("--decimal , or --decimal .", NO_THOUSANDS, "the decimal mark"),
    "learn_table()": Wording(
        "--arm-column lane --round-column day --loss-column cost",
        COLUMNS,
        '"arm", "round" and "loss"',
    ),
    "read_bills()": Wording("--arm-column lane --loss-column euros", COLUMNS, '"arm" and "loss"'),
    # settings of a study
    "loss_range=(0, 250)": Wording("--loss-range 0,250", RANGE),
    "reports=Reports(outside='clip')": Wording(
        'reports = { outside = "clip" } in its settings',
        Instead("Correct the number."),
        '"reports": {"outside": "clip"}',
    ),
    "reports=Reports(...)": Wording(
        'reports = { outside = "clip" } in the file of --settings', ELSEWHERE, '"reports": {...}'
    ),
    "words=Words(...)": Wording(
        "--settings STUDY.toml, or multiplay study set", ELSEWHERE, '"words": {...}'
    ),
    "arm_features=...": Wording("--arm-features FILE.csv", NO_FEATURES),
    "varying_set=True": Wording(
        "varying_set = true in its settings", Instead("Check the spelling.")
    ),
    "constraints=[Baseline('each day')]": Wording(
        'a constraint with rule = "each-day"', ELSEWHERE, 'a "Baseline" with "rule": "each day"'
    ),
    "constraints=[AtMost(...)]": Wording(
        "multiplay study add-constraint", ELSEWHERE, "POST …/constraints"
    ),
    "constraints=[Baseline(InProportion(), 0.03)]": Wording(
        "[[constraints]] in its settings", ELSEWHERE, '"constraints": [...]'
    ),
    "constraints=[SwitchingCost(15)]": Wording(
        "[[constraints]] in its settings", ELSEWHERE, '"constraints": [...]'
    ),
    "baseline={...}": Wording("--baseline ARM=N", ELSEWHERE),
    "hard=False": Wording(
        "soft at the end of the promise",
        Instead("Change the limit, or clear “Keep it, where that is possible”."),
    ),
    # features
    "features=Features(...)": FEATURES,
    "features=Features(km=Number())": FEATURES,
    "others=True": Wording(
        "write others = true in the file of features", Instead("Use one of the levels.")
    ),
    "levels": Wording('levels = ["Mon", "Tue"]', ELSEWHERE, '"levels": ["Mon", "Tue"]'),
    "unit='km'": Wording('unit = "km"', ELSEWHERE),
    "products": Wording('products = [["km", "fuel"]]', ELSEWHERE, '"products": [["km", "fuel"]]'),
    "multiplies": Wording('multiplies = ["fuel"]', ELSEWHERE, '"multiplies": ["fuel"]'),
    "a feature": Wording(
        '[km], and below it type = "Number"', ELSEWHERE, '{"km": {"type": "Number"}}'
    ),
    "Column": Wording(
        'type = "Number", "Category" or "Flag"', ELSEWHERE, '"type": "Number", "Category" or "Flag"'
    ),
    # sets
    "slack=True": Wording(
        f"slack = true {SET_FILE}, or --slack for one day",
        Instead("Correct the numbers, or create a study with “Supply may be left over”."),
    ),
    "surplus=True": Wording(
        f"surplus = true {SET_FILE}", "“More than the demand may be delivered”"
    ),
    "shortage=...": Wording(
        "--shortage COST",
        Instead("Correct the numbers, or create a study with a “Cost of an unmet unit”."),
    ),
    "at_most=True": Wording(f"at_most = true {SET_FILE}", OTHER_NUMBERS),
    "names": Wording('names = ["north", "south"]', ELSEWHERE, '"names": ["north", "south"]'),
    "bounds=(0, 100)": Wording("bounds = [0, 100]", ELSEWHERE),
    "(0, None)": Wording("[0, inf]", ELSEWHERE, "[0, null]"),
    "true": Wording("true", ELSEWHERE, "true"),
    "no bound": Wording("inf", ELSEWHERE, "null"),
    "no capacity": Wording("a large number", ELSEWHERE, "null"),
    "ActionSet": Wording('type = "Transport"', ELSEWHERE, '"type": "Transport"'),
    # policies
    "Policy": Wording('type = "PooledCTS"', OTHER_POLICY, '"type": "PooledCTS"'),
    "Rule": Wording('type = "InProportion"', A_RULE, '"type": "InProportion"'),
    "unit_means='ordered'": Wording('unit_means = "ordered"', OTHER_POLICY),
    "horizon=365": Wording(f"horizon = 365 {POLICY}", OTHER_POLICY),
    "any_horizon=True": Wording(f"any_horizon = true {POLICY}", OTHER_POLICY),
    "anytime=True": Wording(f"anytime = true {POLICY}", OTHER_POLICY),
    "limit=...": Wording(f"limit = ... {POLICY}", OTHER_POLICY),
    "memory=Changes()": Wording('memory = { type = "Changes" }', OTHER_POLICY),
}
