"""Studies of a service, as if they were here."""

from multiplay.remote.door import connect
from multiplay.remote.study import RemoteStudy

__all__ = ["RemoteStudy", "connect"]
