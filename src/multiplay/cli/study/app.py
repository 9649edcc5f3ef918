"""Group of the study commands: shared options, JSON output, next steps and error hints."""

import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, ClassVar, NamedTuple, get_type_hints

import typer

from multiplay._support.dates import moment_of
from multiplay._support.hints import Surface, rendered
from multiplay._support.renamed import old_name
from multiplay.cli.lazy_commands import LazyGroup
from multiplay.errors import InvalidInput, StoreError
from multiplay.storage import Damaged
from multiplay.storage.stores import DEFAULT_STORE

USAGE: Any = typer.BadParameter.__mro__[1]  # of wrong commands and options
PASSWORD = re.compile(r"://[^/@?]*:[^/@]+@|[?&](ssl)?password=")  # in a URL


class StudyCommands(LazyGroup):
    """Commands whose errors name options instead of Python arguments, and the new names."""

    panels: ClassVar[dict[str, dict[str, str]]] = {
        "Studies": {
            "check": "multiplay.cli.study.check:check",
            "create": "multiplay.cli.study.create:create",
            "list": "multiplay.cli.study.listing:list_all",
            "show": "multiplay.cli.study.show:show",
            "set": "multiplay.cli.study.show:set_",
            "rename": "multiplay.cli.study.maintenance:rename",
            "delete": "multiplay.cli.study.maintenance:delete",
        },
        "Plans and costs": {
            "ask": "multiplay.cli.study.ask:ask",
            "tell": "multiplay.cli.study.tell:tell",
            "close": "multiplay.cli.study.tell:close",
            "cancel": "multiplay.cli.study.tell:cancel",
            "correct": "multiplay.cli.study.tell:correct",
            "retract": "multiplay.cli.study.tell:retract",
            "expire": "multiplay.cli.study.tell:expire",
            "learn-table": "multiplay.cli.study.tell:learn_table",
            "add-constraint": "multiplay.cli.study.constraints:add_constraint",
            "end-constraint": "multiplay.cli.study.constraints:end_constraint",
            "note": "multiplay.cli.study.tell:note",
        },
        "Costs that count": {
            "forget": "multiplay.cli.study.tell:forget",
            "unforget": "multiplay.cli.study.tell:unforget",
        },
        "Plans and estimates": {
            "why": "multiplay.cli.study.ask:explain",
            "pending": "multiplay.cli.study.show:pending",
            "plays": "multiplay.cli.study.show:plays",
            "arms": "multiplay.cli.study.show:arms",
            "drift": "multiplay.cli.study.show:drift",
            "effects": "multiplay.cli.study.features:effects",
            "best": "multiplay.cli.study.ask:best",
            "expect": "multiplay.cli.study.ask:expect",
            "savings": "multiplay.cli.study.savings:savings",
            "constraints": "multiplay.cli.study.constraints:constraints",
            "imports": "multiplay.cli.study.tell:imports",
        },
        "Verification and files": {
            "verify": "multiplay.cli.study.maintenance:verify",
            "accept": "multiplay.cli.study.maintenance:accept",
            "backup": "multiplay.cli.study.maintenance:backup",
            "copy": "multiplay.cli.study.maintenance:copy",
            "export": "multiplay.cli.study.maintenance:export",
            "import": "multiplay.cli.study.maintenance:import_file",
        },
    }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named."""
        if self.get_command(ctx, args[0]) is None:
            refuse_old_name("multiplay study", args[0], "a command")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except USAGE as error:
            if (option := getattr(error, "option_name", None)) and error.ctx is not None:
                command = f"multiplay study {error.ctx.info_name}"
                refuse_old_name(command, option, f"an option of {command}")
            raise
        except InvalidInput as error:
            hint = rendered(error.hint, Surface.COMMAND_LINE)
            if isinstance(error, Damaged) and error.number is not None:  # the input is valid
                reason = f"expected {error.expected}, got {error.got}"
                raise StoreError(error.argument, reason, hint) from error
            raise type(error)(error.argument, error.expected, error.got, hint) from error


def refuse_old_name(owner: str, name: str, what: str) -> None:
    """Raise ``InvalidInput`` for an old name of a command or an option."""
    error = old_name(owner, name, what)
    if error is not None:
        hint = rendered(error.hint, Surface.COMMAND_LINE)
        raise InvalidInput(name, what, error.got, hint) from None


study = typer.Typer(
    cls=StudyCommands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""
    Studies: ask for a plan, tell its costs, and ask again.

    A study is a learner whose every command is durable. It is kept in a store: an SQLite file or a
    PostgreSQL database, which any number of programs may use at the same time. The first day:

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --loss-range 0,250

        multiplay study ask lanes --key 2026-11-15

        multiplay study tell lanes 1 costs.csv

        multiplay study show lanes
    """,
)


