"""Groups of commands whose modules are imported when a command is used."""

import ast
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class LazyGroup(TyperGroup):
    """A group of commands: a module is imported for its command, not for the list in --help.

    ``panels`` has, for each panel of --help, the names of commands and where they are:
    ``module:name`` of a function, or of the ``Typer`` of a group.
    """

    panels: ClassVar[dict[str, dict[str, str]]]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: MutableMapping[str, Any] = LazyCommands(self.panels)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of --help."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help: of commands, it needs the first paragraphs of their docstrings."""
        loaded = self.commands
        self.commands = {
            name: TyperCommand(name, help=help_at(place), rich_help_panel=panel)
            for panel, places in self.panels.items()
            for name, place in places.items()
        }
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = loaded


class LazyCommands(MutableMapping[str, Any]):
    """The commands of a group, each imported when it is read."""

    def __init__(self, panels: dict[str, dict[str, str]]) -> None:
        self.places = {
            name: (place, panel) for panel, some in panels.items() for name, place in some.items()
        }
        self.loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.loaded:
            place, panel = self.places[name]
            module, _, attribute = place.partition(":")
            found = getattr(import_module(module), attribute)
            if isinstance(found, typer.Typer):
                self.loaded[name] = typer.main.get_group(found)
                self.loaded[name].name = name
            else:
                single = typer.Typer(add_completion=False, rich_markup_mode="rich")
                single.command(name, rich_help_panel=panel)(found)
                self.loaded[name] = typer.main.get_command(single)
        return self.loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self.loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def help_at(place: str) -> str:
    """Return the help of a command, which is read from the source of its module."""
    module, _, name = place.partition(":")
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return help_of(Path(spec.origin).read_text(encoding="utf-8"), name)


def help_of(source: str, name: str) -> str:
    r"""Return the docstring of a function, or the ``help=`` of a Typer, of a source text.

    Examples
    --------
    >>> help_of('def ask() -> None:\n    "Choose a plan."', "ask")
    'Choose a plan.'
    >>> help_of('key = Typer(help="Keys of users.")', "key")
    'Keys of users.'
    """
    for one in ast.parse(source).body:
        if isinstance(one, ast.FunctionDef) and one.name == name:
            return ast.get_docstring(one) or ""
        if isinstance(one, ast.Assign) and [ast.unparse(t) for t in one.targets] == [name]:
            assert isinstance(one.value, ast.Call)
            given = {word.arg: word.value for word in one.value.keywords}
            text: str = ast.literal_eval(given["help"])
            return text
    raise LookupError(name)
