"""Commands on reports: tell, close, cancel, correct, retract, expire, learn, forget, unforget."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from multiplay._support.dates import moment_of
from multiplay._support.words import Words
from multiplay.cli.study.app import (
    REQUEST,
    AsJson,
    Name,
    Request,
    StoreAt,
    grouped,
    print_answer,
    print_json,
)
from multiplay.cli.study.csv_files import DecimalMark, Separator, read_table, write_skipped
from multiplay.cli.study.open_study import opened
from multiplay.cli.study.options import duration, json_value, name_list
from multiplay.errors import InvalidInput
from multiplay.learner.logged_data import TableCheck, first_rows, read_bills
from multiplay.learner.plays import Receipt, Remaining, of_text
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies import Study
from multiplay.studies.results import to_plain

NamedPlay = Annotated[
    str, typer.Argument(metavar="PLAN", help="The number of the plan, or its key.")
]
CostsTable = Annotated[
    str | None,
    typer.Argument(metavar="COSTS.csv", help="A row for each unit; - reads standard input."),
]
LossesJson = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help="Losses by arm instead of a table: a list for its units, or their total.",
    ),
]
Missing = Annotated[
    str | None, typer.Option(help="ignore: units that are left out will not report.")
]
ArmColumn = Annotated[
    str,
    typer.Option(
        "--arm-column", metavar="COLUMN", help="The column of arms, or several: depot,customer."
    ),
]
LossColumn = Annotated[
    str, typer.Option("--loss-column", metavar="COLUMN", help="The column of losses or rewards.")
]

RoundColumn = Annotated[
    str,
    typer.Option(
        "--round-column", metavar="COLUMN", help="The column of rounds: a date or a label."
    ),
]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first",
        help="How to read 03/04/2026, if no date of the table shows it.",
    ),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out rows with problems.")]


@grouped
def tell(
    name: Name,
    play: NamedPlay,
    table: CostsTable = None,
    losses: LossesJson = None,
    arm: ArmColumn = "arm",
    loss: LossColumn = "loss",
    part: Annotated[
        bool, typer.Option("--part", help="A partial report: more will follow.")
    ] = False,
    missing: Missing = None,
    sep: Separator = None,
    decimal: DecimalMark = None,
    request: Request = REQUEST,
) -> None:
    """Tell the costs of the units of a plan. The study learns from them.

    The table has a row for each unit, with the columns [b]arm[/b] and [b]loss[/b]. An empty
    loss means that the unit did not report:

        arm,loss
        s1->d1,120
        s3->d2,95.5
        s3->d2,

    The same report again has no effect, and the answer says so. A different report of a told play
    is refused: use [b]multiplay study correct[/b].

    Examples:

        multiplay study tell lanes 3 costs.csv

        multiplay study tell lanes 2026-11-15 costs.csv

        multiplay study tell lanes 3 bills.csv --arm-column lane --loss-column euros

        multiplay study tell lanes 3 bills.csv --missing ignore

        multiplay study tell lanes 3 --losses '{"s1->d1": [120, null]}'

        cat costs.csv | multiplay study tell lanes 3 - --part

    JSON: id, seen, missing, clipped (numbers of units), repeated, final.
    """
    given = {"final": not part, "missing": missing} | request.labels()
    with _report(table, losses, arm, loss, sep, decimal) as report:
        _print_receipt(
            name, request, lambda known: of_text(play, partial(known.tell, losses=report, **given))
        )


@grouped
def close(
    name: Name,
    play: NamedPlay,
    request: Request = REQUEST,
) -> None:
    """Close a plan after partial reports: the other units will not report.

    Examples:

        multiplay study close lanes 3

    JSON: as multiplay study tell.
    """
    _print_receipt(
        name, request, lambda known: of_text(play, partial(known.close, **request.labels()))
    )


@grouped
def cancel(
    name: Name,
    play: NamedPlay,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why it was not carried out.")
    ] = None,
    request: Request = REQUEST,
) -> None:
    """Discard a plan that was not carried out: the study learns nothing from it.

    Examples:

        multiplay study cancel lanes 3

        multiplay study cancel lanes 3 --reason 'The truck broke down.'

    JSON: id, status.
    """
    with opened(name, request.store) as known:
        named = _named(play, partial(known.cancel, reason=reason, **request.labels()))
    answer = {"id": named, "status": "cancelled"}
    print_answer(request.as_json, answer, f"plan {play}: cancelled, nothing is learned from it")


@grouped
def note(
    name: Name,
    text: Annotated[str, typer.Argument(help="One short sentence.")],
    request: Request = REQUEST,
) -> None:
    """Keep a remark in the journal of a study; nothing is learned from it.

    Examples:

        multiplay study note lanes 'Strike in Lyon.'

    JSON: text.
    """
    with opened(name, request.store) as known:
        known.note(text, **request.labels())
    print_answer(request.as_json, {"text": text}, "the remark is kept in the journal")


@grouped
def expire(
    name: Name,
    older_than: Annotated[
        str, typer.Option(metavar="TIME", help="The age of a plan, such as 7d, 36h or 90min.")
    ],
    request: Request = REQUEST,
) -> None:
    """End the pending plans that are older than a given age, because no report will come.

    A play with partial reports is closed: the study learns from them. Other plays are cancelled.

    Examples:

        multiplay study expire lanes --older-than 7d

        multiplay study expire lanes --older-than 36h --key 2026-11-16

    JSON: plays (the ids of the plays that ended).
    """
    age = duration("--older-than", older_than)
    with opened(name, request.store) as known:
        ended = known.expire(age, **request.labels())
    ids = ", ".join(map(str, ended))
    text = f"ended: {ids}" if ended else f"no play is older than {older_than}"
    print_answer(request.as_json, {"plays": ended}, text)


@grouped
def correct(
    name: Name,
    play: NamedPlay,
    table: CostsTable = None,
    losses: LossesJson = None,
    arm: ArmColumn = "arm",
    loss: LossColumn = "loss",
    missing: Missing = None,
    sep: Separator = None,
    decimal: DecimalMark = None,
    request: Request = REQUEST,
) -> None:
    """Replace the costs that were told of a plan: a typo, or a bill that was changed.

    The table or [b]--losses[/b] has all costs of the play, as in [b]multiplay study tell[/b]. The
    study is then as if they had been told in the first place; plans that were chosen before stay
    as they are. The journal keeps both reports. The key of an external plan names it here too.

    Examples:

        multiplay study correct lanes 3 costs.csv

        multiplay study correct lanes 2026-11-15 --losses '{"s1->d1": [120, 12]}'

    JSON: as multiplay study tell.
    """
    given = {"missing": missing} | request.labels()
    with _report(table, losses, arm, loss, sep, decimal) as report:
        _print_receipt(
            name,
            request,
            lambda known: of_text(play, partial(known.correct, losses=report, **given)),
        )


@grouped
def retract(
    name: Name,
    play: NamedPlay,
    request: Request = REQUEST,
) -> None:
    """Withdraw the costs that were told of a plan: it is pending again.

    The study is then as if they had not been told. Tell the right ones later, or cancel the play
    if it was not carried out. The key of an external plan or of a table withdraws its costs.

    Examples:

        multiplay study retract lanes 3

        multiplay study retract lanes history-2025

    JSON: id, status.
    """
    with opened(name, request.store) as known:
        named = _named(play, partial(known.retract, **request.labels()))
    answer = {"id": named, "status": "retracted"}
    text = f"{play}: its costs are retracted, nothing is learned from them"
    print_answer(request.as_json, answer, text)


@grouped
def learn_table(
    name: Name,
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="A row for each unit; - reads standard input."),
    ],
    arm: ArmColumn = "arm",
    round: RoundColumn = "round",
    loss: LossColumn = "loss",
    sep: Separator = None,
    decimal: DecimalMark = None,
    day_first: DayFirst = None,
    skip_bad: SkipBad = False,
    skipped: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write the rows that are left out to a file."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Show what the table contains, and learn nothing.")
    ] = False,
    id: Annotated[
        str | None,
        typer.Option(
            "--id-column", metavar="COLUMN", help="The column with the id of a unit: its invoice."
        ),
    ] = None,
    again: Annotated[
        str, typer.Option(help="Rows that were learned before: skip, add or refuse.")
    ] = "skip",
    request: Request = REQUEST,
) -> None:
    """Learn from logged data: plans that were not chosen by the study, in one table.

    The table has a row for each unit: its arm, its round, and its cost. An arm may be in several
    columns. A round that is a date also sets the time of its costs. An arm that the study does not
    have is added. If the study has features, the table has a column for each, by its name; those of
    [b]multiplay study set[/b] may be left out:

        arm,round,loss,fuel,weekday
        Lyon->north,2025-11-03,120,1.68,Mon

    The file may be CSV with any separator, decimal mark and encoding, which are recognised and
    reported, or .xlsx.

    A table with problems is refused, and the first rows with problems are shown. [b]--skip-bad[/b]
    learns from the other rows, and [b]--skipped[/b] writes those that were left out to a file.

    Rows that were learned before are left out, so that a table may have the whole year so far:
    rows with the same arm, round and cost, or with the same id. [b]--again add[/b] learns them
    again, and [b]--again refuse[/b] refuses the table. [b]multiplay study retract lanes
    history.csv[/b] undoes an import by its name, which [b]multiplay study imports[/b] lists.

    Examples:

        multiplay study learn-table lanes history.csv --id-column invoice

        multiplay study learn-table lanes bills.xlsx --arm-column depot,customer
        --round-column date --loss-column euros

        multiplay study learn-table lanes bills.csv --skip-bad --skipped bad-rows.csv

    JSON: as multiplay study tell, and id is null, added (new arms), skipped and known (numbers of
    rows), check (rows, rounds, arms, added, problems, first, last, total, missing, known, changed).
    """
    if skipped is not None and not skip_bad:
        hint = "Add --skip-bad, or leave --skipped out."
        raise InvalidInput("--skipped", "the option --skip-bad", "none", hint)
    parts = name_list("--arm-column", arm)
    file = read_table(table, [*parts, *([] if id is None else [id])], sep=sep, decimal=decimal)
    columns: dict[str, Any] = {"day_first": day_first, "id": id}
    with opened(name, request.store) as known:
        found, words = known.check_table(file, parts, round, loss, **columns), known.words
        if check:
            return _shown_check(found, words, None, request.as_json)
        rest = {"skip_bad": skip_bad, "again": again, **columns} | request.labels()
        told = known.learn_table(file, parts, round, loss, **rest)
    if skipped is not None:
        write_skipped(skipped, file, found.problems)
    return _shown_check(found, words, told, request.as_json)


def _shown_check(found: TableCheck, words: Words, told: Receipt | None, as_json: bool) -> None:
    """Print what a table contains, and the receipt if it was learned."""
    if as_json:
        receipt = {} if told is None else to_plain(told)
        return print_json({**receipt, "check": to_plain(found)})
    typer.echo(found.text(words))
    if told is not None:
        typer.echo(told._replace(added=()).in_words(words))  # they are in the text
    return None


def imports(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the tables that were learned: what was new in each, and whether it counts.

    [b]multiplay study retract lanes march.csv[/b] undoes one by its name.

    Examples:

        multiplay study imports lanes

    JSON: a list, each with name, at, units, rounds, known, skipped, total, first, last, retracted.
    """
    with opened(name, store) as known:
        rows, words = known.imports(), known.words
    if as_json:
        return print_json([*map(to_plain, rows)])
    return typer.echo("\n".join(row.text(words) for row in rows) or "no imports", err=not rows)


