"""The pages of the documentation: their code runs, and their links exist."""

import re
from pathlib import Path

import pytest
from pages import ROOT, broken_links, run

import multiplay

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SERVED = ROOT / "docs" / "service.md"  # needs a service: test_service_docs.py runs it


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != SERVED], ids=lambda page: page.name
)
def test_python_blocks_run_and_print_what_is_shown(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for shown in run(page):
        printed = capsys.readouterr().out
        assert not shown or printed == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_exist(page: Path) -> None:
    assert broken_links(page) == []


def test_commands_of_the_readme_are_targets_of_make() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for command in re.findall(r"\bmake ([a-z]+)\b", (ROOT / "README.md").read_text()):
        assert command in targets


def test_public_names_are_documented() -> None:
    for name in multiplay.__all__:
        assert getattr(multiplay, name).__doc__, name
