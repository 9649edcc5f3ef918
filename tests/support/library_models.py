"""One model in ten libraries: three depots with opening costs, four customers, whole units.

Run as a program, it prints what ``Model.of`` read of the models of some libraries.
"""

import json
import os
import sys
import warnings
from typing import Any

import numpy as np

DEPOTS = ["Le Mans", "Lyon", "Nancy"]
CUSTOMERS = ["north", "south-east", "coast", "west"]
ROOM, DEMAND = 6, [3, 2, 4, 2]
OPENING = [1.0, 1.5, 1.2]
COST = [[0.1, 0.15, 0.2, 0.25], [0.2, 0.25, 0.3, 0.35], [0.3, 0.35, 0.4, 0.45]]
CONSTANT = 7.0
LEAST = 11.9  # the optimum of all libraries' own solvers, with the constant
LANES = [(depot, customer) for depot in DEPOTS for customer in CUSTOMERS]

Made = tuple[Any, Any, str]  # the model, its lanes, and the pattern of their names


def cost(depot: str, customer: str) -> float:
    """Return the cost of a unit on a lane."""
    return COST[DEPOTS.index(depot)][CUSTOMERS.index(customer)]


def objective(x: Any, y: Any, times: float = 1.0) -> Any:
    """Return the objective, in the expressions of a library."""
    lanes = sum(round(times * cost(*lane), 6) * x[lane] for lane in LANES)
    opening = sum(round(times * one, 6) * y[d] for d, one in zip(DEPOTS, OPENING, strict=True))
    return lanes + opening + times * CONSTANT


def rows(x: Any, y: Any) -> list[Any]:
    """Return the constraints, in the expressions of a library."""
    demand = zip(CUSTOMERS, DEMAND, strict=True)
    served = [sum(x[depot, customer] for depot in DEPOTS) == units for customer, units in demand]
    sent = {depot: sum(x[depot, customer] for customer in CUSTOMERS) for depot in DEPOTS}
    return served + [sent[depot] <= ROOM * y[depot] for depot in DEPOTS]


def pulp() -> Made:
    import pulp

    problem = pulp.LpProblem("depots", pulp.LpMinimize)
    named = [(lane, f"x_{lane[0]}_{lane[1]}") for lane in LANES]
    with warnings.catch_warnings():  # of calls that PuLP 4 will no longer have
        warnings.simplefilter("ignore", DeprecationWarning)
        x = {lane: pulp.LpVariable(name, 0, ROOM, "Integer") for lane, name in named}
        y = {depot: pulp.LpVariable(f"y_{depot}", cat="Binary") for depot in DEPOTS}
        problem += objective(x, y)
        for row in rows(x, y):
            problem += row
    return problem, x, "x_*"


def pyomo() -> Made:
    from pyomo import environ as pe

    model = pe.ConcreteModel()
    model.x = pe.Var(DEPOTS, CUSTOMERS, domain=pe.NonNegativeIntegers)
    model.y = pe.Var(DEPOTS, domain=pe.Binary)
    model.rows = pe.ConstraintList()
    for row in rows(model.x, model.y):
        model.rows.add(row)
    model.cost = pe.Objective(expr=objective(model.x, model.y))
    return model, model.x, "x[*]"


def cvxpy() -> Made:
    import cvxpy as cp

    x = cp.Variable((3, 4), integer=True, name="x")
    y = cp.Variable(3, boolean=True, name="y")
    constraints = [x >= 0, cp.sum(x, axis=0) == np.array(DEMAND), cp.sum(x, axis=1) <= ROOM * y]
    total = cp.sum(cp.multiply(np.array(COST), x)) + np.array(OPENING) @ y + CONSTANT
    return cp.Problem(cp.Minimize(total), constraints), x, "x[*]"


def linopy() -> Made:
    import linopy
    import pandas as pd
    import xarray as xr

    depots, customers = pd.Index(DEPOTS, name="depot"), pd.Index(CUSTOMERS, name="customer")
    model = linopy.Model()
    x = model.add_variables(lower=0, coords=[depots, customers], name="x", integer=True)
    y = model.add_variables(binary=True, coords=[depots], name="y")
    model.add_constraints(x.sum("depot") == pd.Series(DEMAND, index=customers), name="demand")
    model.add_constraints(x.sum("customer") - ROOM * y <= 0, name="room")
    of_lanes = xr.DataArray(np.array(COST), coords=[depots, customers])
    of_depots = xr.DataArray(np.array(OPENING), coords=[depots])
    model.add_objective((x * of_lanes).sum() + (y * of_depots).sum())
    return model, x, "x[*]"


