"""multiplay study: one file for each group of commands."""

from multiplay.cli.study import show

__all__ = ["show"]
