"""Errors of HTTP requests: authentication, permission, malformed requests, requests refused unread.

``api/problems.py`` gives each of them its status and its problem document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from multiplay.errors import InvalidInput, StoreError


class Unauthenticated(InvalidInput):
    """The API key is missing, or it is not valid."""


class Forbidden(InvalidInput):
    """The API key is valid, but lacks the permission."""


class MalformedRequest(InvalidInput):
    """The request cannot be parsed: its body, or one of its parameters."""


class UnsupportedMediaType(InvalidInput):
    """The body has a media type that the operation does not accept."""


class Overloaded(StoreError):
    """The service has too much to do; a client may try again in a moment.

    Parameters
    ----------
    reason
        What there is too much of.
    """

    def __init__(self, reason: str) -> None:
        super().__init__("service", reason, "Try again in a moment.")

    def __reduce__(self) -> Any:
        return type(self), (self.reason,)


class TookTooLong(Exception):
    """Integer programs of a request were not solved in time, perhaps in the midst of a change.

    It is no ``InvalidInput``, after which the state of a study would count as unchanged.

    Parameters
    ----------
    problem
        The error of the response.
    """

    def __init__(self, problem: InvalidInput) -> None:
        super().__init__(problem)
        self.problem = problem


class InvalidFields(Exception):
    """Fields of a body or of a query that do not fit the schema.

    Parameters
    ----------
    where
        "body", "query" or "path".
    errors
        The errors of pydantic, at least one.
    content
        The body or the query.
    known
        The names of all fields, to suggest one for a name that is misspelt.
    schema
        The name of the schema, whose old names ``RENAMED`` has.
    """

    def __init__(
        self,
        where: str,
        errors: Sequence[Mapping[str, Any]],
        content: Any,
        known: Iterable[str] = (),
        schema: str = "",
    ) -> None:
        super().__init__(where, errors, content, known, schema)
        self.where, self.errors, self.content = where, errors, content
        self.known, self.schema = known, schema


class RequestRefused(Exception):
    """A request that is refused before its body is read.

    Parameters
    ----------
    status
        The HTTP status.
    title, detail, hint
        The texts of the problem document.
    """

    def __init__(self, status: int, title: str, detail: str, hint: str | None = None) -> None:
        super().__init__(status, title, detail, hint)
        self.status, self.title, self.detail, self.hint = status, title, detail, hint
