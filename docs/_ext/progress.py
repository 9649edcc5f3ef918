"""Progress output of the build: a line for each page, and a line every 30 seconds."""

import sys
import threading
import time
from typing import Any

EVERY = 30.0  # seconds


def setup(app: Any) -> dict[str, bool]:
    """Print a line for each page that is read, and a line at regular intervals."""
    started, done = time.monotonic(), threading.Event()

    def write_line(text: str) -> None:
        print(f"docs: {text} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)

    def repeat() -> None:
        while not done.wait(EVERY):
            write_line("running")

    def begin(app: Any) -> None:
        threading.Thread(target=repeat, daemon=True).start()

    def end(app: Any, error: Exception | None) -> None:
        done.set()
        write_line(f"failed: {error}" if error else "done")

    app.connect("builder-inited", begin)
    app.connect("source-read", lambda app, page, source: write_line(page))
    app.connect("build-finished", end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
