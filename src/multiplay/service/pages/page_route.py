"""Routes of pages: they know who looks, and their errors are pages too."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, unquote

from fastapi import Depends, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from multiplay.errors import InvalidInput, StoreError
from multiplay.service.api.problems import Kind, discreet, kind_of, request_id
from multiplay.service.api.refusals import Unknown
from multiplay.service.api.strict import check_type
from multiplay.service.auth.authenticator import Caller
from multiplay.service.pages import render, sessions
from multiplay.service.pages.forms import Form, error_text
from multiplay.service.pages.sessions import Visitor
from multiplay.service.studies.manager import Office
from multiplay.storage import Journal
from multiplay.studies import Study

MOST_FIELDS = 10_000
YEAR = 365 * 86_400  # seconds
EVENTS, JSON = "text/event-stream", "application/json"  # what scripts of ours accept
TYPED = "application/x-www-form-urlencoded"

UNFORESEEN = Kind(500, "Something went wrong that should not")

log = logging.getLogger("multiplay.service")


class PageRoute(APIRoute):
    """A route whose answers are pages, whatever happens."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            office: Office = request.app.state.office
            try:
                visitor = await sessions.visitor_of(request, office)
            except StoreError as error:
                return _failed(request, _nobody(request), error)
            request.state.visitor = visitor
            if visitor.caller is not None:
                request.state.key_id = visitor.caller.id
            try:
                answer = await handle(request)
            except Unknown:
                answer = _to_login(request, visitor)
            except Exception as error:
                answer = _failed(request, visitor, error)
            if visitor.is_new and answer.media_type == "text/html":
                secret, secure = visitor.secret, visitor.secure
                sessions.set_cookie(answer, sessions.VISITOR, secret, secure, YEAR)
            return answer

        return shown


class Look:
    """Somebody who looks at a page, of a study perhaps."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.office: Office = request.app.state.office
        self.visitor: Visitor = request.state.visitor

    @property
    def caller(self) -> Caller:
        """What they may do; who has not logged in is sent to the page for that."""
        return self.visitor.certain()

    async def page(self, template: str, status: int = 200, **shown: Any) -> Response:
        """Answer with a page; a long one keeps nobody else waiting."""
        return await run_in_threadpool(render.page, self.visitor, template, status, **shown)

    def discreet(self, error: InvalidInput) -> InvalidInput:
        """Return an error without the place of the store."""
        return discreet(error, self.office.store.url)

    async def form(self) -> Form:
        """Return what was typed, if it was typed into a form of ours."""
        check_type(self.request, TYPED, "Use the form of the page.")
        text = (await self.request.body()).decode("utf-8", "replace")
        try:
            typed = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            hint = "Use the interface for programs."
            expected = f"at most {MOST_FIELDS} fields"
            raise InvalidInput("form", expected, "more", hint) from None
        sessions.check_form(self.request, self.visitor, typed)
        return Form(typed)


class StudyLook(Look):
    """Somebody who looks at a study."""

    def __init__(self, request: Request, study: str) -> None:
        super().__init__(request)
        self.name = unquote(study)  # a slash in it was kept apart from those of the path
        self.base = render.url(self.name)
        self.caller.check("read", self.name)

    async def read(self, act: Callable[[Study], Any]) -> Any:
        """Look at the study, quickly."""
        return await self.office.read(self.name, self.caller, act)

    async def look(self, act: Callable[[Journal], Any]) -> Any:
        """Look at its journal."""
        return await self.office.look(self.name, self.caller, act)

    async def write(
        self, form: Form, act: Callable[[Study], Any], shown: Callable[[Any], Any] | None = None
    ) -> Any:
        """Change the study by the verb of this route; a form that is sent twice changes it once."""
        request, verb = form.get("request")[:100] or None, self.request.scope["route"].name
        return await self.office.write(self.name, self.caller, verb, act, shown, request)

    async def named(self, ids: set[str]) -> dict[str, str]:
        """Return the names of keys by their ids."""
        if not ids:
            return {}
        rows = await self.office.with_keys(lambda keyring: keyring.find(sorted(ids)))
        return {row.id: row.name for row in rows}


async def _look(request: Request) -> Look:
    return Look(request)


async def _of_study(request: Request, study: Annotated[str, Path(min_length=1)]) -> StudyLook:
    return StudyLook(request, study)


ALook = Annotated[Look, Depends(_look)]
AStudy = Annotated[StudyLook, Depends(_of_study)]


def to(address: str) -> Response:
    """Send a browser somewhere after a form was done: loading that again does nothing."""
    return RedirectResponse(address, 303)


def _to_login(request: Request, visitor: Visitor) -> Response:
    """Ask for a key; only where a person waits for a page."""
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


def _nobody(request: Request) -> Visitor:
    return Visitor(None, None, "", is_new=False, secure=request.url.scheme == "https")


def _failed(request: Request, visitor: Visitor, error: Exception) -> Response:
    """Answer an error as a page; what nobody foresaw is told to the log only."""
    id = request_id(request.scope)
    kind = kind_of(error) or UNFORESEEN
    if isinstance(error, RequestValidationError | HTTPException):  # an address that means nothing
        kind, words = Kind(404, "Not found"), "There is no such page."
    elif isinstance(error, InvalidInput):
        words = error_text(discreet(error, request.app.state.office.store.url))
    else:
        log.error("failed", exc_info=error, extra={"fields": {"id": id}})
        words = f"The log of the service says what, by the id {id}."
        if isinstance(error, StoreError):
            words = f"{error.reason}. {error.hint}"  # where the store is concerns no visitor
    shown = {"heading": kind.title, "words": words}
    return render.page(visitor, "error.html", kind.status, **shown)
