"""Commands study ask, best and expect: plans and their expected totals."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.cells import cell_len
from rich.console import Console

from multiplay._support.formatting import UNKNOWN, Table, plural
from multiplay._support.words import Words
from multiplay.actions.transport import UNMET, sides_of
from multiplay.cli.screen import print_table
from multiplay.cli.study import features, options
from multiplay.cli.study.app import AsJson, At, Key, Name, StoreAt, grouped, print_json, time_of
from multiplay.cli.study.open_study import next_step, opened
from multiplay.learner.plays import MOST_ROWS_SHOWN, Why, of_text, truncation_text
from multiplay.reports.study_text import outlook, prices_text
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies import Study
from multiplay.studies.results import to_plain

AtMost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ARM=N", help="Largest number of units of an arm on this day; repeatable."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="ARM", help="An arm that is not used on this day; repeatable."),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option(metavar="ARM=N", help="Exact number of units of an arm on this day; repeatable."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Answer within this time, if necessary with a truncated plan."
    ),
]


class DayOptions(NamedTuple):
    """The options of a day: its set where it differs, its features and its limits."""

    supply: options.Supply = None
    demand: options.Demand = None
    suppliers: options.Suppliers = None
    demanders: options.Demanders = None
    slack: options.Slack = False
    shortage: options.Shortage = None
    capacity: options.Capacity = None
    total: options.Units = None
    file: options.SetFile = None
    feature: features.Feature = None
    feature_values: features.FeatureValues = None
    at_most: AtMost = None
    exclude: Exclude = None
    fixed: Fixed = None

    def arguments(self, known: Study, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of a verb; ``given`` has the values of --feature."""
        sides = self.supply, self.demand, self.suppliers, self.demanders
        usual = *sides, self.slack, self.shortage, self.capacity, self.total
        limits: dict[str, Any] = {
            "actions": options.set_of_round(known.actions, self.file, *usual),
            "exclude": tuple(self.exclude or ()),
        }
        for name, texts in (("at_most", self.at_most), ("fixed", self.fixed)):
            if texts:
                limits[name] = options.parsed_units(f"--{name.replace('_', '-')}", texts)
        limits["features"] = features.day_features(known, self.feature_values, given)
        return limits


USUAL_DAY = DayOptions()  # no options


@grouped
def ask(
    name: Name,
    key: Key = None,
    day: DayOptions = USUAL_DAY,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM=N",
            help="Units of the plan that you would use, if the study has the baseline each-day; "
            "repeatable.",
        ),
    ] = None,
    ahead: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="The sets of the plans after this one, in order, if the study has promises: a "
            "list of sets, or of what differs from the usual set.",
        ),
    ] = None,
    time_limit: TimeLimit = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Cancel the pending plan of this key, and make a new one."),
    ] = False,
    at: At = None,
    why: Annotated[
        bool, typer.Option("--why", help="Also say why this plan, and what learning costs.")
    ] = False,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Ask for the plan of the next day.

    With [b]--key[/b], such as the date, the command may be repeated: the same request with the same
    key gives the same plan. A different request with that key is refused, unless [b]--replace[/b]
    cancels the pending plan and makes a new one. A date names its day in any spelling.

    If the set of this round differs from the usual set, give the difference: [b]--supply[/b],
    [b]--demand[/b], [b]--capacity[/b] or [b]--budget[/b]. Or give the set of this round as a file,
    as for [b]multiplay study create[/b]: [b]--set FILE.toml[/b].

    If the study has features, give those of this round: a value for all arms by
    [b]--feature fuel=1.72[/b], values by arm in a table, [b]--feature-values[/b], in which the arm
    * stands for all others. Features of arms that are kept, by [b]multiplay study set[/b], may be
    left out:

        arm,fuel,rain
        *,1.72,false
        Lyon->south,,true

    If the study has promises, give the sets of the days to come as far as they are known: what
    they need is then certain. [b]--ahead days.json[/b] has a list, such as

        [{"demand": [5, 5]}, {"demand": [4, 6]}, {}]

    Examples:

        multiplay study ask lanes --key 2026-11-15

        multiplay study ask lanes --key 2026-11-16 --demand 5,5

        multiplay study ask lanes --exclude 's1->d1' --at-most 's2->d1=2'

        multiplay study ask lanes --supply Lyon=9,Paris=1 --demand north=6,south=4

        multiplay study ask lanes --key 2026-11-16 --exclude 's1->d1' --replace

        multiplay study ask lanes --feature-values today.csv --feature weekday=Tue

        multiplay study ask lanes --key 2026-11-17 --why

    JSON: id, key, plan (units by arm), action (units in the order of the arms), expected (total,
    low, high), truncated, gap (how far a truncated plan may be from the best, or null); baseline
    (units by arm), explores (units that differ from it) and restricted, for a study with an
    allowance; prices (of a unit of each promise) and held (whether a promise changed the plan
    beyond its price), for a study with promises; change_cost (of units that differ from the last
    plan), for a study with such a cost; repeated (whether the same request was made before with
    this key); with --why also why, as multiplay study why prints it.
    """
    given = features.values_of(day.feature)
    with opened(name, store) as known:
        limits = day.arguments(known, given)
        limits["baseline"] = options.parsed_units("--baseline", baseline) if baseline else None
        limits["ahead"] = None if ahead is None else options.sets_ahead(ahead, known.actions)
        limits |= {"time_limit": time_limit, "replace": replace, "at": time_of("--at", at)}
        play = known.ask(key=key, **limits)
        if as_json:
            said = {"why": to_plain(play.why())} if why else {}
            return print_json(to_plain(play) | said)
        called, words = "" if play.key is None else f", {play.key}", known.words
        print_table(_plan_table(play.plan, f"Plan {play.id}{called}", words))
        if play.repeated:
            typer.echo("This plan was made before, by the same request.")
        units = words.units(int(play.action.sum()))
        typer.echo(f"{units}. {outlook(play.expected, known.actions.sense, words)}")
        if why:
            _print_why(play.why())
        elif play.restricted:
            typer.echo("restricted by the allowance: the plan of the policy could cost too much")
        if play.prices:
            typer.echo(prices_text(play, words))
        if play.truncated:
            typer.echo(f"truncated: {truncation_text(play, words)}")
        typer.echo(next_step(f"tell {shlex.quote(name)} {play.id} costs.csv", known, store))
    return None


@grouped
def best(
    name: Name,
    day: DayOptions = USUAL_DAY,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show the best plan by current estimates, without exploration. Nothing is recorded.

    The options are those of [b]multiplay study ask[/b]. Without features, those of the last play
    are used.

    Examples:

        multiplay study best lanes --demand 5,5

        multiplay study best lanes --feature fuel=1.90

    JSON: plan (units by arm), action (the same in the order of the arms), expected (total, low,
    high).
    """
    given = features.values_of(day.feature)
    with opened(name, store) as known:
        limits = day.arguments(known, given)
        plan = known.best(**limits)
        if as_json:
            return print_json(to_plain(plan))
        print_table(_plan_table(plan.plan, "Best plan", known.words))
        typer.echo(outlook(plan.expected, known.actions.sense, known.words))
    return None


