"""Remote study: the verbs of ``Study``, over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import isfinite
from os import PathLike
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from multiplay._support.checks import check_instance, natural_number, probability, true_or_false
from multiplay._support.deadline import checked_limit
from multiplay._support.frames import TableFile, table_file
from multiplay._support.html import HasPanel, Panel
from multiplay._support.serialization import brief, completed
from multiplay._support.words import Words, given_words
from multiplay.actions import ActionSet, Rule
from multiplay.errors import InvalidInput, StoreError
from multiplay.features import Features
from multiplay.learner import facts
from multiplay.learner.allowance import EACH_DAY, SURE, Allowance, AllowanceSettings
from multiplay.learner.comparison import Question
from multiplay.learner.engine import (
    Losses,
    Range,
    Round,
    Units,
    checked_key,
    checked_missing,
    is_key,
)
from multiplay.learner.learner import When
from multiplay.learner.logged_data import TableCheck, arm_columns, checked_day_first
from multiplay.learner.plan_request import checked_replace
from multiplay.learner.play_log import joined_tables
from multiplay.learner.plays import (
    AnyPlay,
    Estimate,
    PendingPlay,
    Plan,
    Receipt,
    Remaining,
    Why,
    duration_seconds,
    play_id,
    timestamp,
)
from multiplay.learner.promises import PromiseReport, checked_promises, given_sets
from multiplay.learner.queries import LEVEL, Moment, checked_by, promises_frame
from multiplay.policies import Policy
from multiplay.policies.switching import checked_change
from multiplay.promises.promise import Promise
from multiplay.random import seed_or_random
from multiplay.savings import Saved
from multiplay.storage import Entry, Head, Record
from multiplay.storage.base import checked_name
from multiplay.storage.journal import damaged
from multiplay.storage.stores import store_at
from multiplay.studies import Verified, backup, entry_codec, export, wire
from multiplay.studies.comparison import checked_rule
from multiplay.studies.export import to_entry
from multiplay.studies.play_history import PlayedPlan, checked_chunk, checked_id
from multiplay.studies.study import Ids, Names, Place

if TYPE_CHECKING:  # httpx may not be installed, and pandas takes as long as all the rest
    import pandas as pd

    from multiplay.remote.client import ServiceClient

ROWS = 1_000  # rows of a page of plays
LARGE_ROWS = 200  # rows of a page of entries, which may be large
MINUTES = 600.0  # seconds for a comparison with a rule
HOURS = 6 * 3600.0  # seconds for replaying a long journal
Plain = dict[str, Any]
PromiseReports = list[PromiseReport]
Plays = list[PendingPlay]  # ``list`` is a method of the class


class RemoteStudy(HasPanel):
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
        losses: Range | None = None,
        rewards: Range | None = None,
        outside: str = "refuse",
        missing: str = "refuse",
        changing: bool = False,
        features: Features | None = None,
        arms: Any = None,
        currency: str | None = None,
        unit: str | None = None,
        arm: str | None = None,
        round: str | None = None,
        baseline: Rule | str | None = None,
        allowance: float | None = None,
        sure: float = SURE,
        per: str | None = None,
        promises: Sequence[Promise] | None = None,
        change: float | None = None,
        key: str | None = None,
    ) -> RemoteStudy:
        """Create a study; as ``Study.create``."""
        if policy is not None:
            check_instance("policy", policy, Policy, "BootstrapCTS(change='follow')")
        if features is not None:
            check_instance("features", features, Features, "Features(km=Number())")
        limit = AllowanceSettings.given(baseline, allowance, sure, per)
        body: Plain = {
            "name": checked_name(name),
            "actions": _plain_set(actions),
            "policy": None if policy is None else wire.to_plain("policy", policy),
            "features": None if features is None else wire.to_plain("features", features),
            "arms": None if arms is None else _plain_table(arms, "arms"),
            "seed": seed if seed is not None else seed_or_random(None),
            "losses": losses,
            "rewards": rewards,
            "outside": outside,
            "missing": checked_missing(missing),
            "changing": true_or_false("changing", changing, "Leave it out."),
            "words": given_words(currency=currency, unit=unit, arm=arm, round=round),
            **({} if limit is None else _plain_allowance(limit)),
            "promises": [wire.of_promise(one) for one in checked_promises(promises)],
            **({} if change is None else {"change": checked_change(change)}),
            "key": _checked(key),
        }
        self._client.write("/studies", body)
        return self._other(name)

    def open(self, name: str) -> RemoteStudy:
        """Return a handle on a study of the service; raise ``NotFound`` if it does not exist."""
        other = self._other(checked_name(name))
        other._info()  # raises NotFound
        return other

    def list(self) -> Names:
        """Return the names of all studies that the key may see."""
        pages = self._client.pages("/studies", {"limit": ROWS})
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
        arms = facts.by_share(wire.to_table(known, wire.ARMS))
        about_it = facts.Facts(
            policy=brief(about["policy"]),
            summary=self.policy.summary,
            words=Words(**about["words"]),
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
            for play in map(self._play, first)
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
            raise _which(self.list())
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
    def baseline(self) -> AllowanceSettings | None:
        """The baseline and the allowance; None if there are none."""
        about = self._info()
        if about["baseline"] is None:
            return None
        rule = about["baseline"] if about["baseline"] == EACH_DAY else self._build("baseline", Rule)
        return AllowanceSettings(rule, about["allowance"], about["sure"], about["per"])

    @property
    def change(self) -> float | None:
        """The cost of each unit that differs from the last plan; None if there is none."""
        change: float | None = self._info()["change"]
        return change

    @property
    def words(self) -> Words:
        """The words in which plans and costs are shown."""
        return Words(**self._info()["words"])

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

    # ------------------------------------------------------------ plays

    def ask(
        self,
        actions: ActionSet | None = None,
        *,
        key: str | None = None,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        features: Any = None,
        baseline: Units | None = None,
        ahead: Sequence[ActionSet] | None = None,
        time_limit: float | None = None,
        replace: bool = False,
        at: When = None,
    ) -> PendingPlay:
        """Choose the next play; as ``Study.ask``.

        The service has its own time limit, 10 seconds by default.
        """
        checked_limit(time_limit)
        key, replaces = checked_replace(key, replace)
        given = {"time_limit": time_limit, "replace": replaces or None, **_labels(key, at)}
        given |= _limited(actions, at_most, exclude, fixed, features)
        if baseline is not None:
            given["baseline"] = wire.plain_units("baseline", baseline)
        if ahead is not None:
            given["ahead"] = [wire.request_set(one) for one in given_sets(ahead)]
        return self._play(self._do("ask", given))

    def tell(
        self,
        play: AnyPlay,
        losses: Losses,
        *,
        final: bool = True,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from the losses of a play; as ``Study.tell``."""
        given = {
            "final": true_or_false("final", final, "Use final=False if more losses follow."),
            "losses": wire.plain_losses(losses),
            "missing": _missing(missing),
        }
        return wire.to_receipt(self._end("tell", play, given, key, at))

    def close(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> Receipt:
        """Close a play: learn from the losses reported so far; the rest counts as missing."""
        return wire.to_receipt(self._end("close", play, {}, key, at))

    def cancel(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> None:
        """Discard a play that was not carried out: nothing is learned from it."""
        self._end("cancel", play, {}, key, at)

    def correct(
        self,
        play: AnyPlay,
        losses: Losses,
        *,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Replace the losses that were told of a play; as ``Study.correct``."""
        given = {"losses": wire.plain_losses(losses), "missing": _missing(missing)}
        return wire.to_receipt(self._end("correct", play, given, key, at))

    def retract(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> None:
        """Withdraw the losses that were told of a play; as ``Study.retract``."""
        self._end("retract", play, {}, key, at)

    def expire(
        self, older_than: timedelta | float, *, key: str | None = None, at: When = None
    ) -> Ids:
        """Close the plays that are older than this; as ``Study.expire``."""
        length = duration_seconds("older_than", older_than)
        ended: Ids = self._do("expire", {"older_than": length, **_labels(key, at)})["plays"]
        return ended

    # ------------------------------------------------------------ external plans and logged data

    def learn(
        self,
        plan: Units,
        losses: Losses,
        *,
        actions: ActionSet | None = None,
        features: Any = None,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from an external plan; as ``Study.learn``."""
        given = {
            "plan": wire.plain_units("plan", plan),
            "losses": wire.plain_losses(losses),
            "actions": _plain_day(actions),
            "features": wire.plain_features(features),
            "missing": _missing(missing),
            **_labels(key, at),
        }
        return wire.to_receipt(self._do("learn", given))

    def learn_table(
        self,
        table: Any,
        arm: str | Sequence[str] = "arm",
        round: str = "round",
        loss: str = "loss",
        *,
        skip_bad: bool = False,
        day_first: bool | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from a table of logged data; as ``Study.learn_table``.

        By default a service accepts a million bytes in one request, about 20,000 rows: send larger
        tables in parts.
        """
        skip_bad = true_or_false("skip_bad", skip_bad, "Leave it out.")
        _, given = self._table(table, arm, round, loss, day_first)
        given |= {"skip_bad": skip_bad, **_labels(key, at)}
        return wire.to_receipt(self._do("learn-table", given))

    def check_table(
        self,
        table: Any,
        arm: str | Sequence[str] = "arm",
        round: str = "round",
        loss: str = "loss",
        *,
        day_first: bool | None = None,
    ) -> TableCheck:
        """Return what ``learn_table`` would learn from a table; as ``Study.check_table``."""
        file, given = self._table(table, arm, round, loss, day_first)
        answer = self._client.query(self._path("check-table"), given)
        return wire.to_table_check(answer, file.format)

    def _table(
        self,
        table: Any,
        arm: str | Sequence[str],
        round: str,
        loss: str,
        day_first: bool | None,
    ) -> tuple[TableFile, Plain]:
        """Return a table of logged data, and the body of a request with it."""
        file, named = table_file(table, arm_columns(arm)), {*arm_columns(arm), round, loss}
        declared = self.features if any(name not in named for name in file.frame.columns) else None
        plain = wire.of_logged_table(file, arm, round, loss, declared)
        return file, plain | {"day_first": checked_day_first(day_first)}

    def describe(self, table: Any, *, key: str | None = None, at: When = None) -> None:
        """Keep features of arms; as ``Study.describe``."""
        self._do("arms", {"features": _plain_table(table), **_labels(key, at)}, "PUT")

    def set_words(
        self,
        currency: str | None = None,
        unit: str | None = None,
        arm: str | None = None,
        round: str | None = None,
        *,
        key: str | None = None,
        at: When = None,
    ) -> None:
        """Set the words in which plans and costs are shown; as ``Study.set_words``."""
        words = given_words(currency=currency, unit=unit, arm=arm, round=round)
        self._do("words", {**words, **_labels(key, at)}, "PUT")

    # ------------------------------------------------------------ comparison with a rule

    @property
    def compare(self) -> Rule | None:
        """The rule that plays are compared with; as ``Study.compare``."""
        return None if self._info()["compare"] is None else self._build("compare", Rule)

    @compare.setter
    def compare(self, rule: Rule | None) -> None:
        self.set_compare(rule)

    def set_compare(self, rule: Rule | None, *, key: str | None = None, at: When = None) -> None:
        """Set the rule that plays are compared with; as ``Study.set_compare``."""
        plain = None if checked_rule(rule) is None else wire.to_plain("rule", rule)
        given = _labels(key, at).items()
        body = {"rule": plain} | {name: one for name, one in given if one is not None}
        self._client.write(self._path("compare"), body, "PUT")

    def promise(self, promise: Promise, *, key: str | None = None, at: When = None) -> None:
        """Make a promise, which counts the plays from now on; as ``Study.promise``."""
        (made,) = checked_promises([promise])
        self._do("promises", {"promise": wire.of_promise(made), **_labels(key, at)})

    def release(self, name: str, *, key: str | None = None, at: When = None) -> None:
        """End a promise by its name; as ``Study.release``."""
        self._do("release", {"name": name, **_labels(key, at)})

    def saved(
        self,
        against: Any = None,
        *,
        since: Moment = None,
        until: Moment = None,
        level: float = 0.95,
        method: str = "model",
    ) -> Saved:
        """Return what the plays saved against a rule; as ``Study.saved``."""
        rest = Question.given(None, since, until, level, method)
        plain = None if against is None else wire.of_against(against)
        return self._saved(rest, against=plain, method=method)

    def cost_of_learning(
        self, *, since: Moment = None, until: Moment = None, level: float = 0.95
    ) -> Saved:
        """Return what the plays cost more than the best plans known at the end."""
        return self._saved(Question.given(None, since, until, level), learning=True)

    def _saved(self, question: Question, **given: Any) -> Saved:
        ends = {"since": question.period.first, "until": question.period.last}
        body = given | {
            name: datetime.fromtimestamp(end, UTC).isoformat()
            for name, end in ends.items()
            if isfinite(end)
        }
        body["level"] = question.level
        answer = self._client.query(self._path("saved"), body, timeout=MINUTES)
        return wire.to_saved(answer)

    # ------------------------------------------------------------ reports that count

    def forget(
        self,
        arm: str | None = None,
        *,
        before: Round,
        key: str | None = None,
        at: When = None,
    ) -> Remaining:
        """Forget the losses of an arm that were told before a round; as ``Study.forget``."""
        given = {"arm": self._arm(arm), "before": _round("before", before)}
        return Remaining(**self._do("forget", given | _labels(key, at)))

    def keep(
        self,
        arm: str | None = None,
        *,
        since: Round | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Remaining:
        """Let all losses of an arm since a round count again; as ``Study.keep``."""
        given = {"arm": self._arm(arm), "since": None if since is None else _round("since", since)}
        return Remaining(**self._do("keep", given | _labels(key, at)))

    # ------------------------------------------------------------ queries

    def pending(self) -> Plays:
        """Return the plays without a final report, oldest first."""
        pages = self._client.pages(self._path("pending"), {"limit": ROWS})
        return [self._play(play) for page in pages for play in page]

    def arms(self, level: float = 0.95, features: Any = None) -> pd.DataFrame:
        """Return a table of all arms; as ``Study.arms``."""
        level = probability("level", level, LEVEL)
        if features is None:
            answer = self._client.get_cached(self._path("arms"), {"level": level})
        else:
            body = {"level": level, "features": wire.plain_features(features)}
            answer = self._client.query(self._path("arms"), body)
        return wire.to_beliefs(answer, wire.ARMS)

    def effects(self, level: float = 0.95, by: str = "feature") -> pd.DataFrame:
        """Return what the features do to the loss of a unit; as ``Study.effects``."""
        level, by = probability("level", level, LEVEL), checked_by(by)
        answer = self._client.get_cached(self._path("effects"), {"level": level, "by": by})
        return wire.to_beliefs(answer, wire.ARM_EFFECTS if by == "arm" else wire.EFFECTS)

    def best(
        self,
        actions: ActionSet | None = None,
        *,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        features: Any = None,
    ) -> Plan:
        """Return the best plan by the current estimates, without exploration or a new play."""
        body = _limited(actions, at_most, exclude, fixed, features)
        return wire.to_plan(self._client.query(self._path("best"), body), lambda: self.words)

    def expect(
        self,
        plan: Units,
        *,
        actions: ActionSet | None = None,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        level: float = 0.95,
        features: Any = None,
    ) -> Estimate:
        """Return the estimated cost of a plan, with an interval; as ``Study.expect``."""
        body = {
            "plan": wire.plain_units("plan", plan),
            "level": probability("level", level, LEVEL),
            **_limited(actions, at_most, exclude, fixed, features),
        }
        return wire.to_estimate(self._client.query(self._path("expect"), body))

    def why(self, play: AnyPlay) -> Why:
        """Return how a pending play differs from the best plan, and what for; as ``Study.why``."""
        return wire.to_why(self._client.get(self._path(_of_play(play, "why"))))

    def allowance(self) -> Allowance:
        """Return how much of the allowance is left; as ``Study.allowance``."""
        return Allowance(**self._client.get_cached(self._path("allowance")))

    def promises(self) -> pd.DataFrame:
        """Return how every promise stands; as ``Study.promises``."""
        return promises_frame(self.promise_reports())

    def promise_reports(self) -> PromiseReports:
        """Return the rows of ``promises``."""
        return wire.to_promises(self._client.get_cached(self._path("promises"))["items"])

    def drift(self, level: float = 0.05) -> pd.DataFrame:
        """Return the changes of arms; as ``Study.drift``."""
        hint = "Use 0.05 for a 5 % chance of a false alarm over the life of the learner."
        level = probability("level", level, hint)
        answer = self._client.get_cached(self._path("drift"), {"level": level})
        return wire.to_table(answer["items"], wire.DRIFT)

    def _arm(self, arm: Any) -> str | None:
        if arm is None or isinstance(arm, str):
            return arm
        expected = f"a name such as {self.actions.names[0]!r}"
        raise InvalidInput("arm", expected, repr(arm), "Check the spelling.")

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
        """The names of all promises ever made, in order; as ``Study.promised``."""
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
        found = self._client.query(self._path("verify"), {}, timeout=HOURS)
        problems, unchecked = tuple(found["problems"]), found.get("unchecked", 0)
        solvers = None if found.get("solvers") is None else tuple(found["solvers"])
        return Verified(found["entries"], found["plays"], problems, unchecked, solvers)

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

    def _do(self, verb: str, body: Plain, method: str = "POST") -> Any:
        """Send a verb; arguments that are None are left out."""
        given = {name: value for name, value in body.items() if value is not None}
        return self._client.write(self._path(*verb.split("/")), given, method)

    def _end(self, verb: str, play: AnyPlay, given: Plain, key: str | None, at: When) -> Any:
        """Send a verb of a play."""
        labels = _labels(key, at)
        return self._do(_of_play(play, verb), given | labels)

    def _play(self, plain: Plain) -> PendingPlay:
        return wire.to_play(plain, self.why, lambda: self.words)

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
        names = study.list()
        study._name = names[0] if len(names) == 1 else None
    return study


def _which(names: Names) -> InvalidInput:
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


def _plain_set(actions: Any) -> Any:
    check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
    return wire.request_set(actions)


def _plain_allowance(limit: AllowanceSettings) -> Plain:
    """Return the settings of an allowance for the service."""
    rule = limit.baseline
    plain = rule if isinstance(rule, str) else wire.to_plain("baseline", rule)
    return limit._asdict() | {"baseline": plain}


def _plain_day(actions: Any) -> Any:
    return None if actions is None else _plain_set(actions)


def _limited(actions: Any, at_most: Any, exclude: Any, fixed: Any, features: Any) -> Plain:
    """Return the set of this round and its limits; arguments that are None are left out."""
    body = {
        "actions": _plain_day(actions),
        "at_most": None if at_most is None else wire.plain_units_by_arm("at_most", at_most),
        "exclude": wire.plain_arms("exclude", exclude) or None,
        "fixed": None if fixed is None else wire.plain_units_by_arm("fixed", fixed),
        "features": wire.plain_features(features),
    }
    return {name: value for name, value in body.items() if value is not None}


def _plain_table(table: Any, argument: str = "table") -> Plain:
    """Return a table of features of arms as plain data: values by feature and arm."""
    plain = wire.plain_features(table, argument) or {}
    for name, values in plain.items():
        if not isinstance(values, dict):
            hint = "Name the arms: values that hold for all arms are given when you ask."
            raise InvalidInput(f"{argument}[{name!r}]", "values by arm", repr(values), hint)
    return plain


def _checked(key: Any) -> str | None:
    return None if key is None else checked_key(key)


def _missing(given: Any) -> str | None:
    return None if given is None else checked_missing(given)


def _round(argument: str, given: Any) -> int | str:
    """Return the number of a round, or a time as text."""
    plain = entry_codec.plain_round(given)
    if plain is None or (isinstance(plain, int) and plain < 0):
        hint = "Use the number of a round, for example 12."
        raise InvalidInput(argument, "a round, or a datetime", repr(given), hint)
    return plain


def _labels(key: Any, at: When) -> Plain:
    """Return the key of a request, and its time in seconds; None: the clock of the service."""
    return {"key": _checked(key), "at": None if at is None else timestamp("at", at)}
