"""Compiled kernels on disk: an edit of any kernel compiles all of them again."""

import ast
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import TIME_LIMIT
from in_kernel import in_kernel

import multiplay
from multiplay._support import deadline
from multiplay.kernels import compiler, jit
from multiplay.kernels.regulariser import curvature_below, logarithms, slope
from multiplay.kernels.units import collect
from multiplay.types import FloatArray

KERNELS = Path(multiplay.__file__).parent / "kernels"
PREFIX = "multiplay.kernels."
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


def run(folder: Path, program: str, variables: dict[str, str] | None = None) -> str:
    paths = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": "", **(variables or {})}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | paths,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.slow
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


@pytest.mark.slow
def test_only_subroutines_are_not_cached() -> None:
    """A function that Python calls is a kernel, or every process would compile it."""
    uncached = {
        f"{place.stem}.{one.name}"
        for place in KERNELS.glob("*.py")
        for one in ast.parse(place.read_text(encoding="utf-8")).body
        if isinstance(one, ast.FunctionDef)
        and {"subroutine", "part"} & {ast.unparse(name) for name in one.decorator_list}
    }
    assert "network_simplex.pivot" in uncached
    called = set()
    for place in KERNELS.parent.rglob("*.py"):
        tree = ast.parse(place.read_text(encoding="utf-8"))
        called |= names_in_python(place.stem, tree) if place.parent == KERNELS else names_of(tree)
    assert {"units.collect", "trees.grow_trees"} <= called
    assert not called & uncached, "decorate these with @kernel"


def names_in_python(module: str, tree: ast.Module) -> set[str]:
    """Return what the functions of a module name that are not compiled themselves."""
    plain = [
        one for one in tree.body if isinstance(one, ast.FunctionDef) and not one.decorator_list
    ]
    nodes = [node for one in plain for node in ast.walk(one)]
    return {f"{module}.{node.id}" for node in nodes if isinstance(node, ast.Name)}


def names_of(tree: ast.AST) -> set[str]:
    """Return the functions of kernels that a module names, as ``module.function``."""
    modules: dict[str, str] = {}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "multiplay.kernels":
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PREFIX):
            found |= {f"{str(node.module).removeprefix(PREFIX)}.{one.name}" for one in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{modules.get(node.value.id)}.{node.attr}")
    return found


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    """Kernels are then cached in the folder of the user, or not at all."""
    program = (
        "from multiplay.kernels import jit; print(jit.cache_folder());"
        "from multiplay.kernels.rows import finite; import numpy as np;"
        "print(finite(np.ones((1, 1))))"
    )
    for blocked in (["NUMBA_CACHE_DIR"], ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"]):
        install = tmp_path / str(len(blocked))
        install.mkdir()
        (install / "multiplay").mkdir()
        shutil.copytree(
            KERNELS, install / "multiplay" / "kernels", ignore=shutil.ignore_patterns("__pycache__")
        )
        needed = ["types.py", "errors.py"] + [
            f"_support/{name}.py" for name in ("__init__", "checks", "deadline", "hints")
        ]
        (install / "multiplay" / "_support").mkdir()
        for name in needed:
            shutil.copy(KERNELS.parent / name, install / "multiplay" / name)
        (install / "multiplay" / "__init__.py").write_text("")
        (install / "multiplay" / "kernels" / "__pycache__").write_text("a file, not a folder")
        (install / "file").write_text("")
        places = {"XDG_CACHE_HOME": str(install / "user"), "PYTHONDONTWRITEBYTECODE": "1"}
        places |= {name: str(install / "file" / "below") for name in blocked}
        folder, answer = run(install, program, places).splitlines()
        assert answer == "True"
        used = folder != "None" and Path(folder).is_relative_to(install / "user" / "multiplay")
        assert used is ("XDG_CACHE_HOME" not in blocked)


def test_old_versions_are_removed_when_they_are_not_used(tmp_path: Path) -> None:
    """A folder without new kernels for a day belongs to an earlier version."""
    program = "from multiplay.kernels import jit; print(jit.cache_folder())"
    places = {"NUMBA_CACHE_DIR": str(tmp_path)}
    here = Path(run(KERNELS.parents[1], program, places))
    assert here.parent == tmp_path
    start = here.name.rpartition("-")[0]
    old, recent, foreign = (tmp_path / name for name in (f"{start}-1", f"{start}-2", "other-1"))
    for folder in (old, recent, foreign):
        folder.mkdir()
    for folder in (old, foreign):
        os.utime(folder, (0, 0))
    here.rename(tmp_path / "away")
    run(KERNELS.parents[1], program, places)
    assert [one.exists() for one in (here, old, recent, foreign)] == [True, False, True, True]


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


@pytest.mark.slow
def test_two_workers_compile_a_kernel_once(tmp_path: Path) -> None:
    """The second one waits, and finds it on disk."""
    program = (
        "import sys, numba; from multiplay.kernels.units import collect; import numpy as np;"
        "from multiplay.kernels.jit import compile_in_turn; compile_in_turn();"
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
    misses = [int(process.communicate(timeout=TIME_LIMIT)[0]) for process in both]
    assert sorted(misses) == [0, 1]


def test_the_wait_for_another_compiler_ends_with_the_time_limit(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / "lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        begin = time.monotonic()
        with deadline.before(begin + 0.05):
            file = compiler._locked(tmp_path / "lock")
        assert file is not None
        file.close()
        assert time.monotonic() - begin < compiler.MOST_WAITING / 2


@jit.subroutine
def _row_sums(matrix: FloatArray, sums: FloatArray) -> None:
    matrix, sums = jit.borrowed(matrix), jit.borrowed(sums)
    for k in range(len(matrix)):
        for number in matrix[k]:
            sums[k] += number


def test_borrowed_arrays_are_the_arguments_without_references() -> None:
    matrix, sums = np.arange(6.0).reshape(3, 2), np.zeros(3)
    held = sys.getrefcount(matrix), sys.getrefcount(sums)
    in_kernel(_row_sums)(matrix, sums)
    assert sums.tolist() == matrix.sum(axis=1).tolist()
    assert held == (sys.getrefcount(matrix), sys.getrefcount(sums))
