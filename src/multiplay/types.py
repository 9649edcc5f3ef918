"""The array types that everything speaks, and notes on the fields of results.

``studies/results.py`` reads the notes: they are in ``Annotated``, where a text is the description.
"""

from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Arrays: TypeAlias = dict[str, NDArray[Any]]


class Note(Enum):
    """How a field of a result becomes plain data."""

    UNKNOWN_IS_NAN = "NaN in Python, null in JSON"
    SHOWN = "a property, or the text, that is part of plain data"
    HIDDEN = "a field that is no part of plain data"


class PlainName(NamedTuple):
    """The name of a field in plain data, if it differs."""

    name: str


MaybeKnown = Annotated[float, Note.UNKNOWN_IS_NAN]
Sense = Annotated[str, Literal["min", "max"]]
