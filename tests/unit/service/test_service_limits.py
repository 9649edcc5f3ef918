"""Limits of the service: untrusted input is built within seconds, or refused with an error."""

import copy
import inspect
import json
from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asgi import client_of
from effort import examples
from facilities import facility
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import refused
from trucks import new_study

import multiplay as mp
from multiplay import InvalidInput, actions, policies
from multiplay._support.builder import classes_of
from multiplay._support.serialization import describe, pack
from multiplay.policies import Policy
from multiplay.service.app import create_app
from multiplay.service.settings import Settings
from multiplay.service.studies.limits import (
    PARTS,
    POLICIES,
    SETS,
    ServiceLimits,
    build_actions,
    build_policy,
    check_history,
    check_known,
    check_together,
    in_time,
    strict_json,
)
from multiplay.storage import store_at
from multiplay.types import Arrays

LIMITS = ServiceLimits(seconds=600.0)  # a busy machine is slow
QUICK = ServiceLimits(seconds=0.5)
FUZZ = settings(max_examples=examples(40), derandomize=True, database=None)
LONGER = settings(FUZZ, max_examples=examples(150))

# ---------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        None,
        {"at_most": {"Lyon->north": 2}, "exclude": ["a"], "limit": 2.5},
        [2**63 - 1, -(2**63), 0, -0.0, 1e308, 5e-324],
        ["ä", "\U0001f600", "\\u0000", '"[[[[', "\\", "\x7f"],
    ],
)
def test_json_is_read(value: Any) -> None:
    for ascii_only in (True, False):
        body = json.dumps(value, ensure_ascii=ascii_only).encode()
        assert strict_json(body, LIMITS) == value == strict_json(b" \n" + body + b"\t", LIMITS)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1,]",
        b"{} {}",
        b"'a'",
        b"[NaN]",
        b"Infinity",
        b"[-Infinity]",
        b"[1e999]",
        b"-1e999",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"1" * 100_000,
        b"1." + b"1" * 100_000 + b"e999",
        b'["\\ud800"]',
        b'["\\uDFFF\\ud83d"]',
        b'[{"a\\u0000": 1}]',
        b'["\x00"]',
        b'["\n"]',
        b'{"a": 1, "b": 2, "a": 1}',
        b'[{"\\u0061": 1, "a": 2}]',
        b'["\xed\xa0\x80"]',
        b"\xff",
        '{"a": 1}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b'"' + b'\\"' * 100_000,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with refused("body"):
        strict_json(body, LIMITS)


def test_whole_numbers_with_a_point_count() -> None:
    """A set reads 1e9 as a whole number; it is refused before 8 GB are reserved for its arms."""
    for rows in (10**9, 1e9, 60, 60.0):
        with refused("actions"):
            build_actions("actions", {"type": "Assignment", "rows": rows}, LIMITS)
    assert build_actions("actions", {"type": "Assignment", "rows": 3.0}, LIMITS).d == 9
    for limit in (10_001, 10_001.0):
        with refused("policy"):
            build_policy("policy", {"type": "ESCB", "limit": limit}, LIMITS)


def test_depth_is_limited() -> None:
    for opens, closes in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = opens * 32 + b"1" + closes * 32
        assert strict_json(deep, LIMITS)
        with refused("body"):
            strict_json(opens + deep + closes, LIMITS)
        with refused("body"):
            strict_json(opens * 100_000, LIMITS)
    flat = b"[" + b'[],{},"[[\\"[",' * 1000 + b"1]"
    assert len(strict_json(flat, ServiceLimits(depth=2))) == 3001


# ---------------------------------------------------------------- sets


def plain(thing: Any) -> Any:
    """Return an object as a client sends it."""
    return json.loads(json.dumps(_with_arrays(*pack(thing))))


def written(thing: Any) -> Any:
    """Return an object as a description in JSON."""
    return json.loads(json.dumps(describe(thing)))


def _with_arrays(packed: Any, arrays: Arrays) -> Any:
    if isinstance(packed, dict) and packed.get("type") == "array":
        return arrays[packed["name"]].tolist()
    if isinstance(packed, dict):
        return {key: _with_arrays(value, arrays) for key, value in packed.items()}
    return [_with_arrays(one, arrays) for one in packed] if isinstance(packed, list) else packed


