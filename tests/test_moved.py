"""Old names of modules work for one more version, with a warning."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import multiplay
from multiplay.moved import MODULES, NAMES

# What people could import from these modules in version 0.2.0.
PUBLIC = {
    "arrays": "Arrays BoolArray FloatArray IntArray check_instance is_integer is_list is_number "
    "numbers positive_integer unit_interval whole_numbers with_last_axis",
    "config": "settings to_plain",
    "experiment": "Experiment build read shipped",
    "files": "writable_folder write_text write_whole",
    "formulas": "evaluate is_formula",
    "graph": "Arcs Graph Node bipartite",
    "paper": "PLANS POLICIES costs environments experiment lower_bounds run verdicts",
    "policies.habits": "Averages EpsilonGreedy FollowTheLeader RandomAction averages random_costs "
    "unseen_first",
    "simulation.comparison": "compare holm simultaneous",
    "simulation.intervals": "Interval interval p_value standard_error student",
    "simulation.listing": "experiment toml",
    "simulation.plots": "Bound plot_regret style",
    "simulation.report": "html_table report section",
    "simulation.results": "MEASURES QUANTITIES Result load",
    "simulation.tables": "Table comparisons quantities settings suboptimal_plays summary",
}


@pytest.fixture(params=MODULES)
def old_name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the name of an old module as if nobody had imported it before."""
    below: str = request.param
    yield below
    forget(below)


def forget(below: str) -> None:
    sys.modules.pop(f"multiplay.{below}", None)
    parent, _, name = f"multiplay.{below}".rpartition(".")
    vars(sys.modules[parent]).pop(name, None)


def imported(below: str) -> ModuleType:
    forget(below)
    with pytest.warns(DeprecationWarning, match=f"multiplay.{below} has moved to multiplay."):
        return importlib.import_module(f"multiplay.{below}")


def test_an_old_module_has_what_it_had(old_name: str) -> None:
    module = imported(old_name)
    homes = [importlib.import_module(f"multiplay.{home}") for home in MODULES[old_name]]
    for name in PUBLIC[old_name].split():
        now = NAMES.get(f"{old_name}.{name}", name)
        home = next(home for home in homes if hasattr(home, now))
        assert getattr(module, name) is getattr(home, now)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


def test_every_old_module_is_listed_here() -> None:
    assert PUBLIC.keys() == MODULES.keys()


def test_old_modules_can_be_imported_from_their_packages() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from multiplay import config, paper\n"
        "from multiplay.results.result import Result\n"
        "import multiplay.policies.habits as habits, multiplay as mp\n"
        "assert Result is mp.Result and habits.RandomAction is mp.RandomAction\n"
        "assert config.to_plain(mp.GenCTS()) == {'type': 'GenCTS'}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_never_was_is_not_found() -> None:
    for name in ("multiplay.nowhere", "multiplay.simulation.nowhere"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_a_play_that_waits_was_called_asked() -> None:
    with pytest.warns(DeprecationWarning, match="PendingPlay"):
        old = multiplay.learner.Asked
    assert old is multiplay.PendingPlay
    with pytest.raises(AttributeError, match="nothing"):
        _ = multiplay.learner.nothing
