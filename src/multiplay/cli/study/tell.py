"""multiplay study tell, close, cancel and learn: what plans have cost."""

from typing import Annotated

import typer

from multiplay.cli.study.app import (
    DEFAULT_STORE,
    AsJson,
    Key,
    Name,
    StoreAt,
    opened,
    print_json,
    study,
)
from multiplay.cli.study.reports import losses_by_arm, read_csv
from multiplay.cli.study.texts import plain_data
from multiplay.errors import InvalidInput
from multiplay.learner.plays import Receipt

Id = Annotated[int, typer.Argument(min=0, metavar="ID", help="The number of the play.")]
Arm = Annotated[str, typer.Option(metavar="COLUMN", help="The column with the arm.")]
Loss = Annotated[str, typer.Option(metavar="COLUMN", help="The column with the loss, or reward.")]


@study.command()
def tell(
    name: Name,
    id: Id,
    table: Annotated[
        str | None, typer.Argument(metavar="COSTS.csv", help="A row for each unit; - is a pipe.")
    ] = None,
    losses: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="By arm, a list of units or their total, not a table."),
    ] = None,
    arm: Arm = "arm",
    loss: Loss = "loss",
    part: Annotated[bool, typer.Option("--part", help="More will come.")] = False,
    missing: Annotated[
        str | None, typer.Option(help="ignore: units that are left out never come.")
    ] = None,
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Tell what the units of a play have cost; the study learns from it.

    The table has a row for each unit, with the columns [b]arm[/b] and [b]loss[/b]. An empty
    loss says that this unit did not report:

        arm,loss
        s1->d1,120
        s3->d2,95.5
        s3->d2,

    The same report again changes nothing, and the answer says so. Another
    report of a play that was told is refused: what was learned cannot be taken
    back.

    Examples:

        multiplay study tell lanes 3 costs.csv

        multiplay study tell lanes 3 bills.csv --arm lane --loss euros

        multiplay study tell lanes 3 bills.csv --missing ignore

        multiplay study tell lanes 3 --losses '{"s1->d1": [120, null]}'

        cat costs.csv | multiplay study tell lanes 3 - --part

    JSON: id, seen, missing, clipped (numbers of units), repeated, final.
    """
    if (table is None) == (losses is None):
        got = "none of them" if table is None else "both"
        hint = "Give the name of a CSV file, or --losses and JSON."
        raise InvalidInput("losses", "a table or --losses", got, hint)
    if losses is not None:
        report = plain_data("--losses", losses)
    else:
        assert table is not None
        report = losses_by_arm(read_csv(table, arm), arm, loss)
    with opened(name, store) as known:
        told = known.tell(id, report, final=not part, missing=missing, key=key)
    _answer(told, as_json)


@study.command()
def close(
    name: Name,
    id: Id,
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Learn from what was told of a play in parts: the rest will not come.

    Examples:

        multiplay study close lanes 3

    JSON: as multiplay study tell.
    """
    with opened(name, store) as known:
        told = known.close(id, key=key)
    _answer(told, as_json)


@study.command()
def cancel(
    name: Name,
    id: Id,
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Forget a play that was never driven: nothing is learned from it.

    Examples:

        multiplay study cancel lanes 3

    JSON: id, status.
    """
    with opened(name, store) as known:
        known.cancel(id, key=key)
    if as_json:
        print_json({"id": id, "status": "cancelled"})
    else:
        typer.echo(f"play {id}: cancelled, nothing is learned from it")


@study.command()
def learn(
    name: Name,
    table: Annotated[
        str, typer.Argument(metavar="TABLE.csv", help="A row for each unit; - is a pipe.")
    ],
    arm: Arm = "arm",
    round: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column that says when: a day, a number.")
    ] = "round",
    loss: Loss = "loss",
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Learn from plans that others chose: years of history, in one table.

    It has a row for each unit: its arm, when it was, and what it cost. Give a
    [b]--key[/b], the name of the table say: without one, the same table told twice is
    learned twice.

    Examples:

        multiplay study learn lanes history.csv --key history-2025

        multiplay study learn lanes bills.csv --arm lane --round day --loss euros

    JSON: as multiplay study tell; id is null.
    """
    with opened(name, store) as known:
        told = known.learn_table(read_csv(table, arm), arm, round, loss, key=key)
    _answer(told, as_json)


def _answer(told: Receipt, as_json: bool) -> None:
    if as_json:
        print_json(told._asdict())
    else:
        typer.echo(f"{told}")
