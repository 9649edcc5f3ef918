"""Renamed: what the errors of old names say, for Python, the command line and HTTP.

Names that multiplay had before 1.0 do nothing. Each has one row here, whose hint names the new form
in the words of each surface. What is stored with old names is read for ever, see ``completed`` of
``serialization.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from multiplay._support.hints import Hint, Option, Verb
from multiplay.errors import InvalidInput

CONSTRAINTS = Verb("constraints")
UNFORGET = Hint("Use {}.", Verb("unforget", "arm, since=0"))
VERBS: dict[str, str] = {  # of Python only, but for keep
    "saved": "Use savings(versus=...).",
    "describe": "Use set_arm_features(table).",
    "keep": UNFORGET,
    "promise": Hint("Use {}.", Verb("add_constraint", "AtMost(...)")),
    "release": Hint("Use {}.", Verb("end_constraint", "name")),
    **dict.fromkeys(("promises", "promise_reports", "allowance"), Hint("Use {}.", CONSTRAINTS)),
    "change": Hint("Use {}.", CONSTRAINTS),
}
STUDY_VERBS = VERBS | {
    "list": "Use names().",
    "compare": "Use versus.",
    "set_compare": "Use set_versus(rule).",
}
WORDS_NOW = Hint("Use {}.", Option("words", "Words(...)"))
REPORTS_NOW = Hint("Use {}.", Option("reports", "Reports(...)"))
BASELINE_NOW = Hint("Use {}.", Option("constraints", "[Baseline(InProportion(), 0.03)]"))
LOSS_RANGE = Hint("Use {}.", Option("loss_range", "(0, 250)"))
SETTINGS: dict[str, str] = {
    "losses": LOSS_RANGE,
    "rewards": LOSS_RANGE,
    **dict.fromkeys(("outside", "missing"), REPORTS_NOW),
    **dict.fromkeys(("currency", "unit", "arm", "round"), WORDS_NOW),
    "arms": Hint("Use {}.", Option("arm_features", "...")),
    "changing": Hint("Use {}.", Option("varying_set", "True")),
    "change": Hint("Use {}.", Option("constraints", "[SwitchingCost(15)]")),
    "promises": Hint("Use {}.", Option("constraints", "[AtMost(...)]")),
    **dict.fromkeys(("baseline", "allowance", "sure", "per"), BASELINE_NOW),
}
MEMORY = Hint(
    "Use {} to follow changes; a switching cost is a setting of the learner.",
    Option("memory", "Changes()"),
)
UNIT_MEANS = Hint("Use {}.", Option("unit_means", "'ordered'"))

ADD = "Use multiplay study add-constraint."
IN_SETTINGS = "Write it into a file, without the dashes: --settings STUDY.toml."
SETTINGS_ONLY = (
    *("--seed", "--known", "--suppliers", "--customers", "--demanders", "--slack"),
    *("--surplus", "--shortage"),
)
DAY = {"--features": "Use --feature-values."}
COLUMNS = {f"--{name}": f"Use --{name}-column." for name in ("arm", "loss", "round")}

# By what has the name: arguments of a call "Study.create()", attributes of a class "Study", public
# names of "multiplay", commands of "multiplay study", options of "multiplay study create", fields
# of a schema "NewStudy" and operations of "/v1/studies/{study}" of HTTP.
RENAMED: dict[str, dict[str, str]] = {
    "multiplay": {
        "Allowance": "Use BaselineReport.",
        "Saved": "Use Savings.",
        "Changing": "Use TimeVarying.",
        "Conservative": "Use Constrained(policy, [Baseline(rule, 0.03)]).",
    },
    "BootstrapCTS()": {"change": MEMORY, "units": UNIT_MEANS},
    "FeatureCTS()": {"change": MEMORY},
    "GenCTS()": {"units": UNIT_MEANS},
    "Learner": VERBS,
    "Study": STUDY_VERBS,
    "RemoteStudy": STUDY_VERBS,
    "Learner()": SETTINGS,
    "Study.create()": SETTINGS,
    "RemoteStudy.create()": SETTINGS,
    "Verbs.savings()": {"against": "Use versus=..., a rule."},
    "multiplay study": {
        "saved": "Use multiplay study savings.",
        "keep": UNFORGET,
        "learn": "Use multiplay study learn-table.",
        **dict.fromkeys(("words", "describe"), "Use multiplay study set."),
        "promise": ADD,
        "release": "Use multiplay study end-constraint.",
        **dict.fromkeys(("promises", "allowance"), "Use multiplay study constraints."),
    },
    "multiplay study create": {
        **{f"--{name}": hint for name, hint in SETTINGS.items() if name != "changing"},
        "--arms": "Use --columns for a model, or --arm-features; write names before the numbers.",
        **dict.fromkeys(SETTINGS_ONLY, IN_SETTINGS),
        "--changing": "Write varying_set = true into a file: --settings STUDY.toml.",
        "--promise": ADD,
    },
    "multiplay study ask": DAY,
    "multiplay study best": DAY,
    "multiplay study expect": DAY,
    "multiplay study tell": COLUMNS,
    "multiplay study correct": COLUMNS,
    "multiplay study learn-table": COLUMNS,
    "Verbs.set_words()": dict.fromkeys(("currency", "unit", "arm", "round"), WORDS_NOW),
    "multiplay study savings": {"--against": "Use --versus."},
    "NewStudy": SETTINGS,
    "Compare": {"against": 'Use "versus".'},
}


def old_name(owner: str, name: str, what: str) -> InvalidInput | None:
    """Return the error of an old name, or None; ``what`` says what names the owner has.

    Examples
    --------
    >>> raise old_name("Study", "list", "a method of Study")
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: list: expected a method of Study, got a name of older versions. \
Use names().
    """
    hint = RENAMED.get(owner, {}).get(name)
    return None if hint is None else InvalidInput(name, what, "a name of older versions", hint)


class RenamedAttribute:
    """An attribute that a class had before: it is neither read nor set."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner.__name__, name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        self._refuse()

    def __set__(self, instance: object, value: object) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        message = f"{self.owner!r} object has no attribute {self.name!r}. "
        raise AttributeError(message + RENAMED[self.owner][self.name])


def refuse_old_names(kind: type, wrap: Callable[[Any], Any]) -> None:
    """Let a class refuse old names: of its attributes, and of the arguments of its methods.

    ``wrap`` makes a function refuse old arguments, as ``with_suggestions`` does.
    """
    for name in RENAMED.get(kind.__name__, ()):
        if name not in vars(kind):
            attribute = RenamedAttribute()
            attribute.__set_name__(kind, name)
            setattr(kind, name, attribute)
    for name, method in [*vars(kind).items()]:
        if f"{kind.__name__}.{name}()" not in RENAMED:
            continue
        function = getattr(method, "__func__", method)
        if not hasattr(function, "__wrapped__"):
            refusing = wrap(function)
            setattr(kind, name, refusing if function is method else type(method)(refusing))