EXAMPLES: list[actions.ActionSet] = [
    *(kind.example() for kind in SETS.values()),
    mp.Transport([3, 3], [2, 2], slack=True),
    mp.Transport([3, 3], [2, 2], surplus=True),
    mp.Transport([1, 2], [3, 2], shortage=5.0),
    mp.Transport([2, 2], [2, 2], names=(["a", "b"], ["c", "d"]), capacities=[[1, 2], [2, 1]]),
    mp.Budget(3, [2, 2, 2], at_most=True),
    mp.Network([(0, 1), (1, 2), (0, 2)], {0: 3, 2: -3}, [2, 2, None], free=[1]),
    mp.Knapsack([1.5, 2, 0.5], 4.5, limits=[1, 2, 3]),
    mp.IntegerProgram([], [], ([0, 0], [2, 1])),
]


def test_every_set_is_either_offered_or_not() -> None:
    others = {"TimeVarying", "Duplicate", "Limited"}
    sets = {name for name, kind in classes_of(actions).items() if not issubclass(kind, mp.Rule)}
    assert SETS.keys() == sets - others
    wrappers = {"Constrained", "Play"}
    assert POLICIES.keys() == classes_of(policies).keys() - wrappers - PARTS.keys()


@pytest.mark.parametrize("one", EXAMPLES, ids=repr)
def test_sets_are_built(one: actions.ActionSet) -> None:
    for sent in (plain(one), written(one)):
        if isinstance(one, mp.Model):
            assert sent.pop("n") == one.n.tolist()  # it is computed
        assert describe(build_actions("actions", sent, LIMITS)) == describe(one)


def test_tables_with_keys_that_are_no_texts() -> None:
    supplies = {"type": "mapping", "keys": [0, 2], "values": [3, -3]}
    given = {"type": "Network", "arcs": [[0, 1], [1, 2]], "supplies": supplies}
    assert build_actions("actions", given, LIMITS).n.tolist() == [3, 3]
    names = {"type": "tuple", "items": [["Lyon"], ["north", "south"]]}
    lanes = {"type": "Transport", "supply": [2], "demand": [1, 1], "names": names}
    assert build_actions("actions", lanes, LIMITS).names == ("Lyon->north", "Lyon->south")


def model(
    columns: int = 1_000,
    rows: int = 500,
    nonzeros: int = 10_000,
    arms: int = 50,
    value: float = 1e9,
    cost: float = 1e-9,
) -> dict[str, Any]:
    """Return a model as a client sends it; all settings by default are the largest allowed."""
    places = [divmod(k, 1_000) for k in range(nonzeros)]
    return {
        "type": "Model",
        "columns": {
            "lower": [0] * columns,
            "upper": [1] * columns,
            "integer": [True] * columns,
            "cost": [0] * (columns - 1) + [cost],
        },
        "rows": {"lower": [None] * rows, "upper": [1e12] * rows},
        "matrix": {
            "row": [row for row, _ in places],
            "column": [column for _, column in places],
            "value": [value] * nonzeros,
        },
        "arms": [*range(arms)],
    }


