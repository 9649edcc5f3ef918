"""Seeded random histories of all verbs of a learner, as lines of text that two versions compare.

A line has the request, its result or its refusal with all four parts, and a digest of each part of
the state, bit for bit. ``python learner_histories.py FOLDER`` writes the lines of all histories,
and files of learners; ``python learner_histories.py FOLDER --compare`` prints where they differ,
also where a learner that was loaded from such a file continues.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import multiplay as mp
from multiplay.beliefs.features import RESIDUALS
from multiplay.errors import InvalidInput
from multiplay.learner.features import table_record
from multiplay.posteriors.memories import COMMON

TOWNS, REGIONS = ["Lyon", "Lille", "Nice"], ["north", "south"]


def transport(supply: tuple[int, ...], demand: tuple[int, int]) -> mp.Transport:
    return mp.Transport(supply, demand, names=(TOWNS[: len(supply)], REGIONS))


USUAL = transport((2, 3), (4, 1))
OTHERS: list[mp.ActionSet] = [
    transport((2, 2, 1), (4, 1)),
    transport((1, 3), (3, 1)),
    transport((1, 4), (4, 1)),
]
ARMS = [f"{town}->{region}" for town in TOWNS for region in REGIONS]
TABLES: list[dict[str, list[Any]]] = [
    {
        "arm": [ARMS[0], ARMS[1], ARMS[0]],
        "round": ["2026-01-01", "2026-01-01", "2026-01-02"],
        "loss": [70.0, 71.0, None],
    },
    {"arm": [ARMS[2], ARMS[3]], "round": [1, 2], "loss": [44.0, 45.0]},
    {"arm": [ARMS[2], "Rome->west"], "round": [1, 2], "loss": [44.0, 45.0]},
    {"arm": [ARMS[2]], "round": [1], "loss": [999.0]},
]
PROMISES = [
    mp.AtMost(40, {"*": 1, ARMS[0]: 3}, plays=60, name="CO2"),
    mp.AtMost(9, {"*": 2, ARMS[1]: 0.5}, plays=60, name="weight", hard=False, until="1970-01-03"),
    mp.AtLeast(20, {"*": 0, ARMS[2]: 1}, plays=60, name="contract"),
]
FEATURES = mp.Features(km=mp.Number(), rain=mp.Flag())
KM = {"km": {arm: 90.0 * i + 10.0 for i, arm in enumerate(ARMS)}}
EACH_DAY = mp.Baseline("each day", per="week")
SETTINGS: dict[str, dict[str, Any]] = {
    "follow": {"policy": mp.BootstrapCTS(memory=mp.Changes())},
    "GenCTS": {"policy": mp.GenCTS(), "reports": mp.Reports(outside="clip", missing="ignore")},
    "CombUCB": {"policy": mp.CombUCB(window=20)},
    "discount": {"policy": mp.BootstrapCTS(discount=0.95)},
    "window": {"policy": mp.BootstrapCTS(window=7)},
    "pooled": {"policy": mp.PooledCTS(memory=mp.Changes())},
    "coins": {"policy": mp.GenCTS(memory=mp.Changes())},
    "ranges": {"policy": mp.BootstrapCTS(), "loss_range": {ARMS[0]: (0, 300), "*": (0, 250)}},
    "GenLBINFV": {"policy": mp.GenLBINFV()},
    "Hybrid": {"policy": mp.Hybrid()},
    "LBINF": {"policy": mp.LBINF(horizon=20, any_horizon=True)},
    "LinTS": {"policy": mp.LinTS()},
    "Duplicated": {"policy": mp.Duplicated(mp.GenCTS())},
    "FeatureCTS": {
        "policy": mp.FeatureCTS(memory=mp.Changes()),
        "features": FEATURES,
        "arm_features": {"km": dict([*KM["km"].items()][:4])},
    },
    "promises": {"policy": mp.GenCTS(), "constraints": PROMISES[:1]},
    "promised later": {"policy": mp.BootstrapCTS(memory=mp.Changes())},
    "rule": {"policy": mp.GenCTS(), "constraints": [mp.Baseline(mp.InProportion(), 0.05)]},
    "each day": {"policy": mp.CombUCB(), "constraints": [EACH_DAY]},
    "change": {"policy": mp.GenCTS(), "constraints": [mp.SwitchingCost(15.0)]},
}
OFTEN = {
    "ask": 8,
    "ask_today": 2,
    "ask_limited": 2,
    "ask_again": 2,
    "replace": 2,
    "tell": 9,
    "tell_part": 4,
    "tell_again": 2,
    "close": 2,
    "cancel": 2,
    "expire": 1,
    "learn": 2,
    "learn_table": 1,
    "set_arm_features": 1,
    "add_constraint": 2,
    "end_constraint": 1,
    "forget": 2,
    "unforget": 1,
    "correct": 4,
    "retract": 3,
    "wrong": 3,
    "save": 2,
    "words": 1,
    "ahead": 1,
    "queries": 1,
}
PROMISING = ("promises", "promised later")


class Line(NamedTuple):
    """One step of a history: the request, its answer, and digests of the state after it."""

    request: str
    answer: str
    state: str


def digest(*parts: Any) -> str:
    """Return a short digest of plain data and arrays."""
    found = blake2b(digest_size=5)
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        elif isinstance(part, dict):
            found.update("".join(f"{k}={digest(part[k])};" for k in part).encode())
        elif isinstance(part, list | tuple):
            found.update(",".join(digest(one) for one in part).encode())
        else:
            found.update(repr(part).encode())
    return found.hexdigest()


def state_of(learner: Any) -> dict[str, str]:
    """Return digests of all parts of the state of a learner."""
    engine = learner.engine
    state = engine.state
    pending = [
        (id, p.action, dict(sorted(p.memo.items())), p.key, p.asked, p.expected, p.units)
        for id, p in engine.pending.items()
    ]
    reports = [
        (p.digests, p.truncated, p.phi, p.today, p.gap, repr(p.report))
        for p in engine.pending.values()
    ]
    sets = [(p.round_set.actions.names, repr(p.round_set.limits)) for p in engine.pending.values()]
    own = engine.constraints
    limits, book = (own.allowance, own.switching, own.promises or None), own.promises
    rest = [digest(one) for one in (book.past, book.ahead, book.listed, book.latest, book.chosen)]
    arrays = state.arms.arrays
    names = sorted(arrays.keys() - {COMMON, *RESIDUALS})  # of beliefs
    return {
        "rng": digest(state.rng.state),
        "arms": digest({name: arrays[name] for name in names}, state.arms.names),
        "seen": digest(state.statistics.arrays()),
        "moments": digest(state.moments.sums, state.moments.common, state.moments.starts),
        "log": digest(None if state.log is None else state.log.arrays()),
        "pending": digest(pending),
        "reports": digest(reports),
        "sets": digest(sets, state.last.actions.names),
        "limits": digest([None if one is None else one.record() for one in limits], rest),
        "features": digest(None if state.features is None else features_of(state.features)),
        "counts": f"{engine.asked}/{state.told}/{engine.clipped}",
        "words": digest(engine.words),
    }


def features_of(features: Any) -> list[Any]:
    """Return the declared features and the model that uses them, which may be the policy's."""
    model = {name: features.arrays[name] for name in sorted(features._start(0))}
    return [table_record(features.table), features.last, features.matters, model]


