"""Experiments that come with the package, as files: the two of the paper, and an example."""
