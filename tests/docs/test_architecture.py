"""The files and folders that the architecture page and CONTRIBUTING name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["docs/architecture.md", "CONTRIBUTING.md"]
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.pyi?|(?:[\w.-]+/)+)`")
INVENTED = {"policies/mine.py"}
MADE = ("results/", ".venv/")  # by commands


def missing(text: str) -> list[str]:
    """Return the paths in a page that are no end of the path of any file or folder."""
    folders = [ROOT / name for name in ("src", "tests", "docs", "benchmarks", "tools", "examples")]
    paths = [path for folder in folders for path in [folder, *folder.rglob("*")]]
    known = [f"/{path.relative_to(ROOT)}{'/' if path.is_dir() else ''}" for path in paths]
    named = {name for name in NAMED.findall(text) if not name.startswith(MADE)} - INVENTED
    return sorted(name for name in named if not any(one.endswith(f"/{name}") for one in known))


@pytest.mark.parametrize("page", PAGES)
def test_all_paths_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(NAMED.findall(text)) > 5
    assert missing(text) == []


def test_a_path_that_does_not_exist_is_detected() -> None:
    text = "Open `learner/mind.py`, `rooms/` or `policies/gencts.py`, in `policies/`."
    assert missing(text) == ["learner/mind.py", "rooms/"]
