"""For all tests: compiled programs are kept between runs, in pytest's own cache; no example has a deadline."""

from __future__ import annotations

import os

import hypothesis
import pytest

# How long an example takes says nothing about whether it is right: a busy machine must not fail a test.
hypothesis.settings.register_profile("actiongap", deadline=None)
hypothesis.settings.load_profile("actiongap")


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config, "cache", None) is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("xla")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
