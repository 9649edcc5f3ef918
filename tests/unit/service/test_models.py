"""Models over HTTP and on the pages: created, used, previewed, and refused with a clear error."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from html import unescape
from typing import Any

import numpy as np
import pytest
from asgi import Client, client_of
from effort import TIME_LIMIT
from facilities import facility, listed
from mps_files import HANGS, RENT, ROOM, SITES, STOCK, TOWNS, depots
from page_client import Place

import multiplay as mp
from multiplay.actions.milp import Answer, MixedProgram, Status
from multiplay.service.app import create_app
from multiplay.service.auth.authenticator import ANONYMOUS
from multiplay.service.errors import Overloaded, TookTooLong
from multiplay.service.settings import Settings
from multiplay.service.studies import solver
from multiplay.service.studies.limits import ServiceLimits
from multiplay.service.studies.manager import StudyManager
from multiplay.service.studies.solver import SolverProcesses
from multiplay.studies import wire
from multiplay.types import FloatArray

STORE = "memory://models"
MANY_COLUMNS = "ROWS\n N c\nCOLUMNS\n" + "".join(f" x{k} c 1\n" for k in range(1_001)) + "ENDATA\n"
OPENING = [0.6, 0.5, 1.2]
NOW = 10_000.0  # of the tests: no limit is reached


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with client_of(create_app(Settings(STORE, limits=ServiceLimits(seconds=NOW)))) as found:
        yield found


def sent(**changes: Any) -> dict[str, Any]:
    """Return a model as a client sends it."""
    plain: dict[str, Any] = wire.request_set(facility(OPENING))
    return plain | changes


# ---------------------------------------------------------------- verbs


@pytest.mark.slow
def test_all_verbs_on_a_model(client: Client) -> None:
    """Plans and expected costs are those of the list of all actions."""
    actions, opened = listed(OPENING)
    base = "/v1/studies/depots"

    def post(path: str, **body: Any) -> Any:
        answer = client.post(f"{base}/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    made = client.post(
        "/v1/studies", json={"name": "depots", "actions": sent(), "loss_range": [0, 2]}
    )
    assert made.status_code == 201
    assert made.json()["actions"]["n"] == [4, 4, 4]
    best = post("best")
    values = actions @ np.ones(3) + opened  # a unit is expected to cost 1
    assert best["expected"]["total"] == pytest.approx(values.min())
    fixed = post("best", fixed={"depot 2": 2}, at_most={"depot 1": 1})
    kept = (actions[:, 1] == 2) & (actions[:, 0] <= 1)
    assert fixed["expected"]["total"] == pytest.approx(values[kept].min())
    play = post("ask", key="Monday", exclude=["depot 1", "depot 2"], time_limit=NOW)
    assert play["plan"] == {"depot 1": 0, "depot 2": 0, "depot 3": 4}
    assert post("plays/Monday/tell", losses={"depot 3": [1, 1, 1, 1]})["seen"] == 4
    shown = client.get(f"{base}/plays/1").json()
    assert shown["realised"] == pytest.approx(4 + OPENING[2])  # known costs are not told
    assert post("expect", plan={"depot 1": 4})["total"] > OPENING[0]
    assert post("learn", plan={"depot 1": 4}, losses={"depot 1": [0.5] * 4})["seen"] == 4
    asked = post("ask")
    assert client.get(f"{base}/plays/{asked['id']}/why").json()["best"]["total"] > 0
    for path, body, argument in (
        ("ask", {"fixed": {"depot 1": 3, "depot 2": 3}}, "fixed"),
        ("expect", {"plan": {"depot 1": 3}}, "plan"),
        ("learn", {"plan": {"depot 1": 1}, "losses": {"depot 1": [1]}}, "plan"),
    ):
        refused = client.post(f"{base}/{path}", json=body)
        assert (refused.status_code, refused.json()["argument"]) == (422, argument)
    assert post("verify")["ok"]


ONE = {"lower": [0, 0], "upper": [3, 1], "integer": [True, True], "cost": [0.0, 0.5]}
ROW = {"lower": [1], "upper": [3]}
NONE_BELOW, NONE_ABOVE = {"lower": [None], "upper": [3]}, {"lower": [1], "upper": [None]}
PAIR = {"row": [0, 0], "column": [0, 1], "value": [1, 1]}
BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "lists of different length": ("columns.upper", {"columns": ONE | {"upper": [3]}}),
    "no list": ("columns.lower", {"columns": ONE | {"lower": 0}}),
    "an unknown list": ("columns.names", {"columns": ONE | {"names": ["a", "b"]}}),
    "a place outside": ("matrix", {"matrix": PAIR | {"column": [0, 2]}}),
    "a nonzero twice": ("matrix", {"matrix": PAIR | {"column": [0, 0]}}),
    "text": ("matrix.value", {"matrix": PAIR | {"value": [1, "x"]}}),
    "no cost": ("columns.cost", {"columns": ONE | {"cost": [None, 1]}}),
    "a text as a bound": ("columns.lower", {"columns": ONE | {"lower": ["0", 0]}}),
    "a bound beyond 1e15": ("columns.upper", {"columns": ONE | {"upper": [1e16, 1]}}),
    "no arm": ("arms", {"arms": []}),
    "an arm twice": ("arms", {"arms": [0, 0]}),
    "a continuous arm": ("arms", {"columns": ONE | {"integer": [False, True]}}),
    "a negative arm": ("arms", {"columns": ONE | {"lower": [-2, 0]}, "rows": NONE_BELOW}),
    "infeasible": ("model", {"rows": {"lower": [5], "upper": [5]}}),
    "unbounded": ("model", {"columns": ONE | {"upper": [None, 1]}, "rows": NONE_ABOVE}),
    "rounding": (
        "model",
        {
            "columns": ONE | {"upper": [10, 10]},
            "rows": {"lower": [None], "upper": [5e-8]},
            "matrix": PAIR | {"value": [1e-8, 1e-8]},
        },
    ),
    "lower above upper": ("columns", {"columns": ONE | {"lower": [4, 0]}}),
    "n": ("n", {"n": [3]}),
    "the text of a file": ("mps", {"mps": depots()}),
}


@pytest.mark.slow
def test_bad_models_are_refused_and_nothing_is_stored(client: Client) -> None:
    good = {"type": "Model", "columns": ONE, "rows": ROW, "matrix": PAIR, "arms": [0]}
    for case, (argument, changes) in BAD.items():
        answer = client.post("/v1/studies", json={"name": "bad", "actions": good | changes})
        found = answer.json()
        assert (answer.status_code, found["argument"]) == (422, f"actions.{argument}"), case
        assert found["expected"], case
        assert found["hint"], case
    assert client.get("/v1/studies/bad").status_code == 404
    answer = client.post("/v1/studies", json={"name": "good", "actions": good})
    assert answer.status_code == 201


# ---------------------------------------------------------------- processes that solve


class Hanging(MixedProgram):
    """A program on which HiGHS hangs."""

    def solve_here(self, costs: FloatArray, limit: float, gap: float) -> Answer:
        """Wait for ever."""
        threading.Event().wait()
        raise AssertionError


@pytest.mark.slow
def test_a_solve_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "PATIENCE", 0.0)
    program = facility(OPENING)._program
    costs, here = np.arange(6.0), program.solve(np.arange(6.0))
    hanging, solvers = Hanging(*program), SolverProcesses()
    with solvers.within(NOW, changes=False):
        answer = hanging.solve(costs, limit=0.01)
        assert (answer.status, answer.x) == (Status.OUT_OF_TIME, None)
    for changes, error in ((True, TookTooLong), (False, mp.InvalidInput)):
        with solvers.within(0.01, changes), pytest.raises(error):
            hanging.solve(costs)
    with solvers.within(NOW, changes=False):  # in a new process, with the same answer
        there = program.solve(costs)
        assert there.x is not None
        assert np.array_equal(there.x, here.x)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="shape"):
            program.solve(np.arange(5.0))
        assert program.solve(costs).status is Status.OPTIMAL
    solvers.close()


def test_hard_models_do_not_delay_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads of requests that solve wait; those beyond them are refused, others answered."""
    released, hard, most = threading.Event(), 2 * solver.MOST_SOLVING, solver.MOST_SOLVING

    class Waiting:
        """A process that solves programs when it is told to."""

        def solve(self, program: MixedProgram, *question: Any) -> Answer:
            """Wait, and solve a program."""
            released.wait(TIME_LIMIT)
            return program.solve_here(*question)

        def end(self) -> None:
            """Do nothing."""

    async def act(manager: StudyManager) -> tuple[list[str], list[Any]]:
        models = [asyncio.ensure_future(manager.build_actions(sent())) for _ in range(hard)]
        try:
            names = await asyncio.wait_for(manager.names(ANONYMOUS), TIME_LIMIT)
            async with asyncio.timeout(TIME_LIMIT):
                while sum(one.done() for one in models) < hard - most:
                    await asyncio.sleep(0.01)
        finally:
            released.set()
        return names, await asyncio.gather(*models, return_exceptions=True)

    async def done() -> tuple[list[str], list[Any]]:
        manager = StudyManager(Settings("memory://hard", limits=ServiceLimits(seconds=NOW)))
        try:
            return await act(manager)
        finally:
            manager.close()

    monkeypatch.setattr(solver, "SolverProcess", Waiting)
    names, answers = asyncio.run(done())
    assert names == []
    kinds = Counter(type(answer) for answer in answers)
    assert kinds == {mp.Model: most, Overloaded: hard - most}


