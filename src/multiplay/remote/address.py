"""Where a service is: what people write, and what it means."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from multiplay.errors import InvalidInput

EXAMPLE = "http://127.0.0.1:8000"
PATH = re.compile(r"(?P<prefix>.*?)(?:/v1)?(?:/studies/(?P<study>[^/]+))?/*")
KEY = re.compile(r"[\x21-\x7e]+")  # what a header can carry


class Address(NamedTuple):
    """A service, and perhaps a study of it.

    Attributes
    ----------
    base : str
        What stands before ``/v1``.
    study : str or None
        The study that the path names.
    is_local : bool
        Whether it is on this machine.
    """

    base: str
    study: str | None
    is_local: bool

    @classmethod
    def read(cls, url: Any) -> Address:
        """Return the address that a URL means.

        Examples
        --------
        >>> Address.read("http://localhost:8000/v1/studies/north%2Fsouth")
        Address(base='http://localhost:8000', study='north/south', is_local=True)
        >>> Address.read("https://plans.example.org/trucks/")
        Address(base='https://plans.example.org/trucks', study=None, is_local=False)
        """
        parts = _split(url)
        if parts.username is not None or parts.query or parts.fragment:
            expected = "an address without a password, a question mark or a #"
            hint = "Give the key as key=..., and the study as study=..."
            raise InvalidInput("url", expected, "one with such a part", hint)
        found = PATH.fullmatch(parts.path)
        assert found is not None  # every path has a prefix
        base = f"{parts.scheme}://{parts.netloc}{found['prefix'].rstrip('/')}"
        study = None if found["study"] is None else unquote(found["study"])
        return cls(base, study, is_loopback(parts.hostname or ""))

    def check_key(self, key: Any, insecure: bool) -> None:
        """Raise ``InvalidInput`` unless a key can be sent there, and nobody on the way sees it."""
        if key is None:
            return
        if not isinstance(key, str) or not KEY.fullmatch(key):
            hint = "Copy all of it: it begins with mp_."
            raise InvalidInput("key", "a key that multiplay key create made", "another one", hint)
        if self.base.startswith("http:") and not (self.is_local or insecure):
            raise InvalidInput(
                "url",
                "https://, for the key is sent with every request, and everybody on the way to "
                "another machine could read it",
                self.base,
                "Use https://, or write insecure=True if the way itself is safe, such as a VPN.",
            )


def _split(url: Any) -> SplitResult:
    with suppress(ValueError):  # of a port that is none
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    hint = f"Write {EXAMPLE}, for example."
    raise InvalidInput("url", "an address with http:// or https://", _shown(url), hint)


def _shown(url: Any) -> str:
    """Return what is no address, without what may be a password in it."""
    return repr(re.sub(r"//[^/@]*@", "//...@", url) if isinstance(url, str) else url)[:80]


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address.

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
