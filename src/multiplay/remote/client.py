"""Requests to a service: sent again when that is safe, and answered by what a study would say."""

from __future__ import annotations

import json
import os
import ssl
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import httpx

from multiplay.errors import InvalidInput, StoreError
from multiplay.remote.address import Address
from multiplay.remote.patience import Patience
from multiplay.remote.refusals import PASSING, error_of, json_of, seconds_to_wait
from multiplay.version import __version__

RETRIED = {*PASSING, 502, 503, 504}
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)
CONNECTING = 5.0  # seconds
SILENCE = 40.0  # seconds without a word, after which a stream of events is dead: 15 are usual
REMEMBERED = 8  # answers


class Way(NamedTuple):
    """How to reach a service.

    Attributes
    ----------
    address : Address
        Where it is.
    key : str or None
        Who we are: a secret.
    patience, timeout : float
        Seconds for all attempts, and for one.
    certificates : str or None
        A file of those to trust, instead of the usual ones.
    """

    address: Address
    key: str | None
    patience: float
    timeout: float
    certificates: str | None

    def __repr__(self) -> str:
        return f"Way({self.address.base})"  # without the secret

    def client(self) -> httpx.Client:
        """Return a client of HTTP; to this machine, it never goes through a proxy."""
        headers = {"User-Agent": f"multiplay/{__version__}", "Accept": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        trusted: Any = True
        if self.address.base.startswith("http:"):
            trusted = False  # there is nothing to verify, and certificates take long to load
        elif self.certificates is not None:
            trusted = ssl.create_default_context(cafile=self.certificates)
        return httpx.Client(
            headers=headers,
            verify=trusted,
            trust_env=not self.address.is_local,
            transport=self.transport(),
        )

    def transport(self) -> httpx.BaseTransport | None:
        """Return what sends requests; None for the usual one. For tests."""
        return None


class Connections:
    """A client of HTTP that is closed when nobody uses it any more."""

    def __init__(self, way: Way) -> None:
        self.client, self.owner = way.client(), os.getpid()
        weakref.finalize(self, _close, self.client, self.owner)


class Link:
    """A way to a service that is safe to use again after anything has gone wrong.

    Threads may share it. A process that was forked, and one that has unpickled it, opens
    connections of its own.
    """

    def __init__(self, way: Way) -> None:
        self.way, self.base = way, way.address.base
        self._connections: Connections | None = None
        self._remembered: dict[str, tuple[str, Any]] = {}

    def __reduce__(self) -> Any:
        return Link, (self.way,)

    def close(self) -> None:
        """Give back all connections, when those who use them are done."""
        self._connections = None

    # ------------------------------------------------------------ requests

    def get(self, path: str, params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Return what is answered."""
        return json_of(self._send("GET", path, params=params, **options), self.base)

    def get_known(self, path: str, params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Return what is answered; what we have already is not sent again."""
        place = f"{path}?{params}"
        tag, known = self._remembered.get(place, ("", None))
        headers = {"If-None-Match": tag} if tag else {}
        response = self._send("GET", path, params=params, headers=headers, **options)
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return known
        answer = json_of(response, self.base)
        if tag := response.headers.get("ETag", ""):
            if len(self._remembered) >= REMEMBERED:
                self._remembered = {}
            self._remembered[place] = tag, answer
        return answer

    def pages(self, path: str, params: Mapping[str, Any]) -> Iterator[list[Any]]:
        """Yield the pages of a list."""
        page = self.get(path, params)
        yield page["items"]
        while page["next"] is not None:
            page = self.get(path, {**params, "cursor": page["next"]})
            yield page["items"]

    def write(self, path: str, body: Mapping[str, Any]) -> Any:
        """Have something done, once, however often it must be sent; return what is answered."""
        headers = {"Idempotency-Key": str(uuid4())}
        response = self._send("POST", path, body, headers=headers)
        return json_of(response, self.base) if response.content else None

    def ask(self, path: str, body: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Return what is answered to a question that changes nothing."""
        return json_of(self._send("POST", path, body, timeout=timeout), self.base)

    def delete(self, path: str) -> None:
        """Remove something."""
        self._send("DELETE", path)

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
        at_once: bool = False,
    ) -> httpx.Response:
        """Send a request until it is answered; ``at_once``: but not where nobody listens."""
        content = None if body is None else _json(body)
        sent = {**(headers or {}), **({} if body is None else {"Content-Type": "application/json"})}
        waiting = Patience(self.way.patience if patience is None else patience)
        longest, unsure = timeout or self.way.timeout, False
        while True:
            limit = httpx.Timeout(min(longest, waiting.left), connect=min(CONNECTING, longest))
            connections = self._opened()
            try:
                response = connections.client.request(
                    method,
                    self._url(path),
                    params=params,
                    content=content,
                    headers=sent,
                    timeout=limit,
                )
            except httpx.RequestError as error:
                known = isinstance(error, NEVER_SENT)
                unsure |= not known
                away = self._away(error, unsure and "Idempotency-Key" in sent)
                if isinstance(error, HOPELESS) or _is_untrusted(error) or (at_once and known):
                    raise away from None
                waiting.wait(away)
                continue
            if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
                return response
            if response.status_code not in RETRIED:
                if method == "DELETE" and response.status_code == httpx.codes.NOT_FOUND and unsure:
                    return response  # an attempt before has done it, and its answer was lost
                raise error_of(response, self.base)
            unsure |= response.is_server_error
            waiting.wait(error_of(response, self.base), seconds_to_wait(response))

    # ------------------------------------------------------------ events

    def events(self, path: str) -> Iterator[str]:
        """Yield the data of events, for ever: after a pause of the service it goes on."""
        limit = httpx.Timeout(SILENCE, connect=CONNECTING)
        headers = {"Accept": "text/event-stream"}
        waiting = Patience(self.way.patience)
        while True:
            connections = self._opened()
            error: InvalidInput | StoreError
            try:
                with connections.client.stream(
                    "GET", self._url(path), headers=headers, timeout=limit
                ) as response:
                    if response.is_success:
                        for line in response.iter_lines():
                            waiting = Patience(self.way.patience)
                            if line.startswith("data:"):
                                yield line.removeprefix("data:").strip()
                        reason = "the stream of events has ended"
                        error = StoreError(self.base, reason, "Watch again.")
                    else:
                        response.read()
                        error = error_of(response, self.base)
                        if response.status_code not in RETRIED:
                            raise error
            except httpx.RequestError as lost:
                error = self._away(lost, False)
                if isinstance(lost, HOPELESS) or _is_untrusted(lost):
                    raise error from None
            waiting.wait(error)

    # ------------------------------------------------------------ inside

    def _opened(self) -> Connections:
        """Return the connections of this process."""
        found = self._connections
        if found is None or found.owner != os.getpid():
            found = self._connections = Connections(self.way)
        return found

    def _url(self, path: str) -> str:
        return f"{self.base}/v1{path}"

    def _away(self, error: httpx.RequestError, unsure: bool) -> StoreError:
        """Return the error of a service that does not answer."""
        words = f"{error}".rstrip(".") or type(error).__name__
        hint = "Check the address, and that it runs: multiplay serve."
        if unsure:
            hint = "Perhaps it was done: to be sure, do the same again with the same key."
        return StoreError(self.base, f"the service does not answer ({words})", hint)


def _close(client: httpx.Client, owner: int) -> None:
    """Close a client, in the process that has opened it: another one was forked with a copy."""
    if owner == os.getpid():
        client.close()


def path_of(study: str, *parts: object) -> str:
    """Return the path of a study, or of something of it."""
    name = quote(study, safe="")
    if name in (".", ".."):
        name = name.replace(".", "%2E")
    return "/".join(["/studies", name, *map(str, parts)])


def _json(body: Mapping[str, Any]) -> bytes:
    parts = [f"{json.dumps(name)}: {_text(name, value)}" for name, value in body.items()]
    return f"{{{', '.join(parts)}}}".encode()


def _text(name: str, value: Any) -> str:
    """Return a value as JSON, or say what cannot be sent."""
    try:
        return json.dumps(value, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        hint = "Give text, finite numbers, lists or dicts."
        raise InvalidInput(name, "what JSON can hold", f"{value!r} ({error})"[:200], hint) from None


def _number(value: Any) -> Any:
    """Return numbers of numpy, and exact ones such as fractions, as those of Python."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _is_untrusted(error: BaseException | None) -> bool:
    """Say whether a certificate is the reason: to try again does not help."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
