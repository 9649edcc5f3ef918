"""Golden text of the public surfaces: Learner, Study, the service, its client, and commands.

All bits and digests, to compare two versions of the library in one environment::

    python tests/support/golden.py before.txt    # with the old version
    python tests/support/golden.py after.txt     # with the new version
    diff before.txt after.txt

The files of the repository, without what depends on the processor or the installation::

    python tests/support/golden.py --renew

Renew them after a change that is meant, and read the difference before it is committed.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import golden_surfaces as surfaces
import golden_verbs as verbs
from golden_text import Lines, fixed_time

DATA = Path(__file__).parents[1] / "data" / "golden"
CLIENTS = ("default", "features", "promises")
BY_NAME = {case.name: case for case in verbs.CASES}


KEPT: dict[str, Callable[[Path], Lines]] = {  # files of the repository
    "learner": partial(verbs.of_learner, BY_NAME["switching"]),
    "study": lambda _: verbs.of_study(BY_NAME["promises"]),
    "study-features": lambda _: verbs.of_study(BY_NAME["features"], [verbs.settings]),
    "study-imported": verbs.of_imported,
    "http": lambda _: surfaces.of_http(),
    "openapi": lambda _: surfaces.of_names(),
    "commands": surfaces.of_commands,
}


def kept(name: str) -> Path:
    """Return the file of the repository with the lines of a surface."""
    return DATA / f"{name}.txt"


@cache
def made(name: str) -> Lines:
    """Return the lines of a surface of the repository, made now."""
    with fixed_time(), TemporaryDirectory() as folder:
        return KEPT[name](Path(folder))


def all_surfaces(folder: Path) -> Iterator[tuple[str, Lines]]:
    """Yield the lines of every surface and every case."""
    for case in verbs.CASES:
        yield f"learner {case.name}", verbs.of_learner(case, folder)
        yield f"study {case.name}", verbs.of_study(case)
    yield "study truncated", verbs.of_study(verbs.ITEMS, [verbs.truncated])
    yield "study imported", verbs.of_imported(folder)
    yield "http", surfaces.of_http()
    yield "openapi", surfaces.of_document()
    yield "commands", surfaces.of_commands(folder)
    for name in CLIENTS:
        yield f"client {name}", surfaces.of_client(BY_NAME[name])


def main(target: str) -> None:
    """Write all lines to a file, or renew the files of the repository."""
    if target == "--renew":
        for name in KEPT:
            kept(name).write_text("\n".join(made(name).portable()) + "\n", encoding="utf-8")
        return
    with (
        fixed_time(),
        TemporaryDirectory() as folder,
        open(target, "w", encoding="utf-8") as file,
    ):
        for name, lines in all_surfaces(Path(folder)):
            file.writelines(f"{name} | {line}\n" for line in lines.complete())


if __name__ == "__main__":
    main(sys.argv[1])
