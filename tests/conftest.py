import os
import re
from pathlib import Path

from hypothesis import settings
from postgres import postgresql

__all__ = ["postgresql"]  # a fixture: whoever asks for it pays for the start

# kernels compile on their first call, so a single example may take seconds
settings.register_profile("multiplay", deadline=None, max_examples=60)
settings.load_profile("multiplay")

# Helpers that fork, send signals or set limits. Windows has none of these, so tests that use them
# are left out there.
OF_POSIX = r"^(?:from|import) (?:commands|fcntl|processes|resource|serving|study_workers)\b"
if os.name != "posix":
    collect_ignore = [
        str(file)
        for file in Path(__file__).parent.rglob("test_*.py")
        if re.search(OF_POSIX, file.read_text("utf-8"), re.MULTILINE)
    ]
