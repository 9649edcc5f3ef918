"""Statistics of each arm: units seen, plans and last time, and a change-point test for its mean."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import numpy as np

from multiplay._support.checks import probability
from multiplay.beliefs.restart import Restart
from multiplay.feedback import Feedback
from multiplay.kernels import drift as kernels
from multiplay.types import Arrays, FloatArray, IntArray

MOST = 256  # checkpoints of an arm
LEFT = 192  # checkpoints after thinning
STEP = 1 / 8  # largest gap, relative to the units before and after it
FEW = 16  # checkpoints of a new table
CHECKPOINTS = ("rounds", "seen", "total")
COLUMNS = ("units", "plans", "last")
BATCH = 256  # reports that are added together: one by one would cost as much as learning

Entry = tuple[IntArray | None, Feedback, bool, int, float]


class Alarm(NamedTuple):
    """An arm whose recent losses do not fit the old ones.

    Attributes
    ----------
    arm : int
        The number of the arm.
    since : int
        The round after which the recent losses begin: the split with the clearest evidence.
    before, after : float
        The average of the old losses, and of the recent ones.
    recent : int
        The number of recent units.
    """

    arm: int
    since: int
    before: float
    after: float
    recent: int


class Drift:
    r"""Test every arm for a change of its mean loss, for all times at once.

    For n losses of an arm and a split after the first s, the generalised likelihood ratio is

        GLR(s, n) = s kl(mean of the first s, mean of all)
                    + (n - s) kl(mean of the rest, mean of all),

    with kl(x, y) = x ln(x / y) + (1 - x) ln((1 - x) / (1 - y)). An alarm is given where, for some
    s, GLR(s, n) > ln(12 s^2 sqrt(n - s) / delta), with delta = level / number of arms. While the
    mean of no arm changes, the probability that an alarm is *ever* given is at most ``level``, for
    all losses in [0, 1], for every way to choose the arms. (New arms make delta smaller from then
    on; the bound then holds from there.)

    Proof: fix s. Let KT(x) be the average of prod theta^x (1 - theta)^(1 - x) over
    theta ~ Beta(1/2, 1/2). While the mean stays mu, KT(first s) KT(rest) / prod mu^x (1 - mu)^(1 -
    x) is a supermartingale from 1, because theta^x (1 - theta)^(1 - x) is convex in x. By Ville's
    inequality it ever reaches 3 s^(3/2) / delta with a probability of at most
    delta / (3 s^(3/2)), and the sum over all s is below delta. KT(n losses) is at least their
    largest likelihood over 2 sqrt(n), and exp(GLR) at most the ratio of the largest likelihoods to
    that of mu: so ln(3 s^(3/2) / delta) + ln(2 sqrt(s)) + ln(2 sqrt(n - s)) is a threshold. The
    published one holds as well, and is about twice as high for up to a million losses.

    Splits are tried after rounds only, and not after all of them: each arm keeps no more than 256
    checkpoints, thinned with time. Fewer splits cannot make more alarms.

    Parameters
    ----------
    arms
        The number of arms.

    References
    ----------
    Besson, Kaufmann, Maillard, Seznec: Efficient Change-Point Detection for Tackling
    Piecewise-Stationary Bandits, JMLR 2022. (The test, its union over the splits and its use for
    losses in [0, 1]; with a different threshold.)
    Krichevsky, Trofimov: The performance of universal encoding, 1981. (KT.)

    Examples
    --------
    >>> drift = Drift(2)
    >>> for t in range(1, 101):
    ...     drift.add(t, slice(None), np.array([4, 4]), np.array([1.0, 1.0 if t <= 50 else 3.0]))
    >>> drift.alarms(level=0.01)
    [Alarm(arm=1, since=50, before=0.25, after=0.75, recent=200)]
    """

    def __init__(self, arms: int) -> None:
        self.rounds: IntArray = np.zeros((arms, FEW), dtype=np.int64)
        self.seen: IntArray = np.zeros((arms, FEW), dtype=np.int64)
        self.total: FloatArray = np.zeros((arms, FEW))
        self.length: IntArray = np.zeros(arms, dtype=np.int64)
        self._all = np.arange(arms)

    def add(self, round: int, arms: IntArray | slice, seen: IntArray, total: FloatArray) -> None:
        """Add the units seen of some arms in a round, and the sums of their losses."""
        more, losses = np.array([seen], dtype=np.int64), np.array([total], dtype=float)
        self.add_many(np.array([round], dtype=np.int64), arms, more, losses)

    def add_many(
        self, rounds: IntArray, arms: IntArray | slice, seen: IntArray, total: FloatArray
    ) -> None:
        """Add many rounds of the same arms, one in each row."""
        which = self._all[arms] if isinstance(arms, slice) else np.array(arms, dtype=np.int64)
        done = 0
        while done < len(rounds):
            checkpoints = self.rounds, self.seen, self.total, self.length
            rest = rounds[done:], which, seen[done:], total[done:]
            done += kernels.add_many(*rest, *checkpoints)
            self._make_room(int(self.length.max(initial=0)))

    def _make_room(self, largest: int) -> None:
        """Drop checkpoints, or double the table, if that of an arm is full."""
        if largest == MOST:
            kernels.thin(LEFT, STEP, self.rounds, self.seen, self.total, self.length)
        elif largest == self.seen.shape[1]:
            self._resize(len(self.length), min(2 * largest, MOST))

    def restart(self, arm: int, since: float | None, seen: float, total: float) -> None:
        """Test no split before a round again, and none up to now if ``since`` is None.

        ``seen`` and ``total`` are the units and the sum of the losses that count.
        """
        n = int(self.length[arm])
        if n == 0:
            return
        left = np.arange(n) == n - 1 if since is None else self.rounds[arm, :n] >= since
        kept = {name: getattr(self, name)[arm, :n][left] for name in CHECKPOINTS}
        kept["seen"] = kept["seen"] - (self.seen[arm, n - 1] - round(seen))
        kept["total"] = np.maximum(kept["total"] - (self.total[arm, n - 1] - total), 0.0)
        for name, values in kept.items():
            getattr(self, name)[arm] = 0
            getattr(self, name)[arm, : len(values)] = values
        self.length[arm] = len(kept["seen"])

    def grow(self, arms: int) -> None:
        """Add new arms at the end."""
        self._resize(len(self.length) + arms, self.seen.shape[1])

    def alarms(self, level: float = 0.05) -> list[Alarm]:
        """Return the arms whose recent losses do not fit the old ones.

        While nothing changes, no alarm is ever given with a probability of at least 1 - ``level``.
        """
        hint = "Use 0.05 for a 5 % chance of a false alarm over the life of the learner."
        level = probability("level", level, hint)
        split, excess = self.clearest_splits(level / max(len(self.length), 1))
        return [self._alarm(int(arm), int(split[arm])) for arm in np.flatnonzero(excess > 0)]

    def clearest_splits(self, delta: float) -> tuple[IntArray, FloatArray]:
        """Return for each arm its clearest split, and its excess over the threshold."""
        split, excess = np.empty_like(self.length), np.empty(len(self.length))
        kernels.clearest_split(delta, self.seen, self.total, self.length, split, excess)
        return split, excess

    def arrays(self) -> Arrays:
        """Return all checkpoints as arrays, from which ``Drift.of`` continues exactly."""
        used = np.arange(self.length.max(initial=0)) < self.length[:, None]
        saved: Arrays = {
            name: np.where(used, getattr(self, name)[:, : used.shape[1]], 0) for name in CHECKPOINTS
        }
        return saved | {"length": self.length.copy()}

    @classmethod
    def of(cls, arrays: Arrays) -> Drift:
        """Return the test whose ``arrays`` these are."""
        drift = cls(len(arrays["length"]))
        arms, used = arrays["seen"].shape
        room = FEW
        while room <= used:
            room *= 2
        drift._resize(arms, min(room, MOST))
        for name in CHECKPOINTS:
            getattr(drift, name)[:, :used] = arrays[name]
        drift.length[:] = arrays["length"]
        return drift

    def _alarm(self, arm: int, split: int) -> Alarm:
        last = self.length[arm] - 1
        s, old = self.seen[arm, split], self.total[arm, split]
        recent = self.seen[arm, last] - s
        after = (self.total[arm, last] - old) / recent
        since = int(self.rounds[arm, split])
        return Alarm(arm, since, float(old / s), float(after), int(recent))

    def _resize(self, arms: int, room: int) -> None:
        """Enlarge the table for more arms, or for more checkpoints of each."""
        for name in CHECKPOINTS:
            old = getattr(self, name)
            new = np.zeros((arms, room), dtype=old.dtype)
            new[: len(old), : old.shape[1]] = old
            setattr(self, name, new)
        self.length = np.concatenate([self.length, np.zeros(arms - len(self.length), np.int64)])
        self._all = np.arange(arms)


class ArmStatistics:
    """Units seen, plans and last time of each arm, and the test for drift.

    Losses are in [0, 1], as policies see them. Reports are added in batches; reading adds the rest.
    """

    def __init__(self, arms: int) -> None:
        self._columns = {name: np.zeros(arms) for name in COLUMNS}
        self._columns["last"][:] = np.nan
        self._drift = Drift(arms)
        self._external = 0
        self._entries: list[Entry] = []

    @property
    def external(self) -> int:
        """The number of external plans and of rounds of logged data."""
        self.book()
        return self._external

    @property
    def columns(self) -> dict[str, FloatArray]:
        """The statistics, one column for each quantity."""
        self.book()
        return self._columns

    @property
    def drift(self) -> Drift:
        """The test for drift, with all reports added."""
        self.book()
        return self._drift

    def grow(self, arms: int) -> None:
        """Add new arms at the end."""
        more = arms - len(self.columns["units"])
        for name, column in self.columns.items():
            nothing = np.nan if name == "last" else 0.0
            self._columns[name] = np.append(column, np.full(more, nothing))
        self._drift.grow(more)

    def add(
        self, places: IntArray | None, feedback: Feedback, ours: bool, round: int, when: float
    ) -> None:
        """Add one report of the arms at these places (all if None); ``ours``: of our own play."""
        self._entries.append((places, feedback, ours, round, when))
        if len(self._entries) == BATCH:
            self.book()

    def book(self) -> None:
        """Add all reports of the batch."""
        entries, self._entries = self._entries, []
        for _, group in groupby(entries, key=lambda entry: id(entry[0])):
            self._book(list(group))

    def _book(self, entries: list[Entry]) -> None:
        """Add reports of the same arms."""
        places, c = entries[0][0], self._columns
        arms = slice(None) if places is None else places
        count = np.concatenate([entry[1].count for entry in entries])
        c["plans"][arms] += (count > 0).sum(axis=0)
        self._external += sum(not entry[2] for entry in entries)
        known = [entry for entry in entries if entry[1].total.shape == entry[1].count.shape]
        if not known:  # a total of the round shows nothing of its arms
            return
        seen = np.concatenate([entry[1].seen for entry in known])
        total = np.concatenate([entry[1].total for entry in known])
        when = np.array([entry[4] for entry in known])
        c["units"][arms] += seen.sum(axis=0)
        latest = np.fmax.reduce(np.where(seen > 0, when[:, None], np.nan))  # of history: NaN
        c["last"][arms] = np.fmax(c["last"][arms], latest)
        rounds = np.array([entry[3] for entry in known], dtype=np.int64)
        self._drift.add_many(rounds, arms, seen, total)

    def restart(self, restart: Restart) -> None:
        """Let the test for drift forget what a restart forgets, or accept what it keeps."""
        drift, rows = self.drift, zip(restart.places, restart.first, restart.seen, strict=True)
        for arm, first, (seen, total) in rows:
            drift.restart(int(arm), None if restart.keep else first, seen, total)

    def arrays(self) -> Arrays:
        """Return all columns and the state of the test for drift."""
        drift = {f"drift/{name}": array for name, array in self.drift.arrays().items()}
        return self.columns | drift | {"external": np.array([self.external])}

    @classmethod
    def of(cls, arrays: Arrays) -> ArmStatistics:
        """Return the statistics that ``arrays`` returned."""
        seen = cls(len(arrays["units"]))
        seen._columns = {name: arrays[name].astype(float) for name in COLUMNS}
        seen._external = int(arrays["external"][0]) if "external" in arrays else 0
        drift = {k.removeprefix("drift/"): v for k, v in arrays.items() if k.startswith("drift/")}
        seen._drift = Drift.of(drift)
        return seen
