"""Contract of settings: objects can be written as JSON and built again."""

import json

from multiplay import actions, constraints, environments, policies
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import describe, types_in

CLASSES = classes_of(actions, constraints, environments, policies)


def check_settings(thing: object) -> None:
    """Check that an object of multiplay is the same after it was written to a file and read.

    It is described, written as JSON, read and built again, and must have the same description.
    Objects that cannot be built from a file are skipped: your own classes, functions, and logged
    data, of which only a digest is written.

    Parameters
    ----------
    thing
        A set, policy, environment or distribution.

    Examples
    --------
    >>> from multiplay import Transport
    >>> from multiplay.testing import check_settings
    >>> check_settings(Transport([1, 4, 5], [4, 6]))
    """
    if CLASSES.get(type(thing).__name__) is not type(thing):
        return
    plain = describe(thing)
    if not types_in(plain) <= CLASSES.keys():
        return
    again = Builder(CLASSES).build(type(thing).__name__, json.loads(json.dumps(plain)))
    assert type(again) is type(thing), "an object that is built again must be of the same class"
    assert describe(again) == plain, (
        "the settings of an object that is built again must be the same"
    )
