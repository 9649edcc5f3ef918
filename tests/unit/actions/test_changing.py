"""Sets that change from round to round, and regret against the best action of each round."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusal import refused

import multiplay as mp
from multiplay import policies, theory
from multiplay.actions import ActionSet
from multiplay.cli.run import run
from multiplay.environments import Environment
from multiplay.experiments import read
from multiplay.experiments.experiment import build, experiment_file
from multiplay.policies import Policy
from multiplay.random import POLICY, Streams
from multiplay.reports.tables import conclusion, configuration_table, suboptimal_plays_table
from multiplay.results.result import regret_table
from multiplay.simulation.measurements import BestOfEachRound
from multiplay.simulation.store import Checkpoints
from multiplay.storage import MemoryStorage
from multiplay.types import FloatArray, IntArray

WEEK = [
    mp.Transport([1, 4, 5], [4, 6]),
    mp.Transport([5, 0, 5], [6, 4]),  # the second supplier is closed
    mp.Transport([2, 2, 2], [6, 0]),  # and here a demander
    mp.Transport([3, 3, 3], [2, 4], slack=True),
    mp.Transport([2, 3, 4], [5, 4], capacities=[[2, 2], [0, 3], [4, 4]]),
]
KNOWN = np.array([0.0, -0.3, 0.1, 0.0, -0.5, 0.2])
MEANS = np.array([0.21, 0.43, 0.32, 0.55, 0.64, 0.17])


def by_weather(t: int) -> mp.Transport:
    """Return another set in every round."""
    rng = np.random.default_rng([3, t])
    supply = rng.integers([1, 0, 0], 6)
    some = rng.integers(0, supply.sum() + 1)
    return mp.Transport(supply, [some, supply.sum() - some])


def copycat(t: int, past: IntArray) -> FloatArray:
    """What was played more often costs more."""
    losses: FloatArray = (1 + past.sum(axis=0)) / (1 + 6 * t) * MEANS
    return losses


SETS: dict[str, ActionSet] = {
    "list": mp.TimeVarying(WEEK),
    "function": mp.TimeVarying(by_weather),
    "one set": WEEK[0],
    "known costs": WEEK[0].shifted(KNOWN),
}
ENVIRONMENTS: dict[str, Environment] = {
    "stochastic": mp.Stochastic(mp.Bernoulli(MEANS)),
    "trials differ": mp.Stochastic(mp.Bernoulli(np.stack([MEANS, MEANS[::-1]]))),
    "jumps": mp.Alternating(MEANS, shift=[0.2, -0.2, 0.1, -0.1, 0.3, -0.1], first=3),
    "waves": mp.Adversarial(mp.Sinusoids(0.5, 0.4, period=[7, 9, 11, 13, 17, 19])),
    "walks": mp.Adversarial(mp.RandomWalk(0.07, start=MEANS)),
    "adaptive": mp.Adversarial(copycat),
}


def twin(
    actions: ActionSet, environment: Environment, policy: Policy, T: int, trial: int, seed: int
) -> dict[str, Any]:
    """Play one trial by hand; the best action of a round is found among all of its actions."""
    whole, rng = actions.over(T), Streams.spawn(seed, POLICY, [trial])
    world, today = environment.open(whole, T, [trial], seed), whole.at(1)
    state = policy.start(today, T, 1)
    regret, realised, total, paid = [], [], 0.0, 0.0
    excess, switches, last = np.zeros(whole.d), 0, None
    for t in range(1, T + 1):
        if t > 1 and whole.at(t) is not today:
            for name in policy.warm(today):
                state.pop(name, None)
            today = whole.at(t)
        play = policy.choose(today, state, rng)
        assert today.contains(play.action).all()
        feedback, means, averages = world.observe(play.action)
        policy.update(today, state, play, feedback, rng)
        a, known = play.action[0].copy(), 0.0 if today.offset is None else today.offset
        means, averages = means + known, averages + known
        everything = today.enumerate()
        costs = [sum(row[i] * means[0, i] for i in range(whole.d)) for row in everything]
        best = everything[int(np.argmin(today.sign * np.array(costs)))]
        total += today.sign * sum((a - best) * means[0])
        paid += today.sign * (sum(feedback.total[0] + a * known) - sum(best * averages[0]))
        excess += np.maximum(a - best, 0)
        switches += last is not None and (a != last).any()
        last = a
        regret.append(total)
        realised.append(paid)
    return {"regret": regret, "realised": realised, "excess": excess, "switches": switches}


@pytest.mark.parametrize("world", ENVIRONMENTS)
@pytest.mark.parametrize("kind", SETS)
def test_regret_against_each_round_equals_a_slow_twin(kind: str, world: str) -> None:
    T, trials, seed = 25, 2, 5
    players = {"GenCTS": mp.GenCTS(), "CombUCB": mp.CombUCB(), "Hybrid": mp.Hybrid()}
    result = mp.simulate(
        SETS[kind], ENVIRONMENTS[world], players, T, trials, seed, record=T, against="each round"
    )
    assert result.against == "each round"
    if world == "adaptive":
        trials = 1  # the others are asked about together
    for name, policy in players.items():
        for trial in range(trials):
            slow = twin(SETS[kind], ENVIRONMENTS[world], policy, T, trial, seed)
            found = result.dataset.sel(policy=name, trial=trial)
            for quantity, values in slow.items():
                assert np.allclose(found[quantity], values, atol=1e-9), (name, quantity)
            assert (np.diff(found["regret"], prepend=0) > -1e-9).all()
    assert ("L_star" in result.dataset) == (kind in ("one set", "known costs"))


def test_known_costs_count_against_a_fixed_action() -> None:
    """The best fixed action is worse than the best ones of the rounds by what is not regret."""
    plans, world, T = SETS["known costs"], ENVIRONMENTS["waves"], 20
    result = mp.simulate(plans, world, {"A": mp.GenCTS()}, T, 1, record=T)
    means = np.array([seen.means[0] for seen in observed(world, plans, T)])
    values = plans.enumerate() @ (means + KNOWN).T
    less = values.sum(axis=1).min() - values.min(axis=0).sum()
    slow = twin(plans, world, mp.GenCTS(), T, 0, 0)
    assert result.regret.values[0, 0, -1] == pytest.approx(slow["regret"][-1] - less)


def test_known_costs_count_against_an_action_that_is_found_at_the_end() -> None:
    plans, T, past = SETS["known costs"], 20, np.empty((0, 1, 6), dtype=np.int64)

    def kept(t: int, played: IntArray) -> FloatArray:
        nonlocal past
        past = played.copy()
        return copycat(t, played)

    result = mp.simulate(plans, mp.Adversarial(kept), {"A": mp.GenCTS()}, T, 1, record=T)
    means = np.array([copycat(t, past[: t - 1])[0] for t in range(1, T + 1)])
    everything = plans.enumerate()
    best = everything[(everything @ (means + KNOWN).sum(axis=0)).argmin()]
    regret = ((past[:, 0] - best) * (means + KNOWN)[:-1]).sum()  # nobody saw what was played last
    assert result.regret.values[0, 0, -2] == pytest.approx(regret)


def observed(environment: Environment, actions: ActionSet, T: int) -> Iterator[mp.Observation]:
    """Look at the rounds of one trial."""
    world = environment.open(actions, T, [0], 0)
    for _ in range(T):
        yield world.observe(np.zeros((1, actions.d), dtype=np.int64))


def test_rewards() -> None:
    week = mp.TimeVarying(
        [mp.Budget(3, [2, 2, 2], sense="max"), mp.Budget(2, [2, 0, 1], sense="max")]
    )
    world = mp.Adversarial(np.random.default_rng(0).random((20, 3)))
    result = mp.simulate(week, world, {"A": mp.GenLBINFV(any_horizon=True)}, 20, 1, record=20)
    slow = twin(week, world, mp.GenLBINFV(any_horizon=True), 20, 0, 0)
    assert np.allclose(result.regret.values[0, 0], slow["regret"])
    assert (np.diff(slow["regret"], prepend=0) > -1e-9).all()
    assert result.label == "reward lost against the best action of each round"


# ---------------------------------------------------------------- fixed sets


@pytest.mark.parametrize(
    "policy", [mp.GenCTS(), mp.GenLBINFV(any_horizon=True), mp.Hybrid(), mp.GenAdaINF(), mp.ESCB()]
)
def test_one_set_again_and_again_is_that_set(policy: Policy) -> None:
    plans = mp.Transport([1, 4, 5], [4, 6])
    many = mp.TimeVarying([plans, plans]), mp.TimeVarying(lambda t: plans)
    world = mp.Adversarial(mp.RandomWalk(0.1))
    fixed = mp.simulate(plans, world, {"A": policy}, 40, 3, against="each round").dataset
    for changing in many:
        found = mp.simulate(changing, world, {"A": policy}, 40, 3).dataset
        for name in ("regret", "realised", "excess", "switches", "Q2", "V1", "V1_played"):
            assert (found[name].values == fixed[name].values).all(), name


class Always(mp.GenCTS):
    """Plays the first arm."""

    def choose(self, actions: ActionSet, state: Any, rng: Any) -> mp.Play:
        return mp.Play(np.tile([1, 0], (len(state["p"]), 1)))


def test_a_known_best_action_of_each_round() -> None:
    """Means 0.75 and 0.25 in odd phases and the other way round in even ones, 4 rounds each."""
    world = mp.Alternating([0.5, 0.5], shift=[0.25, -0.25], first=4, growth=1)
    arms, T = mp.Budget(1, [1, 1]), 12
    dynamic = mp.simulate(arms, world, {"A": Always()}, T, 2, record=T, against="each round")
    fixed = mp.simulate(arms, world, {"A": Always()}, T, 2, record=T, against="fixed")
    expected = np.cumsum([0.5] * 4 + [0.0] * 4 + [0.5] * 4)
    assert np.allclose(dynamic.regret.values, expected)
    assert np.allclose(fixed.regret.values, np.cumsum([0.5] * 4 + [-0.5] * 4 + [0.5] * 4))
    assert dynamic.dataset["excess"].values[0, 0].tolist() == [8, 0]
    usual = mp.simulate(arms, world, {"A": Always()}, T, 2, record=T)
    assert usual.regret.identical(fixed.regret)
    assert "against" not in usual.configuration
    assert dynamic.configuration["against"] == "each round"


def test_objectives_that_are_not_linear() -> None:
    shots, T = mp.Coverage.example(), 15
    world = mp.Alternating(np.full(shots.d, 0.5), shift=np.linspace(-0.4, 0.4, shots.d), first=2)
    with refused("environment"):
        mp.simulate(shots, world, {"A": mp.GenCTS()}, T, 2)
    result = mp.simulate(shots, world, {"A": mp.GenCTS()}, T, 2, record=T, against="each round")
    for trial in range(2):
        rng, policy = Streams.spawn(0, POLICY, [trial]), mp.GenCTS()
        open_world, state = world.open(shots, T, [trial], 0), policy.start(shots, T, 1)
        lost, everything = 0.0, shots.enumerate()
        for t in range(T):
            play = policy.choose(shots, state, rng)
            feedback, means, _ = open_world.observe(play.action)
            policy.update(shots, state, play, feedback, rng)
            lost += max(shots.value(everything, means[0])) - shots.value(play.action, means)[0]
            assert result.regret.values[0, trial, t] == pytest.approx(lost)
    mixed = mp.TimeVarying([shots, mp.Budget(3, [2] * shots.d, names=shots.names, sense="max")])
    assert not mixed.linear
    assert "realised" not in mp.simulate(mixed, world, {"A": mp.GenCTS()}, T, 2).dataset
    with refused("actions"):
        mp.simulate(mixed, world, {"A": mp.Hybrid()}, T, 2)


# ---------------------------------------------------------------- how it is run


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["list", "function"])
def test_any_number_of_jobs_and_blocks(kind: str) -> None:
    players = {"GenCTS": mp.GenCTS(), "GenLBINFV": mp.GenLBINFV()}
    world = ENVIRONMENTS["walks"]
    runs: list[dict[str, Any]] = [{"block": 5}, {"block": 1}, {"block": 2}]
    runs += [{"jobs": 2}] if kind == "function" else []
    first, *others = [
        mp.simulate(SETS[kind], world, players, 60, 5, **how).dataset.drop_vars("seconds")
        for how in runs
    ]
    for other in others:
        assert first.identical(other.assign_attrs(first.attrs))


def test_a_run_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    def played(**how: Any) -> mp.Result:
        players = {"A": mp.GenCTS(), "B": mp.Hybrid()}
        return mp.simulate(SETS["function"], ENVIRONMENTS["jumps"], players, 30, 4, **how)

    undisturbed, storage, keep = played(), MemoryStorage(), Checkpoints.keep
    kept: list[range] = []

    def dies(self: Checkpoints, policy: int, trials: range, measured: Any) -> None:
        if len(kept) == 3:
            raise KeyboardInterrupt
        kept.append(trials)
        keep(self, policy, trials, measured)

    monkeypatch.setattr(Checkpoints, "keep", dies)
    with pytest.raises(KeyboardInterrupt):
        played(store=storage, block=1)
    monkeypatch.setattr(Checkpoints, "keep", keep)
    resumed = played(store=storage, block=1, resume=True)
    assert (resumed.regret.values == undisturbed.regret.values).all()
    with refused("store"):
        mp.simulate(
            *(WEEK[0], ENVIRONMENTS["jumps"], {"A": mp.GenCTS(), "B": mp.Hybrid()}, 30, 4),
            store=storage,
            resume=True,
            against="each round",
        )


def exported() -> list[type[Policy]]:
    kinds = [getattr(policies, name) for name in dir(policies)]
    kinds = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Policy)]
    return [kind for kind in kinds if not getattr(kind, "__abstractmethods__", None)]


@pytest.mark.parametrize("kind", exported())
def test_every_policy_plays_the_set_of_the_round_or_is_refused(kind: type[Policy]) -> None:
    policy, week = kind.example(), SETS["list"]
    played: list[IntArray] = []

    def losses(t: int, past: IntArray) -> FloatArray:
        played[:] = [past.copy()]
        return np.broadcast_to(MEANS, (past.shape[1], 6))

    T = 60
    if not policy.changing:
        with refused("policy"):
            mp.simulate(week, mp.Adversarial(losses), {"A": policy}, T, 2)
        assert not played
        return
    mp.simulate(week, mp.Adversarial(losses), {"A": policy}, T, 2, record=T)
    assert played[0].shape == (T - 1, 2, 6)
    for t, action in enumerate(played[0], start=1):
        assert week.at(t).contains(action).all()


@pytest.mark.parametrize("recorded", [1, 10])
def test_actions_are_checked_against_the_set_of_the_round(recorded: int) -> None:
    class Stubborn(mp.GenCTS):
        def choose(self, actions: ActionSet, state: Any, rng: Any) -> mp.Play:
            return mp.Play(np.tile([1, 0, 3, 1, 0, 5], (len(state["p"]), 1)))

    with pytest.raises(
        ArithmeticError, match=r"round 2 a vector that is not an action .*supply=.5"
    ):
        mp.simulate(SETS["list"], ENVIRONMENTS["waves"], {"A": Stubborn()}, 10, 2, record=recorded)


# ---------------------------------------------------------------- the set itself


def test_sets_in_turn() -> None:
    week = mp.TimeVarying(WEEK)
    assert [week.at(t) for t in range(1, 12)] == [*WEEK, *WEEK, WEEK[0]]
    assert (week.n == np.max([one.n for one in WEEK], axis=0)).all()
    assert (week.d, week.names, week.sense, week.linear) == (6, WEEK[0].names, "min", True)
    assert week.over(3) is week
    weather = mp.TimeVarying(by_weather)
    known = weather.over(9)
    assert (known.n == np.max([by_weather(t).n for t in range(1, 10)], axis=0)).all()
    assert known.over(9) is known
    assert (known.over(20).n >= known.n).all()
    assert WEEK[0].over(3) is WEEK[0].at(7) is WEEK[0]
    assert repr(week) == "TimeVarying(5 sets, 6 arms)"
    assert repr(weather) == "TimeVarying(a function of t, 6 arms)"
    with pytest.raises(ValueError, match="read-only"):
        known.n[0] = 1


MISUSES: dict[str, Callable[[ActionSet], Any]] = {
    "argmin": lambda week: week.argmin(MEANS),
    "best": lambda week: week.best(MEANS),
    "value": lambda week: week.value(np.zeros(6), MEANS),
    "contains": lambda week: week.contains(np.zeros(6)),
    "enumerate": lambda week: week.enumerate(),
    "all_actions": lambda week: week.all_actions(),
    "listed": lambda week: week.listed(),
    "hull": lambda week: week.hull,
    "m": lambda week: week.m,
    "M": lambda week: week.M,
    "spanning": lambda week: week.spanning,
    "duplicate": lambda week: week.duplicate(),
    "shifted": lambda week: week.shifted(MEANS),
    "lower_bound": lambda week: theory.lower_bound(week, MEANS, theory.Bernoulli()),
}


@pytest.mark.parametrize("use", MISUSES)
def test_what_only_one_set_has(use: str) -> None:
    with refused("actions"):
        MISUSES[use](SETS["list"])
    with pytest.raises(mp.InvalidInput, match=r"at\(t\)"):
        MISUSES[use](SETS["list"])


def test_a_learner_wants_the_set_of_the_day() -> None:
    for week in (SETS["list"], SETS["function"]):
        with pytest.raises(mp.InvalidInput, match=r"learner\.ask\(actions=today\)"):
            mp.Learner(week, mp.GenCTS())


def test_the_first_difference_is_named() -> None:
    two = mp.Budget(1, [1, 1])
    with pytest.raises(mp.InvalidInput, match="2 arms as in round 1, got 3 arms in round 3"):
        mp.TimeVarying([two, two, mp.Budget(1, [1, 1, 1])])
    with pytest.raises(mp.InvalidInput, match="arm 2 to be 'arm 2' as in round 1, got 'b' in rou"):
        mp.TimeVarying([two, mp.Budget(1, [1, 1], names=["arm 1", "b"])])
    with pytest.raises(mp.InvalidInput, match="the sense 'min' as in round 1, got 'max' in round"):
        mp.TimeVarying([two, mp.Budget(1, [1, 1], sense="max")])
    with pytest.raises(mp.InvalidInput, match="got 6 arms in round 4"):
        mp.TimeVarying(lambda t: WEEK[0] if t == 4 else two).over(10)
    no_sets: list[Any] = [
        [],
        3,
        two,
        mp.TimeVarying([two]),
        [two, 3],
        [mp.TimeVarying([two])],
        "ab",
    ]
    for nothing in [*no_sets, lambda t: t]:
        with refused("sets"):
            mp.TimeVarying(nothing)
    with refused("t"):
        SETS["list"].at(0)
    with pytest.raises(mp.InvalidInput, match=r"over\(horizon\)"):
        _ = SETS["function"].n


def test_refused_before_the_first_round() -> None:
    world, players = ENVIRONMENTS["stochastic"], {"A": mp.GenCTS()}
    with refused("against"):
        mp.simulate(SETS["list"], world, players, 10, 2, against="fixed")
    for wrong in ("each", 3):
        with refused("against"):
            mp.simulate(WEEK[0], world, players, 10, 2, against=wrong)  # type: ignore[arg-type]
    with refused("environment"):
        mp.simulate(SETS["list"], mp.Attacked.example(), players, 10, 2)
    with refused("jobs"):
        mp.simulate(mp.TimeVarying(lambda t: WEEK[0]), world, players, 10, 2, jobs=2)
    large = mp.Transport([30, 30, 30], [50, 40])
    with refused("actions"):
        mp.simulate(mp.TimeVarying([WEEK[0], large]), world, {"A": mp.ESCB(limit=500)}, 10, 2)


def test_a_function_that_changes_its_mind_is_refused() -> None:
    rng = np.random.default_rng(0)

    def sizes(t: int) -> mp.Budget:
        return mp.Budget(1000, rng.integers(500, 1000, 6))

    with pytest.raises(mp.InvalidInput, match="two different sets for round 1"):
        mp.simulate(mp.TimeVarying(sizes), ENVIRONMENTS["stochastic"], {"A": mp.GenCTS()}, 10, 2)


def test_the_best_action_is_asked_for_only_where_something_changed() -> None:
    class Counted(mp.Explicit):
        rows = 0

        def oracle(self, costs: FloatArray) -> IntArray:
            self.rows += len(costs)
            return super().oracle(costs)

    one, other = Counted([[1, 0], [0, 1]]), Counted([[2, 0], [0, 2]])
    alike, different = np.full((3, 2), 0.5), np.arange(6.0).reshape(3, 2)
    rival = BestOfEachRound(sets=2)
    for _ in range(4):
        for today in (one, other):
            assert rival.of(today, alike.copy()).shape == (3, 2)
    assert (one.rows, other.rows) == (1, 1)
    rival.of(one, different)
    rival.of(one, different.copy())
    assert (one.rows, other.rows) == (4, 1)
    forgetful = BestOfEachRound(sets=1)
    for today in (one, other, one):
        forgetful.of(today, alike)
    assert len(forgetful.found) == 1


# ---------------------------------------------------------------- files and reports


def plain(**more: Any) -> dict[str, Any]:
    days = [{"type": "Transport", "supply": s, "demand": [4, 6]} for s in ([1, 4, 5], [5, 0, 5])]
    return {
        "horizon": 20,
        "trials": 2,
        "actions": {"type": "TimeVarying", "sets": days},
        "environment": {"type": "Alternating", "means": MEANS.tolist(), "shift": 0.1},
        "policies": {"GenCTS": {"type": "GenCTS"}},
        **more,
    }


def test_words_say_what_regret_is_against(tmp_path: Path) -> None:
    result = build(plain(title="two days")).run()
    result.save(tmp_path / "result.nc")
    loaded = mp.load(tmp_path / "result.nc")
    label = "regret against the best action of each round"
    assert loaded.label == label
    assert "against" not in loaded.configuration
    assert label in repr(loaded)
    assert regret_table(loaded).title == f"Final {label}"
    assert label in conclusion(loaded)
    assert "the best action of each round" in suboptimal_plays_table(loaded).note
    for measure in ("regret", "realised"):
        (axes,) = loaded.plot(measure=measure).axes
        assert "against the best action of each round" in axes.get_ylabel()
    assert "TimeVarying(sets=[Transport(" in str(configuration_table(loaded).rows)
    (tmp_path / "again.toml").write_text(experiment_file(loaded))
    again = read(tmp_path / "again.toml").run()
    assert (again.regret.values == result.regret.values).all()
    fixed = build(plain(actions=plain()["actions"]["sets"][0]))
    assert fixed.run().label == "regret"


def test_files_say_what_regret_is_against(tmp_path: Path) -> None:
    one_set = plain()["actions"]["sets"][0]
    result = build(plain(actions=one_set, against="each round")).run()
    assert result.configuration["against"] == "each round"
    assert ["against", "each round"] in configuration_table(result).rows
    text = experiment_file(result)
    assert 'against = "each round"\n' in text
    (tmp_path / "again.toml").write_text(text)
    assert read(tmp_path / "again.toml").run().against == "each round"
    with refused("against"):
        build(plain(against="fixed")).run()
    with refused("policies.A.policy"):
        build(plain(policies={"A": {"type": "LinTS"}})).run()
    with refused("actions.sets"):
        build(
            plain(actions={"type": "TimeVarying", "sets": [one_set, {**one_set, "sense": "max"}]})
        )


def test_the_file_in_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[3] / "docs" / "experiments.md"
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text(), flags=re.DOTALL)
    (text,) = [block for block in blocks if "TimeVarying" in block]
    monkeypatch.chdir(tmp_path)
    Path("week.toml").write_text(text)
    run(Path("week.toml"), jobs=1)
    assert "week" in capsys.readouterr().out
    assert mp.load("results/week/result.nc").against == "each round"
