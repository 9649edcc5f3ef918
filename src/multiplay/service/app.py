"""The application: the HTTP interface, the pages, and what watches over both."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from multiplay.service.api import openapi, problems, routes
from multiplay.service.pages import routes as pages
from multiplay.service.server import metrics, middleware
from multiplay.service.server.paths import ByHttps, NamesInPaths
from multiplay.service.settings import VARIABLE, Settings
from multiplay.service.studies.manager import Office
from multiplay.version import __version__

SWITCH = 0.0005  # seconds: who answers shall not wait long for who computes, nor the other way


def create_app(settings: Settings) -> FastAPI:
    """Return the application of a worker."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        office = app.state.office = Office(settings)
        app.state.stopping = office.stopping
        yield
        office.close()

    app = FastAPI(lifespan=life, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    # not include_router, which would look for each one twice; first what is asked for most
    app.router.routes.extend(
        sorted(routes.router.routes, key=lambda route: not _is_frequent(route))
    )
    app.include_router(pages.router)
    app.add_api_route("/healthz", healthy, include_in_schema=False)
    app.add_api_route("/readyz", ready, include_in_schema=False)
    app.add_api_route("/metrics", measured, include_in_schema=False)
    openapi.describe(app)
    problems.install(app)
    app.add_middleware(NamesInPaths)
    if settings.https:
        app.add_middleware(ByHttps)
    middleware.install(app, settings)
    return app


def _is_frequent(route: BaseRoute) -> bool:
    return str(getattr(route, "path", "")).endswith(("/ask", "/tell"))


def app_from_environment() -> FastAPI:
    """Return the application of a worker process."""
    app = create_app(Settings.from_text(os.environ[VARIABLE]))
    gc.collect()
    gc.freeze()  # what was imported is never garbage: to look at all of it takes a second a minute
    gc.set_threshold(20_000, 50, 50)
    sys.setswitchinterval(SWITCH)
    return app


async def healthy() -> Response:
    """Say that the process answers."""
    return JSONResponse({"status": "ok", "version": __version__})


async def measured() -> Response:
    """Answer what Prometheus asks for."""
    return Response(await run_in_threadpool(metrics.text), media_type=metrics.TYPE)


async def ready(request: Request) -> Response:
    """Say that the store can be read; otherwise a problem is answered."""
    await request.app.state.office.check_store()
    return JSONResponse({"status": "ready"})
