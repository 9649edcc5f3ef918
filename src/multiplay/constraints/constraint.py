"""Constraint: the base class of what the plans of a learner, a study or a simulation must keep."""

from abc import ABC, abstractmethod
from collections.abc import Container
from typing import Any

from multiplay._support.checks import check_instance, is_list, shortened
from multiplay._support.hints import Hint, Verb
from multiplay.errors import InvalidInput

EXAMPLE = "SwitchingCost(15)"


class Constraint(ABC):
    """What plans cost beyond their losses, or have to keep.

    See ``SwitchingCost``, ``Baseline``, ``AtMost`` and ``AtLeast``. Any of them can be used
    together; constraints of one learner have different names.

    Examples
    --------
    >>> from multiplay import AtMost, SwitchingCost
    >>> [one.name for one in (SwitchingCost(15), AtMost(40, {"*": 1}, plays=22, name="CO2"))]
    ['switching cost', 'CO2']
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name, by which it is ended."""


def checked_constraints(given: Any) -> tuple[Constraint, ...]:
    """Return constraints, after checking their classes and that their names differ."""
    if not is_list(given):
        hint = f"Use constraints=[{EXAMPLE}]."
        raise InvalidInput("constraints", "a list of constraints", shortened(repr(given)), hint)
    made = dict[str, Constraint]()
    for one in given:
        constraint = checked_constraint(one, made)
        made[constraint.name] = constraint
    return tuple(made.values())


def checked_constraint(given: Any, taken: Container[str]) -> Constraint:
    """Return a constraint, after checking its class and that its name is not taken."""
    check_instance("constraints", given, Constraint, EXAMPLE)
    assert isinstance(given, Constraint)
    if given.name in taken:
        hint = Hint(
            "End the other one first: {}.", Verb("end_constraint", repr(given.name), given.name)
        )
        expected = f"one constraint of the name {given.name!r}"
        raise InvalidInput("constraints", expected, "another one", hint)
    return given
