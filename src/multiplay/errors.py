"""The one error for bad input: it names the thing, what was expected, what came, what to do."""


class InvalidInput(ValueError):
    """An argument cannot be used; nothing was changed.

    Examples
    --------
    >>> raise InvalidInput("supply", "non-negative whole numbers", "-1", "Remove the supplier.")
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: supply: expected non-negative whole numbers, got -1. \
Remove the supplier.
    """

    def __init__(self, argument: str, expected: str, got: object, hint: str) -> None:
        self.argument = argument
        super().__init__(f"{argument}: expected {expected}, got {got}. {hint}")
