"""The gallery: it shows every picture, and the code of its figures runs."""

import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from pages import ROOT, run

DOCS = ROOT / "docs"
GALLERY = DOCS / "gallery"
# They take seconds
SIMULATED = {
    *("coin-or-bill", "corruption", "final-regret", "many-units", "paired", "price-doubles"),
    "regret-curves",
}
DRAWING = [page for page in sorted(GALLERY.glob("*.md")) if "{code-cell}" in page.read_text()]


def pictures() -> set[Path]:
    """Return every picture of the documentation."""
    found = {path for kind in ("png", "svg") for path in DOCS.rglob(f"*.{kind}")}
    return {path for path in found if not path.relative_to(DOCS).parts[0].startswith("_")}


def test_the_gallery_shows_every_picture_of_the_documentation() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in GALLERY.glob("*.md")
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())
    }
    assert {path.name for path in pictures() - shown} == set()


def test_every_page_of_the_gallery_has_a_thumbnail() -> None:
    walls = re.findall(
        r"```\{thumbnails\}\n(.*?)```", (GALLERY / "index.md").read_text(), re.DOTALL
    )
    listed = [name for wall in walls for name in wall.split()]
    assert sorted(listed) == sorted(
        page.stem for page in GALLERY.glob("*.md") if page.stem != "index"
    )


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.stem in SIMULATED else ())
        for page in DRAWING
    ],
    ids=lambda page: page.stem,
)
def test_it_draws(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A page draws one figure, with data and labels of its axes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)  # tests have no screen
    mpl.use("Agg")
    plt.close("all")
    with warnings.catch_warnings(action="error", category=UserWarning):
        assert list(run(page))
        assert len(plt.get_fignums()) == 1
        figure = plt.gcf()
        figure.canvas.draw()  # a layout that has no room warns here
    assert all(ax.has_data() for ax in figure.axes)
    words = [ax.get_xlabel() + ax.get_ylabel() + ax.get_title() for ax in figure.axes]
    assert any(words)
    plt.close(figure)
