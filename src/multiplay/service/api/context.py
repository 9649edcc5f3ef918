"""A request about a study: who asks, what of, and how it is answered.

These are no dependencies of FastAPI, which would take longer than a play takes to be chosen.
``answers.describe`` adds their parameters to the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from fastapi import Request
from starlette.responses import JSONResponse, Response

from multiplay.actions import ActionSet
from multiplay.service.api import paging
from multiplay.service.api.refusals import Malformed
from multiplay.service.auth.authenticator import Caller
from multiplay.service.studies.limits import ServiceLimits
from multiplay.service.studies.manager import Office
from multiplay.storage import Journal
from multiplay.studies import Study

AGAIN = re.compile(r"[\x21-\x7e]{1,200}")  # what an Idempotency-Key may be


class Visit:
    """A request, and who asks: ``StrictRoute`` has made sure of that."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.office: Office = request.app.state.office
        self.caller: Caller = request.state.caller

    @property
    def again(self) -> str | None:
        """What a request is known by, if it comes again."""
        given = self.request.headers.get("idempotency-key")
        if given is not None and not AGAIN.fullmatch(given):
            expected, hint = "1 to 200 letters without spaces", "Give a random text, a UUID say."
            raise Malformed("Idempotency-Key", expected, repr(given)[:60], hint)
        return given

    @property
    def limits(self) -> ServiceLimits:
        """What one request may have."""
        return self.office.settings.limits

    async def actions(self, plain: dict[str, Any] | None) -> ActionSet | None:
        """Build a set, if one is given; others are answered meanwhile."""
        return await self.office.built(plain)


class StudyVisit(Visit):
    """A request about one study."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        # a slash in it was kept apart from those of the path
        self.study = unquote(request.path_params["study"])


class Reading(StudyVisit):
    """A request that looks at a study: answered with an ETag."""

    async def read(self, act: Callable[[Study], Any]) -> Response:
        """Answer what a study knows."""
        known = self.request.headers.get("if-none-match")

        def read(study: Study) -> tuple[str, Any]:
            tag = paging.etag(study.head)
            return tag, None if paging.is_known(known, tag) else act(study)

        return paging.answer(*await self.office.read(self.study, self.caller, read))

    async def look(self, act: Callable[[Journal], Any]) -> Response:
        """Answer what a journal says."""
        known = self.request.headers.get("if-none-match")

        def look(journal: Journal) -> tuple[str, Any]:
            tag = paging.etag(journal.head())
            return tag, None if paging.is_known(known, tag) else act(journal)

        return paging.answer(*await self.office.look(self.study, self.caller, look))


class Writing(StudyVisit):
    """A request that changes a study: repeated with its key, it changes nothing."""

    async def write(
        self, act: Callable[[Study], Any], shown: Callable[[Any], Any] | None = None
    ) -> Response:
        """Do something, and answer what is shown of it when it is durable."""
        office = self.office
        verb = self.request.scope["route"].name
        answer = await office.write(self.study, self.caller, verb, act, shown, self.again)
        return Response(status_code=204) if shown is None else JSONResponse(answer)
