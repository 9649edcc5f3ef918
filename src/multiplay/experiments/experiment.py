"""Experiment files: TOML files that are read, checked, built and run, or written for a result."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from multiplay._support.builder import Builder, check_keys, errors_below, made
from multiplay._support.checks import EXACT, is_number, positive_integer
from multiplay._support.serialization import brief, completed
from multiplay._support.toml_files import read_toml
from multiplay._support.user_modules import ModuleFolder
from multiplay.actions import ActionSet
from multiplay.environments import Environment
from multiplay.errors import InvalidInput
from multiplay.experiments.file_builder import FileBuilder, evaluate, is_formula
from multiplay.policies import Policy
from multiplay.policies.base import check_fits
from multiplay.random import INSTANCE, seed_sequence
from multiplay.results import Result
from multiplay.simulation import simulate
from multiplay.simulation.simulate import MOST_TRIALS, recorded_rounds
from multiplay.types import FloatArray

KEYS = (
    *("title", "horizon", "trials", "seed", "record", "block", "against", "delay"),
    *("draw", "actions", "environment", "policies"),
)
NEEDED = ("horizon", "trials", "actions", "environment", "policies")
TOGETHER = "constraints"  # of a policy: a list that is one value
LARGEST = {"horizon": EXACT, "trials": MOST_TRIALS}
NO_SETTINGS = ("function", "array")  # by name or by digest alone


@dataclass(frozen=True)
class Experiment:
    """The arguments of ``simulate``, read from a file.

    Attributes
    ----------
    title : str
        The title of figures and reports.
    actions, environment, policies
        The set of actions, the source of losses, and the policies by name.
    horizon, trials, seed, record, block, against, delay
        As for ``simulate``.

    Examples
    --------
    >>> experiment = read(shipped("example"), horizon=20, trials=2)
    >>> experiment.actions
    Budget(10, caps=[6, 6, 4, 4])
    >>> list(experiment.policies)  # a list in the file is a grid
    ['GenCTS', 'CTS', 'GenLBINFV, epsilon=0.1', 'GenLBINFV, epsilon=0.5']
    >>> experiment.check()  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: policies.GenLBINFV, epsilon=0.1.horizon: expected at least
    max(55, d) = 55 rounds, got 20. Play more rounds, or write GenLBINFV(any_horizon=True) to skip
    this check.
    """

    title: str
    actions: ActionSet
    environment: Environment
    policies: dict[str, Policy]
    horizon: int
    trials: int
    seed: int
    record: Any
    block: int | None
    against: str | None = None
    delay: Any = 0

    def check(self) -> None:
        """Raise ``InvalidInput`` if the parts do not fit together; the error names the key."""
        with errors_below("actions"):
            actions = self.actions.over(self.horizon)
        with errors_below("environment"):
            self.environment.check(actions, self.horizon, self.trials)
        for name, policy in self.policies.items():
            with errors_below(f"policies.{name}"):
                shows_units = self.environment.shows_units(actions)
                check_fits(policy, actions, self.horizon, shows_units)

    def run(
        self,
        jobs: int = 1,
        executor: Executor | None = None,
        store: str | Path | None = None,
        resume: bool = False,
    ) -> Result:
        """Run it; see ``simulate``, which checks before anything is computed."""
        try:
            return simulate(
                self.actions,
                self.environment,
                self.policies,
                self.horizon,
                self.trials,
                self.seed,
                jobs=jobs,
                executor=executor,
                record=self.record,
                block=self.block,
                store=store,
                resume=resume,
                title=self.title,
                against=self.against,
                delay=self.delay,
            )
        except InvalidInput:
            self.check()  # the same refusal, with the key of the file
            raise


def read(path: str | Path, **changes: Any) -> Experiment:
    """Read an experiment from a TOML file, with some of its keys changed.

    An error names the key.

    Parameters
    ----------
    path
        Of the file; ``multiplay run --print-example`` prints one that explains itself.
    changes
        Other values for keys of the file: ``horizon=100``, for example.

    Returns
    -------
    Experiment
        Built and ready to ``run``.

    Examples
    --------
    >>> short = read(shipped("stochastic"), horizon=100, trials=2)
    >>> short.title, short.horizon, short.actions
    ('Stochastic regime', 100, Transport(supply=[1, 4, 5], demand=[4, 6]))
    >>> read(shipped("stochastic"), horizon=0)
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: horizon: expected a whole number of at least 1, got 0. \
Give a positive whole number.
    """
    path, hint = Path(path), "See multiplay run --print-example."
    plain = read_toml("file", path, "an experiment file", hint)
    return build({**plain, **changes}, path.parent)


def shipped(name: str) -> Path:
    """Return the path of an experiment that comes with the package.

    Parameters
    ----------
    name
        "stochastic" or "corrupted", the experiments of the paper; or "example".

    Examples
    --------
    >>> shipped("stochastic").name
    'stochastic.toml'
    >>> read(shipped("corrupted"), trials=2).environment.at
    2000
    """
    return Path(__file__).with_name(f"{name}.toml")


def build(plain: Mapping[str, Any], folder: Path = Path()) -> Experiment:
    """Build an experiment from plain data, as it stands in a file."""
    check_keys("", plain, KEYS, NEEDED)
    sizes = {
        key: positive_integer(key, plain[key], "Give a positive whole number.", largest)
        for key, largest in LARGEST.items()
    }
    seed, modules = plain.get("seed", 0), ModuleFolder(str(folder.resolve()))
    builder = FileBuilder(modules, partial(_leaf, sizes))
    actions = made(builder, "actions", plain["actions"], ActionSet)
    names = {**sizes, **_draws(plain.get("draw", {}), sizes["trials"], actions.d, seed)}
    builder = FileBuilder(modules, partial(_leaf, names))
    environment = made(builder, "environment", plain["environment"], Environment)
    policies = _policies(plain["policies"], builder)
    return Experiment(
        title=str(plain.get("title", "")),
        actions=actions,
        environment=environment,
        policies=policies,
        seed=seed,
        record=plain.get("record"),
        block=plain.get("block"),
        against=plain.get("against"),
        delay=plain.get("delay", 0),
        **sizes,
    )


def _draws(draw: Any, trials: int, d: int, seed: Any) -> dict[str, FloatArray]:
    """Draw one number for each arm in every trial; trial k has the same in any number of them."""
    if not isinstance(draw, dict):
        expected = "a table of names, each with low and high"
        raise InvalidInput("draw", expected, repr(draw), "See --print-example.")
    ranges = {}
    for name, limits in draw.items():
        check_keys(f"draw.{name}", limits, ("low", "high"), ("low", "high"))
        low, high = limits["low"], limits["high"]
        if not (is_number(low) and is_number(high) and low <= high) or not name.isidentifier():
            raise InvalidInput(
                f"draw.{name}",
                "a name, and numbers low <= high",
                repr(limits),
                "Give a lower number first.",
            )
        ranges[name] = (low, high)
    drawn = {name: np.empty((trials, d)) for name in ranges}
    for k in range(trials if ranges else 0):
        rng = np.random.default_rng(seed_sequence(seed, INSTANCE, k))
        for name, (low, high) in ranges.items():
            drawn[name][k] = rng.uniform(low, high, d)
    return drawn


def _policies(plain: Any, builder: Builder) -> dict[str, Policy]:
    if not isinstance(plain, dict) or not plain:
        example = 'Write GenCTS = { type = "GenCTS" } below [policies].'
        raise InvalidInput("policies", "at least one policy by name", repr(plain), example)
    policies: dict[str, Policy] = {}
    owners: dict[str, str] = {}
    for name, table in plain.items():
        for setting, single in _grid(table):
            label = ", ".join([name, *setting])
            if label in owners:
                both = f"{label!r} from policies.{owners[label]} and again from policies.{name}"
                hint = "Rename one of the two, or remove one of two equal values of a grid."
                raise InvalidInput(f"policies.{name}", "a name for every policy", both, hint)
            owners[label] = name
            policies[label] = made(builder, f"policies.{name}", completed(single), Policy)
    return policies


def _grid(table: Any) -> Iterator[tuple[list[str], Any]]:
    """Yield a table for every combination of values of its lists, with the values chosen."""
    if isinstance(table, list):
        for value in table:
            yield [f"{value}"], value
    elif isinstance(table, dict):
        choices = [
            [(key, *one) for one in (_each if key == TOGETHER else _grid)(value)]
            for key, value in table.items()
        ]
        for chosen in itertools.product(*choices):
            labels = [
                text if isinstance(table[key], dict) or key == TOGETHER else f"{key}={text}"
                for key, setting, _ in chosen
                for text in setting
            ]
            yield labels, {key: value for key, _, value in chosen}
    else:
        yield [], table


def _each(tables: Any) -> Iterator[tuple[list[str], Any]]:
    """Yield a list of tables for every combination of their grids."""
    for chosen in itertools.product(*map(_grid, tables)):
        yield [text for texts, _ in chosen for text in texts], [table for _, table in chosen]


def _leaf(names: Mapping[str, Any], where: str, value: Any) -> Any:
    return evaluate(where, value, names) if is_formula(value) else value


# ---------------------------------------------------------------- the file of a result


def experiment_file(result: Result) -> str:
    """Return the configuration as an experiment file, for ``multiplay run``."""
    plain = completed(result.configuration)
    lines = [f"title = {toml(result.title)}"] if result.title else []
    lines += [f"{key} = {toml(plain[key])}" for key in ("horizon", "trials", "seed")]
    rounds = result.dataset["round"].values.tolist()
    if rounds != recorded_rounds(plain["horizon"], None).tolist():
        lines.append(f"record = {toml(rounds)}")
    lines += [f"{key} = {toml(plain[key])}" for key in ("against", "delay") if key in plain]
    for key in ("actions", "environment", "policies"):
        lines += ["", f"[{key}]"]
        lines += [f"{_key(k)} = {toml(v)}" for k, v in plain[key].items() if v is not None]
    return "\n".join([*lines, ""])


def toml(plain: Any) -> str:
    """Return plain data as a TOML value.

    Examples
    --------
    >>> toml({"type": "GenLBINFV", "eta": 0.25, "epsilon": None, "any_horizon": False})
    '{ type = "GenLBINFV", eta = 0.25, any_horizon = false }'
    """
    if (
        is_formula(plain)
        or plain is None
        or (isinstance(plain, dict) and plain.get("type") in NO_SETTINGS)
    ):
        raise InvalidInput(
            "experiment",
            "settings that a file can hold",
            brief(plain),
            "Run the script again that made the result.",
        )
    if isinstance(plain, dict):
        items = [
            f"{_key(key)} = {toml(value)}" for key, value in plain.items() if value is not None
        ]
        return f"{{ {', '.join(items)} }}"
    if isinstance(plain, list):
        return f"[{', '.join(map(toml, plain))}]"
    if isinstance(plain, float):
        return repr(plain)
    return json.dumps(plain, ensure_ascii=False)  # the same in TOML


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
