"""Summary tables of the members of large classes."""

from collections.abc import Iterator

from docutils import nodes
from sphinx.addnodes import desc, desc_content, desc_name, desc_signature
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

CLASSES = ("class", "exception")
FEW = 5  # largest number of members without a summary


def summarise(app: Sphinx, document: nodes.document) -> None:
    """Insert a table before the first member of each large class."""
    for described in list(document.findall(desc)):
        if described["objtype"] not in CLASSES:
            continue
        content = next(described.findall(desc_content))
        members = [node for node in content.children if isinstance(node, desc)]
        if len(members) > FEW:
            place = content.index(members[0])
            content.insert(place, _table(list(_rows(members))))


def _rows(members: list[desc]) -> Iterator[nodes.row]:
    for member in members:
        signature, text = member[0], next(member.findall(desc_content))
        assert isinstance(signature, desc_signature)
        name = next(signature.findall(desc_name)).astext()
        called = "()" if "method" in member["objtype"] else ""
        link = nodes.reference(
            "", "", nodes.literal("", name + called), refid=signature["ids"][0], internal=True
        )
        yield nodes.row(
            "", nodes.entry("", nodes.paragraph("", "", link)), nodes.entry("", _first(text))
        )


def _first(text: nodes.Element) -> nodes.paragraph:
    """Return the first paragraph of a description."""
    found = next(iter(text.findall(nodes.paragraph)), None)
    return nodes.paragraph() if found is None else found.deepcopy()


def _table(rows: list[nodes.row]) -> nodes.table:
    group = nodes.tgroup(cols=2)
    group += [nodes.colspec(colwidth=1), nodes.colspec(colwidth=3)]
    group += nodes.tbody("", *rows)
    return nodes.table("", group, classes=["summary"])


def skip_tuple_fields(app: Sphinx, kind: str, name: str, thing: object, *_: object) -> bool | None:
    """Skip fields of named tuples, which Python documents by their index only."""
    return True if (getattr(thing, "__doc__", "") or "").startswith("Alias for field") else None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.connect("doctree-read", summarise)
    app.connect("autodoc-skip-member", skip_tuple_fields)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
