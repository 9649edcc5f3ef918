"""Commands: a verb as a frozen dataclass, and the table of all verbs.

The fields of a command are the arguments of the verb, each ``Annotated[type, Arg(kind, ...)]``.
``do`` changes the state and writes the entry; ``again`` answers the same key, ``result`` the same
request of a client; ``replay`` applies an entry. A query has ``read`` instead. The HTTP API, its
document and the client are made from the same fields. The key and the time of a verb are arguments
of every verb that writes, and no fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, get_args, get_type_hints

from multiplay._support.words import Words
from multiplay.actions import ActionSet
from multiplay.constraints import Constraint
from multiplay.features import Features
from multiplay.learner.comparison import Question, Versus
from multiplay.learner.engine import Engine
from multiplay.learner.plays import AnyPlay, Estimate, PendingPlay, Plan, Receipt, Why
from multiplay.learner.ranges import OutsideRange
from multiplay.learner.round_set import RoundSet
from multiplay.savings import Savings
from multiplay.storage import Entry, Record
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec, play_history, results
from multiplay.studies.replica import REDO, REPLAY, Check, Replica
from multiplay.studies.turn import Turn
from multiplay.types import IntArray

R = TypeVar("R")
C = TypeVar("C", bound="AnyCommand")
Plain = dict[str, Any]

PLAYS, STUDIES, QUERIES = "Plays", "Studies", "Queries"  # groups of operations in the document
OF_PLAY = "plays/{play}/"  # the path of a verb of a play


class Build(Protocol):
    """Builds objects of plain data, within the limits of a service."""

    def actions(self, where: str, plain: Any) -> ActionSet:
        """Return a set."""

    def rule(self, where: str, plain: Any) -> Any:
        """Return a rule."""

    def versus(self, where: str, plain: Any) -> Any:
        """Return a rule, a policy or plans by key."""

    def constraint(self, where: str, plain: Any) -> Constraint:
        """Return a constraint."""


class ClientContext(NamedTuple):
    """What a client knows of the study of a service.

    Attributes
    ----------
    why : function
        Explains the play of an id.
    words : function
        Returns the words in which plans and costs are shown.
    features : function
        Returns the declared features.
    arms : function
        Returns the names of the arms.
    """

    why: Callable[[int], Why]
    words: Callable[[], Words]
    features: Callable[[], Features | None]
    arms: Callable[[], Sequence[str]]

    def play(self, plain: Plain) -> PendingPlay:
        """Return the play of plain data."""
        rest: Plain = {"why": lambda: self.why(plain["id"]), "words": self.words}
        return results.of_plain(PendingPlay, plain, expect=_estimate_of(plain), **rest)

    def plan(self, plain: Plain) -> Plan:
        """Return the plan of plain data."""
        return results.of_plain(Plan, plain, _expect=_estimate_of(plain), _words=self.words)


def _estimate_of(plain: Plain) -> Callable[[], Estimate]:
    """Return what reads the estimate of a plan or play when it is needed."""
    return lambda: results.of_plain(Estimate, plain["expected"])


def as_given(argument: str, plain: Any, build: Build) -> Any:
    """Return plain data as it is."""
    return plain


@dataclass(frozen=True)
class Kind:
    """A kind of argument.

    Attributes
    ----------
    name : str
        Its name, which selects the type in the schemas of the HTTP API.
    plain : function
        Returns a value as plain data for JSON; raises ``InvalidInput`` for a wrong one.
    built : function
        Returns the value of plain data.
    takes_long : bool
        Whether that may take long.
    """

    name: str
    plain: Callable[[str, Any], Any]
    built: Callable[[str, Any, Build], Any] = as_given
    takes_long: bool = False


@dataclass(frozen=True)
class Arg:
    """An argument of a verb: its kind, its description, and its name in JSON if that differs."""

    kind: Kind
    description: str = ""
    json_name: str = ""


@dataclass(frozen=True)
class Argument:
    """A field of a command."""

    name: str
    json_name: str
    kind: Kind
    description: str
    required: bool
    default: Any


@dataclass(frozen=True)
class Http:
    """The operation of a verb in the HTTP API.

    Attributes
    ----------
    method, path
        Of its requests; the path is below that of the study.
    tag
        Its group in the document.
    body, about
        The name of the schema of its body, and what that says.
    example
        The example of its body.
    optional
        Whether the body may be left out.
    rules
        Rules of the schema about several fields.
    """

    method: str
    path: str
    tag: str
    body: str = ""
    about: str = ""
    example: Plain = field(default_factory=dict)
    optional: bool = False
    rules: tuple[Plain, ...] = ()


def some_of(*names: str) -> Plain:
    """Return the rule of a schema that one of these fields is given, or several."""
    given = {"not": {"type": "null"}}
    return {"anyOf": [{"required": [name], "properties": {name: given}} for name in names]}


def none_of(*names: str) -> Plain:
    """Return the rule that none of these fields is given."""
    return {"properties": {name: {"type": "null"} for name in names}}


def either(*rules: Plain) -> Plain:
    """Return the rule that one of these rules holds, or several."""
    return {"anyOf": [*rules]}


@dataclass(frozen=True)
class AnyCommand:
    """A verb with its arguments.

    Attributes
    ----------
    verb : str
        The name of the verb, which is that of its operation in the HTTP API.
    http : Http
        The operation.
    permission : str
        What a key must be allowed to do: "read" or "play".
    returns : type
        The class of its result, where plain data are made from the fields of the class.
    """

    verb: ClassVar[str]
    http: ClassVar[Http]
    permission: ClassVar[str] = "read"
    returns: ClassVar[Any] = None

    @classmethod
    @cache
    def arguments(cls) -> tuple[Argument, ...]:
        """Return the arguments, in order."""
        found = []
        hints = get_type_hints(cls, include_extras=True)
        for one in fields(cls):
            marks = [mark for mark in get_args(hints[one.name]) if isinstance(mark, Arg)]
            for arg in marks:  # fields without a mark are no arguments
                required = one.default is MISSING
                default = None if required else one.default
                name = arg.json_name or one.name
                found.append(Argument(one.name, name, arg.kind, arg.description, required, default))
        return tuple(found)

    def plain(self, context: ClientContext) -> Plain:
        """Return the arguments as plain data for JSON; those with their default are left out."""
        body: Plain = {}
        for one in self.body_arguments():
            value = getattr(self, one.name)
            if value is None and one.default is None and not one.required:
                continue
            plain = one.kind.plain(one.name, value)
            if one.required or (plain != one.default and (plain or one.default != ())):
                body[one.json_name] = plain
        return body

    @classmethod
    @cache
    def body_arguments(cls) -> tuple[Argument, ...]:
        """Return the arguments that are in the body of a request, or in its query."""
        return tuple(one for one in cls.arguments() if one.kind.name != "play")

    def of_play(self: C, play: int | str) -> C:
        """Return the command of a different play."""
        return type(self)(**{**vars(self), "play": play})

    @staticmethod
    def present(result: Any) -> Any:
        """Return a result as plain data for JSON."""
        return results.to_plain(result)

    def answer(self, plain: Any, context: ClientContext) -> Any:
        """Return the result of plain data of ``present``."""
        return results.of_plain(self.returns, plain)

    @classmethod
    def of_plain(cls: type[C], plain: Mapping[str, Any], build: Build, **more: Any) -> C:
        """Return the command of plain data; ``more`` are arguments that are not in it."""
        for one in cls.body_arguments():
            if one.json_name in plain:
                value = plain[one.json_name]
                built = None if value is None else one.kind.built(one.json_name, value, build)
                more[one.name] = built
        return cls(**more)

    @classmethod
    def takes_long_to_build(cls, plain: Mapping[str, Any]) -> bool:
        """Return whether ``of_plain`` may take long."""
        slow = (one.json_name for one in cls.body_arguments() if one.kind.takes_long)
        return any(plain.get(name) is not None for name in slow)


class Command(AnyCommand, Generic[R]):
    """A verb that writes an entry.

    Attributes
    ----------
    kinds : tuple of str
        The kinds of the entries that it writes.
    """

    kinds: ClassVar[tuple[str, ...]]
    permission = "play"
    prepares: ClassVar[bool] = False  # whether ``prepared`` does something
    learns: ClassVar[bool] = True  # whether losses may be learned: their kernels are compiled

    def prepared(self: C, engine: Engine) -> C:
        """Return the command after what takes long, and needs no transaction."""
        return self

    def known(self, turn: Turn) -> Entry | None:
        """Return the entry of this verb that has the key of the turn."""
        assert turn.key is not None
        return play_history.keyed(turn.journal, self.kinds, turn.key)

    def run(self, turn: Turn) -> R:
        """Return the result of the verb, or that of its entry with the same key.

        If a loss is outside ranges that grow, they grow first, in an entry of their own.
        """
        known = None if turn.key is None else self.known(turn)
        while True:
            try:
                return self.do(turn) if known is None else self.again(turn, known)
            except OutsideRange as found:
                turn.widen(found.wider)

    def do(self, turn: Turn) -> R:
        """Change the state, write the entry, and return the result."""
        raise NotImplementedError

    def again(self, turn: Turn, known: Entry) -> R:
        """Return the result of the entry of the same key; raise if the arguments differ."""
        raise NotImplementedError

    @classmethod
    def result(cls, turn: Turn, known: Entry) -> R:
        """Return the result of an entry, for the request that wrote it."""
        raise NotImplementedError

    @classmethod
    def stored(cls, result: R) -> Any:
        """Return a result as plain data, for a request that wrote no entry of its own."""
        return result if cls.returns is None else results.to_plain(result)

    @classmethod
    def of_stored(cls, turn: Turn, plain: Any) -> R:
        """Return the result of ``stored``."""
        found: R = plain if cls.returns is None else results.of_plain(cls.returns, plain)
        return found

    @staticmethod
    def replay(replica: Replica, entry: Entry, check: Check) -> Record | None:
        """Apply an entry; return the entry that this gives, to compare both."""
        return None


class Reader(NamedTuple):
    """What a query reads of a learner or a study.

    Attributes
    ----------
    current : function
        Returns a context with the current engine, which does not change within it.
    id_of : function
        Returns the id of a play.
    asked : function
        Returns the engine as it was when the play of an id was asked for, and the time.
    words : function
        Returns the words in which plans and costs are shown.
    expected : function
        Returns the expected total of an action of a round, by what is known when it is called.
    compared : function
        Returns what plays are compared with, after checking it.
    answer : function
        Returns what was saved, or what learning cost.
    history : function
        Calls a function with the journal, while no other thread uses it.
    """

    current: Callable[[], AbstractContextManager[Engine]]
    id_of: Callable[[AnyPlay], int]
    asked: Callable[[int], tuple[Engine, float]]
    words: Callable[[], Words]
    expected: Callable[[RoundSet, IntArray], Estimate]
    compared: Callable[[Any], Versus]
    answer: Callable[[Question], Savings]
    history: Callable[[Callable[[JournalEntries], Any]], Any]


class Query(AnyCommand, Generic[R]):
    """A verb that reads the current state."""

    def read(self, reader: Reader) -> R:
        """Return the result."""
        raise NotImplementedError


class SilentCommand(Command[None]):
    """A verb without a result."""

    def answer(self, plain: Any, context: ClientContext) -> None:
        """Return nothing."""

    @classmethod
    def result(cls, turn: Turn, known: Entry) -> None:
        """Return nothing."""


class ReportCommand(Command[Receipt]):
    """A verb that returns a receipt."""

    returns = Receipt

    @classmethod
    def result(cls, turn: Turn, known: Entry) -> Receipt:
        """Return the receipt."""
        return entry_codec.receipt_of(known, False)

    @staticmethod
    def redo(replica: Replica, entry: Entry, correction: Record | None) -> Record | None:
        """Apply an entry with the losses of its correction; without any if it was retracted."""
        raise NotImplementedError


COMMANDS: dict[str, type[Command[Any]]] = {}


def verb(name: str, http: Http, *kinds: str) -> Callable[[type[C]], type[C]]:
    """Return a decorator that adds a verb to the table; the kinds are those of its entries."""

    def add(command: type[C]) -> type[C]:
        command.verb, command.http = name, http
        if issubclass(command, Command):
            command.kinds, COMMANDS[name] = kinds, command
            entry_codec.KINDS[name] = kinds
            REPLAY.update(dict.fromkeys(kinds, command.replay))
        if issubclass(command, ReportCommand) and command.redo is not ReportCommand.redo:
            REDO.update(dict.fromkeys(kinds, command.redo))
        return command

    return add
