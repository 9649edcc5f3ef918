"""The commands show, plot and report, and the report in a browser."""

import html
import json
import re
from collections.abc import Callable
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
from browser import measured
from commands import called, fresh

from multiplay import (
    Bernoulli,
    Budget,
    Corrupted,
    GenCTS,
    GenLBINFV,
    Result,
    Stochastic,
    Transport,
    Uniform,
    load,
    simulate,
)
from multiplay._support.formatting import number
from multiplay.experiments import paper
from multiplay.experiments.experiment import experiment_file
from multiplay.reports.page import report
from multiplay.reports.tables import comparisons_table, conclusion

NASTY = '<b>&"A"</b>'
BRACKETS = "[red]B[/red] 5$ a$ id='x'"
multiplay, multiplay_anew = (partial(start, COLUMNS="200") for start in (called, fresh))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three results: corrupted losses with nasty names, many arms, many policies."""
    folder = tmp_path_factory.mktemp("results")
    plans, costs = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.4, 0.2, 0.3, 0.3, 0.2])
    world = Corrupted(before=Uniform(0, 2 * costs), after=Uniform(1 - 2 * costs, 1), at=20)
    policies = {NASTY: GenCTS(), BRACKETS: GenLBINFV(), "third": GenCTS()}
    simulate(plans, world, policies, 120, trials=4, seed=5).save(folder / "nasty run.nc")
    arms = Budget(3, [1] * 30, sense="max")
    rewards = Stochastic(Bernoulli(np.linspace(0.1, 0.9, 30)))
    simulate(arms, rewards, {"alone": GenCTS()}, 50, trials=1).save(folder / "arms.nc")
    names = [f"GenLBINFV, epsilon=0.{k}, a setting with a long name" for k in range(1, 10)]
    many = simulate(
        plans, Stochastic(Uniform(0, 2 * costs)), {name: GenCTS() for name in names}, 60, trials=3
    )
    many.save(folder / "many.nc")
    return folder


# ---------------------------------------------------------------- show


@pytest.mark.slow
def test_show_tells_regret_verdicts_quantities_and_what_was_run(folder: Path) -> None:
    said = multiplay_anew("show", "nasty run.nc", folder=folder)
    assert said.returncode == 0, said.stderr
    assert said.stderr == ""
    result, words = load(folder / "nasty run.nc"), " ".join(said.stdout.split())
    for policy, row in result.summary().iterrows():
        line = next(line for line in said.stdout.splitlines() if f"│ {policy} " in line)
        assert f"{row['regret']:.1f}" in line or f"{row['regret']:.3g}" in line
    for A, B, *_, verdict in result.compare().itertuples(index=False):
        lines = said.stdout.splitlines()
        (line,) = [x for x in lines if re.search(f"{row_of(A, B)}|{row_of(B, A)}", x)]
        decided = {"A lower": f"{A} lower", "B lower": f"{B} lower"}
        assert decided.get(verdict, "undecided") in line
    assert said.stdout.startswith(conclusion(result))
    for quantity in ("switches", "L*", "Q2", "V1", " C "):
        assert quantity in words
    for part in ("Transport(supply=[1, 4, 5]", "Corrupted(", "120", "numpy", "Bonferroni", "Holm"):
        assert part in words
    assert re.search(r"│ seed +│ 5 ", said.stdout)
    assert re.search(r"│ trials +│ 4 ", said.stdout)


def row_of(A: str, B: str) -> str:
    return rf"│ {re.escape(A)} +│ {re.escape(B)} +│"


def test_show_of_one_policy_and_one_trial(folder: Path) -> None:
    said = multiplay("show", "arms.nc", folder=folder)
    assert said.returncode == 0, said.stderr
    assert "final reward lost" in said.stdout
    assert "none" in said.stdout, "no interval"
    assert "Comparisons" not in said.stdout
    assert " C " not in said.stdout, "nothing was corrupted"


@pytest.mark.slow
def test_a_shown_experiment_gives_the_same_numbers(folder: Path, tmp_path: Path) -> None:
    for name in ("nasty run.nc", "arms.nc"):
        said = multiplay("show", folder / name, "--experiment", folder=tmp_path)
        assert said.returncode == 0, said.stderr
        (tmp_path / "again.toml").write_text(said.stdout, encoding="utf-8")
        out = tmp_path / Path(name).stem
        ran = multiplay("run", "again.toml", "--out", out, "--jobs", 1, folder=tmp_path)
        assert ran.returncode == 0, ran.stderr
        before, after = load(folder / name), load(out / "result.nc")
        assert (before.regret == after.regret).all()
        assert before.policies == after.policies
        assert before.configuration == after.configuration


def test_an_experiment_with_a_function_is_not_written_down(folder: Path) -> None:
    dataset = load(folder / "arms.nc").dataset
    plain = json.loads(dataset.attrs["configuration"])
    plain["environment"] = {"type": "Adversarial", "losses": {"type": "function", "name": "f"}}
    result = Result(dataset.assign_attrs(configuration=json.dumps(plain)))
    result.save(folder / "function.nc")
    said = multiplay("show", "function.nc", "--experiment", folder=folder)
    assert (said.returncode, said.stdout) == (2, "")
    assert "experiment: expected" in said.stderr
    assert "run the script that made it again" in report({"function.nc": result})


# ---------------------------------------------------------------- plot


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89")],
)
def test_plot_writes_what_the_name_says(
    suffix: str, begins: bytes, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / f"regret.{suffix}"
    said = multiplay("plot", "nasty run.nc", "-o", out, folder=folder)
    assert said.returncode == 0, said.stderr
    assert out.read_bytes().startswith(begins)
    assert str(out) in said.stdout
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.slow
def test_plot_has_every_choice(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "regret.svg"
    options = [
        "--trials",
        "--x",
        "log",
        "--y",
        "log",
        "--measure",
        "realised",
        "--title",
        "Ünder 5$",
    ]
    said = multiplay_anew("plot", "nasty run.nc", "-o", out, *options, folder=folder)
    assert said.returncode == 0, said.stderr
    comments = out.read_text(encoding="utf-8")
    for words in ("round, log scale", "cumulative realised regret, where positive", "Ünder 5$"):
        assert words in comments


# ---------------------------------------------------------------- help


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("show", ["RESULT.nc", "--experiment", "multiplay show results/stochastic.nc", "95 %"]),
        (
            "plot",
            ["--trials", "--measure", "straight line", "multiplay plot", ".png, .svg or .pdf"],
        ),
        ("report", ["multiplay report results/stochastic.nc", "--title", "loads nothing else"]),
    ],
)
def test_help_teaches(command: str, words: list[str], tmp_path: Path) -> None:
    said = multiplay(command, "--help", folder=tmp_path)
    assert said.returncode == 0
    for word in words:
        assert word in " ".join(said.stdout.split())


# ---------------------------------------------------------------- bad input


def newer(path: Path, good: Path) -> None:
    load(good).dataset.assign_attrs(multiplay_format=99).to_netcdf(path, engine="h5netcdf")


def foreign(path: Path, good: Path) -> None:
    regret = load(good).regret
    xr.Dataset({"regret": (regret.dims, regret.values)}).to_netcdf(path, engine="h5netcdf")


def half(path: Path, good: Path) -> None:
    path.write_bytes(good.read_bytes()[: good.stat().st_size // 2])


def scratched(path: Path, good: Path) -> None:
    """Damage the header of the root group, right behind the first block of the file."""
    text = bytearray(good.read_bytes())
    text[48:52] = b"\x00\x00\x00\x00"
    path.write_bytes(text)


@pytest.mark.parametrize(
    ("command", "make"),
    [
        ("report", lambda path, good: None),
        ("report", lambda path, good: path.write_text("policy,regret\n")),
        ("report", lambda path, good: path.mkdir()),
        ("report", newer),
        ("report", foreign),
        ("report", half),
        ("report", scratched),
        ("show", half),
        ("plot", half),
    ],
    ids=["missing", "csv", "folder", "newer", "foreign", "half", "scratched", "show", "plot"],
)
def test_what_is_no_result_is_refused_in_one_line(
    command: str, make: Callable[[Path, Path], object], folder: Path, tmp_path: Path
) -> None:
    bad, out = tmp_path / "bad.nc", tmp_path / "new" / "out.html"
    make(bad, folder / "nasty run.nc")
    good = [folder / "nasty run.nc"] if command == "report" else []
    if command == "plot":
        out = out.with_suffix(".png")
    options = [] if command == "show" else ["-o", out]
    said = multiplay(command, *good, bad, *options, folder=tmp_path)
    assert (said.returncode, said.stdout) == (2, "")
    assert len(said.stderr.splitlines()) == 1, said.stderr
    assert said.stderr.startswith("multiplay: path: expected")
    assert "bad.nc" in said.stderr
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (
            ["plot", "many.nc", "-o", "OUT/figure.gif"],
            ["out", ".png or .svg or .pdf", "figure.gif"],
        ),
        (["plot", "many.nc", "-o", "OUT/figure"], ["out", ".png"]),
        (["report", "many.nc", "-o", "OUT/page.pdf"], ["out", ".html"]),
        (["plot", "many.nc", "-o", "OUT/a.png", "--x", "cubic"], ["x", "linear or log", "cubic"]),
        (["plot", "many.nc", "-o", "OUT/a.png", "--y", "cubic"], ["y", "linear or log", "cubic"]),
        (
            ["plot", "many.nc", "-o", "OUT/a.png", "--measure", "loss"],
            ["measure", "regret or realised", "loss"],
        ),
        (["plot", "many.nc", "-o", "many.nc/figure.png"], ["path", "can be written", "many.nc"]),
        (["report", "many.nc", "-o", "many.nc/page.html"], ["path", "can be written", "many.nc"]),
    ],
)
def test_bad_choices_and_places_are_refused_in_one_line(
    arguments: list[str], names: list[str], folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new"
    before = sorted(folder.iterdir())
    said = multiplay(*(word.replace("OUT", str(out)) for word in arguments), folder=folder)
    assert (said.returncode, said.stdout) == (2, "")
    assert len(said.stderr.splitlines()) == 1, said.stderr
    for name in names:
        assert name in said.stderr
    assert not out.exists()
    assert sorted(folder.iterdir()) == before


# ---------------------------------------------------------------- the page as text


class Page(HTMLParser):
    """What a page is made of: tags with attributes, and the words of every row of a table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.words, self.inside = "", False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.inside = True
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "table"

    def handle_data(self, data: str) -> None:
        self.words += data
        if self.inside and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    arguments = ["report", "nasty run.nc", "arms.nc", "many.nc", "--title", "A <title> & more"]
    said = multiplay_anew(*arguments, "-o", "new/report.html", folder=folder)
    assert said.returncode == 0, said.stderr
    assert said.stderr == ""
    assert "report.html" in said.stdout
    return (folder / "new" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_has_every_section(page: str, folder: Path) -> None:
    read = Page(page)
    assert "A <title> & more" in read.words
    tags = [tag for tag, _ in read.tags]
    assert tags.count("section") == 3
    assert tags.count("svg") == 6
    assert "b" not in tags, "names are escaped"
    result = load(folder / "nasty run.nc")
    firsts = [row[0] for row in read.rows]
    means = {policy: float(result.final(policy).mean()) for policy in result.policies}
    for pairs, policy in enumerate(sorted(result.policies, key=lambda name: -means[name])):
        if len(set(means.values())) == 3:
            assert firsts.count(policy) == 2 + pairs, "summary, quantities, and where it is A"
    for A, B, *_, p, verdict in result.compare().itertuples(index=False):
        (row,) = [row for row in read.rows if row[:2] in ([A, B], [B, A])]
        assert means[row[0]] <= means[row[1]], "A has the lower mean"
        assert row[2] == {"A lower": f"{A} lower", "B lower": f"{B} lower"}.get(verdict, verdict)
        assert row[-1] == (f"{p:.3f}" if p >= 0.001 else "< 0.001")
    ranked = sorted(result.policies, key=means.__getitem__)
    excess = result.dataset["excess"].mean("trial").sel(arm="s1->d1", policy=ranked).values
    (plays,) = [row for row in read.rows if row[0] == "s1->d1" and len(row) == 4]
    np.testing.assert_allclose([float(cell) for cell in plays[1:]], excess, rtol=0.01, atol=0.06)
    for words in ("µs per trial and round", "switches", "V1", "seed 5", "numpy", "reward lost"):
        assert words in read.words
    assert "multiplay show 'nasty run.nc' --experiment > 'nasty run-again.toml'" in read.words
    assert experiment_file(result) in read.words


def test_the_page_begins_with_the_conclusions(page: str, folder: Path) -> None:
    names = ["nasty run.nc", "arms.nc", "many.nc"]
    sentences = [html.escape(conclusion(load(folder / name))) for name in names]
    top, *sections = page.split("<section")
    for place, (sentence, text) in enumerate(zip(sentences, sections, strict=True)):
        assert f'<a href="#r{place}">' in top
        assert sentence in top
        assert text.startswith(f' id="r{place}"')
        assert text.index("</h2>") < text.index(sentence) < text.index("<svg")
    alone = report({"arms.nc": load(folder / "arms.nc")})
    assert alone.count(sentences[1]) == 1, "one section needs no list"


def test_policies_stand_in_the_order_of_their_regret(page: str, folder: Path) -> None:
    result = load(folder / "nasty run.nc")
    ranked = sorted(result.policies, key=lambda name: result.final(name).mean())
    section = page.split("<section")[1]
    rows = Page(section).rows
    final, besides = (
        [row[0] for row in rows[k + 1 : k + 4]]
        for k, row in enumerate(rows)
        if row[0] == "policy" and row[1] in ("final regret", "switches")
    )
    assert final == besides == ranked
    assert ["arm", *ranked] in rows
    for figure in re.findall(r"<svg.*?</svg>", section, re.DOTALL):
        root = ElementTree.fromstring(figure)
        texts = ["".join(text.itertext()) for text in root.iter("text")]
        assert [text for text in texts if text in ranked] == ranked
        ends = (root.get("aria-label") or "").split("At the end: ")[1]
        assert sorted(ranked, key=ends.index) == ranked


def test_the_pairs_of_more_than_six_policies_are_folded(page: str) -> None:
    folded = re.findall(r"<details( open)?><summary><h3>(Comparisons.*?)</h3>", page)
    assert folded == [(" open", "Comparisons"), ("", "Comparisons of all 36 pairs")]
    for policies, closed in ((6, False), (7, True)):
        result = of_finals(np.random.default_rng(0).random((policies, 3)))
        assert comparisons_table(result).folded == closed


def test_figures_show_where_the_corruption_begins(page: str) -> None:
    corrupted, stochastic, _ = page.split("<section")[1:]
    figures = re.findall(r"<svg.*?</svg>", corrupted, re.DOTALL)
    assert len(figures) == 2
    for figure in figures:
        root = ElementTree.fromstring(figure)
        texts = ["".join(text.itertext()) for text in root.iter("text")]
        assert texts.count("corruption from round 21") == 1
        assert "corruption from round 21." in (root.get("aria-label") or "")
    assert "corruption" not in "".join(re.findall(r"<svg.*?</svg>", stochastic, re.DOTALL))


def test_figure_2_of_the_paper_is_marked() -> None:
    runs = {regime: paper.run(regime, horizon=55, trials=1) for regime in paper.REGIMES}
    assert runs["stochastic"].marks == {}
    assert runs["corrupted"].marks == {12: "corruption from round 12"}


def test_plot_shows_marks_or_not(folder: Path, tmp_path: Path) -> None:
    texts = []
    for option in ("--marks", "--no-marks"):
        said = multiplay("plot", "nasty run.nc", "-o", tmp_path / "a.svg", option, folder=folder)
        assert said.returncode == 0, said.stderr
        texts.append((tmp_path / "a.svg").read_text(encoding="utf-8"))
    assert "corruption from round 21" in texts[0]
    assert "corruption from round" not in texts[1]


# ---------------------------------------------------------------- the conclusion


def of_finals(finals: Any, sense: str = "min") -> Result:
    """Make a result of final regrets (policy, trial), of the policies A, B, C, ..."""
    regret = np.asarray(finals, dtype=float)[:, :, None]
    measured = {"regret": regret, "seconds": np.ones(regret.shape[:2])}
    return Result.from_arrays(
        list("ABCDEFGHI"[: len(regret)]), ["arm"], np.array([9]), measured, {}, sense
    )


CLEAR = [[5.1, 6.0, 6.9], [1.0, 2.0, 3.0], [95.0, 96.1, 96.9]]  # B is the lowest, then A, then C


@pytest.mark.parametrize(
    ("finals", "says"),
    [
        ([[1.0, 2.0]], ["A ends with a regret of 1.5 (95 % interval: ", "it is the only policy."]),
        ([[7.0]], ["A ends with a regret of 7 (95 % interval: none)"]),
        (
            CLEAR,
            [
                "B ends with the least regret (2), a significant difference: ",
                "it has 4 less than A, the",
                "next one (95 % interval: ",
                "in the paired comparison of 3 trials.",
            ],
        ),
        (
            [[1.0, 5.0, 3.0], [2.0, 1.0, 9.0], [901.0, 902.0, 903.0]],
            [
                "No significant difference between A, which ends with the least regret (3)",
                "and B (1 more): ",
                "in the paired comparison of 3 trials, the difference can be chance; ",
                "against the other policy it is significant.",
            ],
        ),
        (
            [[1.0, 2.0, 4.0]] * 3,
            [
                "No significant difference between A",
                "and B (the same) and C (the same): ",
                "differences",
            ],
        ),
        (
            np.random.default_rng(3).random((9, 3)),
            [" more) and 5 others: in the paired comparison of 3 trials, the differences can"],
        ),
        (
            [[2.0], [1.0]],
            [
                "B ends with the least regret (1), 1 less than A, the next one, ",
                "but one trial shows no significance.",
            ],
        ),
    ],
    ids=["alone", "one trial alone", "decided", "undecided", "equal", "many", "one trial"],
)
def test_the_conclusion_says_what_is_decided(finals: Any, says: list[str]) -> None:
    sentence = conclusion(of_finals(finals))
    for words in says:
        assert words in sentence, sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_the_conclusion_has_the_numbers_of_the_comparison() -> None:
    result = of_finals(CLEAR)
    (row,) = [row for row in result.compare().to_dict("records") if {row["A"], row["B"]} == {*"AB"}]
    assert row["verdict"] == "B lower"
    sentence = conclusion(result)
    assert f"(95 % interval: {number(row['ci low'])} to {number(row['ci high'])})" in sentence
    assert "least reward lost (2)" in conclusion(of_finals(CLEAR, sense="max"))


def test_only_the_arms_with_most_suboptimal_plays_are_listed(page: str, folder: Path) -> None:
    excess = load(folder / "arms.nc").dataset["excess"].mean("trial").values[0]
    names = load(folder / "arms.nc").dataset["arm"].values.tolist()
    listed = [row for row in Page(page).rows if len(row) == 2 and row[0] in names]
    assert len(listed) == 20
    assert min(float(row[1]) for row in listed) >= np.sort(excess)[::-1][19] * 0.99
    assert "10 arms with fewer are left out" in Page(page).words


def test_the_page_fetches_nothing(page: str) -> None:
    tags = Page(page).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "image", "object"}
    for tag, attributes in tags:
        for name in ("src", "href", "srcset", "data", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, name)
    assert "@import" not in page
    assert "http" not in page
    assert set(re.findall(r"url\((.)", page)) <= {"#"}


