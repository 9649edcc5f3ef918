"""What is too large for a service: sets, policies, and what they would cost together.

The numbers were measured: what passes is made in seconds, and so are its first plans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay._support.checks import is_integer, is_list
from multiplay.actions import (
    ActionSet,
    Assignment,
    Budget,
    Coverage,
    Explicit,
    IntegerProgram,
    Knapsack,
    Matching,
    Network,
    Path,
    SpanningTree,
    Transport,
)
from multiplay.actions.flow import FlowSet
from multiplay.errors import InvalidInput
from multiplay.policies import (
    ESCB,
    FPLIX,
    FTRL,
    BestOfThreeWorlds,
    Duplicated,
    ExplorationByOptimisation,
    GenAdaINF,
    LinUCB,
    Policy,
    ScaledScribble,
)
from multiplay.policies.regression import Regression

if TYPE_CHECKING:
    from multiplay.service.studies.limits import Limits

LONGEST = 200  # letters of a name
ATTEMPTS = 1_000_000  # targets times budget: a Coverage makes a table of them for every plan
PROGRAM, CONSTRAINTS = 50, 100  # arms and constraints of an integer program: it is timed, too
# Of a knapsack, in the largest unit in which all weights are whole: 1 s for the worst rewards that
# were found; at 10^7 it is 6 s and 700 MB, or nothing is found.
CAPACITY = 1_000_000
# Actions to list: to plan with more takes minutes on some sets, whatever the policy's own limit.
LISTED: dict[type[Policy], int] = {
    ESCB: 10_000,
    LinUCB: 10_000,
    ExplorationByOptimisation: 60,
    BestOfThreeWorlds: 100,
    ScaledScribble: 100,
}
LISTED_ARMS = 50  # to list 10,000 flows may take 200,000 that lead nowhere
UNSTRUCTURED = 200  # arms: a hull that knows nothing but an oracle asks it thousands of times
HARD = 20  # arms of a knapsack or a program whose oracle is asked often where no time is set
WINDOWS = 1_000_000  # rounds of a window times arms: all of them are kept, and saved
SPANNED = 400  # arms: spanning actions are sought for 4 s then
HISTORY = 10_000_000  # rounds times arms of a table: 200 MB


class Size(NamedTuple):
    """How many arms a set will have: where they are counted, and how."""

    argument: str
    arms: Callable[[Mapping[str, Any]], int]


def _length(value: Any) -> int:
    return len(value) if is_list(value) else 1


def _whole(value: Any) -> int:
    return value if is_integer(value) and value > 0 else 1


def _longest(rows: Any) -> int:
    return max(map(_length, rows), default=1) if is_list(rows) else 1


SIZES: dict[type[ActionSet], Size] = {
    Assignment: Size(
        "rows, cols", lambda s: _whole(s["rows"]) * _whole(s.get("cols") or s["rows"])
    ),
    Budget: Size("caps", lambda s: _length(s["caps"])),
    Coverage: Size("weights", lambda s: _length(s["weights"])),
    Explicit: Size("actions", lambda s: _longest(s["actions"])),
    IntegerProgram: Size("A", lambda s: max(_longest(s["A"]), _longest(s.get("bounds")))),
    Knapsack: Size("weights", lambda s: _length(s["weights"])),
    Matching: Size("edges", lambda s: _length(s["edges"])),
    Network: Size("arcs", lambda s: _length(s["arcs"])),
    Path: Size("arcs", lambda s: _length(s["arcs"])),
    SpanningTree: Size("edges", lambda s: _length(s["edges"])),
    Transport: Size("supply, demand", lambda s: _length(s["supply"]) * _length(s["demand"])),
}


def check_settings_of_set(
    kind: type[ActionSet], settings: Mapping[str, Any], limits: Limits
) -> None:
    """Refuse a set before it is made, by its lists and numbers; wrong types pass here."""
    argument, arms = SIZES[kind].argument, SIZES[kind].arms(settings)
    if kind is IntegerProgram:
        _check(argument, arms, PROGRAM, "arms in an IntegerProgram")
        _check(argument, _length(settings["A"]), CONSTRAINTS, "constraints")
    _check(argument, arms, limits.arms, "arms", "--max-arms")
    if kind is Coverage:
        attempts = arms * _whole(settings["budget"])
        _check("budget", attempts, ATTEMPTS, "attempts, the budget times the targets")


def check_set(actions: ActionSet, limits: Limits) -> None:
    """Refuse a set that was quick to make, but has too many units or names that are no names."""
    if isinstance(actions, Knapsack) and actions._capacity > CAPACITY:
        expected = f"at most {CAPACITY} times the largest unit in which all weights are whole"
        raise InvalidInput("capacity", expected, f"{actions._capacity} times", "Round the weights.")
    units = int(actions.n.max())  # first: many large ones are no int64 together
    if units <= limits.units:
        units = actions.M
    _check("units", units, limits.units, "units in one plan", "--max-units")
    for name in actions.names:
        check_name("names", name)


def check_name(argument: str, name: str) -> None:
    """Refuse a text that people cannot read as a name."""
    if len(name) > LONGEST or not name.isprintable():
        expected = f"texts of at most {LONGEST} letters that can be printed"
        raise InvalidInput(argument, expected, ascii(name), "Give shorter names, in one line.")


def check_settings_of_policy(kind: type[Policy], settings: Mapping[str, Any]) -> None:
    """Refuse to list or to repeat more than by default; wrong types pass here."""
    for name in ("limit", "cap"):
        if name in settings and hasattr(kind, name):
            _check(name, _whole(settings[name]), getattr(kind, name), "here, the default")


def check_together(actions: ActionSet, policy: Policy, limits: Limits) -> None:
    """Refuse a policy that would take minutes, or gigabytes, on this set."""
    name, d = type(policy).__name__, actions.d
    if isinstance(policy, Duplicated):
        copies = int(actions.n.sum())
        if isinstance(actions, Transport) and actions.capacities is None:
            copies = int(actions.supply.sum()) * len(actions.demand)
        most = PROGRAM if isinstance(actions, IntegerProgram) else limits.arms
        _check("policy", copies, most, "copied arms for Duplicated")
        check_together(actions.duplicate().actions, policy.policy, limits)
        return
    window = getattr(policy, "window", None)
    if window is not None:
        _check("policy.window", window * d, WINDOWS, "rounds times arms")
    if type(policy) in LISTED:
        _check("policy", d, LISTED_ARMS, f"arms for {name}, which lists all actions")
        _check_listed(actions, name, LISTED[type(policy)])
    if isinstance(policy, Regression):
        _check("policy", d, SPANNED, f"arms for {name}")
    asks_often = isinstance(policy, FTRL | GenAdaINF | FPLIX | Regression)
    if asks_often and not isinstance(actions, FlowSet):
        set_name = type(actions).__name__
        _check("policy", d, UNSTRUCTURED, f"arms for {name} on a {set_name}")
        untimed = isinstance(policy, GenAdaINF | FPLIX)  # it asks in tell, which cannot be cut
        if untimed and isinstance(actions, Knapsack | IntegerProgram):
            _check("policy", d, HARD, f"arms for {name} on a {set_name}")


def _check_listed(actions: ActionSet, policy: str, most: int) -> None:
    try:
        actions.all_actions(most)
    except InvalidInput as error:
        if error.argument != "limit":
            raise
        raise _too_large("policy", most, f"actions for {policy}", f"more in {actions!r}") from None


def check_known(known: Collection[str], actions: ActionSet, limits: Limits) -> None:
    """Refuse the set of a day whose new arms would make a study too large: it forgets none."""
    new = sum(name not in known for name in actions.names)
    _check("actions", len(known) + new, limits.arms, "arms in all sets of a study", "--max-arms")


def check_history(rounds: int, arms: int) -> None:
    """Refuse a table that is learned from all at once, round by round, if it has too many."""
    _check("table", rounds * arms, HISTORY, "rounds times arms of the study")


def _check(argument: str, number: int, most: int, what: str, option: str = "") -> None:
    if number > most:
        raise _too_large(argument, most, what, f"{number}", option)


def _too_large(argument: str, most: int, what: str, got: str, option: str = "") -> InvalidInput:
    started = f", or start the service with {option}" if option else ""
    hint = f"Use multiplay in Python for larger ones{started}."
    return InvalidInput(argument, f"at most {most} {what}", got, hint)