@pytest.mark.slow
def test_requests_that_take_too_long_change_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "/v1/studies/slow"
    given = {"name": "slow", "actions": sent(), "varying_set": True}
    assert client.post("/v1/studies", json=given).status_code == 201
    assert client.post(f"{base}/ask", json={}).status_code == 200
    before = client.get(base).json()
    plan = {"depot 2": 1, "depot 3": 3}
    losses = {arm: [0.5] * units for arm, units in plan.items()}
    verbs: dict[str, dict[str, Any]] = {
        "ask": {},
        "ask?": {"at_most": {"depot 1": 1}},
        "ask??": {"actions": sent(constant=1.0)},
        "best": {"exclude": ["depot 1"]},
        "expect": {"plan": plan},
        "learn": {"plan": plan, "losses": losses},
    }
    with monkeypatch.context() as patch:
        patch.setattr(solver.Budget, "left", property(lambda budget: 0.0))
        for verb, body in verbs.items():
            answer = client.post(f"{base}/{verb}", json=body)
            assert (answer.status_code, answer.json()["argument"]) == (422, "actions"), verb
        answer = client.post("/v1/studies", json=given | {"name": "slower"})
        assert (answer.status_code, answer.json()["argument"]) == (422, "actions")
        assert client.get("/studies/slow").status_code == client.get("/").status_code == 200
    assert client.get(base).json() == before
    for verb, body in verbs.items():
        assert client.post(f"{base}/{verb}", json=body).status_code == 200, verb
    assert client.post(f"{base}/verify").json()["ok"]


