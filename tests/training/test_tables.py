"""The tables of a run: what is written comes back, and what is broken is named by file and line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from actiongap.training import files, tables
from actiongap.training.files import FileError, MissingFileError

ROWS: list[dict[str, Any]] = [
    {"step": 0, "loss": None, "return": -1.5},
    {"step": 5, "loss": 0.1, "return": float("inf")},
    {"step": 10, "loss": 1e-30, "return": 3},
]


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    assert (tables.read(path), tables.last_row(path), tables.read_raw(path).rows) == ([], {}, 0)
    tables.append(path, ROWS[:1])
    tables.append(path, ROWS[1:])
    assert tables.read(path) == ROWS
    assert tables.read(path, before_step=10) == ROWS[:2]
    assert tables.last_row(path) == ROWS[-1]
    raw = tables.read_raw(path)
    assert (raw.header, raw.rows, raw.header + raw.body) == (b"step,loss,return\n", 3, path.read_bytes())
    tables.rewrite(path, ROWS[:2])
    assert tables.read(path) == ROWS[:2]
    tables.rewrite(path, [])
    assert not path.exists()


def test_a_line_without_its_end_is_no_row_yet(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n0,1\n5,2\n10,")
    assert [row["step"] for row in tables.read(path)] == [0, 5]
    assert tables.last_row(path) == {"step": 5, "loss": 2}
    assert tables.read_raw(path) == (b"step,loss\n", b"0,1\n5,2\n")
    path.write_text("step,lo")
    assert (tables.read(path), tables.last_row(path)) == ([], {})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"step,loss\n0,1\n5,2,3\n", "line 3: 3 cells instead of 2"),
        (b"step,loss\n0,1\n\n5,2\n", "line 3: 1 cells instead of 2"),
        (b"step,loss\n0,1\n5,x\n", "line 3: loss is 'x', which is not a number"),
        (b"step,loss\n0,1_0\n", "line 2: loss is '1_0', which is not a number"),
        (b"step,loss\n0,\xb1\n", "line 2: it is not text"),
        (b"step,loss\n0.5,1\n", "line 2: the step is 0.5; it must be a whole number"),
        (b"step,loss\n,1\n", "line 2: the step is None; it must be a whole number"),
        (b"st\xe5p,loss\n0,1\n", "line 1: it is not text"),
        (b"stop,loss\n0,1\n", "line 1: the header has no column `step`"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(content)
    with pytest.raises(FileError) as error:
        tables.read(path)
    assert str(error.value) == f"{path}, {problem}"


def test_the_last_row_of_a_broken_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    for content in (b"step,loss\n0,1\n5,x\n", b"stop,loss\n0,1\n", b"step,loss\n0,\xb1\n"):
        path.write_bytes(content)
        assert tables.last_row(path) == {}


def test_only_a_regular_file_of_a_bounded_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, problem in {
        "fifo": "not a regular file",
        "folder": "not a regular file",
        "device": "not a regular file",
        "loop": "cannot read",
    }.items():
        with pytest.raises(FileError, match=problem):
            tables.read(tmp_path / name)
        assert tables.last_row(tmp_path / name) == {}
    monkeypatch.setattr(tables, "LARGEST_BYTES", 10)
    (tmp_path / "large").write_text("step,loss\n0,1\n")
    with pytest.raises(FileError, match="is larger than"):
        tables.read(tmp_path / "large")


def test_json_that_is_no_object_is_named(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    with pytest.raises(MissingFileError):
        files.read_json(path)
    for content, problem in {
        b"[1]": "holds list instead of a JSON object",
        b'{"a"': "is not valid JSON",
        b'{"a": "\xff"}': "is not valid JSON",
        b"[" * 200_000: "is not valid JSON",
    }.items():
        path.write_bytes(content)
        with pytest.raises(FileError, match=problem):
            files.read_json(path)
    files.write_json(path, {"a": "ü"})
    assert files.read_json(path) == {"a": "ü"}
    assert [each.name for each in tmp_path.iterdir()] == ["status.json"]
