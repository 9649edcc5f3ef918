"""Tables and the conclusion of a result as text, for the terminal and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from multiplay._support.formatting import Table, between, number
from multiplay._support.serialization import brief
from multiplay.results import QUANTITIES, Result, interval
from multiplay.results.comparison import compare
from multiplay.results.measured import EACH_ROUND

if TYPE_CHECKING:
    import pandas as pd

MOST_ARMS = 20
MOST_UNFOLDED = 6  # policies whose pairs are shown in an open table
MOST_NAMED = 3  # policies named in the conclusion


def comparisons_table(result: Result) -> Table:
    """Return the verdict on every pair of policies, where A has the lower mean."""
    rows = []
    for A, B, mean, low, high, p, verdict in _ranked_pairs(result).itertuples(index=False):
        words = {"A lower": f"{A} lower", "B lower": f"{B} lower"}.get(verdict, verdict)
        rows.append([str(A), str(B), words, number(mean), between(low, high), _p_value(p)])
    many = (
        f"The {len(rows)} intervals hold together with 95 % (Bonferroni); the p values are "
        "adjusted by Holm."
        if len(rows) > 1
        else "One pair: no correction for multiple comparisons."
    )
    note = (
        f"Final {result.measure} of A minus that of B, paired by trial: both had the same losses. "
        f"{many} A verdict is given where the interval excludes 0."
    )
    columns = ["A", "B", "verdict", "difference", "95 % interval", "p"]
    many_policies = len(result.policies) > MOST_UNFOLDED
    title = f"Comparisons of all {len(rows)} pairs" if many_policies else "Comparisons"
    return Table(title, columns, rows, note, labels=3, folded=many_policies)


def _ranked_pairs(result: Result) -> pd.DataFrame:
    """Compare every pair of policies, those with the lowest means first."""
    return compare({policy: result.final(policy) for policy in result.ranked})


def quantities_table(result: Result) -> Table:
    """Return the means of the other quantities that were measured."""
    found = result.quantities().loc[result.ranked]
    rows = [[str(policy), *map(number, row)] for policy, *row in found.itertuples()]
    shown = [QUANTITIES[name] for name in found.columns]
    columns = ["policy", *(one.label for one in shown)]
    meanings = "; ".join(f"{one.label}: {one.meaning}" for one in shown)
    note = f"Means over the trials. {meanings}."
    return Table("Other quantities", columns, rows if len(columns) > 1 else [], note)


def suboptimal_plays_table(result: Result) -> Table:
    """Return the suboptimal plays of the arms with most of them."""
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


def configuration_table(result: Result) -> Table:
    """Return the configuration in short form."""
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


def _p_value(p: float) -> str:
    """Return a p value as text."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


# ---------------------------------------------------------------- conclusion


def conclusion(result: Result) -> str:
    """Return which policy ends with the least regret, by how much, and whether that is significant.

    A difference is significant where its paired interval excludes 0; the intervals hold for all
    pairs together.
    """
    best, *others = result.ranked
    mean, low, high = interval(result.final(best))
    trials, measure = result.regret.sizes["trial"], result.label
    if not others:
        amount = f"{number(mean)} (95 % interval: {between(low, high)})"
        return f"{best} ends with a {measure} of {amount}; it is the only policy."
    pairs = _ranked_pairs(result)
    against = pairs[pairs["A"] == best].set_index("B")
    behind = {policy: number(abs(against["difference"][policy])) for policy in others}
    following = f"{behind[others[0]]} less than {others[0]}, the next one"
    if trials == 1:
        return (
            f"{best} ends with the least {measure} ({number(mean)}), {following}, "
            "but one trial shows no significance."
        )
    paired = f"in the paired comparison of {trials} trials"
    undecided = [policy for policy in others if against["verdict"][policy] != "A lower"]
    if not undecided:
        margin = between(-against["ci high"][others[0]], -against["ci low"][others[0]])
        return (
            f"{best} ends with the least {measure} ({number(mean)}), a significant difference: "
            f"it has {following} (95 % interval: {margin}), {paired}."
        )
    chance = "the difference" if len(undecided) == 1 else "the differences"
    amounts = {policy: f"{behind[policy]} more" for policy in undecided}
    same = {policy: "the same" for policy in undecided if behind[policy] == "0"}
    named = _enumeration([f"{policy} ({amount})" for policy, amount in (amounts | same).items()])
    decided = len(others) - len(undecided)
    rest = f"; against {_other_policies(decided)} it is significant" if decided else ""
    return (
        f"No significant difference between {best}, which ends with the least {measure} "
        f"({number(mean)}), and {named}: {paired}, {chance} can be chance{rest}."
    )


def _other_policies(policies: int) -> str:
    """Return a number of other policies as text.

    Examples
    --------
    >>> _other_policies(1), _other_policies(2)
    ('the other policy', 'the other 2 policies')
    """
    return "the other policy" if policies == 1 else f"the other {policies} policies"


def _enumeration(words: list[str]) -> str:
    """Return a list of words as text, with at most three of them.

    Examples
    --------
    >>> _enumeration(["a"]), _enumeration(["a", "b", "c"])
    ('a', 'a, b and c')
    >>> _enumeration(["a", "b", "c", "d", "e"])
    'a, b, c and 2 others'
    """
    if len(words) > MOST_NAMED + 1:
        words = [*words[:MOST_NAMED], f"{len(words) - MOST_NAMED} others"]
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
