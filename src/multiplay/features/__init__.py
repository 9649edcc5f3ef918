"""Features of arms and rounds: declared columns, raw values of arms, and rows for policies."""

from multiplay._support import lazy as _lazy

__getattr__, __dir__ = _lazy.attach(__name__, __file__)
