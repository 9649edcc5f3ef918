"""Pages of the documentation: execution of their code, and their broken links."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CODE = re.compile(
    r"```(?:python|\{code-cell\} ipython3)\n(?:---\n.*?\n---\n)?(?::\w+:[^\n]*\n)*(.*?)```"
    r"(?:\n\n```text\n(.*?)```)?",
    flags=re.DOTALL,
)
MAGIC = re.compile(r"^%.*$", flags=re.MULTILINE)  # commands of notebooks, such as %matplotlib


def run(page: Path) -> Iterator[str]:
    """Run all blocks and cells of Python in order; yield the expected output after each.

    The expected output is a text block directly below a Python block; otherwise it is empty.
    """
    namespace: dict[str, Any] = {"__name__": page.stem}
    for code, shown in CODE.findall(page.read_text()):
        exec(compile(MAGIC.sub("", code), str(page), "exec"), namespace)
        yield shown


def broken_links(page: Path) -> list[str]:
    """Return the links and pictures of a page whose files do not exist."""
    text = page.read_text()
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^"]+)"', text)
    return [
        link
        for link in links
        if not link.startswith("https://") and not (page.parent / link).exists()
    ]
