"""Numbers of examples that follow the hypothesis profile: test, check or soak."""

from hypothesis import settings

CHECK = 60  # examples of the profile of `make check`


def examples(of_check: int) -> int:
    """Return how many examples to draw, if ``make check`` draws ``of_check``."""
    return max(1, of_check * settings().max_examples // CHECK)
