"""Page endpoints: sessions, forms, and errors that are pages."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from email.message import Message
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from multiplay._support import deadline
from multiplay._support.words import noun_of
from multiplay.errors import InvalidInput, StoreError
from multiplay.service.api.problems import Kind, kind_of, request_id, without_store
from multiplay.service.api.routing import Endpoint, check_media_type
from multiplay.service.auth.authenticator import Caller
from multiplay.service.errors import InvalidFields, Unauthenticated
from multiplay.service.pages import journal_views, render, sessions
from multiplay.service.pages.forms import Form, UploadedFile, error_text
from multiplay.service.pages.sessions import Visitor
from multiplay.service.studies.manager import StudyManager
from multiplay.storage import Journal
from multiplay.studies import Study
from multiplay.studies.entry_codec import Request as Repeatable

MOST_FIELDS = 10_000
READING = 5.0  # seconds to read the files of a form
YEAR = 365 * 86_400  # seconds
EVENTS, JSON = "text/event-stream", "application/json"  # media types that our scripts accept
FORM, WITH_FILES = "application/x-www-form-urlencoded", "multipart/form-data"

UNEXPECTED = Kind(500, "Unexpected error")

T = TypeVar("T")
log = logging.getLogger("multiplay.service")


class Page(Endpoint):
    """An endpoint whose responses are pages, also those to errors.

    Its handler gets a context in place of the request.
    """

    async def respond(self, request: Request) -> Response:
        """Return the response to a request."""
        manager: StudyManager = request.app.state.manager
        try:
            visitor = await sessions.visitor_of(request, manager)
        except StoreError as error:
            return _error_page(request, _anonymous(request), error)
        if visitor.caller is not None:
            request.state.key_id = visitor.caller.id
        try:
            response = await self.handler(
                self._context(request, visitor), **self.parameters(request)
            )
        except Unauthenticated:
            response = _to_login(request, visitor)
        except Exception as error:
            response = _error_page(request, visitor, error)
        if visitor.is_new and response.media_type == "text/html":
            secret, secure = visitor.secret, visitor.secure
            sessions.set_cookie(response, sessions.VISITOR, secret, secure, YEAR)
        return response

    def _context(self, request: Request, visitor: Visitor) -> PageContext:
        kind = StudyPageContext if "study" in request.path_params else PageContext
        return kind(request, visitor, self.name)


class PageContext:
    """A request for a page.

    Parameters
    ----------
    request
        The request.
    visitor
        The session of the browser.
    verb
        The name of the endpoint.
    """

    def __init__(self, request: Request, visitor: Visitor, verb: str) -> None:
        self.request, self.visitor, self.verb = request, visitor, verb
        self.manager: StudyManager = request.app.state.manager

    @property
    def caller(self) -> Caller:
        """The caller of the session; without one, the browser is redirected to the login."""
        return self.visitor.certain()

    async def page(self, template: str, status: int = 200, **shown: Any) -> Response:
        """Return a page, rendered in a thread: a long page does not block other requests."""
        return await run_in_threadpool(render.page, self.visitor, template, status, **shown)

    async def in_thread(self, act: Callable[[], T]) -> T:
        """Call a function that reads a form or a file, in a thread and before a deadline."""

        def in_time() -> T:
            with deadline.before(time.monotonic() + READING):
                return act()

        return await run_in_threadpool(in_time)

    def without_store(self, error: InvalidInput) -> InvalidInput:
        """Return an error without the location of the store."""
        return without_store(error, self.manager.store.url)

    async def form(self) -> Form:
        """Return the fields of a form, if one of our own pages sent it."""
        body, given = await self.request.body(), self.request.headers.get("content-type", "")
        if given.lower().startswith(WITH_FILES):
            fields, files = multipart_fields(given, body)
        else:
            check_media_type(self.request, FORM, "Use the form of the page.")
            fields, files = _url_encoded_fields(body), {}
        sessions.check_form(self.request, self.visitor, fields)
        return Form(fields, files=files)


class StudyPageContext(PageContext):
    """A request for a page of a study; ``name`` is its name, if it is not in the path."""

    def __init__(
        self, request: Request, visitor: Visitor, verb: str, name: str | None = None
    ) -> None:
        super().__init__(request, visitor, verb)
        # a slash in the name is still %2F in the path
        self.name = unquote(request.path_params["study"]) if name is None else name
        self.base = render.url(self.name)
        self.caller.check("read", self.name)

    async def study_page(
        self, template: str, tab: str, status: int = 200, **shown: Any
    ) -> Response:
        """Return a page of the study, or its parts, in the words of the study."""
        words, sense = await self.read(lambda study: (study.words, study.actions.sense))
        latest = await self.read_journal(
            lambda journal: journal_views.last_entries(journal, 1, words=words)
        )
        frame = {"name": self.name, "base": self.base, "tab": tab, "w": words, "latest": latest}
        frame |= {"noun": noun_of(sense), "rewards": sense == "max", "done": ""}
        return await self.page(template, status, **frame | shown)

    async def play_form(self) -> Form:
        """Return the fields of a form that needs the permission to play."""
        form = await self.form()
        self.caller.check("play", self.name)
        return form

    async def read(self, act: Callable[[Study], Any]) -> Any:
        """Call a short function that reads the study."""
        return await self.manager.read(self.name, self.caller, act)

    async def read_journal(self, act: Callable[[Journal], Any]) -> Any:
        """Call a function that reads the journal."""
        return await self.manager.read_journal(self.name, self.caller, act)

    async def write(
        self,
        form: Form,
        act: Callable[[Study], Any],
        present: Callable[[Any], Any] | None = None,
        verb: str | None = None,
    ) -> Any:
        """Change the study; a form that is sent twice changes it once.

        ``verb`` is the verb of the study, where it is not that of the URL.
        """
        given = form.get("request")[:100]
        request = Repeatable(self.caller.request(given)) if given else None
        return await self.manager.write(
            self.name, self.caller, verb or self.verb, act, present, request
        )

    async def key_names(self, ids: set[str]) -> dict[str, str]:
        """Return the names of keys by their ids."""
        if not ids:
            return {}
        rows = await self.manager.use_keyring(lambda keyring: keyring.find(sorted(ids)))
        return {row.id: row.name for row in rows}


def _url_encoded_fields(body: bytes) -> dict[str, str]:
    try:
        text = body.decode("utf-8", "replace")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise _too_many_fields() from None


def multipart_fields(
    content_type: str, body: bytes
) -> tuple[dict[str, str], dict[str, UploadedFile]]:
    r"""Return the fields and the files of a form with files.

    A field for files that was left empty is not in the result.

    Examples
    --------
    >>> head = b'--x\r\nContent-Disposition: form-data; name="day"\r\n\r\n'
    >>> multipart_fields("multipart/form-data; boundary=x", head + b"Monday\r\n--x--\r\n")
    ({'day': 'Monday'}, {})
    """
    boundary = _header(content_type).get_boundary("").encode("ascii", "replace")
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary)[1:-1] if boundary else []
    if len(parts) > MOST_FIELDS:
        raise _too_many_fields()
    fields: dict[str, str] = {}
    files: dict[str, UploadedFile] = {}
    for part in parts:
        head, _, content = part.partition(b"\r\n\r\n")
        found = re.search(rb"content-disposition:([^\r\n]*)", head, re.IGNORECASE)
        said = _header("" if found is None else found[1].decode("utf-8", "replace").strip())
        name, file = said.get_param("name"), said.get_param("filename")
        if isinstance(name, str) and file is None:
            fields[name] = content.decode("utf-8", "replace")
        elif isinstance(name, str) and file:
            files[name] = UploadedFile(str(file), content)
    return fields, files


def _header(value: str) -> Message:
    """Return a message that parses the parameters of a header."""
    message = Message()
    message["Content-Type"] = value
    return message


def _too_many_fields() -> InvalidInput:
    return InvalidInput("form", f"at most {MOST_FIELDS} fields", "more", "Use the HTTP API.")


def done_text(texts: Mapping[str, str], done: str, **values: object) -> str:
    """Return the message of a code about what a form has done, "" for an unknown code.

    Examples
    --------
    >>> done_text({"closed": "Plan {play} was closed."}, "closed", play=7)
    'Plan 7 was closed.'
    """
    return texts[done].format(**values) if done in texts else ""


def to(address: str) -> Response:
    """Redirect a browser after a form: reloading the page does not send the form again."""
    return RedirectResponse(address, 303)


def _to_login(request: Request, visitor: Visitor) -> Response:
    """Redirect to the login, if a browser loads a page."""
    accepted = request.headers.get("accept", "")
    script = "hx-request" in request.headers or accepted in (EVENTS, JSON)
    if script:
        return Response(status_code=401)
    if request.method != "GET":
        words = "Nothing was changed. Log in, and fill in the form again."
        shown = {"heading": "Your session has ended", "words": words}
        return render.page(visitor, "error.html", 401, **shown)
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return to(f"/login?next={quote(here, safe='')}")


def _anonymous(request: Request) -> Visitor:
    return Visitor(None, None, "", is_new=False, secure=request.url.scheme == "https")


def _error_page(request: Request, visitor: Visitor, error: Exception) -> Response:
    """Return the page of an error; the details of an unexpected error are only logged."""
    id = request_id(request.scope)
    kind = kind_of(error) or UNEXPECTED
    if isinstance(error, InvalidFields | HTTPException):  # parameters of the address
        kind, words = Kind(404, "Not found"), "There is no such page."
    elif isinstance(error, InvalidInput):
        words = error_text(without_store(error, request.app.state.manager.store.url))
    else:
        log.error("failed", exc_info=error, extra={"fields": {"id": id}})
        words = f"The log of the service has the details under the id {id}."
        if isinstance(error, StoreError):
            words = f"{error.reason}. {error.hint}"  # without the location of the store
    shown = {"heading": kind.title, "words": words}
    return render.page(visitor, "error.html", kind.status, **shown)
