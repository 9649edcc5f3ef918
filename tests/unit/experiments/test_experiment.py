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
from commands import MULTIPLAY, Forked, forked, fresh
from effort import TIME_LIMIT
from experiment_files import SMALL, USER_MODULES, plain, same, stored, wait_for_blocks, written
from refusal import refused

from multiplay import (
    Adversarial,
    Budget,
    Corrupted,
    Duplicated,
    GenCTS,
    GenLBINFV,
    Model,
    Uniform,
    load,
    simulate,
)
from multiplay.experiments import paper
from multiplay.experiments.experiment import build, read, shipped
from multiplay.experiments.file_builder import evaluate
from multiplay.simulation.store import Checkpoints


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


DEPOTS = """NAME depots
ROWS
 N  cost
 E  demand
 L  room
COLUMNS
    M1        'MARKER'    'INTORG'
    x[north]  demand  1   room  1
    x[south]  demand  1
    open  cost  0.5   room  -4
    M2        'MARKER'    'INTEND'
RHS
    RHS  demand  4
BOUNDS
 UP BND x[north] 4
 UP BND x[south] 4
 BV BND open
ENDATA
"""


def test_a_model_is_read_from_a_file_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "plan.mps").write_text(DEPOTS)
    table = {"type": "Model", "file": "plan.mps", "arms": "x[*]", "known": "helpers"}
    world = {"type": "Stochastic", "distribution": {"type": "Bernoulli", "mean": [0.1, 0.5]}}
    rest = {"environment": world, "policies": {"GenCTS": {"type": "GenCTS"}}, "record": 5}
    settings = {"horizon": 12, "trials": 2, "seed": 3, **rest}
    experiment = build({"actions": table, **settings}, tmp_path)
    assert experiment.actions.names == ("x[north]", "x[south]")
    assert experiment.actions.known([[4, 0], [0, 4]]).tolist() == [0.5, 0.0]
    actions = Model.of(tmp_path / "plan.mps", arms="x[*]", known="helpers")
    of_python = experiment.environment, {"GenCTS": GenCTS()}, 12, 2, 3
    again = simulate(actions, *of_python, record=5)
    assert (experiment.run().regret.values == again.regret.values).all()
    bad: list[tuple[dict[str, Any], str]] = [
        ({"file": "none.mps"}, "actions.file"),
        ({"file": 3}, "actions.file"),
        ({"arms": "y[*]"}, "actions.arms"),
        ({"known": "some"}, "actions.known"),
        ({"columns": {}}, "actions.columns"),
    ]
    for changes, key in bad:
        with refused(key):
            build({"actions": table | changes, **settings}, tmp_path)
    with refused("environment.type"):
        build({"actions": table, **settings, "environment": table}, tmp_path)


def test_classes_beside_the_file_are_loaded_by_their_place(tmp_path: Path) -> None:
    """Packages, folders and neighbours too; nothing else can see these modules."""
    path, loaded = list(sys.path), set(sys.modules)
    experiment = read(written(tmp_path))
    policy: Any = experiment.policies["Own"]
    assert policy.times == 3
    assert type(policy)().times == 4
    assert type(experiment.policies["Deep"]).__name__ == "Deep"
    assert sys.path == path
    names = {Path(name).stem for name in USER_MODULES} | {"pack", "bare"}
    assert not names & (set(sys.modules) - loaded)


def test_own_classes_run_in_other_processes_and_are_named_as_in_the_file(tmp_path: Path) -> None:
    experiment = read(written(tmp_path))
    alone, together = experiment.run(), experiment.run(jobs=2)
    assert same(alone.dataset, together.dataset)
    assert (alone.final("Own") == alone.final("GenCTS")).all()
    plain = alone.configuration
    own = plain["policies"]["Own"]
    assert (own["type"], own["window"], own["times"]) == ("habits.Always", None, 3)
    assert plain["environment"]["distribution"]["type"] == "bare.below.Below"


