"""Learner: the verbs of a study in one process, saved to one file.

A verb is a command (``commands/``), as in a study. The journal is a list of objects in memory
(``object_journal.py``), and the state uses one stream of random numbers (``stream_replica.py``).
``save`` writes both as one record (``learner_files.py``).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from multiplay._support.atomic_files import as_path, remove_stale_drafts
from multiplay._support.checks import true_or_false
from multiplay._support.html import HasPanel, Panel
from multiplay._support.words import USUAL_WORDS, Words
from multiplay.actions import ActionSet
from multiplay.beliefs.restart import ReportLog
from multiplay.constraints import Constraint
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.learner.comparison import Question, Versus, compared
from multiplay.learner.engine import Engine, Range, checked_key
from multiplay.learner.facts import learner_panel
from multiplay.learner.play_log import joined_tables
from multiplay.learner.plays import When, timestamp
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.reports import REFUSED, Reports
from multiplay.policies import Policy
from multiplay.random import POLICY, Streams, seed_or_random
from multiplay.savings import Savings
from multiplay.storage import Entry, Labels, Record
from multiplay.storage.base import JournalEntries
from multiplay.storage.folder import read_record, write_record
from multiplay.studies import entry_codec, learner_files, play_history
from multiplay.studies.commands.base import Command
from multiplay.studies.comparison import days_since
from multiplay.studies.entry_codec import Request
from multiplay.studies.object_journal import ObjectJournal
from multiplay.studies.replica import Made, Replica
from multiplay.studies.stream_replica import StreamReplica, copied
from multiplay.studies.turn import Turn
from multiplay.studies.verbs import LocalVerbs
from multiplay.types import Arrays

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

FIRST_RANDOM_ID = 2**52  # ids after a restart are random numbers from here to 2^53
LEARNED = {*entry_codec.REPORTS, entry_codec.PART, entry_codec.LEARN, entry_codec.TABLE}

R = TypeVar("R")


class Learner(LocalVerbs, HasPanel):
    """Learn from live plays: ``ask`` for a plan, ``tell`` its losses.

    Losses may come late, in parts, incomplete and in any order. The set may change in every round.
    Invalid input raises an error, and then nothing has changed.

    Parameters
    ----------
    actions, policy
        The usual action set, and the policy: ``PooledCTS(memory=Changes())`` if not given.
        Objects that ``save`` could not store, such as a function, raise an error.
    seed
        The seed of all random numbers: the same seed and losses give the same plans. With None a
        random seed is drawn and recorded, see ``Learner.seed``.
    loss_range
        The range (low, high) of the cost of a unit, or of its reward if the set has
        ``sense="max"``; or a dict of ranges by arm name, with "*" for all other arms. All losses
        and results are in this unit. Without it, the range is learned: it is (0, 1), and becomes
        twice as wide when a loss lies outside it; policies that need a known range refuse such a
        loss.
    reports
        The treatment of losses outside a given range, and of units that a report leaves out:
        ``Reports(outside="clip", missing="ignore")``. Both are refused by default.
    varying_set
        True: the set will change. A policy that needs a fixed set then raises an error.
    features
        The declared features of arms and days. The policy then is ``FeatureCTS(memory=Changes())``
        if not given, and must be one that reads features.
    arm_features
        Features of the arms: a table (DataFrame, CSV file) with a column "arm" and one for each
        feature, or a dict by feature of dicts by arm. See ``set_arm_features``.
    words
        The words in which plans and costs are shown: ``Words("EUR", "truck", "lane", "day")``. See
        ``set_words``.
    constraints
        What the plans must keep or pay, any of them together: ``SwitchingCost(15)``,
        ``Baseline(InProportion(), 0.03)``, ``AtMost`` and ``AtLeast``. See ``add_constraint``. The
        policy must play the best plan for some costs, as ``PooledCTS``, ``GenCTS`` or
        ``CombUCB`` do.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> plans = Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    >>> learner = Learner(plans, seed=7, loss_range=(0, 250))
    >>> play = learner.ask()
    >>> play.plan["Lyon->north"] + play.plan["Lyon->south"]
    2
    >>> euros = {lane: [120.0] * trucks for lane, trucks in play.plan.items()}
    >>> print(learner.tell(play.id, euros))
    play 1: 3 of 3 units seen
    >>> print(learner.tell(play.id, euros))
    play 1: the same was told before, nothing has changed
    >>> learner
    Learner(PooledCTS on 4 arms: 1 asked, 1 told, losses from 0 to 250)
    """

    def __init__(
        self,
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
    ) -> None:
        drawn = seed_or_random(seed)
        engine = Engine.create(
            actions,
            policy,
            Streams.spawn(drawn, POLICY, [0]),
            loss_range=loss_range,
            reports=reports,
            varying_set=varying_set,
            features=features,
            arm_features=arm_features,
            constraints=constraints,
            words=words,
        )
        engine.seed = drawn
        engine.state.log = ReportLog() if engine.state.policy.restarts else None
        described = engine.state.features
        table = None if described is None else copied(described.table)
        self.replica, self.journal = StreamReplica(engine, table), ObjectJournal()

    @property
    def engine(self) -> Engine:
        """The policy with its state, and the pending plays."""
        return self.replica.engine

    @property
    def policy_state(self) -> PolicyState:
        """The policy, its state, and the statistics of each arm."""
        return self.engine.state

    @property
    def missing(self) -> str:
        """The treatment of units that a final report leaves out."""
        return self.engine.missing

    @property
    def rng(self) -> Streams:
        """The source of random numbers."""
        return self.policy_state.rng

    @property
    def state(self) -> Arrays:
        """The state of the policy for all arms ever seen."""
        return self.policy_state.arms.arrays

    def __repr__(self) -> str:
        return f"Learner({self.engine})"

    def _panel(self) -> Panel:
        return learner_panel("Learner", {}, self.engine)

    def _current(self) -> AbstractContextManager[Engine]:
        return nullcontext(self.engine)

    # ------------------------------------------------------------ verbs

    def do(self, command: Command[R], key: str | None = None, at: When = None) -> R:
        """Run a verb that changes the learner."""
        when, key = timestamp("at", at), None if key is None else checked_key(key)
        engine = self.replica.engine
        if command.prepares:
            command = command.prepared(engine)
        turn, before = LearnerTurn(self, key, when), engine.state.told
        try:
            result = command.run(turn)
        except BaseException:
            if self.replica.has_cancelled:  # that play is pending again
                self.replica = self.replica.rebuilt(self.journal)
            raise
        engine = self.replica.engine
        engine.warn_if_over(before)  # at the end: a warning may be turned into an error
        if turn.asked is not None:
            engine.warn_if_promised(turn.asked)
        return result

    def plays(self, *, external: bool = False) -> pd.DataFrame:
        """Return a table of all plays: id, key, when asked and told, units, expected, realised.

        ``external``: True for external plans and rounds of logged data as well. They come first, in
        order of time, with id 0 and the status "external".
        """
        tables = [*play_history.play_tables(self.journal, play_history.CHUNK)]
        if true_or_false("external", external, "Leave it out."):
            tables = [play_history.external_days(self.journal), *tables]
        return joined_tables(tables)

    def _compared(self, versus: Any) -> Versus:
        return compared(versus, functions=True)

    def _answer(self, question: Question) -> Savings:
        first = self.replica.beginning(self.journal)
        history = days_since(self.journal, first, len(self.journal))
        return self._past(self.engine, history).answer(question)

    def _asked(self, id: int) -> tuple[Engine, float]:
        entry = play_history.asked_entry(self.journal, id)
        return self.replica.at(self.journal, entry.number), entry.labels.at

    def _id_of(self, key: str) -> int | None:
        return play_history.id_of(self.journal, key)

    def _history(self, act: Callable[[JournalEntries], Any]) -> Any:
        return act(self.journal)

    # ------------------------------------------------------------ save and load

    def save(self, path: str | Path) -> None:
        """Write the learner to one file, from which ``load`` continues bit for bit."""
        write_record(path, learner_files.record_of(self.replica, self.journal))

    @classmethod
    def load(
        cls, path: str | Path, actions: ActionSet | None = None, policy: Policy | None = None
    ) -> Learner:
        """Return a saved learner; user-defined sets and policies must be passed again.

        The ids of new plays begin at a large random number, so that no id is issued twice.
        """
        place = as_path("path", path)
        remove_stale_drafts(place.parent)
        record = read_record(place)
        learner = cls.__new__(cls)
        try:
            learner.replica, learner.journal = learner_files.parts_of(record, actions, policy)
        except InvalidInput:
            raise
        except ValueError as error:
            raise InvalidInput(
                "path",
                "a file written by Learner.save",
                f"{path} ({error})",
                "The file is damaged, or is a different file: restore a backup.",
            ) from None
        learner.replica.next_id = FIRST_RANDOM_ID + secrets.randbelow(FIRST_RANDOM_ID)
        return learner


class LearnerTurn(Turn):
    """One verb of a learner."""

    replica: StreamReplica
    journal: ObjectJournal

    def __init__(self, learner: Learner, key: str | None, when: float) -> None:
        super().__init__(learner, learner.replica, learner.journal, key, when)
        self._learner = learner

    @property
    def request(self) -> Request | None:
        """None: a learner has no clients."""
        return None

    def changed(self) -> None:
        """Do nothing: an entry is written after the state has changed."""

    def write(
        self,
        kind: str,
        made: Made,
        play: int | None = None,
        *,
        key: str | None = None,
        **result: Any,
    ) -> None:
        """Write an entry to the journal; its arrays are copied, as the state may have them."""
        if isinstance(made, Record) and made.arrays:
            made = Record(made.header, {name: a.copy() for name, a in made.arrays.items()})
        words = self.replica.words if kind in LEARNED else b""
        labels = Labels(kind, key, play, self.when)
        self.replica.number = self.journal.write(made, labels, words)

    def corrected(self, draft: Record, labels: Labels) -> Replica:
        """Return the state with a correction that is not written yet, which is then used."""
        new = Entry(len(self.journal), labels, draft, b"")
        self.replica = self._learner.replica = self.replica.rebuilt(self.journal, new)
        return self.replica

    def report_log(self) -> ReportLog:
        """Return all reports: kept if the policy restarts arms by their sums, else replayed."""
        log = self.engine.state.log
        if log is None:
            log = self.replica.rebuilt(self.journal, logged=True).engine.state.log
        assert log is not None
        return log
