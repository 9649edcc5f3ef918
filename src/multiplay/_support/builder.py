"""Builder of objects from plain data, from a given list of classes."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from multiplay._support.renamed import RENAMED
from multiplay._support.suggestions import suggestion
from multiplay.errors import InvalidInput


def classes_of(*modules: ModuleType) -> dict[str, type]:
    """Return the classes that these modules export and that can be built, by name."""
    exported = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {
        name: kind
        for name, kind in exported.items()
        if isinstance(kind, type) and not inspect.isabstract(kind)
    }


def arguments_of(kind: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments of a class by name, without those that take any name."""
    given = inspect.signature(kind).parameters
    return {name: one for name, one in given.items() if one.kind is not one.VAR_KEYWORD}


def _as_it_is(where: str, leaf: Any) -> Any:
    return leaf


class Builder:
    """Builds objects from tables with a ``type``, and everything below them.

    ``classes`` are all classes that can be built. ``leaf`` converts anything but lists and tables
    to a value, such as a formula to its number. Errors name the place in the data, such as
    ``policies.GenCTS.alpha``.

    Examples
    --------
    >>> from multiplay import policies
    >>> builder = Builder(classes_of(policies))
    >>> builder.build("policy", {"type": "Duplicated", "policy": {"type": "GenCTS"}})
    Duplicated(policy=GenCTS())
    """

    def __init__(
        self, classes: Mapping[str, type], leaf: Callable[[str, Any], Any] = _as_it_is
    ) -> None:
        self.classes, self.leaf = classes, leaf
        self._known: dict[Any, tuple[list[str], list[str]]] = {}

    def build(self, where: str, plain: Any, wanted: type = object) -> Any:
        """Build plain data; tables without a type stay tables.

        A class that is not a subclass of ``wanted`` is refused before anything is built.
        """
        if isinstance(plain, list):
            return [self.build(f"{where}[{i}]", value) for i, value in enumerate(plain)]
        if not isinstance(plain, dict):
            return self.leaf(where, plain)
        if "type" not in plain:
            return {key: self.build(f"{where}.{key}", value) for key, value in plain.items()}
        kind = self.find(f"{where}.type", plain["type"])
        if wanted is not object and not (isinstance(kind, type) and issubclass(kind, wanted)):
            raise wrong_class(where, plain["type"], wanted)
        check_keys(where, plain, *self._arguments(kind), f"{kind.__name__}()")
        settings = {
            key: self.build(f"{where}.{key}", value)
            for key, value in plain.items()
            if key != "type"
        }
        with errors_below(where):
            return self.make(kind, settings)

    def make(self, kind: Callable[..., Any], settings: dict[str, Any]) -> Any:
        """Make one object from its settings, which are built already."""
        return kind(**settings)

    def _arguments(self, kind: Callable[..., Any]) -> tuple[list[str], list[str]]:
        """Return the keys that a table may have, and the required keys, from a cache."""
        if kind not in self._known:
            given, empty = arguments_of(kind), inspect.Parameter.empty
            needed = [name for name, parameter in given.items() if parameter.default is empty]
            self._known[kind] = ["type", *given], needed
        return self._known[kind]

    def find(self, where: str, name: Any) -> type:
        """Return a class by its name."""
        if isinstance(name, str) and name in self.classes:
            return self.classes[name]
        raise unknown(where, name, self.classes, "multiplay")


def wrong_class(where: str, name: str, wanted: type) -> InvalidInput:
    """Return the error of a class in a place for subclasses of another one."""
    hint = f"Name a class that belongs in {where.partition('.')[0]}."
    return InvalidInput(f"{where}.type", f"a subclass of {wanted.__name__}", name, hint)


def check_keys(
    where: str, table: Any, allowed: Iterable[str], needed: Iterable[str], owner: str = ""
) -> None:
    """Raise ``InvalidInput`` unless a table has all required keys, and no unknown keys.

    ``owner`` is what has old names, see ``RENAMED``.
    """
    prefix = f"{where}." if where else ""
    if not isinstance(table, dict):
        raise InvalidInput(where, "a table", repr(table), "Write { key = value, ... }.")
    for key in table:
        if key not in allowed:
            raise unknown(f"{prefix}{key}", key, allowed, owner)
    for key in needed:
        if key not in table:
            raise InvalidInput(f"{prefix}{key}", "a value", "none", "Add it: it has no default.")


def unknown(where: str, name: Any, allowed: Iterable[str], owner: str = "") -> InvalidInput:
    """Return the error of a name that is not allowed, with a suggestion, or the new name."""
    hint = suggestion(name, allowed).strip() or "Check the spelling."
    if isinstance(name, str):
        hint = RENAMED.get(owner, {}).get(name, hint)
    return InvalidInput(where, f"one of {', '.join(allowed)}", repr(name), hint)


@contextmanager
def errors_below(key: str) -> Iterator[None]:
    """Prefix errors with the key of the data."""
    try:
        yield
    except InvalidInput as error:
        raise error.under(key) from None


def made(builder: Builder, where: str, plain: Any, wanted: type) -> Any:
    """Build a table that must have a type, of the wanted class."""
    if not isinstance(plain, dict) or "type" not in plain:
        raise InvalidInput(where, "a table with a type", repr(plain), 'Write type = "...".')
    return builder.build(where, plain, wanted)
