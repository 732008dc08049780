"""A checkpoint is data: arrays and JSON in one file, checked when written and when read, never pickle.

    magic (8 bytes) | format version (4) | BLAKE2b of the rest (32) | header length (8) | header (JSON) | array bytes

The first three parts keep their place in every version of the format, so that damage can be told from novelty. The
header names each array with its type, shape and offset, and carries the caller's metadata.

A new checkpoint is written beside the old one, flushed to disk and read back; then the old one becomes `.previous` and
the new one takes its name. Whatever moment a process is killed at, a whole checkpoint is left.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

_MAGIC = b"ACTNGAP\n"
_VERSION = 1
_PREFIX = struct.Struct("<8sI32s")
_LENGTH = struct.Struct("<Q")


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


def save(path: str | Path, tree: Any, metadata: dict[str, Any]) -> None:
    """Write a pytree of arrays and some JSON; the checkpoint that was at `path` is kept as the previous one."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    content = _encode(tree, metadata)
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if partial.read_bytes() != content:
            raise OSError("what was read back is not what was written")
    except OSError as error:
        partial.unlink(missing_ok=True)
        kept = "the last good one is kept" if exists(path) else "there is none yet"
        raise CheckpointError(f"could not write the checkpoint {path}: {error.strerror or error}; {kept}") from error
    # A damaged checkpoint must never take the place of a good previous one.
    if path.exists() and _is_whole(path):
        os.replace(path, previous(path))
    os.replace(partial, path)
    _flush_folder(path.parent)


def load(path: str | Path, like: Any) -> tuple[Any, dict[str, Any]]:
    """The arrays, in the structure of `like`, and the metadata. Where the checkpoint is damaged or missing, those of
    the previous one, with a `CheckpointWarning`."""
    arrays, metadata = _read_newest_whole(Path(path))
    return _arrange(arrays, like, Path(path)), metadata


def load_metadata(path: str | Path) -> dict[str, Any]:
    """The metadata alone, of the checkpoint that `load` would read."""
    return _read_newest_whole(Path(path))[1]


def _read_newest_whole(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if not exists(path):
        raise CheckpointError(f"there is no checkpoint at {path}")
    try:
        return _decode(_read(path), path)
    except _DamagedError as damage:
        if not previous(path).exists():
            raise
        try:
            result = _decode(_read(previous(path)), previous(path))
        except _DamagedError as second:
            raise CheckpointError(f"{damage}; and {second}") from second
        warnings.warn(f"{damage}; the previous one is used instead", CheckpointWarning, stacklevel=3)
        return result


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise _DamagedError(f"{path} is missing") from None
    except OSError as error:
        raise _DamagedError(f"{path} cannot be read ({error.strerror or error})") from error


def _encode(tree: Any, metadata: dict[str, Any]) -> bytes:
    entries, blobs, offset = [], [], 0
    for name, leaf in _named_leaves(tree):
        array = np.asarray(leaf)
        if array.dtype.hasobject:
            raise TypeError(f"a checkpoint holds numbers only; {name} is of type {type(leaf).__name__}")
        blob = array.tobytes()
        entries.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "offset": offset})
        blobs.append(blob)
        offset += len(blob)
    header = json.dumps({"arrays": entries, "metadata": metadata}, allow_nan=False).encode()
    body = b"".join([_LENGTH.pack(len(header)), header, *blobs])
    return _PREFIX.pack(_MAGIC, _VERSION, _digest(body, _VERSION)) + body


def _decode(content: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if content[: len(_MAGIC)] != _MAGIC[: len(content)] or not content:
        raise _DamagedError(f"{path} is not an actiongap checkpoint")
    if len(content) < _PREFIX.size:
        raise _DamagedError(f"{path} is damaged: it ends after {len(content)} bytes")
    _, version, digest = _PREFIX.unpack_from(content)
    body = memoryview(content)[_PREFIX.size :]
    if digest != _digest(body, version):
        raise _DamagedError(f"{path} is damaged: its checksum does not match")
    if version > _VERSION:
        raise CheckpointError(
            f"{path} has format version {version}, and this actiongap reads up to {_VERSION}: upgrade actiongap"
        )
    (length,) = _LENGTH.unpack_from(body)
    header = json.loads(bytes(body[_LENGTH.size : _LENGTH.size + length]))
    blobs = body[_LENGTH.size + length :]
    arrays = {}
    for entry in header["arrays"]:
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(blobs, dtype, count, entry["offset"]) if count else np.empty(0, dtype)
        arrays[entry["name"]] = flat.reshape(shape).copy()
    return arrays, header["metadata"]


def _arrange(arrays: dict[str, np.ndarray], like: Any, path: Path) -> Any:
    """The arrays in the structure of `like`, whose names, types and shapes they must have."""
    wanted = _named_leaves(like)
    found = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
    expected = {name: (np.dtype(leaf.dtype).name, tuple(leaf.shape)) for name, leaf in wanted}
    if found != expected:
        name = next(name for name in [*expected, *found] if found.get(name) != expected.get(name))
        raise CheckpointError(
            f"{path} holds other arrays than asked for: {name} is {_describe(found.get(name))} in the file, "
            f"and should be {_describe(expected.get(name))}"
        )
    return jax.tree.unflatten(jax.tree.structure(like), [arrays[name] for name, _ in wanted])


def _describe(entry: tuple[str, tuple[int, ...]] | None) -> str:
    return "absent" if entry is None else f"{entry[0]}{list(entry[1])}"


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _digest(body: bytes | memoryview, version: int) -> bytes:
    hasher = hashlib.blake2b(_MAGIC + struct.pack("<I", version), digest_size=32)
    hasher.update(body)
    return hasher.digest()


def _is_whole(path: Path) -> bool:
    content = path.read_bytes()
    if len(content) < _PREFIX.size:
        return False
    magic, version, digest = _PREFIX.unpack_from(content)
    return magic == _MAGIC and digest == _digest(memoryview(content)[_PREFIX.size :], version)


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
