"""Errors of the library: invalid arguments, missing names, conflicts and stores."""


class InvalidInput(ValueError):
    """An argument is invalid; nothing was changed.

    Parameters
    ----------
    argument
        The name of the argument.
    expected, got
        The expected value, and the given one.
    hint
        What to do, as a sentence.

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
        """Return the same error for an argument below a key of a file."""
        return type(self)(f"{key}.{self.argument}", self.expected, self.got, self.hint)

    def __reduce__(self) -> tuple[type, tuple[str, str, object, str]]:
        return type(self), (self.argument, self.expected, str(self.got), self.hint)


class NotFound(InvalidInput):
    """A study or a play of this name does not exist."""


class Conflict(InvalidInput):
    """A request contradicts an earlier one, such as different losses for the same play."""


class StoreError(RuntimeError):
    """A store cannot be read or written now: full, locked, read-only or missing.

    Parameters
    ----------
    store
        The URL of the store.
    reason
        The cause of the failure.
    hint
        What to do, as a sentence.

    Examples
    --------
    >>> raise StoreError("sqlite:///plans.db", "the disk is full", "Make room, and try again.")
    Traceback (most recent call last):
    ...
    multiplay.errors.StoreError: sqlite:///plans.db: the disk is full. Make room, and try again.
    """

    def __init__(self, store: str, reason: str, hint: str) -> None:
        self.store, self.reason, self.hint = store, reason, hint
        super().__init__(f"{store}: {reason}{'' if reason.endswith('?') else '.'} {hint}")

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.store, self.reason, self.hint)


class UnknownOutcome(StoreError):
    """The connection was lost during a commit, which may or may not have succeeded.

    Examples
    --------
    >>> issubclass(UnknownOutcome, StoreError)
    True
    """
