"""How the service runs; worker processes are given it as text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from multiplay.service.studies.limits import ServiceLimits
from multiplay.studies.study import PLACE

VARIABLE = "MULTIPLAY_SERVICE"  # of the environment, for worker processes


@dataclass(frozen=True)
class Settings:
    """How the service runs.

    Attributes
    ----------
    store : str
        Where studies and keys are.
    host, port
        Where it listens.
    workers : int
        Processes that answer.
    open : bool
        It may be used without a key, as long as the store has none: only on a loopback address.
    https : bool
        People come by https, through a proxy: then cookies are sent over https only.
    limits : ServiceLimits
        What one request may have.

    Examples
    --------
    >>> settings = Settings(port=8080)
    >>> Settings.from_text(settings.to_text()) == settings
    True
    """

    store: str = PLACE
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    open: bool = True
    https: bool = False
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    def to_text(self) -> str:
        """Return all of it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """Return what ``to_text`` wrote."""
        given = json.loads(text)
        return cls(**given | {"limits": ServiceLimits(**given["limits"])})