MANY, HUGE = 20_000, 10**9
ARCS = [["a", "b"]] * MANY
TOO_LARGE: dict[str, tuple[str, dict[str, Any]]] = {
    "lanes": ("supply, demand", {"type": "Transport", "supply": [1] * 46, "demand": [1] * 46}),
    "rows": ("rows, cols", {"type": "Assignment", "rows": 10**6}),
    "columns": ("rows, cols", {"type": "Assignment", "rows": 1, "cols": 2**53}),
    "caps": ("caps", {"type": "Budget", "total": 1, "caps": [1] * MANY}),
    "targets": ("weights", {"type": "Coverage", "budget": 1, "weights": [1] * MANY}),
    "attempts": ("budget", {"type": "Coverage", "budget": 501, "weights": [1] * 2000}),
    "items": ("weights", {"type": "Knapsack", "weights": [1] * MANY, "capacity": 1}),
    "columns of plans": ("actions", {"type": "Explicit", "actions": [[1] * MANY]}),
    "columns of a program": ("A", {"type": "IntegerProgram", "A": [[1] * 51], "b": [1]}),
    "constraints": ("A", {"type": "IntegerProgram", "A": [[1]] * 101, "b": [1] * 101}),
    "bounds": ("A", {"type": "IntegerProgram", "A": [], "b": [], "bounds": [[0] * 51, 1]}),
    "edges": ("edges", {"type": "SpanningTree", "edges": ARCS}),
    "pairs": ("edges", {"type": "Matching", "edges": ARCS}),
    "arcs": ("arcs", {"type": "Network", "arcs": ARCS, "supplies": {}}),
    "steps": ("arcs", {"type": "Path", "arcs": ARCS, "source": "a", "target": "b"}),
    "columns of a model": ("columns", model(columns=1_001)),
    "rows of a model": ("rows", model(rows=501)),
    "nonzeros": ("matrix", model(rows=11, nonzeros=10_001)),
    "arms of a model": ("arms", model(arms=51)),
    "n of a model": ("n", model() | {"n": [1]}),
    "a small coefficient": ("matrix.value", model(value=1e-10)),
    "a large coefficient": ("matrix.value", model(value=-1.1e9)),
    "a large cost": ("columns.cost", model(cost=2e9)),
    "a tuple": ("caps", {"type": "Budget", "total": 1, "caps": {"type": "tuple", "items": ARCS}}),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_what_is_too_large_is_not_even_made(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    argument, given = TOO_LARGE[case]

    kind: Any = SETS[given["type"]]

    @wraps(kind.__init__)
    def never(*arguments: Any, **named: Any) -> None:
        raise AssertionError("it was made")

    monkeypatch.setattr(kind, "__init__", never)
    with refused(f"actions.{argument}"):
        build_actions("actions", given, LIMITS)


TOO_MANY: dict[str, tuple[str, dict[str, Any]]] = {
    "total": ("units", {"type": "Budget", "total": HUGE, "caps": [HUGE, 1]}),
    "supply": ("units", {"type": "Transport", "supply": [HUGE], "demand": [HUGE]}),
    "supplies": ("units", {"type": "Transport", "supply": [60_000] * 2, "demand": [60_000] * 2}),
    "travellers": (
        "units",
        {"type": "Path", "arcs": [[1, 2]], "source": 1, "target": 2, "units": HUGE},
    ),
    "plans": ("units", {"type": "Explicit", "actions": [[2**53] * 2000]}),
    "bounds": ("units", {"type": "IntegerProgram", "A": [[1]], "b": [HUGE]}),
    "weights": ("units", {"type": "Knapsack", "weights": [1], "capacity": 100_001}),
    "digits": ("capacity", {"type": "Knapsack", "weights": [0.1234567, 1], "capacity": 1.5}),
    "long names": ("names", {"type": "Budget", "total": 1, "caps": [1], "names": ["a" * 201]}),
    "lines": ("names", {"type": "Budget", "total": 1, "caps": [1], "names": ["a\nb"]}),
    "long names of arcs": (
        "names",
        {"type": "SpanningTree", "edges": [["a" * 150, "b" * 150]]},
    ),
    "sums": ("supplies", {"type": "Network", "arcs": [[1, 2]], "supplies": {"1": 3}}),
}


@pytest.mark.parametrize("case", TOO_MANY)
def test_what_is_too_much(case: str) -> None:
    argument, given = TOO_MANY[case]
    with refused(f"actions.{argument}"):
        build_actions("actions", given, LIMITS)


def test_hints_name_the_option_of_the_service() -> None:
    with pytest.raises(InvalidInput, match=r"at most 2000 arms, got 20000\. .*--max-arms"):
        build_actions("actions", TOO_LARGE["caps"][1], LIMITS)
    wider = ServiceLimits(arms=MANY)
    assert build_actions("actions", TOO_LARGE["caps"][1], wider).d == MANY


def test_a_program_that_takes_hours_is_given_up() -> None:
    """Market split instances, on which branch and bound enumerates."""
    rng = np.random.default_rng(0)
    A = rng.integers(0, 100, (4, 30))
    b = A @ rng.integers(0, 2, 30)
    rows = {"A": [*A.tolist(), *(-A).tolist()], "b": [*b.tolist(), *(-b).tolist()]}
    with refused("actions.A, b, bounds"):
        build_actions("actions", {"type": "IntegerProgram", **rows, "bounds": [0, 1]}, QUICK)


def test_the_largest_model_is_made_and_a_hopeless_one_is_given_up() -> None:
    assert build_actions("actions", model(), LIMITS).d == 50
    rng = np.random.default_rng(0)  # market split, as above
    A = rng.integers(1, 100, (4, 30))
    right = (A @ rng.integers(0, 2, 30)).tolist()
    row, column = (one.ravel().tolist() for one in np.indices(A.shape))
    given = model(columns=30, rows=4, nonzeros=0, arms=30) | {
        "rows": {"lower": right, "upper": right},
        "matrix": {"row": row, "column": column, "value": A.ravel().tolist()},
    }
    with refused("actions.model"):
        build_actions("actions", given, QUICK)


def test_a_set_that_takes_too_long_is_refused() -> None:
    program = mp.IntegerProgram.example()
    with refused("actions"), in_time("actions", ServiceLimits(seconds=1e-9)):
        mp.Learner(program, mp.GenLBINFV())
    with in_time("actions", LIMITS):
        mp.Learner(mp.IntegerProgram.example(), mp.GenLBINFV()).ask()


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "Budget",
        {},
        {"total": 1, "caps": [1]},
        {"type": "subprocess.Popen", "args": "ls"},
        {"type": "multiplay.Budget", "total": 1, "caps": [1]},
        {"type": "OracleSet", "d": 1},
        {"type": "Limited"},
        {"type": "GenCTS"},
        {"type": "tuple", "items": [1]},
        {"type": ["Budget"]},
        {"type": "Budget", "total": 1, "caps": [1], "more": 1},
        {"type": "Budget", "total": 1},
        {"type": "Budget", "total": {"type": "Budget", "total": 1, "caps": [1]}, "caps": [1]},
        {"type": "Budget", "total": 1, "caps": {"type": "tuple", "items": 5}},
        {"type": "Budget", "total": 1, "caps": {"type": "tuple"}},
        {"type": "Budget", "total": 1, "caps": {"type": "mapping", "keys": [[]], "values": [1]}},
        {"type": "Budget", "total": 1, "caps": {"type": "mapping", "keys": [1], "values": []}},
        {"type": "Budget", "total": 1, "caps": {"type": "mapping", "keys": [1, 1], "values": [1]}},
        {"type": "Budget", "total": 1, "caps": {"type": "array", "name": "0"}},
    ],
    ids=lambda given: repr(given)[:60],
)
def test_nothing_else_is_built(given: Any) -> None:
    with refused("actions"):
        build_actions("actions", given, LIMITS)


