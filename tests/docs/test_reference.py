"""The reference: every public name has a page, and a docstring with an example."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import multiplay

PAGES = Path(__file__).parents[2] / "docs" / "reference"
LISTED = re.compile(r"^   ([A-Za-z_]\w*)$", flags=re.MULTILINE)
# What is in these packages is defined by a formula.
WITH_FORMULAS = [
    "multiplay.actions",
    "multiplay.environments",
    "multiplay.policies",
    "multiplay.theory",
]
# Results; the functions that return them have a formula.
WITHOUT = {"Play", "Guarantee", "LowerBound", "Realised", "WorstCase"}
PLAIN = {"multiplay.__version__", "multiplay.theory"}  # a text, and a package with its own page


def public() -> dict[str, Any]:
    """Return every public object by its shortest name."""
    packages = [multiplay.__name__]
    packages += [
        module.name
        for module in pkgutil.iter_modules(multiplay.__path__, "multiplay.")
        if module.ispkg and module.name != "multiplay.cli"  # commands have a page of their own
    ]
    found: dict[str, Any] = {}
    for package in packages:
        home = importlib.import_module(package)
        for name in getattr(home, "__all__", ()):
            thing = getattr(home, name)
            if not any(thing is known for known in found.values()):
                found[f"{package}.{name}"] = thing
    return {name: thing for name, thing in found.items() if name not in PLAIN}


PUBLIC = public()
DOCUMENTED = {
    name: thing
    for name, thing in PUBLIC.items()
    if inspect.isroutine(thing) or inspect.isclass(thing)
}


def in_the_reference() -> set[str]:
    """Return the names on the pages: those below a ``currentmodule``, and data."""
    found = set()
    for page in PAGES.glob("*.md"):
        for module, names in re.findall(
            r"currentmodule:: (\S+)\n\n.. autosummary::\n   :toctree: names\n\n(.*?)```",
            page.read_text(),
            flags=re.DOTALL,
        ):
            found |= {f"{module}.{name}" for name in LISTED.findall(names)}
        found |= set(re.findall(r"py:data:: (\S+)", page.read_text()))
    return found


def members(thing: Any) -> dict[str, Any]:
    """Return the public members of a class of multiplay."""
    if not inspect.isclass(thing):
        return {}
    return {
        name: member
        for name, member in inspect.getmembers(thing)
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property))
        and (getattr(member, "__module__", None) or "multiplay").startswith("multiplay")
    }


def test_the_reference_lists_every_public_name() -> None:
    assert set(PUBLIC) - in_the_reference() == set()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_all_of_it_is_documented(name: str) -> None:
    thing = DOCUMENTED[name]
    assert inspect.getdoc(thing), name
    assert [member for member, found in members(thing).items() if not inspect.getdoc(found)] == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_it_has_an_example_that_the_doctests_run(name: str) -> None:
    """The example is in the docstring of the class itself, not of a base class."""
    assert ">>>" in (DOCUMENTED[name].__doc__ or ""), name


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, thing in DOCUMENTED.items()
        if any(thing.__module__.startswith(f"{package}.") for package in WITH_FORMULAS)
        and thing.__name__ not in WITHOUT
    ],
)
def test_it_says_what_it_is_as_a_formula(name: str) -> None:
    assert ".. math::\n" in (DOCUMENTED[name].__doc__ or ""), name
