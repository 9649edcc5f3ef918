"""Integer programs and models, whose oracle is HiGHS: rounds of FTRL, and the bare solver."""

import time
from statistics import median, quantiles
from typing import Any

import numpy as np

from benchmarks.harness import Section, Target
from multiplay import GenLBINFV, IntegerProgram, Learner, Model
from multiplay.types import FloatArray

ROWS = 3
MOST_RATIO = 1.3  # processor time of a model, in that of scipy.optimize.milp on the same data


def run(quick: bool, d: int = 50, rounds: tuple[int, int] = (100, 200)) -> list[Section]:
    """Measure one trial on integer programs with binding constraints."""
    seeds = range(1 if quick else 3)
    rows = [{"program": seed, **round_of(seed, d, *rounds)} for seed in seeds]
    shows = f"GenLBINFV, one trial, {d} arms, {ROWS} constraints, rounds {rounds[0]} to {rounds[1]}"
    middle = median(row["median, ms"] for row in rows)
    target = Target(f"a round on an integer program of {d} arms", middle, 50, "ms")
    return [Section("Integer programs", f"{shows}.", rows, [target]), models(quick)]


def round_of(seed: int, d: int, first: int, last: int) -> dict[str, float]:
    """Return milliseconds of processor time of ``ask`` and ``tell``: late rounds, and round 1."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 10, (ROWS, d))
    program = IntegerProgram(weights, weights.sum(axis=1) // 2, bounds=(0, 2), sense="max")
    means = rng.uniform(0.2, 0.8, d)
    learner, taken = Learner(program, GenLBINFV(horizon=10_000), seed=0), []
    for _ in range(last):
        started = time.process_time()
        play = learner.ask()
        learner.tell(play.id, rng.binomial(play.action, means).astype(float).tolist())
        taken.append(1000 * (time.process_time() - started))
    late = taken[first - 1 :]
    return {"median, ms": median(late), "p90, ms": quantiles(late, n=10)[-1], "first, ms": taken[0]}


# ---------------------------------------------------------------- models against the bare solver


def models(quick: bool) -> Section:
    """Compare the best actions of models with ``scipy.optimize.milp`` on the same data."""
    made = {
        "shifts 100 x 24": (shifts, 20),
        "transport 20 x 20, depots without cost": (lambda rng: depots(rng, 20, 20, 0.0), 12),
        "transport 8 x 12, depot costs": (lambda rng: depots(rng, 8, 12, 0.3), 16),
        "1000 columns, 30 rows": (many_columns, 8),
        "knapsack 200": (knapsack, 4),
    }
    rows: list[dict[str, Any]] = []
    for name, (make, solves) in made.items():
        rng = np.random.default_rng(1)
        model = make(rng)
        means = rng.beta(4, 4, (max(2, solves // 4) if quick else solves, model.d))
        rows.append({"model": name, "solves": len(means), **compared(model, means)})
    worst = max(row["ratio"] for row in rows)
    target = Target("a model against the bare solver", worst, MOST_RATIO, "times")
    shows = "Processor time of one exact solve, in ms, for the same cost vectors in turns."
    return Section("Models", shows, rows, [target])


def compared(model: Model, means: FloatArray) -> dict[str, float]:
    """Return processor time of ``best`` and of the bare solver in turns; values must agree."""
    from scipy import optimize, sparse

    columns, rows, matrix = model.columns, model.rows, model.matrix
    lower, upper, low, high = (
        np.array([missing if one is None else one for one in side], dtype=float)
        for side, missing in (
            (columns["lower"], -np.inf),
            (columns["upper"], np.inf),
            (rows["lower"], -np.inf),
            (rows["upper"], np.inf),
        )
    )
    places = matrix["row"], matrix["column"]
    A = sparse.csr_array((matrix["value"], places), shape=(len(low), len(lower)))
    integer = np.array(columns["integer"], dtype=int)

    def bare(mean: FloatArray) -> float:
        costs = np.array(columns["cost"], dtype=float)
        costs[model.arms] += mean
        options: Any = {"mip_rel_gap": 0.0}
        found: Any = optimize.milp(
            model.sign * costs,
            integrality=integer,
            bounds=optimize.Bounds(lower, upper),
            constraints=optimize.LinearConstraint(A, low, high),
            options=options,
        )
        return float(model.sign * found.fun)

    taken = {"model": 0.0, "bare": 0.0}
    bare(means[0])  # imports
    for mean in means:
        started = time.process_time()
        action = model.best(mean)
        between = time.process_time()
        value = bare(mean)
        ended = time.process_time()
        taken["model"] += between - started
        taken["bare"] += ended - between
        np.testing.assert_allclose(model.value(action, mean), value, rtol=1e-4)
    own, other = (1000 * taken[name] / len(means) for name in ("model", "bare"))
    return {"model, ms": own, "scipy.optimize.milp, ms": other, "ratio": own / other}


def shifts(rng: np.random.Generator) -> Model:
    """Return people on 100 shifts that cover the demand of 24 hours."""
    starts, lengths = rng.integers(0, 24, 100), rng.integers(4, 10, 100)
    covered = [((s + k) % 24, i) for i, s in enumerate(starts) for k in range(lengths[i])]
    row, column = zip(*covered, strict=True)
    demand = rng.integers(5, 20, 24)
    return Model(
        columns={"lower": [0] * 100, "upper": [20] * 100, "integer": [True] * 100},
        rows={"lower": demand.tolist(), "upper": [None] * 24},
        matrix={"row": list(map(int, row)), "column": list(column), "value": [1] * len(row)},
        arms=list(range(100)),
    )


def depots(rng: np.random.Generator, many: int, customers: int, opening: float) -> Model:
    """Return flows of units from depots, which are open or not, to customers."""
    flows = [(i, j) for i in range(many) for j in range(customers)]
    arms, demand = len(flows), rng.integers(1, 6, customers)
    room = int(np.ceil(2.0 * demand.sum() / many)) + 2
    links = range(customers + many, customers + many + arms)
    nonzeros = [
        *((j, k, 1) for k, (_, j) in enumerate(flows)),
        *((customers + i, k, 1) for k, (i, _) in enumerate(flows)),
        *((customers + i, arms + i, -room) for i in range(many)),
        *((link, k, 1) for k, link in enumerate(links)),
        *((link, arms + flows[k][0], -int(demand[flows[k][1]])) for k, link in enumerate(links)),
    ]
    row, column, value = (list(one) for one in zip(*nonzeros, strict=True))
    rest = many + arms
    return Model(
        columns={
            "lower": [0] * (arms + many),
            "upper": [int(demand[j]) for _, j in flows] + [1] * many,
            "integer": [True] * (arms + many),
            "cost": [0.0] * arms + (opening * rng.uniform(0.5, 1.5, many)).tolist(),
        },
        rows={
            "lower": [*demand.tolist(), *[None] * rest],
            "upper": [*demand.tolist(), *[0] * rest],
        },
        matrix={"row": row, "column": column, "value": value},
        arms=list(range(arms)),
    )


def many_columns(rng: np.random.Generator) -> Model:
    """Return 50 arms among 1000 columns with 30 rows."""
    inside = rng.uniform(size=(30, 1000)) < 0.02
    row, column = np.nonzero(inside)
    value = rng.integers(1, 10, len(row))
    least = np.bincount(row, value, minlength=30) // 20
    return Model(
        columns={
            "lower": [0] * 1000,
            "upper": [5] * 1000,
            "integer": [True] * 1000,
            "cost": [0.0] * 50 + rng.uniform(0.5, 2.0, 950).tolist(),
        },
        rows={"lower": least.tolist(), "upper": [None] * 30},
        matrix={"row": row.tolist(), "column": column.tolist(), "value": value.tolist()},
        arms=list(range(50)),
    )


def knapsack(rng: np.random.Generator) -> Model:
    """Return 200 items of which some fit."""
    weights = rng.integers(10, 100, 200)
    return Model(
        columns={"lower": [0] * 200, "upper": [3] * 200, "integer": [True] * 200},
        rows={"lower": [None], "upper": [int(weights.sum()) // 2]},
        matrix={"row": [0] * 200, "column": list(range(200)), "value": weights.tolist()},
        arms=list(range(200)),
        sense="max",
    )
