"""Without the library that an integration is for, the error names the extra. Runs without it, too."""

from __future__ import annotations

import importlib
import sys

import pytest


def test_stable_baselines3_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "actiongap.integrations.stable_baselines3", raising=False)
    with pytest.raises(ImportError, match=r"actiongap\[sb3\]"):
        importlib.import_module("actiongap.integrations.stable_baselines3")
