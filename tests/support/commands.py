"""Commands run in three ways: in this process, in a forked process, and in a new process.

``called`` runs ``main`` in this process. A new process takes a second or two to start, most of it
for imports. Where a process is needed (signals, exit codes, files that are written at the end), a
server imports once and forks for every command: ``forked`` has its own arguments, folder, streams
and exit code. ``fresh`` starts a new process; at least one test of every command uses it.
"""

import atexit
import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from effort import TIME_LIMIT

FORCES_COLOUR = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "GITHUB_ACTIONS", "PY_COLORS")
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in (*FORCES_COLOUR, "COLUMNS")
}
MULTIPLAY = [sys.executable, "-m", "multiplay"]

SERVER = """
import contextlib, gc, json, os, pathlib, runpy, sys, tempfile
import multiplay as mp
from multiplay.cli import main
from multiplay.experiments import paper

# lazy imports, compilation and reads happen before the first command
with contextlib.redirect_stdout(None), contextlib.suppress(SystemExit):
    sys.argv = ["multiplay", "--version"]
    main()
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "result.nc")
    paper.run("corrupted", horizon=55, trials=1).save(file)
    for suffix in (".png", ".svg"):
        mp.load(file).plot().savefig(file.with_suffix(suffix))
gc.freeze()

for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
else:
    sys.exit()

for stream, path in enumerate((os.devnull, request["out"], request["err"])):
    file = os.open(path, os.O_RDWR)
    os.dup2(file, stream)
    os.close(file)
os.chdir(request["folder"])
os.environ.update(request["environment"])
sys.argv = ["multiplay", *request["arguments"]]
runpy.run_module("multiplay", run_name="__main__", alter_sys=True)
"""


def called(
    *arguments: object, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process."""
    from multiplay.cli import main

    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        for name in (*FORCES_COLOUR, "COLUMNS"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(folder or Path.cwd())
        patch.setattr(sys, "argv", ["multiplay", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", errors)
        with pytest.raises(SystemExit) as ended:
            main()
    texts = []
    for stream in (output, errors):
        stream.seek(0)
        texts.append(stream.read())
    code = ended.value.code or 0
    assert isinstance(code, int)
    return subprocess.CompletedProcess(list(map(str, arguments)), code, *texts)


def fresh(
    *arguments: object, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a new process."""
    return subprocess.run(
        [*MULTIPLAY, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=ENVIRONMENT | environment,
        timeout=TIME_LIMIT,
    )


def forked(
    *arguments: object, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a forked process, in which the imports are done."""
    with tempfile.TemporaryDirectory() as streams:
        command = Forked(*arguments, folder=folder, streams=Path(streams), **environment)
        status = command.wait()
        output, errors = (
            (Path(streams) / name).read_text(encoding="utf-8") for name in ("stdout", "stderr")
        )
    return subprocess.CompletedProcess(list(map(str, arguments)), status, output, errors)


class Forked:
    """A running command in a forked process; only one command may run at a time."""

    def __init__(
        self, *arguments: object, folder: Path | None = None, streams: Path, **environment: str
    ) -> None:
        for name in ("stdout", "stderr"):
            (streams / name).touch()
        request = {
            "arguments": list(map(str, arguments)),
            "folder": str(folder or Path.cwd()),
            "environment": environment,
            "out": str(streams / "stdout"),
            "err": str(streams / "stderr"),
        }
        self.returncode: int | None = None
        self.requests, self.responses = _server()
        os.write(self.requests, (json.dumps(request) + "\n").encode())
        self.pid = self._response(TIME_LIMIT)

    def poll(self) -> int | None:
        """Return the exit code of the process, or None while it runs."""
        if self.returncode is None and select.select([self.responses], [], [], 0)[0]:
            self.returncode = self._response(TIME_LIMIT)
        return self.returncode

    def wait(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        if self.returncode is None:
            self.returncode = self._response(TIME_LIMIT)
        return self.returncode

    def kill(self) -> int:
        """Kill the process, and return its exit code."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def _response(self, time_limit: float) -> int:
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([self.responses], [], [], time_limit)[0]:
                os.kill(self.pid, signal.SIGKILL)
                raise TimeoutError(f"a command took more than {time_limit} s")
            byte = os.read(self.responses, 1)
            assert byte, "the server of commands has ended"
            line += byte
        return int(line)


@cache
def _server() -> tuple[int, int]:
    """Start the server; return the file descriptors of its requests and its responses."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        bufsize=0,
    )
    atexit.register(server.communicate)
    assert server.stdin is not None
    assert server.stdout is not None
    return server.stdin.fileno(), server.stdout.fileno()
