"""Features of a learner: values of arms and days, phi of a round, and the beliefs that use them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

import multiplay.features
from multiplay._support.builder import Builder, classes_of
from multiplay._support.checks import check_instance
from multiplay._support.hints import Hint, Option
from multiplay._support.serialization import pack, unpack, with_prefix, without_prefix
from multiplay.actions import ActionSet, Transport
from multiplay.beliefs.features import ERRORS, RECENT, RESIDUALS, FeatureRegression, Reports
from multiplay.errors import InvalidInput
from multiplay.features import FeatureRows, Features, Number
from multiplay.features.table import ALL, ArmFeatures, Scales, Values
from multiplay.kernels.moments import AVERAGE, FREEDOM, UNITS, WITHIN
from multiplay.kernels.residuals import SUMS
from multiplay.learner.logged_data import LoggedData
from multiplay.learner.round_set import RoundFeatures, RoundSet
from multiplay.policies import Policy
from multiplay.policies.arm_state import ArmState
from multiplay.policies.index import ArmPolicy
from multiplay.posteriors.features import FeatureModel
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

DECLARED, CODES, MODEL, OLDER = "declared/", "codes/", "model/", "residuals/"  # of arrays
LEAST_ROUNDS = 30.0  # before residuals are judged
CLEAR = 3.5  # standard deviations of a sum of errors that does not come by chance
ROUNDING = 1e-9  # relative difference of sums that counts as none
DECLARED_HERE = Option("features", "Features(...)")
BESIDE = FeatureRegression(
    priors=1
)  # of policies without features, as in 0.9: they do not store it
MOST_ARMS = 10_000  # of a set whose oracle is called to find out whether plans differ


class FeatureState:
    """The declared features, the values kept for each arm, and what is believed of their effects.

    Losses are shares of the span. A policy with the same model has its state, which is read while
    both learn the same bits; see ``ArmMoments``.

    Attributes
    ----------
    table : ArmFeatures
        The declared features with their scaling, and the values of arms.
    model : FeatureRegression
        The model of the losses.
    own : dict of arrays, or None
        Its state for all arms ever seen, with one trial; None while it is that of the policy.
    by_arm : list of names
        The arrays with the arms on their second axis.
    last : dict or None
        The values of the last play that was asked.
    matters : array of shape (p,)
        Whether a column has differed between arms in a way that can change a plan.
    version : int
        Counts changes, for values that are computed once.
    origin : float
        What losses of 0 here are, as a share of the span.
    """

    def __init__(
        self, table: ArmFeatures, model: FeatureRegression, arms: int, origin: float
    ) -> None:
        self.table, self.model, self.origin = table, model, origin
        self.own: Arrays | None = self._start(arms)
        self._arms: ArmState | None = None  # of the policy
        shared = model.SHARED
        self.by_arm = [n for n, a in self.own.items() if a.ndim > 1 and n not in shared]
        self.last: Values | None = None
        self.matters: BoolArray = np.zeros(table.features.p, dtype=bool)
        self.version = 0
        self._judged: tuple[ActionSet, FloatArray] | None = None  # set and arms that were judged

    def _start(self, arms: int) -> Arrays:
        """Return the state of so many arms, with sums of errors: see ``kernels.residuals``."""
        errors = {ERRORS: np.zeros((1, SUMS)), RECENT: np.zeros((1, self.p))}
        of_losses = self.features.factors, self.origin
        return self.model.start(arms, self.p, 1, *of_losses) | errors

    @property
    def arrays(self) -> Arrays:
        """The state of the model; that of the policy may have other arrays too."""
        if self.own is not None:
            return self.own
        assert self._arms is not None
        return self._arms.arrays

    def share(self, policy: Policy, arms: ArmState) -> None:
        """Read the state of a policy from now on, if it has the same model."""
        if isinstance(policy, ArmPolicy) and isinstance(policy.posterior, FeatureModel):
            arms.arrays |= {name: self.arrays[name] for name in RESIDUALS}
            self._arms, self.own = arms, None

    def separate(self) -> None:
        """Keep a state of their own from now on: the policy will learn other bits."""
        if self.own is None:
            self.own = {name: self.arrays[name].copy() for name in self._start(0)}
            self._leave()

    def _leave(self) -> None:
        """Remove from the state of the policy what only beliefs read."""
        if self._arms is not None:
            for name in RESIDUALS:
                self._arms.arrays.pop(name, None)

    @property
    def features(self) -> Features:
        """The declared features, with their scaling as far as it is known."""
        return self.table.features

    @property
    def p(self) -> int:
        """The number of columns of phi."""
        return self.table.features.p

    # ------------------------------------------------------------ values

    def values(self, given: Any, default: bool = False) -> Values:
        """Return the values of a day as plain data.

        ``default``: those of the last play if none are given.
        """
        if default and given is None and self.last is not None:
            return self.last
        return self.table.parse(given)

    def checked(
        self,
        today: Values,
        arms: Sequence[str],
        known: Collection[str] = (),
        scales: Scales | None = None,
    ) -> RoundFeatures:
        """Return the features of a round for parsed values; nothing changes.

        ``scales`` are those of a journal, if they are known.
        """
        table = self.table
        if table.features.frozen:
            scales = {}
        else:
            if scales is None:
                scales = table.freeze(today, arms)
            table = ArmFeatures.of(table.features, list(table.places), table.arrays())
            table.freeze_at(scales)
        rows = table.rows(today, arms, known)
        if any(isinstance(given, dict) for given in today.values()):
            here = {ALL, *arms}
            today = {
                name: {arm: value for arm, value in given.items() if arm in here}
                if isinstance(given, dict)
                else given
                for name, given in today.items()
            }
        return RoundFeatures(today, rows, scales)

    def checked_plan(
        self,
        today: Values,
        round_set: RoundSet,
        action: IntArray,
        known: Collection[str],
        scales: Scales | None,
    ) -> RoundFeatures:
        """Return the features of the arms of a plan for parsed values; phi of others is 0."""
        names, (played,) = round_set.actions.names, action.nonzero()
        arms = [names[i] for i in played.tolist()]
        found = self.checked(today, arms, {*names, *known}, scales)
        return found._replace(rows=scattered(found.rows.phi(np.arange(len(arms)))[0], action))

    def without_values(self, arms: Sequence[str]) -> list[str]:
        """Return the features that are not kept for all of these arms."""
        return [
            name for name in self.features.columns if np.isnan(self.table.kept(name, arms)).any()
        ]

    def keep(self, found: RoundFeatures, actions: ActionSet) -> None:
        """Keep the features of a round that was asked: scaling, values of new arms, and the day."""
        self.keep_values(found, actions.names)
        self.last = found.today
        self._judge(actions, found.rows)

    def keep_values(self, found: RoundFeatures, arms: Sequence[str]) -> None:
        """Keep the scaling that the values of a round determine, and the values of new arms."""
        if found.scales:
            self.table.freeze_at(found.scales)
        self.table.keep_new(found.today, arms)

    def described(self, table: Any) -> tuple[list[str], Arrays]:
        """Return the arms of a table and the codes of their features; nothing changes."""
        read = ArmFeatures(self.table.features)
        read.set_arm_features(table, "table")
        return list(read.places), read.arrays()

    def set_arm_features(
        self, arms: Sequence[str], codes: Arrays, scales: Scales | None = None
    ) -> Scales:
        """Keep values of arms by their codes, NaN where there is none; return new scales."""
        table = ArmFeatures.of(self.features, list(self.table.places), self.table.arrays())
        table.keep(arms, codes)
        if scales is None:
            scales = table.freeze({}, ())
        table.freeze_at(scales)
        self.table = table
        self._judged = None
        return scales

    # ------------------------------------------------------------ files

    def record(self) -> tuple[dict[str, Any], Arrays]:
        """Return the state as plain data and arrays; see ``restore``."""
        header, arrays = table_record(self.table)
        header |= {"last": self.last, "matters": np.flatnonzero(self.matters).tolist()}
        return header, arrays | with_prefix(MODEL, self.own or {})

    def restore(
        self, header: Mapping[str, Any], arrays: Arrays, arms: int, of_policy: Arrays
    ) -> None:
        """Set the state that ``record`` returned, for so many arms; ``of_policy`` is that of it."""
        own, older = without_prefix(MODEL, arrays), without_prefix(OLDER, arrays)
        if older:  # before format 6
            own |= {ERRORS: older["sums"][None], RECENT: older["recent"][None]}
        found, names = own or of_policy, [*self._start(0)]
        shapes = [{n: one[n].shape for n in names} for one in (self._start(arms), found)]
        if shapes[0] != shapes[1] or not (own or self.own is None):
            raise ValueError("it holds the beliefs of different features")
        if own:
            self._leave()
            self.own = {name: own[name].copy() for name in names}
        self.last = header["last"]
        self.matters[header["matters"]] = True

    # ------------------------------------------------------------ logged data

    def learn_scales(
        self, logged: LoggedData, names: Sequence[str], scales: Scales | None
    ) -> tuple[list[FloatArray | None], Scales]:
        """Return phi of the arms of each round of logged data, and keep the scales they fix.

        phi is in the order of all arms. ``scales`` are those of a journal, if they are known.
        """
        number = {name: i for i, name in enumerate(names)}
        places = np.array([number[name] for name in logged.arms], dtype=np.int64)[logged.arm]
        cells, first, cell = np.unique(
            logged.round * len(names) + places, return_index=True, return_inverse=True
        )
        arms = [names[place] for place in places[first].tolist()]
        codes = {
            name: self._codes(name, logged, first, cell, arms) for name in self.features.columns
        }
        if scales is None:
            scales = {}
            for name, column in self.features.columns.items():
                if isinstance(column, Number) and not column.frozen:
                    found = column.freeze(codes[name])
                    assert found.centre is not None
                    assert found.scale is not None
                    scales[name] = found.centre, found.scale
        features = self.features.scaled(scales) if scales else self.features
        for name, column in features.columns.items():
            column.check(f"table[{name!r}]", codes[name], arms)
        columns = features.columns.items()
        phi = features.expand({name: column.columns(codes[name]) for name, column in columns})
        ends = np.flatnonzero(np.diff(cells // len(names))) + 1
        self.table.freeze_at(scales)
        return [*np.split(phi, ends)], scales

    def _codes(
        self, name: str, logged: LoggedData, first: IntArray, cell: IntArray, arms: Sequence[str]
    ) -> FloatArray:
        """Return the codes of a feature for each arm and round of logged data."""
        given = logged.features.get(name)
        if given is None:
            codes = self.table.kept(name, arms)
            missing = np.isnan(codes)
            if missing.any():
                arm = arms[int(missing.argmax())]
                raise self.table.no_value(name, arm, "as a column of the table")
            return codes
        codes = given[first]
        differs = codes[cell] != given
        if differs.any():
            arm = arms[int(cell[int(differs.argmax())])]
            raise InvalidInput(
                f"table[{name!r}]",
                "one value for each arm and round",
                f"two for {arm!r} in one round",
                "Use features of the arm and the day: units of one arm and round share them.",
            )
        return codes

    # ------------------------------------------------------------ columns that change plans

    def _judge(self, actions: ActionSet, rows: FeatureRows) -> None:
        """Note the columns that differ between arms in a way that can change a plan."""
        judged, self._judged = self._judged, (actions, rows.arm)
        if judged is not None and judged[0] is actions and judged[1] is rows.arm:
            return
        arm = rows.arm[0]
        varies = arm.max(axis=0) > arm.min(axis=0)
        for column in np.flatnonzero(varies & ~self.matters).tolist():
            self.matters[column] = changes_plans(actions, arm[:, column])

    def can_change_plans(self, actions: ActionSet) -> BoolArray:
        """Return for each column whether it can change a plan on this set.

        Before the first play is asked, all but the intercept are taken to do so.
        """
        matters = np.arange(self.p) > 0 if self.last is None else self.matters
        adds = np.arange(self.p) < self.p - self.features.factors  # a factor of all changes none
        found: BoolArray = matters | (adds & changes_plans(actions, np.ones(actions.d)))
        return found

    # ------------------------------------------------------------ beliefs

    def grow(self, arms: int) -> None:
        """Add new arms at the end, up to this number."""
        more = arms - self.arms
        if more > 0 and self.own is not None:
            fresh = self._start(more)
            for name in self.by_arm:
                self.own[name] = np.concatenate([self.own[name], fresh[name]], axis=1)
        self.version += 1

    @property
    def arms(self) -> int:
        """The number of arms of the state."""
        return int(self.arrays[self.by_arm[0]].shape[1])

    def pass_round(self) -> None:
        """Let a round pass before its report is added; the policy has done so."""
        if self.own is not None:
            self.model.pass_round(self.own)
        self.version += 1

    def learn(self, places: IntArray, phi: FloatArray, reports: FloatArray) -> None:
        """Learn from the reports of all arms; those at ``places`` were played and have phi."""
        self.version += 1
        if self.own is None:  # the policy has learned them
            return
        own = reports[places]
        seen = own[:, UNITS] > 0.0
        if not seen.all():
            own, places, phi = own[seen], places[seen], phi[seen]
            if not len(own):
                return
        columns = np.ascontiguousarray(own.T)
        scatter = np.where(columns[FREEDOM] > 0.0, columns[WITHIN], np.nan)
        of_round = phi, columns[UNITS], columns[AVERAGE], scatter
        self.model.learn(self.own, Reports(places[None], *(one[None] for one in of_round)))

    def rows_of(self, given: Any, names: Sequence[str]) -> tuple[IntArray, FeatureRows | None]:
        """Return the places of arms with values of all features, and their phi.

        ``given`` are the values of a day; those of the last play if None.
        """
        everything = np.arange(len(names))
        if given is not None:
            return everything, self.checked(self.values(given), names).rows
        if not self.features.frozen:
            return everything[:0], None
        today = self.last or {}
        try:
            return everything, self.checked(today, names).rows
        except InvalidInput:
            known = [k for k in range(len(names)) if self._has_all(today, names[k])]
        if not known:
            return everything[:0], None
        return np.array(known), self.checked(today, [names[k] for k in known], names).rows

    def _has_all(self, today: Values, arm: str) -> bool:
        """Return whether an arm has a value of every feature on a day."""
        for name in self.features.columns:
            given = today.get(name)
            on_day = name in today and (not isinstance(given, dict) or arm in given or ALL in given)
            if not on_day and np.isnan(self.table.kept(name, [arm])[0]):
                return False
        return True

    def posterior(self, places: IntArray, rows: FeatureRows) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation of the mean loss of some arms, -1 for one never seen."""
        mean, deviation = self.model.posterior(self.cut(places), rows)
        return mean[0], deviation[0]

    def means(self, places: IntArray, phi: FloatArray) -> FloatArray:
        """Return the mean loss of some arms that were seen or asked for, as ``posterior``."""
        return self.model.means(self.arrays, places, phi)

    def joint(self, places: IntArray, rows: FeatureRows, count: IntArray) -> float:
        """Return the deviation of the cost of so many units of some arms."""
        return float(self.model.joint(self.cut(places), rows, count[None])[1][0])

    @property
    def misfit(self) -> str:
        """What the features do not explain; "" if nothing was found."""
        found = "the features do not explain these costs: "
        share = self.model.misfit(self.arrays)
        if share is not None:
            found += f"a different shape explains {100 * share:.2g} % more of the squared errors. "
            return found + "Add a product, such as the square of a number"
        rounds, lasts, squares = self.arrays[ERRORS][0].tolist()
        if rounds >= LEAST_ROUNDS and lasts > CLEAR * math.sqrt(squares) > 0.0:
            return found + "errors last for many rounds. Effects change, or a feature is missing"
        return ""

    def cut(self, places: IntArray) -> Arrays:
        """Return the state of some arms; -1 is an arm of which nothing is known."""
        if (places >= 0).all():
            return self.arrays | {name: self.arrays[name][:, places] for name in self.by_arm}
        fresh = self.model.start(1, self.p, 1)
        longer = {n: np.concatenate([self.arrays[n], fresh[n]], axis=1) for n in self.by_arm}
        return self.arrays | {name: array[:, places] for name, array in longer.items()}


