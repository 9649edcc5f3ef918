"""Plays losses from a file with linear bandits of calvera; runs where calvera is installed.

Command line: ``python calvera_player.py FOLDER``; prints regret and milliseconds a round as JSON.
"""

import json
import logging
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

torch: Any = import_module("torch")  # not a dependency, so type checkers do not find it
LinearTSBandit: Any = import_module("calvera.bandits.linear_ts_bandit").LinearTSBandit
LinearUCBBandit: Any = import_module("calvera.bandits.linear_ucb_bandit").LinearUCBBandit
TopKSelector: Any = import_module("calvera.utils.selectors").TopKSelector
pl: Any = import_module("lightning.pytorch")


def played(kind: Any, phi: Any, means: Any, units: Any, chosen: int) -> tuple[float, list[float]]:
    """Return the regret of one trial, and the seconds of its rounds."""
    bandit = kind(n_features=phi.shape[2], selector=TopKSelector(k=chosen))
    regret, taken = 0.0, []
    for now, mean, loss in zip(phi, means, units, strict=True):
        contexts = torch.tensor(now[None], dtype=torch.float32)
        started = time.perf_counter()
        one_hot, _ = bandit(contexts)
        arms = one_hot[0].nonzero()[:, 0]
        rewards = torch.tensor(1 - loss, dtype=torch.float32)[arms]
        bandit.record_feedback(contexts[0, arms][:, None], rewards[:, None])
        trainer = pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        trainer.fit(bandit)
        taken.append(time.perf_counter() - started)
        regret += float(mean[arms.numpy()].sum() - np.sort(mean)[:chosen].sum())
    return regret, taken


def main() -> None:
    """Play all trials with both bandits."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    given = np.load(Path(sys.argv[1]) / "losses.npz")
    found = {}
    for name, kind in {"CombLinTS": LinearTSBandit, "CombLinUCB": LinearUCBBandit}.items():
        trials = [
            played(kind, phi, means, units, int(given["chosen"]))
            for phi, means, units in zip(given["phi"], given["means"], given["units"], strict=True)
        ]
        seconds = median(s for _, taken in trials for s in taken)
        found[name] = [regret for regret, _ in trials], 1000 * seconds
    print(json.dumps(found))


if __name__ == "__main__":
    main()
