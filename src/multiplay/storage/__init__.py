"""Where records and snapshots are kept: one small protocol, with a folder or memory behind it."""

from multiplay.storage.base import Damaged, Record, Storage
from multiplay.storage.folder import FolderStorage
from multiplay.storage.memory import MemoryStorage

__all__ = ["Damaged", "FolderStorage", "MemoryStorage", "Record", "Storage"]
