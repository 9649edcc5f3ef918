"""Feature values: those that are kept for each arm, those of one day, and phi made of both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.checks import shortened
from multiplay._support.frames import frame
from multiplay._support.hints import Hint, Term
from multiplay._support.suggestions import suggestion
from multiplay.errors import InvalidInput
from multiplay.features.columns import Column, Number
from multiplay.features.rows import FeatureRows
from multiplay.features.schema import MOST_COLUMNS, Features, first_double
from multiplay.types import Arrays, FloatArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

ALL = "*"  # stands for all arms that are not named
ONES = [1.0] * MOST_COLUMNS
ALIKE = 1e-12  # numbers, relative to their scale, that count as the same

Values = dict[str, Any]  # by feature: a value for all arms, or a dict of values by arm
Scales = dict[str, tuple[float, float]]  # by feature: its centre and scale


class ArmPart(NamedTuple):
    """The part of the arms in phi, and what it was computed from."""

    arms: Sequence[str]
    daily: frozenset[str]
    arm: FloatArray


class ArmFeatures:
    """The declared features, and the values that are kept for each arm.

    Parameters
    ----------
    features
        The declared features.

    Attributes
    ----------
    features : Features
        The declared features, with the scaling as far as it is known.
    codes : dict of arrays
        The codes of the values of each arm, by feature; NaN if there is none.
    places : dict
        The place of each arm in ``codes``.

    Examples
    --------
    >>> from multiplay import Features, Number
    >>> known = ArmFeatures(Features(km=Number(300, 100), fuel=Number(1.6, 0.1)))
    >>> known.set_arm_features({"km": {"Lyon->north": 450, "Lyon->south": 150}})
    >>> known.rows({"fuel": 1.7}, ["Lyon->north", "Lyon->south"]).phi(np.array([0, 1])).round(6)
    array([[[ 1. ,  1.5,  1. ],
            [ 1. , -1.5,  1. ]]])
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.places: dict[str, int] = {}
        self.codes: Arrays = {}
        self._part: ArmPart | None = None

    # ------------------------------------------------------------ values of a day

    def parse(self, today: Any, argument: str = "features") -> Values:
        """Return the values of a day as plain data; see ``Values``.

        A dict by feature, or a table with a column "arm" and one for each feature, in which "*"
        stands for all other arms.
        """
        if today is None:
            return {}
        if not isinstance(today, Mapping):
            return self._of_table(today, argument)
        parsed: Values = {}
        for name, given in today.items():
            column, where = self.features.column(argument, name), f"{argument}[{name!r}]"
            if isinstance(given, Mapping):
                arms = [_arm(where, arm) for arm in given]
                codes = column.codes(where, arms, [item(value) for value in given.values()])
                column.check(where, codes, arms)
                pairs = zip(arms, codes.tolist(), strict=True)
                parsed[name] = {arm: column.value(code) for arm, code in pairs}
            else:
                code = column.code(where, item(given))
                if column.frozen:
                    column.row(where, code)
                parsed[name] = column.value(code)
        return parsed

    def _of_table(self, table: Any, argument: str) -> Values:
        arms, columns = self._read(table, argument)
        parsed: Values = {}
        for name, codes in columns.items():
            column = self.features.columns[name]
            values = {arm: column.value(c) for arm, c in zip(arms, codes.tolist(), strict=True)}
            parsed[name] = values.pop(ALL) if set(values) == {ALL} else values
        return parsed

    # ------------------------------------------------------------ values that are kept

    def set_arm_features(self, table: Any, argument: str = "arm_features") -> None:
        """Keep the values of a table of arms; values that an arm had before are replaced.

        A data frame or CSV file with the arms in its column "arm" (or its index) and one column for
        each feature, or a dict by feature of dicts by arm. Nothing changes if a value is wrong.
        """
        if isinstance(table, Mapping) and all(isinstance(v, Mapping) for v in table.values()):
            parsed = self.parse(table, argument)
            for name, values in parsed.items():
                _check_named(f"{argument}[{name!r}]", values)
            self._keep({name: _coded(self.features, name, v) for name, v in parsed.items()})
            return
        arms, columns = self._read(table, argument)
        _check_named(f"{argument}['arm']", arms)
        self._keep({name: (arms, codes) for name, codes in columns.items()})

    def _read(self, table: Any, argument: str) -> tuple[list[str], dict[str, FloatArray]]:
        """Return the arms of a table, and the codes of its features."""
        arms, rows = rows_by_arm(table, argument)
        codes = {}
        for name in rows.columns:
            column, where = self.features.column(argument, name), f"{argument}[{name!r}]"
            codes[name] = column.codes(where, arms, rows[name].to_numpy())
            column.check(where, codes[name], arms)
        return arms, codes

    def _keep(self, columns: Mapping[str, tuple[Sequence[str], FloatArray]]) -> None:
        for name, (arms, codes) in columns.items():
            for arm in arms:
                self.places.setdefault(arm, len(self.places))
            kept = self.codes.get(name, np.zeros(0))
            grown = np.full(len(self.places), np.nan)
            grown[: len(kept)] = kept
            grown[[self.places[arm] for arm in arms]] = codes
            self.codes[name] = grown
        self._part = None

    def keep(self, arms: Sequence[str], codes: Arrays) -> None:
        """Keep codes of arms, NaN where there is none; values that an arm had are replaced."""
        for name, given in codes.items():
            known = ~np.isnan(given)
            some = [arm for arm, one in zip(arms, known.tolist(), strict=True) if one]
            self._keep({name: (some, given[known])})

    def keep_new(self, today: Values, arms: Sequence[str]) -> None:
        """Keep the values of arms that have none yet, of features that are kept for other arms."""
        for name, given in today.items():
            if name in self.codes and isinstance(given, dict):
                lacks = np.isnan(self.kept(name, arms))
                new = [arm for arm, one in zip(arms, lacks, strict=True) if one and arm in given]
                if new:
                    values = {arm: given[arm] for arm in new}
                    self._keep({name: _coded(self.features, name, values)})

    def kept(self, name: str, arms: Sequence[str]) -> FloatArray:
        """Return the codes that are kept for these arms; NaN where there is none."""
        codes = self.codes.get(name)
        if codes is None:
            return np.full(len(arms), np.nan)
        if len(codes) < len(self.places):
            codes = np.append(codes, np.full(len(self.places) - len(codes), np.nan))
        places = np.array([self.places.get(arm, -1) for arm in arms], dtype=np.int64)
        found: FloatArray = np.append(codes, np.nan)[places]  # -1 is the last
        return found

    # ------------------------------------------------------------ scaling

    def freeze(self, today: Values, arms: Sequence[str]) -> Scales:
        """Return the scaling that the values at hand determine, of numbers that have none.

        Of a feature that is kept for arms, from all kept values; else from those of ``today``.
        """
        scales: Scales = {}
        for name, column in self.features.columns.items():
            if isinstance(column, Number) and not column.frozen:
                codes = self.codes.get(name, np.zeros(0))
                codes = codes[~np.isnan(codes)]
                if len(codes) == 0 and name in today:
                    codes = self._today(name, today[name], arms)
                    codes = codes[~np.isnan(codes)]
                found = column.freeze(codes)
                if found.centre is not None and found.scale is not None:
                    scales[name] = found.centre, found.scale
        self._check_different(scales)
        return scales

    def freeze_at(self, scales: Mapping[str, Sequence[float]]) -> None:
        """Fix the scaling of some numbers."""
        if scales:
            pairs = {name: (float(one[0]), float(one[1])) for name, one in scales.items()}
            self.features, self._part = self.features.scaled(pairs), None

    def _check_different(self, scales: Scales) -> None:
        """Raise ``InvalidInput`` if two numbers of the arms are the same but for their scale."""
        found: dict[str, FloatArray] = {}
        for name, (centre, scale) in scales.items():
            codes = self.codes.get(name)
            if codes is None or len(codes) < 3 or np.isnan(codes).any():
                continue
            scaled = (codes - centre) / scale
            for other, column in found.items():
                if np.ptp(scaled) > 0 and _are_alike(column, scaled):
                    got = f"{other} and {name}, which are the same but for their scale"
                    raise InvalidInput(
                        "arms", "features that differ", got, "Leave one of them out."
                    )
            found[name] = scaled

    # ------------------------------------------------------------ phi

    def rows(self, today: Values, arms: Sequence[str], known: Collection[str] = ()) -> FeatureRows:
        """Return phi of these arms. The scaling must be known.

        A value comes, first found, from ``today`` by arm, from ``today`` for all, or from the table
        of arms. ``known`` are arms of other rounds, which ``today`` may name.
        """
        self._check_arms(today, arms, known)
        daily = frozenset(
            name
            for name, given in today.items()
            if not isinstance(given, dict) or set(given) == {ALL}
        )
        day = {}
        for name, column in self.features.columns.items():
            if name in daily:
                given = today[name]
                value = given[ALL] if isinstance(given, dict) else given
                code = parsed_code(column, name, value)
                day[name] = column.row(f"features[{name!r}]", code)
            else:
                day[name] = ONES[: column.width]
        part, row = self._arm_part(today, arms, daily), self.features.expand_row(day)
        return FeatureRows(part, row, self.features.factors)

    def _arm_part(self, today: Values, arms: Sequence[str], daily: frozenset[str]) -> FloatArray:
        """Return the part of the arms, from a cache if ``today`` names no arm."""
        lasts, part = daily.issuperset(today), self._part
        if lasts and part is not None and part.daily == daily and _same(part.arms, arms):
            return part.arm
        blocks = {}
        for name, column in self.features.columns.items():
            if name in daily:
                blocks[name] = np.ones((1, column.width))
                continue
            codes = self._today(name, today.get(name, {}), arms)
            missing = np.isnan(codes)
            if missing.any():
                raise self.no_value(name, arms[int(missing.argmax())])
            column.check(f"features[{name!r}]", codes, arms)
            blocks[name] = column.columns(codes)
        phi = self.features.expand(blocks)
        shape = 1, len(arms), self.features.p
        phi = np.broadcast_to(phi, shape).copy()  # kernels are compiled for writable arrays
        if lasts:
            self._part = ArmPart(arms, daily, phi)
        return phi

    def _today(self, name: str, given: Any, arms: Sequence[str]) -> FloatArray:
        """Return the codes of one feature on a day; NaN where it has no value."""
        column, where = self.features.columns[name], f"features[{name!r}]"
        if not isinstance(given, dict):
            return np.full(len(arms), parsed_code(column, where, given))
        codes = self.kept(name, arms)
        if ALL in given:
            codes[:] = parsed_code(column, where, given[ALL])
        places: dict[str, int] = {arm: i for i, arm in enumerate(arms)} if given else {}
        for arm, value in given.items():
            if arm in places:
                codes[places[arm]] = parsed_code(column, where, value)
        return codes

    def _check_arms(self, today: Values, arms: Sequence[str], known: Collection[str]) -> None:
        for name, given in today.items():
            if isinstance(given, dict):
                names = {ALL, *arms, *known} if given else set()
                for arm in given:
                    if arm not in names and arm not in self.places:
                        near = suggestion(arm, arms)
                        raise InvalidInput(
                            f"features[{name!r}]",
                            f"names of known arms, such as {arms[0]!r}",
                            repr(arm),
                            f"Check the spelling.{near}",
                        )

    def no_value(self, name: str, arm: str, place: str = "") -> InvalidInput:
        """Return the error of a feature without a value; ``place`` is where to give it."""
        given = Term(f"features={{{name!r}: ...}}", "feature", name)
        hint = Hint("Give it when you ask, {}, or in the table of arms.", given)
        if place:
            hint = Hint("Give it {}, or in the table of arms.", place)
        return InvalidInput(f"features[{name!r}]", f"a value for arm {arm!r}", "none", hint)

    # ------------------------------------------------------------ plain data

    def arrays(self) -> Arrays:
        """Return the codes of all features that are kept for arms, of equal length."""
        return {name: self.kept(name, list(self.places)) for name in self.codes}

    @classmethod
    def of(cls, features: Features, arms: Sequence[str], arrays: Arrays) -> ArmFeatures:
        """Return the values that ``arrays`` returned, of these arms in order."""
        known = cls(features)
        known.places = {arm: i for i, arm in enumerate(arms)}
        known.codes = {name: array.astype(float) for name, array in arrays.items()}
        return known


