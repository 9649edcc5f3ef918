"""What an import costs: nothing that is not asked for, and every public name is to be had."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import multiplay as mp

FOREIGN = """
import json, sys
before = set(sys.modules)
{code}
names = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(json.dumps(sorted(names - set(sys.stdlib_module_names) - {{"multiplay"}})))
"""
COMMAND = """
import contextlib, io
from multiplay.__main__ import main
sys.argv = ["multiplay", *{arguments}]
with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
    main()
assert said.getvalue()
"""


def foreign(code: str) -> set[str]:
    """Return the packages of others that some code imports, in a process of its own."""
    command = [sys.executable, "-c", FOREIGN.format(code=code)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_import_brings_nothing_of_others() -> None:
    assert foreign("import multiplay") == set()
    assert "numpy" in foreign("import multiplay; multiplay.GenCTS"), "else the test is blind"


def test_a_compiler_is_imported_when_a_kernel_is_called() -> None:
    begin = "from multiplay import Assignment, GenCTS; s = Assignment(2)"
    assert "numba" not in foreign(begin)
    assert "numba" in foreign(f"{begin}; s.argmin([0.1, 0.2, 0.3, 0.4])")


def test_the_version_is_told_without_loading_anything() -> None:
    assert foreign(COMMAND.format(arguments=["--version"])) == set()
    assert "typer" in foreign(COMMAND.format(arguments=["--help"])), "else the test is blind"


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["study", "--help"], ["study", "list", "--store", "memory://none", "--json"]],
)
def test_help_and_the_list_of_studies_load_no_compiler(arguments: list[str]) -> None:
    assert not {"numba", "scipy", "pandas", "matplotlib"} & foreign(
        COMMAND.format(arguments=arguments)
    )


def test_all_public_names_can_be_imported() -> None:
    assert {"Transport", "GenCTS", "Learner", "__version__"} <= set(mp.__all__)
    assert set(mp.__all__) <= set(dir(mp))
    for name in mp.__all__:
        assert getattr(mp, name) is not None


@pytest.mark.parametrize("name", ["Trasport", "_nothing", "__nothing__"])
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(mp, name)
    assert not hasattr(mp, name)


def test_one_line_in_the_stub_of_a_package_makes_a_public_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stub of the root imports all names of the package, so that it need not be edited."""
    lazy = "from multiplay._support import lazy\n"
    lazy += "__getattr__, __dir__ = lazy.attach(__name__, __file__)\n"
    for name, code in {
        "__init__.py": lazy,
        "__init__.pyi": "from shop.tools import *\nfrom shop.errors import Sold as Sold\n",
        "errors.py": "class Sold(Exception): ...\n",
        "tools/__init__.py": lazy,
        "tools/__init__.pyi": "from shop.tools.saw import Blade as Blade, Saw as Saw\n"
        "from shop.tools.new import (\n    New as New,\n)\n",
        "tools/saw.py": "class Saw: ...\nclass Blade: ...\n",
        "tools/new.py": "class New: ...\n",
    }.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    shop = importlib.import_module("shop")
    assert shop.__all__ == ["Blade", "New", "Saw", "Sold"]
    assert shop.tools.__all__ == ["Blade", "New", "Saw"]
    assert {*shop.__all__} <= {*dir(shop)}
    assert shop.New is shop.tools.New is importlib.import_module("shop.tools.new").New
    assert shop.Sold.__module__ == "shop.errors"
    with pytest.raises(AttributeError, match="Did you mean 'Saw'"):
        _ = shop.Sawe
