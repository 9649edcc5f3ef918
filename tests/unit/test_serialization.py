"""Objects as plain data: what is stored comes back as it was, and the rest is refused."""

import json
from collections import namedtuple
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from examples_of_sets import SETS, Shifts
from refusal import refused

import multiplay as mp
from multiplay import actions, policies
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import LARGE, describe, pack, settings, types_in, unpack
from multiplay.types import Arrays

BUILDER = Builder(classes_of(actions, policies))


@dataclass
class Box:
    """Something with one setting."""

    content: Any = field(default=None)


def through_json(thing: Any) -> Any:
    header, arrays = pack(thing)
    return unpack(json.loads(json.dumps(header)), arrays, Builder({"Box": Box, **BUILDER.classes}))


PLAIN: dict[str, Any] = {
    "numbers": [1, 2**80, -0.0, 0.1, float("inf"), True, None],
    "text": ["", "ü\n", "array", "type"],
    "tuples": ((1, 2), [(3,), ()], {"a": ("b",)}),
    "tables": {"a": {"b": [1]}, "type": "truck", "name": "0"},
    "table of numbers": {0: 1, 2: -1, "0": 2, (1, 2): None},
    "nested types": {"type": {"type": "array", "name": "0"}},
}


@pytest.mark.parametrize("thing", PLAIN.values(), ids=PLAIN)
def test_plain_data_come_back(thing: Any) -> None:
    again = through_json(thing)
    assert again == thing
    assert repr(again) == repr(thing), "types and signs too"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(LARGE + 1).reshape(1, -1),
        np.array([np.nan, -0.0, 1e-320]),
        np.array(["Lyon", "Lille"]),
        np.zeros((0, 3), dtype=np.int8),
        np.array(7.5, dtype=np.float32)[()],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ],
    ids=["large", "floats", "text", "empty", "number", "columns"],
)
def test_arrays_come_back(array: Any) -> None:
    again = through_json({"deep": [array]})["deep"][0]
    assert type(again) is type(array)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("thing", [s for s in SETS if not isinstance(s, Shifts)], ids=repr)
def test_sets_come_back(thing: mp.ActionSet) -> None:
    again = through_json(thing)
    assert type(again) is type(thing)
    assert describe(again) == describe(thing)
    assert again.n.tolist() == thing.n.tolist()
    costs = np.random.default_rng(0).normal(size=(20, thing.d))
    assert (again.argmin(costs) == thing.argmin(costs)).all()


def test_policies_come_back() -> None:
    for thing in (mp.GenLBINFV("gd", epsilon=0.1 + 0.2), mp.Duplicated(mp.LBINF()), mp.ESCB()):
        assert through_json(thing) == thing
        assert through_json([(thing,)]) == [(thing,)], "in tuples too"


Point = namedtuple("Point", "x y")


class Hidden:
    def __init__(self, size: int) -> None:
        self._size = size


class Typed:
    def __init__(self, type: str) -> None:
        self.type = type


@pytest.mark.parametrize(
    ("where", "thing"),
    [
        ("thing", len),
        ("thing.content", Box(lambda: 0)),
        ("thing.content[1].rule", Box([1, {"rule": test_plain_data_come_back}])),
        ("thing", partial(max, 1)),
        ("thing", int),
        ("thing.Hidden", Hidden(3)),
        ("thing", Typed("truck")),
        ("thing.content.set", Box({1, 2})),
        ("thing", np.array([print])),
        ("thing", np.ma.masked_array([1, 2], [True, False])),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(where: str, thing: Any) -> None:
    with refused(where):
        pack(thing)


def test_other_classes_are_packed_by_their_full_name() -> None:
    header, _ = pack([mp.GenCTS(), {"a": Point(1, Box())}])
    assert types_in(header) == {"GenCTS", f"{__name__}.Point", f"{__name__}.Box"}
    with pytest.raises(mp.InvalidInput, match="Point"):
        unpack(header, {}, BUILDER)


def test_nothing_is_imported_to_unpack() -> None:
    with pytest.raises(mp.InvalidInput, match=r"subprocess\.Popen"):
        unpack({"type": "subprocess.Popen", "args": "true"}, {}, BUILDER)


def test_settings_of_what_has_none() -> None:
    assert settings(Box(3)) == {"content": 3}
    with refused("Hidden"):
        settings(Hidden(3))
    with refused("set"):
        settings({1, 2})


def test_describe_may_shorten() -> None:
    small: Arrays = {"a": np.arange(3)}
    assert describe(small) == {"a": [0, 1, 2]}
    large = describe({"a": np.zeros(LARGE + 1)})["a"]
    assert large["shape"] == [LARGE + 1]
    assert describe({"a": np.ones(LARGE + 1)})["a"]["sha256"] != large["sha256"]
