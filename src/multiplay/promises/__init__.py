"""Promises over a period: budgets and contracts, their shadow prices, and a reserve."""

from multiplay.promises.promise import AtLeast, AtMost, Promise

__all__ = ["AtLeast", "AtMost", "Promise"]
