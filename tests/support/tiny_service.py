"""A small application without studies, for tests of the server around it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from uvicorn.supervisors.multiprocess import Process

from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError
from multiplay.service.api import problems
from multiplay.service.api.routing import Endpoint
from multiplay.service.server import logs, metrics, middleware, workers
from multiplay.service.server.connection import LIMITS, ConnectionLimits
from multiplay.service.server.workers import stopping_on_signals
from multiplay.service.settings import VARIABLE, Settings

STUDY = "/v1/studies/{study}"
ERRORS = {
    "not-found": NotFound("play", "a play", 7, "Look at the list."),
    "conflict": Conflict("losses", "those of before", "others", "Ask again."),
    "invalid": InvalidInput("unit", "a number", "x", "Give one."),
    "store": StoreError("postgresql://me:word@host/plans", "the disk is full", "Make room."),
    "unforeseen": ZeroDivisionError("of mp_0123456789ab_c2VjcmV0LXNlY3JldA"),
}


class Count(BaseModel):
    """The number of characters to return."""

    count: int


async def process(request: Request) -> Response:
    return JSONResponse(os.getpid())


async def replace(request: Request) -> Response:
    return Response(status_code=204)


async def wait(request: Request) -> Response:
    """Read the body, and respond only when the service stops already."""
    await request.body()
    await request.app.state.stopping.wait()
    await asyncio.sleep(0.3)
    return JSONResponse("done")


async def events(request: Request) -> Response:
    async def lines() -> AsyncIterator[bytes]:
        yield b"data: first\n\n"
        await request.app.state.stopping.wait()
        yield b"data: last\n\n"

    headers = {"X-Process": str(os.getpid())}
    return StreamingResponse(lines(), headers=headers, media_type="text/event-stream")


async def size(request: Request) -> Response:
    size = len(await request.body())
    request.state.key_id = "0123456789ab"
    return JSONResponse({"size": size, "trailer": request.headers.get("x-trailer")})


async def characters(request: Request, query: Count) -> Response:
    return PlainTextResponse("x" * query.count)


async def page(request: Request) -> Response:
    return HTMLResponse("x" * 5_000)


async def error(request: Request) -> Response:
    raise ERRORS[request.path_params["kind"]]


async def measured(request: Request) -> Response:
    return PlainTextResponse(metrics.text())


ENDPOINTS = (
    Endpoint("GET", f"{STUDY}/process", process),
    Endpoint("PUT", f"{STUDY}/process", replace),
    Endpoint("GET", f"{STUDY}/wait", wait),
    Endpoint("GET", f"{STUDY}/events", events),
    Endpoint("POST", f"{STUDY}/size", size),
    Endpoint("GET", f"{STUDY}/characters", characters),
    Endpoint("GET", f"{STUDY}/page", page),
    Endpoint("GET", f"{STUDY}/error/{{kind}}", error),
    Endpoint("GET", "/metrics", measured),
)


def make() -> Starlette:
    settings = Settings.from_text(os.environ[VARIABLE])

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        app.state.stopping = asyncio.Event()
        with stopping_on_signals(app.state.stopping):
            yield {LIMITS: ConnectionLimits(settings.limits)}
        logs.flush()

    app = Starlette(routes=[one.route() for one in ENDPOINTS], lifespan=lifespan)
    app.state.manager = SimpleNamespace(store=SimpleNamespace(url="sqlite:///plans.db"))
    problems.install(app)
    middleware.install(app, settings)
    return app


def start_slowly() -> Starlette:
    """Return an application that is never ready, and say when it starts."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        workers.GRACE = 10_000  # not to be killed for being slow
        with stopping_on_signals(asyncio.Event()):
            print("starting", flush=True)
            await asyncio.sleep(10_000)
            yield

    return Starlette(lifespan=lifespan)


def fail() -> Starlette:
    """Exit like a worker that cannot start."""
    raise SystemExit(3)


def limit_responses(seconds: float) -> None:
    """Let the parent wait so long for a worker that has responded once; a start may take longer."""
    ping, started = Process.ping, set[Process]()

    def ping_quickly(self: Process, timeout: float = 5) -> bool:
        responds = ping(self, seconds if self in started else timeout)
        if responds:
            started.add(self)
        return responds

    Process.ping = ping_quickly  # type: ignore[method-assign]


if __name__ == "__main__":
    from multiplay.service.server import run

    if "TINY_RESPONSIVE" in os.environ:
        limit_responses(float(os.environ["TINY_RESPONSIVE"]))
    given = Settings.from_text(os.environ.pop(VARIABLE))
    factory = os.environ.get("TINY_SERVICE", "make")
    run.serve(given, lambda url: print(url, flush=True), f"tiny_service:{factory}")
    print("stopped", flush=True)
