"""Authentication: API keys, their format, and callers."""