# ---------------------------------------------------------------- pages


@pytest.fixture
def place(client: Client) -> Place:
    return Place(client, STORE)


def read(answer: Any) -> str:
    """Return the text of a page, without its hidden fields."""
    page = re.sub(r"<textarea.*?</textarea>", "", answer.text, flags=re.DOTALL)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def upload(place: Place, content: bytes) -> Any:
    return place.send("/new/model", {}, files={"file": ("depots.mps", content)})


def kept(answer: Any) -> str:
    """Return the text of the model that the page sends again."""
    found = re.search(r'name="content" hidden>\n(.*?)</textarea>', answer.text, re.DOTALL)
    assert found is not None
    return unescape(found[1])


@pytest.mark.slow
def test_a_study_of_an_uploaded_model(place: Place) -> None:
    first = upload(place, depots().encode())
    assert first.status_code == 200
    assert "x[*] 6 whole numbers 6 x[Le_Mans,north]" in read(first)
    content = kept(first)
    assert content.split() == depots().split()
    asked = place.post("/new/model", content=content, arms="x[*]")
    assert asked.status_code == 422
    assert "because arms have costs, got a cost of 0.25" in read(asked)
    typed = {"content": content, "arms": "x[*]", "known": "helpers"}
    shown = place.post("/new/model", **typed)
    assert shown.status_code == 200
    text = read(shown)
    assert "x[Lyon,south] 0 2 none" in text  # from 0 to the demand, not to the bound
    assert "open[Lyon] 0 1 yes 1.5" in text
    assert "demand_north x[Le_Mans,north] + x[Lyon,north] + x[Nancy,north] equals 3" in text
    assert "room_Lyon x[Lyon,north] + x[Lyon,south] is at most 4 open[Lyon]" in text
    create = {"create": "yes", "low": "0", "high": "2", "policy": "BootstrapCTS"}
    nameless = place.post("/new/model", **typed, **create)
    assert nameless.status_code == 422
    assert 'id="name-error"' in nameless.text
    other = place.post("/new/model", **typed, **create | {"policy": "Budget"}, name="sites")
    assert other.status_code == 422
    assert "Choose one of the options." in read(other)
    done = place.post("/new/model", **typed, **create, name="sites")
    assert done.headers["location"] == "/studies/sites?done=created"
    assert place.get("/studies/sites").status_code == 200
    with mp.Study.open("sites", store=STORE) as study:
        assert isinstance(study.actions, mp.Model)
        assert study.actions.known_cost([3, 0, 0, 2, 0, 0]) == pytest.approx(7 + RENT[0] + RENT[1])
        assert study.actions.n.tolist() == [*TOWNS.values()] * len(SITES)
        assert study.actions.M == sum(TOWNS.values()) > ROOM
    again = place.post("/new/model", **typed, **create, name="sites")
    assert again.status_code == 422  # there is a study of this name


