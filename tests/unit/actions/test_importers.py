"""Models of other libraries and MPS files: read, selected from, and refused."""

import json
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import library_models
import numpy as np
import pytest
from library_models import CUSTOMERS, DEPOTS, LANES, LEAST

from multiplay import InvalidInput, Model
from multiplay.actions.importers.mps import read_text
from multiplay.actions.importers.selection import ImportedModel, settings

ROOT = Path(__file__).parents[3]
ALONE = {  # by package, in a process of their own: OR-Tools conflicts with highspy
    "ortools": ("pywraplp", "model_builder", "mathopt", "cp_sat"),
    "mip": ("mip",),
}


def check(library: str, found: dict[str, Any]) -> None:
    constant = {"linopy": -library_models.CONSTANT}.get(library, 0.0)  # it has no constants
    factor = 100.0 if library == "cp_sat" else 1.0  # in cents
    assert found["least"] == pytest.approx(factor * (LEAST + constant), abs=1e-6)
    names = [f"x[{depot},{customer}]" for depot, customer in LANES]
    if library == "pulp":
        names = ["x_" + "_".join(lane).replace(" ", "_").replace("-", "_") for lane in LANES]
    if library == "cvxpy":
        names = [f"x[{i},{j}]" for i in range(len(DEPOTS)) for j in range(len(CUSTOMERS))]
    assert found["names"] == names
    assert found["same"]
    assert found["n"] == [3, 2, 4, 2] * 3
    assert found["M"] == 11
    assert "'all', 'helpers' or 'nothing'" in found["refused"]
    assert names[0] in found["refused"]


@pytest.mark.parametrize("library", ["pulp", "cvxpy", "highspy"])
def test_a_model_of_a_library_is_read(library: str) -> None:
    pytest.importorskip(library)
    check(library, library_models.read(library))


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pyomo", "linopy"])
def test_a_model_of_a_large_library_is_read(library: str) -> None:
    pytest.importorskip(library)
    check(library, library_models.read(library))


