"""Pages of the service: processor time of each, with 200 lanes and 1,000 days."""

import asyncio
import tempfile
import time
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import httpx
import numpy as np

import multiplay as mp
from benchmarks.harness import Section, Target
from multiplay.service.app import create_app
from multiplay.service.settings import Settings

DEPOTS, TOWNS = [f"depot {k}" for k in range(10)], [f"town {k}" for k in range(20)]
FIRST, LIMIT = datetime(2024, 1, 1, 6, tzinfo=UTC), 0.2  # s
LANE = f"{DEPOTS[0]}-%3E{TOWNS[0]}"
STUDY = ("", "/lanes", "/promises", "/savings", "/settings", "/import", "/plays/1", "/report")
PERIOD = "first=2024-03-01"
HISTORY = ("", f"?arm={LANE}", f"?{PERIOD}&last=2024-09-30", f"?{PERIOD}&arm={LANE}")
LATER = ("/driven", "/saved")  # parts that are loaded after their pages


def run(quick: bool) -> list[Section]:
    """Ask for each page of a study with plans, and of one with an imported table."""
    days = 50 if quick else 1_000
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/plans.db"
        _store(store, days)
        rows = asyncio.run(_measured(create_app(Settings(store)), 1 if quick else 5))
    of_pages = [row for row in rows if not row["page"].endswith(LATER)]
    slowest = max(of_pages, key=lambda row: row["s"])
    targets = [Target(f"slowest page, {slowest['page']}", slowest["s"], LIMIT, "s")]
    shows = (
        f"Processor time of a page with {len(DEPOTS) * len(TOWNS)} lanes and {days:,} days, the "
        "median; of the first request after the start, also what opens the study."
    )
    return [Section("Pages", shows, rows, targets)]


def _store(store: str, days: int) -> None:
    """Create a study with a plan for each day, and one with as many imported days."""
    rng = np.random.default_rng(1)
    plans = mp.Transport([12] * 10, [5] * 20, names=(DEPOTS, TOWNS), slack=True)
    means = dict(zip(plans.names, rng.uniform(80, 600, plans.d).tolist(), strict=True))

    def bills(lane: str, units: int) -> list[float]:
        found: list[float] = (means[lane] + 20 * rng.normal(size=units)).clip(1).tolist()
        return found

    with mp.Study.create("planned", plans, store=store, loss_range=(0, 1_500), seed=1) as study:
        for start in range(0, days, 50):
            with study.together():
                for day in range(start, min(start + 50, days)):
                    when = FIRST + timedelta(day)
                    play = study.ask(key=f"{when:%Y-%m-%d}", at=when)
                    report = {lane: bills(lane, k) for lane, k in play.plan.items() if k}
                    study.tell(play, report, at=when)
        study.set_versus(mp.InProportion())
        study.ask()
    with mp.Study.create("imported", plans, store=store, seed=1) as study:
        table: dict[str, list[Any]] = {"arm": [], "round": [], "loss": []}
        for day in range(days):
            depots = rng.permutation(np.repeat(DEPOTS, 12))[:100].tolist()
            lanes = [f"{a}->{b}" for a, b in zip(depots, np.repeat(TOWNS, 5), strict=True)]
            table["arm"] += lanes
            table["round"] += [f"{FIRST + timedelta(day):%Y-%m-%d}"] * len(lanes)
            table["loss"] += [bills(lane, 1)[0] for lane in lanes]
        study.learn_table(table)
        study.ask()


async def _measured(app: Any, times: int) -> list[dict[str, Any]]:
    paths = ["/", "/new", "/help"]
    for name in ("planned", "imported"):
        tabs = [*STUDY, *(f"/history{query}" for query in HISTORY), *LATER]
        paths += [f"/studies/{name}{tab}" for tab in tabs]
    rows = []
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=600) as client,
    ):
        for path in paths:
            taken = [await _seconds(client, path) for _ in range(times + 1)]
            rows.append({"page": path, "s": median(taken[1:]), "first, s": taken[0]})
    return rows


async def _seconds(client: httpx.AsyncClient, path: str) -> float:
    started = time.process_time()
    (await client.get(path)).raise_for_status()
    return time.process_time() - started
