"""Formulas in experiment files: arithmetic with names, and nothing else."""

import ast
import operator
from collections.abc import Mapping
from typing import Any

from multiplay.errors import InvalidInput

SIGNS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def is_formula(value: Any) -> bool:
    """Say whether a value is a text that begins with "="."""
    return isinstance(value, str) and value.lstrip().startswith("=")


def evaluate(argument: str, formula: str, names: Mapping[str, Any]) -> Any:
    """Return the value of a formula.

    Examples
    --------
    >>> evaluate("high", "= 1 - 2 * costs", {"costs": 0.2})
    0.6
    """
    known = ", ".join(names) or "none"

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            return SIGNS[type(node.op)](value(node.left), value(node.right))
        raise InvalidInput(
            argument,
            f"a formula of numbers, + - * / // and the names {known}",
            repr(ast.unparse(node)),
            "Use these names only, or add a name to [draw].",
        )

    try:
        tree = ast.parse(formula.lstrip().removeprefix("=").strip(), mode="eval")
    except (SyntaxError, ValueError):  # or a NUL
        raise InvalidInput(
            argument,
            "a formula such as '= 2 * costs'",
            repr(formula),
            "Correct the formula: Python cannot read it.",
        ) from None
    try:
        return value(tree.body)
    except ZeroDivisionError:
        raise InvalidInput(
            argument, "a number", f"{formula!r}, a division by zero", "Divide by another number."
        ) from None
