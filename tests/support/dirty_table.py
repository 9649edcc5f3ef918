"""A year of costs as a planner exports it: a German CSV file with mistakes, and the best plan."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, milp

SUPPLY = {"Hamburg": 6, "Bremen": 5, "Köln": 7, "Leipzig": 6}
DEMAND = {"Edeka": 4, "Rewe": 3, "Lidl": 5, "Kaufland": 2, "Metro Süd": 4}
OPENS = {"Leipzig": date(2025, 7, 1)}
FIRST, LAST = date(2025, 1, 2), date(2025, 12, 30)
JUMP, RISE = date(2025, 9, 1), 1.6  # of the lane that is best before
NOISE = 12.0  # euros
HEADER = "Datum;Dieselpreis €/l;Entfernung km;Fahrer;Lager;Empfänger;Frachtkosten"
MISSPELT, MISSPELT_AT = "Hamurg", 1_000  # the source of a row, and the place of the row
TWICE, CREDITED = 700, 1_500  # places of rows
Costs = dict[tuple[str, str], float]
Plan = dict[tuple[str, str], int]


class Bill(NamedTuple):
    """A truck: its day, its lane, and its cost."""

    day: date
    source: str
    target: str
    cost: float


class DirtyTable:
    """The bills of a year, the true costs, and the file with mistakes.

    Parameters
    ----------
    seed
        The seed of everything that is random.
    """

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        lanes = [(source, target) for source in SUPPLY for target in DEMAND]
        self.km = {lane: int(self._draw.integers(90, 1_300)) for lane in lanes}
        self.cost = {
            lane: 60 + 0.9 * km + self._draw.uniform(-40, 40) for lane, km in self.km.items()
        }
        self.before = best_plan(self.cost)
        self.jumped = max(self.before, key=self._saved_by_following)
        self.truth = self._after(self.jumped)
        self.best = best_plan(self.truth)
        self.bills = [*self._history()]

    def _after(self, lane: tuple[str, str]) -> Costs:
        """Return the costs after the jump of a lane."""
        return self.cost | {lane: RISE * self.cost[lane]}

    def _saved_by_following(self, lane: tuple[str, str]) -> float:
        """Return what a plan saves that follows the jump of a lane."""
        cost = self._after(lane)
        return cost_of(self.before, cost) - cost_of(best_plan(cost), cost)

    def _history(self) -> Iterator[Bill]:
        """Yield what was driven: whatever depot has a truck left, for each customer in turn."""
        day = FIRST
        while day <= LAST:
            if day.weekday() < 5:
                open_now = [name for name in SUPPLY if OPENS.get(name, FIRST) <= day]
                left = {name: SUPPLY[name] for name in open_now}
                wanted = [name for name, units in DEMAND.items() for _ in range(units)]
                for target in self._draw.permutation(wanted).tolist():
                    chances = np.array([left[name] for name in open_now], dtype=float)
                    source = str(self._draw.choice(open_now, p=chances / chances.sum()))
                    left[source] -= 1
                    mean = self.cost[source, target]
                    mean *= RISE if (source, target) == self.jumped and day >= JUMP else 1.0
                    yield Bill(day, source, target, round(mean + NOISE * self._draw.normal(), 2))
            day += timedelta(days=1)

    @property
    def twice(self) -> str:
        """The end of the row that is in the file twice."""
        bill = self.bills[TWICE]
        return f"{bill.source} · {bill.target} · {german(bill.cost)} €"

    @property
    def text(self) -> str:
        """The file: German numbers and dates, and five rows that are wrong."""
        rows, month, total = [HEADER], FIRST.month, 0.0
        for place, bill in enumerate(self.bills):
            if bill.day.month != month:
                rows.append(f"Summe {month:02};;;;;;{german(total)} €")
                month, total = bill.day.month, 0.0
            total += bill.cost
            rows.append(self._row(bill, MISSPELT if place == MISSPELT_AT else bill.source))
            if place == TWICE:
                rows.append(rows[-1])  # twice
            if place == CREDITED:
                rows.append(self._row(bill._replace(cost=-95.0), bill.source))  # a credit note
        return "\r\n".join(rows) + "\r\n"

    def _row(self, bill: Bill, source: str) -> str:
        fuel = 1.55 + 0.1 * np.sin(bill.day.toordinal() / 40)
        km = self.km[bill.source, bill.target]
        driver = ("Meyer", "Schulz", "Yilmaz")[bill.day.toordinal() % 3]
        cells = (f"{bill.day:%d.%m.%Y}", f"{fuel:.2f}".replace(".", ","), f"{km}", driver)
        return ";".join((*cells, source, bill.target, f"{german(bill.cost)} €"))


def german(amount: float) -> str:
    """Return an amount as 1.234,50."""
    return f"{amount:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def cost_of(plan: Plan, cost: Costs) -> float:
    """Return what a plan costs."""
    return sum(units * cost[lane] for lane, units in plan.items())


def best_plan(cost: Costs) -> Plan:
    """Return the cheapest plan of a day, by HiGHS."""
    lanes = [*cost]
    of_source = np.array([[lane[0] == name for lane in lanes] for name in SUPPLY], dtype=float)
    of_target = np.array([[lane[1] == name for lane in lanes] for name in DEMAND], dtype=float)
    want = [*DEMAND.values()]
    limits = [
        LinearConstraint(of_source, -np.inf, [*SUPPLY.values()]),
        LinearConstraint(of_target, want, want),
    ]
    found = milp([*cost.values()], integrality=np.ones(len(lanes), dtype=int), constraints=limits)
    assert found.x is not None
    return {lane: round(units) for lane, units in zip(lanes, found.x, strict=True) if units > 0.5}