REFUSED: list[tuple[bytes, str]] = [
    (b"", "Choose a file"),
    (HANGS.encode(), "Expected ROWS first in line 1"),
    (depots().encode("utf-16"), "a file that is no text"),
    (b"\x1f\x8b\x08" + bytes(20), "Expected"),
    (depots().replace("Lyon", "L" * 300).encode(), "at most 200 characters"),
    (depots().replace("BV BND open[Lyon]", "XX BND open[Lyon]").encode(), "in line 39"),
    (MANY_COLUMNS.encode(), "at most 1000 columns, got 1001"),
]


@pytest.mark.parametrize(("content", "says"), REFUSED, ids=lambda one: repr(one)[:20])
def test_files_that_are_refused(content: bytes, says: str, place: Place) -> None:
    answer = upload(place, content)
    assert answer.status_code == 422
    assert says in read(answer)


CHOSEN: list[tuple[dict[str, str], str]] = [
    ({"arms": " "}, "arms-error"),
    ({"arms": "z[*]"}, "arms-error"),
    ({"arms": "x_1 x_*"}, "arms-error"),
    ({"arms": "x_1 stock", "known": "all"}, "arms-error"),
    ({"arms": "x_1", "known": "some"}, "known-error"),
    ({"arms": "*" * 2_001}, "arms-error"),
    ({"arms": "x_*", "known": "all", "sense": "both"}, 'role="alert"'),
]


@pytest.mark.parametrize(("typed", "marked"), CHOSEN)
def test_arms_that_are_refused(typed: dict[str, str], marked: str, place: Place) -> None:
    answer = place.post("/new/model", content=STOCK, **typed)
    assert answer.status_code == 422
    assert marked in answer.text
    assert place.get("/").text.count("x_1") == 0
