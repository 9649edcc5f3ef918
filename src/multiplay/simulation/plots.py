"""Figures of regret."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from xarray import DataArray

from multiplay.simulation.intervals import LEVEL, student

# Okabe and Ito's colours, told apart by every kind of eye; the dashes survive a grey print
STYLES = [
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", (0, (1, 1))),
    ("#E69F00", (0, (5, 1))),
    ("#56B4E9", (0, (3, 1, 1, 1))),
    ("#000000", (0, (5, 3, 1, 3))),
]

LABELS = {"regret": "cumulative pseudo-regret", "reward lost": "cumulative reward lost"}


def plot_regret(regret: DataArray, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw the mean over trials with its confidence band, into ``ax`` or a figure of its own."""
    if ax is None:
        ax = Figure(figsize=(6.4, 4.2), layout="constrained").add_subplot()
    trials, policies = regret.sizes["trial"], regret["policy"].values
    rounds = regret["round"].values
    lines = []
    for number, policy in enumerate(policies):
        colour, dashes = STYLES[number % len(STYLES)]
        curve = regret.sel(policy=policy)
        mean = curve.mean("trial").values
        lines += ax.plot(rounds, mean, color=colour, linestyle=dashes, linewidth=1.8)
        if trials > 1:
            error = curve.std("trial", ddof=1).values / trials**0.5
            margin = student(trials) * error
            ax.fill_between(rounds, mean - margin, mean + margin, color=colour, alpha=0.2, lw=0)
    ax.set_xlabel("round")
    ax.set_ylabel(LABELS[regret.attrs.get("long_name", "regret")])
    ax.set_xlim(0, rounds[-1])
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    band = f"mean of {trials} trials, {LEVEL:.0%} confidence band" if trials > 1 else "one trial"
    ax.legend(
        lines,
        policies,
        title=band,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=min(4, len(policies)),
        frameon=False,
        fontsize=9,
        title_fontsize=8,
    )
    if title:
        ax.set_title(title, loc="left", fontsize=11)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure
