"""Tables for the screen."""

from rich.table import Table

from multiplay.simulation import Result


def summary_table(title: str, result: Result) -> Table:
    """Return the final regret of every policy, for the screen."""
    summary = result.summary()
    measure = summary.columns[0]
    table = Table(title=title, title_justify="left")
    table.add_column("policy")
    for column in (f"final {measure}", "95 % interval", "µs per trial and round"):
        table.add_column(column, justify="right")
    for policy, row in summary.iterrows():
        table.add_row(
            str(policy),
            f"{row[measure]:.1f}",
            f"{row['ci low']:.1f} to {row['ci high']:.1f}",
            f"{row['µs per round']:.1f}",
        )
    if "corruption" in result.dataset:
        level = float(result.dataset["corruption"].mean())
        table.caption = f"corruption C = {level:.0f} on average"
    return table
