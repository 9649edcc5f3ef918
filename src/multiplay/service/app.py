"""The ASGI application: the HTTP API, the pages, health checks, metrics and middleware."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from multiplay.service.api import openapi, problems
from multiplay.service.api.routes import OPERATIONS
from multiplay.service.api.routing import Endpoint, token_of
from multiplay.service.errors import Unauthenticated
from multiplay.service.pages.routes import PAGES
from multiplay.service.server import logs, metrics, middleware
from multiplay.service.server.connection import LIMITS, ConnectionLimits
from multiplay.service.server.workers import stopping_on_signals
from multiplay.service.settings import VARIABLE, Settings
from multiplay.service.studies.manager import StudyManager
from multiplay.version import __version__

SWITCH = 0.0005  # seconds between thread switches: event loop and computing threads alternate


def create_app(settings: Settings) -> Starlette:
    """Return the application of a worker."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        manager = app.state.manager = StudyManager(settings)
        manager.start()
        with stopping_on_signals(manager.stopping, settings.drain):
            yield {LIMITS: ConnectionLimits(settings.limits)}
        manager.close()
        logs.flush()  # a signal ends a worker process after this

    endpoints = [*OPERATIONS, *PAGES, *OTHERS]
    app = Starlette(routes=[endpoint.route() for endpoint in endpoints], lifespan=lifespan)
    app.router.redirect_slashes = False
    problems.install(app)
    middleware.install(app, settings)
    return app


def app_from_environment() -> Starlette:
    """Return the application of a worker process."""
    app = create_app(Settings.from_text(os.environ[VARIABLE]))
    gc.collect()
    gc.freeze()  # imported objects are never garbage, and scanning them takes a second a minute
    gc.set_threshold(20_000, 50, 50)
    sys.setswitchinterval(SWITCH)
    return app


async def document(request: Request) -> Response:
    """Return the OpenAPI document."""
    return JSONResponse(openapi.document())


async def health(request: Request) -> Response:
    """Return that the process responds."""
    return JSONResponse({"status": "ok", "version": __version__})


async def prometheus(request: Request) -> Response:
    """Return the metrics for Prometheus; those of studies only to callers who may read them."""
    manager: StudyManager = request.app.state.manager
    token = token_of(request)
    studies: list[str] | None = []
    try:
        study = (await manager.caller(token)).study
        studies = None if study is None else [study]
    except Unauthenticated:
        if token is not None:
            raise
    text = await run_in_threadpool(metrics.text, studies)
    return Response(text, media_type=metrics.TYPE)


async def ready(request: Request) -> Response:
    """Return that kernels are compiled and the store can be read; otherwise a problem."""
    await request.app.state.manager.check_ready()
    return JSONResponse({"status": "ready"})


OTHERS = (
    Endpoint("GET", "/openapi.json", document),
    Endpoint("GET", "/healthz", health),
    Endpoint("GET", "/readyz", ready),
    Endpoint("GET", "/metrics", prometheus),
)
