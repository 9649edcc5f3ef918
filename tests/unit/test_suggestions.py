"""Suggestions for misspelt names, wherever users write names."""

import copy
import inspect
import pickle
from dataclasses import dataclass
from typing import Any

import pytest

import multiplay as mp
from multiplay._support.suggestions import PYTHON_SUGGESTS, suggestion, with_suggestions

MISSPELT: list[tuple[Any, dict[str, Any], str]] = [
    (mp.Budget, {"total": 1, "cap": [1, 1]}, "caps"),
    (mp.Transport, {"suply": [1], "demand": [1]}, "supply"),
    (mp.GenLBINFV, {"epsilom": 0.1}, "epsilon"),
    (mp.Stochastic, {"distributon": None}, "distribution"),
    (mp.Learner, {"actions": mp.Budget.example(), "polciy": mp.GenCTS()}, "policy"),
    (mp.Study, {"name": "lanes", "stor": "memory://"}, "store"),
]


def test_the_nearest_name_is_suggested_whatever_its_case() -> None:
    assert suggestion("capz", ["caps", "total"]) == " Did you mean 'caps'?"
    assert suggestion("gencts", ["GenCTS", "GenLBINFV"]) == " Did you mean 'GenCTS'?"
    assert suggestion("zzz", ["caps", "total"]) == ""
    assert suggestion(7, []) == ""


@pytest.mark.parametrize(("kind", "arguments", "meant"), MISSPELT)
def test_a_misspelt_argument_gets_a_suggestion(
    kind: Any, arguments: dict[str, Any], meant: str
) -> None:
    with pytest.raises(TypeError, match=rf"unexpected keyword argument.*Did you mean '{meant}'\?$"):
        kind(**arguments)


def test_a_misspelt_public_name_gets_a_suggestion() -> None:
    with pytest.raises(AttributeError, match=r"'Transprt'\. Did you mean 'Transport'\?$"):
        mp.Transprt  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'zzzz'$"):
        mp.zzzz  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(mp, "__wrapped__")


def test_signatures_copies_and_pickles_are_undisturbed() -> None:
    assert list(inspect.signature(mp.Budget).parameters)[:2] == ["total", "caps"]
    assert list(inspect.signature(mp.GenLBINFV).parameters)[:2] == ["prediction", "epsilon"]
    policy = mp.GenLBINFV(epsilon=0.1)
    assert pickle.loads(pickle.dumps(policy)) == copy.deepcopy(policy) == policy
    assert pickle.loads(pickle.dumps(mp.simulate)) is mp.simulate


def test_subclasses_of_users_keep_their_own_errors() -> None:
    @dataclass(frozen=True)
    class Mine(mp.GenCTS):
        speed: float = 1.0

    assert Mine(speed=2.0).speed == 2.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'sped'"):
        Mine(sped=2.0)  # type: ignore[call-arg]


@pytest.mark.skipif(PYTHON_SUGGESTS, reason="Python suggests names itself")
def test_errors_inside_a_function_are_left_alone() -> None:
    def inner(right: int) -> int:
        return right

    @with_suggestions
    def outer(wrong: int) -> int:
        return inner(wrnog=wrong)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"argument 'wrnog'$"):
        outer(wrong=1)
