"""The command line: one file for each command."""

from multiplay.cli import bench, key, reproduce, results, run, serve, study, table1
from multiplay.cli.app import app, main

__all__ = ["app", "bench", "key", "main", "reproduce", "results", "run", "serve", "study", "table1"]
