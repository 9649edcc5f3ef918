"""Builder of experiment files: classes by name, user subclasses, and formulas."""

import ast
import importlib
import inspect
import operator
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import multiplay.actions
import multiplay.constraints
import multiplay.environments
import multiplay.policies
from multiplay._support.builder import Builder, check_keys, classes_of, wrong_class
from multiplay._support.user_modules import ModuleFolder, name_in_folder
from multiplay.actions import ActionSet, Model, Rule
from multiplay.constraints import Constraint
from multiplay.environments import Distribution, Environment
from multiplay.environments.contexts import Contexts
from multiplay.environments.oblivious import Oblivious
from multiplay.errors import InvalidInput
from multiplay.policies import Policy
from multiplay.policies.index import PARTS_OF_POLICIES

MODULES = (
    multiplay.actions,
    multiplay.constraints,
    multiplay.environments,
    multiplay.policies,
)
FILE = "file"  # of a Model
BASES: tuple[type, ...] = (
    ActionSet,
    Environment,
    Distribution,
    Oblivious,
    Contexts,
    Policy,
    Constraint,
    Rule,
    *PARTS_OF_POLICIES,
)
SIGNS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


class FileBuilder(Builder):
    """Builds the classes of multiplay by their names, and user subclasses as "module.Class".

    A module beside the file comes before an installed one. A class is checked to be a subclass of
    ours before anything is built: ``type = "subprocess.Popen"`` is refused. A ``Model`` may be
    read from a file: ``type = "Model"``, ``file``, ``arms``, ``known`` and ``sense``.
    """

    def __init__(self, folder: ModuleFolder, leaf: Callable[[str, Any], Any]) -> None:
        classes = classes_of(*MODULES)
        super().__init__({name: c for name, c in classes.items() if issubclass(c, BASES)}, leaf)
        self.folder = folder

    def build(self, where: str, plain: Any, wanted: type = object) -> Any:
        """Build plain data; a ``Model`` with a ``file`` is read from it."""
        if isinstance(plain, dict) and plain.get("type") == "Model" and FILE in plain:
            return self._model(where, plain, wanted)
        return super().build(where, plain, wanted)

    def _model(self, where: str, plain: dict[str, Any], wanted: type) -> Model:
        """Return the model of an MPS file; its path is relative to the experiment file."""
        if not issubclass(Model, wanted):
            raise wrong_class(where, "Model", wanted)
        check_keys(where, plain, ("type", FILE, "arms", "known", "sense"), (FILE, "arms"))
        if not isinstance(plain[FILE], str):
            hint = 'Write file = "plan.mps".'
            raise InvalidInput(f"{where}.{FILE}", "the path of a file", repr(plain[FILE]), hint)
        settings = {key: value for key, value in plain.items() if key not in ("type", FILE)}
        try:
            return Model.of(Path(self.folder.folder, plain[FILE]), **settings)
        except InvalidInput as error:
            key = FILE if error.argument == "thing" else error.argument
            raise InvalidInput(f"{where}.{key}", error.expected, error.got, error.hint) from None

    def find(self, where: str, name: Any) -> type:
        """Return a class of multiplay by its name, or a user class as "module.Class"."""
        if not isinstance(name, str) or "." not in name:
            return super().find(where, name)
        module, _, attribute = name.rpartition(".")
        kind = getattr(self._module(where, module), attribute, None)
        if kind is None:
            hint = "Check the spelling, or write the class."
            raise InvalidInput(where, f"a class of the module {module}", repr(attribute), hint)
        if not isinstance(kind, type) or not issubclass(kind, BASES):
            bases = ", ".join(base.__name__ for base in BASES)
            hint = "Derive your class from one of them."
            raise InvalidInput(where, f"a subclass of {bases}", f"{name}, {kind!r}", hint)
        if inspect.isabstract(kind):
            abstract: frozenset[str] = vars(kind)["__abstractmethods__"]
            missing = ", ".join(sorted(abstract))
            hint = f"Write {missing} in the class, or name a subclass that has them."
            raise InvalidInput(where, "a class without abstract methods", name, hint)
        return kind

    def _module(self, where: str, name: str) -> ModuleType:
        try:
            return (
                self.folder.load(name) if self.folder.has(name) else importlib.import_module(name)
            )
        except SyntaxError as error:
            line = "" if error.lineno is None else f", line {error.lineno}"
            raise InvalidInput(
                where,
                "a module that Python can read",
                f"{error.filename or name}{line} ({error.msg})",
                "Correct this line.",
            ) from None
        except ModuleNotFoundError as error:
            missing = name_in_folder(error.name or name)
            raise InvalidInput(
                where,
                "a module that can be imported",
                f"{name} ({self._line_of(error)}no module named {missing})",
                f"Put {missing.replace('.', '/')}.py beside the file, or install its package.",
            ) from None
        except Exception as error:  # a module may raise anything when it is imported
            raise InvalidInput(
                where,
                "a module that can be imported",
                f"{name} ({self._line_of(error)}{type(error).__name__}: {error})",
                "Correct the module.",
            ) from error

    def _line_of(self, error: Exception) -> str:
        """Return the line of a module beside the file that raised the error, or ""."""
        paths = {source.path for source in self.folder.sources.values()}
        lines = [
            f"{Path(frame.filename).name}, line {frame.lineno}, "
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename in paths
        ]
        return lines[-1] if lines else ""


# ---------------------------------------------------------------- formulas


def is_formula(value: Any) -> bool:
    """Return whether a value is text that begins with "="."""
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
            "Use these names only, or define the name in [draw].",
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
            argument,
            "a number",
            f"{formula!r}, a division by zero",
            "Divide by a number that is not 0.",
        ) from None
