"""Experiments as files, and those of the paper."""

from multiplay.experiments.experiment import Experiment, read, shipped

__all__ = ["Experiment", "read", "shipped"]
