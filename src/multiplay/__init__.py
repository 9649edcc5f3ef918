"""Learn how many of everything to use, when nobody knows what a unit costs."""

__version__ = "0.1.0"
