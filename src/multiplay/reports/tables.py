"""A result in tables of words, for the screen and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from multiplay._support.formatting import Table, between, number
from multiplay._support.serialization import brief
from multiplay.results import QUANTITIES, Result
from multiplay.results.comparison import compare
from multiplay.results.measured import EACH_ROUND

if TYPE_CHECKING:
    import pandas as pd

MOST_ARMS = 20
MOST_UNFOLDED = 6  # policies whose pairs are all shown at once


def comparisons(result: Result) -> Table:
    """Return the verdict on every pair of policies, A being the one with the lower mean."""
    rows = []
    for A, B, mean, low, high, p, verdict in ranked_pairs(result).itertuples(index=False):
        words = {"A lower": f"{A} lower", "B lower": f"{B} lower"}.get(verdict, verdict)
        rows.append([str(A), str(B), words, number(mean), between(low, high), probability(p)])
    many = (
        f"The {len(rows)} intervals hold together with 95 % (Bonferroni); the p values are "
        "adjusted by Holm."
        if len(rows) > 1
        else "One pair: nothing is corrected."
    )
    note = (
        f"Final {result.measure} of A minus that of B, paired by trial: both met the same losses. "
        f"{many} A verdict is given where the interval excludes 0."
    )
    columns = ["A", "B", "verdict", "difference", "95 % interval", "p"]
    many_policies = len(result.policies) > MOST_UNFOLDED
    title = f"Comparisons of all {len(rows)} pairs" if many_policies else "Comparisons"
    return Table(title, columns, rows, note, labels=3, folded=many_policies)


def ranked_pairs(result: Result) -> pd.DataFrame:
    """Compare every pair of policies, those with the lowest means first."""
    return compare({policy: result.final(policy) for policy in result.ranked})


def quantities(result: Result) -> Table:
    """Return what else was measured."""
    found = result.quantities().loc[result.ranked]
    rows = [[str(policy), *map(number, row)] for policy, *row in found.itertuples()]
    shown = [QUANTITIES[name] for name in found.columns]
    columns = ["policy", *(one.label for one in shown)]
    meanings = "; ".join(f"{one.label}: {one.meaning}" for one in shown)
    note = f"Means over the trials. {meanings}."
    return Table("Measured besides", columns, rows if len(columns) > 1 else [], note)


def suboptimal_plays(result: Result) -> Table:
    """Return the suboptimal plays of the arms that have the most."""
    title, columns = "Suboptimal plays", ["arm", *result.ranked]
    if "excess" not in result.dataset:
        return Table(title, columns, [])
    excess = result.dataset["excess"].sel(policy=result.ranked)
    mean = excess.mean("trial").transpose("arm", "policy")
    arms, values = mean["arm"].values, mean.values
    most = np.sort(np.argsort(-values.max(axis=1), kind="stable")[:MOST_ARMS])
    rows = [[str(arms[i]), *map(number, values[i])] for i in most]
    left_out = len(arms) - len(most)
    more = f" {left_out} arms with fewer are left out." if left_out else ""
    best = "action of each round" if result.against == EACH_ROUND else "fixed action"
    note = f"Units beyond those of the best {best}, over all rounds, means over trials.{more}"
    return Table(title, columns, rows, note)


def settings(result: Result) -> Table:
    """Return the configuration in brief."""
    plain = result.configuration
    policies = [f"{name}: {brief(value)}" for name, value in plain.get("policies", {}).items()]
    values = {
        "actions": brief(plain.get("actions")),
        "environment": brief(plain.get("environment")),
        "policies": "\n".join(policies),
        **{key: str(plain.get(key)) for key in ("horizon", "trials", "seed")},
        **({"against": plain["against"]} if "against" in plain else {}),
        "versions": ", ".join(f"{name} {found}" for name, found in result.versions.items()),
    }
    return Table("Configuration", ["", ""], [[key, value] for key, value in values.items()])


def probability(p: float) -> str:
    """Return a p value in words."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
