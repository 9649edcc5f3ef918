"""Studies of a service, as if they were here."""

from multiplay.remote.connection import connect
from multiplay.remote.study import RemoteStudy

__all__ = ["RemoteStudy", "connect"]