def test_two_folders_may_have_modules_of_one_name(tmp_path: Path) -> None:
    times = []
    for k in (5, 6):
        files = {**USER_MODULES, "helpers.py": f"TIMES = {k}\n", "pack/other.py": ""}
        kind: Any = type(read(written(tmp_path / str(k), files=files)).policies["Own"])
        times.append(kind().times)
    assert times == [5, 6]


def test_a_changed_module_is_read_again(tmp_path: Path) -> None:
    file = written(tmp_path)
    read(file)
    (tmp_path / "helpers.py").write_text("TIMES = 7\n")
    (tmp_path / "pack" / "other.py").write_text("")
    kind: Any = type(read(file).policies["Own"])
    assert kind().times == 7


def test_installed_classes_work_and_are_not_shadowed_by_a_copy_of_multiplay(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        SMALL + 'Own = { type = "multiplay.policies.gencts.GenCTS" }\n',
        {"multiplay/__init__.py": "raise ImportError('a copy')"},
    )
    assert read(file).policies["Own"] == GenCTS()


@pytest.mark.parametrize(
    ("key", "name", "settings"),
    [
        ("policies.GenCTS.type", "subprocess.Popen", {"args": ["touch", "FILE"]}),
        ("policies.GenCTS.type", "pathlib.Path.touch", {}),
        ("policies.GenCTS.type", "os.system", {"command": "touch FILE"}),
        ("policies.GenCTS.type", "multiplay.policies.Policy", {}),
        ("policies.GenCTS.type", "multiplay.policies.Play", {"action": 1}),
        ("policies.GenCTS.type", "Play", {"action": 1}),
        ("policies.GenCTS.type", "Budget", {"total": 1, "caps": [1]}),
        ("policies.GenCTS.type", ".GenCTS", {}),
        ("policies.GenCTS.type", "no/such.GenCTS", {}),
        ("policies.GenCTS.policy.type", "subprocess.Popen", {"args": ["touch", "FILE"]}),
    ],
)
def test_only_our_subclasses_are_built(
    key: str, name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    text = json.dumps({"type": name, **settings}).replace("FILE", str(made))
    table = json.loads(text)
    if ".policy." in key:
        table = {"type": "Duplicated", "policy": table}
    path = list(sys.path)
    with refused(key):
        build(plain(policies={"GenCTS": table}))
    assert not made.exists()
    assert sys.path == path


class Counted(GenCTS):
    """Counts how often it was built."""

    built = 0

    def __init__(self) -> None:
        type(self).built += 1


def test_a_class_of_another_kind_is_refused_before_it_is_built() -> None:
    name = f"{__name__}.Counted"
    assert isinstance(build(plain(policies={"A": {"type": name}})).policies["A"], Counted)
    for key in ("actions", "environment"):
        with refused(f"{key}.type"):
            build(plain(**{key: {"type": name}}))
    assert Counted.built == 1


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("x = 1\ny = = 2\n", r"habits\.py, line 2 \(invalid syntax\)"),
        ("import helpers\n", r"helpers\.py, line 1 \("),
        ("x = 1\n\n1 / 0\n", r"habits\.py, line 3, ZeroDivisionError"),
        ("import nowhere_at_all\n", r"habits\.py, line 1, no module named nowhere_at_all"),
        ("x = 1\n", r"a class of the module habits, got 'Always'"),
    ],
    ids=["syntax", "syntax of a neighbour", "fault", "missing", "no class"],
)
def test_a_module_that_cannot_be_used_is_named(module: str, said: str, tmp_path: Path) -> None:
    own, path = SMALL + 'Own = { type = "habits.Always" }\n', list(sys.path)
    file = written(tmp_path, own, {"habits.py": module, "helpers.py": "def f(:\n"})
    with refused("policies.Own.type"):
        read(file)
    with pytest.raises(ValueError, match=said):
        read(file)
    assert sys.path == path


@pytest.mark.parametrize(
    "policies",
    [
        {"A": {"type": "GenLBINFV", "epsilon": [0.1, 0.1]}},
        {
            "A": {"type": "GenLBINFV", "epsilon": [0.1, 0.2]},
            "A, epsilon=0.2": {"type": "GenCTS"},
        },
    ],
)
def test_names_that_collide_are_refused(policies: dict[str, Any]) -> None:
    last = list(policies)[-1]
    with refused(f"policies.{last}"):
        build(plain(policies=policies))
    with pytest.raises(ValueError, match=rf"from policies\.A and again from policies\.{last}"):
        build(plain(policies=policies))


