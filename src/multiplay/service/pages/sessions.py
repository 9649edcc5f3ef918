"""Sessions of browsers: cookies, login and logout, and the protection of forms.

A session is an API key of its own, which expires with the key of its login. Forms have a hidden
field that only pages of this service contain: a digest of the secret in the cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from multiplay.service.auth import keys
from multiplay.service.auth.authenticator import Caller
from multiplay.service.errors import Forbidden, Unauthenticated
from multiplay.service.studies.manager import StudyManager
from multiplay.storage.base import Keyring

SESSION, VISITOR = "multiplay_session", "multiplay_visitor"
LONGEST = 12 * 3_600  # seconds of a session
MARK = "mark"  # name of the hidden field
PURPOSE = b"multiplay: forms"
FIRST_PARTY = ("same-origin", "none")  # Sec-Fetch-Site of requests from our pages, or typed URLs


class Visitor(NamedTuple):
    """The browser that requests a page.

    Attributes
    ----------
    caller : Caller or None
        Its permissions; None before login.
    token : str or None
        The token of the session; None without a session.
    secret : str
        A secret that the browser and the service share.
    is_new : bool
        Whether the secret must be sent to the browser.
    secure : bool
        Whether the page was requested by https.
    """

    caller: Caller | None
    token: str | None
    secret: str
    is_new: bool
    secure: bool

    @property
    def known(self) -> bool:
        """Whether studies may be shown."""
        return self.caller is not None

    @property
    def session(self) -> bool:
        """Whether there is a session, which can be ended."""
        return self.token is not None

    @property
    def name(self) -> str:
        """The name of the API key."""
        return (self.caller.name if self.caller is not None else None) or ""

    @property
    def study(self) -> str | None:
        """The only study that the key allows, if it is limited to one."""
        return None if self.caller is None else self.caller.study

    def may(self, needed: str) -> bool:
        """Return whether the key includes this permission."""
        return self.caller is not None and keys.includes(self.caller.can, needed)

    @property
    def mark(self) -> str:
        """The value of the hidden field in forms."""
        return hmac.new(self.secret.encode(), PURPOSE, hashlib.sha256).hexdigest()

    def certain(self) -> Caller:
        """Return the permissions; raise ``Unauthenticated`` before login."""
        if self.caller is None:
            raise Unauthenticated("session", "a session", "none", "Log in.")
        return self.caller


async def visitor_of(request: Request, manager: StudyManager) -> Visitor:
    """Return the visitor of a request."""
    secure = request.url.scheme == "https"
    token = request.cookies.get(cookie(SESSION, secure))
    visitor = request.cookies.get(cookie(VISITOR, secure))
    caller = await _caller(manager, token)
    if caller is not None and token is not None and caller.id is not None:
        return Visitor(caller, token, token, is_new=False, secure=secure)
    secret = visitor or secrets.token_urlsafe(32)
    return Visitor(caller, None, secret, is_new=visitor is None, secure=secure)


async def _caller(manager: StudyManager, token: str | None) -> Caller | None:
    """Return the caller of a session, or the anonymous caller if the service is open."""
    for one in dict.fromkeys((token, None)):
        try:
            return await manager.caller(one)
        except Unauthenticated:
            continue
    return None


def cookie(name: str, secure: bool) -> str:
    """Return the name of a cookie, which by https no other host or path can set."""
    return f"__Host-{name}" if secure else name


def set_cookie(response: Response, name: str, value: str, secure: bool, seconds: int) -> None:
    """Set a cookie that scripts and other sites cannot use."""
    response.set_cookie(
        cookie(name, secure),
        value,
        max_age=seconds,
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


async def log_in(manager: StudyManager, token: str) -> str | None:
    """Start a session with an API key, and return its token; None if the key is not valid."""
    try:
        caller = await manager.caller(token.strip())
    except Unauthenticated:
        return None
    return await manager.use_keyring(
        lambda keyring: start_session(keyring, str(caller.row), time.time())
    )


def start_session(keyring: Keyring, id: str, now: float) -> str | None:
    """Create the key of a session; None for the key of another session."""
    row = next(iter(keyring.find([id])), None)
    if row is None or row.parent is not None:
        return None
    keyring.remove_expired(now)
    ends = now + LONGEST if row.expires is None else min(now + LONGEST, row.expires)
    made = keys.make(row.name, row.can, row.study, now, expires=ends, parent=row.id)
    keyring.add(made.row)
    return made.token


def log_out(keyring: Keyring, token: str) -> None:
    """End a session."""
    claim = keys.split(token)
    if claim is not None:
        keyring.remove(claim.id)


def check_form(request: Request, visitor: Visitor, typed: dict[str, str]) -> None:
    """Raise ``Forbidden`` unless a form was sent by a page of this service."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    foreign = site is not None and site not in FIRST_PARTY
    if origin is not None and not foreign:
        foreign = urlsplit(origin).netloc != request.headers.get("host", "")
    same = hmac.compare_digest(typed.pop(MARK, "").encode(), visitor.mark.encode())
    if foreign or not same:
        hint = "Reload the page, and send the form again."
        raise Forbidden("form", "a form of this page", "an expired or foreign form", hint)


def local_path(target: str) -> str:
    """Return the path to open after login: a path of this service, or the first page.

    Examples
    --------
    >>> local_path("/studies/lanes?arms=Lyon"), local_path("//elsewhere"), local_path("https://e")
    ('/studies/lanes?arms=Lyon', '/', '/')
    """
    parts = urlsplit(target)
    odd = not target.startswith("/") or target.startswith(("//", "/\\")) or "\\" in target
    if odd or parts.scheme or parts.netloc or not target.isprintable():
        return "/"
    return target


def fields(visitor: Visitor) -> dict[str, Any]:
    """Return the hidden fields of a form: its mark, and an id that detects a form sent twice."""
    return {MARK: visitor.mark, "request": secrets.token_urlsafe(16)}
