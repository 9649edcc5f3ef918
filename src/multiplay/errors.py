"""Errors for people: what was expected or what failed, what came, and what to do."""


class InvalidInput(ValueError):
    """An argument cannot be used; nothing was changed.

    Parameters
    ----------
    argument
        What it is called.
    expected, got
        What was wanted, and what came.
    hint
        What to do now, as a sentence.

    Examples
    --------
    >>> from multiplay import Budget
    >>> Budget(9, caps=[4, 4])
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: total: expected at most the sum of the caps, 8, got 9. \
Raise the caps, or write at_most=True.
    """

    def __init__(self, argument: str, expected: str, got: object, hint: str) -> None:
        self.argument, self.expected, self.got, self.hint = argument, expected, got, hint
        super().__init__(f"{argument}: expected {expected}, got {got}. {hint}")

    def under(self, key: str) -> "InvalidInput":
        """Return the same error, of an argument that stands below a key of a file."""
        return type(self)(f"{key}.{self.argument}", self.expected, self.got, self.hint)

    def __reduce__(self) -> tuple[type, tuple[str, str, object, str]]:
        return type(self), (self.argument, self.expected, str(self.got), self.hint)


class NotFound(InvalidInput):
    """What was named is not there: a study, or a play."""


class Conflict(InvalidInput):
    """What was asked does not go with what was done before, such as other losses for a play."""


class StoreError(RuntimeError):
    """A store cannot be read or written now: full, locked, read-only or not there.

    Parameters
    ----------
    store
        Where it is.
    reason
        What is wrong with it.
    hint
        What to do now, as a sentence.

    Examples
    --------
    >>> raise StoreError("sqlite:///plans.db", "the disk is full", "Make room, and try again.")
    Traceback (most recent call last):
    ...
    multiplay.errors.StoreError: sqlite:///plans.db: the disk is full. Make room, and try again.
    """

    def __init__(self, store: str, reason: str, hint: str) -> None:
        self.store, self.reason, self.hint = store, reason, hint
        super().__init__(f"{store}: {reason}. {hint}")

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.store, self.reason, self.hint)
