"""Template rendering: HTML responses in which all values are escaped."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from multiplay._support.formatting import legible, plural
from multiplay.service.pages import forms, sessions
from multiplay.service.pages.sessions import Visitor
from multiplay.version import __version__

STATIC = Path(__file__).with_name("static")
LAYOUT = "\n\r\t"  # control characters that are allowed in a text area
LOCAL = re.compile(  # times to the minute; numbers with decimals or thousands, not in a name
    r"(?<![\w.,:;#-])(?:(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d)"
    r"|-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+\.\d+|-?\d{4,15})(?![\w:-]|[.,]\w)"
)
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def _legible(value: Any) -> Any:
    """Return a value for a template, with invisible characters replaced."""
    if type(value) is not str or value.isprintable():
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


def local(text: Any) -> Markup:
    """Return text whose numbers and times a script writes as the browser's language does.

    Whole numbers below 1,000 are the same in all languages. Times are UTC.

    Examples
    --------
    >>> print(local("1,878 EUR of 3"))
    <data value="1878">1,878</data> EUR of 3
    >>> print(local("bills 2025.csv"))
    bills 2025.csv
    >>> print(local("told 2026-11-17 08:30, 2026-11-17"))
    told <time datetime="2026-11-17T08:30Z">2026-11-17 08:30</time>, 2026-11-17
    >>> print(local("imported bills 2025.csv"))
    imported bills 2025.csv
    """

    def marked(found: re.Match[str]) -> str:
        text = found[0]  # digits and marks of numbers only
        if found["time"]:
            return f'<time datetime="{text.replace(" ", "T")}Z">{text}</time>'
        return f'<data value="{text.replace(",", "")}">{text}</data>'

    return Markup(LOCAL.sub(marked, str(escape(_legible(text)))))


def coded(text: str) -> Markup:
    """Return text with code elements in place of backticks."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(parts)
    )


def local_day(text: str) -> Markup:
    """Return the day of a time to the minute, which a script writes as the language does."""
    return Markup(str(local(text)).replace("<time ", "<time data-day ").replace(text, text[:10]))


def article(noun: str) -> str:
    """Return a noun with its article.

    Examples
    --------
    >>> article("lane"), article("item"), article("unit"), article("hour")
    ('a lane', 'an item', 'a unit', 'an hour')
    """
    word = noun.lower()
    an = word.startswith(("hour", "hono")) or (
        word[:1] in "aeiou" and not word.startswith(("uni", "use", "eu", "one"))
    )
    return f"{'an' if an else 'a'} {noun}"


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
    made.filters |= {
        "lanes": lanes,
        "coded": coded,
        "local": local,
        "local_day": local_day,
        "plural": plural,
        "article": article,
    }
    made.tests["match_unit"] = lambda field: field.startswith("unit")
    made.globals |= {"static": static, "url": url, "version": __version__}
    made.globals["number_rule"] = forms.NUMBER_RULE
    made.globals["m"] = made.get_template("macros.html").module
    return made


def page(visitor: Visitor, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """Return a page as a response that is not cached."""

    def guard() -> Markup:
        hidden = Markup('<input type="hidden" name="{}" value="{}">')
        return Markup("").join(hidden.format(*one) for one in sessions.fields(visitor).items())

    given = {"here": "", "help": "", "visitor": visitor, "guard": guard, **shown}
    text = templates().get_template(template).render(given)
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})
