"""Features in the commands of studies: files, options, tables, and invalid input."""

from pathlib import Path

import pytest
from test_study_cli import Run, run

from multiplay.cli.study.features import read_features, values_of
from multiplay.errors import InvalidInput
from multiplay.features import Features, Flag, Number
from multiplay.learner.features import FeatureState

__all__ = ["run"]  # a fixture

FEATURES = """
products = [["km", "fuel"]]

[km]
type = "Number"
centre = 300
scale = 100
unit = "km"

[fuel]
type = "Number"

[weekday]
type = "Category"
levels = ["Mon", "Tue", "Wed"]

[rain]
type = "Flag"
"""
LANES = "arm,km\nLyon->north,450\nLyon->south,120\nLille->north,90\nLille->south,700\n"
TODAY = "arm,fuel,rain\n*,1.72,false\nLyon->south,,true\n"
SET = ["--supply", "Lyon=2,Lille=3", "--demand", "north=4,south=1", "--loss-range", "0,250"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("f.toml", FEATURES), ("lanes.csv", LANES), ("today.csv", TODAY)):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def lanes(run: Run, folder: Path) -> Run:
    said = run(
        "create", "lanes", *SET, "--features", "f.toml", "--arm-features", "lanes.csv", "--json"
    )
    assert said.code == 0, said.err
    assert said.json["policy"] == "FeatureCTS"
    assert said.json["features"][:3] == ["1", "km", "fuel"]
    return run


def test_a_study_is_shown_before_its_first_day(lanes: Run) -> None:
    shown = lanes("show", "lanes")
    assert (shown.code, shown.err) == (0, "")
    assert "best plan known after the first plan" in " ".join(shown.out.split())
    assert lanes("effects", "lanes").out.count("changes no plan") == 1, "the intercept"
    assert lanes("ask", "lanes", "--feature", "fuel=1.6", "--feature", "weekday=Mon", "--feature",
                 "rain=1").code == 0  # fmt: skip


def test_days_with_features(lanes: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for fuel in (1.6, 1.7):
        asked = lanes("ask", "lanes", "--feature-values", "today.csv", "--feature", f"fuel={fuel}",
                      "--feature", "weekday=Tue", "--json")  # fmt: skip
        assert asked.code == 0, asked.err
        units = [arm for arm, k in asked.json["plan"].items() for _ in range(k)]
        costs = "arm,loss\n" + "".join(f"{arm},100\n" for arm in units)
        assert lanes("tell", "lanes", asked.json["id"], "-", stdin=costs).code == 0
    said = lanes("effects", "lanes")
    assert said.code == 0
    assert "each 100 km costs" in said.out
    assert said.out.count("changes no plan") == 5
    found = lanes("effects", "lanes", "--level", 0.5, "--json").json
    assert found["misfit"] == ""
    assert [row["per"] for row in found["effects"]][1] == "100 km"
    arms = lanes("effects", "lanes", "--by-arm", "--json").json["effects"]
    assert [row["arm"] for row in arms] == [row.split(",")[0] for row in LANES.split()[1:]]
    assert "Lyon->south" in lanes("effects", "lanes", "--by-arm").out
    same = ["--feature", "fuel=1.9", "--feature", "weekday=Mon", "--feature", "rain=true", "--json"]
    best = lanes("best", "lanes", *same).json
    plan = [f"{arm}={k}" for arm, k in best["plan"].items()]
    assert lanes("expect", "lanes", *plan, *same).json["expected"] == best["expected"]
    assert lanes("best", "lanes").code == 0, "the features of the last play"
    assert "all entries are intact" in lanes("verify", "lanes").out
    assert "interval: " in lanes("show", "lanes").out
    monkeypatch.setattr(FeatureState, "misfit", "the costs bend")  # then no interval is known
    shown = lanes("show", "lanes")
    assert shown.code == 0, shown.err
    assert "No intervals: the costs bend." in shown.out
    assert "interval: " not in shown.out


def test_history_and_descriptions(lanes: Run, folder: Path) -> None:
    table = "arm,round,loss,fuel,weekday,rain\nLyon->north,1,120,1.6,Mon,true\n"
    (folder / "history.csv").write_text(table + "Lille->north,1,60,1.6,Mon,false\n")
    assert lanes("learn-table", "lanes", "history.csv", "--json").json["seen"] == 2
    said = lanes("set", "lanes", "--arm-features", "-", stdin="arm,km\nReims->south,80\n")
    assert said.out.endswith("the features of 1 lane are kept\n")
    day = ["--feature", "fuel=1.6", "--feature", "weekday=Mon", "--feature", "rain=false"]
    asked = lanes("ask", "lanes", "--supply", "Reims=2,Lyon=3", "--demand", "south=5", *day)
    assert asked.code == 0, asked.err


WRONG: list[tuple[list[str], str]] = [
    (["ask", "lanes", "--feature", "fuel=1.6", "--feature", "weekday=Mon"], "--feature 'rain=...'"),
    (["ask", "lanes", "--feature", "fuel=dear"], "features['fuel']: expected a finite number"),
    (["ask", "lanes", "--feature", "weekday=Sun"], "others = true in the file of features"),
    (["ask", "lanes", "--feature", "snow=1"], "names of features: km, fuel, weekday, rain"),
    (["ask", "lanes", "--feature", "fuel=1", "--feature", "fuel=2"], "'fuel' twice"),
    (["ask", "lanes", "--feature", "=2"], "each feature once"),
    (["ask", "lanes", "--feature-values", "none.csv"], "--feature-values: expected a CSV file"),
    (["ask", "lanes", "--feature-values", "f.toml"], "--feature-values"),
    (["set", "lanes", "--arm-features", "today.csv"], "expected a finite number, got nan"),
    (["effects", "lanes", "--level", "2"], "level"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_invalid_input_is_named(lanes: Run, words: list[str], said: str) -> None:
    answer = lanes(*words)
    assert answer.code != 0
    assert said in " ".join(answer.err.split()), answer.err


def test_a_study_without_features_says_how_to_declare_them(run: Run, folder: Path) -> None:
    assert run("create", "plain", *SET).code == 0
    for words in (["effects", "plain"], ["ask", "plain", "--feature", "fuel=1"]):
        assert "Create the study with --features FILE.toml" in run(*words).err
    assert "--features FILE.toml" in run("create", "x", *SET, "--arm-features", "lanes.csv").err
    assert "Use FeatureCTS" in run(
        "create", "x", *SET, "--features", "f.toml", "--policy", "GenCTS"
    ).err  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("km = 3", "a table with a type"),
        ("columns = 3", "a table for each feature"),
        ('[km]\ntype = "Numbr"', "Number"),
        ('[km]\ntype = "Number"\nscal = 3', "scal"),
        ('[km]\ntype = "Number"\nscale = -1', "a positive number"),
        ('products = [["km", "fuel"]]\n[km]\ntype = "Number"', "names of features"),
        ("", "at least one feature"),
        ("[km", "TOML"),
        ('[arm]\ntype = "Flag"', "other than arm"),
    ],
)
def test_a_file_that_declares_no_features_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_features(file)
    assert said in str(caught.value)


def test_features_may_be_below_columns(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text('[columns]\nkm = { type = "Number" }\n[rain]\ntype = "Flag"')
    assert read_features(file) == Features(km=Number(), rain=Flag())


def test_the_options_of_a_round() -> None:
    assert values_of(["weekday = Tue ", "x=a=b"]) == {"weekday": "Tue", "x": "a=b"}
    assert values_of(None) == {}
