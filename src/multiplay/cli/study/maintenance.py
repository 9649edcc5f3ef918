"""Commands study export, import, verify, accept, backup, copy, rename and delete."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from multiplay.cli.app import errors
from multiplay.cli.study.app import AsJson, Name, StoreAt, print_answer, print_json
from multiplay.cli.study.open_study import next_step, opened
from multiplay.errors import InvalidInput
from multiplay.storage import Damaged, Store, store_at
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies import Study
from multiplay.studies.export import EXCEL, LINES
from multiplay.studies.results import to_plain

LEARNER = ".npz"
PAUSE = 0.1  # seconds between two updates of a progress bar


def export(
    name: Name,
    file: Annotated[Path, typer.Argument(help="The file: .csv, .xlsx, .parquet or .jsonl.")],
    plays: Annotated[
        bool, typer.Option("--plays", help="Export the table of plays instead of the journal.")
    ] = False,
    plans: Annotated[
        bool, typer.Option("--plans", help="Export the plans, a row for each plan and arm.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="Export the plans, a column for each arm.")
    ] = False,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    r"""Write the plans, the plays or the journal to a file. An existing file is replaced.

    A file that ends in .xlsx is a workbook for a spreadsheet, with sheets of plans, bills and arms,
    and a summary. Parquet needs pip install 'multiplay\[parquet]'.

    The journal as JSON lines is complete: [b]multiplay study import[/b] restores the same study
    from it.

    In a CSV file a text that a spreadsheet could take for a formula, because it begins with =, +,
    - or @, has an apostrophe before it.

    Examples:

        multiplay study export lanes lanes.xlsx

        multiplay study export lanes plans.csv --plans

        multiplay study export lanes plans.parquet --wide

        multiplay study export lanes journal.jsonl

    JSON: file, rows.
    """
    with opened(name, store) as known:
        is_plans = plans or wide or file.suffix.lower() == EXCEL
        total = known.asked if plays else _entry_count(known.store, name)
        with progress_bar("writing", None if is_plans else total) as progress:
            rows = known.export(file, plays=plays, plans=plans, wide=wide, progress=progress)
    what = "rows of plans" if is_plans else "plays" if plays else "entries"
    print_answer(as_json, {"file": str(file), "rows": rows}, f"{file}: {rows} {what}")


def import_file(
    name: Name,
    file: Annotated[
        Path, typer.Argument(help="An exported journal (.jsonl), or a saved learner (.npz).")
    ],
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of future plans, for an imported learner.")
    ] = 0,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Create a study from a file: an exported journal, or a saved learner.

    The import is complete or has no effect. An error names the first line of a journal that is
    missing or was changed.

    Examples:

        multiplay study import lanes journal.jsonl --store sqlite:///restored.db

        multiplay study import lanes learner.npz --seed 7

    JSON: study, store, entries.
    """
    if file.suffix.lower() not in (LINES, LEARNER):
        expected = f"a file that ends in {LINES} or {LEARNER}"
        hint = "Give a journal exported as JSON lines, or a file that Learner.save wrote."
        raise InvalidInput("file", expected, str(file), hint)
    if file.suffix.lower() == LEARNER:
        made = Study.import_learner(name, file, seed=seed, store=store)
    else:
        with progress_bar("reading", None) as progress:
            made = Study.import_journal(name, file, store=store, progress=progress)
    with made:
        entries = _entry_count(made.store, name)
        if as_json:
            print_json({"study": name, "store": made.store.url, "entries": entries})
        else:
            typer.echo(f"{made!r}, with {entries} entries")
            typer.echo(next_step(f"ask {shlex.quote(name)}", made, store))


