"""Names of files that commands write."""

from pathlib import Path

from multiplay.errors import InvalidInput


def check_suffix(argument: str, path: Path, allowed: tuple[str, ...]) -> None:
    """Raise ``InvalidInput`` unless the name of a file ends in one of these."""
    if path.suffix.lower() not in allowed:
        raise InvalidInput(
            argument,
            f"a name that ends in {' or '.join(allowed)}",
            str(path),
            "Choose one of these endings.",
        )
