"""Command study create: a new study from options or a file of settings."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from multiplay._support.serialization import type_name
from multiplay.cli.study import csv_files, features, options
from multiplay.cli.study.app import AsJson, Name, StoreAt, print_json
from multiplay.cli.study.open_study import next_step
from multiplay.cli.study.settings import SettingsFile, read_settings
from multiplay.errors import InvalidInput
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies import Study


def create(
    name: Name,
    supply: options.Supply = None,
    demand: options.Demand = None,
    weights: Annotated[
        str | None, typer.Option(metavar="3,4,5", help="Weights of the items of a knapsack.")
    ] = None,
    capacity: options.Capacity = None,
    total: options.Units = None,
    caps: Annotated[
        str | None,
        typer.Option(metavar="4,4,2", help="Largest number of units of each arm of a budget."),
    ] = None,
    file: options.SetFile = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="PLAN.mps", help="An optimisation model; needs --columns."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="'x[*]'",
            help="The columns of the model that are arms; several with blanks between.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="The policy, by name. By default one that follows changes: PooledCTS, or "
            "FeatureCTS with --features."
        ),
    ] = None,
    loss_range: Annotated[
        str | None,
        typer.Option(
            metavar="0,250",
            help="Lowest and highest cost of a unit; or reward, if the set has rewards. It is "
            "learned from the costs if it is left out.",
        ),
    ] = None,
    declared: features.FeaturesFile = None,
    arm_features: Annotated[
        str | None,
        typer.Option(metavar="LANES.csv", help="Features of the arms, a row for each."),
    ] = None,
    settings: SettingsFile = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    r"""Create a study: an action set, a policy, and the range of the costs of a unit.

    A transport set needs [b]--supply[/b] and [b]--demand[/b]; a knapsack [b]--weights[/b] and
    [b]--capacity[/b]; a budget of units [b]--budget[/b] and [b]--caps[/b]. Names are written before
    the numbers. Any other set is read from a file, [b]--set[/b]:

        type = "Transport"
        supply = [1, 4, 5]
        demand = [4, 6]
        slack = true

    All other settings are read from a file, [b]--settings[/b]. It may have any of these keys, and
    options override it:

        loss_range = [0, 250]
        seed = 7
        varying_set = true
        reports = { outside = "clip", missing = "ignore" }
        words = { currency = "EUR", unit = "truck", arm = "lane", round = "day" }
        features = "features.toml"
        arm_features = "lanes.csv"
        like = "west/*"
        known = "helpers"

        \[actions]
        type = "Transport"
        supply = [1, 4, 5]
        demand = [4, 6]

        \[policy]
        type = "PooledCTS"
        discount = 0.97

        \[[constraints]]
        type = "SwitchingCost"
        cost = 15

        \[[constraints]]
        type = "Baseline"
        rule = "in-proportion"
        allowance = 0.03

        \[[constraints]]
        type = "AtMost"
        name = "CO2"
        limit = 40000
        of = "co2.csv"
        plays = 22

    Only classes of multiplay are allowed, and no code in a file is run. For [b]constraints[/b] see
    [b]multiplay study add-constraint[/b]: a rule is "in-proportion", "each-day" or a CSV file.
    [b]like[/b] names studies, or patterns of names, from whose arms the new study learns what arms
    usually cost. [b]known[/b] says which costs of a model are known: all, helpers, or nothing.

    Features of arms and days, such as distance and weekday, are declared in a file of their own,
    with a table for each: a Number, a Category or a Flag. Numbers have the centre and scale of the
    first values if none are given. [b]--arm-features[/b] is a CSV file with features of arms, a
    row for each:

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

    Examples:

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --loss-range 0,250

        multiplay study create lanes --supply Lyon=9,Lille=1 --demand north=6,south=4

        multiplay study create bag --weights tent=3,stove=4,rope=5 --capacity 10

        multiplay study create ads --budget 9 --caps news=6,radio=4

        multiplay study create depots --model plan.mps --columns 'x[*]' --settings depots.toml

        multiplay study create lanes --settings lanes.toml --store sqlite:///plans.db

        multiplay study create lanes --set lanes.toml --features features.toml --arm-features
        lanes.csv

    JSON: study, store, policy, features (names of the columns), arms (their names).
    """
    chosen: dict[str, Any] = {} if settings is None else read_settings(settings)
    known = chosen.pop("known", None)
    given_set = options.SetOptions(supply, demand, weights, capacity, total, caps)
    sets = [
        given_set.made(),
        None if file is None else options.read_set(file),
        None if model is None else options.model_set(model, columns, known),
        chosen.pop("actions", None),
    ]
    found = [one for one in sets if one is not None]
    if len(found) != 1:
        got = "several sets" if found else "no set"
        raise InvalidInput("--set", "one action set", got, options.WHICH)
    if known is not None and model is None:
        hint = "It says which costs of a model are known."
        raise InvalidInput("--settings, known", "--model with it", repr(known), hint)
    if columns is not None and model is None:
        raise InvalidInput("--columns", "--model with it", repr(columns), "Add --model PLAN.mps.")
    given = {
        "policy": None if policy is None else options.policy_named(policy),
        "loss_range": options.number_pair("--loss-range", loss_range),
        "features": None if declared is None else features.read_features(declared),
        "arm_features": None
        if arm_features is None
        else csv_files.read_csv(arm_features, "arm", "--arm-features"),
    }
    chosen |= {key: value for key, value in given.items() if value is not None}
    with Study.create(name, found[0], **chosen, store=store) as made:
        if as_json:
            kind = type_name(type(made.policy))
            answer = {"study": name, "store": made.store.url, "policy": kind}
            names = [] if made.features is None else list(made.features.names)
            print_json(answer | {"features": names, "arms": list(made.actions.names)})
        else:
            typer.echo(f"{made!r}")
            typer.echo(next_step(f"ask {shlex.quote(name)}", made, store))
