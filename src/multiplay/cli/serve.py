"""multiplay serve."""

from typing import Annotated

import typer

from multiplay.cli.app import app, errors
from multiplay.cli.extras import needs
from multiplay.cli.study.app import DEFAULT_STORE, StoreAt
from multiplay.errors import InvalidInput
from multiplay.remote.connection import is_loopback


@app.command()
def serve(
    store: StoreAt = DEFAULT_STORE,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes one that is free.")
    ] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")] = 1,
    https: Annotated[
        bool, typer.Option("--https", help="People come by https, through a proxy in front.")
    ] = False,
    demonstration: Annotated[
        bool,
        typer.Option("--demonstration", help="Make a study with a year of trucks, and a key."),
    ] = False,
    max_arms: Annotated[int, typer.Option(min=1, help="The most arms of a set.")] = 2_000,
    max_units: Annotated[int, typer.Option(min=1, help="The most units of a plan.")] = 100_000,
    max_pending: Annotated[
        int, typer.Option(min=1, help="The most plays of a study that wait.")
    ] = 1_000,
) -> None:
    """Serve studies over HTTP, and a page for people.

    Programs in any language ask and tell; people open the address in a browser. The HTTP interface
    is described at /docs, and for programs at /openapi.json.

    Without a key, the service listens on this machine only. To let others in, make keys first:

        multiplay key create --can play --study lanes

        multiplay serve --host 0.0.0.0 --workers 2

    End it with Ctrl-C: what is being done is finished first.
    """
    needs("service", "fastapi", "uvicorn", "prometheus_client", "jinja2", "httptools")
    from multiplay.service.auth.keys import has_keys
    from multiplay.service.server.run import serve as run
    from multiplay.service.settings import Settings
    from multiplay.service.studies.demonstration import new_key, prepare
    from multiplay.service.studies.limits import ServiceLimits

    if workers > 1 and store.startswith("memory:"):
        hint = "Use a file, or one worker."
        raise InvalidInput("--store", "one that workers can share", repr(store), hint)
    if demonstration:
        prepare(store)
    open = not demonstration and not has_keys(store)
    if open and not is_loopback(host):
        raise InvalidInput(
            "--host",
            "a loopback address such as 127.0.0.1, as long as there is no key",
            repr(host),
            "Make a key first: multiplay key create --can manage.",
        )
    limits = ServiceLimits(arms=max_arms, units=max_units, pending=max_pending)
    settings = Settings(store, host, port, workers, open, https, limits)

    def announce(address: str) -> None:
        errors().print(f"Listening on {address}")
        if demonstration:  # not before: a service that runs already keeps its key
            typer.echo(f"Open {address} in a browser, and paste this key: {new_key(store)}")

    run(settings, announce=announce)