def warn_of_password(context: typer.Context, store: str) -> str:
    """Warn if a password is on the command line, where other users can read it."""
    source = context.get_parameter_source("store")
    if source is not None and source.name == "COMMANDLINE" and PASSWORD.search(store):
        typer.secho("Warning: ", fg="yellow", bold=True, nl=False, err=True)
        typer.echo(
            "the list of processes shows the password in --store. Set the environment variable "
            "MULTIPLAY_STORE instead, or use a password file of PostgreSQL.",
            err=True,
        )
    return store


Name = Annotated[str, typer.Argument(help="The name of the study.")]
StoreAt = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="MULTIPLAY_STORE",
        help="The store: sqlite:///FILE, or postgresql://USER@HOST/DATABASE.",
        callback=warn_of_password,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Key = Annotated[
    str | None,
    typer.Option(help="A name for this request: the same key gives the same answer."),
]
At = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="The time of it, 2026-11-15 or 2026-11-15T08:00; now by default."
    ),
]


class Request(NamedTuple):
    """The last options of a command that changes a study."""

    key: Key = None
    at: At = None
    store: StoreAt = DEFAULT_STORE
    as_json: AsJson = False

    def labels(self) -> dict[str, Any]:
        """Return the key and the time for a verb of a study."""
        return {"key": self.key, "at": time_of("--at", self.at)}


REQUEST = Request()  # no options


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command in which the fields of a named tuple are options, in its place.

    Examples
    --------
    >>> def close(name: Name, play: str, request: Request = REQUEST) -> None:
    ...     print(name, play, request.key)
    >>> list(signature(grouped(close)).parameters)
    ['name', 'play', 'key', 'at', 'store', 'as_json']
    >>> grouped(close)(name="lanes", play="3", key="a", at=None, store="", as_json=False)
    lanes 3 a
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if hasattr(kind, "_fields")}
    options = list[Parameter]()
    for one in signature(command).parameters.values():
        kind = groups.get(one.name)
        if kind is None:
            options.append(one.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        for field, hint in get_type_hints(kind, include_extras=True).items():
            default = kind._field_defaults[field]
            options.append(
                Parameter(field, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            )

    @wraps(command)
    def call(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in kind._fields})
        command(**given)

    call.__signature__ = Signature(options)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in options}
    return call


def time_of(option: str, text: str | None) -> datetime | None:
    """Return the time of an option; a date is its first moment, here."""
    if text is None:
        return None
    found = moment_of(text)
    if found is None:
        hint = "Write 2026-11-15 or 2026-11-15T08:00, with +01:00 for a time zone."
        raise InvalidInput(option, "a date or a time", repr(text), hint)
    return found


def print_answer(as_json: bool, answer: Any, text: str) -> None:
    """Print an answer as JSON, or what it says as text."""
    if as_json:
        print_json(answer)
    else:
        typer.echo(text)


def print_json(answer: Any) -> None:
    """Print an answer as JSON: NaN is null, times are ISO 8601."""
    typer.echo(json_text(answer))


def json_text(answer: Any) -> str:
    """Return an answer as JSON."""
    return json.dumps(plain(answer), ensure_ascii=False)


def plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat(timespec="microseconds")  # NaT
    return value
