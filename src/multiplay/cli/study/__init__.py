"""multiplay study: one file for each group of commands."""