def deviations(level: float) -> float:
    """Return the half width of an interval of this level, in standard deviations."""
    return NormalDist().inv_cdf((1 + level) / 2)


def table_record(table: ArmFeatures) -> tuple[dict[str, Any], Arrays]:
    """Return declared features and the values of arms as plain data and arrays."""
    declared, arrays = pack(table.features, "features")
    header = {"declared": declared, "arms": list(table.places)}
    return header, with_prefix(DECLARED, arrays) | with_prefix(CODES, table.arrays())


def table_of(header: Mapping[str, Any], arrays: Arrays) -> ArmFeatures:
    """Return the features and the values of arms that ``table_record`` returned."""
    builder = Builder(classes_of(multiplay.features))
    features = unpack(header["declared"], without_prefix(DECLARED, arrays), builder)
    check_instance("features", features, Features, "Features(km=Number())")
    return ArmFeatures.of(features, header["arms"], without_prefix(CODES, arrays))


def new_table(features: Any, arm_features: Any) -> ArmFeatures | None:
    """Return the declared features with the values of a table of arms; None without features."""
    if features is None:
        if arm_features is not None:
            hint = Hint("Declare them: {}.", Option("features", "Features(km=Number())"))
            raise InvalidInput("arm_features", "declared features", "no features", hint)
        return None
    if isinstance(arm_features, ArmFeatures):
        return arm_features
    check_instance("features", features, Features, "Features(km=Number())")
    table = ArmFeatures(features)
    if arm_features is not None:
        table.set_arm_features(arm_features)
        table.freeze_at(table.freeze({}, ()))
    return table


def model_of(policy: Policy) -> FeatureRegression:
    """Return the model of the beliefs: it forgets as the policy does."""
    posterior = policy.posterior if isinstance(policy, ArmPolicy) else None
    return posterior.model if isinstance(posterior, FeatureModel) else BESIDE


def scattered(phi: FloatArray, action: IntArray) -> FeatureRows:
    """Return rows of all arms from phi of those that are played; phi of others is 0."""
    arm = np.zeros((1, len(action), phi.shape[1]))
    arm[0, action.nonzero()[0]] = phi
    return FeatureRows(arm, np.ones((1, phi.shape[1])))


def changes_plans(actions: ActionSet, values: FloatArray) -> bool:
    """Return whether the sum of these values over the units of a plan differs between plans.

    On a ``Transport`` without slack, values of origins and of destinations have the same sum in
    every plan. A set of more than 10,000 arms is taken to have two plans that differ.
    """
    if not actions.linear:
        return True
    if isinstance(actions, Transport) and not actions.slack and actions.capacities is None:
        lanes = values.reshape(len(actions.supply), len(actions.demand))
        rest = lanes - lanes.mean(axis=0) - lanes.mean(axis=1, keepdims=True) + lanes.mean()
        if np.abs(rest).max() <= ROUNDING * np.abs(values).max():
            lacks = bool(actions.unmet(np.zeros(actions.d, dtype=np.int64)))
            return lacks and bool(np.ptp(values) > 0.0)
    if actions.d > MOST_ARMS:
        return bool(np.ptp(values) > 0.0)
    ends = np.stack([actions.argmin(values), actions.argmin(-values)]) * values
    least, most = ends.sum(axis=1)
    return bool(most - least > ROUNDING * np.abs(ends).sum())
