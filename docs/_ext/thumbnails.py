"""Directive ``thumbnails``: a table of contents with the first picture of each page.

The pictures are taken from the pages, so that each picture is stored once.
"""

from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.directives.other import TocTree
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata


class Placeholder(nodes.General, nodes.Element):
    """Placeholder of the pictures, until all pages are read."""


class Thumbnails(TocTree):
    """Hidden toctree that is displayed as pictures."""

    def run(self) -> list[nodes.Node]:
        """Return the toctree, and the placeholder of the pictures."""
        self.options["hidden"] = True
        found = super().run()
        pages = [page for tree in found for _, page in _entries(tree)]
        return [*found, Placeholder(pages=pages)]


def _entries(tree: nodes.Node) -> Iterator[tuple[str | None, str]]:
    for node in tree.findall(nodes.Element):
        yield from node.get("entries", ())


def insert_pictures(app: Sphinx, document: nodes.document, name: str) -> None:
    """Replace the placeholders by pictures."""
    for place in list(document.findall(Placeholder)):
        place.replace_self(
            nodes.container(
                "", *(_thumbnail(app, name, page) for page in place["pages"]), classes=["wall"]
            )
        )


def _thumbnail(app: Sphinx, here: str, page: str) -> nodes.Element:
    link = nodes.reference(
        internal=True, refuri=app.builder.get_relative_uri(here, page), classes=["thumbnail"]
    )
    for picture in app.env.get_doctree(page).findall(nodes.image):
        small = picture.deepcopy()
        small.attributes.update(alt="", classes=[])  # the title describes it
        for size in ("width", "height", "align", "scale"):
            small.attributes.pop(size, None)
        link += small
        break  # a page whose code was not executed has no picture
    link += nodes.inline("", app.env.titles[page].astext())
    return nodes.container("", nodes.paragraph("", "", link), classes=["frame"])


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the index of the gallery if one of its pages has changed."""
    pages = [name for name in env.found_docs if name.startswith("gallery/")]
    return ["gallery/index"] if (added | changed) & set(pages) else []


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.add_node(Placeholder)
    app.add_directive("thumbnails", Thumbnails)
    app.connect("doctree-resolved", insert_pictures)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