def verify(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Replay the whole journal, and compare every plan and the state bit for bit.

    Plays of a different version or processor cannot be compared bit for bit: they are counted as
    not checked, and their digests, feasibility and effect on the state are compared instead.

    If there are problems, they are listed, and the exit code is 1.

    Examples:

        multiplay study verify lanes

    JSON: entries, plays, ok, problems (a list of texts), unchecked (a number of plays), solvers
    (the versions of the solver at creation and now, if they differ, or null).
    """
    place = store_at(store)
    known = Study(name, place, place.open(name))  # not opened: it may be damaged
    with known, progress_bar("replaying", _entry_count(place, name)) as progress:
        found = known.verify(progress)
    if as_json:
        print_json(to_plain(found))
    else:
        typer.echo(f"{found}", err=not found.ok)
    if not found.ok:
        raise typer.Exit(1)


def accept(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Accept a restored backup, or a journal whose last entries are lost, and continue from it.

    A process that has seen later entries refuses to continue, because it would issue the same
    play ids again; so does a store whose last entries are missing. Running processes continue
    after this command. Plays after the last entry are unknown to the study: cancel them where
    they are carried out, or learn from them with [b]multiplay study learn-table[/b].

    Examples:

        multiplay study verify lanes && multiplay study accept lanes

    JSON: study, last (the number of the last entry).
    """
    head = Study.accept(name, store=store)
    text = f"{name} continues after entry {head.number}"
    print_answer(as_json, {"study": name, "last": head.number}, text)


def backup(
    name: Name,
    file: Annotated[Path, typer.Argument(help="A new file, such as lanes.db.")],
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Copy a study to a new file, while other programs use it.

    The file is a store: [b]--store FILE[/b] opens it. It is written completely or not at all, also
    from a PostgreSQL database.

    Examples:

        multiplay study backup lanes lanes-2026-11-15.db

        multiplay study show lanes --store lanes-2026-11-15.db

    JSON: file, entries.
    """
    with _copying(name, store_at(store)) as (known, progress):
        entries = known.backup(file, progress=progress)
    print_answer(as_json, {"file": str(file), "entries": entries}, f"{file}: {entries} entries")


def copy(
    name: Name,
    to: Annotated[
        str | None, typer.Argument(help="The other store: a file, or a URL; or the same store.")
    ] = None,
    new_name: Annotated[str | None, typer.Option("--as", help="A new name for the copy.")] = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Copy a study to another store or a new name, bit for bit: from SQLite to PostgreSQL, or back.

    Stop the programs that write to the study before: what they write later is not in the copy. API
    keys are not copied. The copy is complete or has no effect. Without a password in TO,
    PostgreSQL reads PGPASSWORD or the password file.

    Examples:

        multiplay study copy lanes postgresql://ann@db.example/plans --store sqlite:///plans.db

        multiplay study copy lanes --as lanes-trial

    JSON: study, store, entries.
    """
    place = store_at(store)
    other = place if to is None else store_at(to)
    with _copying(name, place) as (known, progress):
        entries = known.copy(other, name=new_name, progress=progress)
    made = new_name or name
    answer = {"study": made, "store": other.url, "entries": entries}
    print_answer(as_json, answer, f"{made} in {other.url}: {entries} entries")


def rename(
    name: Name,
    new: Annotated[str, typer.Argument(help="The new name.")],
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Give a study a new name. Its journal and its API keys stay as they are.

    Programs that use the old name get an error: start them with the new name.

    Examples:

        multiplay study rename lanes "lanes 2026"

    JSON: study (the new name).
    """
    Study.rename(name, new, store=store)
    print_answer(as_json, {"study": new}, f"{name} is now {new}")


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without confirmation.")] = False,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Delete a study and its journal for ever.

    The command asks for confirmation. Without a terminal, in a script for example, it needs
    [b]--yes[/b].

    Examples:

        multiplay study backup lanes lanes.db && multiplay study delete lanes --yes

    JSON: study, deleted.
    """
    place = store_at(store)
    entries = _entry_count(place, name)
    if not yes:
        if not sys.stdin.isatty():
            hint = "Write --yes to delete the study for ever."
            raise InvalidInput("--yes", "a confirmation on a terminal, or --yes", "neither", hint)
        question = f"Delete {name!r} with its {entries} entries for ever?"
        typer.confirm(question, abort=True, err=True)
    Study.delete(name, store=store)
    print_answer(as_json, {"study": name, "deleted": True}, f"{name} is deleted")


@contextmanager
def _copying(name: str, store: Store) -> Iterator[tuple[Study, Callable[[int], None]]]:
    """Open a study that is copied, and yield it with a progress bar."""
    with (
        opened(name, store) as known,
        progress_bar("copying", _entry_count(store, name)) as progress,
    ):
        yield known, progress


def _entry_count(store: Store, name: str) -> int:
    """Return the number of entries of a journal, which may be damaged."""
    with closing(store.open(name)) as journal:
        try:
            return journal.head().number + 1
        except Damaged as error:
            return error.number or 0


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that moves a progress bar to a number; without a terminal, show nothing."""
    if not sys.stderr.isatty():
        yield lambda number: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeRemainingColumn(), console=errors(), transient=True) as progress:
        task, moved = progress.add_task(label, total=total), time.monotonic()

        def move(number: int) -> None:
            nonlocal moved
            if time.monotonic() > moved + PAUSE:
                moved = time.monotonic()
                progress.update(task, completed=number)

        yield move
