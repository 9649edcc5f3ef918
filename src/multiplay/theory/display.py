"""What notebooks show of bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from multiplay._support import html
from multiplay._support.formatting import Table, between, counted, number

if TYPE_CHECKING:
    from multiplay.theory.adainf import Realised
    from multiplay.theory.guarantees import Guarantee
    from multiplay.theory.lower_bound import LowerBound

MOST_ARMS = 20
ROUNDS = (1_000, 100_000, 10_000_000)


def shown_lower_bound(bound: LowerBound) -> str:
    """Return c, what it makes of some numbers of rounds, and the arms that are explored most."""
    curve = zip(ROUNDS, bound.curve(ROUNDS).tolist(), strict=True)
    facts = {
        "regret": f"at least {number(bound.constant)} log T in the long run",
        **{f"T = {T:,}": number(regret) for T, regret in curve},
        "to be ruled out": counted(len(bound.active), "action"),
    }
    d = len(bound.rates)
    most = np.sort(np.argsort(-np.abs(bound.rates), kind="stable")[:MOST_ARMS])
    rows = [[str(i + 1), str(bound.best[i]), number(bound.rates[i])] for i in most]
    more = d - len(rows)
    note = "Rate: plays beyond those of the best action, per log T."
    note += f" And {more} more arms, with smaller rates." if more else ""
    table = Table("", ["arm", "best action", "rate"], rows, note)
    return html.panel("LowerBound", facts, html.shown(table))


def shown_guarantee(promise: Guarantee) -> str:
    """Return what is promised, and whether it is proved here."""
    proved = "yes" if promise.proved else "no: this instance is another one"
    facts = {"regret": f"at most {promise.formula}", "proved": proved, "for": promise.needs}
    return html.panel("Guarantee", facts)


def shown_realised(run: Realised) -> str:
    """Return both sides of the bound: means over the trials, the least and the largest."""
    sides = {
        "regret": run.regret,
        "estimated regret": run.estimated,
        "bound": run.bound,
        "bound: start": run.start,
        "bound: paid": run.paid,
        "bound: shrunk": run.shrunk,
    }
    rows = [
        [name, number(float(each.mean())), between(float(each.min()), float(each.max()))]
        for name, each in sides.items()
    ]
    kept = int((run.estimated <= run.bound).sum())
    facts = {"trials": str(len(run.regret)), "estimated regret within the bound": f"in {kept}"}
    table = Table("", ["", "mean", "least to largest"], rows)
    return html.panel("Realised", facts, html.shown(table))
