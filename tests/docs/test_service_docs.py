"""The page about the service: its code runs against a service in a process of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from commands import ENVIRONMENT, MULTIPLAY
from effort import TIME_LIMIT

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```(?:\n\n```(json|text)\n(.*?)```)?", flags=re.DOTALL)
ADDRESS, ANY = "http://127.0.0.1:8000", "..."
PROGRAMS = ("bash", "curl", "jq", "node")


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """Start a service without keys, and yield its address."""
    command = [*MULTIPLAY, "serve", "--store", "trucks.db", "--port", "0"]
    service = subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, encoding="utf-8"
    )
    assert service.stderr is not None
    try:
        for line in service.stderr:
            if found := re.search(r"Listening on (http://\S+)", line):
                break
        assert found, "it has not started"
        yield found[1]
    finally:
        service.terminate()
        _, said = service.communicate(timeout=TIME_LIMIT)
        assert service.returncode == 0, said


class Reader:
    """Executor of all blocks of the page, in one folder and one shell."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.kept, self.names = folder / "shell", {"__name__": "page"}

    def run(self, language: str, code: str) -> str | None:
        """Return the output of a block; None if it cannot run here."""
        code = code.replace(ADDRESS, self.address)
        if language == "sh":
            return self._shell(code) if "curl" in code else None
        if language == "python":
            with redirect_stdout(StringIO()) as printed:
                exec(compile(self._with_key(code), str(PAGE), "exec"), self.names)
            return printed.getvalue()
        if language == "js":
            return self._printed("node", "--input-type=module", "--eval", self._with_key(code))
        return None

    def _shell(self, code: str) -> str:
        code = code.replace("curl -sN", "curl -sN --max-time 10")  # it has no end
        ends = code.replace("/events", "") != code
        before = f"if [ -e {self.kept} ]; then . {self.kept}; fi\nset -euo pipefail\n"
        after = f"\ndeclare -p key > {self.kept} 2> /dev/null || true\n"
        code = code.rstrip() + " || [ $? = 28 ]" * ends
        return self._printed("bash", "-c", before + code + after)

    def _printed(self, *command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{ENVIRONMENT['PATH']}"
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=ENVIRONMENT | {"PATH": path},
            capture_output=True,
            encoding="utf-8",
            timeout=TIME_LIMIT,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def _with_key(self, code: str) -> str:
        found = re.search(r"mp_\w{12}_[\w-]{43}", self.kept.read_text())
        assert found
        return code.replace("mp_...", found[0])


def parts(text: str) -> list[Any]:
    """Return the JSON values of a text, one after the other."""
    found, text = [], text.strip()
    while text:
        value, end = json.JSONDecoder().raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found


def is_like(value: Any, shown: Any) -> bool:
    """Compare a value with the one on the page, in which "..." matches anything."""
    if isinstance(shown, dict) and isinstance(value, dict):
        return [*value] == [*shown] and all(is_like(value[k], one) for k, one in shown.items())
    return shown == ANY or bool(value == shown)


@pytest.mark.slow
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} on this machine: the page is not run")
    run = []
    with started(tmp_path) as address:
        reader = Reader(tmp_path, address)
        for language, code, kind, shown in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            printed = reader.run(language, code)
            if printed is None:
                continue
            run.append(language)
            if kind == "json":
                pairs = zip(parts(printed), parts(shown), strict=True)
                assert all(is_like(*pair) for pair in pairs), printed
            else:
                assert printed.strip() == shown.strip()
    assert (run.count("sh"), run.count("python"), run.count("js")) == (10, 1, 1)


def test_what_is_shown_may_leave_something_out() -> None:
    assert is_like({"a": 1, "b": [2]}, {"a": "...", "b": [2]})
    assert not is_like({"a": 1, "b": [2]}, {"a": "...", "b": [3]})
    assert not is_like({"a": 1, "b": [2]}, {"a": "..."})
    assert parts('1\n{"a": 2} true') == [1, {"a": 2}, True]
