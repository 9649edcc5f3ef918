"""Results: measurements with intervals, comparisons and figures; independent of policies."""

from multiplay.results.intervals import Interval, interval
from multiplay.results.measured import QUANTITIES, Measured, Quantity
from multiplay.results.result import Result, load

__all__ = ["QUANTITIES", "Interval", "Measured", "Quantity", "Result", "interval", "load"]
