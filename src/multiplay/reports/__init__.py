"""Reports: results in tables of words and on a page."""

from multiplay.reports.page import report

__all__ = ["report"]
