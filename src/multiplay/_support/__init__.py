"""Internal helpers: checks, formatting, files, HTML, serialization, data frames."""
