"""A checkpoint is data: arrays and JSON in one file, checked when written and when read, never pickle.

    magic (8 bytes) | format version (4) | BLAKE2b of the rest (32) | header length (8) | header (JSON) | array bytes

The first three parts keep their place in every version of the format, so that damage can be distinguished from a newer
format. The header names each array with its type, shape and offset, and carries the caller's metadata.

A new checkpoint is written beside the old one, flushed to disk and read back; then the old one becomes `.previous` and
the new one takes its name. Whatever moment a process is killed at, a whole checkpoint is left. Arrays are written and
read in pieces, hashed on the way, so that no second copy of them all is ever in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np

_MAGIC = b"ACTNGAP\n"
_VERSION = 1
_PREFIX = struct.Struct("<8sI32s")
_LENGTH = struct.Struct("<Q")
_PIECE = 4 * 2**20
_MOST_HEADER_BYTES = 64 * 2**20

_written: dict[Path, tuple[int, ...]] = {}
"""The checkpoints that this process wrote and read back, as they were then: they need not be checked again."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be written, or cannot be used."""


class CheckpointWarning(UserWarning):
    """A checkpoint was damaged, and the previous one was used."""


class _DamagedError(CheckpointError):
    """Bytes that are not a whole checkpoint."""


def exists(path: str | Path) -> bool:
    """Whether there is a checkpoint, or a previous one, at `path`."""
    return Path(path).exists() or previous(path).exists()


def previous(path: str | Path) -> Path:
    """Where the checkpoint before the one at `path` is kept."""
    return Path(path).with_name(Path(path).name + ".previous")


def save(
    path: str | Path,
    tree: Any,
    metadata: dict[str, Any],
    more: Mapping[str, Any] | None = None,
    keep_previous: bool = True,
) -> None:
    """Write a pytree of arrays and some JSON; the checkpoint that was at `path` is kept as the previous one.

    `more` are further trees, by a prefix that sets the names of their arrays apart from those of the first.
    """
    path = Path(path)
    leaves = [pair for prefix, each in {"": tree, **(more or {})}.items() for pair in _named_leaves(each, prefix)]
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)  # a leftover, or a link that somebody put there
        with open(partial, "xb+") as file:
            digest = _write(file, leaves, metadata)
            file.flush()
            os.fsync(file.fileno())
            file.seek(_PREFIX.size)
            if _digest_of(file, _VERSION) != digest:
                raise OSError("what was read back is not what was written")
    except OSError as error:
        partial.unlink(missing_ok=True)
        remaining = "the last good one is kept" if exists(path) else "there is none yet"
        raise CheckpointError(
            f"could not write the checkpoint {path}: {error.strerror or error}; {remaining}"
        ) from error
    # A damaged checkpoint must never take the place of a good previous one.
    if keep_previous and path.exists() and _is_whole(path):
        os.replace(path, previous(path))
    os.replace(partial, path)
    _written[path.absolute()] = _signature(path)
    _flush_folder(path.parent)


def load_metadata(path: str | Path) -> dict[str, Any]:
    """The metadata alone, of the checkpoint that `read` would read."""
    return read(path, lambda name: False)[1]


