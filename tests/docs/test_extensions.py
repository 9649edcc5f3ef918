"""Extensions of the site that read commands and HTTP operations, without a build of the site."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from multiplay.cli import app as commands

pytest.importorskip("sphinx", reason="needs the extra 'docs'")
from docutils.core import publish_doctree
from docutils.parsers.rst import directives

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"


def read(extension: str, directive: str) -> Any:
    """Return the nodes that a directive makes of the program."""
    found = runpy.run_path(str(EXTENSIONS / f"{extension}.py"))
    directives.register_directive(directive, found[directive.capitalize()])
    settings = {"report_level": 2, "halt_level": 2}
    return publish_doctree(f".. {directive}::\n", settings_overrides=settings)


def test_commands_have_sections() -> None:
    document = read("command_tree", "commands")
    group: Any = get_command(commands)
    text = document.astext()
    assert [name for name in group.commands if f"multiplay {name}" not in text] == []
    assert "multiplay study ask" in text


def test_operations_have_rows() -> None:
    """All of them are compared with the OpenAPI document in test_site.py."""
    text = read("operations", "operations").astext()
    assert [path for path in ("/v1/studies", "/v1/key") if path not in text] == []
    assert [verb for verb in ("/ask", "/tell", "/pending", "/verify") if verb not in text] == []
