"""Results of simulations: labelled arrays with their configuration, and their files."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.atomic_files import as_path, write_whole
from multiplay._support.checks import is_list, is_number
from multiplay._support.formatting import Table, between, number
from multiplay._support.html import HasPanel, Panel
from multiplay._support.suggestions import suggestion
from multiplay.errors import InvalidInput
from multiplay.results.intervals import Interval, interval
from multiplay.results.measured import EACH_ROUND, FIXED, MEASURES, QUANTITIES, Measured
from multiplay.types import FloatArray, IntArray
from multiplay.version import __version__

if TYPE_CHECKING:  # imported where they are used: they take as long as all the rest
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from multiplay.results.plots import Bound

FORMAT = 1
ENDING = ".nc"
DAMAGED = "damaged: restore a backup, or run it again."
# The checksum is appended to the file, where HDF5 ignores it. As an attribute of the dataset it
# would be copied along when a part of a result is written to a different file.
MARK = b"\nmultiplay sha256 "
LENGTH = len(MARK) + 64
CHUNK = 1 << 20  # bytes
LARGEST_RATIO = 200  # of decompressed data to the file: Result.save does not compress
COLUMNS = ("ci low", "ci high", "µs per round")
MOST_ROWS_SHOWN, MOST_CURVES_SHOWN = 24, 8  # policies in a notebook
POINTS_SHOWN = 50  # rounds of its figure
SHORT_LIST = 8  # numbers of a setting in a notebook


class Result(HasPanel):
    r"""The regret of every policy, trial and recorded round.

    Regret is pseudo-regret: it is made of the means of the losses, not of the losses that were
    paid. It has the same expectation, and less noise. With :math:`\ell(s)` the means of round s and
    :math:`a(s)` the action that was played, the regret of a trial after t rounds is

    .. math::

        R(t) = \sum_{s=1}^{t} \langle a(s) - a^*, \ell(s) \rangle, \qquad
        a^* = \operatorname*{arg\,min}_{a \in \mathcal{A}}
            \sum_{s=1}^{T} \langle a, \ell(s) \rangle,

    and for rewards the reward lost, with the other sign and the largest sum. ``realised`` is the
    same in the losses that were paid.

    ``simulate`` returns one, ``save`` writes it to a file, and ``Result.load`` or
    ``multiplay.load`` reads it. A notebook shows its summary and its curves.

    Parameters
    ----------
    dataset
        As ``from_arrays`` labels it.

    Attributes
    ----------
    dataset : xarray.Dataset
        What ``multiplay.results.QUANTITIES`` describes, where it means something: ``regret`` and
        ``realised`` (policy, trial, round), ``excess`` (policy, trial, arm), the others (policy,
        trial); configuration, versions and seed as attributes.

    Examples
    --------
    >>> from multiplay import Bernoulli, Budget, GenCTS, RandomAction, Stochastic, simulate
    >>> world, policies = Stochastic(Bernoulli([0.1, 0.9])), {"A": GenCTS(), "B": RandomAction()}
    >>> result = simulate(Budget(1, [1, 1]), world, policies, horizon=100, trials=5)
    >>> dict(result.regret.sizes)
    {'policy': 2, 'trial': 5, 'round': 100}
    >>> result.ranked
    ['A', 'B']
    >>> list(result.summary().columns)
    ['regret', 'ci low', 'ci high', 'µs per round']
    >>> result.compare()["verdict"].tolist()
    ['A lower']
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self.dataset = dataset

    @classmethod
    def from_arrays(
        cls,
        names: list[str],
        arms: Sequence[str],
        rounds: IntArray,
        measured: Measured,
        configuration: Mapping[str, Any],
        sense: str = "min",
        title: str = "",
        marks: Mapping[int, str] | None = None,
        against: str = FIXED,
    ) -> Result:
        """Label the arrays of a finished simulation."""
        import xarray as xr

        dataset = xr.Dataset(
            {
                name: (("policy", "trial", *QUANTITIES[name].dims), array)
                for name, array in measured.items()
                if not np.isnan(array).all()
            },
            coords={
                "policy": names,
                "trial": np.arange(measured["regret"].shape[1]),
                "round": rounds,
                "arm": list(arms),
            },
            attrs={
                "multiplay_format": FORMAT,
                "title": title,
                "marks": json.dumps(marks or {}),
                "configuration": json.dumps(configuration),
                "versions": json.dumps(_versions()),
            },
        )
        dataset["regret"].attrs["long_name"] = MEASURES[sense]
        if against != FIXED:
            dataset["regret"].attrs["against"] = against
        return cls(dataset)

    @property
    def regret(self) -> xr.DataArray:
        """Pseudo-regret, or the expected reward lost, dims (policy, trial, round)."""
        return self.dataset["regret"]

    @property
    def measure(self) -> str:
        """The measure: "regret", or "reward lost" where units bring rewards."""
        return str(self.regret.attrs.get("long_name", "regret"))

    @property
    def against(self) -> str:
        """The comparator of the regret: "fixed", or "each round"."""
        return str(self.regret.attrs.get("against", FIXED))

    @property
    def label(self) -> str:
        """The measure, with its comparator if that is not the best fixed action."""
        against = " against the best action of each round" if self.against == EACH_ROUND else ""
        return f"{self.measure}{against}"

    @property
    def policies(self) -> list[str]:
        """Names of the policies."""
        return [str(name) for name in self.dataset["policy"].values]

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of the run, as plain data."""
        configuration: dict[str, Any] = json.loads(self.dataset.attrs["configuration"])
        return configuration

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the software that ran it."""
        versions: dict[str, str] = json.loads(self.dataset.attrs.get("versions", "{}"))
        return versions

    @property
    def title(self) -> str:
        """The title of the experiment; empty if it has none."""
        return str(self.dataset.attrs.get("title", ""))

    @property
    def marks(self) -> dict[int, str]:
        """Events of some rounds, such as the start of corruption; figures show them."""
        marks: dict[str, str] = json.loads(self.dataset.attrs.get("marks", "{}"))
        return {int(at): text for at, text in marks.items()}

    @property
    def ranked(self) -> list[str]:
        """Names of the policies, the lowest mean final regret first."""
        final = self.regret.isel(round=-1).mean("trial").values
        return [self.policies[place] for place in np.argsort(final, kind="stable")]

    def final(self, policy: str) -> FloatArray:
        """Regret of each trial after the last round."""
        self._check_policy("policy", policy)
        final: FloatArray = self.regret.sel(policy=policy).values[:, -1]
        return final

    def difference(self, policy: str, other: str) -> Interval:
        """Return the final regret of ``policy`` minus that of ``other``, paired by trial.

        Returns
        -------
        Interval
            Its mean and its 95 % interval, for this pair alone.
        """
        return interval(self.final(policy) - self.final(other))

    def compare(self) -> pd.DataFrame:
        r"""Compare every pair of policies on the same trials.

        With m pairs, each interval has the level :math:`1 - 0.05 / m`, so that all of them hold at
        once with 95 % (Bonferroni). The p values :math:`p_{(1)} \le \dots \le p_{(m)}` are adjusted
        by Holm:

        .. math::

            \tilde{p}_{(i)} = \max_{j \le i} \min\{1, (m - j + 1)\, p_{(j)}\}.

        Returns
        -------
        DataFrame
            One row for each pair (A, B): the mean difference of their final regrets, paired by
            trial, its interval, the adjusted p value, and a verdict, which of the two is lower,
            if the interval excludes 0.
        """
        from multiplay.results.comparison import compare

        return compare({policy: self.final(policy) for policy in self.policies})

    def summary(self) -> pd.DataFrame:
        """Return a table: final regret, its 95 % confidence interval, time per trial and round.

        Returns
        -------
        DataFrame
            One row for each policy, in the order in which they were given. The intervals are those
            of ``multiplay.results.interval``.
        """
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
            columns=[self.measure, *COLUMNS],
        )

    def quantities(self) -> pd.DataFrame:
        """Return a table of further measurements: means over the trials, for each policy.

        Its columns are those of ``multiplay.results.QUANTITIES`` that are averaged, as far as the
        result has them.
        """
        import pandas as pd

        policies = self.dataset["policy"]
        found = {
            name: self.dataset[name].mean("trial").broadcast_like(policies).values
            for name, quantity in QUANTITIES.items()
            if quantity.averaged and name in self.dataset
        }
        return pd.DataFrame(found, index=pd.Index(self.policies, name="policy"))

    def to_dataframe(self) -> pd.DataFrame:
        """Return the regret as a long table: policy, trial, round, regret."""
        return self.regret.to_dataframe().reset_index()

    def plot(
        self,
        ax: Axes | str | Path | None = None,
        title: str | None = None,
        *,
        policies: Sequence[str] | None = None,
        trials: bool = False,
        x: str = "linear",
        y: str = "linear",
        measure: str = "regret",
        bounds: Mapping[str, Bound] | None = None,
        marks: bool = True,
    ) -> Figure:
        """Draw the mean regret of every policy with its 95 % confidence band.

        The legend has the policy that ends lowest first. Where a band is so wide that it would hide
        the curves, the axis is cut to the means, and the figure says so.

        Parameters
        ----------
        ax
            Axes to draw into, or the file to save the figure to, such as "regret.png"; a new figure
            if not given.
        title
            The title of the figure; that of the experiment if not given.
        policies
            Names of the policies to draw; all if not given. Each keeps its colour.
        trials
            Draw every single trial too, thinly.
        x, y
            "linear" or "log". Against a log x, logarithmic regret is a straight line; a log y
            shows what is positive, and its label says if that is not all.
        measure
            "regret", the pseudo-regret, or "realised", the regret in the losses that were paid.
        bounds
            Bounds of the theory, by name: objects with a ``curve(rounds)``, such as
            ``multiplay.theory.lower_bound(...)``.
        marks
            Mark events of the environment, such as the first round with corrupted losses.

        Returns
        -------
        Figure
            The matplotlib figure.
        """
        from multiplay.results.plots import plot_regret, save_figure

        path = ax if isinstance(ax, str | PathLike) else None
        chosen = self._chosen(policies)
        figure = plot_regret(
            self.curves(measure).isel(policy=chosen),
            None if isinstance(ax, str | PathLike) else ax,
            title or self.title,
            trials,
            x,
            y,
            bounds=bounds,
            marks=self.marks if marks else None,
            numbers=chosen,
        )
        if path is not None:
            save_figure(figure, path)
        return figure

    def _chosen(self, policies: Sequence[str] | None) -> list[int]:
        """Return the positions of the policies with these names; of all policies for None."""
        if policies is None:
            return list(range(len(self.policies)))
        names = [policies] if isinstance(policies, str) else policies
        if not is_list(names) or len(names) == 0:
            raise InvalidInput(
                "policies",
                "a list of names",
                repr(policies),
                f"Give some of {', '.join(self.policies)}, or leave it out for all.",
            )
        for name in names:
            self._check_policy("policies", name)
        return [self.policies.index(name) for name in dict.fromkeys(names)]

    def _check_policy(self, argument: str, name: object) -> None:
        """Raise ``InvalidInput`` unless there is a policy of this name."""
        if name not in self.policies:
            near = suggestion(name, self.policies).strip()
            expected = f"one of {', '.join(self.policies)}"
            raise InvalidInput(argument, expected, repr(name), near or "Check the spelling.")

    def curves(self, measure: str = "regret") -> xr.DataArray:
        """Return the "regret" or the "realised" regret, dims (policy, trial, round)."""
        if measure == "regret":
            return self.regret
        if measure != "realised":
            raise InvalidInput(
                "measure", "regret or realised", repr(measure), "Choose one of the two."
            )
        if measure not in self.dataset:
            raise InvalidInput(
                "measure",
                "regret",
                "realised, which was not measured",
                "Use measure='regret': the objective of this set is not a sum of losses of units.",
            )
        names = {**self.regret.attrs, "long_name": f"realised {self.measure}"}
        return self.dataset["realised"].assign_attrs(names)

    def save(self, path: str | Path) -> None:
        """Write everything to one netCDF file, with a checksum that ``load`` verifies.

        Parameters
        ----------
        path
            The file, whose name ends with ``.nc``. For a CSV file of the regret, write
            ``result.to_dataframe().to_csv(path)``.
        """
        if as_path("path", path).suffix != ENDING:
            raise InvalidInput(
                "path",
                f"a file name that ends with {ENDING} (netCDF)",
                repr(str(path)),
                f"Add {ENDING}; for a CSV file, use result.to_dataframe().to_csv(path).",
            )
        write_whole(path, lambda draft: _write(self.dataset, draft))

    @staticmethod
    def load(path: str | Path) -> Result:
        """Read a file that ``save`` wrote; the same as ``multiplay.load``.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Result
            The saved result. A file in which bytes have changed is refused.
        """
        return load(path)

    def __repr__(self) -> str:
        what = "" if self.against == FIXED else f": {self.label}"
        table = self.summary().to_string(float_format="{:.2f}".format)
        return f"<multiplay.Result{what}>\n{table}"

    def _panel(self) -> Panel:
        """Return what was simulated, the final regret of the policies, and their curves."""
        from multiplay.results.svg import curves, thinned

        plain = self.configuration
        facts = {
            "set": _outline(plain.get("actions")),
            "environment": _outline(plain.get("environment")),
            "rounds": str(int(self.dataset["round"][-1])),
            "trials": str(self.regret.sizes["trial"]),
            "seed": str(plain.get("seed")),
        }
        table = regret_table(self)
        hidden = len(table.rows) - MOST_ROWS_SHOWN
        if hidden > 0:
            more = f"And {hidden} more policies, with a larger {self.measure}. {table.note}"
            table = table._replace(rows=table.rows[:MOST_ROWS_SHOWN], note=more.strip())
        regret = thinned(self.regret, POINTS_SHOWN, early=0)
        final = regret.isel(round=-1).mean("trial").values
        lowest = np.sort(np.argsort(final, kind="stable")[:MOST_CURVES_SHOWN])
        regret = regret.isel(policy=lowest)
        # ids in the figure: equal for equal figures, different for two figures on a page
        content = regret.values.tobytes() + repr(self.policies).encode()
        prefix = f"multiplay-{hashlib.sha256(content).hexdigest()[:12]}-"
        svg = curves(regret, self.marks, "linear", prefix)
        few = len(lowest) < len(final)
        note = f"The {len(lowest)} policies that end lowest." if few else ""
        return Panel(self.title or "Result", facts, (table,), svg, note)


