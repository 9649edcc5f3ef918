"""What notebooks show of a study of a service: as of one that is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multiplay._support import html
from multiplay._support.formatting import counted
from multiplay._support.serialization import brief
from multiplay.learner.display import (
    LEVEL,
    MOST_ARMS,
    MOST_PENDING,
    Open,
    arms_table,
    counts,
    pending_table,
)
from multiplay.studies import wire

if TYPE_CHECKING:
    from multiplay.remote.client import Link

# Who only looks does not wait for a service that is away.
AT_ONCE: dict[str, Any] = {"patience": 0.0}


def shown(link: Link, name: str, path: str) -> str:
    """Return what the service says of a study, of some of its arms, and of plays that wait."""
    about: dict[str, Any] = link.get_known(path, **AT_ONCE)
    known = link.get_known(f"{path}/arms", {"level": LEVEL}, **AT_ONCE)["items"]
    first = link.get(f"{path}/pending", {"limit": MOST_PENDING}, **AT_ONCE)["items"]
    arms = wire.to_table(known, wire.ARMS).sort_values(
        ["share", "seen"], ascending=False, kind="stable"
    )
    also = {"pending": about["pending"], "numbers clipped": about["clipped"]}
    facts = {
        "service": link.base,
        "policy": brief(about["policy"]),
        "set": f"{about['actions'].get('type')}, {counted(len(arms), 'arm')}",
        "unit": about["unit"],
        "plays": counts({"asked": about["asked"]}, also),
    }
    pending = [
        Open(play.id, play.key, play.plan, play.expected.total) for play in map(wire.to_play, first)
    ]
    tables = (
        pending_table(pending, about["pending"]),
        arms_table(arms.head(MOST_ARMS), len(arms)),
    )
    return html.panel(f"RemoteStudy {name}", facts, *map(html.shown, tables))
