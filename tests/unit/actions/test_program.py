"""FTRL on integer programs: few questions to HiGHS, the same answers, nothing printed."""

import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from processes import in_processes

from multiplay import GenLBINFV, IntegerProgram, Learner
from multiplay.hull import Regulariser
from multiplay.hull.decomposition import DecompositionHull
from multiplay.kernels.exchange import MAX_EXCHANGES
from multiplay.testing import check_settings, optimality_gap
from multiplay.types import FloatArray

KINDS = ("cover", "pack", "fractions", "assign", "box")
CHATTER = """
import numpy as np
from scipy import sparse
from multiplay.actions.milp import MixedProgram

rng = np.random.default_rng([0, 30])
A = rng.integers(1, 10, (3, 50)).astype(float)
lo, hi, whole = np.zeros(50), np.full(50, 3.0), np.ones(50, dtype=bool)
program = MixedProgram(sparse.csr_array(A), np.full(3, -np.inf), A.sum(axis=1), lo, hi, whole)
program.solve(-rng.random(50))
"""


def random_program(rng: np.random.Generator, kind: str, d: int) -> IntegerProgram:
    """Some rows that bind, over 0 to 3 units of every arm."""
    A = rng.integers(0, 10, (3, d))
    if kind == "cover":
        return IntegerProgram(-A, -A.sum(axis=1), bounds=(0, 3))
    if kind == "pack":
        return IntegerProgram(A, A.sum(axis=1), bounds=(0, 3), sense="max")
    if kind == "fractions":
        rows = rng.random((2, d))
        return IntegerProgram(rows, 0.5 * rows.sum(axis=1), bounds=(0, 2), sense="max")
    if kind == "assign":
        row, col = np.divmod(np.arange(d), 2)
        most, least = row == np.arange(d // 2)[:, None], col == np.array([[0], [1]])
        rows = np.concatenate([1.0 * most, -1.0 * least])
        return IntegerProgram(rows, [2] * (d // 2) + [-(d // 3)] * 2, bounds=(0, 2))
    return IntegerProgram(np.empty((0, d)), [], bounds=(0, 3))


def regulariser(trials: int) -> Regulariser:
    return Regulariser(barrier=np.ones(trials), entropy=np.full(trials, np.log(1000.0)))


def exact(program: IntegerProgram) -> DecompositionHull:
    """Return the hull of a program without a gap that is left."""
    return DecompositionHull(program.oracle, program.n, program._better, gap=0.0)


def step(program: IntegerProgram, hull: DecompositionHull, costs: FloatArray) -> FloatArray:
    """Return x after a step, whose gap is checked: it is no larger than stated."""
    beta = np.full(costs.shape, 1.2)
    point = hull.minimise(costs, beta, regulariser(len(costs)), hull.start(len(costs)))
    assert program.contains(point["atoms"]).all()
    gap = optimality_gap(program, costs, beta, regulariser(len(costs)), point)
    harmless = hull.harmless(costs, beta, regulariser(len(costs))) / (1 + np.abs(costs) @ program.n)
    assert (gap < 1e-10 + harmless).all()
    return point["x"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("seed", "scale"), [(0, 0.5), (1, 5.0), (2, 50.0)])
def test_the_step_is_the_one_that_always_asks_for_the_best(
    seed: int, kind: str, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    program = random_program(rng, kind, 6)
    always = DecompositionHull(program.oracle, program.n, gap=0.0)
    costs = program.sign * scale * rng.random((2, 6)) + 0.1 * rng.normal(size=(2, 6))
    assert np.allclose(
        step(program, exact(program), costs), step(program, always, costs), atol=1e-6
    )


@pytest.mark.slow
def test_fifty_arms_ask_for_the_best_action_a_hundred_times_and_not_more() -> None:
    """The extremes of every arm take 100 questions; the first step took 55 more, and 28 s."""
    program = random_program(np.random.default_rng(0), "cover", 50)
    learner = Learner(program, GenLBINFV(horizon=1000), seed=0)
    learner.ask()
    assert program.calls <= 105
    x = step(program, program.hull, np.full((1, 50), 0.5))
    assert (x > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_that_is_left_is_not_larger_than_stated(kind: str) -> None:
    rng = np.random.default_rng(0)
    program = random_program(rng, kind, 8)
    step(program, program.hull, program.sign * rng.random((4, 8)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cover", "pack"])
def test_the_gap_of_a_large_program_is_not_larger_than_stated(kind: str) -> None:
    """Beyond 24 arms a simplex is kept, and what descends may be worse than the memory."""
    rng = np.random.default_rng(1)
    program = random_program(rng, kind, 30)
    assert program.hull.quick
    step(program, program.hull, program.sign * rng.random((3, 30)) * [[1.0], [10.0], [50.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_depends_on_its_question_alone(kind: str) -> None:
    """What was asked before, or by other threads, leaves no trace."""
    rng = np.random.default_rng(0)
    program = random_program(rng, kind, 12)
    questions = list(rng.normal(size=(8, 12)))

    def answers(questions: Iterable[FloatArray]) -> list[bytes]:
        solved = [program._program(program.n.astype(float)).solve(costs) for costs in questions]
        relaxed = [program._relaxation(costs) for costs in questions]
        points = [one.x for one in solved if one.x is not None] + [x for x, _ in relaxed]
        return [point.tobytes() for point in points]

    forwards = answers(questions)
    assert len(forwards) == 16
    assert [answers([costs]) for costs in reversed(questions)][::-1] == [
        [forwards[k], forwards[8 + k]] for k in range(8)
    ]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(answers, [questions] * 2)) == [forwards] * 2


def test_a_forked_process_asks_too() -> None:
    program = random_program(np.random.default_rng(0), "pack", 8)
    costs = np.linspace(-1, 1, 8)
    before = program._relaxation(costs)[1]

    def work(number: int) -> None:
        assert program._relaxation(costs)[1] == before
        assert program._branch_and_bound(costs, np.zeros(8, dtype=np.int64), 1e-8).sum() > 0

    in_processes(2, work)


def test_a_bound_below_the_best_action() -> None:
    rng = np.random.default_rng(0)
    for kind in KINDS:
        program = random_program(rng, kind, 8)
        for costs in rng.normal(size=(10, 8)):
            relaxed, bound = program._relaxation(costs)
            least = float(program.argmin(costs) @ costs)
            assert bound <= least + 1e-12
            assert bound == pytest.approx(relaxed @ costs, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_local_search_ends_in_an_action_that_costs_no_more(kind: str) -> None:
    rng = np.random.default_rng(0)
    program = random_program(rng, kind, 12)
    for costs in rng.normal(size=(10, 12)):
        start = program.argmin(rng.normal(size=12))
        before = start.copy()
        end = program._descend(costs, start)
        assert program.contains(end)
        assert end @ costs <= start @ costs
        assert (start == before).all()


def test_local_search_does_not_walk_a_million_units() -> None:
    program = IntegerProgram([[3, 5]], [10**9 + 1], sense="max")
    start = np.zeros(2, dtype=np.int64)
    assert program._descend(np.array([-1.0, -1.0]), start).sum() <= 3 * MAX_EXCHANGES
    costs = -np.array([[0.5, 0.7], [30.0, 50.1]])
    always = DecompositionHull(program.oracle, program.n, gap=0.0)
    x, twin = (step(program, hull, costs) for hull in (exact(program), always))
    assert np.allclose(x, twin, rtol=1e-6)


@pytest.mark.slow
def test_nothing_is_printed() -> None:
    """HiGHS prints a line of its own while it solves this program, whatever it is told."""
    ran = subprocess.run([sys.executable, "-c", CHATTER], capture_output=True, check=True)
    assert (ran.stdout, ran.stderr) == (b"", b"")


def test_what_others_print_meanwhile_is_not_lost() -> None:
    code = """
import os, sys
from multiplay.actions.milp import dropped_output
print("before")
with dropped_output(b"stray\\n"):
    os.write(1, b"kept\\nstray\\n")
    print("inside", flush=True)
print("after")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert sorted(ran.stdout.split()) == ["after", "before", "inside", "kept"]


def test_a_program_without_constraints_is_its_bounds() -> None:
    box = IntegerProgram([], [], bounds=([0, 1], [2, 3]))
    assert box.argmin([1.0, -1.0]).tolist() == [0, 3]
    check_settings(box)
