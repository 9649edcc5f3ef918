"""Contract test of studies, for any store."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from multiplay.policies import GenCTS, Policy
from multiplay.storage import Store, store_at
from multiplay.studies import Study

if TYPE_CHECKING:
    from study_machine import Studies


def check_study(
    studies: Store | str | PathLike[str] | Studies,
    policy: Policy | None = None,
    *,
    examples: int = 20,
    steps: int = 30,
    seed: int = 0,
) -> None:
    """Check the documented behaviour of a study by random requests.

    Three handles on one study are used in turn: plays are asked, told, told again, corrected,
    retracted, closed and cancelled, with keys and without; promises are made and released, or
    changed plans cost something; handles are opened again, and requests repeated. All answers and
    tables are compared with a model, with those of the other handles, and with a study in memory
    that receives the same requests from one process. Needs hypothesis: ``pip install
    multiplay[testing]``.

    Parameters
    ----------
    studies
        A store, its URL or its path; or an object with ``open(name)``, ``names()``,
        ``delete(name)`` and ``create(name, actions, policy, **settings)``. The check deletes its
        studies.
    policy
        The policy of the studies; ``GenCTS()`` if not given.
    examples, steps
        The number of studies, and the number of requests to each.
    seed
        The same seed gives the same requests.

    Examples
    --------
    >>> from study_contract import check_study
    >>> check_study("memory://check", examples=2, steps=5)
    """
    try:
        from study_machine import run
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        hint = "check_study needs hypothesis. Install it: pip install multiplay[testing]"
        raise ModuleNotFoundError(hint, name="hypothesis") from error
    place = _At(store_at(studies)) if isinstance(studies, Store | str | PathLike) else studies
    run(place, GenCTS() if policy is None else policy, examples, steps, seed)


class _At:
    """The studies of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, name: str, actions: Any, policy: Policy, **settings: Any) -> Study:
        return Study.create(name, actions, policy, store=self._store, **settings)

    def open(self, name: str) -> Study:
        return Study.open(name, store=self._store)

    def names(self) -> list[str]:
        return Study.names(store=self._store)

    def delete(self, name: str) -> None:
        Study.delete(name, store=self._store)
