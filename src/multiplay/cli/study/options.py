"""Action sets and other values from options and TOML files."""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from multiplay import actions, policies
from multiplay._support.builder import Builder, check_keys, classes_of, made, unknown
from multiplay._support.serialization import settings
from multiplay._support.toml_files import read_toml
from multiplay.actions import ActionSet, Budget, Knapsack, Model, Transport
from multiplay.actions.transport import sides_of
from multiplay.errors import InvalidInput
from multiplay.policies import Policy

SetFile = Annotated[
    Path | None,
    typer.Option("--set", metavar="FILE.toml", help="The action set, from a file."),
]
Supply = Annotated[
    str | None,
    typer.Option(
        metavar="1,4,5", help="Units of each supplier; with names: Lyon=1,Lille=4,Paris=5."
    ),
]
Demand = Annotated[
    str | None,
    typer.Option(metavar="4,6", help="Units for each customer; with names: north=4,south=6."),
]
Suppliers = Annotated[str | None, typer.Option(metavar="A,B", help="Names of the suppliers.")]
Demanders = Annotated[
    str | None,
    typer.Option("--customers", "--demanders", metavar="C,D", help="Names of the customers."),
]
Slack = Annotated[
    bool, typer.Option("--slack", help="Supply may be left over; demand is met exactly.")
]
Shortage = Annotated[
    float | None, typer.Option(help="Cost of a unit of unmet demand, if demand may stay unmet.")
]
Capacity = Annotated[float | None, typer.Option(help="Largest total weight of a knapsack.")]
Units = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", help="Number of units to spread over the arms."),
]

Currency = Annotated[
    str | None, typer.Option(metavar="EUR", help="The unit of costs, as it is shown.")
]
UnitWord = Annotated[
    str | None,
    typer.Option("--unit-word", metavar="truck", help="What a unit of a plan is called."),
]
ArmWord = Annotated[
    str | None, typer.Option("--arm-word", metavar="lane", help="What an arm is called.")
]
RoundWord = Annotated[
    str | None, typer.Option("--round-word", metavar="day", help="What a round is called.")
]

DURATIONS = {  # singular, as arguments of timedelta
    **dict.fromkeys(("w", "week"), "weeks"),
    **dict.fromkeys(("d", "day"), "days"),
    **dict.fromkeys(("h", "hour"), "hours"),
    **dict.fromkeys(("min", "minute"), "minutes"),
    **dict.fromkeys(("s", "second"), "seconds"),
}
WHICH = (
    "Give --set FILE.toml, --supply with --demand, --weights with --capacity, --budget with "
    "--caps, --model with --columns, or [actions] in the file of --settings."
)
FILE_HINT = 'Write [actions] and below it type = "Transport", for example.'


def read_set(path: Path) -> ActionSet:
    """Return the action set in a file; no code is imported for it."""
    plain = read_toml("--set", path, "a TOML file with a set", FILE_HINT)
    where = "--set"
    if "type" not in plain:
        check_keys("", plain, ("actions",), ("actions",), "multiplay study set file")
        where, plain = "actions", plain["actions"]
    built: ActionSet = made(Builder(classes_of(actions)), where, plain, ActionSet)
    return built


def model_set(path: Path, columns: str | None, known: str | None) -> Model:
    """Return the set of --model and --columns; several patterns are separated by blanks.

    ``known`` says which costs are known.
    """
    if columns is None:
        hint = "Use --columns 'x[*]', for example."
        raise InvalidInput("--columns", "the columns that are arms", "nothing", hint)
    try:
        return Model.of(path, arms=columns.split(), known=known)
    except InvalidInput as error:
        names = {"thing": "--model", "arms": "--columns", "known": "--settings, known"}
        argument = names.get(error.argument, f"--model, {error.argument}")
        raise InvalidInput(argument, error.expected, error.got, error.hint) from None


def policy_named(name: str) -> Policy:
    """Return the policy of this name, with its default settings."""
    kinds = {k: kind for k, kind in classes_of(policies).items() if issubclass(kind, Policy)}
    found = {k.lower(): k for k in kinds}.get(name.lower())
    if found is None:
        raise unknown("--policy", name, kinds)
    built: Policy = Builder(kinds).build("--policy", {"type": found}, Policy)
    return built


