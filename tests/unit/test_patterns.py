"""Patterns of names, against regular expressions."""

import re

from hypothesis import given
from hypothesis import strategies as st

from multiplay._support.patterns import matches

LETTERS = st.text("ab*[", max_size=7)


@given(LETTERS, st.text("ab[", max_size=9))
def test_patterns_match_as_regular_expressions(pattern: str, name: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert matches(pattern, name) == bool(re.fullmatch(expression, name, re.DOTALL))


def test_many_stars_end() -> None:
    """A regular expression would try all ways to place 30 letters."""
    assert not matches("*a" * 30 + "b", "a" * 5000)
