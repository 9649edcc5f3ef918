"""Experiment files: what they build, what they refuse, and runs that survive."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multiplay import (
    Budget,
    Corrupted,
    Duplicated,
    GenCTS,
    GenLBINFV,
    Uniform,
    load,
    simulate,
)
from multiplay.experiments import paper
from multiplay.experiments.experiment import build, read, shipped
from multiplay.experiments.formulas import evaluate
from multiplay.simulation.store import Store
from refusal import refused

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
    """Return a small experiment as plain data; a dotted key changes something inside."""
    import tomllib

    data = tomllib.loads(SMALL)
    for key, value in changes.items():
        *tables, last = key.split("__")
        inside = data
        for table in tables:
            inside = inside[table]
        inside[last] = value
    return data


def multiplay(*arguments: object, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "multiplay", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, **options
    )


def test_files_of_the_paper_are_its_experiments() -> None:
    corrupted = read(shipped("corrupted"), trials=3, seed=7)
    costs = paper.costs(3, seed=7)
    assert isinstance(corrupted.environment, Corrupted)
    assert isinstance(corrupted.environment.after, Uniform)
    assert corrupted.environment.at == 2000
    assert np.allclose(corrupted.environment.after.low, 1 - 2 * costs)
    assert corrupted.policies["LBINFV"] == Duplicated(GenLBINFV())
    assert 0.1 <= costs.min() < 0.2 < 0.4 < costs.max() <= 0.5


def test_grids_expand_to_policies() -> None:
    grid = {
        "A": {"type": "GenLBINFV", "epsilon": [0.1, 0.5], "prediction": ["ls", "gd"]},
        "B": {"type": "Duplicated", "policy": {"type": "GenLBINFV", "epsilon": [0.2, 0.3]}},
    }
    policies = build(plain(policies=grid)).policies
    assert policies == {
        "A, epsilon=0.1, prediction=ls": GenLBINFV(epsilon=0.1),
        "A, epsilon=0.1, prediction=gd": GenLBINFV(epsilon=0.1, prediction="gd"),
        "A, epsilon=0.5, prediction=ls": GenLBINFV(epsilon=0.5),
        "A, epsilon=0.5, prediction=gd": GenLBINFV(epsilon=0.5, prediction="gd"),
        "B, epsilon=0.2": Duplicated(GenLBINFV(epsilon=0.2)),
        "B, epsilon=0.3": Duplicated(GenLBINFV(epsilon=0.3)),
    }


def test_the_same_as_in_python() -> None:
    experiment = build(plain(trials=3))
    again = simulate(
        Budget(2, [1, 1, 1]),
        experiment.environment,
        {"GenCTS": GenCTS(), "GenLBINFV": GenLBINFV()},
        horizon=60,
        trials=3,
        seed=3,
        record=5,
    )
    assert (experiment.run().regret.values == again.regret.values).all()


def test_a_class_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "habits.py").write_text(
        "from dataclasses import dataclass\nimport multiplay as mp\n"
        "@dataclass(frozen=True)\nclass Always(mp.GenCTS):\n    times: int = 1\n"
    )
    file = tmp_path / "own.toml"
    file.write_text(SMALL + 'Own = { type = "habits.Always", times = 3 }\n')
    policy: Any = read(file).policies["Own"]
    assert policy.times == 3


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("horizn", {"horizn": 5}),
        ("horizon", {"horizon": 0}),
        ("horizon", {"horizon": [10, 20]}),
        ("trials", {"trials": "many"}),
        ("actions", {"actions": 5}),
        ("actions", {"actions": {"total": 2}}),
        ("actions.type", {"actions__type": "Budgets"}),
        ("actions.cap", {"actions__cap": [1]}),
        ("actions.total", {"actions": {"type": "Budget", "caps": [1, 1]}}),
        ("actions.total", {"actions__total": -2}),
        ("actions", {"actions": {"type": "GenCTS"}}),
        ("environment.type", {"environment__type": "Stochastics"}),
        ("environment.distribution.type", {"environment__distribution__type": "Bernouli"}),
        ("environment.distribution.mean", {"environment__distribution__mean": [0.2, 1.5, 0]}),
        ("environment.distribution.mean", {"environment__distribution__mean": "= 2 * costs"}),
        ("environment.distribution.mean", {"environment__distribution__mean": "= 2 *"}),
        ("environment.distribution.mean", {"environment__distribution__mean": "= open('x')"}),
        ("environment.distribution", {"environment__distribution__mean": [0.5, 0.5]}),
        ("policies", {"policies": {}}),
        ("policies.GenCTS.type", {"policies__GenCTS__type": "GenCT"}),
        ("policies.GenCTS.type", {"policies__GenCTS__type": "no.such.Class"}),
        ("policies.GenLBINFV.epsilon", {"policies__GenLBINFV__epsilon": 2}),
        ("policies.GenLBINFV.horizon", {"horizon": 10}),
        ("policies.GenLBINFV.actions", {"actions": {"type": "Coverage", "budget": 2,
                                                    "weights": [1, 1, 1]}}),
        ("draw.costs", {"draw": {"costs": {"low": 1, "high": 0}}}),
        ("draw.costs.high", {"draw": {"costs": {"low": 1}}}),
        ("draw", {"draw": 3}),
        ("seed", {"seed": -1}),
        ("record", {"record": 0}),
        ("block", {"block": 0}),
    ],
)  # fmt: skip
def test_an_error_names_the_key(key: str, changes: dict[str, Any]) -> None:
    with refused(key):
        build(plain(**changes)).run()


def test_an_error_names_the_nearest_name() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"horizn": 5}, "'horizon'"),
        ({"actions__type": "Budgets"}, "'Budget'"),
        ({"policies__GenLBINFV__epsilom": 0.1}, "'epsilon'"),
    ]
    for changes, near in cases:
        with pytest.raises(ValueError, match=f"Perhaps {near} is meant"):
            build(plain(**changes))


def test_formulas() -> None:
    costs = np.array([0.1, 0.4])
    assert evaluate("x", "= -(1 - 2 * costs) / 2", {"costs": costs}) == pytest.approx([-0.4, -0.1])
    assert evaluate("x", "=7 // 2 + 1", {}) == 4


def test_files_that_are_none(tmp_path: Path) -> None:
    with refused("file"):
        read(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("horizon = = 3")
    with pytest.raises(ValueError, match="line 1"):
        read(tmp_path / "broken.toml")


@pytest.fixture(scope="module")
def undisturbed() -> Any:
    return build(plain()).run().dataset


def stored(folder: Path) -> list[Path]:
    """Return the files of finished blocks; the first record is the configuration."""
    return sorted(folder.glob("record-*"))[1:]


def wait_for_blocks(folder: Path, number: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many blocks are stored, or the process is done."""
    deadline = time.monotonic() + 60
    while len(stored(folder)) < number and process.poll() is None:
        assert time.monotonic() < deadline, "no block was stored in a minute"
        time.sleep(0.002)