def shown(result: Any) -> str:
    """Return a result as text, with all bits of its numbers."""
    if isinstance(result, mp.PendingPlay):
        fields = "id plan key truncated repeated baseline restricted gap prices held change_cost"
        plain = {name: getattr(result, name) for name in fields.split()}
        return repr(plain | {"action": result.action.tolist()})
    if hasattr(result, "to_csv"):
        return str(result.to_csv(float_format="%r"))
    if isinstance(result, list):
        return repr([shown(one) for one in result])
    return repr(result)


class History:
    """A learner and a random history of it."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self.name, self.random, self.folder = name, random.Random(f"{name} {seed}"), folder
        settings: dict[str, Any] = {"loss_range": (0, 250), "seed": seed} | SETTINGS[name]
        self.learner = mp.Learner(USUAL, **settings)
        self.with_features = "features" in settings
        self.each_day = any(one == EACH_DAY for one in settings.get("constraints", ()))
        self.plans: dict[int, dict[str, int]] = {}
        self.told: dict[int, Any] = {}
        self.when, self.saved = 1000.0, 0

    def lines(self, steps: int) -> Iterator[Line]:
        """Yield the steps of the history."""
        verbs, weights = [*OFTEN], [*OFTEN.values()]
        for _ in range(steps):
            verb = self.random.choices(verbs, weights)[0]
            self.when += self.random.choice([1.0, 60.0, 3600.0])
            made = getattr(self, f"_{verb}")()
            if made is None:
                continue
            request, act = made
            yield Line(f"{verb}: {request}", self._answer(act), json.dumps(state_of(self.learner)))
        yield Line("plays", shown(self.learner.plays(external=True)), "")
        yield Line("pending", shown(self.learner.pending()), "")

    def _answer(self, act: Callable[[], Any]) -> str:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                answer = shown(act())
            except InvalidInput as error:
                four = error.argument, error.expected, error.got, error.hint
                answer = f"{type(error).__name__}{four}"
            except ZeroDivisionError as error:
                answer = repr(error)
        return answer + "".join(f" {one.category.__name__}: {one.message}" for one in caught)

    # ------------------------------------------------------------ requests

    def _losses(self, id: int, style: str) -> Any:
        draw, plan = self.random, self.plans[id]
        units = {
            arm: [round(draw.uniform(20, 240), 3) for _ in range(n)] for arm, n in plan.items()
        }
        units = {arm: losses for arm, losses in units.items() if losses}
        if style == "totals":
            return {arm: sum(losses) for arm, losses in units.items()}
        if style == "round":
            return sum(sum(losses) for losses in units.values())
        if style == "gaps":
            return {arm: [None, *losses[1:]] for arm, losses in units.items()}
        if style == "short":
            return {arm: losses[:1] for arm, losses in [*units.items()][:1]}
        if style == "arms":
            return dict([*units.items()][: draw.randint(1, 3)])
        if style == "outside":
            return {arm: [999.0, *losses[1:]] for arm, losses in units.items()}
        if style == "list":
            return [units.get(arm, []) for arm in plan]
        return units

    def _style(self) -> str:
        styles = ["whole"] * 6 + ["totals", "gaps", "arms", "outside", "round", "list"]
        return self.random.choice(styles)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.with_features and self.random.random() < 0.95:
            rain: Any = self.random.random() < 0.5
            if self.random.random() < 0.3:
                rain = {ARMS[0]: True, "*": False}
            options["features"] = {"rain": rain}
        if self.each_day and self.random.random() < 0.95:
            options["baseline"] = mp.InProportion().plan(USUAL)
        return options

    def _asked(self, actions: mp.ActionSet | None = None, **options: Any) -> Any:
        options = {"at": self.when} | self._options() | options
        if self.each_day and actions is not None and "baseline" in options:
            options["baseline"] = mp.InProportion().plan(actions)
        text = f"{'' if actions is None else OTHERS.index(actions)} {options}"

        def ask() -> Any:
            play = self.learner.ask(actions, **options)
            self.plans.setdefault(play.id, dict(play.plan))
            return play

        return text, ask

    def _key(self) -> str:
        return self.random.choice(["a", "b", "c", "2026-11-18", "18.11.2026", f"k{self.when}"])

    def _ask(self) -> Any:
        return self._asked(key=self._key() if self.random.random() < 0.4 else None)

    def _ask_today(self) -> Any:
        return self._asked(self.random.choice(OTHERS))

    def _limits(self) -> dict[str, Any]:
        arm = self.random.choice(ARMS[:4])
        limits: list[dict[str, Any]] = [
            {"exclude": [arm]},
            {"at_most": {arm: 2}},
            {"fixed": {arm: 1}},
            {"fixed": {arm: 99}},
        ]
        return self.random.choice(limits)

    def _ask_limited(self) -> Any:
        return self._asked(key=self._key() if self.when % 2 else None, **self._limits())

    def _ask_again(self) -> Any:
        key = self.random.choice(["a", "b", "c", "18.11.2026"])
        return self._asked(key=key, **(self._limits() if self.random.random() < 0.2 else {}))

    def _replace(self) -> Any:
        limits = self._limits() if self.random.random() < 0.4 else {}
        text, ask = self._asked(key=self._key(), replace=True, **limits)
        if self.random.random() < 0.2:  # the policy fails: the old play is pending again
            failing = patch.object(type(self.learner.engine), "ask", lambda *_: 1 / 0)

            def fail() -> Any:
                with failing:
                    return ask()

            return f"{text} that fails", fail
        return text, ask

    def _ahead(self) -> Any:
        if self.name not in PROMISING:
            return self._asked(ahead=[USUAL])
        return self._asked(ahead=[self.random.choice([USUAL, *OTHERS]) for _ in range(3)])

    def _some(self, pending: bool | None = None) -> int | None:
        ids = [*self.plans]
        if pending is not None:
            ids = [id for id in ids if (id in self.learner.engine.pending) == pending]
        return self.random.choice(ids[-8:]) if ids else None

    def _named(self, id: int) -> Any:
        known = self.learner.engine.pending.get(id)
        by_key = known is not None and known.key is not None and self.random.random() < 0.3
        return known.key if known is not None and by_key else id

    def _tells(self, id: int | None, style: str, **options: Any) -> Any:
        if id is None:
            return None
        losses, play = self._losses(id, style), self._named(id)
        options = {"at": self.when} | options
        if self.random.random() < 0.2:
            options["missing"] = self.random.choice(["ignore", "refuse", "maybe"])

        def tell() -> Any:
            receipt = self.learner.tell(play, losses, **options)
            self.told[id] = losses
            return receipt

        return f"{play} {losses} {options}", tell

    def _tell(self) -> Any:
        return self._tells(self._some(True), self._style())

    def _tell_part(self) -> Any:
        style = self.random.choice(["short", "arms", "gaps", "totals", "whole"])
        return self._tells(self._some(True), style, final=False)

    def _tell_again(self) -> Any:
        id = self._some()
        if id not in self.told:
            return None
        losses, final = self.told[id], self.random.random() < 0.7
        return (
            f"{id} {losses} {final}",
            lambda: self.learner.tell(id, losses, final=final, at=self.when),
        )

    def _close(self) -> Any:
        id = self._some()
        return None if id is None else (f"{id}", lambda: self.learner.close(id, at=self.when))

    def _cancel(self) -> Any:
        id = self._some()
        return None if id is None else (f"{id}", lambda: self.learner.cancel(id))

    def _expire(self) -> Any:
        age = self.random.choice([10_000.0, 50_000.0])
        return f"{age}", lambda: self.learner.expire(age, at=self.when)

    def _learn(self) -> Any:
        actions = self.random.choice([None, None, OTHERS[0]])
        plan = {ARMS[0]: 2, ARMS[2]: 2, (ARMS[3] if actions is None else ARMS[5]): 1}
        self.plans[-1] = plan
        losses = self._losses(-1, self._style())
        del self.plans[-1]
        options = self._options() | {"at": self.when}
        options.pop("baseline", None)
        made = dict(actions=actions, **options)
        text = f"{plan} {losses} {actions is None} {options}"
        return text, lambda: self.learner.learn(plan, losses, **made)

    def _learn_table(self) -> Any:
        table: dict[str, Any] = self.random.choice(TABLES)
        skip = self.random.random() < 0.5
        if self.with_features:
            table = table | {"km": [120.0] * len(table["arm"]), "rain": [True] * len(table["arm"])}
        return f"{table} {skip}", lambda: self.learner.learn_table(table, skip_bad=skip)

    def _set_arm_features(self) -> Any:
        if not self.with_features and self.random.random() < 0.8:
            return None
        values = {
            arm: round(self.random.uniform(10, 500), 1) for arm in self.random.sample(ARMS, 3)
        }
        return f"{values}", lambda: self.learner.set_arm_features({"km": values})

    def _add_constraint(self) -> Any:
        if self.name not in PROMISING and self.random.random() < 0.7:
            return None
        promise = self.random.choice(PROMISES)
        return f"{promise}", lambda: self.learner.add_constraint(promise)

    def _end_constraint(self) -> Any:
        name = self.random.choice(PROMISES).name
        return name, lambda: self.learner.end_constraint(name)

    def _round(self) -> Any:
        told = self.learner.engine.state.told
        when = datetime.fromtimestamp(self.random.uniform(1000.0, self.when + 100), UTC)
        return self.random.choice([self.random.randint(0, told + 2), when, max(told - 2, 0)])

    def _forget(self) -> Any:
        arm, before = self.random.choice([None, *ARMS[:5]]), self._round()
        text = f"{arm} {before}"
        return text, lambda: self.learner.forget(arm, before=before, at=self.when)

    def _unforget(self) -> Any:
        arm, since = (
            self.random.choice([None, *ARMS[:5]]),
            self.random.choice([None, self._round()]),
        )
        return f"{arm} {since}", lambda: self.learner.unforget(arm, since=since, at=self.when)

    def _correct(self) -> Any:
        id = self._some(self.random.random() < 0.1)
        if id is None:
            return None
        losses = self._losses(id, self._style())
        if self.random.random() < 0.2:
            losses = self.told.get(id, losses)
        options = {"at": self.when}
        if self.random.random() < 0.3:
            options["missing"] = "ignore"  # type: ignore[assignment]

        def correct() -> Any:
            receipt = self.learner.correct(id, losses, **options)  # type: ignore[arg-type]
            self.told[id] = losses
            return receipt

        return f"{id} {losses} {options}", correct

    def _retract(self) -> Any:
        id = self._some(self.random.random() < 0.4)
        return None if id is None else (f"{id}", lambda: self.learner.retract(id, at=self.when))

    def _wrong(self) -> Any:
        verbs: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("tell", (10**6, {}), {}),
            ("tell", ("no such key", {}), {}),
            ("close", (1.5,), {}),
            ("cancel", (None,), {}),
            ("correct", (10**6, {}), {}),
            ("retract", ("no such key",), {}),
            ("retract", (None,), {}),
            ("retract", (2.5,), {}),
            ("ask", (), {"key": "x" * 300}),
            ("ask", (), {"replace": True}),
            ("ask", (), {"at_most": {"Rome": 1}}),
            ("ask", (), {"features": {"fog": 1}}),
            ("ask", (), {"time_limit": -1}),
            ("ask", (), {"at": "noon"}),
            ("forget", ("Rome",), {"before": 1}),
            ("forget", (), {"before": -3}),
            ("forget", (), {"before": "then"}),
            ("unforget", (), {"since": 10**6}),
            ("expire", ("old",), {}),
            ("learn", ({"Rome": 1}, {}), {}),
            ("learn_table", ("no such file.csv",), {}),
            ("set_arm_features", ({"fog": {}},), {}),
            ("add_constraint", ("CO2",), {}),
            ("end_constraint", ("no such promise",), {}),
            ("set_words", (7,), {}),
        ]
        verb, args, options = self.random.choice(verbs)
        return f"{verb} {args} {options}", lambda: getattr(self.learner, verb)(*args, **options)

    def _save(self) -> Any:
        path = self.folder / f"{self.name}.npz"
        self.saved += 1
        first = 2**52 + 1000 * self.saved

        def save() -> Any:
            self.learner.save(path)
            if self.saved % 2:
                with patch("secrets.randbelow", lambda _: first - 2**52):
                    self.learner = mp.Learner.load(path)

        return f"{self.saved}", save

    def _words(self) -> Any:
        unit = self.random.choice(["truck", "lorry"])
        return unit, lambda: self.learner.set_words(mp.Words("EUR", unit))

    def _queries(self) -> Any:
        def queries() -> Any:
            learner = self.learner
            found = [
                shown(learner.arms()),
                shown(learner.constraints()),
                repr(learner),
                learner.summary,
            ]
            found.append(self._answer(lambda: learner.savings(mp.InProportion())))
            found.append(self._answer(learner.drift))
            for play in learner.pending()[:2]:
                found += [repr(play.expected), self._answer(play.why)]
            return found

        return "", queries


def histories(seeds: int = 3, steps: int = 150) -> Iterator[tuple[str, list[Line]]]:
    """Yield all histories by name."""
    with TemporaryDirectory() as folder:
        for name in SETTINGS:
            for seed in range(seeds):
                yield f"{name} {seed}", [*History(name, seed, Path(folder)).lines(steps)]


def write_files(folder: Path, seeds: int) -> None:
    """Write files of learners, each with what its history needs to continue."""
    for name in SETTINGS:
        for seed in range(100, 100 + seeds):
            history = History(name, seed, folder)
            for _ in history.lines(90):
                pass
            history.learner.save(folder / f"{name} {seed}.npz")
            known = [history.plans, history.told, history.when, history.saved]
            (folder / f"{name} {seed}.json").write_text(json.dumps(known))


def continued(folder: Path, steps: int = 60) -> Iterator[tuple[str, list[Line]]]:
    """Yield the histories that continue from the files of ``write_files``."""
    with TemporaryDirectory() as place:
        for file in sorted(folder.glob("* 1??.json")):
            name, seed = file.stem.rsplit(" ", 1)
            history = History(name, int(seed), Path(place))
            plans, told, history.when, history.saved = json.loads(file.read_text())
            history.plans = {int(id): plan for id, plan in plans.items()}
            history.told = {int(id): losses for id, losses in told.items()}
            history.random = random.Random(f"{file.stem} continued")
            with patch("secrets.randbelow", lambda _: 77):
                history.learner = mp.Learner.load(file.with_suffix(".npz"))
            first = Line("load", "", json.dumps(state_of(history.learner)))
            yield f"{file.stem} continued", [first, *history.lines(steps)]


def differences(one: list[Line], other: list[Line]) -> Iterator[str]:
    """Yield where two histories differ."""
    for k, (a, b) in enumerate(zip(one, other, strict=False)):
        if a.request != b.request:
            yield f"{k} request {a.request} | {b.request}"
            return
        if a.answer != b.answer:
            yield f"{k} {a.request}\n  {a.answer}\n  {b.answer}"
        if a.state != b.state:
            then, now = json.loads(a.state), json.loads(b.state)
            names = [name for name in then if then[name] != now.get(name)]
            yield f"{k} {a.request}: state {names}"
    if len(one) != len(other):
        yield f"{len(one)} and {len(other)} lines"


def main(path: str, mode: str = "--write", seeds: str = "3", only: str = "") -> int:
    """Write all histories to a folder, or compare them with those of the folder."""
    folder = Path(path)
    if mode == "--write":
        folder.mkdir(parents=True, exist_ok=True)
        write_files(folder, int(seeds))
    now = dict(chain(histories(int(seeds)), continued(folder)))
    file = folder / "lines.json"
    if mode == "--write":
        file.write_text(json.dumps(now))
        print(f"{len(now)} histories, {sum(map(len, now.values()))} lines")
        return 0
    then, differing = json.loads(file.read_text()), 0
    for name, lines in now.items():
        found = [*differences([Line(*line) for line in then[name]], lines)]
        differing += bool(found)
        if found and only in name:
            print(f"{name}: {len(lines)} lines, {len(found)} differ")
            for text in found[:3]:
                print(f"  {text[:1500]}")
    print(f"{differing} of {len(now)} histories differ")
    return differing


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
