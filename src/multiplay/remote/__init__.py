"""Client of a service: remote studies with the verbs of local ones."""

from multiplay.remote.connection import connect
from multiplay.remote.study import RemoteStudy

__all__ = ["RemoteStudy", "connect"]
