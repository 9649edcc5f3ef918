"""Remote study: the verbs of ``Study``, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from multiplay._support.checks import check_instance, natural_number, true_or_false
from multiplay._support.html import HasPanel, Panel
from multiplay._support.serialization import brief, completed
from multiplay._support.words import USUAL_WORDS, Words, given_words
from multiplay.actions import ActionSet, Rule
from multiplay.constraints.constraint import Constraint, checked_constraints
from multiplay.errors import InvalidInput, StoreError
from multiplay.features import Features
from multiplay.learner import facts
from multiplay.learner.engine import (
    Range,
    checked_key,
    checked_missing,
    is_key,
)
from multiplay.learner.play_log import joined_tables
from multiplay.learner.plays import (
    AnyPlay,
    PendingPlay,
    When,
    play_id,
    timestamp,
)
from multiplay.learner.reports import REFUSED, Reports
from multiplay.policies import Policy
from multiplay.random import seed_or_random
from multiplay.storage import Entry, Head, Record
from multiplay.storage.base import checked_name
from multiplay.storage.journal import damaged
from multiplay.storage.stores import store_at
from multiplay.studies import Verified, backup, export, results, wire
from multiplay.studies.commands.base import (
    OF_PLAY,
    AnyCommand,
    ClientContext,
    Command,
    Query,
)
from multiplay.studies.commands.values import plain_set, plain_table
from multiplay.studies.export import to_entry
from multiplay.studies.play_history import PlayedPlan, checked_chunk, checked_id
from multiplay.studies.results import of_plain
from multiplay.studies.study import Place
from multiplay.studies.verbs import StudyVerbs

if TYPE_CHECKING:  # httpx may not be installed, and pandas takes as long as all the rest
    import pandas as pd

    from multiplay.remote.client import ServiceClient
    from multiplay.remote.fleet import RemoteStudies

ROWS = 1_000  # rows of a page of plays
LARGE_ROWS = 200  # rows of a page of entries, which may be large
TIMEOUTS = {"savings": 600.0}  # seconds for a comparison with a rule
HOURS = 6 * 3600.0  # seconds for replaying a long journal
R = TypeVar("R")
Plain = dict[str, Any]


class RemoteStudy(StudyVerbs, HasPanel):
    """A study of a service, returned by ``connect``, with the verbs and errors of ``Study``.

    The effect of a verb is durable when it returns. If the service does not respond, requests are
    retried for ``patience`` seconds, and take effect once; then ``StoreError`` is raised. Sets and
    policies must be classes of multiplay. Threads and forked processes may share it. A pickle of it
    contains the API key.

    Parameters
    ----------
    client
        The client of the service.
    name
        The name of the study; None if it is not determined.

    Examples
    --------
    Code for a local study works with a study of a service:

    >>> from multiplay import Study, Transport, connect
    >>> def trucks_of(study, day):
    ...     return study.ask(key=day).plan
    >>> plans = Transport([2], [1, 1], names=(["Lyon"], ["north", "south"]))
    >>> here = Study.create("lanes", plans, store="memory://either")
    >>> trucks_of(here, "2026-11-15")
    {'Lyon->north': 1, 'Lyon->south': 1}
    >>> with connect("https://plans.example.org", key="mp_...") as there:  # doctest: +SKIP
    ...     trucks_of(there, "2026-11-15")
    {'Lyon->north': 1, 'Lyon->south': 1}
    """

    def __init__(self, client: ServiceClient, name: str | None = None) -> None:
        self._client, self._name = client, name
        self._built: dict[str, tuple[Any, Any]] = {}

    # ------------------------------------------------------------ studies of the service

    def create(
        self,
        name: str,
        actions: ActionSet,
        policy: Policy | None = None,
        *,
        seed: int | None = 0,
        loss_range: Range | None = None,
        reports: Reports = REFUSED,
        varying_set: bool = False,
        features: Features | None = None,
        arm_features: Any = None,
        constraints: Sequence[Constraint] = (),
        words: Words = USUAL_WORDS,
        like: str | Sequence[str] | None = None,
        key: str | None = None,
    ) -> RemoteStudy:
        """Create a study; as ``Study.create``."""
        if policy is not None:
            check_instance("policy", policy, Policy, "PooledCTS(memory=Changes())")
        if features is not None:
            check_instance("features", features, Features, "Features(km=Number())")
        check_instance("reports", reports, Reports, "Reports(missing='ignore')")
        check_instance("words", words, Words, "Words(currency='EUR')")
        body: Plain = {
            "name": checked_name(name),
            "actions": plain_set("actions", actions),
            "policy": None if policy is None else wire.to_plain("policy", policy),
            "features": None if features is None else wire.to_plain("features", features),
            "arm_features": None
            if arm_features is None
            else plain_table("arm_features", arm_features),
            "seed": seed if seed is not None else seed_or_random(None),
            "loss_range": loss_range,
            "reports": {"outside": reports.outside, "missing": checked_missing(reports.missing)},
            "varying_set": true_or_false("varying_set", varying_set, "Leave it out."),
            "words": given_words(**words._asdict()),
            "constraints": [*map(wire.of_constraint, checked_constraints(constraints))],
            "key": _checked(key),
        }
        if like is not None:
            body["like"] = like if isinstance(like, str) else [*like]
        self._client.write("/studies", body)
        return self._other(name)

    @property
    def studies(self) -> RemoteStudies:
        """All studies of the service: verbs for many of them."""
        from multiplay.remote.fleet import RemoteStudies

        return RemoteStudies(self._client, self.names, lambda name: self._other(name)._context)

    def open(self, name: str) -> RemoteStudy:
        """Return a handle on a study of the service; raise ``NotFound`` if it does not exist."""
        other = self._other(checked_name(name))
        other._info()  # raises NotFound
        return other

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the studies that the key may see, and that begin with a prefix."""
        begin = {"prefix": prefix} if prefix else {}
        pages = self._client.pages("/studies", {"limit": ROWS, **begin})
        return [one["name"] for page in pages for one in page]

    def delete(self, name: str) -> None:
        """Delete a study and its journal permanently."""
        self._client.delete(path_of(checked_name(name)))

    def rename(self, name: str, new: str) -> None:
        """Give a study a new name; as ``Study.rename``."""
        self._client.write(path_of(checked_name(name), "rename"), {"name": checked_name(new)})

    # ------------------------------------------------------------ properties

    def __repr__(self) -> str:
        text = f"{self._name!r} at {self.url}" if self._name is not None else f"at {self.url}"
        with suppress(StoreError, InvalidInput):
            if self._name is not None:
                text += f", {self._info(patience=0.0)['summary']}"
        return f"RemoteStudy({text})"

    def _panel(self) -> Panel:
        """Return what ``Study`` shows; without retries, so that a notebook does not wait."""
        title, where = f"RemoteStudy {self._name or ''}", {"service": self.url}
        if self._name is None:
            return Panel(title, where)
        once: dict[str, Any] = {"patience": 0.0}
        try:
            about = self._client.get_cached(self._path(), **once)
            level, most = {"level": facts.LEVEL}, {"limit": facts.MOST_PENDING}
            known = self._client.get_cached(self._path("arms"), level, **once)["items"]
            first = self._client.get(self._path("pending"), most, **once)["items"]
        except (StoreError, InvalidInput):
            return Panel(title, where)
        arms = facts.by_share(wire.to_table(known, results.ARMS))
        about_it = facts.Facts(
            policy=brief(about["policy"]),
            summary=self.policy.summary,
            words=of_plain(Words, about["words"]),
            set_type=about["actions"].get("type"),
            arm_count=len(arms),
            loss_range=about["loss_range"],
            asked=about["asked"],
            told=None,
            open_plays=about["pending"],
            clipped=about["clipped"],
        )
        pending = [
            facts.PendingRow(
                *(play.id, play.key, None, int(play.action.sum())),
                *(play.expected.total, play.plan),
            )
            for play in map(self._context.play, first)
        ]
        return facts.panel_of(title, where, about_it, arms.head(facts.MOST_ARMS), pending)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()

    def __reduce__(self) -> Any:
        return type(self), (self._client, self._name)

    def disconnect(self) -> None:
        """Close the connections to the service; the next verb opens a new one."""
        self._client.close()

    @property
    def url(self) -> str:
        """The URL of the service."""
        return self._client.base

    @property
    def name(self) -> str:
        """The name of the study."""
        if self._name is None:
            raise _which(self.names())
        return self._name

    @property
    def actions(self) -> ActionSet:
        """The default action set."""
        built: ActionSet = self._build("actions", ActionSet)
        return built

    @property
    def policy(self) -> Policy:
        """The policy."""
        built: Policy = self._build("policy", Policy)
        return built

    @property
    def features(self) -> Features | None:
        """The declared features; None if there are none."""
        return None if self._info()["features"] is None else self._build("features", Features)

    @property
    def constrained_by(self) -> tuple[Constraint, ...]:
        """The constraints that count now; ``constraints`` says what became of them."""
        plain = self._info()["constraints"]
        return tuple(wire.to_constraint("constraints", one) for one in plain)

    @property
    def words(self) -> Words:
        """The words in which plans and costs are shown."""
        return of_plain(Words, self._info()["words"])

    @property
    def loss_range(self) -> str:
        """The range of losses, such as "losses from 0 to 250"."""
        return str(self._info()["loss_range"])

    @property
    def summary(self) -> str:
        """One line about the policy and the number of plays."""
        return str(self._info()["summary"])

    @property
    def seed(self) -> int | None:
        """The seed of all random numbers."""
        return int(next(self.entries()).record.header["seed"])

    @property
    def asked(self) -> int:
        """The number of plays."""
        return int(self._info()["asked"])

    @property
    def clipped(self) -> int:
        """The number of losses outside their range that were clipped."""
        return int(self._info()["clipped"])

    @property
    def known_arms(self) -> tuple[str, ...]:
        """All arms that occurred so far."""
        return tuple(self.arms()["arm"])

    @property
    def open_plays(self) -> int:
        """The number of plays without a final report."""
        return int(self._info()["pending"])

    @property
    def head(self) -> Head:
        """The last entry of the journal: its number, and its digest."""
        info = self._info()
        return Head(info["entries"] - 1, bytes.fromhex(info["digest"]))

    # ------------------------------------------------------------ verbs

    def do(self, command: Command[R], key: str | None = None, at: When = None) -> R:
        """Send a verb that changes the study."""
        body = command.plain(self._context)
        if key is not None:
            body["key"] = checked_key(key)
        if at is not None:  # otherwise the clock of the service
            body["at"] = timestamp("at", at)
        answer = self._client.write(self._path_of(command), body, command.http.method)
        result: R = command.answer(answer, self._context)
        return result

    def read(self, query: Query[R]) -> R:
        """Send a verb that reads the study."""
        given, path = query.plain(self._context), self._path_of(query)
        if query.http.method != "GET":
            answer = self._client.query(path, given, timeout=TIMEOUTS.get(query.verb))
        elif query.http.path.startswith(OF_PLAY):
            answer = self._client.get(path)
        else:
            answer = self._client.get_cached(path, given)
        result: R = query.answer(answer, self._context)
        return result

    def _path_of(self, command: AnyCommand) -> str:
        """Return the path of a verb, with its play."""
        path = command.http.path
        if path.startswith(OF_PLAY):
            path = _of_play(vars(command)["play"], path.removeprefix(OF_PLAY))
        return self._path(path)

    @property
    def _context(self) -> ClientContext:
        names = (lambda: self.words), (lambda: self.features), (lambda: self.actions.names)
        return ClientContext(self.why, *names)

    def _rule(self) -> Rule | None:
        return None if self._info()["versus"] is None else self._build("versus", Rule)

    # ------------------------------------------------------------ queries

    def pending(self) -> list[PendingPlay]:
        """Return the plays without a final report, oldest first."""
        pages = self._client.pages(self._path("pending"), {"limit": ROWS})
        return [self._context.play(play) for page in pages for play in page]

    # ------------------------------------------------------------ history

    def plays(self, *, external: bool = False, chunk: int | None = None) -> Any:
        """Return a table of all plays; an iterator of parts of ``chunk`` rows if it is given."""
        external = true_or_false("external", external, "Leave it out.")
        if chunk is not None:
            return self._tables(checked_chunk(chunk), external)
        return joined_tables(self._tables(ROWS, external))

    def plans(self, *, wide: bool = False) -> pd.DataFrame:
        """Return a table of all plans; as ``Study.plans``."""
        return export.plans_table(self._history(), wide, self.known_arms, self.promised)

    @property
    def promised(self) -> tuple[str, ...]:
        """The names of all promises so far, in order; as ``Study.promised``."""
        return tuple(self._info().get("promised", ()))

    def entries(self, start: int = 0) -> Iterator[Entry]:
        """Yield the entries of the journal from this number on, in order.

        Their digests are compared: ``Damaged`` is raised at a modified entry.
        """
        start = natural_number("start", start, "Use the number of an entry.")
        return self._entries(self._path("entries"), start)

    def export(
        self,
        path: str | PathLike[str],
        *,
        plays: bool = False,
        plans: bool = False,
        wide: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Write the journal, the plays or the plans to a local file; as ``Study.export``.

        Return the number of rows.
        """
        content = export.Content.checked(plays, plans, wide, self.known_arms, self.promised)
        opened = self._history()
        return export.export(opened, path, content, lambda: export.overview(self), progress)

    def backup(
        self, path: str | PathLike[str], *, progress: Callable[[int], None] | None = None
    ) -> int:
        """Copy this study to a local SQLite file; return the number of entries.

        Open it as ``Study.open(name, store=path)``. An existing file is refused.
        """
        return backup.backup(self._history(), self.name, path, progress)

    def copy(
        self,
        to: Place | None = None,
        *,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Copy this study within the service, or to a store of this machine; as ``Study.copy``.

        Return the number of entries.
        """
        new = self.name if name is None else checked_name(name)
        if to is not None:
            return backup.copy(self._history(), store_at(to), new, progress)
        entries: int = self._client.write(self._path("copy"), {"name": new})["entries"]
        if progress is not None:
            progress(entries)
        return entries

    def verify(self) -> Verified:
        """Replay the whole journal, and compare every play and the state, bit for bit.

        The service runs the replay.
        """
        return of_plain(Verified, self._client.query(self._path("verify"), {}, timeout=HOURS))

    def watch(self) -> Iterator[int]:
        """Yield the number of the last entry: immediately, and after every change.

        The iterator does not end; it reconnects when the service was interrupted. It may skip
        numbers, but never the last one.
        """
        return self._changes(self._path("events"))

    # ------------------------------------------------------------ inside

    def _other(self, name: str) -> RemoteStudy:
        """Return a handle on a study, with its own connections."""
        return RemoteStudy(type(self._client)(self._client.options), name)

    def _path(self, *parts: object) -> str:
        return path_of(self.name, *parts)

    def _info(self, **options: Any) -> Plain:
        """Return the description of the study."""
        info: Plain = self._client.get_cached(self._path(), **options)
        return info

    def _build(self, what: str, kind: type) -> Any:
        """Return the set or the policy; the same object while its description is unchanged."""
        plain = self._info()[what]
        known, built = self._built.get(what, (None, None))
        if plain != known:
            built = wire.builder().build(what, completed(plain), kind)
            self._built[what] = plain, built
        return built

    def _rows(self, which: str | None = None) -> Iterator[Plain]:
        query = {"limit": ROWS} | ({} if which is None else {which: "true"})
        pages = self._client.pages(self._path("plays"), query)
        return (row for page in pages for row in page)

    def _tables(self, rows: int, external: bool = False) -> Iterator[pd.DataFrame]:
        """Yield the table of plays in parts; one empty part if there are no plays."""
        days = self._rows("external") if external else iter(())
        while part := [*islice(days, rows)]:
            yield wire.to_table(part, export.PLAYS)
        left = self._rows()
        part = [*islice(left, rows)]
        yield wire.to_table(part, export.PLAYS)
        while len(part) == rows and (part := [*islice(left, rows)]):
            yield wire.to_table(part, export.PLAYS)

    def _entries(self, path: str, start: int) -> Iterator[Entry]:
        first = max(start - 1, 0)  # the digest of each entry covers the one before it
        before: Head | None = Head() if start == 0 else None
        for page in self._client.pages(path, {"start": first, "limit": LARGE_ROWS}):
            for plain in page:
                if before is None:
                    before = Head(plain["number"], bytes.fromhex(plain["digest"]))
                    continue
                try:
                    entry = to_entry(plain, before)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise damaged(before.number + 1, f"an unreadable entry ({error})") from None
                before = Head(entry.number, entry.digest)
                yield entry

    def _changes(self, path: str) -> Iterator[int]:
        last = None
        for data in self._client.events(path):
            if data != last:
                last = data
                yield int(data)

    @contextmanager
    def _history(self) -> Iterator[RemoteHistory]:
        other = self._other(self.name)  # its own connections: a long export does not block verbs
        try:
            yield RemoteHistory(other)
        finally:
            other.disconnect()


class RemoteHistory:
    """The journal of a remote study, for exports and backups."""

    def __init__(self, study: RemoteStudy) -> None:
        self._study = study

    def snapshot(self) -> Record | None:
        """Return None: the journal is sufficient."""
        return None

    def head(self) -> Head:
        """Return the number and the digest of the last entry."""
        return self._study.head

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, in order."""
        return self._study.entries()

    def plays(self) -> Iterator[pd.DataFrame]:
        """Yield the table of plays in parts."""
        tables: Iterator[pd.DataFrame] = self._study.plays(chunk=ROWS)
        return tables

    def plans(self) -> Iterator[PlayedPlan]:
        """Yield all plays with their plans and losses, in order."""
        return map(wire.to_played_plan, self._study._rows("plans"))


def found_study(client: ServiceClient, named: str | None, of_key: str | None) -> RemoteStudy:
    """Return the named study, the study of the key, or the only study."""
    study = RemoteStudy(client, named or of_key)
    if named is not None:
        study._info()  # raises NotFound
    elif of_key is None:
        names = study.names()
        study._name = names[0] if len(names) == 1 else None
    return study


def _which(names: list[str]) -> InvalidInput:
    """Return the error of a verb when the study is not determined."""
    if not names:
        hint = "Create one: create(name, actions, policy)."
        return InvalidInput("study", "a study", "a service without studies", hint)
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    return InvalidInput("study", f"one of {shown}", "no name", f"Use study={names[0]!r}.")


def path_of(study: str, *parts: object) -> str:
    """Return the URL path of a study, or of a part of it."""
    return "/".join(["/studies", in_path(study), *map(str, parts)])


def in_path(name: str) -> str:
    """Return a name as one part of a URL path."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def _of_play(play: AnyPlay, verb: str) -> str:
    """Return the path of a verb of a play."""
    if isinstance(play, str) and is_key(play):
        return f"plays/{in_path(play)}/{verb}?by=key"
    return f"plays/{checked_id(play_id(play, lambda key: None))}/{verb}"


def _checked(key: Any) -> str | None:
    return None if key is None else checked_key(key)