def test_errors_do_not_repeat_what_was_sent() -> None:
    for sent in (
        {"type": "a" * 10**5},
        {"type": "Budget", "a" * 10**5: 1},
        {"type": "Budget", "total": "a" * 10**5, "caps": [1]},
        {"type": "Explicit", "actions": [[1, "a"] * 900] * 50},
        {"type": "Matching", "edges": [[[1] * 10**5]]},
        [1] * 10**5,
    ):
        with pytest.raises(InvalidInput) as caught:
            build_actions("actions", sent, LIMITS)
        assert len(str(caught.value)) < 1500


# ---------------------------------------------------------------- policies


@pytest.mark.parametrize("kind", POLICIES.values(), ids=lambda kind: kind.__name__)
def test_policies_are_built(kind: type[Policy]) -> None:
    one = kind.example()
    assert build_policy("policy", plain(one), LIMITS) == one


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("policy", []),
        ("policy.type", {"type": "Play"}),
        ("policy.type", {"type": "Budget", "total": 1, "caps": [1]}),
        ("policy.limit", {"type": "ESCB", "limit": HUGE}),
        ("policy.limit", {"type": "BestOfThreeWorlds", "horizon": 100, "limit": 501}),
        ("policy.cap", {"type": "FPLIX", "cap": HUGE}),
        ("policy.policy.cap", {"type": "Duplicated", "policy": {"type": "FPLIX", "cap": HUGE}}),
        ("policy.policy", {"type": "Duplicated", "policy": None}),
        ("policy.window", {"type": "GenCTS", "window": HUGE}),
        ("policy.eta", {"type": "FPLIX", "eta": 1e300}),
        ("policy.v0", {"type": "GenAdaINF", "v0": 5e-324}),
    ],
)
def test_policies_that_are_not_built(argument: str, given: Any) -> None:
    with refused(argument):
        build_policy("policy", given, LIMITS)


