"""Every command of ``multiplay --help``, read from the program when the site is built."""

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata
from typer.main import get_command

from multiplay.cli import app as commands

BOLD = re.compile(r"\[b\](.*?)\[/b\]", flags=re.DOTALL)
PLAIN = re.compile(r"[A-Za-z ]+")
UNDERLINED = re.compile(r"^(\w+)\n-{3,}$", flags=re.MULTILINE)
FACTS = re.compile(r"\s+\[([^\[\]]*)\]$")  # [default: results], behind the help of an option


class Commands(SphinxDirective):
    """A section for every command, those of a group within the section of the group."""

    def run(self) -> list[nodes.Node]:
        """Walk through the commands."""
        root = get_command(commands)
        context = root.context_class(root, info_name="multiplay")
        return [*_prose(root.help or ""), *_options(root, context), *_sections(root, context)]


def _sections(group: Any, context: Any) -> Iterator[nodes.section]:
    for name, command in getattr(group, "commands", {}).items():
        if command.hidden:
            continue
        inner = command.context_class(command, info_name=name, parent=context)
        path = inner.command_path
        yield nodes.section(
            "",
            nodes.title("", "", nodes.literal("", path)),
            *_usage(command, inner),
            *_prose(command.help or ""),
            *_options(command, inner),
            *_sections(command, inner),
            ids=[nodes.make_id(path)],
            names=[path],
        )


def _usage(command: Any, context: Any) -> list[nodes.Node]:
    text = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    text = re.sub(r"[{}]", "", text.replace("...}...", "...}"))
    text = re.sub(r"\[\[(\w+)\]\.\.\.\]\.\.\.", r"[\1 ...]", text)
    return [nodes.literal_block(text, text, language="text")]


def _options(command: Any, context: Any) -> list[nodes.Node]:
    """Return what may be written behind the command, and what it means."""
    items = []
    for parameter in command.params:
        if (record := parameter.get_help_record(context)) is None:
            continue
        names, text = record
        facts = FACTS.search(text)
        meaning = nodes.paragraph("", "", *_words(FACTS.sub("", text)))
        if facts:
            meaning += nodes.inline("", f" ({facts[1]})", classes=["fact"])
        items.append(
            nodes.definition_list_item(
                "", nodes.term("", "", nodes.literal("", names)), nodes.definition("", meaning)
            )
        )
    return [nodes.definition_list("", *items, classes=["options"])] if items else []


def _prose(text: str) -> Iterator[nodes.Node]:
    """Read a help text: paragraphs, and commands to be typed, which are indented."""
    blocks = UNDERLINED.sub(r"\1:\n", dedent(text).strip()).split("\n\n")
    typed: list[str] = []
    for block in filter(str.strip, blocks):
        if block.startswith("    "):
            typed.append(dedent(block).rstrip())
            continue
        if typed:
            yield _typed(typed)
            typed = []
        yield nodes.paragraph("", "", *_words(" ".join(block.split())))
    if typed:
        yield _typed(typed)


def _typed(blocks: list[str]) -> nodes.literal_block:
    text = "\n".join(blocks)
    language = "python" if text.startswith("import ") else "sh"
    return nodes.literal_block(text, text, language=language)


def _words(text: str) -> Iterator[nodes.Node]:
    """Give words; those between [b] and [/b] are strong, or code if they have other signs."""
    for number, part in enumerate(BOLD.split(text)):
        if number % 2:
            yield nodes.strong("", part) if PLAIN.fullmatch(part) else nodes.literal("", part)
        elif part:
            yield nodes.Text(part)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Tell Sphinx."""
    app.add_directive("commands", Commands)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
