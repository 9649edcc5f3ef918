"""Fixture ``owners``: learners, and studies in each store and of a service, with the same verbs."""

import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, NamedTuple, Self

import pytest
from trucks import STORES, store_of

import multiplay as mp
from multiplay.actions import ActionSet
from multiplay.storage import Store

KINDS = ["learner", *STORES, "http"]


NAMES = (f"study {number}" for number in count())


class Owners:
    """Learners or studies of one kind, which are closed at the end of a block.

    Parameters
    ----------
    kind
        One of ``KINDS``.
    place
        The store or the service of the studies; None for learners.
    """

    def __init__(self, kind: str, place: Store | mp.RemoteStudy | None = None) -> None:
        self.kind, self._place, self._open = kind, place, ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def new(self, actions: ActionSet, policy: mp.Policy | None = None, **settings: Any) -> Any:
        """Return a new learner or study, of seed 7 unless the settings have one."""
        settings = {"seed": 7} | settings
        if self._place is None:
            return mp.Learner(actions, policy, **settings)
        if isinstance(self._place, mp.RemoteStudy):
            made: Any = self._place.create(next(NAMES), actions, policy, **settings)
        else:
            made = mp.Study.create(next(NAMES), actions, policy, store=self._place, **settings)
        return self._open.enter_context(made)


def takes(owner: Any, verb: str, option: str) -> bool:
    """Return whether a verb has an option."""
    return option in inspect.signature(getattr(owner, verb)).parameters


class Place(NamedTuple):
    """A kind of owners, and their store or service."""

    kind: str
    place: Store | mp.RemoteStudy | None

    def owners(self) -> Owners:
        """Return what makes owners there."""
        return Owners(*self)


@pytest.fixture(scope="session", params=KINDS)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A place of owners of each kind: one store or service for all tests."""
    kind: str = request.param
    folder = tmp_path_factory.mktemp("owners")
    if kind == "learner":
        yield Place(kind, None)
    elif kind == "http":
        from serving import connected, serving  # not on Windows

        with serving(f"sqlite:///{folder / 'served.db'}") as url, connected(url) as service:
            yield Place(kind, service)
    else:
        yield Place(kind, store_of(kind, request, folder))


@pytest.fixture
def owners(place: Place) -> Iterator[Owners]:
    """Makes owners of each kind, which are closed after the test."""
    with place.owners() as found:
        yield found
