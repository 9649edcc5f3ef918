"""Settings of policies that were renamed: what was stored with the old names is read."""

from pathlib import Path
from typing import Any

import pytest

import multiplay as mp
from multiplay._support.builder import Builder, classes_of
from multiplay._support.serialization import unpack
from multiplay.experiments.experiment import read

OLD: dict[str, tuple[dict[str, Any], mp.Policy]] = {
    "the default of 0.9": (
        {"type": "BootstrapCTS", "w": 1.0, "change": "follow", "curiosity": 0.0, "units": None},
        mp.BootstrapCTS(memory=mp.Changes()),
    ),
    "changes that are ignored": (
        {"type": "BootstrapCTS", "change": "ignore", "discount": 0.9},
        mp.BootstrapCTS(discount=0.9),
    ),
    "curious": (
        {"type": "BootstrapCTS", "change": "follow", "curiosity": 0.1},
        mp.BootstrapCTS(memory=mp.Changes(), curiosity=0.1),
    ),
    "features": (
        {"type": "FeatureCTS", "effects": True, "optimism": None, "change": "follow"},
        mp.FeatureCTS(memory=mp.Changes(), draws=True, priors=1),
    ),
    "features, by hand": (
        {"type": "FeatureCTS", "change": "follow"},
        mp.FeatureCTS(memory=mp.Changes()),
    ),
    "features with optimism": (
        {"type": "FeatureCTS", "effects": True, "optimism": 2.0, "memory": None},
        mp.FeatureCTS(optimism=2.0, priors=1),
    ),
    "a model of features": (
        {
            "type": "Composed",
            "posterior": {"type": "FeatureModel", "memory": {"type": "Keep"}, "effects": True},
            "rule": {"type": "Mean"},
            "replan": None,
        },
        mp.Composed(mp.FeatureModel(priors=1), mp.Mean()),
    ),
    "ordered units": ({"type": "GenCTS", "units": "ordered"}, mp.GenCTS(unit_means="ordered")),
    "copies": (
        {"type": "Duplicated", "policy": {"type": "BootstrapCTS", "change": "follow"}},
        mp.Duplicated(mp.BootstrapCTS(memory=mp.Changes())),
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_headers(name: str) -> None:
    plain, policy = OLD[name]
    assert unpack(plain, {}, Builder(classes_of(mp.policies))) == policy


def test_experiment_files(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text("""
horizon = 9
trials = 2
[actions]
type = "Budget"
total = 3
caps = [2, 2]
[environment]
type = "Stochastic"
distribution = { type = "Bernoulli", mean = [0.2, 0.6] }
[policies]
follows = { type = "BootstrapCTS", change = ["follow", "ignore"] }
ordered = { type = "GenCTS", units = "ordered" }
""")
    assert read(file).policies == {
        "follows, change=follow": mp.BootstrapCTS(memory=mp.Changes()),
        "follows, change=ignore": mp.BootstrapCTS(),
        "ordered": mp.GenCTS(unit_means="ordered"),
    }
