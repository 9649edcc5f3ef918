"""Command study create: a new study from options or a file."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from multiplay._support.serialization import type_name
from multiplay.actions.rules import Rule
from multiplay.cli.study import csv_files, features, options
from multiplay.cli.study.app import (
    DEFAULT_STORE,
    AsJson,
    Name,
    StoreAt,
    next_step,
    print_json,
    study,
)
from multiplay.errors import InvalidInput
from multiplay.studies import Study

EACH_DAY = "each-day"


def _baseline(text: str) -> Rule | str:
    """Return the rule of --baseline."""
    return "each day" if text == EACH_DAY else csv_files.rule_named("--baseline", text)


@study.command()
def create(
    name: Name,
    file: options.SetFile = None,
    supply: options.Supply = None,
    demand: options.Demand = None,
    suppliers: options.Suppliers = None,
    demanders: options.Demanders = None,
    slack: options.Slack = False,
    surplus: Annotated[
        bool,
        typer.Option("--surplus", help="More than the demand may be delivered; includes --slack."),
    ] = False,
    shortage: options.Shortage = None,
    weights: Annotated[
        str | None, typer.Option(metavar="3,4,5", help="Weights of the items of a knapsack.")
    ] = None,
    capacity: options.Capacity = None,
    total: options.Units = None,
    caps: Annotated[
        str | None,
        typer.Option(metavar="4,4,2", help="Largest number of units of each arm of a budget."),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(
            metavar="LANES.csv",
            help="Features of the arms, a row for each. Or A,B,C: the names of items or arms. "
            "With --model: the columns that are arms, such as 'x[*]'; several with blanks between.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="PLAN.mps", help="An optimisation model; needs --arms."),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(help="Costs in the model that are known: all, helpers, or nothing."),
    ] = None,
    declared: features.FeaturesFile = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="The policy, by name. By default one that follows changes: BootstrapCTS, or "
            "FeatureCTS with --features."
        ),
    ] = None,
    losses: Annotated[
        str | None,
        typer.Option(metavar="0,250", help="Lowest and highest cost of a unit."),
    ] = None,
    rewards: Annotated[
        str | None,
        typer.Option(
            metavar="0,10", help="Lowest and highest reward of a unit, instead of losses."
        ),
    ] = None,
    outside: Annotated[
        str | None, typer.Option(help="For a number outside its range: refuse, or clip.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="For units that a final report leaves out: refuse, or ignore."),
    ] = None,
    changing: Annotated[
        bool,
        typer.Option("--changing", help="The set changes: refuse a policy that needs a fixed set."),
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="What is done today: in-proportion, each-day, or a CSV file with arm and price, "
            "or with arm and units.",
        ),
    ] = None,
    allowance: Annotated[
        float | None,
        typer.Option(
            metavar="0.03", help="How much more than the baseline the plans may cost: 0.03 for 3 %."
        ),
    ] = None,
    sure: Annotated[
        float | None,
        typer.Option(metavar="0.99", help="The probability with which the allowance is kept."),
    ] = None,
    per: Annotated[
        str | None, typer.Option(metavar="week", help="Start the allowance anew every week.")
    ] = None,
    change: Annotated[
        float | None,
        typer.Option(
            metavar="15",
            help="What each unit that differs from the last plan costs: 15 for 15 EUR.",
        ),
    ] = None,
    promise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv'",
            help="What the plans until a date may use in all, or have to (>=); repeatable.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Random seed: the same seed and losses give the same plans."),
    ] = None,
    currency: options.Currency = None,
    unit: options.UnitWord = None,
    arm: options.ArmWord = None,
    round: options.RoundWord = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    r"""Create a study: an action set, a policy, and the range of the costs of a unit.

    A transport set needs [b]--supply[/b] and [b]--demand[/b]; a knapsack [b]--weights[/b] and
    [b]--capacity[/b]; a budget of units [b]--budget[/b] and [b]--caps[/b]. Names are written before
    the numbers, or in options of their own. Any other set is read from a file:

        losses = [0, 250]

        \[actions]
        type = "Transport"
        supply = [1, 4, 5]
        demand = [4, 6]

        \[policy]
        type = "BootstrapCTS"
        discount = 0.97

    The file may also set rewards, outside, missing, changing, seed, and the words currency, unit,
    arm and round. Options override the file. Only classes of multiplay are allowed, and no code in
    the file is run.

    Features of arms and days, such as distance and weekday, are declared in a file of their own,
    with a table for each: a Number, a Category or a Flag. Numbers have the centre and scale of the
    first values if none are given. [b]--arms[/b] is a CSV file with features of arms, a row for
    each:

        products = \[["km", "fuel"]]

        \[km]
        type = "Number"
        centre = 300
        scale = 100
        unit = "km"

        \[fuel]
        type = "Number"

        \[weekday]
        type = "Category"
        levels = \["Mon", "Tue", "Wed", "Thu", "Fri"]

        \[rain]
        type = "Flag"

    With [b]--baseline[/b] and [b]--allowance[/b], the plans cost at most a little more than what is
    done today, in total and on every day. With each-day, every ask has the baseline of its day.

    With [b]--promise[/b], all plans until a date together use at most so much, or at least so much,
    of something that a unit of each arm is known to use: see [b]multiplay study promise[/b].

    Examples:

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --losses 0,250

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --losses 0,250
        --baseline in-proportion --allowance 0.03

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --losses 0,250
        --promise 'CO2 <= 40000 until 2026-11-30 plays 22 of co2.csv'

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --currency EUR --unit truck

        multiplay study create lanes --supply Lyon=9,Lille=1 --demand north=6,south=4

        multiplay study create bag --weights tent=3,stove=4,rope=5 --capacity 10

        multiplay study create ads --budget 9 --caps news=6,radio=4 --rewards 0,5

        multiplay study create depots --model plan.mps --arms 'x[*]' --known helpers

        multiplay study create lanes --set lanes.toml --store sqlite:///plans.db

        multiplay study create lanes --set lanes.toml --features features.toml --arms lanes.csv

    JSON: study, store, policy, features (names of the columns), arms (their names).
    """
    table = arms if arms is not None and arms.lower().endswith(".csv") else None
    arms = arms if table is None else None
    if known is not None and model is None:
        hint = "It says which costs of a model are known."
        raise InvalidInput("--known", "--model with it", repr(known), hint)
    of_model = None if model is None else options.model_set(model, arms, known)
    if of_model is not None and rewards is not None and of_model.sense == "min":
        got, hint = "a model that is minimised", "Write OBJSENSE MAX into the file."
        raise InvalidInput("--rewards", "a model that is maximised", got, hint)
    arms = arms if model is None else None
    given_set = options.SetOptions(
        *(supply, demand, suppliers, demanders, slack or None, surplus or None, shortage),
        *(weights, capacity, total, caps, arms),
    )
    actions = given_set.made("min" if rewards is None else "max")
    if sum(one is not None for one in (actions, file, of_model)) != 1:
        got = "no set" if file is None and of_model is None and actions is None else "several sets"
        raise InvalidInput("--set", "one action set", got, options.WHICH)
    actions = actions if of_model is None else of_model
    chosen: dict[str, Any] = {}
    if file is not None:
        read = options.read_set(file)
        actions, chosen = read.actions, {"policy": read.policy, **read.settings}
    given = {
        "policy": None if policy is None else options.policy_named(policy),
        "losses": options.number_pair("--losses", losses),
        "rewards": options.number_pair("--rewards", rewards),
        "outside": outside,
        "missing": missing,
        "changing": changing or None,
        "features": None if declared is None else features.read_features(declared),
        "arms": None if table is None else csv_files.read_csv(table, "arm", "--arms"),
        "baseline": None if baseline is None else _baseline(baseline),
        "allowance": allowance,
        "sure": sure,
        "per": per,
        "change": change,
        "promises": [csv_files.promise_named("--promise", text) for text in promise or ()] or None,
        "seed": seed,
        **dict(zip(options.WORDS, (currency, unit, arm, round), strict=True)),
    }
    chosen |= {key: value for key, value in given.items() if value is not None}
    assert actions is not None
    with Study.create(name, actions, **chosen, store=store) as made:
        if as_json:
            kind = type_name(type(made.policy))
            answer = {"study": name, "store": made.store.url, "policy": kind}
            columns = [] if made.features is None else list(made.features.names)
            print_json(answer | {"features": columns, "arms": list(made.actions.names)})
        else:
            typer.echo(f"{made!r}")
            typer.echo(next_step(f"ask {shlex.quote(name)}", made, store))
