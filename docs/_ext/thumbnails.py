"""A table of contents made of pictures: each is the first picture of the page that it leads to.

So no picture is kept twice, and a thumbnail of a page whose code draws is never out of date.
"""

from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.directives.other import TocTree
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata


class Wall(nodes.General, nodes.Element):
    """The place of the pictures, until all pages are read."""


class Thumbnails(TocTree):
    """A toctree that is hidden in the page, and shown there as pictures."""

    def run(self) -> list[nodes.Node]:
        """Give the toctree, and the place of the pictures."""
        self.options["hidden"] = True
        found = super().run()
        pages = [page for tree in found for _, page in _entries(tree)]
        return [*found, Wall(pages=pages)]


def _entries(tree: nodes.Node) -> Iterator[tuple[str | None, str]]:
    for node in tree.findall(nodes.Element):
        yield from node.get("entries", ())


def hang(app: Sphinx, document: nodes.document, name: str) -> None:
    """Put the pictures into their place."""
    for wall in list(document.findall(Wall)):
        wall.replace_self(
            nodes.container(
                "", *(_thumbnail(app, name, page) for page in wall["pages"]), classes=["wall"]
            )
        )


def _thumbnail(app: Sphinx, here: str, page: str) -> nodes.Element:
    link = nodes.reference(
        internal=True, refuri=app.builder.get_relative_uri(here, page), classes=["thumbnail"]
    )
    for picture in app.env.get_doctree(page).findall(nodes.image):
        small = picture.deepcopy()
        small.attributes.update(alt="", classes=[])  # the title says what it is
        for size in ("width", "height", "align", "scale"):
            small.attributes.pop(size, None)
        link += small
        break  # a page whose code was not run has none
    link += nodes.inline("", app.env.titles[page].astext())
    return nodes.container("", nodes.paragraph("", "", link), classes=["frame"])


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Read the pages with thumbnails again if anything else is."""
    pages = [name for name in env.found_docs if name.startswith("gallery/")]
    return ["gallery/index"] if (added | changed) & set(pages) else []


def setup(app: Sphinx) -> ExtensionMetadata:
    """Tell Sphinx."""
    app.add_node(Wall)
    app.add_directive("thumbnails", Thumbnails)
    app.connect("doctree-resolved", hang)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
