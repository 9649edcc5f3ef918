"""The contract of settings: what is written down can be built again."""

import json

from multiplay import actions, environments, policies
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import describe, types_in

CLASSES = classes_of(actions, environments, policies)


def check_settings(thing: object) -> None:
    """Check that a set, policy, environment or distribution of multiplay survives a file.

    It is described, written as JSON, read and built again, and must have the same description.
    What cannot be built from a file is left alone: classes of your own, functions, and logs, of
    which only a digest is written down.

    Parameters
    ----------
    thing
        What is to be written down.

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
    assert type(again) is type(thing), "what is built again must be of the same class"
    assert describe(again) == plain, "settings must be the same after a file"