ArmOption = Annotated[
    str | None, typer.Option(metavar="ARM", help="The name of an arm; all arms if not given.")
]


@grouped
def forget(
    name: Name,
    before: Annotated[
        str, typer.Option(metavar="ROUND", help="The number of a round, or a date or time.")
    ],
    arm: ArmOption = None,
    request: Request = REQUEST,
) -> None:
    """Forget the costs of an arm that were told before a round, because prices changed.

    Round 1 is the first play that was told. A date means the first play told on that day or later.
    The study finds changes by itself; this is for a change that you know of.

    Examples:

        multiplay study forget lanes --arm 's1->d1' --before 12

        multiplay study forget lanes --before 2026-06-12

    JSON: since (the first round that counts), units.
    """
    _print_receipt(
        name,
        request,
        lambda known: known.forget(arm, before=_round("--before", before), **request.labels()),
    )


@grouped
def unforget(
    name: Name,
    arm: ArmOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="ROUND", help="The number of a round, or a date or time; 0 for all costs."
        ),
    ] = None,
    request: Request = REQUEST,
) -> None:
    """Let all costs of an arm since a round count again: undo that they were forgotten.

    Without [b]--since[/b], the costs count that counted before the arm forgot some for the last
    time: by [b]forget[/b], or because the study found a change.

    Examples:

        multiplay study unforget lanes --arm 's1->d1'

        multiplay study unforget lanes --arm 's1->d1' --since 0

    JSON: as multiplay study forget.
    """

    def act(known: Study) -> Remaining:
        given = None if since is None else _round("--since", since)
        return known.unforget(arm, since=given, **request.labels())

    _print_receipt(name, request, act)


