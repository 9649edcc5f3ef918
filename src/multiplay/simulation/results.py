"""What a simulation gives: labelled arrays, with everything that made them."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay.arrays import FloatArray, IntArray
from multiplay.errors import InvalidInput
from multiplay.files import write_whole
from multiplay.simulation.intervals import Interval, interval

if TYPE_CHECKING:  # imported where they are used: they take as long as all the rest
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMAT = 1
MEASURES = {"min": "regret", "max": "reward lost"}
COLUMNS = ("ci low", "ci high", "µs per round")


class Result:
    """The regret of every policy, trial and recorded round.

    Attributes
    ----------
    dataset : xarray.Dataset
        ``regret`` (policy, trial, round), ``seconds`` (policy, trial), and, where it means
        something, ``corruption`` (trial); configuration, versions and seed as attributes.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self.dataset = dataset

    @classmethod
    def from_arrays(
        cls,
        names: list[str],
        rounds: IntArray,
        regret: FloatArray,
        seconds: FloatArray,
        corruption: FloatArray | None,
        configuration: Mapping[str, Any],
        sense: str = "min",
    ) -> Result:
        """Label the arrays of a finished simulation."""
        import xarray as xr

        dataset = xr.Dataset(
            {
                "regret": (("policy", "trial", "round"), regret),
                "seconds": (("policy", "trial"), seconds),
            },
            coords={"policy": names, "trial": np.arange(regret.shape[1]), "round": rounds},
            attrs={
                "multiplay_format": FORMAT,
                "configuration": json.dumps(configuration),
                "versions": json.dumps(_versions()),
            },
        )
        dataset["regret"].attrs["long_name"] = MEASURES[sense]
        if corruption is not None:
            dataset["corruption"] = ("trial", corruption)
        return cls(dataset)

    @property
    def regret(self) -> xr.DataArray:
        """Pseudo-regret, or the expected reward lost, dims (policy, trial, round)."""
        return self.dataset["regret"]

    @property
    def policies(self) -> list[str]:
        """Names of the policies."""
        return [str(name) for name in self.dataset["policy"].values]

    @property
    def configuration(self) -> dict[str, Any]:
        """What was run, as plain data."""
        configuration: dict[str, Any] = json.loads(self.dataset.attrs["configuration"])
        return configuration

    def final(self, policy: str) -> FloatArray:
        """Regret of each trial after the last round."""
        if policy not in self.policies:
            raise InvalidInput(
                "policy", f"one of {', '.join(self.policies)}", repr(policy), "Check the spelling."
            )
        final: FloatArray = self.regret.sel(policy=policy).values[:, -1]
        return final

    def difference(self, policy: str, other: str) -> Interval:
        """Final regret of ``policy`` minus that of ``other``, paired by trial."""
        return interval(self.final(policy) - self.final(other))

    def summary(self) -> pd.DataFrame:
        """Return a table: final regret, its 95 % confidence interval, time per trial and round."""
        import pandas as pd

        horizon = int(self.dataset["round"][-1])
        rows = []
        for policy in self.policies:
            mean, low, high = interval(self.final(policy))
            seconds = float(self.dataset["seconds"].sel(policy=policy).mean())
            rows.append((mean, low, high, 1e6 * seconds / horizon))
        return pd.DataFrame(
            rows,
            index=pd.Index(self.policies, name="policy"),
            columns=[self.regret.attrs.get("long_name", "regret"), *COLUMNS],
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Return the regret as a long table: policy, trial, round, regret."""
        return self.regret.to_dataframe().reset_index()

    def plot(self, ax: Axes | None = None, title: str | None = None) -> Figure:
        """Draw the mean regret of every policy with its 95 % confidence band."""
        from multiplay.simulation.plots import plot_regret

        return plot_regret(self.regret, ax, title)

    def save(self, path: str | Path) -> None:
        """Write everything to one netCDF file."""
        write_whole(path, lambda draft: _write(self.dataset, draft))

    def __repr__(self) -> str:
        return f"<multiplay.Result>\n{self.summary().to_string(float_format='{:.2f}'.format)}"


def load(path: str | Path) -> Result:
    """Read what ``Result.save`` wrote.

    Examples
    --------
    >>> load("missing.nc")
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: path: expected a file written by Result.save, got missing.nc \
(no such file). Check the path.
    """
    import xarray as xr

    expected = "a file written by Result.save"
    if not Path(path).is_file():
        raise InvalidInput("path", expected, f"{path} (no such file)", "Check the path.")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            dataset = opened.load()
    except (OSError, ValueError) as error:
        raise InvalidInput("path", expected, f"{path} ({error})", "Run it again.") from None
    found = dataset.attrs.get("multiplay_format")
    if found is None or "regret" not in dataset:
        raise InvalidInput(
            "path", expected, f"{path}, some other netCDF file", "Open it in xarray."
        )
    if found > FORMAT:
        raise InvalidInput(
            "path", f"format {FORMAT} or older", f"format {found}", "Update multiplay."
        )
    return Result(dataset)


def _write(dataset: xr.Dataset, path: Path) -> None:
    dataset.to_netcdf(path, engine="h5netcdf")


def _versions() -> dict[str, str]:
    import multiplay

    ours = {"python": platform.python_version(), "multiplay": multiplay.__version__}
    return ours | {name: version(name) for name in ("numpy", "numba", "scipy")}
