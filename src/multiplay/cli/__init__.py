"""Command line: one module for each group of commands."""

from multiplay.cli import bench, reproduce, results, run, service, study, table1
from multiplay.cli.app import app, main

__all__ = ["app", "bench", "main", "reproduce", "results", "run", "service", "study", "table1"]
