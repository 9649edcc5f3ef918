"""Measurements of HTML pages in a browser, at the width of a phone."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from effort import TIME_LIMIT

# the page is in a frame of the width of a phone, because a window has a larger minimum width
PHONE = """<!DOCTYPE html><body><iframe style="width: 360px; height: 800px; border: 0"
srcdoc="{page}"></iframe><script>
addEventListener("load", () => {{
  const frame = document.querySelector("iframe"), inner = frame.contentWindow;
  const root = inner.document.documentElement, all = (what) => [...root.querySelectorAll(what)];
  const colour = (what, key) => inner.getComputedStyle(root.querySelector(what))[key];
  document.body.innerText = "MEASURED" + JSON.stringify({{
    inner: inner.innerWidth,
    scroll: root.scrollWidth,
    height: root.scrollHeight,
    figures: all("svg").map((svg) => svg.getBoundingClientRect().width),
    heights: all("svg").map((svg) => svg.getBoundingClientRect().height),
    scrolling: all(".table").filter((box) => box.scrollWidth > box.clientWidth).length,
    text_height: Math.min(...all("svg text").map((text) => text.getBoundingClientRect().height)),
    fetched: inner.performance.getEntriesByType("resource").length,
    paper: colour("body", "backgroundColor"),
    ink: colour("body", "color"),
    label: colour("svg text", "fill"),
    names: all("svg text").map((text) => text.textContent),
  }}) + "END";
}});
</script></body>"""


def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("MULTIPLAY_NEEDS_BROWSER"):
        pytest.fail("MULTIPLAY_NEEDS_BROWSER is set, but chromium is not installed")
    pytest.skip("chromium is not installed")


def measured(page: str, tmp_path: Path, *options: str) -> dict[str, Any]:
    """Open a page at the width of a phone, and return measurements of it."""
    wrapper = tmp_path / "phone.html"
    wrapper.write_text(PHONE.format(page=html.escape(page)), encoding="utf-8")
    command = [
        chromium(),
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--window-size=800,900", *options),
        *("--dump-dom", wrapper.as_uri()),
    ]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=TIME_LIMIT, check=True
    )
    found = re.search("MEASURED(.*)END", html.unescape(done.stdout))
    assert found, done.stdout[-2000:]
    values: dict[str, Any] = json.loads(found.group(1))
    return values
