"""Settings of a study in a TOML file: all arguments of ``Study.create``, and what options add."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from multiplay import actions, policies
from multiplay._support.builder import Builder, check_keys, classes_of, made
from multiplay._support.toml_files import read_toml
from multiplay._support.words import Words
from multiplay.actions import ActionSet
from multiplay.cli.study import csv_files, features, options
from multiplay.constraints import Constraint
from multiplay.errors import InvalidInput
from multiplay.learner.reports import Reports
from multiplay.policies import Policy
from multiplay.studies.wire import to_constraint

HINT = "Write loss_range = [0, 250], for example."

SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="STUDY.toml", help="All settings, from a file; see below."),
]


def read_settings(path: Path) -> dict[str, Any]:
    """Return the arguments of ``Study.create`` in a file, and ``known``; no code is imported.

    Names of files are relative to the folder of this file. Errors name the key.
    """
    plain = read_toml("--settings", path, "a TOML file with settings of a study", HINT)
    check_keys("", plain, READERS, (), "Study.create()")
    return {key: READERS[key](key, value, path.parent) for key, value in plain.items()}


def _as_it_is(key: str, value: Any, folder: Path) -> Any:
    return value


def _range(key: str, value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {arm: tuple(pair) if isinstance(pair, list) else pair for arm, pair in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _table(kind: Callable[..., Any], keys: tuple[str, ...]) -> Callable[[str, Any, Path], Any]:
    def read(key: str, value: Any, folder: Path) -> Any:
        check_keys(key, value, keys, ())
        return kind(**value)

    return read


def _set(key: str, value: Any, folder: Path) -> ActionSet:
    built: ActionSet = made(Builder(classes_of(actions)), key, value, ActionSet)
    return built


def _policy(key: str, value: Any, folder: Path) -> Policy:
    if isinstance(value, str):
        return options.policy_named(value)
    built: Policy = made(Builder(classes_of(policies)), key, value, Policy)
    return built


def _features(key: str, value: Any, folder: Path) -> Any:
    return features.read_features(folder / _text(key, value))


def _arm_features(key: str, value: Any, folder: Path) -> Any:
    return csv_files.read_csv(str(folder / _text(key, value)), "arm", key)


def _constraints(key: str, value: Any, folder: Path) -> list[Constraint]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        hint = 'Write [[constraints]], and below it type = "SwitchingCost" and cost = 15.'
        raise InvalidInput(key, "a list of tables", repr(value), hint)
    return [_constraint(f"{key}[{k}]", one, folder) for k, one in enumerate(value)]


def _constraint(key: str, plain: dict[str, Any], folder: Path) -> Constraint:
    """Return a constraint; its rule, or the amounts of its arms, may be in a file."""
    plain = dict(plain)
    if isinstance(rule := plain.get("rule"), str):
        is_file = (folder / rule).is_file()
        plain["rule"] = csv_files.baseline_named(key, str(folder / rule) if is_file else rule)
    if isinstance(plain.get("of"), str):
        plain["of"] = csv_files.amounts_in(key, str(folder / plain["of"]))
    return to_constraint(key, plain)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(key, "a text", repr(value), f'Write {key} = "...".')
    return value


READERS: dict[str, Callable[[str, Any, Path], Any]] = {
    **dict.fromkeys(("seed", "varying_set", "like", "known"), _as_it_is),
    "actions": _set,
    "policy": _policy,
    "loss_range": _range,
    "reports": _table(Reports, Reports._fields),
    "words": _table(Words, Words._fields),
    "features": _features,
    "arm_features": _arm_features,
    "constraints": _constraints,
}
