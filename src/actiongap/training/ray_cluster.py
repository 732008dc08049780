"""A Ray cluster to work on: one that is there already, or one started here for the purpose.

A cluster that is started here listens on 127.0.0.1 only. Ray replaces that address by one that other machines reach,
and opens its ports to all of them, unless it believes that it cannot be a cluster: the switch for that is set while it
starts. Its processes end with this one, however it ends.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCAL_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_OBJECT_STORE_BYTES = 400 * 2**20
_ANSWER_S = 10.0


def import_ray() -> Any:
    """The module, or an error that names the extra."""
    try:
        import ray
    except ImportError:
        raise ValueError("this needs Ray: install the extra `ray`, as in: pip install 'actiongap[ray]'") from None
    return ray


def connect(address: str | None, cpus: int | None = None, dashboard: bool = False) -> Any:
    """Join the cluster at the address, or start one here, of so many CPUs in name. Gives the module."""
    ray = import_ray()
    if ray.is_initialized():
        return ray
    try:
        if address is None:
            with local_only(), warnings.catch_warnings():
                # JAX warns of every fork. Ray's are followed by an exec at once, which is safe.
                warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
                ray.init(
                    address="local",  # never one that is there by chance
                    num_cpus=cpus,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    include_dashboard=dashboard,
                    dashboard_host="127.0.0.1",
                    log_to_driver=False,
                    configure_logging=False,
                    _node_ip_address="127.0.0.1",
                )
        else:
            _refuse_silence(address)
            ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if address is None:
            raise ValueError(f"Ray could not be started here ({reason})") from None
        raise ValueError(f"no Ray cluster answers at {address!r} ({reason}); `ray start --head` starts one") from None
    return ray


def _refuse_silence(address: str) -> None:
    """Raise where nobody listens at HOST:PORT: Ray itself would try for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if separator and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()


@contextmanager
def local_only() -> Iterator[None]:
    """While inside, what Ray starts listens on 127.0.0.1 only; and it starts no process before there is work."""
    from ray._private import ray_constants

    # Ray's workers would give way to everything else on the machine, the learner included.
    variables = {_LOCAL_ONLY: "0", "RAY_prestart_worker_first_driver": "0", "RAY_worker_niceness": "0"}
    before = {name: os.environ.get(name) for name in variables}
    is_cluster = ray_constants.ENABLE_RAY_CLUSTER
    os.environ.update(variables)
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = is_cluster
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
