"""Storage of records and snapshots: in memory, in a folder, or in a database."""

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
from multiplay.storage.memory import MemoryStorage, MemoryStore
from multiplay.storage.stores import store_at

__all__ = [
    "Damaged",
    "Entry",
    "FolderStorage",
    "Head",
    "Journal",
    "Labels",
    "MemoryStorage",
    "MemoryStore",
    "Record",
    "Storage",
    "Store",
    "store_at",
]
