"""Commands of studies: one module for each group, in the order of --help."""

from multiplay.cli.study import ask, constraints, create, features, maintenance, savings, show, tell
from multiplay.cli.study.app import study

__all__ = [
    "ask",
    "constraints",
    "create",
    "features",
    "maintenance",
    "savings",
    "show",
    "study",
    "tell",
]

# The order of --help.
PANELS = {
    "Studies": ("create", "list", "show", "set", "rename", "delete"),
    "Plans and costs": (
        *("ask", "tell", "close", "cancel", "correct", "retract", "expire"),
        *("learn-table", "add-constraint", "end-constraint", "note"),
    ),
    "Costs that count": ("forget", "unforget"),
    "Plans and estimates": (
        *("why", "pending", "plays", "arms", "drift", "effects", "best", "expect"),
        *("savings", "constraints"),
    ),
    "Verification and files": ("verify", "accept", "backup", "copy", "export", "import"),
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
