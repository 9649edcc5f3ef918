"""Template rendering: HTML responses in which all values are escaped."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from multiplay._support.formatting import legible
from multiplay.service.pages import sessions
from multiplay.service.pages.sessions import Visitor
from multiplay.version import __version__

STATIC = Path(__file__).with_name("static")
LAYOUT = "\n\r\t"  # control characters that are allowed in a text area
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def _legible(value: Any) -> Any:
    """Return a value for a template, with invisible characters replaced."""
    if type(value) is not str:
        return value
    return "".join(part if part in LAYOUT else legible(part) for part in value)


@cache
def files() -> dict[str, Path]:
    """Return the static files by path; no other file is served."""
    found = (file for file in sorted(STATIC.rglob("*")) if file.suffix in KINDS)
    return {file.relative_to(STATIC).as_posix(): file for file in found}


@cache
def static(path: str) -> str:
    """Return the URL of a file, which changes with its content, so that browsers can cache it."""
    digest = hashlib.sha256(files()[path].read_bytes()).hexdigest()
    return f"/static/{path}?v={digest[:12]}"


def url(study: str, *more: object) -> str:
    """Return the URL of a study, or of a part of it.

    Examples
    --------
    >>> url("north/south", "plays", 7)
    '/studies/north%2Fsouth/plays/7'
    """
    return "/".join(["/studies", quote(study, safe=""), *map(str, more)])


def lanes(text: str) -> str:
    """Return text with arrow characters, at which lines do not break.

    Examples
    --------
    >>> lanes("2×Lyon->north")
    '2×Lyon→north'
    """
    return text.replace("->", "\N{RIGHTWARDS ARROW}")


def coded(text: str) -> Markup:
    """Return text with code elements in place of backticks."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(parts)
    )


@cache
def templates() -> Environment:
    """Return the templates, which escape values and raise an error for undefined names."""
    made = Environment(
        loader=PackageLoader("multiplay.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_legible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"lanes": lanes, "coded": coded}
    made.globals |= {"static": static, "url": url, "version": __version__}
    made.globals["m"] = made.get_template("macros.html").module
    return made


def page(visitor: Visitor, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """Return a page as a response that is not cached."""

    def guard() -> Markup:
        hidden = Markup('<input type="hidden" name="{}" value="{}">')
        return Markup("").join(hidden.format(*one) for one in sessions.fields(visitor).items())

    given = {"here": "", "visitor": visitor, "guard": guard, **shown}
    text = templates().get_template(template).render(given)
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})
