"""Command line: one module for each group of commands, imported when a command of it is used."""

from multiplay.cli.app import app, main

__all__ = ["app", "main"]
