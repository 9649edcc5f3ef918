"""Freight bills: shipments by air or by surface to ten countries, with real bills.

An arm is a country and a mode, a unit a shipment, a round two weeks. Each country gets two
shipments, and there is room for 12 of the 20 by surface. The loss of a shipment is the dollars per
kilogram, at most 40, over 40, of one of the 15 bills of this lane that are nearest in time.

Confounded: air was chosen for urgent or light goods, and a bill by air is not what the same goods
would have cost by truck. Neighbouring rounds share bills. Read it as bills with real noise and
tails, not as a saving. The room for 12 is ours.

The data: ``multiplay data fetch freight``.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from practice import compare, draw_figure

import multiplay as mp
from multiplay.cli.data import files_of

HIGHEST, NEAREST, FEWEST = 40.0, 15, 30
START, ROUNDS, LENGTH = pd.Timestamp("2008-01-07"), 196, pd.Timedelta(days=14)
COUNTRIES, ROOM, EACH = 10, 12, 2


def bills(path: Path) -> pd.DataFrame:
    """Return country, mode, date and loss of the bills with a weight of at least 50 kg."""
    rows = pd.read_csv(path, encoding="utf-8-sig")
    cost, weight = (
        pd.to_numeric(rows[name], errors="coerce")
        for name in ("Freight Cost (USD)", "Weight (Kilograms)")
    )
    mode = np.where(rows["Shipment Mode"] == "Air", "air", "surface")
    found = pd.DataFrame(
        {
            "country": rows["Country"],
            "mode": mode,
            "date": pd.to_datetime(rows["Delivered to Client Date"], format="%d-%b-%y"),
            "loss": np.minimum(cost / weight, HIGHEST) / HIGHEST,
        }
    )
    usable = rows["Shipment Mode"].notna() & cost.notna() & (weight >= 50)
    return found[usable]


def outcomes(found: pd.DataFrame, rounds: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the 15 bills nearest to each round of every lane, and the countries."""
    counts = found.groupby(["country", "mode"]).size().unstack(fill_value=0)
    enough = counts[(counts[["air", "surface"]] >= FEWEST).all(axis=1)]
    countries = sorted(enough.sum(axis=1).nlargest(COUNTRIES).index)
    rows = []
    for (country, mode), lane in found.groupby(["country", "mode"]):
        if country in countries:
            for t in range(rounds):
                apart = (lane["date"] - (START + t * LENGTH)).abs()
                near = lane["loss"].iloc[np.argsort(apart.to_numpy(), kind="stable")[:NEAREST]]
                rows += [(f"{mode}->{country}", t, loss) for loss in near]
    return pd.DataFrame(rows, columns=["arm", "round", "loss"]), countries


def main() -> None:
    """Print the table, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    (path,) = files_of("freight")
    table, countries = outcomes(bills(path), given.rounds)
    room = [ROOM * len(countries) // COUNTRIES, EACH * len(countries)]
    names = (["surface", "air"], countries)
    actions = mp.Transport(room, [EACH] * len(countries), slack=True, names=names)
    means = table.groupby(["round", "arm"])["loss"].mean().unstack()[list(actions.names)]
    print(
        f"{given.rounds} rounds, {len(actions.names)} lanes: dollars per kilogram, over {HIGHEST:g}"
    )
    world = mp.Replay(table, shuffle=False)
    curves = compare(actions, world, means.to_numpy(), 13, given.trials, trial=12)
    what = "Dollars per kilogram over 40, less those of the default"
    draw_figure(Path("results/freight.png"), curves, what, "rounds")


if __name__ == "__main__":
    main()
