"""Authentication: API keys, tokens and their cache."""
