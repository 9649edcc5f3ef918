"""The command line: help, version, reproduce, and refused input."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest
from commands import ENVIRONMENT, MULTIPLAY, called, forked, fresh
from effort import TIME_LIMIT
from processes import alive, wait_until
from scipy import stats

from multiplay import Policy, Result, load, policies
from multiplay._support.builder import classes_of
from multiplay.experiments import paper
from multiplay.version import described

SMALL = ["--trials", "3", "--horizon", "300", "--seed", "5"]
CLAIMS = [
    "GenCTS below CTS",
    "GenLBINFV below LBINFV, stochastic",
    "Thompson sampling still growing under corruption",
    "GenLBINFV levels off there",
    "GenLBINFV converges faster than LBINFV there",
    "Final regret there",
]
FILES = {
    "figure1.png",
    "figure1.svg",
    "figure2.png",
    "figure2.svg",
    "stochastic.nc",
    "corrupted.nc",
    "summary.txt",
}


Reproduce = Callable[[int], tuple[Path, subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def reproduce(tmp_path_factory: pytest.TempPathFactory) -> Reproduce:
    """Run a small reproduction with so many jobs, once each; return its folder and what it said."""
    done: dict[int, tuple[Path, subprocess.CompletedProcess[str]]] = {}

    def run(jobs: int) -> tuple[Path, subprocess.CompletedProcess[str]]:
        if jobs not in done:
            folder = tmp_path_factory.mktemp("results") / "new" / "[b]folder"
            start = fresh if jobs > 1 else forked
            said = start("reproduce", *SMALL, "--jobs", jobs, "--out", folder)
            assert said.returncode == 0, said.stderr
            done[jobs] = folder, said
        return done[jobs]

    return run


# ---------------------------------------------------------------- help


def test_help_teaches_and_its_python_code_runs() -> None:
    said = called("--help")
    assert said.returncode == 0
    for words in ("how many", "multiplay reproduce", "import multiplay as mp", "--version"):
        assert words in said.stdout
    assert "\x1b" not in said.stdout
    lines = said.stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if "import multiplay" in line)
    length = [line.strip() for line in lines[first:]].index("")
    scope: dict[str, object] = {}
    exec("\n".join(line.strip() for line in lines[first : first + length]), scope)
    assert "play" in scope


def test_help_of_reproduce_teaches() -> None:
    said = called("reproduce", "--help")
    assert said.returncode == 0
    words = " ".join(said.stdout.split())
    for option, default in (
        ("--trials", "[default: 30]"),
        ("--horizon", "[default: 10000]"),
        ("--seed", "[default: 0]"),
        ("--jobs", "one for each core"),
        ("--out", "[default: results]"),
    ):
        assert default in words[words.index(f"│ {option}") :]
    assert "multiplay reproduce --trials 300" in words, "an example"
    for name in ("figure1", "figure2", "netCDF", "summary.txt"):
        assert name in words


def test_version() -> None:
    said = fresh("--version")
    assert said.returncode == 0
    assert said.stdout.strip() == described()


def test_the_installed_command_is_the_same() -> None:
    script = Path(sys.executable).with_name("multiplay")
    said = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == described()


# ---------------------------------------------------------------- reproduce


def verdicts(text: str) -> dict[str, str]:
    """Read the last table: {claim: verdict}, with cells of several lines put together."""
    found, cells = {}, ["", "", ""]
    for line in text[text.index("Claims of the paper") :].splitlines():
        if line.startswith("│"):
            new = [cell.strip() for cell in line.strip("│").split("│")]
            cells = [f"{old} {part}".strip() for old, part in zip(cells, new, strict=True)]
        elif line.startswith(("├", "└")):
            found[cells[0]] = cells[1]
            cells = ["", "", ""]
    return found


def expected_verdict(result: Result, policy: str, other: str, since: int = 0) -> str:
    """Judge the growth of regret since a round by the interval of the paired t-test."""
    one, two = (
        result.final(name) - (result.regret.sel(policy=name, round=since).values if since else 0)
        for name in (policy, other)
    )
    test = stats.ttest_rel(one, two).confidence_interval(0.95)
    if test.high < 0:
        return "holds"
    return "does not hold" if test.low > 0 else "undecided"


@pytest.mark.slow
def test_reproduce_writes_everything_and_judges_every_claim(reproduce: Reproduce) -> None:
    folder, said = reproduce(2)
    assert {path.name for path in folder.iterdir()} == FILES
    for number in (1, 2):
        assert (folder / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (folder / f"figure{number}.svg").read_text()
    stochastic, corrupted = load(folder / "stochastic.nc"), load(folder / "corrupted.nc")
    for result in (stochastic, corrupted):
        assert result.policies == ["GenCTS", "CTS", "GenLBINFV", "LBINFV"]
        assert result.regret.shape == (4, 3, 300)
        assert result.configuration["seed"] == 5
    assert corrupted.configuration["environment"]["at"] == 60, "a fifth"

    summary = (folder / "summary.txt").read_text(encoding="utf-8")
    for text in (said.stdout, summary):
        assert list(verdicts(text)) == CLAIMS
        outcomes = list(verdicts(text).values())
        assert set(outcomes[:-1]) <= {"holds", "does not hold", "undecided"}
        assert outcomes[-1] == "no claim"
        assert "95 %" in text
        assert "µs" in text
    found = verdicts(said.stdout)
    assert found == verdicts(summary)
    assert found[CLAIMS[0]] == expected_verdict(stochastic, "GenCTS", "CTS")
    assert found[CLAIMS[1]] == expected_verdict(stochastic, "GenLBINFV", "LBINFV")
    assert found[CLAIMS[4]] == expected_verdict(corrupted, "GenLBINFV", "LBINFV", since=240)
    assert str(folder) in said.stdout, "whatever characters it has, and on one line"


@pytest.mark.slow
def test_without_a_terminal_there_is_no_progress_bar_and_no_escape_code(
    reproduce: Reproduce,
) -> None:
    folder, said = reproduce(2)
    parts = [line.rpartition(" (")[0] for line in said.stderr.splitlines()]
    done = [part for part in parts if not part.endswith(": running")]
    regimes = ["stochastic regime: done", "lower bounds: done", "corrupted regime: done"]
    assert done == regimes
    assert "\x1b" not in said.stderr
    assert "\x1b" not in said.stdout
    assert "simulating" not in said.stdout
    assert "\x1b" not in (folder / "summary.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_all_policies_are_run_and_reported(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--trials", "2", "--horizon", "60", "--jobs", "1", "--all-policies"]
    said = forked("reproduce", *arguments, "--out", out)
    assert said.returncode == 0, said.stderr
    assert "report.html" in said.stdout
    result = load(out / "corrupted-all.nc")
    assert result.policies[:4] == ["GenCTS", "CTS", "GenLBINFV", "LBINFV"]
    classes = {type(policy).__name__ for policy in paper.all_policies().values()}
    exported = {name for name, kind in classes_of(policies).items() if issubclass(kind, Policy)}
    assert classes == exported, "every exported policy is included"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(escape(name) in page for name in result.policies)


@pytest.mark.slow
def test_jobs_do_not_change_the_numbers(reproduce: Reproduce) -> None:
    (one, _), (two, _) = reproduce(1), reproduce(2)
    for regime in ("stochastic", "corrupted"):
        first, second = load(one / f"{regime}.nc"), load(two / f"{regime}.nc")
        assert (first.regret == second.regret).all()
        assert first.configuration == second.configuration


@pytest.mark.slow
def test_everything_is_written_even_if_nobody_listens(tmp_path: Path) -> None:
    """As in ``multiplay reproduce | head -1``."""
    arguments = ["reproduce", "--trials", "2", "--horizon", "60", "--jobs", "1", "--out", tmp_path]
    with subprocess.Popen(
        [*MULTIPLAY, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complained = process.stderr.read()
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert "Traceback" not in complained


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.slow
def test_a_terminal_shows_progress(tmp_path: Path) -> None:
    master, slave = os.openpty()
    arguments = ["reproduce", "--trials", "2", "--horizon", "60", "--jobs", "1", "--out", tmp_path]
    with subprocess.Popen(
        [*MULTIPLAY, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**ENVIRONMENT, "TERM": "xterm"},
    ) as process:
        os.close(slave)
        shown = b""
        while chunk := read(master):
            shown += chunk
        assert process.stdout is not None
        assert b"\x1b" not in process.stdout.read(), "stdout is no terminal"
    assert process.returncode == 0
    assert b"GenCTS" in shown
    assert b"block 1 of 1" in shown
    assert b"%" in shown


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that the other end is closed
        return b""


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("horizon", 10, "55"),
        ("trials", 0, "1"),
        ("jobs", 0, "1"),
        ("seed", -1, "0"),
        ("trials", "many", "integer"),
        ("horizon", 10**40, "at most 9007199254740992"),
        ("trials", 10**40, "at most 10000000"),
        ("jobs", 10**40, "at most 10000"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(
    option: str, value: object, expected: str, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    said = called("reproduce", f"--{option}", value, "--out", out)
    assert said.returncode == 2
    message = " ".join(said.stderr.split())
    assert option in message
    assert expected in message
    assert "Traceback" not in message
    assert "GenLBINFV(" not in message, "advice for Python is no help here"
    assert said.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """The folder is named as it was given, on one line, whatever characters it has."""
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "[b]results[/b]"
    said = forked("reproduce", *SMALL, "--out", out)
    assert said.returncode == 2
    assert str(out) in said.stderr
    assert "out" in said.stderr
    assert "Traceback" not in said.stderr
    assert said.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_unknown_command_is_refused() -> None:
    said = called("reprodcue")
    assert said.returncode == 2
    assert "reprodcue" in said.stderr
    assert "Traceback" not in said.stderr


# ---------------------------------------------------------------- interrupts


def importing_workers(process: subprocess.Popen[str]) -> list[int]:
    """Return who imports for the workers: numpy is there, and most of it is to come."""
    found = []
    for pid in alive(process.pid):
        folder = Path(f"/proc/{pid}")
        try:
            imports = "forkserver" in (folder / "cmdline").read_text()
            if imports and "numpy" in (folder / "maps").read_text():
                found.append(pid)
        except OSError:  # gone by now
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes in /proc")
@pytest.mark.parametrize("moment", ["workers are importing", "second experiment is running"])
@pytest.mark.slow
def test_an_interrupt_leaves_no_half_files_and_no_processes(moment: str, tmp_path: Path) -> None:
    """As Ctrl-C does it: every process of the session gets the signal."""
    out = tmp_path / "results"
    arguments = ["reproduce", "--trials", "2", "--horizon", "4000", "--jobs", "2", "--out", out]
    with subprocess.Popen(
        [*MULTIPLAY, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=ENVIRONMENT,
        start_new_session=True,
    ) as process:
        if moment == "workers are importing":
            wait_until(lambda: importing_workers(process) != [])
            for worker in importing_workers(process):  # the first to hear of it
                os.kill(worker, signal.SIGINT)
            time.sleep(0.3)
        else:
            wait_until((out / "figure1.svg").exists)
        os.killpg(process.pid, signal.SIGINT)
        said, complained = process.communicate(timeout=TIME_LIMIT)
    assert process.returncode == 130, complained
    assert "nterrupt" in complained
    assert "Traceback" not in complained, complained
    assert said == ""

    wait_until(lambda: alive(process.pid) == [])

    written = {path.name for path in out.iterdir()}
    if moment == "workers are importing":
        assert written == set()
    else:
        assert {"stochastic.nc", "figure1.png", "figure1.svg"} == written
        assert load(out / "stochastic.nc").regret.shape == (4, 2, 1000)
