"""Compiled programs are cached on disk, so that only the first start of a kind waits for the compiler.

They are in ~/.cache/actiongap/xla (on other systems, the user's folder for caches). The environment variable
ACTIONGAP_CACHE names another folder, or is empty for none. A cache already configured in JAX is left as it is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jax

from actiongap.training import processor

_VARIABLE = "ACTIONGAP_CACHE"


def use_cache() -> Path | None:
    """Turn the cache on, unless told otherwise; gives its folder. A folder that cannot be written to is no error."""
    in_use = jax.config.values["jax_compilation_cache_dir"]
    if in_use is not None:
        return Path(in_use)
    chosen = os.environ.get(_VARIABLE)
    if chosen == "":
        return None
    try:
        # By processor: a home folder may be shared by machines of several kinds.
        folder = (Path(chosen) if chosen else _user_folder() / "actiongap") / "xla" / processor.kind()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # read-only; or a user without a home, as in a container
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder


def _user_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
