"""Commands study add-constraint, constraints and end-constraint."""

from typing import Annotated

import typer

from multiplay.cli.study.app import AsJson, Key, Name, StoreAt, print_answer, print_json
from multiplay.cli.study.csv_files import baseline_named, promise_named
from multiplay.cli.study.open_study import opened
from multiplay.constraints import Baseline, Constraint, SwitchingCost
from multiplay.errors import InvalidInput
from multiplay.reports.study_text import constraint_report_text
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies.results import to_plain


def add_constraint(
    name: Name,
    promise: Annotated[
        str | None,
        typer.Argument(
            metavar="'CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv'", help="A promise."
        ),
    ] = None,
    switching_cost: Annotated[
        float | None,
        typer.Option(metavar="COST", help="The cost of a unit that differs from the last plan."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="What is done today: in-proportion, each-day, or a CSV file with arm and price, "
            "or arm and units.",
        ),
    ] = None,
    allowance: Annotated[
        float, typer.Option(help="The share that plans may cost more than the baseline.")
    ] = 0.03,
    sure: Annotated[
        float, typer.Option(help="The probability with which that is kept on a day.")
    ] = 0.99,
    per: Annotated[
        str | None, typer.Option(metavar="week", help="The allowance starts anew every week.")
    ] = None,
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Add a constraint, for the plans from now on: a promise, a baseline or a switching cost.

    The text of a promise has a name, <= or >=, the amount of the whole period, the date until which
    it counts (it may be left out), the number of plans until then, and a CSV file with what a unit
    of each arm uses, with the columns arm and amount. A name counts before a pattern such as
    Lyon->*, the last pattern that fits an arm decides, and * is for all other arms:

        arm,amount
        *,80
        Lyon->*,120

    With [b]soft[/b] at the end, only the price of the promise changes the plans: it may be
    overshot. Otherwise plans leave enough for the days to come, so that it is kept for sure if the
    sets of those days are given by [b]multiplay study ask --ahead[/b].

    With [b]--baseline[/b], the plans cost at most a little more than what is done today, in total
    and on every day. With [b]--switching-cost[/b], a plan changes where that saves more than it
    costs. There is at most one of each.

    Examples:

        multiplay study add-constraint lanes 'CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv'

        multiplay study add-constraint lanes 'hours <= 300 plays 22 of hours.csv soft'

        multiplay study add-constraint lanes --switching-cost 15

        multiplay study add-constraint lanes --baseline in-proportion --allowance 0.05 --per week

    JSON: as multiplay study constraints prints one of them.
    """
    made = list[Constraint]()
    if promise is not None:
        made.append(promise_named("promise", promise))
    if switching_cost is not None:
        made.append(SwitchingCost(switching_cost))
    if baseline is not None:
        rule = baseline_named("--baseline", baseline)
        made.append(Baseline(rule, allowance, sure=sure, per=per))
    if len(made) != 1:
        got = "several" if made else "none"
        hint = "Write a promise, --switching-cost or --baseline."
        raise InvalidInput("promise", "one constraint", got, hint)
    with opened(name, store) as known:
        known.add_constraint(made[0], key=key)
        (row,) = (one for one in known.constraints() if one.name == made[0].name)
        words = known.words
    print_answer(as_json, to_plain(row), constraint_report_text(row, words))


def end_constraint(
    name: Name,
    constraint: Annotated[
        str, typer.Argument(metavar="CONSTRAINT", help="The name of the constraint.")
    ],
    key: Key = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """End a constraint: the plans from now on do not count for it.

    Examples:

        multiplay study end-constraint lanes CO2

        multiplay study end-constraint lanes 'switching cost'

    JSON: ended (the name of the constraint).
    """
    with opened(name, store) as known:
        known.end_constraint(constraint, key=key)
    print_answer(as_json, {"ended": constraint}, f"{constraint}: ended")


def constraints(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show every constraint: its settings, and what the plans have spent or used of it so far.

    The price of a promise is what a unit of it is worth, in the unit of costs. "sure": a list of
    plans for all days to come keeps the promise, whatever is learned. "likely": it will probably be
    kept; the sets of the days to come are not known.

    Examples:

        multiplay study constraints lanes

    JSON: a list, each with name and constraint (its type and settings), and of a promise used,
    expected_end, low, high, price, holds, left_plays, external; of a baseline spent, left, sure_of,
    days, restricted; of a switching cost changed, spent.
    """
    with opened(name, store) as known:
        rows, words = known.constraints(), known.words
    if as_json:
        return print_json([*map(to_plain, rows)])
    if not rows:
        return typer.echo("no constraints", err=True)
    return typer.echo("\n".join(constraint_report_text(row, words) for row in rows))
