"""multiplay study export, import, verify, backup and delete: studies as a whole."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from multiplay.cli.study.app import (
    DEFAULT_STORE,
    AsJson,
    Name,
    StoreAt,
    opened,
    print_json,
    study,
)
from multiplay.cli.study.screens import bar, next_step, quoted, size
from multiplay.errors import InvalidInput
from multiplay.storage import store_at
from multiplay.studies import Study
from multiplay.studies.export import LINES

LEARNER = ".npz"


@study.command()
def export(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Its ending says how: .csv, .parquet or .jsonl.")],
    plays: Annotated[
        bool, typer.Option("--plays", help="The table of plays instead of the journal.")
    ] = False,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    r"""Write the journal, or the table of plays, to a file; one that is there is replaced.

    JSON lines of the journal lose nothing: [b]multiplay study import[/b] makes the
    same study of them. Parquet needs pip install 'multiplay\[parquet]'.

    Examples:

        multiplay study export lanes plays.csv --plays

        multiplay study export lanes journal.jsonl

    JSON: file, rows.
    """
    with opened(name, store) as known:
        total = known.asked if plays else size(known)
        with bar("writing", total) as progress:
            rows = known.export(file, plays=plays, progress=progress)
    if as_json:
        print_json({"file": str(file), "rows": rows})
    else:
        typer.echo(f"{file}: {rows} {'plays' if plays else 'entries'}")


@study.command("import")
def import_file(
    name: Name,
    file: Annotated[Path, typer.Argument(help="journal.jsonl, or what Learner.save wrote: .npz.")],
    seed: Annotated[
        int, typer.Option(min=0, help="Draws the plays to come, where a learner is imported.")
    ] = 0,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Begin a study from a file: a journal that was exported, or a learner that was saved.

    All of it comes in, or nothing. A line of a journal that is missing or was changed is named.

    Examples:

        multiplay study import lanes journal.jsonl --store sqlite:///restored.db

        multiplay study import lanes learner.npz --seed 7

    JSON: study, store, entries.
    """
    if file.suffix.lower() not in (LINES, LEARNER):
        expected = f"a file that ends in {LINES} or {LEARNER}"
        hint = "Give a journal that was exported as JSON lines, or what Learner.save wrote."
        raise InvalidInput("file", expected, str(file), hint)
    if file.suffix.lower() == LEARNER:
        made = Study.import_learner(name, file, seed=seed, store=store)
    else:
        with bar("reading", None) as progress:
            made = Study.import_journal(name, file, store=store, progress=progress)
    with made:
        entries = size(made)
        if as_json:
            print_json({"study": name, "store": made.store.url, "entries": entries})
        else:
            typer.echo(f"{made!r}, with {entries} entries")
            typer.echo(next_step(f"ask {quoted(name)}", made, store))


@study.command()
def verify(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Replay the whole journal, and compare every play and the state, bit for bit.

    What is wrong is named, and the exit code is then 1.

    Examples:

        multiplay study verify lanes

    JSON: entries, plays, ok, problems (a list of texts).
    """
    place = store_at(store)
    known = Study(name, place, place.open(name))  # not opened: it may be damaged
    with known, bar("replaying", size(known)) as progress:
        found = known.verify(progress)
    if as_json:
        print_json({**found._asdict(), "ok": found.ok})
    else:
        typer.echo(f"{found}", err=not found.ok)
    if not found.ok:
        raise typer.Exit(1)


@study.command()
def backup(
    name: Name,
    file: Annotated[Path, typer.Argument(help="A file that is not there yet, lanes.db say.")],
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Copy a study to a file of its own, while others go on with it.

    The file is a store: [b]--store FILE[/b] opens it. It is written whole or not at
    all, also from a PostgreSQL database.

    Examples:

        multiplay study backup lanes lanes-2026-11-15.db

        multiplay study show lanes --store lanes-2026-11-15.db

    JSON: file, entries.
    """
    with opened(name, store) as known, bar("copying", size(known)) as progress:
        entries = known.backup(file, progress=progress)
    if as_json:
        print_json({"file": str(file), "entries": entries})
    else:
        typer.echo(f"{file}: {entries} entries")


@study.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Remove a study with all that it knows, for good.

    Asks before it does so. Where nobody can be asked, in a program say, it needs [b]--yes[/b].

    Examples:

        multiplay study backup lanes lanes.db && multiplay study delete lanes --yes

    JSON: study, deleted.
    """
    with closing(store_at(store).open(name)) as journal:  # one that is damaged can be deleted too
        entries = journal.head().number + 1
    if not yes:
        if not sys.stdin.isatty():
            hint = "Write --yes if all of it is to be removed for good."
            raise InvalidInput("--yes", "to be asked on a terminal, or --yes", "neither", hint)
        question = f"Remove {name!r} with its {entries} entries for good?"
        typer.confirm(question, abort=True, err=True)
    Study.delete(name, store=store)
    if as_json:
        print_json({"study": name, "deleted": True})
    else:
        typer.echo(f"{name} is removed")
