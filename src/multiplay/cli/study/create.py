"""multiplay study create."""

from typing import Annotated, Any

import typer

from multiplay._support.serialization import type_name
from multiplay.cli.study import sets
from multiplay.cli.study.app import DEFAULT_STORE, AsJson, Name, StoreAt, print_json, study
from multiplay.cli.study.screens import next_step, quoted
from multiplay.cli.study.texts import pair
from multiplay.errors import InvalidInput
from multiplay.policies import GenCTS
from multiplay.studies import Study


@study.command()
def create(
    name: Name,
    file: sets.SetFile = None,
    supply: sets.Supply = None,
    demand: sets.Demand = None,
    suppliers: sets.Suppliers = None,
    demanders: sets.Demanders = None,
    slack: Annotated[bool, typer.Option("--slack", help="Supply may be left over.")] = False,
    shortage: Annotated[
        float | None, typer.Option(help="What an unmet unit costs, if demand may stay unmet.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="3,4,5", help="What items of a knapsack weigh.")
    ] = None,
    capacity: sets.Capacity = None,
    total: sets.Units = None,
    caps: Annotated[
        str | None, typer.Option(metavar="4,4,2", help="The most units of each arm of a budget.")
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Names of items, or of other arms."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="How to learn, by name; GenCTS if not given.")
    ] = None,
    losses: Annotated[
        str | None,
        typer.Option(metavar="0,250", help="What a unit can cost, from and to."),
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(metavar="0,10", help="What a unit can bring, instead of losses.")
    ] = None,
    outside: Annotated[
        str | None, typer.Option(help="A number outside its range: refuse, or clip.")
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Units that a last report leaves out: refuse, or ignore.")
    ] = None,
    changing: Annotated[
        bool, typer.Option("--changing", help="Refuse a policy that needs the same set every day.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed and losses give the same plans.")
    ] = None,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    r"""Begin a study: what may be played, how to learn, and what a unit can cost.

    For transport, [b]--supply[/b] and [b]--demand[/b]; for a knapsack, [b]--weights[/b] and
    [b]--capacity[/b]; for a number of units to be spread, [b]--budget[/b] and [b]--caps[/b]. Names
    may stand before the numbers, or in options of their own. Any other set
    comes from a file:

        losses = [0, 250]

        \[actions]
        type = "Transport"
        supply = [1, 4, 5]
        demand = [4, 6]

        \[policy]
        type = "GenCTS"
        discount = 0.97

    The file may also say rewards, outside, missing, changing and seed; an
    option wins over the file. Classes are those of multiplay, and nothing in
    the file is run.

    Examples:

        multiplay study create lanes --supply 1,4,5 --demand 4,6 --losses 0,250

        multiplay study create lanes --supply Lyon=9,Lille=1 --demand north=6,south=4

        multiplay study create bag --weights tent=3,stove=4,rope=5 --capacity 10

        multiplay study create ads --budget 9 --caps news=6,radio=4 --rewards 0,5

        multiplay study create lanes --set lanes.toml --store sqlite:///plans.db

    JSON: study, store, policy, arms (their names).
    """
    options = sets.Options(
        *(supply, demand, suppliers, demanders, slack or None, shortage),
        *(weights, capacity, total, caps, arms),
    )
    actions = options.made("min" if rewards is None else "max")
    if (actions is None) == (file is None):
        got = "nothing" if file is None else "a file and options"
        raise InvalidInput("--set", "what may be played, once", got, sets.WHICH)
    chosen: dict[str, Any] = {"policy": GenCTS()}
    if file is not None:
        read = sets.read(file)
        actions, chosen = read.actions, chosen | read.settings
        chosen["policy"] = read.policy or chosen["policy"]
    given = {
        "policy": None if policy is None else sets.policy_called(policy),
        "losses": pair("--losses", losses),
        "rewards": pair("--rewards", rewards),
        "outside": outside,
        "missing": missing,
        "changing": changing or None,
        "seed": seed,
    }
    chosen |= {key: value for key, value in given.items() if value is not None}
    assert actions is not None
    with Study.create(name, actions, **chosen, store=store) as made:
        if as_json:
            kind = type_name(type(made.policy))
            answer = {"study": name, "store": made.store.url, "policy": kind}
            print_json(answer | {"arms": list(made.actions.names)})
        else:
            typer.echo(f"{made!r}")
            typer.echo(next_step(f"ask {quoted(name)}", made, store))
