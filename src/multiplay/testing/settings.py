"""The contract of settings: what is written down can be built again."""

import json
from typing import Any

from multiplay import actions, environments, policies
from multiplay.builder import Builder, classes_of
from multiplay.serialization import describe

CLASSES = classes_of(actions, environments, policies)


def check_settings(thing: object) -> None:
    """Check that a set, policy, environment or distribution of multiplay survives a file.

    It is described, written as JSON, read and built again, and must have the same description.
    What cannot be built from a file is left alone: classes of your own, functions, and logs, of
    which only a digest is written down.

    Examples
    --------
    >>> from multiplay import Transport
    >>> check_settings(Transport([1, 4, 5], [4, 6]))
    """
    if CLASSES.get(type(thing).__name__) is not type(thing):
        return
    plain = describe(thing)
    if not all(kind in CLASSES for kind in _types(plain)):
        return
    again = Builder(CLASSES).build(type(thing).__name__, json.loads(json.dumps(plain)))
    assert type(again) is type(thing), "what is built again must be of the same class"
    assert describe(again) == plain, "settings must be the same after a file"


def _types(plain: Any) -> list[str]:
    """Return the types that plain data name, at any depth."""
    if isinstance(plain, list):
        return [kind for value in plain for kind in _types(value)]
    if not isinstance(plain, dict):
        return []
    here = [plain["type"]] if "type" in plain else []
    return here + [kind for value in plain.values() for kind in _types(value)]
