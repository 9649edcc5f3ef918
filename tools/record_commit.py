"""Build hook: the commit of the checkout becomes a file of the wheel or source distribution.

``multiplay.version.commit`` reads it. pyproject.toml names this file.
"""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RECORD = "src/multiplay/commit.txt"


class RecordCommit(BuildHookInterface):  # type: ignore[misc]
    """The hook of wheel and source distribution, with the arguments of hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, except to editable installations, and where the source has it already."""
        root = Path(self.root)
        commit = runpy.run_path(str(root / "src/multiplay/version.py"))["commit"]()
        if version == "editable" or not commit or (root / RECORD).exists():
            return
        self._folder = tempfile.TemporaryDirectory()  # removed with the hook, after the build
        made = Path(self._folder.name, "commit.txt")
        made.write_text(f"{commit}\n", "utf-8")
        inside = RECORD if self.target_name == "sdist" else RECORD.removeprefix("src/")
        build_data["force_include"][str(made)] = inside