def run(code: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("package", ALONE)
def test_models_are_read_in_a_process_of_their_own(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    printed = run([str(Path(library_models.__file__)), *ALONE[package]])
    for library, found in json.loads(printed.splitlines()[-1]).items():
        check(library, found)


BESIDE = """
from multiplay import IntegerProgram, Learner, Model
program = IntegerProgram([[1, 1, 1], [-2, -1, 0]], [6, -4], bounds=(0, 3))
print(program.argmin([0.5, 0.3, 0.1]), Model.example().argmin([0.5, 0.3]))
print(len(Learner(program).ask().plan), program.hull.start(1)["x"].shape)
"""
FOREIGN = """
from multiplay import InvalidInput, Model
model, other = cp_model.CpModel(), cp_model.CpModel()
x = [model.new_int_var(0, 2, f"x{i}") for i in range(2)]
used, z = model.new_bool_var("used"), other.new_int_var(0, 2, "z")
model.add(x[0] <= 2 * used)
for thing, arms in ((model, [z]), (model, [x[0] + x[1]]), (model, [~used]), (x[0], x)):
    try:
        Model.of(thing, arms=arms)
    except InvalidInput as error:
        print(error.argument)
"""
ORTOOLS = "from ortools.sat.python import cp_model; print(cp_model.CpModel() is not None)\n"


@pytest.mark.slow
@pytest.mark.parametrize("code", [ORTOOLS + BESIDE, BESIDE + ORTOOLS], ids=["before", "after"])
def test_sets_work_beside_or_tools(code: str) -> None:
    if find_spec("ortools") is None:
        pytest.skip("ortools is not installed")
    printed = run(["-c", code])
    assert "[2 0 0]" in printed
    assert "True" in printed


@pytest.mark.slow
def test_variables_and_expressions_of_another_model_of_or_tools_are_refused() -> None:
    if find_spec("ortools") is None:
        pytest.skip("ortools is not installed")
    assert run(["-c", ORTOOLS + FOREIGN]).split() == ["True", "arms", "arms", "arms", "thing"]


def test_multiplay_imports_no_other_solver() -> None:
    code = (
        BESIDE + "import sys; print([one for one in ('highspy', 'ortools') if one in sys.modules])"
    )
    assert run(["-c", code]).strip().endswith("[]")


# ---------------------------------------------------------------- selection

MPS = """NAME depots
* a comment
ROWS
 N  cost
 E  demand
 L  room(1)
 G  least
COLUMNS
    M1        'MARKER'    'INTORG'
    x[north]  demand  1   room(1)  1
    x[north]  cost  0.5
    x[south]  demand  1   least  1
    open  cost  3   room(1)  -5
    M2        'MARKER'    'INTEND'
    stock  cost  0.25   least  1
RHS
    RHS  demand  4   least  2
    RHS  cost  -7
RANGES
    RNG  least  3
BOUNDS
 UP BND x[north] 5
 UI BND x[south] 3
 BV BND open
 UP BND stock 9.5
ENDATA
"""


def test_an_mps_file_is_read(tmp_path: Path) -> None:
    read = read_text(MPS)
    assert read.names == ["x[north]", "x[south]", "open", "stock"]
    assert read.integer == [True, True, True, False]
    assert (read.lower, read.upper) == ([0.0] * 4, [5.0, 3.0, 1.0, 9.5])
    assert read.cost == [0.5, 0.0, 3.0, 0.25]
    assert (read.low, read.high) == ([4.0, None, 2.0], [4.0, 0.0, 5.0])
    assert (read.sense, read.constant) == ("min", 7.0)
    assert read_text("*SENSE:Maximize\n" + MPS).sense == "max"  # as PuLP writes it
    assert read_text("*SENSE:Minimize\n" + MPS).sense == "min"
    path = tmp_path / "depots.mps"
    path.write_text(MPS)
    model = Model.of(path, arms="x[*]", known="helpers")
    assert model.names == ("x[north]", "x[south]")
    assert model.offset is None
    assert model.known([[4, 0], [1, 3]]).tolist() == [3.5, 3.0]
    assert Model.of(str(path), arms=["x[south]", 0], known="all").names == ("x[south]", "x[north]")
    known = Model.of(path, arms=[0, 1], known="all")
    assert known.offset is not None
    assert known.offset.tolist() == [0.5, 0.0]
    assert not Model.of(path, arms=[0, 1], known="nothing").extra


def test_the_reader_agrees_with_highs(tmp_path: Path) -> None:
    highspy = pytest.importorskip("highspy")
    path = tmp_path / "depots.mps"
    path.write_text(MPS)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    assert model.readModel(str(path)) != highspy.HighsStatus.kError
    other, own = Model.of(model, "x[*]", "all"), Model.of(path, "x[*]", "all")
    assert (other.columns, other.rows) == (own.columns, own.rows)
    assert other.constant == own.constant
    entries = [sorted(zip(*one.matrix.values(), strict=True)) for one in (other, own)]
    assert entries[0] == entries[1]


CHOICES: list[tuple[Any, Any, str, str]] = [
    ("x[*]", None, "known", "because arms have costs"),
    ("x[*]", "some", "known", "'all', 'helpers' or 'nothing'"),
    ("z[*]", "all", "arms", "a name or pattern of columns"),
    ("x[nort]", "all", "arms", "a name or pattern of columns"),
    ([], "all", "arms", "at least one column"),
    (["x[north]", "x[*]"], "all", "arms", "each column once"),
    ([9], "all", "arms", "places below 4"),
    ([1.5], "all", "arms", "names, patterns, places or variables"),
    ("stock", "all", "arms", "integer columns"),
]


@pytest.mark.parametrize(("arms", "known", "argument", "expected"), CHOICES)
def test_bad_choices_are_refused(
    tmp_path: Path, arms: Any, known: Any, argument: str, expected: str
) -> None:
    path = tmp_path / "depots.mps"
    path.write_text(MPS)
    with pytest.raises(InvalidInput) as caught:
        Model.of(path, arms=arms, known=known)
    assert caught.value.argument == argument
    assert expected in caught.value.expected


def test_a_close_name_is_suggested(tmp_path: Path) -> None:
    path = tmp_path / "depots.mps"
    path.write_text(MPS)
    with pytest.raises(InvalidInput, match=r"x\[north\]"):
        Model.of(path, arms="x[nort]", known="all")


def test_things_that_are_no_models_are_refused(tmp_path: Path) -> None:
    for thing in (3, {"x": 1}, Model, None):
        with pytest.raises(InvalidInput, match="a model of pulp"):
            Model.of(thing, arms="x")
    with pytest.raises(InvalidInput, match="an MPS file"):
        Model.of(tmp_path / "missing.mps", arms="x")


def test_objects_of_a_library_that_are_no_models_or_arms_are_refused() -> None:
    pulp = pytest.importorskip("pulp")
    problem, lanes, _ = library_models.pulp()
    lane = next(iter(lanes.values()))
    with pytest.raises(InvalidInput, match="a model of pulp"):
        Model.of(lane, arms="x_*")
    other = pulp.LpProblem("other", pulp.LpMinimize).add_variable("z", 0, 1, "Integer")
    for arms in (other, lane + 1, lane <= 2):
        with pytest.raises(InvalidInput, match="variables that the model uses"):
            Model.of(problem, arms=[arms], known="all")


@pytest.mark.slow
def test_a_pyomo_model_without_an_objective_has_no_known_costs() -> None:
    pyo = pytest.importorskip("pyomo.environ")
    model, lanes, _ = library_models.pyomo()
    model.second = pyo.Objective(expr=model.y["Lyon"])
    with pytest.raises(InvalidInput, match="at most one active objective, got 2"):
        Model.of(model, arms=lanes)
    model.second.deactivate()
    model.cost.deactivate()
    assert not Model.of(model, arms=lanes).has_known
    model.x["Lyon", "north"].fix(0)
    with pytest.raises(InvalidInput, match=r"does not fix, got x\[Lyon,north\]"):
        Model.of(model, arms=lanes)
    with pytest.raises(InvalidInput, match="a model of pulp"):
        Model.of(model.x, arms=lanes)


def test_an_integer_arm_without_bounds_in_an_mps_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "depots.mps"
    path.write_text(MPS.replace(" UP BND x[north] 5\n", ""))
    with pytest.raises(InvalidInput, match="Add an upper bound"):
        Model.of(path, arms="x[*]", known="all")


@pytest.mark.parametrize("infinite", ["1e20", "1e30", "1e308", "inf"])
def test_bounds_may_be_infinite_in_the_ways_of_mps_files(infinite: str) -> None:
    text = MPS.replace(" UP BND stock 9.5", f" UP BND stock {infinite}")
    text = text.replace(" UI BND x[south] 3", f" UI BND x[south] 3\n LO BND x[south] -{infinite}")
    columns = settings(read_text(text), "x[north]", "helpers", None)["columns"]
    assert columns["upper"] == [5.0, 3.0, 1.0, None]
    assert columns["lower"] == [0.0, None, 0.0, 0.0]


TOO_LARGE: list[tuple[str, dict[str, Any]]] = [
    ("rows.upper", {"high": [1e308]}),
    ("rows.upper", {"high": [-1e30]}),
    ("rows.lower", {"low": [-1e16]}),
    ("columns.upper", {"upper": [1e16]}),
    ("columns.upper", {"upper": [-1e30]}),
    ("columns.lower", {"lower": [1e20]}),
]


@pytest.mark.parametrize(("argument", "changes"), TOO_LARGE)
def test_limits_beyond_the_solver_are_not_read_as_none(
    argument: str, changes: dict[str, Any]
) -> None:
    """Of a model of any library: only the bounds of columns have large numbers for no limit."""
    one = ImportedModel(["x"], [0.0], [4.0], [True], [0.0], [1.0], [9.0], [(0, 0, 1.0)], "min")
    assert Model(**settings(one, "x", None, None)).n.tolist() == [4]
    with pytest.raises(InvalidInput) as caught:
        Model(**settings(one._replace(**changes), "x", None, None))
    assert caught.value.argument == argument


def test_rows_and_columns_without_limits_are_read() -> None:
    one = ImportedModel(
        ["x"], [0.0], [1e30], [True], [0.0], [-math.inf], [9.0], [(0, 0, 1.0)], "min"
    )
    assert Model(**settings(one, "x", None, None)).n.tolist() == [9]


# ---------------------------------------------------------------- strictness

BAD_LINES = [
    ("ROWS\n", "", "a section after NAME"),
    ("NAME depots\n* a comment\nROWS\n", "NAME depots\nCOLUMNS\n", "ROWS first"),
    ("ENDATA\n", "", "ENDATA at the end"),
    ("ENDATA\n", "ENDATA\nmore\n", "nothing after ENDATA"),
    ("RHS\n", "ROWS\n", "each section once and in order"),
    ("RANGES\n", "QUADOBJ\n", "one of NAME"),
    (" N  cost\n", " N  cost\n N  cost\n", "each row once"),
    (" E  demand", " Q  demand", "N, L, G or E"),
    ("x[north]  cost  0.5", "x[north]  demand  0.5", "each entry once"),
    ("x[north]  cost  0.5", "x[north]  profit  0.5", "a row that is known"),
    ("x[north]  cost  0.5", "x[north]  cost  nan", "a finite number"),
    ("x[north]  cost  0.5", "x[north]  cost  1e999", "a finite number"),
    ("x[north]  cost  0.5", "x[north]  cost  1_0", "a finite number"),
    ("x[north]  cost  0.5", "x[north]  cost  1e20", "a finite number below 1e20"),
    ("RHS  demand  4", "RHS  demand  1e308", "a finite number below 1e20"),
    ("RHS  demand  4", "RHS  demand  -1e30", "a finite number below 1e20"),
    ("RNG  least  3", "RNG  least  1e308", "a finite number below 1e20"),
    ("x[north]  cost  0.5", "x[north]  cost", "one or two pairs"),
    ("    M2        'MARKER'    'INTEND'\n", "", "INTEND before the end of COLUMNS"),
    ("'INTORG'", "'INTEND'", "INTORG and INTEND in turn"),
    ("    RHS  cost  -7", "    RIGHT  cost  -7", "one vector in RHS"),
    (" UP BND x[north] 5", " UP BND x[east] 5", "a column that is known"),
    (" UP BND x[north] 5", " SC BND x[north] 5", "one of UP"),
    (" UP BND x[north] 5", " UP BND x[north] 5\n UP BND x[north] 6", "each bound of a column once"),
    (" UP BND stock 9.5", " UP BND stock -1", "a lower bound of a column"),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD_LINES)
def test_what_is_not_standard_is_refused(old: str, new: str, expected: str) -> None:
    assert old in MPS
    with pytest.raises(InvalidInput) as caught:
        read_text(MPS.replace(old, new, 1))
    assert expected in caught.value.expected
    assert caught.value.argument.startswith("line ")


def test_the_file_that_hangs_another_reader_is_refused() -> None:
    with pytest.raises(InvalidInput):
        read_text("COLUMNS\n\n UP BND       x_Le_Mans_south   1.200000000000e+01")


def mutated(text: str, rng: np.random.Generator) -> str:
    """Return a text with some characters, words or lines changed, moved or lost."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.integers(1, 4)):
        kind, k = rng.integers(9), int(rng.integers(len(lines)))
        words = lines[k].split(" ")
        other = lines[int(rng.integers(len(lines)))]
        if kind == 0:
            del lines[k]
        elif kind == 1:
            lines.insert(k, other)
        elif kind == 2:
            lines[k] = lines[k][: rng.integers(len(lines[k]) + 1)]
        elif kind == 3:
            lines[k] = " ".join(rng.permutation(words))
        elif kind == 4:
            lines[k] = lines[k].replace("1", "1e400").replace("5", "-inf")
        elif kind == 5:
            lines[k] = lines[k].lstrip() + "\x00"
        elif kind == 6:
            lines[k] = lines[k] * 3
        elif kind == 7:
            lines[k] = lines[k].upper()
        else:
            lines = lines[: k + 1]
        if not lines:
            return ""
    return "".join(lines)


def check_mutations(number: int) -> None:
    rng, refused = np.random.default_rng(11), 0
    for _ in range(number):
        try:
            read_text(mutated(MPS, rng))
        except InvalidInput:
            refused += 1
    assert number / 2 < refused < number  # the others are still good files


def test_mutated_files_are_read_or_refused() -> None:
    check_mutations(300)


@pytest.mark.soak
def test_many_mutated_files_are_read_or_refused() -> None:
    check_mutations(2000)
