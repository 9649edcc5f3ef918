"""multiplay key create, list, revoke."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from multiplay._support.formatting import Table
from multiplay.cli.app import app
from multiplay.cli.study.app import DEFAULT_STORE, AsJson, StoreAt, print_json
from multiplay.cli.study.screens import show
from multiplay.service.auth import keys
from multiplay.storage.base import KeyRecord

key = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""
    Keys of the service: who may use which study.

    The store keeps digests only: a key is shown once, when it is made. Entries of the journal name
    the key that wrote them by its id.

        multiplay key create --study lanes --can play --name "night job"

        multiplay key list

        multiplay key revoke 4f2a91c07b3e
    """,
)
app.add_typer(key, name="key")


@key.command()
def create(
    can: Annotated[
        str, typer.Option(help="read: look. play: ask and tell too. manage: create and delete too.")
    ],
    study: Annotated[
        str | None, typer.Option(help="The only study that it is for; all of them if not given.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What you call it, for the list.")] = None,
    days: Annotated[
        float | None, typer.Option(help="Days after which it ends; never if not given.")
    ] = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make a key, and show it: this once.

    Example:

        multiplay key create --study lanes --can play

    JSON: id, key, name, study, can, expires.
    """
    made = keys.create(store, can, study=study, name=name, days=days)
    if as_json:
        print_json({"key": made.token, **_plain(made.row)})
    else:
        typer.echo(made.token)
        typer.echo(f"Keep it: it is not shown again. Its id is {made.row.id}.", err=True)


@key.command(name="list")
def list_(store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the keys, without their secrets.

    JSON: a list of id, name, study, can, created, expires.
    """
    rows = keys.list_all(store)
    if as_json:
        print_json([_plain(row) for row in rows])
    elif not rows:
        typer.echo("There is no key yet. Make one: multiplay key create --can play.")
    else:
        columns = ["id", "name", "study", "can", "made", "ends"]
        cells = [
            [row.id, row.name, row.study or "all", row.can, _day(row.created), _day(row.expires)]
            for row in rows
        ]
        show(Table("Keys", columns, cells, labels=len(columns)))


@key.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The id of the key, as the list shows it.")],
    store: StoreAt = DEFAULT_STORE,
) -> None:
    """Make a key invalid, at once and for good.

    Example:

        multiplay key revoke 4f2a91c07b3e
    """
    keys.revoke(store, id)
    typer.echo(f"The key {id} is not valid any more.")


def _plain(row: KeyRecord) -> dict[str, Any]:
    times = {name: _moment(getattr(row, name)) for name in ("created", "expires")}
    return {name: getattr(row, name) for name in ("id", "name", "study", "can")} | times


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _day(at: float | None) -> str:
    moment = _moment(at)
    return "never" if moment is None else f"{moment:%Y-%m-%d}"
