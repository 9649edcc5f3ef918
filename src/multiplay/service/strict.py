"""Routes that know who asks before they read a body, and read it strictly."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from multiplay.service.limits import strict_json
from multiplay.service.office import Office
from multiplay.service.refusals import Unsupported

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRoute(APIRoute):
    """A route with a key: the body of somebody unknown is not even read."""

    def get_route_handler(self) -> Handler:
        """Return what answers."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            office: Office = request.app.state.office
            caller = await office.claimed(token_of(request))
            request.state.caller, request.state.key_id = caller, caller.id
            if body := await request.body():
                _check_type(request)
                # where a request keeps what it has read
                request._json = strict_json(body, office.settings.limits)
            return await handle(request)

        return strictly


def token_of(request: Request) -> str | None:
    """Return the key of a request; "" if there is something else in its place."""
    given = request.headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _check_type(request: Request) -> None:
    """Refuse what is not said to be JSON: other sites can make a browser send that."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != "application/json":
        hint = "Send the header Content-Type: application/json."
        raise Unsupported("Content-Type", "application/json", repr(given)[:60], hint)
