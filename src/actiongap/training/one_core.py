"""A process that keeps to one core, so that as many can run beside each other as there are cores."""

from __future__ import annotations

import os

VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    # The size of XLA's own pool of threads. With more than one, it cuts an update's loops into parts for all cores, for
    # a fifth more processor time. The bits are the same, but for the convolutions of `learning.convolution`.
    "NPROC": "1",
}
"""To be in a process's environment before it imports JAX."""


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """How many XLA has in this process on a CPU."""
    given = os.environ.get("NPROC", "")
    return int(given) if given.isdigit() and int(given) else available_cores()


def variables() -> dict[str, str]:
    """What another process is to be started with. The compiler's flags of this one are its flags, too."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    if VARIABLES["XLA_FLAGS"] not in flags:
        flags.append(VARIABLES["XLA_FLAGS"])
    return {**VARIABLES, "XLA_FLAGS": " ".join(flags)}


def environment_variables() -> dict[str, str]:
    """Those of this process, and what keeps another one to one core."""
    return {**os.environ, **variables()}
