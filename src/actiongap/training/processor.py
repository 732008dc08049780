"""Which processor this is: the bits of a run may depend on it, and compiled programs do."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

_DETAILS = Path("/proc/cpuinfo")
_BLAS_KERNELS = {"SKYLAKEX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "HASWELL": {"avx2", "fma"}}
"""Sets of OpenBLAS's kernels for x86 that differ in their bits, and the instructions that each needs."""


def name() -> str:
    """As its maker calls it, where the system tells that; else its architecture. On x86 also its generation, since a
    virtual machine may keep the full name to itself."""
    details = _details()
    models = {value for key, value in details if key == "model name"}
    known = [", ".join(sorted(models)) or platform.processor() or platform.machine()]
    for key, word in (("cpu family", "family"), ("model", "model")):
        known += [f"{word} {value}" for value in sorted({value for found, value in details if found == key})]
    return ", ".join(known)


def blas_kernels() -> tuple[str, ...]:
    """Those sets of OpenBLAS's kernels that this processor can run, as its variable OPENBLAS_CORETYPE calls them."""
    flags = {flag for key, value in _details() if key == "flags" for flag in value.split()}
    return tuple(kernels for kernels, needed in _BLAS_KERNELS.items() if needed <= flags)


def kind() -> str:
    """A short word, the same for processors with the same instructions."""
    lines = {f"{key}: {value}" for key, value in _details() if key in ("model name", "flags", "Features")}
    text = "\n".join([platform.machine(), platform.processor(), *sorted(lines)])
    return f"{platform.machine()}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"


def _details() -> list[tuple[str, str]]:
    """What Linux tells of every core; elsewhere nothing."""
    try:
        lines = _DETAILS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    parts = (line.partition(":") for line in lines)
    return [(key.strip(), value.strip()) for key, _, value in parts]
