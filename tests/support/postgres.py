"""A PostgreSQL server for tests: started when a test asks for it, gone at the end."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

DEBIAN = Path("/usr/lib/postgresql")  # not on the path there
NEEDED = "MULTIPLAY_NEEDS_POSTGRESQL"


def programs() -> Path | None:
    """Return the folder of the server's programs, the newest if there are several."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else None


class Server:
    """A server of its own, in a folder of its own, that listens on a socket in it.

    Without fsync it is fast, and still survives the death of its processes; only a power cut
    asks for more.
    """

    def __init__(self, programs: Path) -> None:
        self.user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="multiplay-pg-"))
        self.data = self.folder / "data"
        self._schemas = count()
        if self.user:
            shutil.chown(self.folder, self.user)
        self._run("initdb", "--auth=trust", "--username=multiplay", "--encoding=UTF8", "--no-sync")
        self.start()

    def url(self, schema: str = "public") -> str:
        place = f"postgresql://multiplay@/postgres?host={self.folder}"
        return f"{place}&options=-csearch_path%3D{schema}"

    def new_url(self) -> str:
        """Return the URL of an empty place: a new schema, for a database has hundreds of files."""
        import psycopg

        name = f"test{next(self._schemas)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return self.url(name)

    def start(self, fsync: bool = False) -> None:
        """Start, and wait until it answers."""
        settings = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'{self.folder}'",
            "fsync": "on" if fsync else "off",
            "max_connections": "40",
            "shared_buffers": "16MB",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._run(
            "pg_ctl", "start", "--wait", f"--log={self.folder / 'log'}", f"--options={options}"
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop; ``immediate`` is as if its processes were killed."""
        self._run("pg_ctl", "stop", "--wait", f"--mode={mode}")

    def is_running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    def remove(self) -> None:
        if self.is_running():
            self.stop("immediate")
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.programs / program, f"--pgdata={self.data}", *arguments],
            user=self.user,
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=120,
        )


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A running server; who stops it starts it again."""
    found = programs()
    if found is None:
        if os.environ.get(NEEDED):
            pytest.fail(f"{NEEDED} is set, and there is no PostgreSQL server")
        pytest.skip("no PostgreSQL server on this machine: its store is not tried")
    server = Server(found)
    yield server
    server.remove()
