"""Hints of errors: every part has words on every surface, and no surface but Python shows Python.

The text of a hint is its template with words in it. So it is enough that no template, no plain text
and no words contain Python.
"""

import ast
import copy
import json
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import multiplay as mp
from multiplay import cli
from multiplay._support.hints import (
    LEARNER,
    WORDS,
    Hint,
    Instead,
    Option,
    Surface,
    Term,
    Verb,
    rendered,
)
from multiplay.errors import Conflict, InvalidInput, StoreError
from multiplay.service.api import problems
from multiplay.service.api.routes import OPERATIONS
from multiplay.service.pages import forms

ROOT = Path(mp.__file__).parent
PAGES = Path(forms.__file__).parent
PYTHON = re.compile(r"\w\(|(?<!\?)\b\w+=(?!=)\S|\b(True|False|None)\b")

# Packages whose errors the command line and the pages show
SHOWN = (
    "_support",
    "actions",
    "constraints",
    "features",
    "learner",
    "policies",
    "savings",
    "storage",
    "studies",
)

# Hints of arguments that only a program can give in a wrong way, such as a class of its own
PYTHON_ONLY = {
    "actions/base.py": {
        "Fix contains(): it gets one vector and must return one bool.",
        "Implement duplicate().",
        "Write self.n = np.array([...]) first, and then super().__init__(names, sense).",
    },
    "actions/time_varying.py": {
        "Let it depend on t only, with random numbers of np.random.default_rng([seed, t]).",
        "Use actions.at(t), the set of round t.",
        "Use actions.over(horizon), which calls the function for all rounds.",
        "Use TimeVarying([monday, tuesday]), for example.",
    },
    "actions/oracle.py": {
        "Fix solve() or contains(): they must agree.",
        "Fix solve(), or give a different n.",
        "Fix solve(): it must return one number for each arm.",
        "Make solve() deterministic: break ties by the number of the arm.",
        "Return the cheapest action. With sense='max', too, solve() minimises: its costs are then "
        "rewards with a minus sign.",
        "Set self.{} before super().__init__(...), which calls solve().",
    },
    "actions/rules.py": {  # files and forms always set nearest
        "Leave it out for False.",
        "Write nearest=True for the action that moves the fewest units.",
    },
    "constraints/constraint.py": {"Use constraints=[{}]."},
    "features/schema.py": {
        'Write {"km": Number()}, for example.',
        "Write {}(), with parentheses.",
    },
    "learner/comparison.py": {
        "Use InProportion(), PriceList({...}), FixedPlan({...}), 'driven' for what was driven on "
        "imported days, or a table with key, arm, units.",
        "Use {key of a play: {arm: units}}, or FixedPlan({arm: units}) for every day.",
    },
    "learner/logged_data.py": {
        "Use True if 03/04/2026 is in April; leave it out if dates show it.",
        "Use arm='lane', or arm=['depot', 'customer'].",
    },
    "learner/plays.py": {"Use timedelta(days=30), for example, or a number of seconds."},
    "learner/promises.py": {
        "Use ahead=[set of tomorrow, ...].",
    },
    "learner/reports.py": {"Collect the units of an arm: series.groupby(level=0).agg(list)."},
    "learner/round_set.py": {"Use exclude=['Lyon->north'], for example."},
    "policies/base.py": {
        "{} chose in {} a vector that is not an action of {}. Fix choose(): it must return actions "
        "of the set, in an array of shape {}.",
    },
    "studies/comparison.py": {
        "Use InProportion(), PriceList({...}) or FixedPlan({...}); None for no rule.",
    },
    "studies/wire.py": {
        "Use a class of multiplay, or a local store: Study.create(..., store=...).",
    },
}

# Modules with other texts; old names of Python have their own hints, see test_renamed.py
NOT_HINTS = (
    "_support/hints.py",
    "_support/html.py",
    "_support/renamed.py",
    "_support/xlsx.py",
)

