"""Reading and writing the small files of a folder of runs, at the boundary: what lies there may be anything.

Only a regular file of a bounded size is read: a FIFO or a device might never end. A file that is replaced is whole at
any moment: it is written beside the old one under a name of its own, flushed, then renamed over it. So two writers
never share a temporary file, and a link that somebody put in the way is replaced, never followed. Text is UTF-8.
A JSON file contains its own checksum: a changed digit is detected. One without a checksum is accepted as it is.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

LARGEST_JSON_BYTES = 16 << 20
PARTIAL = ".partial"
CHECKSUM = "checksum"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


class FileError(ValueError):
    """A file that cannot be used: which one, and why."""


class MissingFileError(FileError):
    """A file that is not there."""


def as_file_name(name: str) -> str:
    """The name of an environment or an algorithm as a part of a path."""
    return name.replace("/", "-").replace(":", ".")


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading, if it is a regular one: asked before it is opened, as opening a FIFO would wait."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileError(f"{path} is not a regular file")
        return open(path, "rb")
    except FileNotFoundError:
        raise MissingFileError(f"{path} is not there") from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from None


def read_bytes(path: Path, largest_bytes: int) -> bytes:
    """All of a regular file, refused where it is larger than that."""
    with open_regular(path) as file:
        try:
            content = file.read(largest_bytes + 1)
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > largest_bytes:
        raise FileError(f"{path} is larger than {largest_bytes >> 20} MiB: it is not a file that a run writes")
    return content


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, without its checksum, which must be right if it is there."""
    try:
        content = json.loads(read_bytes(path, LARGEST_JSON_BYTES).decode("utf-8"))
        expected = content.pop(CHECKSUM, None) if isinstance(content, dict) else None
        is_changed = expected is not None and expected != _checksum(content)
    except FileError:
        raise
    except RecursionError:
        raise FileError(f"{path} is not valid JSON (it is nested too deeply)") from None
    except ValueError as error:
        raise FileError(f"{path} is not valid JSON ({error})") from None
    if not isinstance(content, dict):
        raise FileError(f"{path} holds {type(content).__name__} instead of a JSON object")
    if is_changed:
        raise FileError(
            f"{path} was changed since it was written: put it back; if the change was intended, remove its `{CHECKSUM}`"
        )
    return content


def write_json(path: Path, content: Mapping[str, Any], indent: int | None = 2) -> None:
    """Replace the file by this object, and its checksum."""
    plain = to_json(content)
    replace(path, json.dumps({CHECKSUM: _checksum(plain), **plain}, indent=indent, allow_nan=False) + "\n")


def _checksum(content: Mapping[str, Any]) -> str:
    """Of what the object says, however it is laid out."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def to_json(value: Any) -> Any:
    """The value as JSON can hold it: an infinite number as "inf" or "-inf", which `float` reads back."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def is_number(value: Any) -> bool:
    """Whether a value from a file is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def replace(path: Path, content: str | bytes) -> None:
    """Replace the file by this text, or by these bytes: at any moment there is the old file or the new one."""
    partial = path.with_name(f"{path.name}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with open(partial, "xb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise FileError(f"could not write {path}: {error.strerror or error}") from error


def append(path: Path, text: str) -> None:
    """Add text at the end of a file, flushed to disk. A link is refused, not followed."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_FOLLOW, 0o666)
        with open(descriptor, "a", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(f"could not write {path}: {error.strerror or error}") from error


def remove_abandoned(path: Path) -> None:
    """Remove what killed processes of this machine left unfinished of a file. For a folder that nobody holds."""
    if sys.platform == "win32":  # where one cannot ask for a process without ending it
        return
    for partial in path.parent.glob(f"{path.name}.{_host()}.*{PARTIAL}"):
        number = partial.name.split(".")[-3]
        if number.isdecimal() and not _is_running(int(number)):
            partial.unlink(missing_ok=True)


def _host() -> str:
    """This machine's name, without what has a meaning in a pattern or parts a name."""
    return re.sub(r"[^A-Za-z0-9-]", "-", platform.node())


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's
        return True
    return True


def remove_partial(folder: Path) -> None:
    """Remove what a killed process left unfinished. Only for who holds the folder."""
    for path in folder.glob(f"*{PARTIAL}"):
        path.unlink(missing_ok=True)
