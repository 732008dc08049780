"""Value-based reinforcement learning that is robust to estimation error."""

from actiongap.version import __version__
