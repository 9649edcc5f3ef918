import os
import re
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from owners import owners, place
from postgres import postgresql

__all__ = ["owners", "place", "postgresql"]  # fixtures: servers start with the first test

# Profiles of `make test`, `make slow` and `make soak`, chosen by --hypothesis-profile. Kernels
# compile on their first call, so a single example may take seconds, also while it is drawn. The
# first two draw the same examples in every run: a change that breaks nothing never fails. The last
# one looks for new ones.
for profile, examples in {"test": 15, "check": 60, "soak": 1000}.items():
    settings.register_profile(
        profile,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=examples,
        derandomize=profile != "soak",  # without a database of examples then
        print_blob=True,
    )
settings.load_profile("test")

# A shell lets background jobs ignore SIGINT, and programs inherit that: the programs that tests
# interrupt must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Helpers that fork, send signals or set limits. Windows has none of these, so tests that use them
# are left out there.
OF_POSIX = "commands|fcntl|golden|owners|processes|resource|serving|study_workers"
if os.name != "posix":
    collect_ignore = [
        str(file)
        for file in Path(__file__).parent.rglob("test_*.py")
        if re.search(rf"^(?:from|import) (?:{OF_POSIX})\b", file.read_text("utf-8"), re.MULTILINE)
    ]

LEFT_TO_CHECK = {"integration", "statistical"}  # folders


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests of these folders to ``make slow``, except those marked smoke."""
    for item in items:
        if item.path.parent.name in LEFT_TO_CHECK and not item.get_closest_marker("smoke"):
            item.add_marker("slow")
