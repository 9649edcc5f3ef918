"""Importers of the models of OR-Tools: linear solver, model builder, MathOpt and CP-SAT."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiplay.actions.importers.libraries import refused
from multiplay.actions.importers.selection import ImportedModel

LARGEST = 2**62  # CP-SAT writes "no limit" as the largest integers
LITERALS = ("bool_or", "bool_and", "at_most_one", "exactly_one")
OTHER_KINDS = [
    *("bool_xor", "all_diff", "element", "circuit", "routes", "table", "automaton", "inverse"),
    *("reservoir", "interval", "no_overlap", "no_overlap_2d", "cumulative", "int_div", "int_mod"),
    *("int_prod", "lin_max", "dummy_constraint"),
]
BEYOND_LINEAR = [
    *("quadratic_constraints", "second_order_cone_constraints", "sos1_constraints"),
    *("sos2_constraints", "indicator_constraints", "auxiliary_objectives"),
]


def from_ortools(model: Any) -> ImportedModel:
    """Read a model of one of the four interfaces, by what it offers."""
    if hasattr(model, "ExportModelToProto"):
        from ortools.linear_solver import linear_solver_pb2

        proto = linear_solver_pb2.MPModelProto()
        model.ExportModelToProto(proto)
        return _linear_solver(proto, lambda variable: variable.index())
    if hasattr(model, "export_to_proto"):
        return _linear_solver(model.export_to_proto(), lambda variable: variable.index)
    if hasattr(model, "export_model"):
        return _math_opt(model.export_model())
    return _cp_sat(model.proto)


def _place(index: Any, names: list[str]) -> Any:
    """Return a function for the place of a variable, by its index and name."""

    def place(variable: Any) -> int | None:
        if type(variable).__module__.partition(".")[0] != "ortools":
            return None
        found = int(index(variable))
        name = variable.name() if callable(variable.name) else variable.name
        # a variable of another model has an index too
        is_own = 0 <= found < len(names) and names[found] == (name or names[found])
        return found if is_own else None

    return place


def _names(names: list[str]) -> list[str]:
    return [name or f"column {place}" for place, name in enumerate(names)]


def _linear_solver(proto: Any, index: Any) -> ImportedModel:
    if len(proto.general_constraint) or len(proto.quadratic_objective.coefficient):
        raise refused("OR-Tools", "general constraints or a quadratic objective")
    variables, entries = list(proto.variable), []
    for row, constraint in enumerate(proto.constraint):
        pairs = zip(constraint.var_index, constraint.coefficient, strict=True)
        entries += [(row, column, value) for column, value in pairs]
    names = _names([one.name for one in variables])
    return ImportedModel(
        names,
        [one.lower_bound for one in variables],
        [one.upper_bound for one in variables],
        [one.is_integer for one in variables],
        [one.objective_coefficient for one in variables],
        [one.lower_bound for one in proto.constraint],
        [one.upper_bound for one in proto.constraint],
        entries,
        "max" if proto.maximize else "min",
        proto.objective_offset,
        _place(index, names),
    )


def _math_opt(proto: Any) -> ImportedModel:
    objective = proto.objective
    found = [name for name in BEYOND_LINEAR if len(getattr(proto, name))]
    if found or len(objective.quadratic_coefficients.row_ids):
        raise refused("MathOpt", (found or ["a quadratic objective"])[0].replace("_", " "))
    variables, rows = proto.variables, proto.linear_constraints
    column = {id: place for place, id in enumerate(variables.ids)}
    row = {id: place for place, id in enumerate(rows.ids)}
    cost = np.zeros(len(column))
    terms = objective.linear_coefficients
    for id, value in zip(terms.ids, terms.values, strict=True):
        cost[column[id]] = value
    matrix = proto.linear_constraint_matrix
    triples = zip(matrix.row_ids, matrix.column_ids, matrix.coefficients, strict=True)
    names = list(variables.names) or [""] * len(column)

    def place(variable: Any) -> int | None:
        is_own = type(variable).__module__.partition(".")[0] == "ortools"
        return column.get(variable.id) if is_own else None

    return ImportedModel(
        _names(names),
        list(variables.lower_bounds),
        list(variables.upper_bounds),
        list(variables.integers),
        cost.tolist(),
        list(rows.lower_bounds),
        list(rows.upper_bounds),
        [(row[r], column[c], value) for r, c, value in triples],
        "max" if objective.maximize else "min",
        objective.offset,
        place,
    )


class _CpRows:
    """The rows of a CP-SAT model; a literal -k - 1 is 1 minus column k."""

    def __init__(self, lower: list[float], upper: list[float]) -> None:
        self.lower, self.upper = lower, upper
        self.low, self.high = list[float | None](), list[float | None]()
        self.entries: list[tuple[int, int, float]] = []

    def add(
        self, terms: list[tuple[int, float]], low: float, high: float, literals: list[int]
    ) -> None:
        """Add low <= sum <= high, which holds only where all literals are true.

        Where one is false, big-M terms that follow from the bounds switch the row off.
        """
        least = sum(v * (self.lower[k] if v > 0 else self.upper[k]) for k, v in terms)
        most = sum(v * (self.upper[k] if v > 0 else self.lower[k]) for k, v in terms)
        for end, bound, sign in ((high, most, 1.0), (low, least, -1.0)):
            if abs(end) >= LARGEST or sign * (bound - end) <= 0:
                continue  # the bounds imply it
            if literals and abs(bound) >= LARGEST:
                raise refused("CP-SAT", "an enforced constraint on integers without bounds")
            # sum + sign M (sum of literals) <= end + sign M (number of literals)
            M, right = bound - end, end
            row = list(terms)
            for literal in literals:
                k, positive = (literal, True) if literal >= 0 else (-literal - 1, False)
                row.append((k, M if positive else -M))
                right += M if positive else 0.0
            self.low.append(None if sign > 0 else right)
            self.high.append(right if sign > 0 else None)
            place = len(self.low) - 1
            self.entries += [(place, k, float(v)) for k, v in row]

    def count(self, literals: list[int], low: float, high: float, where: list[int]) -> None:
        """Add a limit on the number of true literals."""
        terms = [(k, 1.0) if k >= 0 else (-k - 1, -1.0) for k in literals]
        negative = sum(k < 0 for k in literals)
        self.add(terms, low - negative, high - negative, where)


def _cp_sat(proto: Any) -> ImportedModel:
    domains = [list(one.domain) for one in proto.variables]
    if any(len(domain) != 2 for domain in domains):
        raise refused("CP-SAT", "a domain with holes")
    lower, upper = ([float(domain[k]) for domain in domains] for k in (0, 1))
    rows = _CpRows(lower, upper)
    for constraint in proto.constraints:
        where = list(constraint.enforcement_literal)
        kind = _kind(constraint)
        if kind == "linear":
            linear = constraint.linear
            domain = list(linear.domain)
            if len(domain) != 2:
                raise refused("CP-SAT", "a linear constraint with holes")
            terms = [(k, float(v)) for k, v in zip(linear.vars, linear.coeffs, strict=True)]
            rows.add(_columns_of(terms), float(domain[0]), float(domain[1]), where)
        elif kind in LITERALS:
            literals = list(getattr(constraint, kind).literals)
            low = {"at_most_one": -np.inf, "bool_and": float(len(literals))}.get(kind, 1.0)
            high = 1.0 if kind in ("at_most_one", "exactly_one") else np.inf
            rows.count(literals, low, high, where)
        elif kind:
            raise refused("CP-SAT", f"a constraint of type {kind}")
    cost, constant, sense = _cp_objective(proto, len(domains))
    names = _names([one.name for one in proto.variables])
    return ImportedModel(
        names,
        [None if one <= -LARGEST else one for one in lower],
        [None if one >= LARGEST else one for one in upper],
        [True] * len(domains),
        cost,
        rows.low,
        rows.high,
        rows.entries,
        sense,
        constant,
        _place(lambda variable: variable.index, names),
    )


def _columns_of(terms: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Refuse negated references, which linear constraints of models do not have."""
    if any(k < 0 for k, _ in terms):
        raise refused("CP-SAT", "a negated variable in a linear constraint")
    return terms


def _kind(constraint: Any) -> str:
    """Return the type of a constraint; "" if it is empty."""
    for kind in ("linear", *LITERALS, *OTHER_KINDS):
        has = getattr(constraint, f"has_{kind}", None)
        try:
            present = constraint.HasField(kind) if has is None else has()
        except (AttributeError, ValueError):
            continue
        if present:
            return kind
    return ""


def _cp_objective(proto: Any, columns: int) -> tuple[list[float], float, str]:
    cost = np.zeros(columns)
    floating, objective = proto.floating_point_objective, proto.objective
    if len(floating.vars):
        for k, value in zip(floating.vars, floating.coeffs, strict=True):
            cost[k] += value
        return cost.tolist(), float(floating.offset), "max" if floating.maximize else "min"
    factor = objective.scaling_factor or 1.0  # negative where it is maximised
    for k, value in zip(objective.vars, objective.coeffs, strict=True):
        cost[k if k >= 0 else -k - 1] += factor * (value if k >= 0 else -value)
    return cost.tolist(), factor * objective.offset, "max" if factor < 0 else "min"
