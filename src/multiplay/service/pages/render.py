"""Templates to answers: everything in them is escaped."""

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
LAYOUT = "\n\r\t"  # letters without a shape that may stand in a text area
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def _shown(value: Any) -> Any:
    """Return what a template shows; letters without a shape cannot hide in it."""
    if type(value) is not str:
        return value
    return "".join(part if part in LAYOUT else legible(part) for part in value)


@cache
def files() -> dict[str, Path]:
    """Return what browsers may fetch, by path: nothing else is given out."""
    found = (file for file in sorted(STATIC.rglob("*")) if file.suffix in KINDS)
    return {file.relative_to(STATIC).as_posix(): file for file in found}


@cache
def static(path: str) -> str:
    """Return the address of a file; it changes with its content, so browsers may keep it."""
    digest = hashlib.sha256(files()[path].read_bytes()).hexdigest()
    return f"/static/{path}?v={digest[:12]}"


def url(study: str, *more: object) -> str:
    """Return the address of a study, or of something of it.

    Examples
    --------
    >>> url("north/south", "plays", 7)
    '/studies/north%2Fsouth/plays/7'
    """
    return "/".join(["/studies", quote(study, safe=""), *map(str, more)])


def lanes(text: str) -> str:
    """Return text with arrows at which no line ends.

    Examples
    --------
    >>> lanes("2×Lyon->north")
    '2×Lyon→north'
    """
    return text.replace("->", "\N{RIGHTWARDS ARROW}")


def coded(text: str) -> Markup:
    """Return text in which what stands between backticks is code."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(parts)
    )


@cache
def templates() -> Environment:
    """Return the templates: escaping is on, and a name that is not given is an error."""
    made = Environment(
        loader=PackageLoader("multiplay.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"lanes": lanes, "coded": coded}
    made.globals |= {"static": static, "url": url, "version": __version__}
    made.globals["m"] = made.get_template("macros.html").module
    return made


def page(visitor: Visitor, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """Answer with a page; nobody keeps a copy of it."""

    def guard() -> Markup:
        hidden = Markup('<input type="hidden" name="{}" value="{}">')
        return Markup("").join(hidden.format(*one) for one in sessions.fields(visitor).items())

    given = {"here": "", "visitor": visitor, "guard": guard, **shown}
    text = templates().get_template(template).render(given)
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})
