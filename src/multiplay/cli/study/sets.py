"""What may be played, from a file or from options."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from multiplay import actions, policies
from multiplay._support.builder import Builder, check_keys, classes_of, unknown
from multiplay._support.serialization import settings
from multiplay.actions import ActionSet, Budget, Knapsack, Transport
from multiplay.actions.transport import sides_of
from multiplay.cli.study.texts import named_numbers, names
from multiplay.errors import InvalidInput
from multiplay.experiments.experiment import made, read_toml
from multiplay.policies import Policy

SetFile = Annotated[
    Path | None,
    typer.Option("--set", metavar="FILE.toml", help="What may be played, from a file."),
]
Supply = Annotated[
    str | None,
    typer.Option(metavar="1,4,5", help="What suppliers have; with names: Lyon=1,Lille=4,Paris=5."),
]
Demand = Annotated[
    str | None,
    typer.Option(metavar="4,6", help="What demanders want; with names: north=4,south=6."),
]
Suppliers = Annotated[str | None, typer.Option(metavar="A,B", help="Names of the suppliers.")]
Demanders = Annotated[str | None, typer.Option(metavar="C,D", help="Names of the demanders.")]
Capacity = Annotated[float | None, typer.Option(help="What a knapsack takes.")]
Units = Annotated[
    int | None, typer.Option("--budget", metavar="N", help="Units to be spread over the arms.")
]

KEYS = ("losses", "rewards", "outside", "missing", "changing", "seed")
SIDES = ("suppliers", "demanders", "slack", "shortage")
WHICH = (
    "Give --set FILE.toml, --supply with --demand, --weights with --capacity, or --budget with "
    "--caps."
)
FILE_HINT = 'Write type = "Transport" and so on below [actions].'


class Given(NamedTuple):
    """What a file says: a set, and perhaps more that a study is made with."""

    actions: ActionSet
    policy: Policy | None
    settings: dict[str, Any]


def read(path: Path) -> Given:
    """Return what a file says; nothing is imported for it."""
    plain = read_toml("--set", path, "a TOML file with a set", FILE_HINT)
    if "type" in plain:  # the set alone
        plain = {"actions": plain}
    check_keys("", plain, ("actions", "policy", *KEYS), ("actions",))
    sets, ways = Builder(classes_of(actions)), Builder(classes_of(policies))
    policy = plain.get("policy")
    return Given(
        made(sets, "actions", plain["actions"], ActionSet),
        None if policy is None else made(ways, "policy", policy, Policy),
        {key: plain[key] for key in KEYS if key in plain},
    )


def policy_called(name: str) -> Policy:
    """Return the policy of this name, as it is without settings."""
    kinds = {k: kind for k, kind in classes_of(policies).items() if issubclass(kind, Policy)}
    found = {k.lower(): k for k in kinds}.get(name.lower())
    if found is None:
        raise unknown("--policy", name, kinds)
    built: Policy = Builder(kinds).build("--policy", {"type": found}, Policy)
    return built


class Options(NamedTuple):
    """The options that say what may be played; each is called as its field."""

    supply: str | None = None
    demand: str | None = None
    suppliers: str | None = None
    demanders: str | None = None
    slack: bool | None = None
    shortage: float | None = None
    weights: str | None = None
    capacity: float | None = None
    budget: int | None = None
    caps: str | None = None
    arms: str | None = None

    def made(self, sense: str) -> ActionSet | None:
        """Return the set; None if there are no options."""
        given = [name for name, value in self._asdict().items() if value is not None]
        if not given:
            return None
        for make, needed, also in (
            (self._transport, ("supply", "demand"), SIDES),
            (self._knapsack, ("weights", "capacity"), ("arms",)),
            (self._budget, ("budget", "caps"), ("arms",)),
        ):
            if not set(needed) & set(given):
                continue
            both = " and ".join(f"--{name}" for name in needed)
            for name in needed:
                if name not in given:
                    raise InvalidInput(f"--{name}", both, "one of them", f"Add --{name}.")
            for name in given:
                if name not in (*needed, *also):
                    expected = f"options that go with {both}"
                    raise InvalidInput(f"--{name}", expected, "another one", f"Leave --{name} out.")
            return make(sense)
        raise InvalidInput(f"--{given[0]}", "a set that it belongs to", "none", WHICH)

    def _transport(self, sense: str) -> ActionSet:
        sources, have = _side("--supply", self.supply or "", self.suppliers)
        targets, want = _side("--demand", self.demand or "", self.demanders)
        both = None
        if sources is not None or targets is not None:
            sources = sources or [f"s{x + 1}" for x in range(len(have))]
            both = sources, targets or [f"d{y + 1}" for y in range(len(want))]
        slack, shortage = bool(self.slack), self.shortage
        return Transport(have, want, both, slack=slack, sense=sense, shortage=shortage)

    def _knapsack(self, sense: str) -> ActionSet:
        called, weights = _side("--weights", self.weights or "", self.arms)
        return Knapsack(weights, self.capacity or 0.0, names=called)

    def _budget(self, sense: str) -> ActionSet:
        called, caps = _side("--caps", self.caps or "", self.arms)
        return Budget(self.budget or 0, caps, names=called, sense=sense)


def today(
    usual: ActionSet,
    file: Path | None,
    supply: str | None,
    demand: str | None,
    suppliers: str | None,
    demanders: str | None,
    capacity: float | None,
    total: int | None,
) -> ActionSet | None:
    """Return the set of today, as the usual one where nothing else is said; None if it is that."""
    sides, changes = (supply, demand, suppliers, demanders), dict[str, Any]()
    if file is not None:
        if (*sides, capacity, total) != (None,) * 6:
            hint = "Leave the other options out."
            raise InvalidInput("--set", "a file, or options", "both", hint)
        return read(file).actions
    if any(side is not None for side in sides):
        _check_usual("--supply, --demand", usual, Transport)
        assert isinstance(usual, Transport)
        changes |= _sides_of_today(usual, *sides)
    if capacity is not None:
        _check_usual("--capacity", usual, Knapsack)
        changes["capacity"] = capacity
    if total is not None:
        _check_usual("--budget", usual, Budget)
        changes["total"] = total
    return type(usual)(**settings(usual) | changes) if changes else None


def _side(option: str, text: str, others: str | None) -> tuple[list[str] | None, list[Any]]:
    """Return what stands behind an option, and the names that stand there or elsewhere."""
    called, values = named_numbers(option, text)
    if others is None:
        return called, values
    where = {"--supply": "--suppliers", "--demand": "--demanders"}.get(option, "--arms")
    found = names(where, others)
    if called is not None:
        hint = f"Leave {where} out, or the names in {option}."
        raise InvalidInput(where, "names in one place", "names in two", hint)
    if len(found) != len(values):
        expected = f"{len(values)} names, one for each number of {option}"
        raise InvalidInput(where, expected, f"{len(found)}", "Give one name for each.")
    return found, values


def _sides_of_today(
    usual: Transport,
    supply: str | None,
    demand: str | None,
    suppliers: str | None,
    demanders: str | None,
) -> dict[str, Any]:
    """Return what is changed in the usual set, which says who has a number without a name."""
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
        expected = "the suppliers and demanders of the usual set, for its lanes have "
        expected += "names of their own" if None in called else "capacities"
        hint = "Write the set of today to a file: --set FILE.toml."
        raise InvalidInput("--supply, --demand", expected, "others", hint)
    return changes | {"names": tuple(called)}


def _check_usual(option: str, usual: ActionSet, kind: type) -> None:
    if not isinstance(usual, kind):
        hint = "Write the set of today to a file: --set FILE.toml."
        expected = f"a study of a {kind.__name__}"
        raise InvalidInput(option, expected, f"one of {usual!r}", hint)
