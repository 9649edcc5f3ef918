"""multiplay study ask, best and expect: plans, and what they should cost."""

from typing import Annotated, Any

import typer

from multiplay.cli.study import sets
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
from multiplay.cli.study.screens import next_step, plan_table, quoted, show
from multiplay.cli.study.texts import units
from multiplay.learner.plays import PendingPlay
from multiplay.reports.study_words import outlook

AtMost = Annotated[
    list[str] | None,
    typer.Option(metavar="ARM=N", help="Units that an arm may have today at most; repeatable."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="ARM", help="An arm that is not to be played today; repeatable."),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(metavar="ARM=N", help="Units that an arm has today exactly; repeatable."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Answer in time, if need be with a truncated play."),
]


def described(play: PendingPlay) -> dict[str, Any]:
    """Return a play for programs."""
    expected = play.expected._asdict()
    return {
        "id": play.id,
        "key": play.key,
        "plan": play.plan,
        "expected": expected,
        "truncated": play.truncated,
    }


def _limits(
    at_most: list[str] | None, exclude: list[str] | None, fixed: list[str] | None
) -> dict[str, Any]:
    limits: dict[str, Any] = {"exclude": tuple(exclude or ())}
    for name, texts in (("at_most", at_most), ("fixed", fixed)):
        if texts:
            limits[name] = units(f"--{name.replace('_', '-')}", texts)
    return limits


@study.command()
def ask(
    name: Name,
    key: Key = None,
    supply: sets.Supply = None,
    demand: sets.Demand = None,
    suppliers: sets.Suppliers = None,
    demanders: sets.Demanders = None,
    capacity: sets.Capacity = None,
    total: sets.Units = None,
    file: sets.SetFile = None,
    at_most: AtMost = None,
    exclude: Exclude = None,
    fixed: Fixed = None,
    time_limit: TimeLimit = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Choose the plan of today.

    With [b]--key[/b], the date say, it is safe to ask again: the same key gives the same plan for
    ever. Where today is another day than usual, say what is different: [b]--supply[/b],
    [b]--demand[/b], [b]--capacity[/b] or [b]--budget[/b]; the rest is as in the usual set. Or give
    the set of today as a file, as for [b]multiplay study create[/b].

    Examples:

        multiplay study ask lanes --key 2026-11-15

        multiplay study ask lanes --key 2026-11-16 --demand 5,5

        multiplay study ask lanes --exclude 's1->d1' --at-most 's2->d1=2'

        multiplay study ask lanes --supply Lyon=9,Paris=1 --demand north=6,south=4

    JSON: id, key, plan (units by arm), expected (total, low, high), truncated.
    """
    with opened(name, store) as known:
        today = sets.today(
            known.actions, file, supply, demand, suppliers, demanders, capacity, total
        )
        limits = _limits(at_most, exclude, fixed)
        play = known.ask(today, key=key, time_limit=time_limit, **limits)
        if as_json:
            return print_json(described(play))
        called = "" if play.key is None else f", {play.key}"
        show(plan_table(play.plan, f"Play {play.id}{called}"))
        number = int(play.action.sum())
        typer.echo(f"{number} units, {outlook(play.expected, known.actions.sense)}")
        if play.truncated:
            typer.echo("hurried: the time limit was over before the policy had its choice")
        typer.echo(next_step(f"tell {quoted(name)} {play.id} costs.csv", known, store))
    return None


@study.command()
def best(
    name: Name,
    supply: sets.Supply = None,
    demand: sets.Demand = None,
    suppliers: sets.Suppliers = None,
    demanders: sets.Demanders = None,
    capacity: sets.Capacity = None,
    total: sets.Units = None,
    file: sets.SetFile = None,
    at_most: AtMost = None,
    exclude: Exclude = None,
    fixed: Fixed = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show the best plan by what is known now, without exploration; it is no play.

    Options are those of [b]multiplay study ask[/b].

    Examples:

        multiplay study best lanes --demand 5,5

    JSON: plan (units by arm), expected (total, low, high).
    """
    with opened(name, store) as known:
        today = sets.today(
            known.actions, file, supply, demand, suppliers, demanders, capacity, total
        )
        plan = known.best(today, **_limits(at_most, exclude, fixed))
        if as_json:
            return print_json({"plan": plan.plan, "expected": plan.expected._asdict()})
        show(plan_table(plan.plan, "Best plan"))
        typer.echo(outlook(plan.expected, known.actions.sense))
    return None


@study.command()
def expect(
    name: Name,
    plan: Annotated[list[str], typer.Argument(metavar="ARM=N ...", help="A plan of yours.")],
    file: sets.SetFile = None,
    level: Annotated[float, typer.Option(help="How sure the interval is.")] = 0.95,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Say what a plan of yours should cost, with an interval.

    Examples:

        multiplay study expect lanes 's1->d1=1' 's2->d2=4' 's3->d1=3' 's3->d2=2'

    JSON: expected (total, low, high).
    """
    with opened(name, store) as known:
        today = None if file is None else sets.read(file).actions
        found = known.expect(units("plan", plan), actions=today, level=level)
        if as_json:
            return print_json({"expected": found._asdict()})
        typer.echo(outlook(found, known.actions.sense))
    return None
