"""Numbers of examples that follow the hypothesis profile (test, check, soak), and a time limit."""

from hypothesis import settings

TIME_LIMIT = 600.0  # seconds after which a test that waits fails; a busy machine is slow
CHECK = 60  # examples in the profile check, that of `make slow`


def examples(of_check: int) -> int:
    """Return the number of examples in this profile; ``of_check`` is that of ``make slow``."""
    return max(1, of_check * settings().max_examples // CHECK)