def rows_by_arm(table: Any, argument: str) -> tuple[list[str], pd.DataFrame]:
    """Return the arms of a table, and its columns of features as a data frame."""
    hint = f"{argument} is a table with a column 'arm' and one for each feature."
    rows = frame(table, "arm").rename(columns=str)
    if "arm" not in rows.columns:
        rows = rows.reset_index(names="arm")
    names = list(rows.columns)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(argument, "one column of each name", f"{twice!r} twice", hint)
    arms = [_arm(argument, str(arm)) for arm in rows["arm"].tolist()]
    double = first_double(arms)
    if double is not None:
        raise InvalidInput(argument, "one row for each arm", f"{double!r} twice", hint)
    if len(names) < 2 or not arms:
        raise InvalidInput(argument, "arms and features", "none", hint)
    return arms, rows.drop(columns="arm")


def _coded(features: Features, name: str, values: Values) -> tuple[list[str], FloatArray]:
    """Return the arms and codes of parsed values."""
    column = features.columns[name]
    codes = [parsed_code(column, name, value) for value in values.values()]
    return list(values), np.array(codes, dtype=float)


def _arm(where: str, arm: Any) -> str:
    if not isinstance(arm, str) or not arm:
        hint = "Use the names of the arms, or '*' for all others."
        raise InvalidInput(where, "names of arms", shortened(repr(arm)), hint)
    return arm


def _check_named(where: str, arms: Collection[str]) -> None:
    """Raise ``InvalidInput`` if a table of arms has a value for all arms."""
    if ALL in arms:
        hint = "Name the arms: values that hold for all arms are given when you ask."
        raise InvalidInput(where, "names of arms", repr(ALL), hint)


def parsed_code(column: Column, where: str, value: Any) -> float:
    """Return the code of a parsed value; None is a value that is no level of its category."""
    return -1.0 if value is None else column.code(where, value)


def item(value: Any) -> Any:
    """Return a numpy number as a number of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _same(arms: Sequence[str], others: Sequence[str]) -> bool:
    return arms is others or tuple(arms) == tuple(others)


def _are_alike(column: FloatArray, other: FloatArray) -> bool:
    """Return whether two scaled columns are the same, or each other's negative."""
    if column.shape != other.shape:
        return False
    return bool(min(np.abs(column - other).max(), np.abs(column + other).max()) < ALIKE)