def test_a_mark_at_the_beginning_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text(SMALL, encoding="utf-8-sig")
    assert read(tmp_path / "marked.toml").horizon == 60


@pytest.mark.parametrize("key", ["horizon", "trials", "record", "block"])
@pytest.mark.parametrize("number", [10**40, 10**5000], ids=["40", "5000"])
def test_numbers_have_a_largest_value(key: str, number: int) -> None:
    with refused(key):
        build(plain(**{key: number})).run()


def test_numbers_of_python_have_a_largest_value() -> None:
    small = build(plain(trials=2))
    world = small.actions, small.environment, small.policies
    with pytest.raises(ValueError, match="horizon: expected a whole number of at most 90071992547"):
        GenLBINFV(horizon=10**40)
    for argument in ("horizon", "trials", "jobs", "record", "block"):
        with refused(argument):
            numbers: dict[str, Any] = {"horizon": 60, "trials": 2, argument: 10**40}
            simulate(*world, **numbers)
    with refused("record"):
        simulate(*world, horizon=2**53, trials=1, record=2**53)


def test_a_number_of_thousands_of_digits_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(SMALL.replace("60", "6" + 5000 * "0"))
    with pytest.raises(ValueError, match=r"long\.toml"):
        read(tmp_path / "long.toml")


def test_more_than_fits_into_memory_is_refused(tmp_path: Path) -> None:
    with refused("trials, record"):
        build(plain(horizon=10**7, trials=10**7, record=10**7)).run(store=tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


def test_checks_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And once more for every block that is played."""
    starts: list[int] = []
    start = GenCTS.start

    def counted(self: GenCTS, actions: Any, horizon: int | None, trials: int) -> Any:
        starts.append(trials)
        return start(self, actions, horizon, trials)

    build(plain(trials=2, block=2)).run()  # warm
    monkeypatch.setattr(GenCTS, "start", counted)
    build(plain(trials=2, block=2)).run()
    assert starts == [1, 2]


def test_the_files_of_the_paper_are_read_when_they_are_asked_for() -> None:
    code = (
        "from multiplay.experiments import experiment\n"
        "read, experiment.read = experiment.read, None\n"
        "from multiplay.experiments import paper\n"
        "paper.read = read\n"
        "assert paper.PLANS is paper.PLANS and paper.POLICIES is paper.POLICIES\n"
        "assert list(paper.TITLES) == ['stochastic', 'corrupted']\n"
        "print(list(paper.POLICIES), hasattr(paper, 'nothing'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "['GenCTS', 'CTS', 'GenLBINFV', 'LBINFV'] False\n", done.stderr


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
        with pytest.raises(ValueError, match=rf"Did you mean {near}\?"):
            build(plain(**changes))


def test_formulas() -> None:
    costs = np.array([0.1, 0.4])
    assert evaluate("x", "= -(1 - 2 * costs) / 2", {"costs": costs}) == pytest.approx([-0.4, -0.1])
    assert evaluate("x", "=7 // 2 + 1", {}) == 4
    for formula in ("= 2 *", "= 1 / 0", "= (", "= x\0"):
        with refused("high"):
            evaluate("high", formula, {})


def test_files_that_are_none(tmp_path: Path) -> None:
    with refused("file"):
        read(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("horizon = = 3")
    with pytest.raises(ValueError, match="line 1"):
        read(tmp_path / "broken.toml")


@pytest.fixture(scope="module")
def undisturbed() -> Any:
    return build(plain()).run().dataset


@pytest.mark.slow
def test_killed_ten_times_and_resumed(tmp_path: Path, undisturbed: Any) -> None:
    """200 blocks; `kill -9` at ten random moments: the result is that of an undisturbed run."""
    file, blocks = tmp_path / "small.toml", tmp_path / "out" / "blocks"
    file.write_text(SMALL)
    command = ["run", file, "--out", tmp_path / "out", "--resume"]
    moments, sizes = random.Random(0), []
    for _ in range(10):
        process = Forked(*command, "--jobs", "1", streams=tmp_path)
        wait_for_blocks(blocks, len(stored(blocks)) + moments.randint(1, 8), process)
        time.sleep(moments.random() * 0.05)
        ended = process.kill()
        assert ended == -signal.SIGKILL, "it must not be done, nor have failed"
        sizes.append(len(stored(blocks)))
    assert 10 <= sizes[-1] < 200
    assert sizes == sorted(sizes)
    assert forked(*command).returncode == 0
    assert same(load(tmp_path / "out" / "result.nc").dataset, undisturbed)
    assert not blocks.exists()


@pytest.mark.slow
def test_interrupted_by_hand(tmp_path: Path, undisturbed: Any) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    command = [*MULTIPLAY, "run", "small.toml", "--out", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for_blocks(tmp_path / "out" / "blocks", 1, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=TIME_LIMIT)
    if process.returncode == 0:
        pytest.skip("it was done before it could be interrupted")
    assert process.returncode == 130
    assert "--resume" in said
    again = forked("run", "small.toml", "--out", "out", folder=tmp_path)
    assert again.returncode == 2
    assert "--resume" in again.stderr
    assert forked("run", "small.toml", "--out", "out", "--resume", folder=tmp_path).returncode == 0
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
    experiment, keep = build(plain(trials=4)), Checkpoints.keep
    kept: list[Any] = []

    def until_full(self: Checkpoints, *block: Any) -> None:
        if len(kept) == 3:
            raise OSError(28, "No space left on device")
        kept.append(block)
        keep(self, *block)

    monkeypatch.setattr(Checkpoints, "keep", until_full)
    with pytest.raises(OSError, match="No space"):
        experiment.run(store=tmp_path / "store")
    monkeypatch.setattr(Checkpoints, "keep", keep)
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


@pytest.mark.slow
def test_run_on_the_command_line(tmp_path: Path) -> None:
    example = forked("run", "--print-example", folder=tmp_path)
    (tmp_path / "ads.toml").write_text(example.stdout.replace("2_000", "60"))
    done = fresh("run", "ads.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "reward lost" in done.stdout
    files = {path.name for path in (tmp_path / "results" / "ads").iterdir()}
    assert files == {"result.nc", "regret.png", "regret.svg"}
    again = forked("run", "ads.toml", folder=tmp_path)
    assert again.returncode == 2
    assert "multiplay show" in again.stderr
    assert forked("run", folder=tmp_path).returncode == 2
    configuration = load(tmp_path / "results" / "ads" / "result.nc").configuration
    assert json.loads(json.dumps(configuration)) == configuration
    assert configuration["horizon"] == 60


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ("horizon = 10", ()),
        (f"horizon = {10**40}", ()),
        ("horizon = 60", ("--cluster", "nonsense")),
        ("horizon = 60", ("--jobs", str(10**40))),
    ],
    ids=["check", "number", "cluster", "jobs"],
)
def test_a_refused_run_leaves_no_folder(
    change: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text(SMALL.replace("horizon = 60", change))
    for out in ("a/b/out", "out"):
        done = forked("run", "small.toml", "--out", out, *options, folder=tmp_path)
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_a_refused_simulation_leaves_no_store(tmp_path: Path) -> None:
    """Refused before it began, and by an adversary in its first round."""
    experiment = build(plain(trials=2))

    def wrong(t: int, past: Any) -> Any:
        return [0.5] * 7

    for horizon, refusal in ((10, "horizon"), (60, "losses of round 1")):
        with refused(refusal):
            simulate(
                experiment.actions,
                Adversarial(wrong),
                experiment.policies,
                horizon=horizon,
                trials=2,
                store=tmp_path / "a" / "store",
            )
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with refused("losses of round 1"):
        simulate(
            experiment.actions,
            Adversarial(wrong),
            experiment.policies,
            horizon=60,
            trials=2,
            store=tmp_path / "mine",
        )
    assert (tmp_path / "mine" / "letter.txt").exists()
