"""A report on a comparison: a page that works offline, tables and curves as files, figures for a text."""

from actiongap.analysis.headline import headline
from actiongap.analysis.report.page import write

__all__ = ["headline", "write"]
