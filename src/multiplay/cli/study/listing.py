"""Command study list: it reads names of the store, and needs no study."""

import typer

from multiplay.cli.study.app import AsJson, StoreAt, print_json
from multiplay.storage import store_at
from multiplay.storage.stores import DEFAULT_STORE


def list_all(store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Print the names of all studies of a store.

    Examples:

        multiplay study list

        multiplay study list --store postgresql://planner@server/plans

    JSON: store, studies (their names).
    """
    names, place = store_at(store).names(), store_at(store).url
    if as_json:
        print_json({"store": place, "studies": names})
    elif names:
        typer.echo("\n".join(names))
    else:
        typer.echo(f"no studies in {place}", err=True)
