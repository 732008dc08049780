"""A run's tables: metrics.csv, episodes.csv and timing.csv. Only this module reads and writes them.

A table has a header with a column `step`, then a line of numbers for each row; an empty cell is None. A line without
its end is no row yet: the process may have been killed while it wrote it.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from actiongap.training import files
from actiongap.training.files import FileError, MissingFileError

Row = dict[str, Any]
LARGEST_BYTES = 256 << 20
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf|nan")
_END_BYTES = 2_000


class TableError(FileError):
    """A table that cannot be read: its file, and the line."""


class Raw(NamedTuple):
    """A table as bytes: the header's line and all whole lines below, for a parser that takes many tables at once."""

    header: bytes
    body: bytes

    @property
    def rows(self) -> int:
        return self.body.count(b"\n")


def read(path: Path, before_step: float = math.inf) -> list[Row]:
    """The rows before a step; none where there is no file. A line that is no row is named."""
    return [row for row in _rows(path) if row["step"] < before_step]


def read_first(path: Path, count: float, last_step: float = math.inf, lenient: bool = False) -> list[Row]:
    """At most so many rows from the top, up to that step. What stands below is not looked at.

    If `lenient`, a line that is no row ends the table.
    """
    found: list[Row] = []
    try:
        for row in _rows(path) if count > 0 else ():
            if row["step"] > last_step:
                break
            found.append(row)
            if len(found) >= count:
                break
    except FileError:
        if not lenient:
            raise
    return found


def _rows(path: Path) -> Iterator[Row]:
    header, body = read_raw(path)
    names = _text(path, header, 1).rstrip("\n").split(",")
    if header and "step" not in names:
        raise TableError(f"{path}, line 1: the header has no column `step`")
    for number, line in enumerate(body.split(b"\n")[:-1], start=2):
        yield _row(path, number, names, _text(path, line, number))


def read_raw(path: Path) -> Raw:
    """The table as it is in the file, nothing checked; empty where there is no file."""
    try:
        content = files.read_bytes(path, LARGEST_BYTES)
    except MissingFileError:
        return Raw(b"", b"")
    start, end = content.find(b"\n") + 1, content.rfind(b"\n") + 1
    return Raw(content[:start], content[start:end])


def last_row(path: Path) -> Row:
    """The last whole row, read from the file's end; empty if there is none that can be read (`read` says why)."""
    try:
        with files.open_regular(path) as file:
            header = file.readline(_END_BYTES)
            start, size = file.tell(), file.seek(0, os.SEEK_END)
            file.seek(max(start, size - _END_BYTES))
            lines = file.read(_END_BYTES).split(b"\n")[:-1]
        names = _text(path, header, 1).rstrip("\n").split(",")
        return _row(path, 0, names, _text(path, lines[-1], 0)) if lines and "step" in names else {}
    except (FileError, OSError):
        return {}


def append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows below the table, flushed to disk. The first write makes the header; a new column makes it anew."""
    header = _header(path)
    if not header:
        files.append(path, _as_text(rows, _columns(rows), header=True))
    elif all(name in header for name in _columns(rows)):
        files.append(path, _as_text(rows, header, header=False))
    else:
        rewrite(path, [*read(path), *rows])


def rewrite(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Make the table these rows; without any, there is no file."""
    if rows:
        files.replace(path, _as_text(rows, _columns(rows), header=True))
    else:
        path.unlink(missing_ok=True)


def checksum(path: Path) -> str:
    """Of the file as it is."""
    return _checksum(files.read_bytes(path, LARGEST_BYTES))


def expected_checksum(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """Of the file if it holds these rows, in the columns that it has: only its header is read."""
    return _checksum(_as_text(rows, _header(path), header=True).encode())


def _checksum(content: bytes) -> str:
    return f"{zlib.crc32(content):08x}"


def _row(path: Path, number: int, names: Sequence[str], line: str) -> Row:
    cells = line.split(",")
    if len(cells) != len(names):
        raise TableError(f"{path}, line {number}: {len(cells)} cells instead of {len(names)}")
    row = {name: _number(path, number, name, cell) for name, cell in zip(names, cells, strict=True)}
    if type(row["step"]) is not int or row["step"] < 0:
        raise TableError(f"{path}, line {number}: the step is {row['step']!r}; it must be a whole number")
    return row


def _number(path: Path, number: int, name: str, cell: str) -> int | float | None:
    if cell == "":
        return None
    if _WHOLE.fullmatch(cell):
        return int(cell) if len(cell) <= 19 else float(cell)
    if _DECIMAL.fullmatch(cell):
        return float(cell)
    raise TableError(f"{path}, line {number}: {name} is {cell[:40]!r}, which is not a number")


def _text(path: Path, line: bytes, number: int) -> str:
    try:
        return line.decode("ascii")
    except UnicodeDecodeError:
        raise TableError(f"{path}, line {number}: it is not text") from None


def _header(path: Path) -> list[str]:
    """The columns of the table that is there; none if there is no table."""
    try:
        with files.open_regular(path) as file:
            return [name for name in _text(path, file.readline(_END_BYTES), 1).rstrip("\n").split(",") if name]
    except MissingFileError:
        return []


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those of the newest row first: an older one may lack some."""
    return list(dict.fromkeys(name for row in reversed(rows) for name in row))


def _as_text(rows: Sequence[Mapping[str, Any]], names: Sequence[str], header: bool) -> str:
    lines = [",".join(names)] * header + [",".join(_cell(row.get(name)) for name in names) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
