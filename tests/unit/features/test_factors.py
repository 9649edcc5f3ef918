"""Features that multiply: the posterior against a batch fit, declarations, and effects."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

import multiplay as mp
from multiplay.beliefs.features import FeatureRegression, Reports
from multiplay.cli.study.features import read_features
from multiplay.constraints.baseline import z_of
from multiplay.features.rows import FeatureRows
from multiplay.learner.allowance import BaselineReport
from multiplay.random import Streams
from multiplay.savings import estimate
from multiplay.types import FloatArray

WEEK = ("Mon", "Sat", "Sun")
DAYS = mp.Features(
    fuel=mp.Number(centre=1.6, scale=0.1, unit="EUR"),
    km=mp.Number(centre=300, scale=100),
    weekday=mp.Category(WEEK),
    multiplies=["weekday", "fuel"],
)


# ---------------------------------------------------------------- the posterior

ZERO, ADDED, FACTORS = 0.2, 2, 2


def batch(phi: FloatArray, y: FloatArray, units: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the most likely parameters and their covariance, by a fit of all reports at once.

    The variance of a unit is 1/4 times its squared factor; factors in it are those of the last fit.
    """
    prior, known = np.array([0.5, 0.0, 0.0, 0.0]), np.zeros(4)
    for _ in range(20):
        factor = np.exp(phi[:, ADDED:] @ known[ADDED:])

        def errors(x: FloatArray, factor: FloatArray = factor) -> FloatArray:
            mean = np.exp(phi[:, ADDED:] @ x[ADDED:]) * (phi[:, :ADDED] @ x[:ADDED] + ZERO) - ZERO
            return np.append((y - mean) / factor * np.sqrt(units) / 0.5, (x - prior) / 0.5)

        found = least_squares(errors, known)
        known = found.x
    slopes: FloatArray = np.asarray(found.jac)
    return np.asarray(known, float), np.asarray(np.linalg.inv(slopes.T @ slopes), float)


@pytest.mark.parametrize("seed", range(4))
def test_the_posterior_is_that_of_a_fit_of_all_reports(seed: int) -> None:
    rng, model, rounds, d = np.random.default_rng(seed), FeatureRegression(effects=False), 60, 5
    truth, arrays = np.array([0.3, 0.05, 0.2, -0.15]), model.start(d, 4, 1, FACTORS, ZERO)
    told, lost, units = [], [], np.full(d, 200.0)
    for _ in range(rounds):
        phi = np.column_stack([np.ones(d), rng.normal(size=(d, 3))])
        factor = np.exp(phi[:, ADDED:] @ truth[ADDED:])
        mean = factor * (phi[:, :ADDED] @ truth[:ADDED] + ZERO) - ZERO
        y = mean + factor * 0.5 / np.sqrt(units) * rng.normal(size=d)
        reports = np.arange(d)[None], phi[None], units[None], y[None], np.full((1, d), np.nan)
        model.learn(arrays, Reports(*reports))
        told.append(phi)
        lost.append(y)
    phi, y = np.concatenate(told), np.concatenate(lost)
    expected, covariance = batch(phi, y, np.tile(units, rounds))
    mean, deviation = model.contrasts(arrays, np.eye(4))
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(mean[0] - expected) < 0.15 * spread).all()
    assert deviation[0] == pytest.approx(spread, rel=0.05)
    some, plan = rng.normal(size=(d, 4)), np.array([[3, 0, 1, 0, 2]])
    some[:, 0] = 1.0
    factor = np.exp(some[:, ADDED:] @ expected[ADDED:])
    base = some[:, :ADDED] @ expected[:ADDED] + ZERO
    slopes = factor[:, None] * np.column_stack([some[:, :ADDED], base[:, None] * some[:, ADDED:]])
    cost, doubt = model.joint(arrays, FeatureRows.of(some), plan)
    along = plan[0] @ slopes
    error = np.sqrt(along @ covariance @ along)
    assert cost[0] == pytest.approx(plan[0] @ (factor * base - ZERO), abs=0.3 * error)
    assert doubt[0] == pytest.approx(error, rel=0.05)
    each = model.posterior(arrays, FeatureRows.of(some))
    assert model.means(arrays, np.arange(d), some) == pytest.approx(each[0][0])