class SetOptions(NamedTuple):
    """The options of a new action set; each field has the name of its option."""

    supply: str | None = None
    demand: str | None = None
    weights: str | None = None
    capacity: float | None = None
    budget: int | None = None
    caps: str | None = None

    def made(self) -> ActionSet | None:
        """Return the set, or None if no option is given."""
        given = [name for name, value in self._asdict().items() if value is not None]
        for make, needed in (
            (self._transport, ("supply", "demand")),
            (self._knapsack, ("weights", "capacity")),
            (self._budget, ("budget", "caps")),
        ):
            if not set(needed) & set(given):
                continue
            both = " and ".join(f"--{name}" for name in needed)
            for name in needed:
                if name not in given:
                    raise InvalidInput(f"--{name}", both, "only one", f"Add --{name}.")
            for name in given:
                if name not in needed:
                    expected, hint = f"no --{name} with {both}", f"Leave --{name} out."
                    raise InvalidInput(f"--{name}", expected, f"--{name}", hint)
            return make()
        return None

    def _transport(self) -> ActionSet:
        sources, have = named_number_list("--supply", self.supply or "")
        targets, want = named_number_list("--demand", self.demand or "")
        if sources is None and targets is None:
            return Transport(have, want)
        sources = sources or [f"s{x + 1}" for x in range(len(have))]
        return Transport(have, want, (sources, targets or [f"d{y + 1}" for y in range(len(want))]))

    def _knapsack(self) -> ActionSet:
        called, weights = named_number_list("--weights", self.weights or "")
        return Knapsack(weights, self.capacity or 0.0, names=called)

    def _budget(self) -> ActionSet:
        called, caps = named_number_list("--caps", self.caps or "")
        return Budget(self.budget or 0, caps, names=called)


def set_of_round(
    usual: ActionSet,
    file: Path | None,
    supply: str | None,
    demand: str | None,
    suppliers: str | None,
    demanders: str | None,
    slack: bool,
    shortage: float | None,
    capacity: float | None,
    total: int | None,
) -> ActionSet | None:
    """Return the usual set with the changes for one round; None if there are no changes."""
    sides, changes = (supply, demand, suppliers, demanders), dict[str, Any]()
    if file is not None:
        if (*sides, slack or None, shortage, capacity, total) != (None,) * 8:
            hint = "Leave the other options out."
            raise InvalidInput("--set", "a file, or options", "both", hint)
        return read_set(file)
    if any(side is not None for side in sides):
        _check_usual("--supply, --demand", usual, Transport)
        assert isinstance(usual, Transport)
        changes |= _changed_sides(usual, *sides)
    if slack or shortage is not None:
        _check_usual("--slack" if slack else "--shortage", usual, Transport)
        changes |= {"slack": True} if slack else {}
        changes |= {} if shortage is None else {"shortage": shortage}
    if capacity is not None:
        _check_usual("--capacity", usual, Knapsack)
        changes["capacity"] = capacity
    if total is not None:
        _check_usual("--budget", usual, Budget)
        changes["total"] = total
    return type(usual)(**settings(usual) | changes) if changes else None


