"""A temporary PostgreSQL server."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")  # not on PATH on Debian


def programs() -> Path | None:
    """Return the folder of the server's programs, of the newest version."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else None


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a server with default settings and files in this folder; yield its URL."""
    found = programs()
    if found is None:
        raise FileNotFoundError("PostgreSQL is not installed")
    user = "postgres" if os.getuid() == 0 else None  # PostgreSQL does not run as root
    folder.mkdir()
    if user:
        shutil.chown(folder, user)

    def run(program: str, *arguments: str) -> None:
        command = [f"{found / program}", f"--pgdata={folder / 'data'}", *arguments]
        quiet = subprocess.DEVNULL
        subprocess.run(
            command, user=user, cwd=folder, stdin=quiet, stdout=quiet, stderr=quiet, check=True
        )

    run("initdb", "--auth=trust", "--username=multiplay", "--encoding=UTF8", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}'"
    run("pg_ctl", "start", "--wait", f"--log={folder / 'log'}", f"--options={options}")
    try:
        yield f"postgresql://multiplay@/postgres?host={folder}"
    finally:
        run("pg_ctl", "stop", "--wait", "--mode=immediate")
