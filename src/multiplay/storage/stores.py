"""Stores by URL: the store that a path or a URL refers to."""

from os import PathLike

from multiplay._support.atomic_files import as_path
from multiplay.errors import InvalidInput
from multiplay.storage.base import Store
from multiplay.storage.memory import MemoryStore

DEFAULT_STORE = "sqlite:///multiplay.db"
MEMORIES: dict[str, MemoryStore] = {}  # of this process, by name
EXPECTED = "a file name, sqlite:///plans.db, postgresql://host/database or memory://"


def store_at(place: Store | str | PathLike[str]) -> Store:
    """Return the store at a URL or path; nothing is created before its first journal.

    Parameters
    ----------
    place
        - the name of a file, or ``sqlite:///plans.db``: an SQLite database. Options:
          ``?synchronous=normal`` is faster, but a power failure may lose the last entries;
          ``?timeout=5`` waits at most 5 seconds for other processes (30 by default);
        - ``postgresql://user@host/database``: needs ``pip install 'multiplay[postgresql]'``;
        - ``memory://`` or ``memory://name``: in this process, until it ends;
        - a ``Store``: returned unchanged.

    Examples
    --------
    >>> store_at("memory://").url
    'memory://'
    >>> store_at("mysql://host/database")
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: store: expected a file name, sqlite:///plans.db, \
postgresql://host/database or memory://, got a URL of type 'mysql'. Use one of these.
    """
    if isinstance(place, Store):
        return place
    scheme, rest = _split(place)
    if scheme == "memory":
        return MEMORIES.setdefault(rest, MemoryStore(rest))
    if scheme in ("postgresql", "postgres"):
        from multiplay.storage.postgresql import PostgresqlStore  # SQLAlchemy takes a while

        return PostgresqlStore(f"postgresql://{rest}")
    if scheme not in ("", "sqlite"):
        raise InvalidInput("store", EXPECTED, f"a URL of type {scheme!r}", "Use one of these.")
    from multiplay.storage.sqlite import SqliteStore

    return SqliteStore.at(rest) if scheme else SqliteStore(as_path("store", place))


def _split(place: object) -> tuple[str, str]:
    """Return the parts before and after ``://``; two empty strings for a path."""
    scheme, found, rest = place.partition("://") if isinstance(place, str) else ("", "", "")
    return (scheme, rest) if found else ("", "")
