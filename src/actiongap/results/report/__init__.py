"""A report on a comparison: a page that works offline, tables and curves as files, figures for a text."""

from actiongap.results.headline import headline
from actiongap.results.report.page import write

__all__ = ["headline", "write"]
