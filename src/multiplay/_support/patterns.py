"""Patterns of names, in which a star stands for any text."""


def matches(pattern: str, name: str) -> bool:
    """Return whether a name fits a pattern, in which only the star is special, for any text.

    The time grows with the lengths alone; a regular expression of many stars would try all ways.

    Examples
    --------
    >>> matches("Lyon->*", "Lyon->north"), matches("x[1]", "x1"), matches("*", "any")
    (True, False, True)
    """
    first, *parts = pattern.split("*")
    if not parts:
        return name == pattern
    *middle, last = parts
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    end = len(name) - len(last)
    if not name.endswith(last):
        return False
    at = len(first)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True