def same(one: Any, other: Any) -> bool:
    """Say whether all numbers but the times are the same, bit for bit."""
    names = set(one.data_vars) | set(other.data_vars)
    return all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in names - {"seconds"}
    )


def test_killed_ten_times_and_resumed(tmp_path: Path, undisturbed: Any) -> None:
    """200 blocks; `kill -9` at ten random moments: the result is that of an undisturbed run."""
    file, blocks = tmp_path / "small.toml", tmp_path / "out" / "blocks"
    file.write_text(SMALL)
    command = [sys.executable, "-m", "multiplay", "run", str(file), "--out", str(tmp_path / "out")]
    moments, sizes = random.Random(0), []
    for _ in range(10):
        process = subprocess.Popen(
            [*command, "--jobs", "1", "--resume"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        wait_for_blocks(blocks, len(stored(blocks)) + moments.randint(1, 15), process)
        time.sleep(moments.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.returncode == -signal.SIGKILL, "it must not be done, nor have failed"
        sizes.append(len(stored(blocks)))
    assert 10 <= sizes[-1] < 200
    assert sizes == sorted(sizes)
    assert multiplay(*command[3:], "--resume", folder=tmp_path).returncode == 0
    assert same(load(tmp_path / "out" / "result.nc").dataset, undisturbed)
    assert not blocks.exists()


def test_interrupted_by_hand(tmp_path: Path, undisturbed: Any) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    command = [sys.executable, "-m", "multiplay", "run", "small.toml", "--out", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for_blocks(tmp_path / "out" / "blocks", 1, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("it was done before it could be interrupted")
    assert process.returncode == 130
    assert "--resume" in said
    again = multiplay("run", "small.toml", "--out", "out", folder=tmp_path)
    assert again.returncode == 2
    assert "--resume" in again.stderr
    assert (
        multiplay("run", "small.toml", "--out", "out", "--resume", folder=tmp_path).returncode == 0
    )
    assert same(load(tmp_path / "out" / "result.nc").dataset, undisturbed)


def test_a_changed_file_is_not_resumed(tmp_path: Path) -> None:
    store = tmp_path / "store"
    build(plain(trials=3)).run(store=store)
    with pytest.raises(ValueError, match="horizon was 60 and is 70"):
        build(plain(trials=3, horizon=70)).run(store=store, resume=True)
    with pytest.raises(ValueError, match=r"policies\.GenCTS"):
        build(plain(trials=3, policies={"X": {"type": "GenCTS"}})).run(store=store, resume=True)
    with refused("store"):
        build(plain(trials=3)).run(store=store)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, keep = build(plain(trials=4)), Store.keep
    kept: list[Any] = []

    def until_full(self: Store, *block: Any) -> None:
        if len(kept) == 3:
            raise OSError(28, "No space left on device")
        kept.append(block)
        keep(self, *block)

    monkeypatch.setattr(Store, "keep", until_full)
    with pytest.raises(OSError, match="No space"):
        experiment.run(store=tmp_path / "store")
    monkeypatch.setattr(Store, "keep", keep)
    assert len(stored(tmp_path / "store")) == 3
    resumed = experiment.run(store=tmp_path / "store", resume=True)
    assert same(resumed.dataset, experiment.run().dataset)


def test_damaged_blocks_are_computed_again(tmp_path: Path) -> None:
    experiment = build(plain(trials=4))
    whole = experiment.run(store=tmp_path / "store")
    damaged = stored(tmp_path / "store")[2]
    damaged.write_bytes(damaged.read_bytes()[:100])
    assert same(experiment.run(store=tmp_path / "store", resume=True).dataset, whole.dataset)


def test_blocks_do_not_change_the_numbers(undisturbed: Any) -> None:
    data = plain()
    del data["block"]
    assert same(build(data).run(jobs=2).dataset, undisturbed)


def test_run_on_the_command_line(tmp_path: Path) -> None:
    example = multiplay("run", "--print-example", folder=tmp_path)
    (tmp_path / "ads.toml").write_text(example.stdout.replace("2_000", "60"))
    done = multiplay("run", "ads.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "reward lost" in done.stdout
    files = {path.name for path in (tmp_path / "results" / "ads").iterdir()}
    assert files == {"result.nc", "regret.png", "regret.svg"}
    again = multiplay("run", "ads.toml", folder=tmp_path)
    assert again.returncode == 2
    assert "multiplay show" in again.stderr
    assert multiplay("run", folder=tmp_path).returncode == 2
    configuration = load(tmp_path / "results" / "ads" / "result.nc").configuration
    assert json.loads(json.dumps(configuration)) == configuration
    assert configuration["horizon"] == 60
