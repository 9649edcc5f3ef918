"""Modules and names that have moved: the old ones work for one more version, with a warning."""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# From where a thing used to be to where it is now; removed in the next version.
MODULES = {
    "arrays": ("types", "checks"),
    "config": ("serialization",),
    "experiment": ("experiments.experiment",),
    "files": ("atomic_files",),
    "formulas": ("experiments.formulas",),
    "graph": ("hull.graph", "actions.arcs"),
    "paper": ("experiments.paper",),
    "policies.habits": ("policies.averages", "policies.baselines"),
    "simulation.comparison": ("results.comparison",),
    "simulation.intervals": ("results.intervals",),
    "simulation.listing": ("experiments.toml_writer",),
    "simulation.plots": ("results.plots",),
    "simulation.report": ("reports.page",),
    "simulation.results": ("results.result",),
    "simulation.tables": ("reports.tables", "results.display"),
}
NAMES = {"config.to_plain": "describe"}  # those that were renamed as well
ROOT = __name__.partition(".")[0]


class Moved:
    """Finds an old module by its name: it has everything that the new ones have."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for old modules only."""
        root, _, below = name.partition(".")
        if root != ROOT or below not in MODULES:
            return None
        return ModuleSpec(name, Moved())  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make a module that looks its names up in the new ones."""
        _, _, below = spec.name.partition(".")
        homes = [f"{ROOT}.{home}" for home in MODULES[below]]
        warn(f"{spec.name} has moved to {' and '.join(homes)}", stacklevel=2)
        module = ModuleType(spec.name)

        def find(name: str) -> Any:
            now = NAMES.get(f"{below}.{name}", name)
            for home in map(importlib.import_module, homes):
                if hasattr(home, now):
                    return getattr(home, now)
            raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")

        module.__getattr__ = find  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to be run."""


def warn(what: str, stacklevel: int = 2) -> None:
    """Warn that something will be gone."""
    warnings.warn(
        f"{what}. The old name works in this version only.",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def install() -> None:
    """Let old modules be found; called once, when multiplay is imported."""
    if not any(finder is Moved for finder in sys.meta_path):
        sys.meta_path.append(Moved)
