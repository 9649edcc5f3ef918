"""Commands study show, list, pending, arms, drift and plays."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from multiplay._support.atomic_files import write_text
from multiplay._support.formatting import UNKNOWN, Table, counted, minute, plural
from multiplay._support.words import money_text, noun_of
from multiplay.cli.app import check_suffix
from multiplay.cli.screen import print_table
from multiplay.cli.study import options
from multiplay.cli.study.app import (
    REQUEST,
    AsJson,
    Name,
    Request,
    StoreAt,
    grouped,
    json_text,
    print_answer,
    print_json,
)
from multiplay.cli.study.csv_files import read_csv
from multiplay.cli.study.drawing import draw_study
from multiplay.cli.study.open_study import opened
from multiplay.learner.facts import PendingRow, arms_table, pending_table
from multiplay.learner.plays import EXTERNAL, TOLD
from multiplay.reports.study import LAST, study_facts
from multiplay.reports.study_page import study_report
from multiplay.reports.study_text import alarms_table
from multiplay.storage.stores import DEFAULT_STORE
from multiplay.studies import Study
from multiplay.studies.commands.settings import SetWords
from multiplay.studies.comparison import saved_text
from multiplay.studies.export import PLANS, PLAYS
from multiplay.studies.results import to_plain

CHUNK = 1_000  # plays that are read together
FEW = 20  # plays in the table
NOT_SHOWN = ("status", "asked", "told", "seen", "clipped")  # of plans


def show(
    name: Name,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
    last: Annotated[int, typer.Option(min=0, help="Number of last plans to show.")] = LAST,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page to this file instead.")
    ] = None,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
) -> None:
    """Show a study: estimates of all arms, costs of days, pending plans, alarms, next steps.

    With [b]--html[/b], write the same as an HTML page with figures, in one file that loads nothing
    else.

    Examples:

        multiplay study show lanes

        multiplay study show lanes --last 30 --level 0.9

        multiplay study show lanes --html lanes.html

    JSON: study, store, policy, unit, at; asked, told, pending, cancelled, clipped, incomplete
    (numbers); level; arms; best, with plan and expected, or refused; rounds, with mean, expected,
    change and stretches; constraints, as [b]multiplay study constraints[/b] has them; saved, a
    text, if a rule was kept by [b]multiplay study savings --keep[/b]; drift; plays_pending;
    last_plays.
    """
    if html is not None:
        check_suffix("html", html, (".html", ".htm"))
    with opened(name, store) as found:
        seen = replace(study_facts(found, last, level), saved=saved_text(found))
    said = None if store in (DEFAULT_STORE, os.environ.get("MULTIPLAY_STORE")) else seen.store
    if html is not None:
        write_text(html, study_report(seen, said))
    if as_json:
        print_json(seen.plain())
    elif html is not None:
        typer.echo(f"{html}")
    else:
        draw_study(Console(), seen, said)


LEARNED = "learned"  # a range that grows


@grouped
def set_(
    name: Name,
    currency: options.Currency = None,
    unit: options.UnitWord = None,
    arm: options.ArmWord = None,
    round: options.RoundWord = None,
    arm_features: Annotated[
        str | None,
        typer.Option(
            metavar="LANES.csv",
            help="Features of the arms, a row for each; - reads standard input.",
        ),
    ] = None,
    loss_range: Annotated[
        str | None,
        typer.Option(metavar="0,250", help="Lowest and highest cost of a unit; or: learned."),
    ] = None,
    request: Request = REQUEST,
) -> None:
    """Show or change settings of a study: its words, features of its arms, the range of costs.

    The words are those in which plans and costs are shown; nothing else depends on them. The table
    of [b]--arm-features[/b] has a row for each arm, with the column [b]arm[/b] and one for each
    feature. Values that an arm had before are replaced:

        arm,km
        Lyon->north,450
        Lyon->south,120

    With a new [b]--loss-range[/b], all costs are learned again, and plans stay as they are; with
    [b]learned[/b] the range grows when a cost lies outside it.

    The rule of comparisons is set by [b]multiplay study savings --keep[/b], and constraints by
    [b]multiplay study add-constraint[/b].

    Examples:

        multiplay study set lanes

        multiplay study set lanes --currency EUR --unit-word truck --arm-word lane --round-word day

        multiplay study set lanes --arm-features new-lanes.csv --key lanes-2026-11

        multiplay study set lanes --loss-range 0,500

    JSON: currency, unit, arm, round.
    """
    labels, rows = request.labels(), None
    words = {"currency": currency, "unit": unit, "arm": arm, "round": round}
    given: dict[str, Any] = {key: word for key, word in words.items() if word is not None}
    with opened(name, request.store) as known:
        if given:
            known.do(SetWords(**given), **labels)
        if arm_features is not None:
            rows = read_csv(arm_features, "arm", "--arm-features")
            known.set_arm_features(rows, **labels)
        if loss_range is not None:
            learned = loss_range == LEARNED
            pair = None if learned else options.number_pair("--loss-range", loss_range)
            known.set_range(pair, **labels)
        found = known.words
    text = "\n".join(f"{key}: {word or UNKNOWN}" for key, word in found._asdict().items())
    if rows is not None:
        text += f"\nthe features of {found.arms(len(rows))} are kept"
    print_answer(request.as_json, to_plain(found), text)


def pending(name: Name, store: StoreAt = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show the pending plans: those whose losses were not told yet, oldest first.

    Examples:

        multiplay study pending lanes

    JSON: a list of plays, each as multiplay study ask prints it.
    """
    with opened(name, store) as known:
        plays = known.pending()
        if as_json:
            return print_json([*map(to_plain, plays)])
        rows = [
            PendingRow(p.id, p.key, None, int(p.action.sum()), p.expected.total, p.plan)
            for p in plays
        ]
        words = known.words
    table = pending_table(rows, len(rows), None, words)
    return print_table(table._replace(title=f"Pending plans of {name}"))


