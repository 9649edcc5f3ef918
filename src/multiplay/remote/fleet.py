"""The studies of a service: verbs for many of them, in few requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay.errors import InvalidInput, StoreError
from multiplay.learner.engine import checked_key
from multiplay.learner.plays import AnyPlay, PendingPlay, When, timestamp
from multiplay.storage.base import checked_name
from multiplay.studies.commands.base import ClientContext, Command
from multiplay.studies.commands.plays import Ask, Tell

if TYPE_CHECKING:  # httpx may not be installed
    from multiplay.remote.client import ServiceClient

AT_ONCE = 500  # items of a request


class Answer(NamedTuple):
    """What one study of many has answered.

    Attributes
    ----------
    study : str
        The name of the study.
    result : PendingPlay, Receipt or None
        What the verb returns; None if it failed.
    error : Exception or None
        Why it failed: the error that the verb of this study raises.
    """

    study: str
    result: Any
    error: InvalidInput | StoreError | None


class RemoteStudies:
    """All studies of a service: ``connect(...).studies``.

    A verb for many studies sends few requests. Each study has an answer of its own: a result, or
    an error. What failed for one study does not stop the others, and is tried again for
    ``patience`` seconds if it may pass.

    Examples
    --------
    >>> from multiplay import connect
    >>> studies = connect("https://plans.example.org", key="mp_...").studies  # doctest: +SKIP
    >>> for one in studies.ask(["west/lyon", "west/nice"], key="2026-11-18"):  # doctest: +SKIP
    ...     print(one.study, one.error or one.result.plan)
    """

    def __init__(
        self,
        client: ServiceClient,
        names: Callable[[str], list[str]],
        context_of: Callable[[str], ClientContext],
    ) -> None:
        self._client, self._names, self._context_of = client, names, context_of

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the studies that the key may see, and that begin with a prefix."""
        return self._names(prefix)

    def ask(
        self,
        studies: Iterable[str] | Mapping[str, Mapping[str, Any]],
        *,
        key: str | None = None,
        at: When = None,
    ) -> Iterator[Answer]:
        """Ask many studies for a plan, and yield their answers, in order.

        Parameters
        ----------
        studies
            The names of studies; or for each of them the arguments of ``Study.ask`` that differ,
            such as ``{"west/lyon": {"exclude": ["Lyon->Nice"]}}``.
        key
            The name of this play in each study, such as the day: the same request with the same key
            gives the same plays, so a job that was killed is simply run again.
        at
            The time of the plays; now if not given.
        """
        more = studies if isinstance(studies, Mapping) else {}
        commands = [(name, Ask(**more.get(name, {}))) for name in _names(studies)]
        yield from self._sent("/plays", commands, key, at)

    def tell(
        self,
        reports: Iterable[tuple[str, AnyPlay, Any]],
        *,
        missing: str | None = None,
        at: When = None,
    ) -> Iterator[Answer]:
        """Tell the losses of many plays, and yield the receipts, in order.

        Parameters
        ----------
        reports
            For each report the name of the study, the play, and its losses, as of ``Study.tell``.
        missing, at
            As of ``Study.tell``.
        """
        commands = [(name, Tell(play, losses, missing=missing)) for name, play, losses in reports]
        yield from self._sent("/reports", commands, None, at)

    def _sent(
        self, path: str, commands: Sequence[tuple[str, Command[Any]]], key: str | None, at: When
    ) -> Iterator[Answer]:
        from multiplay.remote.client import error_of_problem

        labels: dict[str, Any] = {} if key is None else {"key": checked_key(key)}
        labels |= {} if at is None else {"at": timestamp("at", at)}
        for start in range(0, len(commands), AT_ONCE):
            part = commands[start : start + AT_ONCE]
            of = [self._context_of(checked_name(name)) for name, _ in part]
            items = [
                {"study": name, **_play(one), **one.plain(context), **labels}
                for context, (name, one) in zip(of, part, strict=True)
            ]
            found = self._client.write_items(path, items)
            for context, (name, command), answer in zip(of, part, found, strict=True):
                if problem := answer.get("problem"):
                    yield Answer(name, None, error_of_problem(problem, self._client.base))
                else:
                    yield Answer(name, command.answer(answer["result"], context), None)


def _names(studies: Any) -> list[str]:
    if isinstance(studies, str):
        hint = f"Write [{studies!r}]."
        raise InvalidInput("studies", "a list of names", repr(studies), hint)
    return [*studies]


def _play(command: Command[Any]) -> dict[str, Any]:
    if not isinstance(command, Tell):
        return {}
    play = command.play
    return {"play": play.id if isinstance(play, PendingPlay) else play}
