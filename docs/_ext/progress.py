"""Lines of progress while the site is built: one for each page, and one every 30 seconds."""

import sys
import threading
import time
from typing import Any

EVERY = 30.0  # seconds


def setup(app: Any) -> dict[str, bool]:
    """Print a line for each page that is read, and tell that a long page is still running."""
    started, done = time.monotonic(), threading.Event()

    def say(text: str) -> None:
        print(f"docs: {text} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)

    def repeat() -> None:
        while not done.wait(EVERY):
            say("running")

    def begin(app: Any) -> None:
        threading.Thread(target=repeat, daemon=True).start()

    def end(app: Any, error: Exception | None) -> None:
        done.set()
        say("failed" if error else "done")

    app.connect("builder-inited", begin)
    app.connect("source-read", lambda app, page, source: say(page))
    app.connect("build-finished", end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
