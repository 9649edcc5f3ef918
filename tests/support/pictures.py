"""Pictures of the pages: docs/service.png, docs/pages/*.png, and the guide docs/pages.md.

``python tests/support/pictures.py`` makes them anew, from the demonstration of the service, and
from the file of ``dirty_table.py``, which it imports as a user does. Needs Chromium.
"""

import io
import tempfile
from pathlib import Path

from browser import chromium
from dirty_table import DirtyTable
from effort import TIME_LIMIT
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from serving import serving

import multiplay as mp
from multiplay.service.pages.guide import ABOUT, GUIDE
from multiplay.service.studies import demonstration

DOCS = Path(__file__).parents[2] / "docs"
WIDE, TALL = 1200, 860  # pixels of a picture of the guide
COLOURS = 96
FILE = "Frachten 2025.csv"
IMPORTED, PROMISED = "/studies/Frachten%202025", "promises"
INTRODUCTION = (
    "The pictures are made by `python tests/support/pictures.py`: of a simulated year of trucks, "
    "and of a German file with mistakes. The same texts are the help of the service: “Help” on "
    "each page leads to its section. [HTTP service](service.md#web-pages) has the details."
)
PHONE = "The plan of a study on a phone: the plan as a list of lanes with their trucks"
ON_A_PHONE = "On a phone the plan is a list, and tables scroll sideways."


def guide() -> str:
    """Return the guide as a page of the documentation."""
    parts = ["# The pages, in pictures", ABOUT, INTRODUCTION]
    for one in GUIDE:
        parts += [f"## {one.title}", f"Address: `{one.address}`"]
        parts += [f"![{one.picture}](pages/{one.id}.png)"] if one.picture else []
        parts += one.texts
    parts += ["## On a phone", f"![{PHONE}](pages/phone.png)", ON_A_PHONE]
    return "\n\n".join(parts) + "\n"


def prepared(store: str) -> dict[str, str]:
    """Make the demonstration, and a copy of it with a budget; return the notes of the pages."""
    notes = demonstration.prepare(store)
    with mp.Study.open(demonstration.NAME, store=store) as study:
        study.copy(name=PROMISED)
    with mp.Study.open(PROMISED, store=store) as study:
        study.cancel(study.pending()[0])
        lanes = study.actions.names
        study.add_constraint(
            mp.AtMost(5_500, {"*": 20, lanes[0]: 60, lanes[6]: 45}, plays=22, name="CO2")
        )
        for day in range(9):
            play = study.ask(key=f"2026-12-{day + 1:02}")
            study.tell(play, {lane: [160.0] * trucks for lane, trucks in play.plan.items()})
        study.ask(key="2026-12-10")
    return notes


class Camera:
    """Takes pictures of a page, as PNG files with few colours."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def take(self, file: Path, path: str = "", height: int = TALL) -> None:
        """Write a picture of the page at a path, or of the current one, from its top."""
        page = self._page
        if path:
            page.goto(path)
            is_live = page.locator("[data-events]").count()  # its requests do not end
            page.wait_for_load_state("load" if is_live else "networkidle")
            page.wait_for_timeout(1_500)  # parts that are loaded later
            page.locator(".waits").wait_for(state="detached")
        wide = page.viewport_size["width"] if page.viewport_size else WIDE
        tall = min(height, page.evaluate("document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": wide, "height": tall}
        shot = page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]
        file.parent.mkdir(exist_ok=True)
        image = Image.open(io.BytesIO(shot)).convert("RGB")
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
        print(f"{file.relative_to(DOCS.parent)}: {file.stat().st_size // 1024} KiB")


def take_all(browser: Browser, url: str, table: Path) -> None:
    """Take all pictures of a service."""

    def window(width: int, height: int) -> Page:
        context = browser.new_context(
            base_url=url, viewport={"width": width, "height": height}, locale="en-GB"
        )
        context.set_default_timeout(1_000 * TIME_LIMIT)
        return context.new_page()

    page, folder = window(WIDE, TALL), DOCS / "pages"
    camera = Camera(page)
    camera.take(folder / "new.png", "/new")
    page.get_by_label("A file").set_input_files(table)
    page.get_by_role("button", name="Read the table").click()
    page.get_by_role("heading", name=FILE).wait_for()
    camera.take(folder / "table.png", height=1_300)
    page.get_by_role("button", name="Create the study, and plan today").click()
    page.locator("#plan-heading").wait_for()
    study = f"/studies/{demonstration.NAME}"
    for one in GUIDE:
        path = one.address.replace("/studies/trucks", study)
        path = f"{IMPORTED}/report" if one.id == "report" else path
        path = f"/studies/{PROMISED}/promises" if one.id == "promises" else path
        if one.picture and one.id not in ("new", "table"):
            camera.take(folder / f"{one.id}.png", path, 1_150 if one.id == "report" else TALL)
    Camera(window(390, 844)).take(folder / "phone.png", study, 844)
    Camera(window(1_400, 900)).take(DOCS / "service.png", study, 1_300)


def main() -> None:
    """Serve the pages, take their pictures, and write the guide."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        table, store = Path(folder) / FILE, f"sqlite:///{folder}/plans.db"
        table.write_bytes(DirtyTable(seed=8).text.encode("cp1252"))
        started = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        with serving(store, notes=prepared(store)) as url:
            take_all(started, url, table)
        started.close()
    (DOCS / "pages.md").write_text(guide(), encoding="utf-8")


if __name__ == "__main__":
    main()
