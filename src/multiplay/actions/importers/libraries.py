"""Importers of the models of PuLP, Pyomo, cvxpy, linopy, python-mip and highspy.

They read the objects of a library directly: text formats lose digits, constants and names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multiplay.actions.importers.selection import ImportedModel
from multiplay.errors import InvalidInput

SENSE = {1: "min", -1: "max"}


def refused(library: str, what: str) -> InvalidInput:
    """Return the error of a model that is not linear."""
    expected = "a mixed-integer linear model"
    return InvalidInput("thing", expected, f"{what} in a model of {library}", "Linearise it.")


def by_identity(variables: Sequence[Any], root: str) -> Any:
    """Return a function for the place of a variable, by identity."""
    places = {id(one): place for place, one in enumerate(variables)}

    def place(variable: Any) -> int | None:
        is_own = type(variable).__module__.partition(".")[0] == root
        return places.get(id(variable)) if is_own else None

    return place


def from_pulp(problem: Any) -> ImportedModel:
    """Read an ``LpProblem``; its columns are in the order of their names."""
    if problem.sos1 or problem.sos2:
        raise refused("PuLP", "special ordered sets")
    variables = problem.variables()
    places = {id(one): place for place, one in enumerate(variables)}
    cost, constant = np.zeros(len(variables)), 0.0
    if problem.objective is not None:
        constant = float(problem.objective.constant or 0.0)
        for one, value in problem.objective.items():
            cost[places[id(one)]] += value
    low, high, entries = list[float | None](), list[float | None](), []
    found = problem.constraints  # a method in PuLP 4, a dict before
    for row, constraint in enumerate(found() if callable(found) else found.values()):
        right = -float(constraint.constant)
        low.append(right if constraint.sense >= 0 else None)
        high.append(right if constraint.sense <= 0 else None)
        entries += [(row, places[id(one)], value) for one, value in constraint.items()]
    return ImportedModel(
        [one.name for one in variables],
        [one.lowBound for one in variables],
        [one.upBound for one in variables],
        [one.cat != "Continuous" for one in variables],
        cost.tolist(),
        low,
        high,
        entries,
        SENSE[problem.sense],
        constant,
        by_identity(variables, "pulp"),
    )


def from_pyomo(model: Any) -> ImportedModel:
    """Read a ``ConcreteModel``; fixed variables are numbers."""
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    try:
        form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except AttributeError:  # not a model
        raise
    except Exception as error:  # many types: nonlinear expressions, components that it lacks
        raise refused("Pyomo", str(error).splitlines()[0][:80]) from error
    if len(form.objectives) > 1:
        expected, got = "at most one active objective", f"{len(form.objectives)}"
        raise InvalidInput("thing", expected, got, "Deactivate the others.")
    has_costs = len(form.objectives) == 1  # without an objective, all costs are to be learned
    variables, matrix = form.columns, form.A.tocoo()
    kinds = [row.bound_type for row in form.rows]
    return ImportedModel(
        [one.name for one in variables],
        [one.bounds[0] for one in variables],
        [one.bounds[1] for one in variables],
        [not one.is_continuous() for one in variables],
        form.c.toarray()[0].tolist() if has_costs else [0.0] * len(variables),
        [right if kind <= 0 else None for kind, right in zip(kinds, form.rhs, strict=True)],
        [right if kind >= 0 else None for kind, right in zip(kinds, form.rhs, strict=True)],
        list(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)),
        SENSE[int(form.objectives[0].sense)] if has_costs else "min",
        float(form.c_offset[0]) if has_costs else 0.0,
        by_identity(variables, "pyomo"),
    )


def from_cvxpy(problem: Any) -> ImportedModel:
    """Read a ``Problem``; columns of a matrix are in Fortran order, its names in two indices."""
    from cvxpy.error import DCPError, SolverError

    try:
        data, _, _ = problem.get_problem_data("SCIPY")
    except (DCPError, SolverError, ValueError) as error:
        raise refused("cvxpy", str(error).splitlines()[0][:80]) from error
    form = data["param_prob"]
    cost = np.asarray(data["c"], dtype=float)
    starts, names = form.var_id_to_col, [f"helper {place}" for place in range(len(cost))]
    for one in form.variables:
        for k, index in enumerate(np.ndindex(one.shape[::-1])):
            inside = ",".join(map(str, index[::-1]))
            names[starts[one.id] + k] = f"{one.name()}[{inside}]" if inside else one.name()
    integer = np.zeros(len(cost), dtype=bool)
    integer[[*data["bool_vars_idx"], *data["int_vars_idx"]]] = True
    lower, upper = np.full(len(cost), -np.inf), np.full(len(cost), np.inf)
    for bound, name in ((lower, "lower_bounds"), (upper, "upper_bounds")):
        if data.get(name) is not None:
            bound[:] = data[name]
    binary = data["bool_vars_idx"]
    lower[binary], upper[binary] = np.maximum(lower[binary], 0), np.minimum(upper[binary], 1)
    low, high, entries = list[float | None](), list[float | None](), []
    for matrix, right, equal in (("A", "b", True), ("G", "h", False)):
        if data.get(matrix) is None:
            continue
        one, first = data[matrix].tocoo(), len(low)
        entries += [
            (first + row, column, value)
            for row, column, value in zip(one.row, one.col, one.data, strict=True)
        ]
        low += [float(value) if equal else None for value in data[right]]
        high += [float(value) for value in data[right]]
    is_max = type(problem.objective).__name__ == "Maximize"
    constant = float(np.sum(form.apply_parameters()[1]))

    def place(variable: Any) -> Any:
        first = starts.get(getattr(variable, "id", None))
        if first is None:
            return None
        # in the order of numpy: row by row
        columns = first + np.arange(variable.size).reshape(variable.shape, order="F")
        return columns.ravel().tolist()

    sign = -1.0 if is_max else 1.0
    return ImportedModel(
        names,
        lower.tolist(),
        upper.tolist(),
        integer.tolist(),
        (sign * cost).tolist(),
        low,
        high,
        [(int(row), int(column), float(value)) for row, column, value in entries],
        "max" if is_max else "min",
        sign * constant,
        place,
    )


def from_linopy(model: Any) -> ImportedModel:
    """Read a ``Model`` of linopy, whose objectives have no constant."""
    form = model.matrices
    labels = [int(label) for label in form.vlabels]
    places = {label: place for place, label in enumerate(labels)}
    names = []
    for label in labels:
        name, where = model.variables.get_label_position(label)
        inside = ",".join(str(value) for value in where.values())
        names.append(f"{name}[{inside}]" if inside else str(name))
    if getattr(form, "Q", None) is not None:
        raise refused("linopy", "a quadratic objective")
    matrix = form.A.tocoo()

    def place(variable: Any) -> Any:
        found = getattr(variable, "labels", None)
        if found is None:
            return None
        return [places[int(label)] for label in np.ravel(found.values) if int(label) in places]

    senses = [str(sense)[0] for sense in form.sense]
    return ImportedModel(
        names,
        form.lb.tolist(),
        form.ub.tolist(),
        [kind != "C" for kind in form.vtypes],
        form.c.tolist(),
        [None if sense == "<" else one for sense, one in zip(senses, form.b, strict=True)],
        [None if sense == ">" else one for sense, one in zip(senses, form.b, strict=True)],
        list(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)),
        model.objective.sense,
        0.0,
        place,
    )


def from_mip(model: Any) -> ImportedModel:
    """Read a ``Model`` of python-mip."""
    variables = list(model.vars)
    low, high, entries = list[float | None](), list[float | None](), []
    for row, constraint in enumerate(model.constrs):
        expression, right = constraint.expr, float(constraint.rhs)
        low.append(None if expression.sense == "<" else right)
        high.append(None if expression.sense == ">" else right)
        entries += [(row, one.idx, value) for one, value in expression.expr.items()]
    places = {one.name: place for place, one in enumerate(variables)}

    def place(variable: Any) -> int | None:
        return places.get(variable.name) if type(variable).__module__[:3] == "mip" else None

    return ImportedModel(
        [one.name for one in variables],
        [one.lb for one in variables],
        [one.ub for one in variables],
        [one.var_type != "C" for one in variables],
        [one.obj for one in variables],
        low,
        high,
        entries,
        model.sense.lower(),
        float(model.objective_const),
        place,
    )


def from_highspy(model: Any) -> ImportedModel:
    """Read a ``Highs`` object."""
    import highspy

    lp, kinds = model.getLp(), highspy.HighsVarType
    integrality = list(lp.integrality_) or [kinds.kContinuous] * lp.num_col_
    if not set(integrality) <= {kinds.kContinuous, kinds.kInteger}:
        raise refused("highspy", "semi-continuous columns")
    matrix = lp.a_matrix_
    starts, index, value = (list(one) for one in (matrix.start_, matrix.index_, matrix.value_))
    by_column = matrix.format_ == highspy.MatrixFormat.kColwise
    entries = []
    for major in range(len(starts) - 1):
        for k in range(starts[major], starts[major + 1]):
            row, column = (index[k], major) if by_column else (major, index[k])
            entries.append((int(row), int(column), float(value[k])))
    names = list(lp.col_names_) or [f"column {place}" for place in range(lp.num_col_)]

    def place(variable: Any) -> int | None:
        is_own = type(variable).__module__.partition(".")[0] == "highspy"
        return int(variable.index) if is_own else None

    return ImportedModel(
        names,
        list(lp.col_lower_),
        list(lp.col_upper_),
        [kind == kinds.kInteger for kind in integrality],
        list(lp.col_cost_),
        list(lp.row_lower_),
        list(lp.row_upper_),
        entries,
        "min" if lp.sense_ == highspy.ObjSense.kMinimize else "max",
        float(lp.offset_),
        place,
    )