def test_figures_are_text_with_ids_of_their_own(page: str) -> None:
    ids = [attributes["id"] for _, attributes in Page(page).tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 50
    used = re.findall(r"url\(#([^)]+)\)", page) + re.findall(r'href="#([^"]+)"', page)
    assert used
    assert set(used) <= set(ids)
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    for figure in figures:
        root = ElementTree.fromstring(figure)
        assert root.get("role") == "img"
        assert "At the end" in (root.get("aria-label") or "")
        assert "width" not in root.attrib, "it takes the width that there is"
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(figures[1]).iter("text")]
    assert {NASTY, BRACKETS, "third", "round, log scale"} <= set(texts)


@pytest.mark.slow
def test_the_same_results_give_the_same_page(page: str, folder: Path) -> None:
    names = ["nasty run.nc", "arms.nc", "many.nc"]
    assert report({name: load(folder / name) for name in names}, "A <title> & more") == page


def test_names_that_no_font_or_xml_has(folder: Path) -> None:
    dataset = load(folder / "arms.nc").dataset.assign_coords(policy=["学习\x01\u202e"])
    assert "学习" in report({"a/run.nc": Result(dataset), "b/run.nc": Result(dataset)})


def test_files_of_the_same_name_are_told_apart(folder: Path) -> None:
    result = load(folder / "arms.nc")
    text = report({"a/run.nc": result, "b/run.nc": result})
    assert "<h2>a/run.nc</h2>" in text
    assert "<h2>b/run.nc</h2>" in text
    assert "<h2>run</h2>" in report({"a/run.nc": result})