def _named(new_lane: Any, new_depot: Any) -> tuple[Any, Any]:
    x = {lane: new_lane(f"x[{lane[0]},{lane[1]}]") for lane in LANES}
    return x, {depot: new_depot(f"y[{depot}]") for depot in DEPOTS}


def mip() -> Made:
    import mip

    model = mip.Model()
    x, y = _named(
        lambda name: model.add_var(name, var_type=mip.INTEGER, ub=ROOM),
        lambda name: model.add_var(name, var_type=mip.BINARY),
    )
    for row in rows(x, y):
        model += row
    model.objective = mip.minimize(objective(x, y))
    return model, x, "x[*]"


def highspy() -> Made:
    import highspy

    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    x, y = _named(
        lambda name: model.addIntegral(lb=0, ub=ROOM, name=name),
        lambda name: model.addBinary(name=name),
    )
    for row in rows(x, y):
        model.addConstr(row)
    model.minimize(objective(x, y))
    return model, x, "x[*]"


def pywraplp() -> Made:
    from ortools.linear_solver import pywraplp

    model = pywraplp.Solver.CreateSolver("SCIP")
    x, y = _named(lambda name: model.IntVar(0, ROOM, name), model.BoolVar)
    for row in rows(x, y):
        model.Add(row)
    model.Minimize(objective(x, y))
    return model, x, "x[*]"


def model_builder() -> Made:
    from ortools.linear_solver.python import model_builder

    model = model_builder.Model()
    x, y = _named(lambda name: model.new_int_var(0, ROOM, name), model.new_bool_var)
    for row in rows(x, y):
        model.add(row)
    model.minimize(objective(x, y))
    return model, x, "x[*]"


def mathopt() -> Made:
    from ortools.math_opt.python import mathopt

    model = mathopt.Model()
    x, y = _named(
        lambda name: model.add_integer_variable(lb=0, ub=ROOM, name=name),
        lambda name: model.add_binary_variable(name=name),
    )
    for row in rows(x, y):
        model.add_linear_constraint(row)
    model.minimize(objective(x, y))
    return model, x, "x[*]"


def cp_sat() -> Made:
    """The same in cents; a depot that is not open sends nothing, by enforcement."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x, y = _named(lambda name: model.new_int_var(0, ROOM, name), model.new_bool_var)
    for row in rows(x, dict.fromkeys(DEPOTS, 1)):
        model.add(row)
    for depot in DEPOTS:
        sent = sum(x[depot, customer] for customer in CUSTOMERS)
        model.add(sent == 0).only_enforce_if(~y[depot])
    cents = {lane: round(100 * cost(*lane)) for lane in LANES}
    opening = zip(DEPOTS, OPENING, strict=True)
    total = sum(cents[lane] * x[lane] for lane in LANES)
    model.minimize(total + sum(round(100 * one) * y[d] for d, one in opening) + 700)
    return model, x, "x[*]"


def read(library: str) -> dict[str, Any]:
    """Return what ``Model.of`` makes of the model of a library."""
    from multiplay import InvalidInput, Model

    thing, lanes, pattern = globals()[library]()
    model, same = (Model.of(thing, arms=arms, known="all") for arms in (lanes, pattern))
    refused = ""
    try:
        Model.of(thing, arms=lanes)
    except InvalidInput as error:
        refused = str(error)
    zero = np.zeros(model.d)
    return {
        "least": float(model.value(model.best(zero), zero)) + model.constant,
        "names": list(model.names),
        "same": sorted(same.names) == sorted(model.names),
        "n": model.n.tolist(),
        "M": model.M,
        "refused": refused,
    }


if __name__ == "__main__":
    print(json.dumps({library: read(library) for library in sys.argv[1:]}), flush=True)
    os._exit(0)  # python-mip's solver ends some processes with an illegal instruction
