"""The door to a service."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

from multiplay._support.checks import is_number, true_or_false
from multiplay.errors import InvalidInput
from multiplay.remote.address import Address
from multiplay.remote.study import RemoteStudy, found_study


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
    """Go on with a study of a service: the same verbs as ``Study.open`` gives, over HTTP.

    Which study: the one that is named here or in the address; else the one that the key is for;
    else the only one that there is. If that leaves it open, ``create``, ``open``, ``list`` and
    ``delete`` can be used. Needs ``pip install 'multiplay[client]'``.

    Parameters
    ----------
    url
        Where the service is: ``http://127.0.0.1:8000``, or the address of a study,
        ``https://plans.example.org/studies/lanes``.
    key
        The one that ``multiplay key create`` has shown. It is sent over https only, and to this
        machine.
    study
        The name of the study.
    patience
        How many seconds to go on trying where the service does not answer. It is safe to: every
        request that changes something says who it is, and is done once.
    timeout
        Seconds to wait for one answer.
    insecure
        True: send the key over http too, where the way itself is safe, such as a VPN.
    certificates
        A file (PEM) of those to trust, for a service with a certificate of your own.

    Examples
    --------
    >>> study = connect("http://127.0.0.1:8000", key="mp_...", study="lanes")  # doctest: +SKIP
    >>> play = study.ask(key="2026-11-15")  # doctest: +SKIP

    A key is not sent where others could read it:

    >>> connect("http://plans.example.org", key="mp_...")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: ...
    """
    address = Address.read(url)
    address.check_key(key, true_or_false("insecure", insecure, "Leave it out."))
    attempts = _seconds("patience", patience, smallest=0.0)
    attempt = _seconds("timeout", timeout, smallest=0.001)
    trusted = None if certificates is None else fspath(certificates)
    if study is not None and address.study not in (None, study):
        got, hint = f"{address.study!r} in the address", "Name it in one of the two places."
        raise InvalidInput("study", f"{study!r} in the address too, or none", got, hint)
    try:
        from multiplay.remote.client import Link, Way
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        reason = "mp.connect needs httpx. Run: pip install 'multiplay[client]'."
        raise ModuleNotFoundError(reason, name="httpx") from error
    link = Link(Way(address, key, attempts, attempt, trusted))
    who = link.get("/key", at_once=True)
    if not isinstance(who, dict) or "can" not in who:
        hint = "Check the address: it is shown where multiplay serve was started."
        raise InvalidInput("url", "the address of a multiplay service", address.base, hint)
    return found_study(link, address.study if study is None else study, who.get("study"))


def _seconds(argument: str, given: Any, smallest: float) -> float:
    if is_number(given) and smallest <= given < 1e9:
        return float(given)
    hint = "Write 30 for half a minute."
    raise InvalidInput(argument, "a number of seconds", repr(given), hint)