def regret_table(result: Result) -> Table:
    """Return the final regret of every policy as text, the lowest first."""
    rows = [
        [str(policy), number(mean), between(low, high), number(time)]
        for policy, mean, low, high, time in result.summary().loc[result.ranked].itertuples()
    ]
    columns = ["policy", f"final {result.measure}", "95 % interval", "µs per trial and round"]
    note = ""
    if "corruption" in result.dataset:
        note = f"corruption C = {float(result.dataset['corruption'].mean()):.0f} on average"
    return Table(f"Final {result.label}", columns, rows, note)


def _outline(plain: Any) -> str:
    """Return plain data without its large parts: short settings, and names of classes.

    Examples
    --------
    >>> _outline({"type": "Budget", "total": 2, "caps": [1, 1, 3], "names": ["a", "b", "c"]})
    'Budget(total=2, caps=[1, 1, 3])'
    >>> _outline({"type": "Stochastic", "losses": {"type": "Uniform", "low": [0.1] * 50}})
    'Stochastic(losses=Uniform)'
    """
    if not isinstance(plain, dict):
        return "unknown" if plain is None else str(plain)
    short = {name: value for name, value in plain.items() if _is_short(value)}
    kind = str(short.pop("type", ""))
    settings = [
        f"{name}={value.get('type', '...') if isinstance(value, dict) else value}"
        for name, value in short.items()
    ]
    return f"{kind}({', '.join(settings)})" if settings else kind


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= SHORT_LIST and all(isinstance(one, int) for one in value)
    return value is not None and value is not False


