"""Small experiment files with modules of the user, and the files of their runs."""

import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from commands import Forked
from effort import TIME_LIMIT

SMALL = """
horizon = 60
trials = 100
seed = 3
block = 1
record = 5

[actions]
type = "Budget"
total = 2
caps = [1, 1, 1]

[environment]
type = "Stochastic"
distribution = { type = "Bernoulli", mean = [0.2, 0.5, 0.7] }

[policies]
GenCTS = { type = "GenCTS" }
GenLBINFV = { type = "GenLBINFV" }
"""


def plain(**changes: Any) -> dict[str, Any]:
    """Return a small experiment as plain data; ``a__b=value`` changes key b of table a."""
    data = tomllib.loads(SMALL)
    for key, value in changes.items():
        *tables, last = key.split("__")
        inside = data
        for table in tables:
            inside = inside[table]
        inside[last] = value
    return data


POLICY_MODULE = """
from dataclasses import dataclass
import helpers
import multiplay as mp
from pack.deep import Deep

@dataclass(frozen=True)
class Always(mp.GenCTS):
    times: int = helpers.TIMES

    def choose(self, actions, state, rng):
        import late
        return late.same(super().choose(actions, state, rng))
"""

USER_MODULES = {
    "habits.py": POLICY_MODULE,
    "helpers.py": "TIMES = 4\n",
    "late.py": "def same(play):\n    return play\n",
    "pack/__init__.py": "",
    "pack/deep.py": "from . import other\nimport multiplay as mp\nclass Deep(mp.GenCTS): pass\n",
    "pack/other.py": "import helpers\nassert helpers.TIMES == 4\n",
    "bare/below.py": "import multiplay as mp\nclass Below(mp.Bernoulli): pass\n",
}

OWN = SMALL.replace("trials = 100", "trials = 4").replace('"Bernoulli"', '"bare.below.Below"')
OWN += """
Own = { type = "habits.Always", times = 3 }
Deep = { type = "pack.deep.Deep" }
"""


def written(folder: Path, experiment: str = OWN, files: dict[str, str] = USER_MODULES) -> Path:
    """Write an experiment and its modules to a folder, and return its path."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "own.toml").write_text(experiment)
    return folder / "own.toml"


def stored(folder: Path) -> list[Path]:
    """Return the files of finished blocks; the first record is the configuration."""
    return sorted(folder.glob("record-*"))[1:]


def wait_for_blocks(folder: Path, number: int, process: subprocess.Popen[str] | Forked) -> None:
    """Wait until ``number`` blocks are stored, or the process has ended."""
    deadline = time.monotonic() + TIME_LIMIT
    while len(stored(folder)) < number and process.poll() is None:
        assert time.monotonic() < deadline, "no block is stored"
        time.sleep(0.002)


def same(one: Any, other: Any) -> bool:
    """Return whether all values except the times are equal bit for bit."""
    names = set(one.data_vars) | set(other.data_vars)
    return all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in names - {"seconds"}
    )
