"""Learn how many of everything to use, when the cost of a unit is unknown."""

from multiplay._support import lazy as _lazy
from multiplay.version import __version__ as __version__

# Public names, declared in __init__.pyi, are imported on first use: numba and scipy take long to
# load, and a client of a service or a help text needs neither.
__getattr__, __dir__ = _lazy.attach(__name__, __file__)