def load(path: str | Path) -> Result:
    """Read a file that ``Result.save`` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Result
        The saved result. A file in which bytes have changed is refused.

    Examples
    --------
    >>> load("missing.nc")
    Traceback (most recent call last):
    ...
    multiplay.errors.InvalidInput: path: expected a file written by Result.save, got missing.nc \
(no such file). Check the path.
    """
    expected, path = "a file written by Result.save", as_path("path", path)
    if not path.is_file():
        raise InvalidInput("path", expected, f"{path} (no such file)", "Check the path.")
    try:
        dataset = None if _is_damaged(path) else _read(path)
    except Exception as error:  # a damaged file may raise anything
        reason = " ".join(str(error).split())
        hint = f"If Result.save wrote it, it is {DAMAGED}"
        raise InvalidInput("path", expected, f"{path} ({reason})", hint) from None
    if dataset is None:
        raise InvalidInput(
            "path", expected, f"{path}, in which bytes have changed", f"The file is {DAMAGED}"
        )
    found: Any = dataset.attrs.get("multiplay_format")
    if not is_number(found) or not {"regret", "seconds"} <= set(dataset):
        raise InvalidInput(
            "path", expected, f"{path}, a different netCDF file", "Open it with xarray."
        )
    if found > FORMAT:
        raise InvalidInput(
            "path", f"format {FORMAT} or older", f"{path} of format {found}", "Update multiplay."
        )
    return Result(dataset)


