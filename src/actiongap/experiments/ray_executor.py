"""Runs on a Ray cluster, or on a Ray started here for the purpose: `compare ... --on ray [--address ...]`.

A run is a Ray task on one core. It works in its folder if it can see it, as when all nodes share a file system: then a
run whose node is lost resumes elsewhere from its checkpoint. Otherwise it is sent the folder's files, works in a
temporary folder, and sends everything back at its end.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

from actiongap.experiments import worker
from actiongap.experiments.executors import RETRIES, Ended, not_done
from actiongap.experiments.grid import RunSpec
from actiongap.training import one_core, ray_cluster

Files = dict[str, bytes]
_STOP_S = 60.0


class RayCluster:
    """A task for each run. Ray decides where and when, and starts a task again that was lost with its process."""

    def __init__(self, address: str | None = None, retries: int = RETRIES) -> None:
        self._ray = ray_cluster.connect(address)
        self._retries = retries
        self._task = self._ray.remote(
            num_cpus=1,
            max_retries=retries,
            max_calls=1,  # a process for each run, as on this machine's cores
            runtime_env={"env_vars": one_core.variables()},
        )(train_where_seen)
        self._references: dict[Any, tuple[RunSpec, Path]] = {}
        self._tokens: set[Path] = set()
        self._token_name = f".seen-{uuid.uuid4().hex}"

    @property
    def slots(self) -> int:
        return 10**6  # Ray keeps the queue

    def start(self, spec: RunSpec, folder: Path) -> None:
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        token = folder.parent / self._token_name
        token.touch()
        self._tokens.add(token)
        files = _read(folder)
        reference = self._task.remote(spec.as_json(), str(folder), str(token), files)
        self._references[reference] = spec, folder

    def ended(self) -> list[Ended]:
        if not self._references:
            return []
        ready, _ = self._ray.wait(list(self._references), num_returns=len(self._references), timeout=0)
        over = []
        for reference in ready:
            spec, folder = self._references.pop(reference)
            over.append(Ended(spec, self._collect(reference, folder) or not_done(spec, folder)))
        return over

    def running(self) -> list[RunSpec]:
        return [spec for spec, _ in self._references.values()]

    def stop(self) -> None:
        references = list(self._references)
        for reference in references:
            self._ray.cancel(reference, force=False)
        if references:
            self._ray.wait(references, num_returns=len(references), timeout=_STOP_S)
        self._references.clear()
        for token in self._tokens:
            token.unlink(missing_ok=True)

    def _collect(self, reference: Any, folder: Path) -> str | None:
        exceptions = self._ray.exceptions
        try:
            files = self._ray.get(reference)
        except exceptions.RayTaskError as error:
            return str(error.cause)
        except (exceptions.WorkerCrashedError, exceptions.NodeDiedError, exceptions.OutOfMemoryError) as error:
            return f"it died {self._retries + 1} times, and is given up ({type(error).__name__})"
        except exceptions.RayError as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
        _write(files, folder)
        return None


def train_where_seen(spec: dict[str, Any], folder: str, token: str, files: Files) -> Files:
    """In the folder, if the token beside it is seen from here; else in a temporary one, whose files are returned."""
    run = RunSpec.from_json(spec)
    if Path(token).exists():
        worker.train(run, Path(folder))
        return {}
    with tempfile.TemporaryDirectory() as temporary:
        there = Path(temporary) / run.name
        _write(files, there)
        worker.train(run, there)
        return {name: content for name, content in _read(there).items() if name != "lock"}


def _read(folder: Path) -> Files:
    """All files in and below the folder, also those of trackers; by their paths from there."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _write(files: Files, folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
