"""Operations on many studies: the items of one request, each with its own result or problem."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from multiplay.errors import InvalidInput
from multiplay.service.api import models, problems
from multiplay.service.api.context import RequestContext, StudyContext
from multiplay.service.api.routing import Operation
from multiplay.service.errors import InvalidFields
from multiplay.service.studies.limits import check_path_name
from multiplay.studies.entry_codec import Request as Repeatable

MOST_ITEMS = 1_000
AT_ONCE = 32  # items that wait for their studies at the same time


class Item(models.Body):
    """The body of a request for one study, with the name of the study, and of its play if any."""

    model_config = ConfigDict(extra="allow", strict=True)

    study: str
    play: str | int | None = None


class Items(models.Body):
    """Bodies of requests for single studies, each with the name of its study."""

    model_config = models.example(items=[{"study": "west/lyon", "key": "2026-11-18"}])

    items: Annotated[list[Item], Field(min_length=1, max_length=MOST_ITEMS)]


class ItemAnswer(BaseModel):
    """The result of an item, or its problem."""

    study: str
    result: Any = None
    problem: models.Problem | None = None


class ManyAnswers(BaseModel):
    """The answers to all items, in their order, and how many of them are problems."""

    items: list[ItemAnswer]
    failed: int


class ItemContext(StudyContext):
    """An item of a request: it is repeated under the key of the request and its place in it."""

    def __init__(
        self, context: RequestContext, verb: str, place: int, study: str, content: Any
    ) -> None:
        RequestContext.__init__(self, context.request, context.caller, verb, content)
        self.study, self._place = study, place

    @property
    def repeatable(self) -> Repeatable | None:
        """The id and the content of the item; None for a request without an Idempotency-Key."""
        found = super().repeatable
        return None if found is None else found._replace(id=f"{found.id}/{self._place}")


def of_many(path: str, one: Operation, about: str) -> Operation:
    """Return the operation that does for many studies what ``one`` does for one."""
    assert one.body is not None
    body_type, has_play = TypeAdapter[Any](one.body), "{play}" in one.path

    async def answer(context: RequestContext, place: int, item: Item) -> dict[str, Any]:
        try:
            return {"study": item.study, "result": await result(context, place, item)}
        except Exception as error:
            return {"study": item.study, "problem": _problem(error, context.request)}

    async def result(context: RequestContext, place: int, item: Item) -> Any:
        given, content = dict[str, Any](), item.model_extra or {}
        name = check_path_name(item.study)
        if has_play:
            if item.play is None:
                hint = "Write the play of each item, such as '2026-11-18'."
                raise InvalidInput("play", "an id or a key", "nothing", hint)
            given["play"] = f"{item.play}"
            given["query"] = models.PlayQuery(by="key" if isinstance(item.play, str) else None)
        elif item.play is not None:
            content = {**content, "play": item.play}  # no field of the body
        try:
            given["body"] = body_type.validate_python(content)
        except ValidationError as error:
            known, schema = one.body.model_fields, one.body.__name__  # type: ignore[union-attr]
            raise InvalidFields("body", error.errors(), content, known, schema) from None
        response = await one.handler(ItemContext(context, one.name, place, name, content), **given)
        return json.loads(bytes(response.body)) if response.body else None

    async def handle(context: RequestContext, body: Items) -> Response:
        _ = context.repeatable  # a malformed Idempotency-Key is one of the whole request
        gate = asyncio.Semaphore(AT_ONCE)

        async def in_turn(place: int, item: Item) -> dict[str, Any]:
            async with gate:
                return await answer(context, place, item)

        found = await asyncio.gather(*(in_turn(k, item) for k, item in enumerate(body.items)))
        failed = sum("problem" in item for item in found)
        return JSONResponse({"items": found, "failed": failed})

    handle.__name__, handle.__doc__ = f"{one.name}_many", about
    return Operation("POST", path, handle, one.tag, ManyAnswers, idempotency_key=True)


def _problem(error: Exception, request: Request) -> Any:
    if isinstance(error, InvalidInput):
        error = problems.without_store(error, request.app.state.manager.store.url)
    answer = problems.of_error(error, problems.request_id(request.scope))
    return json.loads(bytes(answer.body))
