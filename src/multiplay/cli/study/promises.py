"""Commands study promise, promises and release: budgets and contracts over a period."""

from typing import Annotated

import typer

from multiplay.cli.screen import print_table
from multiplay.cli.study.app import (
    DEFAULT_STORE,
    AsJson,
    Key,
    Name,
    StoreAt,
    opened,
    print_answer,
    print_json,
    study,
)
from multiplay.cli.study.csv_files import promise_named
from multiplay.reports.study_text import promise_text, promises_table
from multiplay.studies.results import to_plain


@study.command()
def promise(
    name: Name,
    text: Annotated[
        str,
        typer.Argument(
            metavar="'CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv'", help="The promise."
        ),
    ],
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Promise what all plans until a date use at most, or at least, from the next plan on.

    The text has a name, <= or >=, the amount of the whole period, the date until which it counts
    (it may be left out), the number of plans until then, and a CSV file with what a unit of each
    arm uses, with the columns arm and amount. A name counts before a pattern such as Lyon->*, the
    last pattern that fits an arm decides, and * is for all other arms:

        arm,amount
        *,80
        Lyon->*,120

    With [b]soft[/b] at the end, only the price of the promise changes the plans: it may be
    overshot. Otherwise plans leave enough for the days to come, so that it is kept for sure if the
    sets of those days are given by [b]multiplay study ask --ahead[/b].

    Examples:

        multiplay study promise lanes 'CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv'

        multiplay study promise lanes 'carrier B >= 200 plays 22 of carrier.csv'

        multiplay study promise lanes 'hours <= 300 plays 22 of hours.csv soft'

    JSON: name, limit, used, expected_end, low, high, price, holds, left_plays, kind, until, plays,
    hard, external.
    """
    made = promise_named("promise", text)
    with opened(name, store) as known:
        known.promise(made, key=key)
        (row,) = (one for one in known.promise_reports() if one.name == made.name)
        words = known.words
    print_answer(as_json, to_plain(row), promise_text(row, words))


@study.command()
def release(
    name: Name,
    promise: Annotated[str, typer.Argument(metavar="PROMISE", help="The name of the promise.")],
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """End a promise: the plans from now on do not count for it.

    Examples:

        multiplay study release lanes CO2

    JSON: released (the name of the promise).
    """
    with opened(name, store) as known:
        known.release(promise, key=key)
    print_answer(as_json, {"released": promise}, f"{promise}: released")


@study.command()
def promises(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show how every promise stands: used, expected at the end, its price, and whether it holds.

    The price is what a unit of the promise is worth, in the unit of costs. "sure": a list of plans
    for all days to come keeps the promise, whatever is learned. "likely": it will probably be kept;
    the sets of the days to come are not known.

    Examples:

        multiplay study promises lanes

    JSON: a list with name, limit, used, expected_end, low, high, price, holds, left_plays, kind,
    until, plays, hard, external.
    """
    with opened(name, store) as known:
        rows, words = known.promise_reports(), known.words
    if as_json:
        return print_json([*map(to_plain, rows)])
    if not rows:
        typer.echo("no promises", err=True)
    else:
        print_table(promises_table(rows, words))
    return None
