"""Directive ``operations``: the HTTP operations, read from the OpenAPI document of the service."""

from collections import defaultdict
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from multiplay.service.api import openapi

METHODS = ("get", "post", "put", "patch", "delete")
HEAD = ("method", "path", "effect")


class Operations(SphinxDirective):
    """Directive that makes a table for each group of operations."""

    def run(self) -> list[nodes.Node]:
        """Return the tables of the OpenAPI document."""
        groups: dict[str, list[tuple[nodes.Node, ...]]] = defaultdict(list)
        for path, operations in openapi.document()["paths"].items():
            for method in METHODS:
                if method in operations:
                    groups[operations[method]["tags"][0]].append(
                        _row(method, path, operations[method])
                    )
        return [
            nodes.section(
                "", nodes.title("", group), _table(rows), ids=[nodes.make_id(group)], names=[group]
            )
            for group, rows in groups.items()
        ]


def _row(method: str, path: str, operation: dict[str, Any]) -> tuple[nodes.Node, ...]:
    text = operation.get("description", "").split("\n\n")[0]
    return nodes.literal("", method.upper()), nodes.literal("", path), nodes.Text(text)


def _table(rows: list[tuple[nodes.Node, ...]]) -> nodes.table:
    group = nodes.tgroup(cols=len(HEAD))
    group += [nodes.colspec(colwidth=1) for _ in HEAD]
    group += nodes.thead("", _cells(tuple(nodes.Text(word) for word in HEAD)))
    group += nodes.tbody("", *map(_cells, rows))
    return nodes.table("", group, classes=["operations"])


def _cells(row: tuple[nodes.Node, ...]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in row))


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.add_directive("operations", Operations)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
