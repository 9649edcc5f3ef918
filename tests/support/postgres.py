"""Fixture ``postgresql``: a PostgreSQL server that runs until the end of the tests."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from effort import TIME_LIMIT
from processes import wait_until

from multiplay.storage.sql import SqlJournal

DEBIAN = Path("/usr/lib/postgresql")  # not on PATH on Debian
NEEDED = "MULTIPLAY_NEEDS_POSTGRESQL"


def programs() -> Path | None:
    """Return the folder of the server's programs, of the newest version."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else None


class Server:
    """A server in a temporary folder, which listens on a socket in that folder.

    fsync is off, which is faster. The data survives the end of the processes, but not a power
    failure.
    """

    def __init__(self, programs: Path) -> None:
        self.user = "postgres" if os.getuid() == 0 else None  # PostgreSQL does not run as root
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="multiplay-pg-"))
        self.data = self.folder / "data"
        self._schemas = count()
        if self.user:
            shutil.chown(self.folder, self.user)
        self._run("initdb", "--auth=trust", "--username=multiplay", "--encoding=UTF8", "--no-sync")
        self.start()

    def url(self, schema: str = "public") -> str:
        server = f"postgresql://multiplay@/postgres?host={self.folder}"
        return f"{server}&options=-csearch_path%3D{schema}"

    def new_url(self) -> str:
        """Return the URL of a new schema, because a new database would create hundreds of files."""
        import psycopg

        name = f"test{next(self._schemas)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return self.url(name)

    def with_few_connections(self, url: str, number: int) -> str:
        """Return the URL of a schema for a new user, who may have this number of connections."""
        import psycopg

        schema = url.rpartition("%3D")[2]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {schema} LOGIN CONNECTION LIMIT {number}")
            connection.execute(f"GRANT ALL ON SCHEMA {schema} TO {schema}")
            for kind in ("TABLES", "SEQUENCES"):
                connection.execute(f"GRANT ALL ON ALL {kind} IN SCHEMA {schema} TO {schema}")
        return url.replace("multiplay@", f"{schema}@")

    def start(self, fsync: bool = False) -> None:
        """Start the server, and wait until it accepts connections."""
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
        """Stop the server; ``immediate`` has the effect of killing its processes."""
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
            timeout=TIME_LIMIT,
        )


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A running server; a test that stops it must start it again."""
    found = programs()
    if found is None:
        if os.environ.get(NEEDED):
            pytest.fail(f"{NEEDED} is set, but PostgreSQL is not installed")
        pytest.skip("PostgreSQL is not installed")
    server = Server(found)
    yield server
    server.remove()


@contextmanager
def driver_of(journal: SqlJournal) -> Iterator[Any]:
    """Give the connection of the driver that a journal uses now, or would use next."""
    connection = journal._connection
    if connection._in_transaction:
        yield connection._connection
        return
    connection._connect_if_needed()
    yield connection._connection
    connection._leave()


@contextmanager
def pooled(server: Server, url: str, sessions: int = 4) -> Iterator[str]:
    """Start PgBouncer before a server, which gives a session to each transaction in turn."""
    import psycopg

    schema = url.rpartition("%3D")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {schema} LOGIN SUPERUSER")
        connection.execute(f"ALTER ROLE {schema} SET search_path = {schema}")
    folder = Path(tempfile.mkdtemp(prefix="multiplay-pb-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "users").write_text(f'"{schema}" ""\n')
    (folder / "ini").write_text(
        f"""[databases]
postgres = host={server.folder} dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder / "users"}
pool_mode = transaction
default_pool_size = {sessions}
server_reset_query_always = 0
ignore_startup_parameters = extra_float_digits
logfile = {folder / "log"}
"""
    )
    if server.user:
        for place in (folder, *folder.iterdir()):
            shutil.chown(place, server.user)
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    bouncer = subprocess.Popen(
        [program, "-q", folder / "ini"], user=server.user, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: answers(port))
        yield f"postgresql://{schema}@127.0.0.1:{port}/postgres"
    finally:
        bouncer.terminate()
        bouncer.wait(TIME_LIMIT)
        shutil.rmtree(folder)


def answers(port: int) -> bool:
    """Return whether a port of this machine accepts connections."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def lose_commits(
    monkeypatch: pytest.MonkeyPatch, is_lost: Callable[[], bool], is_sent: bool = True
) -> None:
    """Close connections right after COMMIT was sent, without its answer, when ``is_lost`` says so.

    The server carries the commit out, as a rule: it may also notice the end first. It does not if
    ``is_sent`` is false: then the connection is closed before.
    """
    import psycopg

    from multiplay.storage.postgresql import PostgresqlConnection

    run = PostgresqlConnection._run

    def run_or_lose(self: PostgresqlConnection, text: str, values: tuple[Any, ...] = ()) -> Any:
        if not text.endswith("COMMIT") or not is_lost():
            return run(self, text, values)
        pgconn = self._connection.pgconn
        if is_sent:
            pgconn.send_query(text.encode())
            while pgconn.flush():
                pass
        self._connection.close()
        raise psycopg.OperationalError("the connection was closed after COMMIT")

    monkeypatch.setattr(PostgresqlConnection, "_run", run_or_lose)
