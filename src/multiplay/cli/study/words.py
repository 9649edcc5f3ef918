"""Errors in the words of the command line: --missing ignore instead of missing='ignore'."""

import re
from typing import Any

from typer.core import TyperGroup

from multiplay.errors import InvalidInput, StoreError
from multiplay.storage import Damaged

WORDS = {
    r"\b(missing|outside)='(\w+)'": r"--\1 \2",
    r"\bslack=True": "--slack",
    r"\bfinal=False": "--part",
    r"\bshortage=([\d.]+)": r"--shortage \1",
    r"\b(losses|rewards)=\((\S+), (\S+)\)": r"--\1 \2,\3",
    r"\b(sense)='max'": "--rewards",
    r"\bactions=\.\.\.$": "--set FILE.toml.",
    r"\blearn_table\(table, arm='(\w+)', round='(\w+)', loss='(\w+)'\)": (
        r"--arm \1 --round \2 --loss \3"
    ),
    r"\blearn\(plan, losses\)": "multiplay study learn",
    r"\bask\(\)": "multiplay study ask",
}


class Commands(TyperGroup):
    """Commands whose errors say which options to write."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            if isinstance(error, Damaged) and error.number is not None:  # nobody's input is bad
                reason = f"expected {error.expected}, got {error.got}"
                raise StoreError(error.argument, reason, error.hint) from error
            raise type(error)(
                error.argument, error.expected, error.got, in_options(error.hint)
            ) from error


def in_options(hint: str) -> str:
    """Return what to do in the words of the command line.

    Examples
    --------
    >>> in_options("Write missing='ignore' if the others never come.")
    'Write --missing ignore if the others never come.'
    """
    for python, words in WORDS.items():
        hint = re.sub(python, words, hint)
    return hint
