"""The image layer's C++ library: finding it, and handing its two functions to XLA.

It is built with the package where there is a C++ compiler, and the package works without it. `ACTIONGAP_NATIVE=0` turns
it off; `avx512`, `avx2` or `baseline` in place of 0 asks for one instruction set instead of the processor's best.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax

FORWARD = "actiongap_image_layer_forward"
BACKWARD = "actiongap_image_layer_backward"


class Library(NamedTuple):
    """Whether the library is ready, and a line on which instructions it uses or why it is not."""

    ready: bool
    reason: str


@cache
def library() -> Library:
    """Loads the library and registers it with XLA, once a process."""
    wish = os.environ.get("ACTIONGAP_NATIVE", "1")
    if wish == "0":
        return Library(False, "ACTIONGAP_NATIVE=0")
    path = Path(__file__).with_name("_image_layer.so")
    if not path.exists():
        return Library(False, "the C++ library was not built; install a C++ compiler and reinstall actiongap")
    try:
        loaded = ctypes.CDLL(str(path))
        choose = loaded.actiongap_image_layer_choose
        choose.argtypes, choose.restype = [ctypes.c_char_p], ctypes.c_char_p
        instructions = choose(b"" if wish == "1" else wish.encode())
        if instructions is None:
            return Library(False, f"ACTIONGAP_NATIVE={wish} is not an instruction set of this processor and library")
        for name in (FORWARD, BACKWARD):
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(loaded, name)), platform="cpu")
    except (
        OSError,
        AttributeError,
        RuntimeError,
        ValueError,
    ) as error:  # another processor's file, or another version of jaxlib
        return Library(False, f"the C++ library did not load ({error}); reinstall actiongap")
    return Library(True, instructions.decode())