def subsets(d: int) -> mp.Model:
    """Return the model of all 2^d vectors of 0 and 1."""
    columns = {"lower": [0] * d, "upper": [1] * d, "integer": [True] * d}
    nothing: dict[str, Any] = {"row": [], "column": [], "value": []}
    return mp.Model(columns, {"lower": [], "upper": []}, nothing, [*range(d)])


EDGES = [(a, b) for a in range(25) for b in range(a)]
FITS: list[tuple[actions.ActionSet, Policy, str]] = [
    (mp.Budget(5, [1] * 2000), mp.GenCTS(), ""),
    (mp.Budget(5, [1] * 2000), mp.GenLBINFV(), ""),
    (mp.Budget(5, [1] * 2000), mp.GenCTS(window=501), "policy.window"),
    (mp.Budget(5, [1] * 2000), mp.GenCTS(window=500), ""),
    (mp.Budget(2, [1] * 50), mp.ESCB(), ""),
    (mp.Budget(2, [1] * 51), mp.ESCB(), "policy"),
    (mp.Budget(3, [1] * 50), mp.ESCB(), "policy"),
    (mp.Budget(1, [1] * 50), mp.policies.BestOfThreeWorlds(horizon=100), ""),
    (mp.Budget(2, [1] * 20), mp.policies.BestOfThreeWorlds(horizon=100), "policy"),
    (mp.Budget(20, [20] * 100), mp.Duplicated(mp.GenCTS()), ""),
    (mp.Budget(21, [21] * 100), mp.Duplicated(mp.GenCTS()), "policy"),
    (mp.Transport([40] * 5, [20] * 10), mp.Duplicated(mp.GenCTS()), ""),
    (mp.Transport([41] * 5, [20] * 9 + [25]), mp.Duplicated(mp.GenCTS()), "policy"),
    (mp.Budget(2, [2] * 25), mp.Duplicated(mp.ESCB()), ""),
    (mp.Budget(2, [2] * 26), mp.Duplicated(mp.ESCB()), "policy"),
    (mp.IntegerProgram([[1] * 5], [40], (0, 10)), mp.Duplicated(mp.GenCTS()), ""),
    (mp.IntegerProgram([[1] * 6], [40], (0, 10)), mp.Duplicated(mp.GenCTS()), "policy"),
    (mp.SpanningTree(EDGES), mp.GenCTS(), ""),
    (mp.SpanningTree(EDGES[:200]), mp.GenLBINFV(), ""),
    (mp.SpanningTree(EDGES[:201]), mp.GenLBINFV(), "policy"),
    (mp.Budget(2, [1] * 400), mp.LinTS(), ""),
    (mp.Budget(2, [1] * 401), mp.LinTS(), "policy"),
    (mp.Knapsack([1] * 20, 3), mp.GenAdaINF(), ""),
    (mp.Knapsack([1] * 21, 3), mp.GenAdaINF(), "policy"),
    (mp.Knapsack([1] * 21, 3), mp.Duplicated(mp.FPLIX()), "policy"),
    (facility([1.0] * 20), mp.GenLBINFV(), ""),
    (facility([1.0] * 21), mp.GenLBINFV(), "policy"),
    (facility([1.0] * 21), mp.GenCTS(), ""),
    (facility([0.0] * 2), mp.GenAdaINF(), "policy"),
    (facility([0.0] * 2), mp.FPLIX(), "policy"),
    (facility([0.0] * 2), mp.Duplicated(mp.FPLIX()), "policy"),
    (subsets(6), mp.ESCB(), ""),
    (subsets(7), mp.ESCB(), "policy"),
]


