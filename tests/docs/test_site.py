"""The site that ``make docs`` builds: its links exist, and it works offline.

Notebooks are not executed here: test_gallery.py and test_docs.py run their code. Links to other
sites are not followed, because tests have no network; a page must load only files of the site.
"""

import fcntl
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import chromium
from effort import TIME_LIMIT
from playwright.sync_api import Browser, Page, expect, sync_playwright
from test_reference import in_the_reference
from typer.main import get_command

from multiplay.cli import app as commands
from multiplay.service.api import openapi

pytest.importorskip("sphinx", reason="needs the extra 'docs'")

pytestmark = pytest.mark.slow  # the build takes a minute
expect.set_options(timeout=1000 * TIME_LIMIT)  # milliseconds; the default is 5 seconds

DOCS = Path(__file__).parents[2] / "docs"
MAKEFILE = DOCS.with_name("Makefile")
NARROW, WIDE = 400, 1400
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}
REPRESENTATIVE = [
    "index.html",
    "how-to.html",
    "live.html",
    "mathematics.html",
    "performance.html",
    "gallery/index.html",
    "gallery/figure1.html",
    "reference/index.html",
    "reference/commands.html",
    "reference/http.html",
    "reference/names/multiplay.Transport.html",
]
FORMULAS = [
    "mathematics.html",
    *(f"reference/names/multiplay.{name}.html" for name in ("GenCTS", "GenLBINFV", "Transport")),
]


class Contents(HTMLParser):
    """The ids, links and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the id, link or loaded file of a tag."""
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if (place := LOADED.get(tag)) in found:
            self.loaded.append(found[place or ""])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once, even if several processes test it."""
    place = tmp_path_factory.getbasetemp()
    place = place.parent if place.name.startswith("popen-") else place
    html = place / "site"
    with (place / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not html.exists():
            command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q"]
            command += ["-j", "2", "-d", str(place / "doctrees")]
            command += ["-D", "nb_execution_mode=off", "-D", "suppress_warnings=myst-nb.lexer"]
            done = subprocess.run([*command, DOCS, html], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-5000:]
    return html


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Contents]:
    found = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    return {path.resolve(): Contents(path) for path in found}


def test_a_page_that_fails_ends_the_build_with_its_name_and_its_error(tmp_path: Path) -> None:
    """The pages after it are not read; there are enough for worker processes, if any."""
    cell = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# A page\n\n"
    cell += "```{{code-cell}} ipython3\nimport {}\n```\n"
    pages = {"fails": "no_such_module"} | {f"page-{number}": "json" for number in range(8)}
    for name, module in pages.items():
        (tmp_path / f"{name}.md").write_text(cell.format(module))
    index = "\n".join(["# Index", "", "```{toctree}", *pages, "```", ""])
    (tmp_path / "index.md").write_text(index)
    [options] = re.findall(r"/sphinx-build (.*) docs docs/_build/html", MAKEFILE.read_text())
    command = [sys.executable, "-m", "sphinx", *options.split(), "-c", str(DOCS)]
    done = subprocess.run([*command, tmp_path, tmp_path / "html"], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"docs: failed: {tmp_path / 'fails.md'}" in done.stderr
    assert "No module named 'no_such_module'" in done.stderr
    assert re.findall(r"^docs: (\S+) \(", done.stderr, re.MULTILINE) == ["fails"]


def test_no_link_leads_nowhere(site: Path, pages: dict[Path, Contents]) -> None:
    broken = []
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            to = (path.parent / unquote(url.path)).resolve() if url.path else path
            known = to in pages and (not url.fragment or unquote(url.fragment) in pages[to].ids)
            if not known and (to in pages or not to.is_file()):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 1000, "links are found"


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Contents]) -> None:
    elsewhere = re.compile(r"^(https?:)?//")
    loaded = [url for page in pages.values() for url in page.loaded]
    assert [url for url in loaded if elsewhere.match(url)] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", styles) == []


def test_every_public_name_has_a_page(site: Path, pages: dict[Path, Contents]) -> None:
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    places = {
        name: item.uri
        for kind, items in inventory.items()
        if kind.startswith("py:")
        for name, item in items.items()
    }
    listed = in_the_reference()  # test_reference.py: these are all
    assert listed - set(places) == set()
    for name in listed:
        path, _, fragment = places[name].partition("#")
        assert fragment in pages[(site / path).resolve()].ids, name


def test_the_search_index_knows_names(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "GenCTS" in index
    assert '"gencts"' in index


def test_every_command_is_described(site: Path, pages: dict[Path, Contents]) -> None:
    def paths(command: Any, path: str) -> Iterator[str]:
        for name, inner in getattr(command, "commands", {}).items():
            yield f"{path}-{name}"
            yield from paths(inner, f"{path}-{name}")

    page = (site / "reference" / "commands.html").resolve()
    expected = set(paths(get_command(commands), "multiplay"))
    assert "multiplay-study-ask" in expected
    assert expected - pages[page].ids == set()
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"\[/?b\]|\x1b", text), "markup of the terminal"
    assert "--all-policies" in text


def test_every_operation_is_described(site: Path) -> None:
    text = (site / "reference" / "http.html").read_text(encoding="utf-8")
    paths = openapi.document()["paths"]
    shown = re.sub(r"<[^>]*>", "", text)
    assert len(paths) > 10
    assert [path for path in paths if path not in shown] == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=1000 * TIME_LIMIT
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDE, "height": 900}, offline=True)
    opened = context.new_page()
    opened.set_default_timeout(1000 * TIME_LIMIT)
    yield opened
    context.close()


def test_search_finds_a_class_without_a_network(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("Control+k")
    field = page.locator("input[name=q]:visible").first
    field.fill("Transport")
    field.press("Enter")
    result = page.locator("#search-results li a", has_text=re.compile(r"^(multiplay\.)?Transport$"))
    result.first.click()
    expect(page.get_by_role("heading", name="Transport", exact=True)).to_be_visible()


def test_dark_and_light(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.locator(".theme-switch-button:visible").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(colour) != light
    page.goto((site / "how-to.html").as_uri())
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")  # it is remembered


def test_formulas_are_typeset(site: Path, page: Page) -> None:
    written = 0
    for path in FORMULAS:
        page.goto((site / path).as_uri())
        assert page.locator(".katex-error").count() == 0, path
        formulas = page.locator(".formula").count()
        assert page.locator(".formula .katex").count() >= formulas, path
        written += formulas
    assert written, "there are formulas on these pages"


@pytest.mark.parametrize("path", REPRESENTATIVE)
def test_a_phone_does_not_scroll_sideways(site: Path, page: Page, path: str) -> None:
    page.set_viewport_size({"width": NARROW, "height": 900})
    page.goto((site / path).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW


@pytest.mark.parametrize(
    "path", ["index.html", "gallery/index.html", "reference/names/multiplay.Transport.html"]
)
def test_everybody_can_read_it(site: Path, page: Page, path: str) -> None:
    """Axe finds no serious violation; in dark mode, the contrast of text."""
    page.goto((site / path).as_uri())
    _check_with_axe(page, {"resultTypes": ["violations"]})
    page.emulate_media(color_scheme="dark")
    page.reload()
    _check_with_axe(page, {"runOnly": ["color-contrast"]})


SETTLED = "Promise.all(document.getAnimations().map(one => one.finished.catch(() => null)))"


def _check_with_axe(page: Page, options: dict[str, Any]) -> None:
    page.evaluate(SETTLED)  # during a transition, colours have little contrast
    found = Axe().run(page, options=options).response["violations"]
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not bad, [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in bad]
