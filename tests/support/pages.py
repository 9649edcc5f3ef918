"""Pages of the documentation, run as a reader runs them."""

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
MAGIC = re.compile(r"^%.*$", flags=re.MULTILINE)  # for notebooks alone, such as %matplotlib


def run(page: Path) -> Iterator[str]:
    """Run all blocks and cells of Python in order; yield after each what it should print.

    A block of text right below one of Python is what that prints; nothing is asked of the others.
    """
    namespace: dict[str, Any] = {"__name__": page.stem}
    for code, shown in CODE.findall(page.read_text()):
        exec(compile(MAGIC.sub("", code), str(page), "exec"), namespace)
        yield shown


def broken_links(page: Path) -> list[str]:
    """Return the links and pictures of a page that lead nowhere."""
    text = page.read_text()
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^"]+)"', text)
    return [
        link
        for link in links
        if not link.startswith("https://") and not (page.parent / link).exists()
    ]
