"""Compiled kernels on disk: they know of edits in the kernels that they call."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np

import multiplay
from multiplay.kernels.cycles import push_cycle
from multiplay.kernels.regulariser import curvature_below, logarithms, slope
from multiplay.kernels.units import collect

CALLER = '''"""A kernel that calls another one."""

from multiplay.kernels.callee import twice
from multiplay.kernels.jit import kernel


@kernel
def call(number: float) -> float:
    """Return twice the number, if twice keeps its word."""
    return twice(number)
'''
CALLEE = '''"""A kernel that is edited."""

from multiplay.kernels.jit import kernel


@kernel
def twice(number: float) -> float:
    """Return a multiple of the number."""
    return {factor} * number
'''


def run(folder: Path, program: str) -> str:
    paths = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": ""}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | paths,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_an_edit_reaches_the_kernels_that_call(tmp_path: Path) -> None:
    package = tmp_path / "multiplay"
    shutil.copytree(
        Path(multiplay.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "kernels" / "caller.py").write_text(CALLER)
    callee = package / "kernels" / "callee.py"
    ask = (
        "from multiplay.kernels.caller import call;"
        "print(call(3.0), sum(call.stats.cache_hits.values()))"
    )
    callee.write_text(CALLEE.format(factor=2.0))
    assert run(tmp_path, ask) == "6.0 0"
    assert run(tmp_path, ask) == "6.0 1"  # compiled once, and found on disk
    callee.write_text(CALLEE.format(factor=5.0))
    assert run(tmp_path, ask) == "15.0 0"


def test_kernels_travel_to_other_processes(tmp_path: Path) -> None:
    file = tmp_path / "kernel.pickle"
    file.write_bytes(pickle.dumps(collect))
    program = (
        "import pickle, numpy as np;"
        f"collect = pickle.loads(open({str(file)!r}, 'rb').read());"
        "action = np.zeros((1, 2), dtype=np.int64);"
        "collect(np.ones((1, 3), dtype=np.int64), np.array([0, 1, 1]), action);"
        "print(action.tolist())"
    )
    assert run(Path(multiplay.__file__).parents[1], program) == "[[1, 2]]"


def test_slope_and_curvature_are_the_derivatives_of_phi() -> None:
    barrier, entropy, root, shannon = 0.7, 3.0, 0.4, 1.3
    n, x, h = 5.0, 1.7, 1e-6

    def phi(x: float) -> float:
        u = x / n
        below = barrier * (u - 1 - np.log(u)) - root * u**0.5 + shannon * (1 - u + u * np.log(u))
        return float(n * (below + entropy * (u + (1 - u) * np.log(1 - u))))

    def phi1(x: float) -> float:
        return float(slope(barrier, root, x / n, logarithms(entropy, shannon, x / n, 1 - x / n)))

    assert np.isclose(phi1(x), (phi(x + h) - phi(x - h)) / (2 * h), rtol=1e-8)
    u = x / n
    assert np.isclose(logarithms(2.0, 2.0, u, 1 - u), 2 * np.log(u) - 2 * np.log(1 - u))
    assert logarithms(2.0, 0.0, u, 1 - u) == -2 * np.log(1 - u)
    phi2 = (curvature_below(barrier, root, shannon, u) / u**2 + entropy / (1 - u)) / n
    assert np.isclose(phi2, (phi1(x + h) - phi1(x - h)) / (2 * h), rtol=1e-8)


def test_a_kernel_for_zero_is_that_for_any_number() -> None:
    """The callers of ``push_cycle`` write 0 here and a variable there."""

    @numba.njit
    def call_both(arcs: Any, along: Any, fraction: Any, number: int) -> None:
        push_cycle(arcs, along, 0, 1, fraction, 0.5)
        push_cycle(arcs, along, number, number + 1, fraction, 0.5)

    call_both(np.arange(2), np.ones(2, dtype=bool), np.full(2, 0.5), 0)
    assert len(push_cycle.signatures) == 1  # type: ignore[attr-defined]


def test_two_processes_compile_a_kernel_once(tmp_path: Path) -> None:
    """Who comes second waits, and finds it on disk."""
    program = (
        "import sys, numba; from multiplay.kernels.units import collect; import numpy as np;"
        "print('ready', flush=True); sys.stdin.readline();"
        "ones = np.ones((1, 3), dtype=np.int64);"
        "collect(ones, np.array([0, 1, 1]), np.zeros((1, 2), dtype=np.int64));"
        "print(sum(collect.stats.cache_misses.values()))"
    )
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both: list[Any] = [
        subprocess.Popen([sys.executable, "-c", program], env=variables, **pipes) for _ in range(2)
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    misses = [int(process.communicate(timeout=120)[0]) for process in both]
    assert sorted(misses) == [0, 1]
