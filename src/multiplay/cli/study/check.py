"""Command study check: what a table of costs is like, before there is a study."""

from pathlib import Path
from typing import Annotated

import typer

from multiplay._support.words import Words, given_words
from multiplay.cli.study import options
from multiplay.cli.study.app import AsJson, print_answer
from multiplay.cli.study.csv_files import DecimalMark, Separator, read_table
from multiplay.cli.study.options import name_list
from multiplay.cli.study.tell import ArmColumn, DayFirst, LossColumn, RoundColumn, SkipBad
from multiplay.learner import check_data
from multiplay.studies.results import to_plain


def check(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="A row for each unit; - reads standard input."),
    ],
    arm: ArmColumn = "arm",
    round: RoundColumn = "round",
    loss: LossColumn = "loss",
    rewards: Annotated[
        bool, typer.Option("--rewards", help="Units bring rewards: more is better.")
    ] = False,
    sep: Separator = None,
    decimal: DecimalMark = None,
    day_first: DayFirst = None,
    skip_bad: SkipBad = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw a picture into a file.")
    ] = None,
    currency: options.Currency = None,
    unit: options.UnitWord = None,
    arm_word: options.ArmWord = None,
    round_word: options.RoundWord = None,
    as_json: AsJson = False,
) -> None:
    """Say what a table of costs is like, and which policy fits it. It needs no study.

    The table is that of [b]multiplay study learn-table[/b]: a row for each unit, with its arm, its
    round and its cost. Five sentences say how much there is, how large the noise is, whether costs
    persist from one round to the next, whether they have a week pattern or a trend, and what that
    means.

    Examples:

        multiplay study check history.csv --currency EUR

        multiplay study check bills.xlsx --arm-column depot,customer --round-column date
        --loss-column euros --plot bills.png

    JSON: text; arms, rounds, units, first, last, at_once, noise, apart, persists, rho, low, high,
    share, week, trend, weekdays (weekday, more), slope, slope_low, slope_high, relative, by_gap
    (gap, correlation), course (round, more), by_arm (arm, units, mean, deviation), words, sense,
    policy.
    """
    parts = name_list("--arm-column", arm)
    file = read_table(table, parts, sep=sep, decimal=decimal)
    given = given_words(currency=currency, unit=unit, arm=arm_word, round=round_word)
    words = Words(arm="arm", round="round")._replace(**given)
    sense = "max" if rewards else "min"
    found = check_data(
        file, parts, round, loss, sense=sense, day_first=day_first, skip_bad=skip_bad, words=words
    )
    if plot is not None:
        found.plot(plot)
    print_answer(as_json, to_plain(found) if as_json else None, str(found))