def test_draws_have_the_mean_and_the_deviation_of_the_posterior() -> None:
    model, trials = FeatureRegression(), 5000
    arrays, rng = model.start(3, 3, 1, 1, 0.1), np.random.default_rng(0)
    for _ in range(20):
        phi = np.column_stack([np.ones(3), rng.normal(size=(3, 2))])
        y = np.exp(0.2 * phi[:, 2]) * (0.4 + 0.1 * phi[:, 1]) - 0.1
        told = np.arange(3)[None], phi[None], np.full((1, 3), 2.0), y[None], np.full((1, 3), 0.01)
        model.learn(arrays, Reports(*told))
    rows = FeatureRows.of(phi)
    mean, deviation = model.posterior(arrays, rows)
    many = {name: np.repeat(array, trials, axis=0) for name, array in arrays.items()}
    draws = model.draw(many, rows, Streams.spawn(0, 0, range(trials)))
    errors = (draws.mean(axis=0) - mean[0]) / deviation[0] * np.sqrt(trials)
    assert np.abs(errors).max() < 4.5
    assert draws.std(axis=0) == pytest.approx(deviation[0], rel=0.1)


# ---------------------------------------------------------------- what is declared


def test_columns_that_multiply_come_last() -> None:
    assert DAYS.multiplies == ("fuel", "weekday")  # in the order of the declaration
    assert DAYS.names == ("1", "km", "fuel", "weekday=Mon", "weekday=Sat", "weekday=Sun")
    assert (DAYS.p, DAYS.factors) == (6, 4)
    blocks = {"fuel": [2.0], "km": [3.0], "weekday": [0.0, 1.0, 0.0]}
    row = DAYS.expand_row(blocks)
    assert row.tolist() == [[1.0, 3.0, 2.0, 0.0, 1.0, 0.0]]
    assert np.array_equal(DAYS.expand({n: np.array([b]) for n, b in blocks.items()}), row)
    assert DAYS.differences[4].tolist() == [0, 0, 0, -0.5, 1, -0.5]
    assert np.allclose(DAYS.averages, [0, 0, 0, 1 / 3, 1 / 3, 1 / 3])
    assert DAYS.scaled({"km": (0.0, 1.0)}).multiplies == DAYS.multiplies
    assert mp.Features(columns=DAYS.columns) != DAYS
    assert eval(repr(DAYS), vars(mp)) == DAYS


@pytest.mark.parametrize(
    ("got", "settings"),
    [
        ("'fule'", {"multiplies": ["fule"]}),
        ("'fuel'", {"multiplies": "fuel"}),
        ("'fuel' twice", {"multiplies": ["fuel", "fuel"]}),
        ("'fuel', which is in a product", {"multiplies": ["fuel"], "products": [("km", "fuel")]}),
        ("('km', 'fuel')", {"multiplies": [("km", "fuel")]}),
    ],
)
def test_what_cannot_multiply_is_refused(got: str, settings: dict[str, Any]) -> None:
    with pytest.raises(mp.InvalidInput) as refused:
        mp.Features(fuel=mp.Number(), km=mp.Number(), **settings)
    error = refused.value
    assert (error.argument, error.got) == ("multiplies", got)
    assert error.hint


def test_a_file_declares_what_multiplies(tmp_path: Path) -> None:
    path = tmp_path / "features.toml"
    path.write_text("""multiplies = ["fuel"]
[columns]
km = { type = "Number" }
fuel = { type = "Number" }
""")
    assert read_features(path).multiplies == ("fuel",)


# ---------------------------------------------------------------- learners


