"""Commands on the pages: they exist with their options, and those of a study run."""

import json
import re
import shlex
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pytest
import typer
from commands import forked

import multiplay.__main__  # noqa: F401 - all commands are added
from multiplay.cli.app import app

ROOT = Path(__file__).parents[2]
SHELL = re.compile(r"```sh\n(.*?)```", flags=re.DOTALL)


def shown(page: Path) -> list[str]:
    """Return the lines of a page's shell blocks; a backslash continues a line."""
    blocks = "".join(SHELL.findall(page.read_text())).replace("\\\n", " ")
    return blocks.splitlines()


LINES = sorted(
    {
        line.strip()
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for line in shown(page)
        if line.startswith("multiplay ")
    }
)


@pytest.mark.parametrize("line", LINES)
def test_it_exists(line: str) -> None:
    command: Any = typer.main.get_command(app)
    _, *words = shlex.split(line.partition(" > ")[0], comments=True)
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
    assert not hasattr(command, "commands"), "this names a group of commands, and none of them"
    options = {
        option for given in command.params for option in (*given.opts, *given.secondary_opts)
    }
    for word in words:
        name = word.partition("=")[0]
        assert not name.startswith("-") or name in {"--help", *options}, name


@pytest.mark.slow
def test_the_study_on_the_page_runs(tmp_path: Path) -> None:
    """``costs.csv`` has a row for each truck of the plan, as described on the page."""
    lines = dropwhile(lambda line: "study create" not in line, shown(ROOT / "docs" / "studies.md"))
    for line in lines:
        _, *words = shlex.split(line, comments=True)
        done = forked(*words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        if words[1] == "ask":
            plan = json.loads(forked(*words, "--json", folder=tmp_path).stdout)["plan"]
            rows = [f"{lane},120" for lane, trucks in plan.items() for _ in range(trucks)]
            (tmp_path / "costs.csv").write_text("\n".join(["arm,loss", *rows]))
    assert (tmp_path / "lanes.html").exists()
