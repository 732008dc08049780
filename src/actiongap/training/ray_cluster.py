"""A Ray cluster to work on: an existing one, or one started here for the purpose.

A cluster that is started here listens on 127.0.0.1 only. Ray replaces that address by one that other machines reach,
and opens its ports to all of them, unless it believes that it cannot be a cluster: the switch for that is set while it
starts. Its processes end with this one, however it ends.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LOCAL_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_OBJECT_STORE_BYTES = 400 * 2**20
_ANSWER_S = 10.0

_left: set[Path] = set()
"""Folders of what Ray started here. Its processes end with this one at the latest: so they are removed last of all."""


@atexit.register  # before Ray is imported: what was registered first is called last
def _remove_left() -> None:
    for folder in _left:
        shutil.rmtree(folder, ignore_errors=True)


def import_ray() -> Any:
    """The module, or an error that names the extra."""
    try:
        import ray
    except ImportError:
        raise ValueError("this needs Ray: install the extra `ray`, as in: pip install 'actiongap[ray]'") from None
    return ray


class ClusterLostError(RuntimeError):
    """Ray itself is gone, and with it all who took part."""


@contextmanager
def connected(address: str | None, cpus: int | None = None, dashboard: bool = False) -> Iterator[Any]:
    """While inside, Ray is there: the cluster at the address, or one started here, of so many CPUs in name.

    Gives the module. What was started here is gone afterwards, its folder included.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    connect(address, cpus, dashboard)
    folder = None if address is not None else _session_folder()
    try:
        yield ray
    finally:
        if is_lost():
            _end_processes()
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def connect(address: str | None, cpus: int | None = None, dashboard: bool = False) -> Any:
    """Join the cluster at the address, or start one here, of so many CPUs in name. Gives the module."""
    ray = import_ray()
    if ray.is_initialized():
        return ray
    try:
        if address is None:
            _silence()
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
    except Exception as error:
        # Ray raises what it likes here; whatever it is, Ray is not there.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if address is None:
            raise ValueError(f"Ray could not be started here ({reason}); is the machine very busy? Try again") from None
        raise ValueError(f"no Ray cluster answers at {address!r} ({reason}); `ray start --head` starts one") from None
    finally:
        if address is None:
            _left.update(_folders_of_this_process())
    return ray


def is_lost() -> bool:
    """Whether a process has ended that the cluster started here cannot do without. Ray reports the others itself."""
    return any(process.poll() is not None for process in _vital_processes())


def refuse_loss() -> None:
    """Raise where Ray is gone. It would itself end this process a minute later, with all that it holds."""
    if is_lost():
        raise ClusterLostError("Ray itself ended (its control store or its node), along with all actors")


def _node() -> Any:
    """Ray's record of the processes that were started here; None if there are none."""
    from ray._private import worker

    return worker._global_node


def _vital_processes() -> list[Any]:
    node = _node()
    started = {} if node is None else node.all_processes
    return [each.process for kind in ("raylet", "gcs_server") for each in started.get(kind, ())]


def _end_processes() -> None:
    """End what is left of a cluster that cannot be asked to, and have Ray forget it: it would look for it again."""
    from ray._private import worker

    if worker._global_node is not None:
        worker._global_node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        worker._global_node = None


def _silence() -> None:
    """Have Ray not print what its processes wrote at their end, screens of it: what matters is reported here."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *arguments, **named: None


def _folders_of_this_process() -> Iterator[Path]:
    """Those that Ray makes for what a process starts; their names end in its number."""
    above = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("RAY_TMP_DIR") or tempfile.gettempdir(), "ray")
    return above.glob(f"session_*_{os.getpid()}")


def _session_folder() -> str | None:
    node = _node()
    return None if node is None else node.get_session_dir_path()


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