def taught(
    days: int = 60, made: list[tuple[float, dict[str, int]]] | None = None, **settings: Any
) -> mp.Learner:
    """Return a learner of two lanes, which cost 25 % more on Saturdays, and 3 % for 10 cents.

    ``made`` gets the factor and the plan of each day.
    """
    plans, rng = mp.Budget(4, [4, 4], names=["a", "b"]), np.random.default_rng(0)
    km = {"km": {"a": 200.0, "b": 450.0}}
    learner = mp.Learner(
        plans, loss_range=(50, 450), features=DAYS, arm_features=km, seed=0, **settings
    )
    for day in range(days):
        weekday, fuel = WEEK[day % 3], float(rng.uniform(1.4, 1.9))
        factor = 1.03 ** ((fuel - 1.6) / 0.1) * (1.25 if weekday == "Sat" else 1.0)
        play = learner.ask(features={"fuel": fuel, "weekday": weekday})
        if made is not None:
            made.append((factor, play.plan))
        price = {"a": 100 * factor, "b": 210 * factor}
        costs = {
            a: (price[a] + factor * rng.normal(0, 4, n)).tolist() for a, n in play.plan.items()
        }
        learner.tell(play.id, costs)
    return learner


def test_effects_are_percentages() -> None:
    learner = taught()
    table = {row["feature"]: row for row in learner.effects().to_dict("records")}
    assert table["weekday=Sat"]["effect"] == pytest.approx(25, abs=2.5)
    assert table["weekday=Sat"]["low"] < 25 < table["weekday=Sat"]["high"]
    assert table["weekday=Sat"]["text"].startswith("weekday=Sat: 2")
    assert " % more (" in table["weekday=Sat"]["text"]
    assert table["fuel"]["low"] < 3 < table["fuel"]["high"]
    assert not table["fuel"]["changes_plans"]
    level = np.exp(np.log(1.25) / 3)  # of average days
    assert table["km"]["low"] < 110 / 2.5 * level < table["km"]["high"]
    assert table["1"]["low"] < level * 144 < table["1"]["high"]
    own = learner.effects(by="arm")
    assert own["effect"].sum() == pytest.approx(0, abs=1e-6)


def test_plans_cost_what_the_factor_says() -> None:
    learner = taught()
    costs = [
        learner.expect({"a": 4, "b": 0}, features={"fuel": 1.8, "weekday": day})
        for day in ("Mon", "Sat")
    ]
    for cost, factor in zip(costs, (1.0, 1.25), strict=True):
        assert cost.low < 400 * 1.03**2 * factor < cost.high
    assert costs[1].total / costs[0].total == pytest.approx(1.25, abs=0.03)


def test_a_saved_learner_continues(tmp_path: Path) -> None:
    learner = taught(12, policy=None)
    learner.save(tmp_path / "lanes.npz")
    again = mp.Learner.load(tmp_path / "lanes.npz")
    today = {"fuel": 1.7, "weekday": "Sat"}
    assert again.features == DAYS
    assert again.ask(features=today).expected == learner.ask(features=today).expected


def test_a_study_replays(tmp_path: Path) -> None:
    plans = mp.Budget(4, [4, 4], names=["a", "b"])
    km = {"km": {"a": 200.0, "b": 450.0}}
    where = f"sqlite:///{tmp_path / 'plans.db'}"
    study = mp.Study.create(
        "lanes", plans, store=where, loss_range=(0, 400), features=DAYS, arm_features=km
    )
    for day in WEEK:
        play = study.ask(features={"fuel": 1.6, "weekday": day})
        study.tell(play.id, {a: [100.0] * n for a, n in play.plan.items()})
    assert "replay to the same state" in str(study.verify())


def cost_of(
    theta: FloatArray, own: FloatArray, used: list[tuple[int, float, FloatArray]], zero: float
) -> float:
    """Return what some units cost, of an arm, their number and phi each, as shares of the range."""
    total = 0.0
    for arm, units, phi in used:
        factor = np.exp(phi[2:] @ theta[2:])
        total += units * (factor * (phi[:2] @ theta[:2] + own[arm] + zero) - zero)
    return float(total)


