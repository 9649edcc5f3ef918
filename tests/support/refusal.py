"""Assertion that an error of class InvalidInput has all four parts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from multiplay import InvalidInput


@contextmanager
def refused(argument: str) -> Iterator[pytest.ExceptionInfo[InvalidInput]]:
    """Expect an error with the argument, the expected value, the given value, and a hint."""
    with pytest.raises(InvalidInput) as caught:
        yield caught
    message = str(caught.value)
    assert message.startswith(argument), message
    assert re.search(r": expected .+, got .+\. [A-Z].+[.?]$", message, re.DOTALL), message