# ---------------------------------------------------------------- the page in a browser


def test_a_phone_shows_the_page_without_scrolling_sideways(page: str, tmp_path: Path) -> None:
    found = measured(page, tmp_path)
    assert found["inner"] == 360
    assert found["scroll"] <= 360
    assert found["height"] > 3000, "it is all there"
    assert found["scrolling"] > 0, "wide tables scroll by themselves"
    assert len(found["figures"]) == 6
    assert all(300 < width <= 360 for width in found["figures"])
    assert all(height > 200 for height in found["heights"])
    assert found["text_height"] > 6.5
    assert {NASTY, BRACKETS} <= set(found["names"])
    assert found["fetched"] == 0


@pytest.mark.slow
def test_the_page_is_light_or_dark_as_its_reader_likes(page: str, tmp_path: Path) -> None:
    light = measured(page, tmp_path, "--blink-settings=preferredColorScheme=1")
    dark = measured(page, tmp_path, "--blink-settings=preferredColorScheme=0")
    for found, bright in ((light, "paper"), (dark, "ink")):
        assert found["label"] == found["ink"], "figures are drawn in the colour of the text"
        assert min(map(int, re.findall(r"\d+", found[bright]))) > 200
    assert light["ink"] != dark["ink"]
    assert light["paper"] != dark["paper"]
