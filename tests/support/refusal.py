"""What a refusal must look like."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from multiplay import InvalidInput


@contextmanager
def refused(argument: str) -> Iterator[None]:
    """Expect an error that names the argument, what was expected, what came, and what to do."""
    with pytest.raises(InvalidInput) as caught:
        yield
    message = str(caught.value)
    assert message.startswith(argument), message
    assert re.search(r": expected .+, got .+\. [A-Z].+[.?]$", message, re.DOTALL), message
