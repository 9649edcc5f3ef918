"""Blocks on their way to a worker, with the modules that were loaded by their place."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from multiplay._support import user_modules


class Parcel(NamedTuple):
    """A pickled block, and the sources of the modules that its classes come from."""

    places: list[user_modules.Place]
    pickled: bytes


def sent(run: Callable[..., Any], block: Any) -> tuple[Any, ...]:
    """Return what to submit to an executor so that a worker can run a block.

    Only the worker unpickles a parcel, after it has the modules: a scheduler in between needs none.
    """
    if not user_modules.PLACES:
        return run, block
    try:
        pickled = pickle.dumps(block)
    except Exception:  # threads need no pickling, and an executor may have another way
        return run, block
    places = [place for root, place in user_modules.PLACES.items() if root.encode() in pickled]
    return (run_parcel, run, Parcel(places, pickled)) if places else (run, block)


def run_parcel(run: Callable[..., Any], parcel: Parcel) -> Any:
    """Unpack a block, and run it."""
    for place in parcel.places:
        user_modules.install(place)
    return run(pickle.loads(parcel.pickled))
