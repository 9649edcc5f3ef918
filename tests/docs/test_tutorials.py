"""The tutorials, run as plain Python and as notebooks."""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from effort import TIME_LIMIT
from pages import ROOT, broken_links, run

pytest.importorskip("jupytext", reason="needs the extra 'docs'")

FOLDER = ROOT / "docs" / "tutorials"
TUTORIALS = [page for page in sorted(FOLDER.glob("*.md")) if page.name != "index.md"]
QUICKEST = "own-policy"
LIBRARIES = {"pulp": "pulp", "pyomo": "pyomo", "ortools": "ortools"}  # that a tutorial needs
ALONE = "ortools"  # in a process of its own: OR-Tools conflicts with highspy, which tests import
EXTENSION: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "_ext" / "notebooks.py"))


def name(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page.stem == QUICKEST else pytest.mark.slow)
        for page in TUTORIALS
    ],
    ids=name,
)
def test_cells_run_and_leave_nothing_behind(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _skip_without_library(page)
    monkeypatch.chdir(tmp_path)
    if page.stem == ALONE:
        code = f"import pathlib, pages; print(len([*pages.run(pathlib.Path({str(page)!r}))]))"
        path = os.pathsep.join([str(ROOT / "tests" / "support"), *sys.path])
        cells = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()[-1]
        assert int(cells) > 5
    else:
        with mpl.rc_context():
            assert len(list(run(page))) > 5
    assert list(tmp_path.iterdir()) == []


def _skip_without_library(page: Path) -> None:
    library = LIBRARIES.get(page.stem)
    if library is not None and find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


@pytest.mark.parametrize("page", TUTORIALS, ids=name)
def test_links_exist(page: Path) -> None:
    assert broken_links(page) == []


def test_the_index_has_all_of_them() -> None:
    index = (FOLDER / "index.md").read_text()
    for page in TUTORIALS:
        assert f":link: {page.stem}\n" in index
        assert f"\n{page.stem}\n" in index  # in the toctree


@pytest.mark.parametrize("page", TUTORIALS, ids=name)
def test_each_is_a_valid_notebook_in_plain_markdown(page: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    book = EXTENSION["notebook"](page)
    nbformat.validate(book)
    assert book == EXTENSION["notebook"](page)
    assert book.metadata.kernelspec.name == "python3"
    cells = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert len(cells) == page.read_text().count("```{code-cell}")
    words = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    assert not re.search(r"\.md\)|\{\w+\}`|^:::", words, flags=re.MULTILINE)


def test_what_is_special_to_the_site_becomes_plain_markdown() -> None:
    plain = EXTENSION["plain"]
    assert plain("[sets](../sets.md#rewards) and ![a](b.png)") == "sets and ![a](b.png)"
    assert plain("[Dask](https://dask.org)") == "[Dask](https://dask.org)"
    assert plain("{class}`Study <multiplay.Study>`, {func}`load`") == "`Study`, `load`"
    admonition = ":::{tip}\nTry it.\n\nAgain.\n:::\nOn."
    assert plain(admonition) == "> **Tip**\n> Try it.\n>\n> Again.\nOn."


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.stem == QUICKEST else pytest.mark.soak)
        for page in TUTORIALS
    ],
    ids=name,
)
def test_each_notebook_runs_in_a_real_kernel(page: Path, tmp_path: Path) -> None:
    """Every cell shows something, and figures are pictures."""
    nbclient = pytest.importorskip("nbclient")
    _skip_without_library(page)
    book = EXTENSION["notebook"](page)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        book, timeout=TIME_LIMIT, kernel_name="python3", resources=where
    ).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in cells)
    for cell in cells:
        if cell.source.rstrip().endswith(("figure", ")")) and ".plot(" in cell.source:
            assert any("image/svg+xml" in output.get("data", {}) for output in cell.outputs)
