"""Suggestions for misspelt names: of classes, keys, attributes and keyword arguments."""

import functools
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from multiplay._support.renamed import RENAMED, old_name, refuse_old_names
from multiplay.errors import InvalidInput

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

CLOSE = 0.5  # similarity of two names from which one is suggested for the other
UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'$")
PYTHON_SUGGESTS = sys.version_info >= (3, 13)
EVERY_ROUND = ("Feedback", "Play")  # constructed so often that a wrapper would slow simulations


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the known name nearest to ``name``, or "" if none is near.

    Examples
    --------
    >>> suggestion("epsilom", ["eta", "epsilon"])
    " Did you mean 'epsilon'?"
    >>> suggestion("horizon", ["eta", "epsilon"])
    ''
    """
    import difflib  # most programs never need it

    names = list(known)
    lower = {one.lower(): one for one in reversed(names)}
    same = lower.get(str(name).lower())
    near = [same] if same else difflib.get_close_matches(str(name), names, n=1, cutoff=CLOSE)
    return f" Did you mean {near[0]!r}?" if near else ""


def with_suggestions(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Add a suggestion to the ``TypeError`` of a misspelt keyword argument; refuse old names.

    Python suggests names itself from version 3.13 on.
    """
    if PYTHON_SUGGESTS and _called(function) not in RENAMED:
        return function

    @functools.wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            if trace is not None and trace.tb_next is None:  # raised by this call, not inside it
                if old := _old_name(function, error):
                    raise old from None
                _add_suggestion(function, error)
            raise

    return called


def suggest_arguments(kind: type) -> None:
    """Add suggestions to the constructor of a public class, and let it refuse old names."""
    if kind.__name__ in EVERY_ROUND:
        return
    package = __name__.partition(".")[0]
    for base in kind.__mro__:
        constructor: Any = vars(base).get("__init__")
        ours = base.__module__.partition(".")[0] == package
        if ours and constructor is not None and not hasattr(constructor, "__wrapped__"):
            base.__init__ = with_suggestions(constructor)  # type: ignore[misc]
        if ours:
            refuse_old_names(base, with_suggestions)


def _called(function: Callable[..., Any]) -> str:
    """Return what a call is called in the table of old names: a class instead of __init__."""
    return f"{function.__qualname__.removesuffix('.__init__')}()"


def _old_name(function: Callable[..., Any], error: TypeError) -> InvalidInput | None:
    """Return the error of an old name of an argument; None if the argument has none."""
    given, call = UNEXPECTED.search(str(error)), _called(function)
    return given and old_name(call, given[1], f"an argument of {call[:-2].removeprefix('Verbs.')}")


def _add_suggestion(function: Callable[..., Any], error: TypeError) -> None:
    if PYTHON_SUGGESTS:
        return
    import inspect

    message = str(error)
    misspelt = UNEXPECTED.search(message)
    if misspelt:
        known = [name for name in inspect.signature(function).parameters if name != "self"]
        meant = suggestion(misspelt[1], known)
        error.args = (f"{message}.{meant}" if meant else message,)
