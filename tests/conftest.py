"""Compiled programs are kept between test runs, in pytest's own cache and not in the user's."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config, "cache", None) is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("xla")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
