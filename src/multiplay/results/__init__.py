"""Results: what was measured, with intervals, comparisons and figures. They know no policy."""

from multiplay.results.intervals import Interval, interval
from multiplay.results.measured import QUANTITIES, Measured, Quantity
from multiplay.results.result import Result, load

__all__ = ["QUANTITIES", "Interval", "Measured", "Quantity", "Result", "interval", "load"]
