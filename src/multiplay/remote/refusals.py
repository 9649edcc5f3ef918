"""What a service answers when it cannot do something, as the errors of a study."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from multiplay._support.checks import shortened
from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError

KINDS: dict[int, type[InvalidInput]] = {404: NotFound, 409: Conflict}
PARTS = ("argument", "expected", "got", "hint")
LATER = "Try again later."
PASSING = {408, 425, 429}  # of the client, and worth another attempt


def error_of(response: httpx.Response, base: str) -> InvalidInput | StoreError:
    """Return the error that a problem stands for (RFC 9457)."""
    status, said = response.status_code, _problem(response)
    if said is None:
        return _stranger(response, base)
    if status < 500 and all(isinstance(said.get(part), str) for part in PARTS):
        return KINDS.get(status, InvalidInput)(*(said[part] for part in PARTS))
    detail = str(said.get("detail") or said.get("title")).rstrip(".")
    if status < 500 and status not in PASSING:
        hint = str(said.get("hint") or "Correct the request.")
        return InvalidInput("request", "one that the service takes", f"{status}: {detail}", hint)
    where = f", {said['instance']}" if status == 500 and "instance" in said else ""
    return StoreError(base, f"{detail} (status {status}{where})", str(said.get("hint") or LATER))


def json_of(response: httpx.Response, base: str) -> Any:
    """Return what was answered."""
    try:
        return response.json()
    except ValueError:  # no JSON, or not even text
        raise _stranger(response, base) from None


def seconds_to_wait(response: httpx.Response) -> float:
    """Return how long a service asks to wait: ``Retry-After``, in seconds or as a date."""
    given = response.headers.get("Retry-After", "")
    if given.isdecimal():
        return float(given)
    try:
        when = parsedate_to_datetime(given)
    except (ValueError, TypeError):
        return 0.0
    return max((when.astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    """Return what is wrong, if the service says it the way that ours does."""
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind != "application/problem+json":
        return None
    try:
        said = response.json()
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _stranger(response: httpx.Response, base: str) -> InvalidInput | StoreError:
    """Return the error of an answer that is not one of our service."""
    status = response.status_code
    if status >= 500 or status in PASSING:  # of a proxy before it, as a rule
        return StoreError(base, f"the answer is {status} {response.reason_phrase}", LATER)
    got = f"{base}, which answers {status} {response.reason_phrase}"
    hint = "Check the address: it is shown where multiplay serve was started."
    if response.is_redirect:
        place = shortened(response.headers.get("Location", "another place"), 200)
        got, hint = f"{base}, which leads to {place}", "Use that address."
    return InvalidInput("url", "the address of a multiplay service", got, hint)
