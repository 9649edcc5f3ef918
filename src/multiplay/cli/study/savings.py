"""Command study savings: what the plans saved against a rule, and what learning cost."""

from typing import Annotated, Any

import typer

from multiplay.actions import InProportion, Rule
from multiplay.cli.screen import print_table
from multiplay.cli.study import options
from multiplay.cli.study.app import AsJson, Name, StoreAt, print_json
from multiplay.cli.study.csv_files import read_table, rule_named
from multiplay.cli.study.open_study import opened
from multiplay.errors import InvalidInput
from multiplay.learner.comparison import compared
from multiplay.learner.past_plans import DRIVEN
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies.results import to_plain

Day = Annotated[str | None, typer.Option(metavar="DATE", help="The first day, such as 2026-03-01.")]
LastDay = Annotated[str | None, typer.Option(metavar="DATE", help="The last day that is compared.")]


def savings(
    name: Name,
    in_proportion: Annotated[
        bool,
        typer.Option("--in-proportion", help="Compare with units in proportion to the demand."),
    ] = False,
    versus: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.csv",
            help="Compare with these plans: a table with key, arm and units. Without a key: with "
            "the same plan on every day, or the nearest one. The word driven: with what was driven "
            "on imported days.",
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.csv", help="Compare with the best plans for a price list: arm and price."
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Compare with another policy, in a simulation."),
    ] = None,
    learning: Annotated[
        bool, typer.Option("--learning", help="Compare with the best plans by what is known now.")
    ] = False,
    keep: Annotated[
        bool | None,
        typer.Option(
            "--keep/--no-keep",
            help="Compare with this rule from now on: study show has a line for it. --no-keep "
            "removes the rule that was kept.",
        ),
    ] = None,
    since: Day = None,
    until: LastDay = None,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    method: Annotated[
        str, typer.Option(metavar="model|dr|ips", help="How it is estimated; see below.")
    ] = "model",
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show what the plans saved against a rule on the same days, with an interval.

    Both plans are judged by the same costs: those of all bills so far, also of imported tables. A
    price that falls for both is no saving, and the luck of single bills does not count. At least 10
    plans must have been told. The days of a plan are those of its key, if that begins with a date,
    or when it was asked.

    The rule is given by one of [b]--in-proportion[/b], [b]--versus[/b], [b]--prices[/b] and
    [b]--policy[/b]. With [b]--keep[/b] the study remembers it, and later it may be left out;
    [b]--no-keep[/b] removes it again, and needs no rule. Days on which the rule has no plan are
    left out and counted.

    [b]--method dr[/b] (doubly robust) and [b]ips[/b] (weighted by importance) need a policy that
    logs the mean of its plans, such as GenLBINFV.

    Examples:

        multiplay study savings lanes --in-proportion --keep

        multiplay study savings lanes --versus split.csv --since 2026-03-01 --until 2026-03-31

        multiplay study savings lanes --prices list.csv --json

        multiplay study savings lanes --learning

        multiplay study savings lanes --no-keep

    JSON: text; total, low, high, share; weeks (week, days, saved, low, high); rests_on (arm,
    rule_units, played_units, bills, last_seen); thin, never, stale, left_out, method, agrees,
    trust, entry, paid, days, simulated, learning, rule, level, words, sense. With --no-keep and
    without a rule: versus (null).
    """
    given = {"--in-proportion": in_proportion, "--versus": versus, "--prices": prices}
    given |= {"--policy": policy, "--learning": learning}
    said = [option for option, value in given.items() if value]
    if len(said) > 1:
        got, hint = f"{said[0]} and {said[1]}", f"Leave {said[1]} out."
        raise InvalidInput(said[1], "one rule", got, hint)
    rule = _rule(in_proportion, versus, prices, policy)
    if keep and not isinstance(rule, Rule):
        hint = "Use it with --in-proportion, --prices, or --versus with arm and units only."
        raise InvalidInput("--keep", "a rule", " ".join(said) or "none", hint)
    period: dict[str, Any] = {"since": since, "until": until, "level": level}
    with opened(name, store) as known:
        if keep is not None:
            known.versus = rule if keep else None
        if keep is False and not said:
            return print_json({"versus": None}) if as_json else typer.echo("No rule is kept.")
        found = (
            known.cost_of_learning(**period)
            if learning
            else known.savings(rule, method=method, **period)
        )
    if as_json:
        return print_json(to_plain(found))
    typer.echo(str(found))
    for table in found.tables():
        print_table(table)
    return None


def _rule(in_proportion: bool, versus: str | None, prices: str | None, policy: str | None) -> Any:
    """Return the rule, the policy or the plans of the options; None if there are none."""
    if in_proportion:
        return InProportion()
    if policy is not None:
        return options.policy_named(policy)
    if prices is not None:
        return rule_named("--prices", prices)
    if versus is None:
        return None
    if versus == DRIVEN:
        return DRIVEN
    file = read_table(versus, ["key", "arm"], "--versus")
    return (
        compared(file, functions=False) if "key" in file.frame else rule_named("--versus", versus)
    )
