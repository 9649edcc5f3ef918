"""What an address means: names in paths, and how people came."""

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send


class NamesInPaths:
    """Keeps ``%2F`` and ``%25`` as they are in a path, so that ``unquote`` gives a name of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and b"%" in scope.get("raw_path", b""):
            scope = {**scope, "path": kept_apart(scope["raw_path"].decode("latin-1"))}
        await self._app(scope, receive, send)


class ByHttps:
    """Says that requests came by https, where a proxy in front of the service takes them so."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            scope = {**scope, "scheme": "https"}
        await self._app(scope, receive, send)


def kept_apart(raw: str) -> str:
    """Return a path with its parts decoded, but for slashes and percents in them.

    Examples
    --------
    >>> kept_apart("/studies/north%2Fsouth%20100%25/ask")
    '/studies/north%2Fsouth 100%25/ask'
    """
    parts = (unquote(part).replace("%", "%25").replace("/", "%2F") for part in raw.split("/"))
    return "/".join(parts)
