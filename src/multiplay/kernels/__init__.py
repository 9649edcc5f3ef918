"""Compiled loops: arrays in, arrays out, no classes. Trials are the first axis of every array."""
