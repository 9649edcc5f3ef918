"""Where records and snapshots are kept: one small protocol, with a folder or memory behind it."""

from multiplay.storage.base import (
    Damaged,
    Entry,
    Head,
    Journal,
    Labels,
    Record,
    Storage,
    Store,
)
from multiplay.storage.folder import FolderStorage
from multiplay.storage.memory import MemoryStorage

__all__ = [
    "Damaged",
    "Entry",
    "FolderStorage",
    "Head",
    "Journal",
    "Labels",
    "MemoryStorage",
    "Record",
    "Storage",
    "Store",
]
