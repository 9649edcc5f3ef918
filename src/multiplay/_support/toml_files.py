"""Files in TOML that a user has written."""

import tomllib
from pathlib import Path
from typing import Any

from multiplay.errors import InvalidInput


def read_toml(argument: str, path: Path, expected: str, hint: str) -> dict[str, Any]:
    """Return the contents of a TOML file, or raise ``InvalidInput``."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(argument, expected, f"{path} ({error})", hint) from None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, thousands of digits, or brackets
        raise InvalidInput(str(path), "TOML", error, hint) from None