@grouped
def expect(
    name: Name,
    plan: Annotated[list[str], typer.Argument(metavar="ARM=N ...", help="The plan.")],
    day: DayOptions = USUAL_DAY,
    level: Annotated[float, typer.Option(help="The level of the interval.")] = 0.95,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show the expected total of a plan, with an interval.

    The options are those of [b]multiplay study ask[/b]: the plan must be one that they allow.
    Without features, those of the last play are used.

    Examples:

        multiplay study expect lanes 's1->d1=1' 's2->d2=4' 's3->d1=3' 's3->d2=2'

        multiplay study expect lanes 's1->d1=1' 's2->d2=4' 's3->d2=2' --demand 1,6 --supply 1,4,2

        multiplay study expect lanes 's1->d1=1' 's2->d2=4' --feature fuel=1.90

    JSON: expected (total, low, high).
    """
    given = features.values_of(day.feature)
    with opened(name, store) as known:
        limits = day.arguments(known, given)
        units = options.parsed_units("plan", plan)
        found = known.expect(units, level=level, **limits)
        if as_json:
            return print_json({"expected": to_plain(found)})
        typer.echo(outlook(found, known.actions.sense, known.words))
    return None


def explain(
    name: Name,
    play: Annotated[str, typer.Argument(metavar="PLAN", help="The number of a plan, or its key.")],
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show why a plan differs from the best one: by what is known now, or was known at its time.

    A plan that is expected to cost more than the best one is there to learn. The table has the
    units of both plans, what a unit is believed to cost, and the reason of the difference.

    Examples:

        multiplay study why lanes 3

        multiplay study why lanes 2026-11-15

    JSON: text, explores, extra, expected and best (total, low, high), rows (arm, units, best_units,
    mean, low, high, seen, reason), words, sense, wanted (units that the allowance did not permit),
    prices, held, changed (units that differ from the last plan), change_cost, asked (when a plan
    that has ended was asked for: the beliefs are those of this time), untried (what other arms
    teach about those never tried: arms, low, high, worth, share).
    """
    with opened(name, store) as known:
        found = of_text(play, known.why)
    if as_json:
        return print_json(to_plain(found))
    return _print_why(found)


def _print_why(found: Why) -> None:
    print_table(found.as_table(MOST_ROWS_SHOWN))
    typer.echo(f"{found}")


def _plan_table(plan: Mapping[str, int], title: str, words: Words) -> Table:
    """Return a plan as a table: suppliers by customers if that fits, or the arms in it.

    Examples
    --------
    >>> _plan_table({"Lyon->north": 2, "Lyon->south": 0, "unmet->south": 1}, "Today", Words()).rows
    [['Lyon', '2', '-'], ['unmet', '-', '1']]
    >>> _plan_table({"news": 2, "radio": 0}, "Today", Words()).rows
    [['news', '2']]
    """
    unmet = {name: units for name, units in plan.items() if name.startswith(UNMET)}
    lanes = {name: units for name, units in plan.items() if name not in unmet}
    sides = sides_of(list(lanes))
    if sides is not None:
        sources, targets = sides
        rows = [[x, *(str(lanes[f"{x}->{y}"] or UNKNOWN) for y in targets)] for x in sources]
        if unmet:
            rows.append(["unmet", *(str(unmet.get(f"{UNMET}{y}") or UNKNOWN) for y in targets)])
        cells = [["", *targets], *rows]
        widths = [max(map(cell_len, column)) + 3 for column in zip(*cells, strict=True)]
        if sum(widths) < Console().width:
            return Table(title, ["", *targets], rows)
    played = [[name, str(units)] for name, units in plan.items() if units]
    others = len(plan) - len(played)
    note = f"{words.arms(others)} without a {words.unit}" if others else ""
    return Table(title, [words.arm, plural(words.unit)], played, note)
