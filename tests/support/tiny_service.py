"""An app around which the service is tested: it knows no studies."""

import asyncio
import os
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse

from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError
from multiplay.service.api import problems
from multiplay.service.server import metrics, middleware
from multiplay.service.settings import VARIABLE, Settings

router = APIRouter(prefix="/studies/{study}")
ERRORS = {
    "not-found": NotFound("play", "a play", 7, "Look at the list."),
    "conflict": Conflict("losses", "those of before", "others", "Ask again."),
    "invalid": InvalidInput("unit", "a number", "x", "Give one."),
    "store": StoreError("postgresql://me:word@host/plans", "the disk is full", "Make room."),
    "unforeseen": ZeroDivisionError("of mp_0123456789ab_c2VjcmV0LXNlY3JldA"),
}


@router.get("/process")
async def process(study: str) -> int:
    return os.getpid()


@router.put("/process")
async def replace(study: str) -> None:
    pass


@router.get("/wait")
async def wait(request: Request, study: str) -> str:
    """Answer only when the service stops already."""
    await request.app.state.stopping.wait()
    await asyncio.sleep(0.3)
    return "done"


@router.get("/events")
async def events(request: Request, study: str) -> StreamingResponse:
    async def lines() -> AsyncIterator[bytes]:
        yield b"data: first\n\n"
        await request.app.state.stopping.wait()
        yield b"data: last\n\n"

    headers = {"X-Process": str(os.getpid())}
    return StreamingResponse(lines(), headers=headers, media_type="text/event-stream")


@router.post("/size")
async def size(request: Request, study: str) -> dict[str, Any]:
    size = len(await request.body())
    request.state.key_id = "0123456789ab"
    return {"size": size, "trailer": request.headers.get("x-trailer")}


@router.get("/letters/{count}")
async def letters(study: str, count: int) -> PlainTextResponse:
    return PlainTextResponse("x" * count)


@router.get("/page")
async def page(study: str) -> HTMLResponse:
    return HTMLResponse("x" * 5_000)


@router.get("/error/{kind}")
async def error(study: str, kind: str) -> None:
    raise ERRORS[kind]


def make() -> FastAPI:
    settings = Settings.from_text(os.environ[VARIABLE])
    if settings.store.startswith("broken"):
        raise InvalidInput("store", "a store", settings.store, "Mend it.")
    app = FastAPI(openapi_url=None)
    app.state.stopping = asyncio.Event()
    app.state.office = SimpleNamespace(store=SimpleNamespace(url="sqlite:///plans.db"))
    app.include_router(router, prefix="/v1")
    app.add_api_route("/metrics", lambda: PlainTextResponse(metrics.text()))
    problems.install(app)
    middleware.install(app, settings)
    return app


if __name__ == "__main__":
    from multiplay.service.server.run import serve

    given = Settings.from_text(os.environ.pop(VARIABLE))
    serve(given, lambda url: print(url, flush=True), "tiny_service:make")
    print("stopped", flush=True)