def arms(
    name: Name,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show the estimates of all arms: units seen, mean, interval, last seen, share of plans.

    Where losses persist, the mean is that of the next round, and the one of the long run is shown.

    Examples:

        multiplay study arms lanes

        multiplay study arms lanes --level 0.5 --json

    JSON: a list with arm, seen, mean, low, high, average, spread, last_seen, share, long_run.
    """
    with opened(name, store) as known:
        table, words = known.arms(level), known.words
    if as_json:
        return print_json(table.to_dict("records"))
    as_text = arms_table(table, len(table), level, words)
    if "long run" in as_text.columns:  # in its place: a terminal has 80 columns
        as_text = as_text.without("last seen")
    return print_table(as_text._replace(title=f"{as_text.title} of {name}"))


def drift(
    name: Name,
    level: Annotated[
        float, typer.Option(help="The chance that a certain change is ever a false alarm.")
    ] = 0.05,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show the arms whose costs have changed, and whether the study follows the change.

    A change that you know of is told by [b]multiplay study forget[/b]; [b]unforget[/b] undoes one.

    Examples:

        multiplay study drift lanes

    JSON: a list with arm, since (a round), before, after, units, sure, acted, certain, arms.
    """
    with opened(name, store) as known:
        changes = known.drift(level)
        if as_json:
            return print_json(changes.to_dict("records"))
        if changes.empty:
            return typer.echo("no change was found")
        facts = replace(study_facts(known, 0), alarms=changes)
    table = alarms_table(facts, len(changes))
    return print_table(table._replace(title=f"Changes of {name}"))


def plays(
    name: Name,
    last: Annotated[
        int | None,
        typer.Option(min=1, help="Number of plans; 20 if not given, or all with --json."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the plans: a row for each plan and arm.")
    ] = False,
    wide: Annotated[
        bool, typer.Option("--wide", help="Show the plans: a column for each arm.")
    ] = False,
    external: Annotated[
        bool, typer.Option("--external", help="Show external plans and imported days as well.")
    ] = False,
    store: StoreAt = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show the last plans with their expected and actual totals, or with the units of each arm.

    To write all of them to a file, use [b]multiplay study export[/b].

    Examples:

        multiplay study plays lanes --last 5

        multiplay study plays lanes --plan --last 1

        multiplay study plays lanes --json > plays.json

    JSON: a list with id, key, status, asked, told, units, seen, expected, realised, clipped; with
    --wide also the units of each arm. With --plan: id, key, status, asked, told, arm, units, seen,
    loss, expected, realised.
    """
    with opened(name, store) as known:
        if plan or wide:
            return _print_plans(known, wide, last, as_json)
        tables = known.plays(external=external, chunk=CHUNK)
        rows = (row for table in tables for row in table.to_dict("records"))
        if as_json:
            return _print_list(rows if last is None else deque(rows, last))
        in_time = sorted(rows, key=_time) if external else rows
        few = deque(in_time, FEW if last is None else last)
        title = f"Last {len(few)} of {counted(known.asked, 'plan')} of {name}"
        if external:
            title = f"Last {len(few)} plans and external days of {name}"
        words = known.words
    totals = (words.in_currency(head) for head in ("expected", "actual"))
    columns = ["no.", "key", "asked", plural(words.unit), *totals]
    return print_table(Table(title, columns, [_cells(row) for row in few], labels=2))


def _print_plans(known: Study, wide: bool, last: int | None, as_json: bool) -> None:
    """Print the last plans, with the units of each arm."""
    plans = known.plans(wide=wide)
    few = FEW if last is None and not as_json else last
    if few is not None:
        plans = plans[plans["id"].isin(plans["id"].unique()[-few:])]
    if as_json:
        return _print_list(plans.to_dict("records"))
    words, usual = known.words, PLAYS if wide else PLANS
    heads = {"id": "plan", "arm": words.arm, "units": plural(words.unit), "realised": "actual"}
    heads["loss"] = noun_of(known.actions.sense)
    shown = [name for name in plans.columns if name not in NOT_SHOWN or name not in usual]
    columns = [heads.get(name, name) if name in usual else name for name in shown]
    rows = [
        [_plan_cell(name, row[name], row["status"]) for name in shown]
        for row in plans.to_dict("records")
    ]
    table = Table(f"Plans of {known.name}", columns, rows, labels=2 if wide else 3)
    return print_table(table, uncut=True)


def _plan_cell(name: str, value: Any, status: str) -> str:
    """Return a cell as text; the status takes the place of a total that is not known."""
    if name == "realised" and status != TOLD:
        return status
    if isinstance(value, float):
        return money_text(value)
    return UNKNOWN if value is None else str(value)


def _print_list(rows: Iterable[Any]) -> None:
    """Print a list as JSON, one element at a time."""
    typer.echo("[", nl=False)
    for text in _separated(map(json_text, rows)):
        typer.echo(text, nl=False)
    typer.echo("]")


def _separated(texts: Iterable[str]) -> Iterator[str]:
    before = ""
    for text in texts:
        yield before + text
        before = ",\n"


def _time(row: dict[str, Any]) -> tuple[bool, Any]:
    """Return what sorts plays and external days by time; days without a date come first."""
    return row["asked"] == row["asked"], row["asked"]  # NaT differs from itself


def _cells(row: dict[str, Any]) -> list[str]:
    """Return a play as text; the status takes the place of a total that is not known.

    External days have no number, and their status takes the place of a key.
    """
    units, seen, status = row["units"], row["seen"], row["status"]
    told = status in (TOLD, EXTERNAL)
    return [
        UNKNOWN if status == EXTERNAL else str(row["id"]),
        row["key"] or (EXTERNAL if status == EXTERNAL else UNKNOWN),
        minute(row["asked"]),
        f"{seen} of {units}" if told and seen < units else str(units),
        money_text(row["expected"]),
        money_text(row["realised"]) if told else status,
    ]
