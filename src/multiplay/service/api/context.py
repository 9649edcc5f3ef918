"""Request context: the caller of a request, its study, and the ways to read and write it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from multiplay.service.api import paging
from multiplay.service.auth.authenticator import Caller
from multiplay.service.errors import MalformedRequest
from multiplay.service.studies.bounded_verbs import LimitedBuild
from multiplay.service.studies.limits import ServiceLimits
from multiplay.service.studies.manager import StudyManager
from multiplay.storage import Journal
from multiplay.studies import Study
from multiplay.studies.commands.base import C, Plain
from multiplay.studies.entry_codec import Request as Repeatable

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,200}")


class RequestContext:
    """A request whose caller is authenticated.

    Parameters
    ----------
    request
        The request.
    caller
        Its caller.
    verb
        The name of the operation.
    content
        The data in the body; None if it is empty.
    """

    def __init__(self, request: Request, caller: Caller, verb: str, content: Any = None) -> None:
        self.request, self.caller, self.verb = request, caller, verb
        self.content = content
        self.manager: StudyManager = request.app.state.manager

    @property
    def repeatable(self) -> Repeatable | None:
        """The id and the content of a request with an Idempotency-Key; None without one."""
        given = self.request.headers.getlist("idempotency-key")
        if not given:
            return None
        if len(given) > 1:
            hint = "Send one key."
            raise MalformedRequest("Idempotency-Key", "one header", f"{len(given)}", hint)
        if not IDEMPOTENCY_KEY.fullmatch(given[0]):
            expected, hint = "1 to 200 ASCII characters without spaces", "Use a random UUID."
            raise MalformedRequest("Idempotency-Key", expected, repr(given[0])[:60], hint)
        content = {} if self.content is None else self.content
        text = json.dumps([self.request.path_params, content], sort_keys=True)
        body = blake2b(text.encode(), digest_size=16).hexdigest()
        return Repeatable(self.caller.request(given[0]), body)

    @property
    def limits(self) -> ServiceLimits:
        """The limits of a request."""
        return self.manager.settings.limits

    async def build(self, command: type[C], plain: Plain, **more: Any) -> Callable[[], C]:
        """Return what builds a command from plain data, in the turn of its study.

        What takes long is built before, without blocking other requests.
        """
        make = partial(command.of_plain, plain, LimitedBuild(self.limits), **more)
        if not command.takes_long_to_build(plain):
            return make
        made = await self.manager.build(make)
        return lambda: made


class StudyContext(RequestContext):
    """A request about one study."""

    def __init__(self, request: Request, caller: Caller, verb: str, content: Any = None) -> None:
        super().__init__(request, caller, verb, content)
        self.study = unquote(request.path_params["study"])  # a slash in the name is still %2F

    async def read(self, act: Callable[[Study], Any]) -> Response:
        """Respond with what a function reads from the study."""
        return JSONResponse(await self.manager.read(self.study, self.caller, act))

    async def read_with_etag(self, act: Callable[[Study], Any]) -> Response:
        """Respond with what a function reads from the study and an ETag, or with 304."""
        given = self.request.headers.get("if-none-match")

        def read(study: Study) -> tuple[str, Any]:
            tag = paging.etag(study.head)
            return tag, None if paging.matches(given, tag) else act(study)

        return paging.response(*await self.manager.read(self.study, self.caller, read))

    async def read_journal(self, act: Callable[[Journal], Any]) -> Response:
        """Respond with what a function reads from the journal and an ETag, or with 304."""
        given = self.request.headers.get("if-none-match")

        def read(journal: Journal) -> tuple[str, Any]:
            tag = paging.etag(journal.head())
            return tag, None if paging.matches(given, tag) else act(journal)

        return paging.response(*await self.manager.read_journal(self.study, self.caller, read))

    async def write(
        self,
        act: Callable[[Study], Any],
        present: Callable[[Any], Any] | None = None,
        key: str | None = None,
    ) -> Response:
        """Change the study, and respond with what ``present`` makes of the result, if given.

        A request that is repeated with its Idempotency-Key changes nothing, and has the same
        response. ``key`` is the key in its body.
        """
        given = self.repeatable, key
        result = await self.manager.write(self.study, self.caller, self.verb, act, present, *given)
        return Response(status_code=204) if present is None else JSONResponse(result)
