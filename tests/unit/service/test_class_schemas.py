"""Schemas of objects that name a class: what they refuse, the class refuses too."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from multiplay.errors import InvalidInput
from multiplay.service.api import models
from multiplay.service.api.class_schemas import CLASSES, REF, WORDS, of_class, of_one_class
from multiplay.service.api.openapi import document
from multiplay.service.studies.limits import (
    POLICIES,
    RULES,
    SETS,
    ServiceLimits,
    build_actions,
    build_versus,
)
from multiplay.studies.wire import request_set

LIMITS = ServiceLimits(seconds=600.0)  # a busy machine is slow
GIVEN: dict[str, dict[str, Any]] = {
    "Composed": {
        "posterior": {"type": "Averages", "memory": {"type": "Window", "window": 9}},
        "rule": {"type": "Bound", "alpha": 0.3},
    },
    "Duplicated": {"policy": {"type": "GenCTS"}},
    "FixedPlan": {"units": {"a": 1}},
    "PriceList": {"prices": {"a": 1}},
}
GOOD = {name: request_set(kind.example()) for name, kind in SETS.items()}
GOOD |= {name: {"type": name, **GIVEN.get(name, {})} for name in (*POLICIES, *RULES)}
PROBES: list[Any] = [None, True, False, -1, 0, 1, 2, 3, 1.5, -0.5, 0.5, "", "x", "min", "max"]
PROBES += [[], [1], [1, 2], [-1, 2], [0.5, 0.5], [None], [[1, 2], [3, 4]], ["a", "b"], [{}]]
PROBES += [{}, {"a": 1}, {"a": -1}, {"a": "x"}, {"a": [1]}, {"": 1}, *sum(WORDS.values(), ())]
# A single True counts as 1 where numbers are read into arrays.
ALSO_BUILT = {("Knapsack", name, one) for name in ("capacity", "limits") for one in (True, False)}


def is_valid(plain: Any, schema: dict[str, Any]) -> bool:
    """Return whether plain data fit a schema, which may refer to those of the document."""
    whole = schema | {"components": document()["components"]}
    return bool(jsonschema.Draft202012Validator(whole).is_valid(plain))


def is_body(body: Any, model: str) -> bool:
    """Return whether plain data fit a schema of the document."""
    return is_valid(body, {"$ref": REF.format(model=model)})


def is_built(name: str, plain: Any) -> bool:
    build: Any = build_actions if name in SETS else build_versus
    try:
        build("thing", plain, LIMITS)
    except InvalidInput:
        return False
    return True


@pytest.mark.parametrize("name", GOOD)
def test_what_the_schema_of_a_class_refuses_the_class_refuses(name: str) -> None:
    """One argument at a time: missing, unknown, or in place of a good one."""
    good, schema = GOOD[name], of_one_class(name, CLASSES[name])
    assert is_valid(good, schema)
    assert is_valid(good, of_class(CLASSES))
    assert is_built(name, good)
    changed = [{key: one for key, one in good.items() if key != out} for out in good]
    changed += [good | {"unknown": 1}]
    changed += [good | {key: one} for key in schema["properties"] for one in PROBES]
    refused = [plain for plain in changed if not is_valid(plain, schema)]
    assert refused
    for plain in refused:
        told = {(name, key, one) for key, one in plain.items() if isinstance(one, bool)}
        assert told & ALSO_BUILT or not is_built(name, plain), plain


def test_words_are_those_of_the_classes() -> None:
    """Every word is accepted by the classes that have the argument."""
    for name, kind in {**SETS, **POLICIES, **RULES}.items():
        for argument, schema in of_one_class(name, kind)["properties"].items():
            for one in schema.get("anyOf", [schema]):
                for word in one.get("enum", ()):
                    plain = GOOD[name] | {argument: word}
                    assert is_built(name, plain), plain


def test_texts_have_no_nul_in_any_schema() -> None:
    """``strict_json`` refuses it, so the schemas do."""
    for model, body in (
        ("Ask", {"key": "Monday{}"}),
        ("Ask", {"exclude": ["Lyon{}"]}),
        ("Ask", {"at_most": {"Lyon{}": 1}}),
        ("TableRows", {"arm": ["Lyon{}"], "round": [1], "loss": [2.0]}),
        ("SetVersus", {"rule": {"type": "PriceList", "prices": {"Lyon{}": 1.0}}}),
    ):
        for mark, valid in (("", True), ("\0", False)):
            assert is_body(_marked(body, mark), model) is valid, (model, body, mark)


def _marked(plain: Any, mark: str) -> Any:
    """Return plain data with a mark in its texts."""
    if isinstance(plain, dict):
        return {_marked(key, mark): _marked(value, mark) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_marked(value, mark) for value in plain]
    return plain.replace("{}", mark) if isinstance(plain, str) else plain


@pytest.mark.parametrize(
    ("model", "body", "valid"),
    [
        ("Unforget", {"arm": "Lyon"}, True),
        ("Unforget", {"since": 0}, True),
        ("Unforget", {}, False),
        ("Unforget", {"arm": None}, False),
        ("Compare", {"learning": True}, True),
        ("Compare", {"learning": True, "versus": {"type": "InProportion"}}, False),
        ("Compare", {"learning": True, "method": "dr"}, False),
        ("Compare", {"since": "2026-13-01"}, False),
        ("Compare", {"versus": {"type": "FixedPlan"}}, False),
        ("TableRows", {"arm": [], "round": [], "loss": []}, False),
        ("Forget", {"before": 0}, False),
    ],
    ids=repr,
)
def test_rules_about_fields_are_in_the_schemas(
    model: str, body: dict[str, Any], valid: bool
) -> None:
    assert is_body(body, model) is valid


def test_examples_fit_their_schemas() -> None:
    for model, schema in document()["components"]["schemas"].items():
        for example in schema.get("examples", ()):
            assert is_body(example, model), model


def test_no_class_has_the_name_of_a_body() -> None:
    schemas = document()["components"]["schemas"]
    for name, kind in CLASSES.items():
        assert schemas[name]["properties"].keys() == of_one_class(name, kind)["properties"].keys()
        assert not hasattr(models, name) or name == "Features"  # an annotation, without a schema


def test_a_play_in_a_path_may_be_a_number() -> None:
    """Its id in a response is one: a client that follows the schema sends it as it is."""
    paths = document()["paths"]
    (play,) = [
        one
        for one in paths["/v1/studies/{study}/plays/{play}/why"]["get"]["parameters"]
        if one["name"] == "play"
    ]
    assert is_valid(7, play["schema"])
    assert is_valid("Monday", play["schema"])
    assert not is_valid("", play["schema"])
