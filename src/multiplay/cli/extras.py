"""What commands need that is not always installed."""

from importlib.util import find_spec

from multiplay.errors import InvalidInput


def needs(extra: str, *modules: str) -> None:
    """Raise ``InvalidInput`` unless an extra of multiplay is installed."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        expected, hint = f"the extra {extra!r}", f"Run: pip install 'multiplay[{extra}]'."
        raise InvalidInput("multiplay", expected, f"no {', '.join(missing)}", hint)
