"""Commands of the service: serve, key create, key list, key revoke."""

from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from multiplay._support.formatting import Table
from multiplay.cli.app import errors
from multiplay.cli.screen import print_table
from multiplay.cli.study.app import AsJson, StoreAt, print_json
from multiplay.errors import InvalidInput
from multiplay.remote.connection import is_loopback
from multiplay.service.auth import keys
from multiplay.storage.base import KeyRecord
from multiplay.storage.stores import DEFAULT_STORE

# of the extra "service"
MODULES = ("starlette", "pydantic", "uvicorn", "prometheus_client", "jinja2", "httptools")


def serve(
    store: StoreAt = DEFAULT_STORE,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")
    ] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of worker processes.")] = 1,
    https: Annotated[
        bool, typer.Option("--https", help="Users connect by HTTPS, through a reverse proxy.")
    ] = False,
    drain: Annotated[
        float,
        typer.Option(
            min=0,
            max=60,
            help="Seconds to serve after a signal to stop, for a proxy that checks /readyz.",
        ),
    ] = 0.0,
    demonstration: Annotated[
        bool,
        typer.Option("--demonstration", help="Create an example study and a key."),
    ] = False,
    max_arms: Annotated[int, typer.Option(min=1, help="Most arms of a set.")] = 2_000,
    max_units: Annotated[int, typer.Option(min=1, help="Most units of a plan.")] = 100_000,
    max_pending: Annotated[int, typer.Option(min=1, help="Most pending plays of a study.")] = 1_000,
) -> None:
    """Serve studies over HTTP: an API for programs, and pages for browsers.

    Programs in any language ask and tell. The API is described at /docs, and as OpenAPI at
    /openapi.json. The pages are at the address itself.

    Without a key, the service listens on this machine only. To use it from other machines, create
    keys first:

        multiplay key create --can play --study lanes

        multiplay serve --host 0.0.0.0 --workers 2

    Stop it with Ctrl-C: requests that have begun are finished first. Behind a proxy with a second
    service, --drain 3 lets it serve for three more seconds, in which /readyz says 503.
    """
    _check_extra()
    from multiplay.service.auth.keys import has_keys
    from multiplay.service.server.run import serve as run
    from multiplay.service.settings import Settings
    from multiplay.service.studies.demonstration import new_key, prepare
    from multiplay.service.studies.limits import ServiceLimits

    if workers > 1 and store.startswith("memory:"):
        hint = "Use a file, or one worker."
        raise InvalidInput("--store", "a store that workers can share", repr(store), hint)
    notes = prepare(store) if demonstration else {}
    open = not demonstration and not has_keys(store)
    if open and not is_loopback(host):
        raise InvalidInput(
            "--host",
            "a loopback address such as 127.0.0.1, because the store has no key",
            repr(host),
            "Create a key first: multiplay key create --can manage.",
        )
    limits = ServiceLimits(arms=max_arms, units=max_units, pending=max_pending)
    settings = Settings(store, host, port, workers, open, https, drain, limits, notes)

    def announce(address: str) -> None:
        errors().print(f"Listening on {address}")
        if demonstration:  # only now: a running service on this port keeps its key
            typer.echo(f"Open {address} in a browser, and paste this key: {new_key(store)}")

    run(settings, announce=announce)


def _check_extra() -> None:
    """Raise ``InvalidInput`` unless the extra "service" of multiplay is installed."""
    if missing := [module for module in MODULES if find_spec(module) is None]:
        expected, hint = "the extra 'service'", "Run: pip install 'multiplay[service]'."
        raise InvalidInput("multiplay", expected, f"no {', '.join(missing)}", hint)


# ---------------------------------------------------------------- keys

key = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""
    API keys of the service: each may use one study or all of them.

    The store keeps digests only: a key is printed once, when it is created. Entries of the journal
    name the key that wrote them by its id.

        multiplay key create --study lanes --can play --name "night job"

        multiplay key list

        multiplay key revoke 4f2a91c07b3e
    """,
)


@key.command()
def create(
    can: Annotated[
        str, typer.Option(help="read; play: also ask and tell; manage: also create and delete.")
    ],
    study: Annotated[
        str | None, typer.Option(help="The study it may use; all studies if not given.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name for the list of keys.")] = None,
    days: Annotated[
        float | None, typer.Option(help="Days until it expires; never if not given.")
    ] = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it. It cannot be printed again.

    Example:

        multiplay key create --study lanes --can play

    JSON: id, key, name, study, can, expires.
    """
    made = keys.create(store, can, study=study, name=name, days=days)
    if as_json:
        print_json({"key": made.token, **_plain(made.row)})
    else:
        typer.echo(made.token)
        typer.echo(f"Keep this key: it cannot be shown again. Its id is {made.row.id}.", err=True)


@key.command(name="list")
def list_(store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the keys, without their secrets.

    JSON: a list of id, name, study, can, created, expires.
    """
    rows = keys.list_all(store)
    if as_json:
        print_json([_plain(row) for row in rows])
    elif not rows:
        typer.echo("There are no keys. Create one: multiplay key create --can play.")
    else:
        columns = ["id", "name", "study", "can", "created", "expires"]
        cells = [
            [row.id, row.name, row.study or "all", row.can, _day(row.created), _day(row.expires)]
            for row in rows
        ]
        print_table(Table("Keys", columns, cells, labels=len(columns)))


@key.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The id of the key, from multiplay key list.")],
    store: StoreAt = DEFAULT_STORE,
) -> None:
    """Revoke a key, at once and for ever.

    Example:

        multiplay key revoke 4f2a91c07b3e
    """
    keys.revoke(store, id)
    typer.echo(f"The key {id} is revoked.")


def _plain(row: KeyRecord) -> dict[str, Any]:
    times = {name: _moment(getattr(row, name)) for name in ("created", "expires")}
    return {name: getattr(row, name) for name in ("id", "name", "study", "can")} | times


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _day(at: float | None) -> str:
    moment = _moment(at)
    return "never" if moment is None else f"{moment:%Y-%m-%d}"
