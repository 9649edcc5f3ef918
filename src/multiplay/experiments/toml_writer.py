"""Experiment files of results: TOML that repeats the run."""

import json
import re
from typing import Any

from multiplay._support.serialization import brief, completed
from multiplay.errors import InvalidInput
from multiplay.experiments.file_builder import is_formula
from multiplay.results.result import Result
from multiplay.simulation.simulate import recorded_rounds

NO_SETTINGS = ("function", "array")  # by name or by digest alone


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
