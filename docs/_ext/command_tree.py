"""Directive ``commands``: every command of ``multiplay --help``, read from the program."""

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
FACTS = re.compile(r"\s+\[([^\[\]]*)\]$")  # [default: results], after the help of an option


class Commands(SphinxDirective):
    """Directive that makes a section for every command, nested by group."""

    def run(self) -> list[nodes.Node]:
        """Return the sections of all commands."""
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
    """Return the arguments and options of a command with their help."""
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
    """Yield the paragraphs and the indented examples of a help text."""
    blocks = UNDERLINED.sub(r"\1:\n", dedent(text).strip()).split("\n\n")
    examples: list[str] = []
    for block in filter(str.strip, blocks):
        if block.startswith("    "):
            examples.append(dedent(block).rstrip())
            continue
        if examples:
            yield _code(examples)
            examples = []
        yield nodes.paragraph("", "", *_words(" ".join(block.split())))
    if examples:
        yield _code(examples)


def _code(blocks: list[str]) -> nodes.literal_block:
    text = "\n".join(blocks)
    language = "python" if text.startswith("import ") else "sh"
    return nodes.literal_block(text, text, language=language)


def _words(text: str) -> Iterator[nodes.Node]:
    """Yield text; parts between [b] and [/b] are strong, or code if they have punctuation."""
    for number, part in enumerate(BOLD.split(text)):
        if number % 2:
            yield nodes.strong("", part) if PLAIN.fullmatch(part) else nodes.literal("", part)
        elif part:
            yield nodes.Text(part)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.add_directive("commands", Commands)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
