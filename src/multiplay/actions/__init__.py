"""Action sets: the integer vectors that may be played."""

from multiplay._support import lazy as _lazy

# Public names are declared in __init__.pyi, one line for each file.
__getattr__, __dir__ = _lazy.attach(__name__, __file__)