@pytest.mark.parametrize(("one", "policy", "argument"), FITS, ids=lambda x: repr(x)[:25])
def test_what_a_policy_may_cost_on_a_set(
    one: actions.ActionSet, policy: Policy, argument: str
) -> None:
    if not argument:
        check_together(one, policy, LIMITS)
        return
    with refused(argument):
        check_together(one, policy, LIMITS)


def test_a_study_does_not_grow_for_ever() -> None:
    today = mp.Budget(2, [1] * 10, names=[f"new {i}" for i in range(10)])
    check_known({*map(str, range(1989)), "new 0"}, today, LIMITS)
    with refused("actions"):
        check_known({*map(str, range(1991))}, today, LIMITS)
    check_history(rounds=5_000, arms=2_000)
    with refused("table"):
        check_history(rounds=5_001, arms=2_000)


# ---------------------------------------------------------------- misspelt fields


@pytest.mark.parametrize(
    ("path", "sent", "hint"),
    [
        ("/v1/studies/lanes/ask", {"atmost": {"Lyon->north": 1}}, "Did you mean 'at_most'?"),
        ("/v1/studies/lanes/plays/1/tell", {"loses": {}, "losses": {}}, "Did you mean 'losses'?"),
        ("/v1/studies/lanes/ask", {"xyzzy": 1}, "Remove it."),
    ],
)
def test_a_misspelt_field_gets_a_suggestion(
    path: str, sent: dict[str, Any], hint: str, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'plans.db'}"
    new_study(store_at(store)).ask()
    with client_of(create_app(Settings(store, open=True))) as client:
        answer = client.post(path, json=sent)
    assert answer.status_code == 400
    assert answer.json()["argument"] == next(iter(sent))
    assert answer.json()["hint"] == hint


def test_a_misspelt_setting_gets_a_suggestion() -> None:
    sent = {"type": "Budget", "totl": 1, "caps": [1]}
    with pytest.raises(InvalidInput, match=r"actions\.totl: .* Did you mean 'total'\?"):
        build_actions("actions", sent, LIMITS)
    with pytest.raises(InvalidInput, match=r"policy\.type: .* Did you mean 'GenCTS'\?"):
        build_policy("policy", {"type": "GenCT"}, LIMITS)


# ---------------------------------------------------------------- nonsense

