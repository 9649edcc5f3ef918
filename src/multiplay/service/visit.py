"""A request about a study: who asks, what of, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request
from starlette.responses import JSONResponse, Response

from multiplay.actions import ActionSet
from multiplay.errors import Conflict
from multiplay.learner.plays import PendingPlay
from multiplay.service import reading
from multiplay.service.limits import Limits, build_actions
from multiplay.service.office import Office
from multiplay.service.register import Caller
from multiplay.storage import Journal
from multiplay.studies import Study

AGAIN = (
    "The same request with the same key again changes nothing, and is answered the very same. "
    "Choose a new random text for every new request."
)
Again = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description=AGAIN,
    ),
]
Known = Annotated[
    str | None, Header(alias="If-None-Match", description="The ETag of what you have.")
]
Named = Annotated[str, Path(min_length=1, description="The name of the study.")]


def ask_within(limits: Limits, study: Study, key: str | None, **given: Any) -> PendingPlay:
    """Choose the next play of a study, unless too many of them wait."""
    waiting = study.open_plays
    if waiting >= limits.waiting and not study.is_asked(key):
        expected = f"fewer than {limits.waiting} plays that wait"
        hint = "Tell, close or cancel some of them first."
        raise Conflict("study", expected, f"{waiting}", hint)
    return study.ask(key=key, **given)


class Visit:
    """A request, and who asks: ``StrictRoute`` has made sure of that."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.office: Office = request.app.state.office
        self.caller: Caller = request.state.caller

    @property
    def limits(self) -> Limits:
        """What one request may have."""
        return self.office.settings.limits

    def actions(self, plain: dict[str, Any] | None) -> ActionSet | None:
        """Build a set, if one is given."""
        return None if plain is None else build_actions("actions", plain, self.limits)


class StudyVisit(Visit):
    """A request about one study."""

    def __init__(self, request: Request, study: str) -> None:
        super().__init__(request)
        self.study = unquote(study)  # a slash in it was kept apart from those of the path


class Reading(StudyVisit):
    """A request that looks at a study: answered with an ETag."""

    def __init__(self, request: Request, study: str, known: str | None) -> None:
        super().__init__(request, study)
        self.known = known

    async def read(self, act: Callable[[Study], Any]) -> Response:
        """Answer what a study knows."""

        def read(study: Study) -> tuple[str, Any]:
            tag = reading.etag(study.head)
            return tag, None if reading.is_known(self.known, tag) else act(study)

        return reading.answer(*await self.office.read(self.study, self.caller, read))

    async def look(self, act: Callable[[Journal], Any]) -> Response:
        """Answer what a journal says."""

        def look(journal: Journal) -> tuple[str, Any]:
            tag = reading.etag(journal.head())
            return tag, None if reading.is_known(self.known, tag) else act(journal)

        return reading.answer(*await self.office.look(self.study, self.caller, look))


class Writing(StudyVisit):
    """A request that changes a study: repeated with its key, it changes nothing."""

    def __init__(self, request: Request, study: str, again: str | None) -> None:
        super().__init__(request, study)
        self.again = again

    async def write(
        self, act: Callable[[Study], Any], shown: Callable[[Any], Any] | None = None
    ) -> Response:
        """Do something, and answer what is shown of it when it is durable."""
        office = self.office
        answer = await office.write(self.study, self.caller, act, shown, self.again)
        return Response(status_code=204) if shown is None else JSONResponse(answer)


# Coroutines, because FastAPI calls all others in a thread, which costs more than all they do.


async def _visit(request: Request) -> Visit:
    return Visit(request)


async def _of_study(request: Request, study: Named) -> StudyVisit:
    return StudyVisit(request, study)


async def _reading(request: Request, study: Named, known: Known = None) -> Reading:
    return Reading(request, study, known)


async def _writing(request: Request, study: Named, again: Again = None) -> Writing:
    return Writing(request, study, again)


AnyVisit = Annotated[Visit, Depends(_visit)]
AVisit = Annotated[StudyVisit, Depends(_of_study)]
AReading = Annotated[Reading, Depends(_reading)]
AWriting = Annotated[Writing, Depends(_writing)]
