"""Settings of the service, which worker processes read from the environment."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from multiplay.service.studies.limits import ServiceLimits
from multiplay.storage.stores import DEFAULT_STORE

VARIABLE = "MULTIPLAY_SERVICE"  # environment variable for worker processes


@dataclass(frozen=True)
class Settings:
    """Settings of the service.

    Attributes
    ----------
    store : str
        The URL or the path of the store with studies and keys.
    host, port
        The address to listen on.
    workers : int
        The number of worker processes.
    open : bool
        Whether requests without a key are accepted, as long as the store has no key. Use it on a
        loopback address only.
    https : bool
        Whether clients connect by https, through a proxy: then cookies are sent over https only.
    drain : float
        For how many seconds the service still responds after a signal to stop, while it is not
        ready: a proxy with a second service needs them to send it no new requests.
    limits : ServiceLimits
        ServiceLimits of requests.
    notes : dict
        Notes for the pages of studies, by the names of the studies.

    Examples
    --------
    >>> settings = Settings(port=8080)
    >>> Settings.from_text(settings.to_text()) == settings
    True
    """

    store: str = DEFAULT_STORE
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    open: bool = True
    https: bool = False
    drain: float = 0.0
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    notes: dict[str, str] = field(default_factory=dict)

    def to_text(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """Return the settings that ``to_text`` wrote."""
        given = json.loads(text)
        return cls(**given | {"limits": ServiceLimits(**given["limits"])})