def test_an_allowance_is_that_of_the_product_of_all_plays() -> None:
    """Spent and left are costs at the mean parameters; their doubt is along numerical slopes."""
    share, zero, span = 0.05, 50 / 400, 400.0
    learner = taught(0, constraints=[mp.Baseline(mp.InProportion(), share)])
    rng, plays, base, between = np.random.default_rng(3), [], [], 0
    for day in range(24):
        weekday, fuel = WEEK[day % 3], float(rng.uniform(1.4, 1.9))
        factor = 1.03 ** ((fuel - 1.6) / 0.1) * (1.25 if weekday == "Sat" else 1.0)
        play = learner.ask(features={"fuel": fuel, "weekday": weekday})
        if day == 7:  # a play that is cancelled does not count
            learner.cancel(play)
            continue
        assert play.baseline == {"a": 2, "b": 2}
        between += play.plan != play.baseline
        levels = [float(weekday == one) for one in WEEK]
        for arm, (name, km) in enumerate({"a": 200.0, "b": 450.0}.items()):
            phi = np.array([1.0, (km - 300) / 100, (fuel - 1.6) / 0.1, *levels])
            plays.append((arm, float(play.plan[name]), phi))
            base.append((arm, 2.0, phi))
        price = {"a": 100 * factor, "b": 210 * factor}
        costs = {a: (price[a] * rng.uniform(0.7, 1.3, n)).tolist() for a, n in play.plan.items()}
        learner.tell(play.id, costs)
    assert between > 10
    known = learner.engine.state.features
    assert known is not None
    model, arrays = known.model, known.arrays
    theta = model.contrasts(arrays, np.eye(6))[0][0]
    own = model.contrasts(arrays, np.zeros((2, 6)), None, np.arange(2))[0][0]
    parts = {"played": plays, "base": base}
    played, baseline = (span * cost_of(theta, own, one, zero) for one in parts.values())
    units = {name: 50 * sum(n for _, n, _ in one) for name, one in parts.items()}
    (report,) = learner.constraints()
    assert isinstance(report, BaselineReport)
    spent = played + units["played"] - baseline - units["base"]
    left = share * (baseline + units["base"]) - spent
    assert report.spent == pytest.approx(spent)
    assert report.left == pytest.approx(left)

    def target(theta: FloatArray, own: FloatArray) -> float:
        return (1 + share) * cost_of(theta, own, base, zero) - cost_of(theta, own, plays, zero)

    step = 1e-5
    x = [target(theta + one, own) - target(theta - one, own) for one in step * np.eye(6)]
    w = [target(theta, own + one) - target(theta, own - one) for one in step * np.eye(2)]
    slopes = (np.array(one)[None, None] / (2 * step) for one in (w, x))
    deviation = span * model.weighted(arrays, *slopes)[1][0, 0]
    assert report.sure_of == pytest.approx(left - z_of(0.99) * deviation, rel=1e-5)


def test_an_allowance_of_percentages_is_kept(tmp_path: Path) -> None:
    learner = taught(12, constraints=[mp.Baseline(mp.InProportion(), 0.05)])
    learner.save(tmp_path / "lanes.npz")
    again = mp.Learner.load(tmp_path / "lanes.npz")
    assert again.constraints() == learner.constraints()
    today = {"fuel": 1.7, "weekday": "Sat"}
    assert again.ask(features=today).plan == learner.ask(features=today).plan
    where, km = f"sqlite:///{tmp_path / 'plans.db'}", {"km": {"a": 200.0, "b": 450.0}}
    study = mp.Study.create(
        "lanes",
        mp.Budget(4, [4, 4], names=["a", "b"]),
        store=where,
        loss_range=(0, 400),
        features=DAYS,
        arm_features=km,
        constraints=[mp.Baseline(mp.InProportion(), 0.05)],
    )
    for day in (*WEEK, *WEEK):
        play = study.ask(features={"fuel": 1.6, "weekday": day})
        study.tell(play.id, {a: [100.0] * n for a, n in play.plan.items()})
    assert "replay to the same state" in str(study.verify())
    assert mp.Study.open("lanes", store=where).constraints() == study.constraints()


def test_a_learner_says_of_savings_what_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[float, dict[str, int]]] = []
    learner, given = taught(30, made), list[int]()

    def noted(*args: Any, factors: int, **settings: Any) -> mp.Savings:
        given.append(factors)
        return estimate(*args, factors=factors, **settings)

    monkeypatch.setattr("multiplay.learner.comparison.estimate", noted)
    saved = learner.savings(mp.FixedPlan({"a": 0, "b": 4}))
    true = sum(factor * (840 - 100 * plan["a"] - 210 * plan["b"]) for factor, plan in made)
    assert saved.low < true < saved.high
    assert given == [DAYS.factors]
