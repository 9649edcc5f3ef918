"""Reports: tables as text and HTML pages about results and studies."""

from multiplay.reports.page import report

__all__ = ["report"]