def sets_ahead(path: Path, usual: ActionSet) -> list[ActionSet]:
    """Return the sets of a JSON file: complete ones, or what differs from the usual set."""
    hint = 'Write [{"demand": [5, 5]}, {}], for example: what differs from the usual set.'
    try:
        found = json_value("--ahead", path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("--ahead", "a JSON file", f"{path} ({error})", hint) from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidInput("--ahead", "a list of sets", f"{path}", hint)
    builder, plain = Builder(classes_of(actions)), {"type": type(usual).__name__} | settings(usual)
    sets = []
    for k, one in enumerate(found):
        whole = one if "type" in one else plain | one
        sets.append(usual if not one else made(builder, f"--ahead[{k}]", whole, ActionSet))
    return sets


def _side(option: str, text: str, others: str | None) -> tuple[list[str] | None, list[Any]]:
    """Return the names and the numbers of an option; names may be in an option of their own."""
    called, values = named_number_list(option, text)
    if others is None:
        return called, values
    where = {"--supply": "--suppliers", "--demand": "--customers"}[option]
    found = name_list(where, others)
    if called is not None:
        hint = f"Leave out {where}, or the names in {option}."
        raise InvalidInput(where, "names in one option", f"names in {where} and {option}", hint)
    if len(found) != len(values):
        expected = f"{len(values)} names, one for each number of {option}"
        raise InvalidInput(where, expected, f"{len(found)}", "Give one name for each.")
    return found, values


def _changed_sides(
    usual: Transport,
    supply: str | None,
    demand: str | None,
    suppliers: str | None,
    demanders: str | None,
) -> dict[str, Any]:
    """Return the changes of supply and demand; numbers without names are in the usual order."""
    known = sides_of(usual.names) or (None, None)
    called, values, changed = list[Any](), list[list[Any]](), False
    for option, text, others, names_before, numbers_before in (
        ("--supply", supply, suppliers, known[0], usual.supply.tolist()),
        ("--demand", demand, demanders, known[1], usual.demand.tolist()),
    ):
        text = ",".join(map(str, numbers_before)) if text is None else text
        found, side = _side(option, text, others)
        if found is None and len(side) != len(numbers_before):
            expected = f"{len(numbers_before)} numbers, as in the usual set, or names with numbers"
            hint = f"Write {option} Lyon=2,Lille=3, for example."
            raise InvalidInput(option, expected, f"{len(side)}", hint)
        changed |= found is not None and found != names_before
        called.append(names_before if found is None else found)
        values.append(side)
    changes = {"supply": values[0], "demand": values[1]}
    if not changed:
        return changes
    if None in called or usual.capacities is not None:
        reason = "names of their own" if None in called else "capacities"
        expected = f"the suppliers and customers of the usual set, because its lanes have {reason}"
        hint = "Write the set of the round to a file: --set FILE.toml."
        raise InvalidInput("--supply, --demand", expected, "different names", hint)
    return changes | {"names": tuple(called)}


def _check_usual(option: str, usual: ActionSet, kind: type) -> None:
    if not isinstance(usual, kind):
        hint = "Write the set of the round to a file: --set FILE.toml."
        expected = f"a study of a {kind.__name__}"
        raise InvalidInput(option, expected, f"a study of {usual!r}", hint)


# ---------------------------------------------------------------- values of options


def name_list(option: str, text: str) -> list[str]:
    """Return the names in a text with commas between them.

    Examples
    --------
    >>> name_list("--suppliers", "Lyon, Lille")
    ['Lyon', 'Lille']
    """
    found = [part.strip() for part in text.split(",")]
    if "" in found:
        hint = f"Write {option} Lyon,Lille, for example."
        raise InvalidInput(option, "names separated by commas", repr(text), hint)
    return found


def number_list(option: str, text: str) -> list[int | float]:
    """Return the numbers in a text with commas between them; whole numbers as integers.

    Examples
    --------
    >>> number_list("--weights", "3, 4,0.5")
    [3, 4, 0.5]
    """
    return [_number(option, part, text) for part in text.split(",")]


def named_number_list(option: str, text: str) -> tuple[list[str] | None, list[int | float]]:
    """Return numbers with their names, or None for the names if there are none.

    Examples
    --------
    >>> named_number_list("--supply", "Lyon=1,Lille=4")
    (['Lyon', 'Lille'], [1, 4])
    >>> named_number_list("--supply", "1,4")
    (None, [1, 4])
    """
    if "=" not in text:
        return None, number_list(option, text)
    parts = [part.rpartition("=") for part in text.split(",")]
    found = name_list(option, ",".join(name for name, _, _ in parts))
    return found, [_number(option, number, text) for _, _, number in parts]


def number_pair(option: str, text: str | None) -> tuple[float, float] | None:
    """Return two numbers, or None if the option is not given."""
    if text is None:
        return None
    found = number_list(option, text)
    if len(found) != 2:
        hint = f"Write {option} 0,250, for example."
        raise InvalidInput(option, "two numbers, low and high", repr(text), hint)
    return found[0], found[1]


def parsed_units(option: str, texts: Iterable[str]) -> dict[str, int]:
    """Return units by arm, from texts such as ``Lyon->north=2``; a name may have a ``=``.

    Examples
    --------
    >>> parsed_units("--fixed", ["Lyon->north=2", "a=b=1"])
    {'Lyon->north': 2, 'a=b': 1}
    """
    found: dict[str, int] = {}
    for text in texts:
        arm, _, number = text.rpartition("=")
        if not arm or not number.strip().isdecimal():
            hint = f"Write {option} 'Lyon->north=2', with the quotes."
            raise InvalidInput(option, "an arm and its units", repr(text), hint)
        if arm.strip() in found:
            raise InvalidInput(option, "every arm once", repr(arm), "Leave one of the two out.")
        found[arm.strip()] = int(number)
    return found


def duration(option: str, text: str) -> timedelta:
    """Return a duration, from a text such as ``7d`` or ``36h``.

    Examples
    --------
    >>> duration("--older-than", "36h"), duration("--older-than", "1.5 days")
    (datetime.timedelta(days=1, seconds=43200), datetime.timedelta(days=1, seconds=43200))
    """
    number, _, unit = re.sub(r"^([\d.]+)\s*", r"\1 ", text.strip()).partition(" ")
    with suppress(ValueError, OverflowError, KeyError):
        return timedelta(**{DURATIONS[unit.lower().removesuffix("s") or "s"]: float(number)})
    hint = f"Write {option} 7d, 36h or 90min."
    raise InvalidInput(option, "a duration, such as 7d", repr(text), hint)


def json_value(option: str, text: str) -> Any:
    """Return the value of JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = f"""Write {option} '{{"Lyon->north": [120, 95, null]}}', for example."""
        raise InvalidInput(option, "JSON", f"{text[:60]!r} ({error})", hint) from None


def _number(option: str, part: str, text: str) -> int | float:
    try:
        return int(part)
    except ValueError:
        try:
            return float(part)
        except ValueError:
            hint = f"Write {option} 1,4,5, for example, with a dot in 0.5."
            raise InvalidInput(option, "numbers separated by commas", repr(text), hint) from None