def read(
    path: str | Path, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays whose names are wanted, by name, and the metadata. The others are checked, but take no memory.

    Where the checkpoint is damaged or missing, those of the previous one, with a `CheckpointWarning`.
    """
    path = Path(path)
    if not exists(path):
        raise CheckpointError(f"there is no checkpoint at {path}")
    try:
        return _read(path, wanted)
    except _DamagedError as damage:
        if not previous(path).exists():
            raise
        try:
            result = _read(previous(path), wanted)
        except _DamagedError as second:
            raise CheckpointError(f"{damage}; and {second}") from second
        warnings.warn(f"{damage}; the previous one is used instead", CheckpointWarning, stacklevel=3)
        return result


def arrange(arrays: dict[str, np.ndarray], like: Any, path: str | Path, prefix: str = "") -> Any:
    """The arrays in the structure of `like`, whose names (after the prefix), types and shapes they must have."""
    wanted = _named_leaves(like, prefix)
    found = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
    expected = {name: (np.dtype(leaf.dtype).name, tuple(leaf.shape)) for name, leaf in wanted}
    if found != expected:
        name = next(name for name in [*expected, *found] if found.get(name) != expected.get(name))
        raise CheckpointError(
            f"{path} does not hold the expected arrays: {name} is {_describe(found.get(name))} in the file, "
            f"and should be {_describe(expected.get(name))}"
        )
    return jax.tree.unflatten(jax.tree.structure(like), [arrays[name] for name, _ in wanted])


def _write(file: IO[bytes], leaves: list[tuple[str, Any]], metadata: dict[str, Any]) -> bytes:
    """Write all of it, with the digest put in last; gives the digest."""
    entries, offset = [], 0
    for name, leaf in leaves:
        array = np.asarray(leaf)
        if array.dtype.hasobject:
            raise TypeError(f"a checkpoint holds numbers only; {name} is of type {type(leaf).__name__}")
        entries.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "offset": offset})
        offset += array.nbytes
    header = json.dumps({"arrays": entries, "metadata": metadata}, allow_nan=False).encode()
    hasher = _hasher(_VERSION)
    file.write(_PREFIX.pack(_MAGIC, _VERSION, bytes(32)))
    for piece in (_LENGTH.pack(len(header)), header):
        hasher.update(piece)
        file.write(piece)
    for _, leaf in leaves:
        for part in _pieces(np.asarray(leaf)):
            hasher.update(part)
            file.write(part)
    file.seek(0)
    file.write(_PREFIX.pack(_MAGIC, _VERSION, hasher.digest()))
    return hasher.digest()


def _pieces(array: np.ndarray) -> Iterator[memoryview]:
    """The array's bytes, some at a time; a whole copy is made only of one that is not laid out in order."""
    if array.nbytes:
        flat = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        for start in range(0, len(flat), _PIECE):
            yield flat[start : start + _PIECE]


def _read(path: Path, wanted: Callable[[str], bool]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        if path.exists() and not path.is_file():
            raise _DamagedError(f"{path} is not a regular file")
        with open(path, "rb") as file:
            return _decode(file, path, wanted)
    except FileNotFoundError:
        raise _DamagedError(f"{path} is missing") from None
    except OSError as error:
        raise _DamagedError(f"{path} cannot be read ({error.strerror or error})") from error


def _decode(file: IO[bytes], path: Path, wanted: Callable[[str], bool]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    version, digest = _check_prefix(file, path)
    if _digest_of(file, version) != digest:
        raise _DamagedError(f"{path} is damaged: its checksum does not match")
    if version > _VERSION:
        raise CheckpointError(
            f"{path} has format version {version}, and this actiongap reads up to {_VERSION}: upgrade actiongap"
        )
    # From here on the bytes are as they were written. That somebody wrote nonsense is still possible.
    file.seek(_PREFIX.size)
    try:
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        if length > _MOST_HEADER_BYTES:
            raise ValueError("its header is too long")
        header = json.loads(file.read(length))
        start, size = file.tell(), os.fstat(file.fileno()).st_size
        arrays = {}
        for entry in header["arrays"]:
            dtype, shape, offset = np.dtype(entry["dtype"]), tuple(entry["shape"]), entry["offset"]
            count = int(np.prod(shape, dtype=object))
            if dtype.hasobject or min(shape, default=0) < 0 or offset < 0:
                raise ValueError(f"{entry['name']} is not an array of numbers")
            if start + offset + count * dtype.itemsize > size:
                raise ValueError(f"{entry['name']} reaches beyond its end")
            if wanted(entry["name"]):
                array = np.empty(shape, dtype)
                file.seek(start + offset)
                if count:
                    file.readinto(array.reshape(-1).view(np.uint8))  # type: ignore[attr-defined]
                arrays[entry["name"]] = array
        if not isinstance(header["metadata"], dict):
            raise TypeError("its metadata is not an object")
        return arrays, header["metadata"]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, struct.error, MemoryError) as error:
        raise _DamagedError(f"{path} is not a checkpoint that actiongap wrote ({error})") from None


def _check_prefix(file: IO[bytes], path: Path) -> tuple[int, bytes]:
    prefix = file.read(_PREFIX.size)
    if prefix[: len(_MAGIC)] != _MAGIC[: len(prefix)] or not prefix:
        raise _DamagedError(f"{path} is not an actiongap checkpoint")
    if len(prefix) < _PREFIX.size:
        raise _DamagedError(f"{path} is damaged: it ends after {len(prefix)} bytes")
    _, version, digest = _PREFIX.unpack(prefix)
    return version, digest


def _describe(entry: tuple[str, tuple[int, ...]] | None) -> str:
    return "absent" if entry is None else f"{entry[0]}{list(entry[1])}"


def _named_leaves(tree: Any, prefix: str = "") -> list[tuple[str, Any]]:
    return [(prefix + jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _hasher(version: int) -> Any:
    return hashlib.blake2b(_MAGIC + struct.pack("<I", version), digest_size=32)


def _digest_of(file: IO[bytes], version: int) -> bytes:
    """Of all that follows in the file."""
    hasher = _hasher(version)
    while piece := file.read(_PIECE):
        hasher.update(piece)
    return hasher.digest()


def _is_whole(path: Path) -> bool:
    if _written.get(path.absolute()) == _signature(path):
        return True
    if not path.is_file():  # opening a FIFO would wait
        return False
    try:
        with open(path, "rb") as file:
            version, digest = _check_prefix(file, path)
            return digest == _digest_of(file, version)
    except (OSError, _DamagedError):
        return False


def _signature(path: Path) -> tuple[int, ...]:
    stat = os.stat(path)
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _flush_folder(folder: Path) -> None:
    """Make renames durable. Not every system lets one open a folder: there, they are durable a little later."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
