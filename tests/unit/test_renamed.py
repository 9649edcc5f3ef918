"""Old names: each is refused with the new name, in Python, on the command line and in HTTP."""

import inspect
import re
from typing import Any

import pytest

import multiplay as mp
from multiplay._support.hints import Surface, rendered
from multiplay._support.renamed import RENAMED, old_name
from multiplay._support.serialization import pack, unpack
from multiplay._support.suggestions import suggest_arguments
from multiplay.errors import InvalidInput
from multiplay.service.api.problems import first_invalid
from multiplay.service.errors import InvalidFields
from multiplay.studies.wire import builder

PUBLIC = {name: one for name in mp.__all__ if isinstance(one := getattr(mp, name), type)}
ATTRIBUTES = [(owner, name) for owner in RENAMED if owner in PUBLIC for name in RENAMED[owner]]
SURFACES = [  # rows of the command line and of HTTP
    (owner, name)
    for owner in RENAMED
    if owner not in PUBLIC and owner != "multiplay" and not owner.endswith("()")
    for name in RENAMED[owner]
]
PYTHON = re.compile(r"\w\(|\b\w+=\S|\b(True|False|None)\b")
CALLS = [(owner, name) for owner in RENAMED if owner.endswith("()") for name in RENAMED[owner]]


class Lorry:
    """A class whose arguments have old names in ``test_old_arguments``."""

    __module__ = mp.__name__

    def __init__(self, weight: int) -> None:
        self.weight = weight

    @classmethod
    def made(cls, *, weight: int) -> "Lorry":
        return cls(weight)

    def load(self, goods: int) -> int:
        return self.weight + goods


@pytest.mark.parametrize(("owner", "name"), ATTRIBUTES)
def test_an_old_attribute_is_neither_read_nor_set(owner: str, name: str) -> None:
    kind: Any = PUBLIC[owner]
    instance = object.__new__(kind)
    for act in (
        lambda: getattr(kind, name),
        lambda: getattr(instance, name),
        lambda: setattr(instance, name, None),
    ):
        with pytest.raises(AttributeError, match="has no attribute") as caught:
            act()
        assert str(caught.value).endswith(f" {RENAMED[owner][name]}")
    assert not hasattr(kind, name)


@pytest.mark.parametrize(("owner", "name"), CALLS)
def test_an_old_argument_of_a_public_call_is_refused(owner: str, name: str) -> None:
    first, *rest = owner.removesuffix("()").replace("Verbs.", "Learner.").split(".")
    called: Any = getattr(mp, first)
    for one in rest:
        found = inspect.getattr_static(called, one)
        called = getattr(object.__new__(called) if inspect.isfunction(found) else called, one)
    assert name not in inspect.signature(called).parameters
    with pytest.raises(InvalidInput) as caught:
        called(**{name: None})
    assert (caught.value.argument, caught.value.hint) == (name, RENAMED[owner][name])


def test_old_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("Lorry()", "Lorry.made()", "Lorry.load()"):
        monkeypatch.setitem(RENAMED, call, {"mass": "Use weight."})
    before = [inspect.signature(one) for one in (Lorry, Lorry.made, Lorry.load)]
    suggest_arguments(Lorry)
    assert [inspect.signature(one) for one in (Lorry, Lorry.made, Lorry.load)] == before
    calls: list[Any] = [Lorry, Lorry.made, Lorry(weight=1).load]
    for called in calls:
        with pytest.raises(InvalidInput) as caught:
            called(mass=1)
        assert (caught.value.argument, caught.value.hint) == ("mass", "Use weight.")
        with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
            called(colour=1)
    assert Lorry.made(weight=2).load(goods=3) == 5


def test_an_old_public_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENAMED["multiplay"], "Lorry", "Use Truck.")
    with pytest.raises(AttributeError, match=r"has no attribute 'Lorry'\. Use Truck\.$"):
        mp.Lorry  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"has no attribute 'Lorry'\. Use Truck\.$"):
        from multiplay import Lorry  # type: ignore[attr-defined]  # noqa: F401
    assert not hasattr(mp, "Lorry")


@pytest.mark.parametrize(("owner", "name"), SURFACES)
def test_hints_of_other_surfaces_have_no_python(owner: str, name: str) -> None:
    is_command_line = owner.startswith("multiplay ")
    surface = Surface.COMMAND_LINE if is_command_line else Surface.HTTP
    assert not PYTHON.search(rendered(RENAMED[owner][name], surface))


def test_a_name_without_a_row_is_no_old_name() -> None:
    assert old_name("Study", "colour", "a method") is None


def test_an_old_field_of_a_request_is_refused_with_the_new_one() -> None:
    content = {"losses": [0, 250]}
    [error] = [{"type": "extra_forbidden", "loc": ("losses",), "input": [0, 250]}]
    found = first_invalid(InvalidFields("body", [error], content, ["loss_range"], "NewStudy"))
    assert (found.argument, found.hint) == ("losses", 'Use "loss_range": [0, 250].')


def test_a_stored_set_with_an_old_name_is_read() -> None:
    sets = mp.TimeVarying([mp.Budget(2, [2, 2]), mp.Budget(1, [2, 0])])
    header, arrays = pack(sets, "actions")
    assert header["type"] == "TimeVarying"
    again = unpack(header | {"type": "Changing"}, arrays, builder())
    assert repr(again) == repr(sets)
    assert [again.at(t).n.tolist() for t in (1, 2)] == [sets.at(t).n.tolist() for t in (1, 2)]
