"""The documentation is run, and its links lead somewhere."""

import re
from pathlib import Path
from typing import Any

import pytest

import multiplay

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
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
    """A block of text right below one of Python is what that prints."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for code, shown in CODE.findall(page.read_text()):
        exec(compile(code, str(page), "exec"), namespace)
        printed = capsys.readouterr().out
        assert not shown or printed == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_exist(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_commands_of_the_readme_are_targets_of_make() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for command in re.findall(r"\bmake ([a-z]+)\b", (ROOT / "README.md").read_text()):
        assert command in targets


def test_public_names_are_documented() -> None:
    for name in multiplay.__all__:
        assert getattr(multiplay, name).__doc__, name


def test_changelog_knows_this_version() -> None:
    assert f"## {multiplay.__version__}" in (ROOT / "CHANGELOG.md").read_text()
