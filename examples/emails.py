"""An e-mail campaign: which of two mails to send to whom, replayed from a randomised trial.

Nine segments: months since the last purchase (1 to 4, 5 to 8, 9 to 12), and bought men's, women's
or both. 50 people of each segment come a day; there are 150 men's and 150 women's mails, and the
rest get none. The reward of a unit is a visit, drawn with replacement from the people of this
segment who got this mail. The mails were sent at random, so that this is unbiased; and nothing
changes from day to day, by construction.

The data: ``multiplay data fetch emails``.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from practice import compare, draw_figure

import multiplay as mp
from multiplay.cli.data import files_of

MAILS = {"Mens E-Mail": 150, "Womens E-Mail": 150, "No E-Mail": 450}
BOUGHT = {(1, 0): "men", (0, 1): "women", (1, 1): "both"}
PEOPLE, DAYS = 50, 120


def rates(path: Path) -> pd.DataFrame:
    """Return the share of visits, with mails down and segments across."""
    rows = pd.read_csv(path)
    months = pd.cut(rows["recency"], [0, 4, 8, 12], labels=["1-4", "5-8", "9-12"]).astype(str)
    bought = [BOUGHT[pair] for pair in zip(rows["mens"], rows["womens"], strict=True)]
    rows["who"] = months + " " + pd.Series(bought, index=rows.index)
    return rows.pivot_table("visit", "segment", "who").loc[list(MAILS)]


def main() -> None:
    """Print the table, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--days", type=int, default=DAYS)
    given = parser.parse_args()
    (path,) = files_of("emails")
    table = rates(path)
    people, names = [PEOPLE] * len(table.columns), (list(table.index), list(table.columns))
    actions = mp.Transport(list(MAILS.values()), people, sense="max", slack=True, names=names)
    means = table.to_numpy().ravel()
    print(f"{given.days} days, {len(people)} segments of {PEOPLE} people: share of visits")
    world = mp.Stochastic(mp.Bernoulli(means))
    by_day = np.tile(means, (given.days, 1))
    curves = compare(actions, world, by_day, 10, given.trials, trial=12)
    what = "Visits per person, less those of the default"
    draw_figure(Path("results/emails.png"), curves, what, "days")


if __name__ == "__main__":
    main()