# Parts whose key is computed, and all the keys that they have there
COMPUTED = {
    "Term(example, kind.__name__)": ["ActionSet", "Column", "Policy", "Rule"],
}
KINDS: dict[str, Callable[..., Option | Term | Verb]] = {
    "Option": Option,
    "Term": Term,
    "Verb": Verb,
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the path of every module of the packages, and its syntax tree."""
    for package in SHOWN:
        for file in sorted((ROOT / package).rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a class by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def sentences(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that are sentences, without docstrings; {} for each value.

    Descriptions of arguments and results, in ``Annotated``, are no hints.
    """
    hidden = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
            hidden |= {id(one) for one in ast.walk(node.slice)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            hidden |= {id(value) for value in node.values}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if re.search(r"^\s*[A-Z{].* .*[.?,:]\s*$", text, re.DOTALL):
            yield text


def keys_in_source() -> dict[str, str]:
    """Return the keys of all parts in the source, with the place of each."""
    found = {LEARNER.key: "hints.py"}
    for file, tree in modules():
        if file == "_support/hints.py":
            continue
        for name, kind in KINDS.items():
            for call in calls(tree, name):
                text, place = ast.unparse(call), f"{file}:{call.lineno}"
                given = [one.value if isinstance(one, ast.Constant) else "" for one in call.args]
                last = {"Option": 1, "Term": 1, "Verb": 0}[name]  # argument of which the key is
                known = all(isinstance(one, ast.Constant) for one in call.args[: last + 1])
                if name == "Term":
                    known = isinstance(call.args[1], ast.Constant)
                assert known or text in COMPUTED, f"{place}: add the keys of {text} to COMPUTED"
                keys = [kind(*map(str, given)).key] if known else COMPUTED[text]
                found |= dict.fromkeys(keys, place)
    return found


# ---------------------------------------------------------------- the source


def test_no_plain_hint_is_python() -> None:
    wrong = []
    for file, tree in modules():
        if file in NOT_HINTS:
            continue
        texts = set(sentences(tree))
        stale = PYTHON_ONLY.get(file, set()) - texts
        assert not stale, f"{file} does not have {stale}: remove it from PYTHON_ONLY"
        names = {text for text in texts if PYTHON.search(text)} - PYTHON_ONLY.get(file, set())
        wrong += [f"{file}: {text}" for text in names]
    assert not wrong, (
        "These hints name Python, which the command line and the pages must not show. Write "
        'Hint("Use {} ...", Option("final", "False")) with a row in WORDS of _support/hints.py; or '
        "add the text to PYTHON_ONLY, if only a program can meet it:\n" + "\n".join(wrong)
    )


def test_every_hint_has_a_constant_template() -> None:
    """A name with braces in a template would be taken for a part: names are parts themselves."""
    for file, tree in modules():
        if file == "_support/hints.py":
            continue
        for call in calls(tree, "Hint"):
            first, place = call.args[0], f"{file}:{call.lineno}"
            assert isinstance(first, ast.Constant), f"{place}: write names and values as parts"
            assert str(first.value).count("{}") == len(call.args) - 1, place


def test_every_part_has_words_and_every_word_is_used() -> None:
    found = keys_in_source()
    lacking = {key: place for key, place in found.items() if key not in WORDS}
    assert not lacking, "add rows to WORDS of _support/hints.py"
    assert not set(WORDS) - set(found), "remove these rows from WORDS"


# ---------------------------------------------------------------- the words


@pytest.mark.parametrize("key", WORDS)
def test_words_contain_no_python(key: str) -> None:
    words = WORDS[key]
    named = re.sub(r"--set '\{0\}=\.\.\.'|ARM=N", "", words.command_line)  # values of options
    for text in (named, words.page, words.http):
        assert not PYTHON.search(text), text
    for text in filter(None, words):
        whole = text.endswith(".") and not text.endswith(("--decimal .", "..."))
        assert whole == isinstance(text, Instead), text
    assert not re.search(r'--|multiplay |"', words.page)
    assert words.http or re.match(r"\w+=", key), "only options have words in HTTP by a rule"


def commands() -> dict[str, set[str]]:
    """Return the options of each command of studies."""
    group: Any = typer.main.get_command(cli.app)
    return {
        name: {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        for name, command in group.commands["study"].commands.items()
    }


def test_words_of_the_command_line_exist() -> None:
    known = commands()
    options = set().union(*known.values())
    for words in WORDS.values():
        assert options.issuperset(re.findall(r"--[a-z-]+", words.command_line)), words
        assert set(known).issuperset(re.findall(r"multiplay study ([\w-]+)", words.command_line)), (
            words
        )


def test_words_of_http_exist() -> None:
    paths = {(one.method, one.path.rpartition("/")[2]) for one in OPERATIONS}
    named = [
        pair for words in WORDS.values() for pair in re.findall(r"([A-Z]+) …/([\w-]+)", words.http)
    ]
    assert len(named) > 5
    assert paths.issuperset(named)


def test_words_of_pages_exist() -> None:
    files = [*PAGES.rglob("*.html"), *PAGES.glob("*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for words in WORDS.values():
        for label in re.findall(r"“([^”]*)”", words.page):
            assert label.removesuffix("{0}") in text, label
    assert WORDS["missing unit"].page == forms.MISSING
    assert WORDS["missing='ignore'"].page.startswith(f"Write {forms.MISSING} for")


# ---------------------------------------------------------------- hints as texts

FINAL = Option("final", "False")
HINT = Hint("Use {} if more losses follow.", FINAL)


def test_a_hint_is_its_text_in_python() -> None:
    text = "Use final=False if more losses follow."
    assert text == HINT
    assert hash(HINT) == hash(text)
    assert rendered(HINT, Surface.PYTHON) == text
    assert type(rendered(HINT, Surface.PYTHON)) is str
    assert json.dumps({"hint": HINT}) == json.dumps({"hint": text})


@pytest.mark.parametrize("kind", [InvalidInput, Conflict])
def test_a_copied_error_keeps_the_parts_of_its_hint(kind: type[InvalidInput]) -> None:
    error = kind("final", "True or False", 3, HINT)
    parts = (error.argument, error.expected, error.got, error.hint)
    copies = [
        type(error)(*parts),
        error.under("tell"),
        pickle.loads(pickle.dumps(error)),
        copy.copy(error),
        copy.deepcopy(error),
    ]
    for one in copies:
        assert str(one).endswith("Use final=False if more losses follow.")
        assert rendered(one.hint, Surface.COMMAND_LINE) == "Use --part if more losses follow."
    stored = pickle.loads(pickle.dumps(StoreError("memory://", "full", HINT)))
    assert rendered(stored.hint, Surface.COMMAND_LINE) == "Use --part if more losses follow."


def test_joined_texts_keep_the_parts() -> None:
    joined = "First this. " + HINT + " Did you mean '{}'?"
    assert joined == "First this. Use final=False if more losses follow. Did you mean '{}'?"
    shown = "First this. Use --part if more losses follow. Did you mean '{}'?"
    assert rendered(joined, Surface.COMMAND_LINE) == shown
    more = "Check it."
    more += HINT + ""
    assert rendered(more, Surface.COMMAND_LINE) == "Check it. Use --part if more losses follow."


def test_names_of_users_are_not_templates() -> None:
    hint = Hint("End {}, or see {}.", Verb("end_constraint", "'{0}'", "{0}"), "{x}")
    assert hint == "End end_constraint('{0}'), or see {x}."
    assert rendered(hint, Surface.PAGE) == "End “End {0}”, or see {x}."


def test_a_part_without_words_is_shown_in_python() -> None:
    assert (
        rendered(Hint("Give {}.", Term("Bernoulli()", "Family")), Surface.PAGE)
        == "Give Bernoulli()."
    )


# ---------------------------------------------------------------- errors of the library


def learner(**settings: Any) -> mp.Learner:
    """Return a learner of two arms."""
    names = ["air", "sea"]
    return mp.Learner(mp.Budget(2, [2, 2], names=names), loss_range=(0, 250), seed=1, **settings)


def told_twice() -> object:
    known = learner()
    play = known.ask(fixed={"air": 2})
    known.tell(play, {"air": 10.0})
    return known.tell(play, {"air": 20.0})


def cancelled() -> object:
    known = learner()
    play = known.ask()
    known.cancel(play)
    return known.correct(play, {"air": 1.0})


def told_in_part() -> object:
    known = learner()
    play = known.ask(fixed={"air": 2})
    return known.tell(play, {"air": [10.0]})


def replaced() -> object:
    known = learner()
    known.ask(key="Monday")
    return known.ask(key="Monday", exclude=["air"])


def promised_twice() -> None:
    promise = mp.AtMost(40, of={"*": 1}, plays=22, name="CO2")
    learner(constraints=[promise]).add_constraint(promise)


CASES: dict[str, tuple[Callable[[], object], str, str]] = {
    "slack": (
        lambda: mp.Transport([2], [1]),
        "Write slack = true in the file of the set, or --slack for one day if supply may be "
        "left over, or correct the numbers.",
        "Correct the numbers, or create a study with “Supply may be left over”.",
    ),
    "shortage": (
        lambda: mp.Transport([1], [2]),
        "Raise the supply. If some demand may stay unmet, write --shortage COST, what each unmet "
        "unit costs in the unit of the losses: usually more than a unit on any lane.",
        "Raise the supply. Correct the numbers, or create a study with a “Cost of an unmet unit”.",
    ),
    "caps": (
        lambda: mp.Budget(9, [4, 4]),
        "Raise the caps, or write at_most = true in the file of the set.",
        "Correct the numbers.",
    ),
    "told twice": (
        told_twice,
        "Use multiplay study correct to replace the report, or omit it.",
        "Use “Save the correction” to replace the report, or omit it.",
    ),
    "cancelled": (
        cancelled,
        "Use multiplay study learn-table, with a row for each unit, if the plan was carried out.",
        "Use “Save my own plan” if the plan was carried out.",
    ),
    "part": (
        told_in_part,
        "Use one loss for each unit, or one number. Use --missing ignore if the rest will not be "
        "reported, --part (in tell) if it will.",
        "Use one loss for each unit, or one number. Write - for each unit that was not reported.",
    ),
    "outside": (
        lambda: (known := learner()).tell(known.ask(fixed={"air": 2}), {"air": [999.0, 1.0]}),
        'Correct it, or create the study with reports = { outside = "clip" } in its settings.',
        "Correct the number.",
    ),
    "replace": (
        replaced,
        "Use --replace to cancel that plan and make a new one, or a different key for a different "
        "request.",
        "To make a new plan of this date, use the second button below.",
    ),
    "no play": (
        lambda: learner().close(7),
        "Use the id or the key of a play from multiplay study ask.",
        "Choose a plan that waits for its report.",
    ),
    "promise": (
        promised_twice,
        "End the other one first: multiplay study end-constraint STUDY 'CO2'.",
        "End the other one first: “End CO2”.",
    ),
    "feature": (
        lambda: learner(features=mp.Features(fuel=mp.Number())).ask(),
        "Give it when you ask, --feature 'fuel=...', or in the table of arms.",
        "Give it when you ask, in the field of this feature, or in the table of arms.",
    ),
    "policy": (
        lambda: mp.Learner(mp.Budget(2, [2, 2]), mp.BestOfThreeWorlds()),
        "Use horizon = 365 below [policy] in the file of the set, for example.",
        "Choose another answer to “How plans are chosen”.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_in_the_words_of_each_surface(case: str) -> None:
    act, command, page = CASES[case]
    with pytest.raises(InvalidInput) as caught:
        act()
    hint = caught.value.hint
    assert PYTHON.search(hint)
    assert rendered(hint, Surface.COMMAND_LINE) == command
    assert rendered(hint, Surface.PAGE) == page
    assert forms.error_text(caught.value).endswith(page)


def test_http_has_its_own_words_for_readers_and_python_for_the_client() -> None:
    error = InvalidInput("final", "True or False", 3, HINT)
    sent = json.loads(bytes(problems.of_error(error, "a1").body))
    assert sent["detail"].endswith('got 3. Use "final": false if more losses follow.')
    assert sent["hint"] == "Use final=False if more losses follow."