NUMBERS = st.one_of(
    st.integers(-3, 9),
    st.sampled_from([10**9, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    st.floats(-2, 9, width=16),
    st.floats(allow_nan=False, allow_infinity=False),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.sampled_from(["", "min", "max", "s", "Ann", "arm 1", "7", "nan", "\U0001f600", "x" * 300]),
    st.text(max_size=3),
)


def _within(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=4)
    tuples = st.fixed_dictionaries({"type": st.just("tuple"), "items": inner})
    tables = {"type": st.just("mapping"), "keys": inner | lists, "values": inner | lists}
    keys = st.sampled_from(["a", "type", "s", "", "arm 1"])
    return st.one_of(
        lists, tuples, st.fixed_dictionaries(tables), st.dictionaries(keys, inner, max_size=3)
    )


NONSENSE: st.SearchStrategy[Any] = st.recursive(LEAVES, _within, max_leaves=8)


def _places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value within plain data, except types."""
    inside = value.items() if isinstance(value, dict) else ()
    for key, below in enumerate(value) if isinstance(value, list) else inside:
        if key != "type":
            yield (*here, key)
            yield from _places(below, (*here, key))


CHANGES = ["number", "number", "nonsense", "nonsense", "gone", "twice"]


@st.composite
def nearly(draw: st.DrawFn, examples: list[Any]) -> Any:
    """Draw an example with parts that are replaced, repeated or removed."""
    given = copy.deepcopy(draw(st.sampled_from(examples)))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(given))
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        inside = given
        for key in way:
            inside = inside[key]
        change = draw(
            st.sampled_from(["number", "number", "nonsense", "nonsense", "gone", "twice"])
        )
        if change == "gone":
            del inside[last]
        elif change == "twice" and isinstance(inside, list):
            inside.append(copy.deepcopy(inside[last]))
        else:
            inside[last] = draw(NUMBERS if change == "number" else NONSENSE)
    return given


def refused_or(verb: Any, *arguments: Any, **named: Any) -> Any:
    """Return the result of a call, or None if it raises ``InvalidInput``; let other errors pass."""
    try:
        return verb(*arguments, **named)
    except InvalidInput:
        return None


def play(one: actions.ActionSet, policy: Policy) -> None:
    """Ask and tell."""
    check_together(one, policy, QUICK)
    learner = mp.Learner(one, policy)
    for _ in range(2):
        asked = learner.ask(time_limit=QUICK.seconds)
        learner.tell(asked.id, [[0.5] * units for units in asked.action.tolist()])
    learner.best()


@pytest.mark.parametrize("kind", SETS)
def test_nonsense_for_sets(kind: str) -> None:
    examples = [plain(one) for one in EXAMPLES if type(one).__name__ == kind]
    examples += [written(one) for one in EXAMPLES if type(one).__name__ == kind]

    @FUZZ
    @given(nearly(examples), st.sampled_from([mp.GenCTS(), mp.GenLBINFV(), mp.ESCB()]))
    def check(given: Any, policy: Policy) -> None:
        body = json.dumps(given).encode()
        one = refused_or(build_actions, "actions", strict_json(body, QUICK), QUICK)
        if one is not None:
            assert one.d <= QUICK.arms
            assert 0 <= one.M <= QUICK.units
            refused_or(play, one, policy)

    check()


@st.composite
def nearly_policies(draw: st.DrawFn, deep: int = 0) -> Any:
    """Draw a policy with some settings, many of which are invalid."""
    name = draw(st.sampled_from(sorted(POLICIES)))
    usual = st.sampled_from([0.1, 0.5, 1, 2, 100, 10**6, 1e-6, "gd", "units", "rounded", True])
    given: dict[str, Any] = {"type": name}
    for setting in inspect.signature(POLICIES[name]).parameters:
        if setting == "policy":
            given[setting] = draw(nearly_policies(deep + 1) if deep < 3 else NONSENSE)
        elif draw(st.integers(0, 2)) == 0:
            given[setting] = draw(usual | NONSENSE)
    return given


COMPILED = (mp.GenCTS, mp.GenLBINFV, mp.CombUCB, mp.GaussianCTS, mp.ESCB, mp.FPLIX, mp.LinTS)


@LONGER
@given(nearly_policies() | NONSENSE)
def test_nonsense_for_policies(given: Any) -> None:
    policy = refused_or(build_policy, "policy", given, QUICK)
    if isinstance(policy, COMPILED):  # others are compiled for a minute
        refused_or(play, mp.Transport([1, 4, 5], [4, 6]), policy)


LEVELS: st.SearchStrategy[Any] = st.just(0.9) | NONSENSE
LEARNERS: dict[str, Any] = {
    "Transport": lambda: mp.Learner(mp.Transport([1, 4], [2, 3]), mp.GenCTS(), loss_range=(0, 250)),
    "Knapsack": lambda: mp.Learner(
        mp.Knapsack([3, 4, 5], 10), mp.GenLBINFV(), reports=mp.Reports(missing="ignore")
    ),
    "Budget": lambda: mp.Learner(
        mp.Budget(5, [4, 4, 2]), mp.GenCTS(), reports=mp.Reports(outside="clip")
    ),
    "a short day": lambda: mp.Learner(mp.Transport([1, 2], [3, 2], shortage=5.0), mp.GenCTS()),
    "the round": lambda: mp.Learner(mp.Budget(5, [4, 4, 2]), mp.LinTS()),
}


@st.composite
def by_arm(draw: st.DrawFn, names: tuple[str, ...], values: st.SearchStrategy[Any]) -> Any:
    """Draw values for some arms, or arbitrary data."""
    arms = st.sampled_from([*names, "nobody", ""])
    return draw(st.dictionaries(arms, values, max_size=3) | st.lists(values, max_size=6) | NONSENSE)


@st.composite
def verbs(draw: st.DrawFn, learner: mp.Learner) -> Any:
    """Draw an operation on a learner, and return a function that performs it."""
    names, pending = learner.actions.names, [one.id for one in learner.pending()]
    units, losses = by_arm(names, st.integers(0, 5) | NONSENSE), by_arm(names, _losses())
    limits: dict[str, Any] = {
        "at_most": draw(st.none() | units),
        "exclude": draw(st.just(()) | st.lists(st.sampled_from(names), max_size=2) | NONSENSE),
        "fixed": draw(st.none() | units),
    }
    ids: st.SearchStrategy[Any] = st.sampled_from(pending) | NONSENSE if pending else NONSENSE
    verb = draw(st.sampled_from(["ask", "tell", "learn", "expect", "best", "learn_table", "end"]))
    if verb == "ask":
        when: dict[str, Any] = {"at": draw(st.none() | NONSENSE), "key": draw(st.none() | NONSENSE)}
        return lambda: learner.ask(**limits, **when, time_limit=QUICK.seconds)
    if verb == "best":
        return lambda: learner.best(**limits).expected
    if verb == "tell":
        how: dict[str, Any] = {"final": draw(st.booleans() | NONSENSE)}
        how |= {"missing": draw(st.none() | NONSENSE)}
        id, told = draw(ids), draw(losses)
        return lambda: learner.tell(id, told, **how)
    if verb == "learn":
        plan, lost = draw(units), draw(losses)
        return lambda: learner.learn(plan, lost)
    if verb == "expect":
        mine, level = draw(units), draw(LEVELS)
        return lambda: learner.expect(mine, level=level)
    if verb == "learn_table":
        cells = {"arm": st.sampled_from(names) | NONSENSE, "round": LEAVES, "loss": _losses()}
        rows = st.lists(st.fixed_dictionaries(cells), max_size=4)
        columns = st.fixed_dictionaries({name: st.lists(of) for name, of in cells.items()})
        table = draw((rows | columns | NONSENSE).filter(lambda given: not isinstance(given, str)))
        return lambda: learner.learn_table(table)
    ends: list[Any] = [learner.close, learner.cancel, learner.expire]
    end, last = draw(st.sampled_from(ends)), draw(ids)
    return lambda: end(last)


def _losses() -> st.SearchStrategy[Any]:
    one = st.floats(0, 1) | st.none() | NUMBERS
    return one | st.lists(one, max_size=5) | NONSENSE


@pytest.mark.parametrize("name", LEARNERS)
def test_nonsense_for_learners(name: str) -> None:
    @FUZZ
    @given(st.data())
    def check(data: st.DataObject) -> None:
        learner: mp.Learner = LEARNERS[name]()
        learner.ask()
        for _ in range(4):
            refused_or(data.draw(verbs(learner)))
        refused_or(learner.best)
        for array in learner.state.values():
            assert np.isfinite(array).all()

    check()


@LONGER
@given(st.sampled_from([mp.GenCTS(), mp.GenLBINFV()]), st.data())
def test_nonsense_for_a_new_learner(policy: Policy, data: st.DataObject) -> None:
    pair = st.lists(NUMBERS, min_size=2, max_size=2)
    ranges = st.none() | pair | by_arm(("arm 1", "*"), pair) | NONSENSE
    named = {"loss_range": data.draw(ranges), "seed": data.draw(st.integers(0, 3) | NONSENSE)}
    for name in ("reports", "words", "varying_set"):
        if data.draw(st.integers(0, 3)) == 0:
            named[name] = data.draw(NONSENSE)
    learner = refused_or(mp.Learner, mp.Budget(5, [4, 4, 2]), policy, **named)
    if learner is not None:
        asked, ends = learner.ask(), learner.policy_state.ranges.of(learner.actions.names)
        learner.tell(asked.id, [[low] * k for low, k in zip(ends.low, asked.action, strict=True)])
        assert np.isfinite(learner.best().expected).all()
