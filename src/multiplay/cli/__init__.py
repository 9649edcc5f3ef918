"""The command line: one file for each command."""

from multiplay.cli import bench, reproduce, results, run, study, table1
from multiplay.cli.app import app, main

__all__ = ["app", "bench", "main", "reproduce", "results", "run", "study", "table1"]
