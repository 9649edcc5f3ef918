"""Connecting to a service: ``connect``, and the parsing of URLs and keys."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from os import PathLike, fspath
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from multiplay._support.checks import is_number, true_or_false
from multiplay.errors import InvalidInput
from multiplay.remote.study import RemoteStudy, found_study

EXAMPLE = "http://127.0.0.1:8000"
PATH = re.compile(r"(?P<prefix>.*?)(?:/v1)?(?:/studies/(?P<study>[^/]+))?/*")
KEY = re.compile(r"[\x21-\x7e]+")  # the characters that a header can carry


def connect(
    url: str,
    *,
    key: str | None = None,
    study: str | None = None,
    patience: float = 30.0,
    timeout: float = 20.0,
    insecure: bool = False,
    certificates: str | PathLike[str] | None = None,
) -> RemoteStudy:
    """Connect to a study of a service: the verbs of ``Study``, over HTTP.

    The study is the one named here or in the URL; otherwise the one that the key is restricted to;
    otherwise the only study of the service. If the study is not determined, ``create``, ``open``,
    ``names`` and ``delete`` can still be used. Needs ``pip install 'multiplay[client]'``.

    Parameters
    ----------
    url
        The URL of the service, ``http://127.0.0.1:8000``, or of a study,
        ``https://plans.example.org/studies/lanes``.
    key
        The API key that ``multiplay key create`` printed. It is sent over https, or to this
        machine, only.
    study
        The name of the study.
    patience
        Seconds for which requests are retried when the service does not respond. Retries are safe:
        every request that changes something has an idempotency key.
    timeout
        Seconds to wait for one response.
    insecure
        True: send the key over http to other machines too, in a trusted network such as a VPN.
    certificates
        A file (PEM) of certificates to trust, for a service with its own certificate.

    Examples
    --------
    >>> study = connect("http://127.0.0.1:8000", key="mp_...", study="lanes")  # doctest: +SKIP
    >>> play = study.ask(key="2026-11-15")  # doctest: +SKIP

    A key is not sent unencrypted to other machines:

    >>> connect("http://plans.example.org", key="mp_...")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: ...
    """
    address = Address.read(url)
    address.check_key(key, true_or_false("insecure", insecure, "Leave it out."))
    budget = _seconds("patience", patience, smallest=0.0)
    limit = _seconds("timeout", timeout, smallest=0.001)
    trusted = None if certificates is None else fspath(certificates)
    if study is not None and address.study not in (None, study):
        got, hint = f"{address.study!r} in the URL", "Name the study in one of the two places."
        raise InvalidInput("study", f"{study!r} in the URL too, or no study", got, hint)
    try:
        from multiplay.remote.client import ConnectionOptions, ServiceClient
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        reason = "mp.connect needs httpx. Run: pip install 'multiplay[client]'."
        raise ModuleNotFoundError(reason, name="httpx") from error
    options = ConnectionOptions(address.base, address.is_local, key, budget, limit, trusted)
    client = ServiceClient(options)
    rights = client.get("/key", fail_fast=True)
    if not isinstance(rights, dict) or "can" not in rights:
        hint = "Check the URL: multiplay serve prints it when it starts."
        raise InvalidInput("url", "the URL of a multiplay service", address.base, hint)
    return found_study(client, address.study if study is None else study, rights.get("study"))


def _seconds(argument: str, given: Any, smallest: float) -> float:
    if is_number(given) and smallest <= given < 1e9:
        return float(given)
    hint = "Use a number such as 30."
    raise InvalidInput(argument, "a number of seconds", repr(given), hint)


class Address(NamedTuple):
    """The address of a service, with the study that it names, if any.

    Attributes
    ----------
    base : str
        The part of the URL before ``/v1``.
    study : str or None
        The study in the path.
    is_local : bool
        Whether it is on this machine.
    """

    base: str
    study: str | None
    is_local: bool

    @classmethod
    def read(cls, url: Any) -> Address:
        """Return the parsed address; raise ``InvalidInput`` if it is not valid.

        Examples
        --------
        >>> Address.read("http://localhost:8000/v1/studies/north%2Fsouth")
        Address(base='http://localhost:8000', study='north/south', is_local=True)
        >>> Address.read("https://plans.example.org/trucks/")
        Address(base='https://plans.example.org/trucks', study=None, is_local=False)
        """
        parts = _split(url)
        if parts.username is not None or parts.query or parts.fragment:
            expected = "a URL without a password, a query or a fragment"
            hint = "Pass the key as key=..., and the study as study=..."
            raise InvalidInput("url", expected, "a URL with such a part", hint)
        found = PATH.fullmatch(parts.path)
        assert found is not None  # every path has a prefix
        base = f"{parts.scheme}://{parts.netloc}{found['prefix'].rstrip('/')}"
        study = None if found["study"] is None else unquote(found["study"])
        return cls(base, study, is_loopback(parts.hostname or ""))

    def check_key(self, key: Any, insecure: bool) -> None:
        """Raise ``InvalidInput`` if the key is not valid, or would be sent unencrypted."""
        if key is None:
            return
        if not isinstance(key, str) or not KEY.fullmatch(key):
            hint = "Copy the whole key: it begins with mp_."
            expected = "an API key as printed by multiplay key create"
            raise InvalidInput("key", expected, "a value of a different form", hint)
        if self.base.startswith("http:") and not (self.is_local or insecure):
            raise InvalidInput(
                "url",
                "https://, because the API key is sent with every request",
                self.base,
                "Use https://, or insecure=True in a trusted network such as a VPN.",
            )


def _split(url: Any) -> SplitResult:
    with suppress(ValueError):  # of an invalid port
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    hint = f"Use a URL such as {EXAMPLE}."
    raise InvalidInput("url", "a URL with http:// or https://", _without_password(url), hint)


def _without_password(url: Any) -> str:
    """Return an invalid URL as text, without the part that may be a password."""
    return repr(re.sub(r"//[^/@]*@", "//...@", url) if isinstance(url, str) else url)[:80]


def is_loopback(host: str) -> bool:
    """Return whether a host is reachable from this machine only.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("127.0.0.7"), is_loopback("[::1]")
    (True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("example.org")
    (False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