def _read(path: Path) -> xr.Dataset:
    import h5py  # type: ignore[import-untyped]
    import xarray as xr

    with h5py.File(path, "r") as file:  # h5netcdf would leave a traceback when it is collected
        dict(file.attrs)
        size = sum(getattr(item, "nbytes", 0) for item in file.values())
    if size > LARGEST_RATIO * path.stat().st_size:
        raise ValueError(f"{size} bytes when it is decompressed")
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        dataset = opened.load()
    if "multiplay_format" in dataset.attrs:
        json.loads(dataset.attrs["configuration"])
        _ = Result(dataset).marks
    return dataset


def _write(dataset: xr.Dataset, path: Path) -> None:
    dataset.to_netcdf(path, engine="h5netcdf")
    _seal(path)


def _versions() -> dict[str, str]:
    ours = {"python": platform.python_version(), "multiplay": __version__}
    return ours | {name: version(name) for name in ("numpy", "numba", "scipy")}


def _seal(path: Path) -> None:
    """Append the checksum of the whole file."""
    digest = _sha256(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(MARK + digest)


def _is_damaged(path: Path) -> bool:
    """Return whether a file differs from its checksum; False for a file without one."""
    size = path.stat().st_size - LENGTH
    if size < 0:
        return False
    with path.open("rb") as file:
        file.seek(size, os.SEEK_SET)
        tail = file.read()
    return tail.startswith(MARK) and tail != MARK + _sha256(path, size)


def _sha256(path: Path, size: int) -> bytes:
    """Return the SHA-256 of the first ``size`` bytes, as text."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(min(CHUNK, size)):
            sha.update(chunk)
            size -= len(chunk)
    return sha.hexdigest().encode()
