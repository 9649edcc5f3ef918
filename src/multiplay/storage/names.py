"""Names of journals, and what is said of wrong ones."""

import difflib
from collections.abc import Iterable

from multiplay.errors import Conflict, InvalidInput, NotFound

LONGEST = 200


def checked_name(name: object) -> str:
    """Return a name that every store can keep, or say what is wrong with it."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST:
        got = repr(name)[:60]
        expected = f"text of 1 to {LONGEST} letters"
        raise InvalidInput("name", expected, got, "Give a short name.")
    if not name.isprintable():
        expected = "letters that can be printed"
        raise InvalidInput("name", expected, ascii(name)[:60], "Remove control characters.")
    return name


def taken(name: str, url: str) -> Conflict:
    """Return the error for a name that is used already."""
    hint = "Open it, or choose another name."
    return Conflict("name", f"a new name in {url}", repr(name), hint)


def unknown(name: object, names: Iterable[str], url: str) -> NotFound:
    """Return the error for a name that there is not."""
    names = list(names)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    if near:
        hint = f"Did you mean {near[0]!r}?"
    else:
        hint = f"Choose one of: {shown}." if names else "There is none yet: create one."
    return NotFound("name", f"a name that is in {url}", repr(name)[:60], hint)


def deleted(name: str, url: str) -> NotFound:
    """Return the error for a handle whose journal was deleted."""
    expected = f"a name that is in {url}"
    return NotFound("name", expected, f"{name!r}, which was deleted", "Open another one.")
