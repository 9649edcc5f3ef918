"""Errors that only a service has."""

from multiplay.errors import InvalidInput


class Unknown(InvalidInput):
    """There is no key, or it is not a valid one."""


class Forbidden(InvalidInput):
    """The key is valid, and may not do this."""


class Malformed(InvalidInput):
    """The body is not the JSON that it should be."""


class Unsupported(InvalidInput):
    """The body is of another kind."""
