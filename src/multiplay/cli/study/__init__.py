"""multiplay study: one file for each group of commands."""

from multiplay.cli.study import ask, create, keep, look, show, tell
from multiplay.cli.study.app import study

__all__ = ["ask", "create", "keep", "look", "show", "study", "tell"]

# As --help shows them.
PANELS = {
    "Studies": ("create", "list", "show", "delete"),
    "Every day": ("ask", "tell", "close", "cancel", "learn"),
    "What is known": ("pending", "plays", "arms", "best", "expect"),
    "Safety, and files": ("verify", "backup", "export", "import"),
}
ORDER = [(name, panel) for panel, names in PANELS.items() for name in names]


def _arrange() -> None:
    place = {name: k for k, (name, _) in enumerate(ORDER)}
    for command in study.registered_commands:
        assert command.callback is not None
        command.name = command.name or command.callback.__name__
        command.rich_help_panel = dict(ORDER)[command.name]
    study.registered_commands.sort(key=lambda command: place[command.name or ""])


_arrange()
