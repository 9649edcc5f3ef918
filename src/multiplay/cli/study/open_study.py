"""The study that a command is about, and the command that usually comes next."""

import os
import shlex

from multiplay.storage import Store
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies.study import Study


def opened(name: str, store: str | Store) -> Study:
    """Open a study."""
    return Study.open(name, store=store)


def next_step(command: str, study: Study, store: str) -> str:
    """Return the next command as text, with the option --store if it is needed."""
    usual = os.environ.get("MULTIPLAY_STORE", DEFAULT_STORE)
    where = "" if store == usual else f" --store {shlex.quote(study.store.url)}"
    return f"Next: multiplay study {command}{where}"
