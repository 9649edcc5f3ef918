"""Notebooks of the tutorials, on the site and as files.

``python docs/_ext/notebooks.py FOLDER`` writes the notebooks to a folder.
"""

import re
import sys
from pathlib import Path

import jupytext
import nbformat
from docutils import nodes
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

TUTORIALS = Path(__file__).parent.parent / "tutorials"
FORMAT = "md:myst"
ADMONITION = re.compile(r"^:::\{(\w+)\}(.*)\n((?:.*\n)*?):::$", flags=re.MULTILINE)
ROLE = re.compile(r"\{\w+\}`([^`<]+?)(?: *<[^`>]*>)?`")
OTHER_PAGE = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)")


def tutorials(folder: Path = TUTORIALS) -> list[Path]:
    """Return the paths of the tutorials, which are notebooks."""
    return [page for page in sorted(folder.glob("*.md")) if page.name != "index.md"]


def notebook(page: Path) -> NotebookNode:
    """Return a page as a notebook, without outputs; the same page gives the same notebook."""
    book: NotebookNode = jupytext.read(page, fmt=FORMAT)
    for number, cell in enumerate(book.cells):
        cell.id = f"cell-{number}"  # reproducible
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source)
    nbformat.validate(book)
    return book


def plain(text: str) -> str:
    """Return plain Markdown, for every program that opens notebooks.

    A downloaded notebook is not next to the pages of the site: links to them become plain text.
    """
    text = ADMONITION.sub(_quotation, text)
    return OTHER_PAGE.sub(r"\1", ROLE.sub(r"`\1`", text))


def _quotation(found: re.Match[str]) -> str:
    kind, title, body = found.groups()
    lines = [f"**{title.strip() or kind.capitalize()}**", *body.splitlines()]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def write(folder: Path) -> None:
    """Write all notebooks to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in tutorials():
        text = nbformat.writes(notebook(page))  # type: ignore[no-untyped-call]
        (folder / f"{page.stem}.ipynb").write_text(text, encoding="utf-8")


def link(app: Sphinx, doctree: nodes.document) -> None:
    """Insert a link to the notebook below the title of a tutorial."""
    page = Path(app.env.doc2path(app.env.docname))
    if page not in tutorials(Path(app.srcdir, TUTORIALS.name)):
        return
    name = f"{page.stem}.ipynb"
    target = nodes.reference("", name, refuri=name, internal=True, classes=["download"])
    title = next(iter(doctree.findall(nodes.title)))
    title.parent.insert(1, nodes.paragraph("", "Open it as a notebook: ", target, nodes.Text(".")))


def place(app: Sphinx, problem: Exception | None) -> None:
    """Write the notebooks beside the pages when the site is built."""
    if problem is None and app.builder.format == "html":
        write(Path(app.outdir, TUTORIALS.name))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.connect("doctree-read", link)
    app.connect("build-finished", place)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
