"""HTTP client of a service: requests with retries, and responses as results or exceptions."""

from __future__ import annotations

import json
import math
import os
import random
import ssl
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic, sleep
from typing import Any, NamedTuple
from uuid import uuid4

import httpx

from multiplay._support.checks import shortened
from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError
from multiplay.version import __version__

KINDS: dict[int, type[InvalidInput]] = {404: NotFound, 409: Conflict}
PARTS = ("argument", "expected", "got", "hint")
RETRY_LATER = "Retry later."
TRANSIENT = {408, 425, 429}  # client errors that are worth a retry
RETRIED = {*TRANSIENT, 502, 503, 504}
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
PERMANENT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)
CONNECT_TIMEOUT = 5.0  # seconds
EVENT_TIMEOUT = 40.0  # seconds without data after which a stream of events is lost: 15 are usual
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before the second attempt, and before any
CACHED = 8  # responses


class ConnectionOptions(NamedTuple):
    """Settings of the connection to a service.

    Attributes
    ----------
    base : str
        The URL of the service, without ``/v1``.
    is_local : bool
        Whether the service is on this machine.
    key : str or None
        The API key: a secret.
    patience, timeout : float
        Seconds for all attempts of a request, and for one.
    certificates : str or None
        A file of certificates to trust, instead of the default ones.
    """

    base: str
    is_local: bool
    key: str | None
    patience: float
    timeout: float
    certificates: str | None

    def __repr__(self) -> str:
        return f"ConnectionOptions({self.base})"  # without the secret

    def client(self) -> httpx.Client:
        """Return an HTTP client, which uses no proxy for this machine."""
        headers = {"User-Agent": f"multiplay/{__version__}", "Accept": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        trusted: Any = True
        if self.base.startswith("http:"):
            trusted = False  # nothing to verify, and loading certificates takes long
        elif self.certificates is not None:
            trusted = ssl.create_default_context(cafile=self.certificates)
        return httpx.Client(
            headers=headers,
            verify=trusted,
            trust_env=not self.is_local,
            transport=self.transport(),
        )

    def transport(self) -> httpx.BaseTransport | None:
        """Return the transport of requests; None for the default one. Replaced in tests."""
        return None


class OwnedClient:
    """An HTTP client of one process, closed when the last reference is gone."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.client, self.owner = options.client(), os.getpid()
        weakref.finalize(self, _close, self.client, self.owner)


class RetryBudget:
    """Exponential backoff with a limit on the total time.

    Parameters
    ----------
    seconds
        The total time for retries; 0 for a single attempt.
    """

    def __init__(self, seconds: float) -> None:
        self._end, self._failed = monotonic() + seconds, 0

    @property
    def left(self) -> float:
        """The remaining seconds; infinite before the first attempt has failed."""
        return max(self._end - monotonic(), 0.001) if self._failed else math.inf

    def wait(self, error: InvalidInput | StoreError, at_least: float = 0.0) -> None:
        """Sleep before the next attempt; raise the error if it would exceed the budget.

        The pauses double, with random jitter, so that clients that failed at the same time do not
        retry at the same time.
        """
        pause = min(FIRST_PAUSE * 2**self._failed, LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        pause = max(pause, at_least)
        self._failed += 1
        if pause >= self.left:
            raise error
        sleep(pause)


class ServiceClient:
    """A client of a service that retries requests when that is safe.

    Threads may share it. A process that was forked, or that unpickled it, opens its own
    connections.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self.options, self.base = options, options.base
        self._owned: OwnedClient | None = None
        self._cached: dict[str, tuple[str, Any]] = {}

    def __reduce__(self) -> Any:
        return ServiceClient, (self.options,)

    def close(self) -> None:
        """Close all connections, after the requests that are running now."""
        self._owned = None

    # ------------------------------------------------------------ requests

    def get(self, path: str, params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Return the content of a GET response."""
        return json_of(self._send("GET", path, params=params, **options), self.base)

    def get_cached(self, path: str, params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Return the content of a GET response, by its ETag from the cache if it is unchanged."""
        place = f"{path}?{params}"
        tag, known = self._cached.get(place, ("", None))
        headers = {"If-None-Match": tag} if tag else {}
        response = self._send("GET", path, params=params, headers=headers, **options)
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return known
        answer = json_of(response, self.base)
        if tag := response.headers.get("ETag", ""):
            if len(self._cached) >= CACHED:
                self._cached = {}
            self._cached[place] = tag, answer
        return answer

    def pages(self, path: str, params: Mapping[str, Any]) -> Iterator[list[Any]]:
        """Yield the pages of a list, following the cursors."""
        page = self.get(path, params)
        yield page["items"]
        while page["next"] is not None:
            page = self.get(path, {**params, "cursor": page["next"]})
            yield page["items"]

    def write(self, path: str, body: Mapping[str, Any], method: str = "POST") -> Any:
        """Send a request with an idempotency key; return the content of the response."""
        headers = {"Idempotency-Key": str(uuid4())}
        response = self._send(method, path, body, headers=headers)
        return json_of(response, self.base) if response.content else None

    def write_items(self, path: str, items: Sequence[Any]) -> list[Any]:
        """Send a request with many items; return their answers.

        It is sent again while problems of items may pass: those that succeeded are not repeated.
        """
        headers = {"Idempotency-Key": str(uuid4())}
        budget = RetryBudget(self.options.patience)
        while True:
            response = self._send("POST", path, {"items": items}, headers=headers)
            found: list[Any] = json_of(response, self.base)["items"]
            problems = (one["problem"] for one in found if "problem" in one)
            late = next((one for one in problems if one["status"] in RETRIED), None)
            if late is None:
                return found
            try:
                budget.wait(error_of_problem(late, self.base))
            except (InvalidInput, StoreError):
                return found

    def query(self, path: str, body: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Send a POST request that changes nothing; return the content of the response."""
        return json_of(self._send("POST", path, body, timeout=timeout), self.base)

    def delete(self, path: str) -> None:
        """Send a DELETE request with an idempotency key."""
        self._send("DELETE", path, headers={"Idempotency-Key": str(uuid4())})

    def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        patience: float | None = None,
        fail_fast: bool = False,
    ) -> httpx.Response:
        """Send a request until it succeeds; ``fail_fast``: without retries if connecting fails."""
        content = None if body is None else _json(body)
        sent = {**(headers or {}), **({} if body is None else {"Content-Type": "application/json"})}
        budget = RetryBudget(self.options.patience if patience is None else patience)
        longest, unsure = timeout or self.options.timeout, False
        while True:
            limit = httpx.Timeout(min(longest, budget.left), connect=min(CONNECT_TIMEOUT, longest))
            owned = self._opened()
            try:
                response = owned.client.request(
                    method,
                    self._url(path),
                    params=params,
                    content=content,
                    headers=sent,
                    timeout=limit,
                )
            except httpx.RequestError as error:
                not_sent = isinstance(error, NEVER_SENT)
                unsure |= not not_sent
                failure = self._no_response(error, unsure and "Idempotency-Key" in sent)
                if isinstance(error, PERMANENT) or _is_untrusted(error) or (fail_fast and not_sent):
                    raise failure from None
                budget.wait(failure)
                continue
            if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
                return response
            if response.status_code not in RETRIED:
                raise error_of(response, self.base)
            unsure |= response.is_server_error
            budget.wait(error_of(response, self.base), seconds_to_wait(response))

    # ------------------------------------------------------------ events

    def events(self, path: str) -> Iterator[str]:
        """Yield the data of server-sent events without end; reconnect after an interruption."""
        limit = httpx.Timeout(EVENT_TIMEOUT, connect=CONNECT_TIMEOUT)
        headers = {"Accept": "text/event-stream"}
        budget = RetryBudget(self.options.patience)
        while True:
            owned = self._opened()
            error: InvalidInput | StoreError
            try:
                with owned.client.stream(
                    "GET", self._url(path), headers=headers, timeout=limit
                ) as response:
                    if response.is_success:
                        for line in response.iter_lines():
                            budget = RetryBudget(self.options.patience)
                            if line.startswith("data:"):
                                yield line.removeprefix("data:").strip()
                        reason = "the stream of events has ended"
                        error = StoreError(self.base, reason, "Call watch again.")
                    else:
                        response.read()
                        error = error_of(response, self.base)
                        if response.status_code not in RETRIED:
                            raise error
            except httpx.RequestError as lost:
                error = self._no_response(lost, False)
                if isinstance(lost, PERMANENT) or _is_untrusted(lost):
                    raise error from None
            budget.wait(error)

    # ------------------------------------------------------------ inside

    def _opened(self) -> OwnedClient:
        """Return the HTTP client of this process."""
        found = self._owned
        if found is None or found.owner != os.getpid():
            found = self._owned = OwnedClient(self.options)
        return found

    def _url(self, path: str) -> str:
        return f"{self.base}/v1{path}"

    def _no_response(self, error: httpx.RequestError, unsure: bool) -> StoreError:
        """Return the error for a service that does not respond."""
        message = f"{error}".rstrip(".") or type(error).__name__
        hint = "Check the URL, and that the service runs: multiplay serve."
        if unsure:
            hint = "The request may or may not have succeeded. Retry with the same key."
        return StoreError(self.base, f"the service does not respond ({message})", hint)


def _close(client: httpx.Client, owner: int) -> None:
    """Close a client in the process that opened it; forked processes have copies."""
    if owner == os.getpid():
        client.close()


def _json(body: Mapping[str, Any]) -> bytes:
    parts = [f"{json.dumps(name)}: {_text(name, value)}" for name, value in body.items()]
    return f"{{{', '.join(parts)}}}".encode()


def _text(name: str, value: Any) -> str:
    """Return a value as JSON; raise ``InvalidInput`` if it cannot be sent."""
    try:
        return json.dumps(value, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        hint = "Use text, finite numbers, lists or dicts."
        raise InvalidInput(name, "JSON data", f"{value!r} ({error})"[:200], hint) from None


def _number(value: Any) -> Any:
    """Return numbers of numpy, and exact numbers such as fractions, as numbers of Python."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _is_untrusted(error: BaseException | None) -> bool:
    """Return whether a certificate is the cause, so that a retry does not help."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


# ------------------------------------------------------------ responses as exceptions


def error_of(response: httpx.Response, base: str) -> InvalidInput | StoreError:
    """Return the exception for a problem response (RFC 9457)."""
    problem = _problem(response)
    if problem is None:
        return _unknown_response(response, base)
    return error_of_problem({**problem, "status": response.status_code}, base)


def error_of_problem(problem: Mapping[str, Any], base: str) -> InvalidInput | StoreError:
    """Return the exception for a problem document."""
    status = int(problem["status"])
    if status < 500 and all(isinstance(problem.get(part), str) for part in PARTS):
        return KINDS.get(status, InvalidInput)(*(problem[part] for part in PARTS))
    detail = str(problem.get("detail") or problem.get("title")).rstrip(".")
    if status < 500 and status not in TRANSIENT:
        hint = str(problem.get("hint") or "Correct the request.")
        return InvalidInput(
            "request", "a request that the service accepts", f"{status}: {detail}", hint
        )
    where = f", {problem['instance']}" if status == 500 and "instance" in problem else ""
    return StoreError(
        base, f"{detail} (status {status}{where})", str(problem.get("hint") or RETRY_LATER)
    )


def json_of(response: httpx.Response, base: str) -> Any:
    """Return the content of a response."""
    try:
        return response.json()
    except ValueError:  # not JSON, or not even text
        raise _unknown_response(response, base) from None


def seconds_to_wait(response: httpx.Response) -> float:
    """Return the seconds of ``Retry-After``, which is a number of seconds or a date."""
    given = response.headers.get("Retry-After", "")
    if given.isdecimal():
        return float(given)
    try:
        when = parsedate_to_datetime(given)
    except (ValueError, TypeError):
        return 0.0
    return max((when.astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    """Return the problem document of a response; None if it has none."""
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind != "application/problem+json":
        return None
    try:
        problem = response.json()
    except ValueError:
        return None
    return problem if isinstance(problem, dict) else None


def _unknown_response(response: httpx.Response, base: str) -> InvalidInput | StoreError:
    """Return the exception for a response that is not from a multiplay service."""
    status = response.status_code
    if status >= 500 or status in TRANSIENT:  # usually from a proxy before the service
        return StoreError(base, f"the response is {status} {response.reason_phrase}", RETRY_LATER)
    got = f"{base}, which responds {status} {response.reason_phrase}"
    hint = "Check the URL: multiplay serve prints it when it starts."
    if response.is_redirect:
        place = shortened(response.headers.get("Location", "a different URL"), 200)
        got, hint = f"{base}, which redirects to {place}", "Use that URL."
    return InvalidInput("url", "the URL of a multiplay service", got, hint)