def _round(option: str, text: str) -> int | datetime:
    """Return the number of a round, or a time; a date is its first moment, here."""
    with suppress(ValueError):
        return int(text)
    found = moment_of(text)
    if found is not None:
        return found
    hint = "Write 12, 2026-06-12 or 2026-06-12T08:00."
    raise InvalidInput(option, "the number of a round, or a date", repr(text), hint)


def _named(text: str, act: Callable[[int | str], None]) -> int | str:
    """Call a verb with a play; return its id or key."""

    def call(play: int | str) -> int | str:
        act(play)
        return play

    return of_text(text, call)


def _print_receipt(
    name: str, request: Request, act: Callable[[Study], Receipt | Remaining]
) -> None:
    """Open a study, call a verb, and print its receipt."""
    with opened(name, request.store) as known:
        told = act(known)
        words = known.words
    print_answer(request.as_json, to_plain(told), told.in_words(words))


# ---------------------------------------------------------------- tables


@contextmanager
def _report(
    table: str | None,
    losses: str | None,
    arm: str,
    loss: str,
    sep: str | None,
    decimal: str | None,
) -> Iterator[Any]:
    """Yield the losses of a table or of ``--losses``; errors name the row of an unknown arm."""
    if (table is None) == (losses is None):
        got = "neither" if table is None else "both"
        hint = "Give the name of a CSV file, or --losses and JSON."
        raise InvalidInput("losses", "a table or --losses", got, hint)
    if losses is not None:
        yield json_value("--losses", losses)
        return
    assert table is not None
    parts = name_list("--arm-column", arm)
    file = read_table(table, parts, sep=sep, decimal=decimal)
    bills = read_bills(file, parts, loss)
    try:
        yield bills
    except InvalidInput as error:
        unknown = [name for name in bills if error.got == repr(name)]
        if error.argument != "losses" or not unknown:
            raise
        where = f"losses, row {first_rows(file, parts)[unknown[0]]}"
        raise InvalidInput(where, error.expected, error.got, error.hint) from error
