"""A checkpoint comes back bit for bit, and every kind of damage to it is noticed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from actiongap.training import checkpoint

TREE = {
    "weights": [jnp.arange(6, dtype=jnp.float32).reshape(2, 3) / 7, jnp.asarray(-0.0)],
    "replay": (jnp.asarray([True, False, True]), np.zeros((0, 4), np.uint8), jnp.asarray(7, jnp.int32)),
    "special": np.asarray([np.nan, np.inf, -np.inf], np.float32),
}


def load(path: Path, like: object) -> tuple:
    """As a run does it."""
    arrays, metadata = checkpoint.read(path)
    return checkpoint.arrange(arrays, like, path), metadata


def other_tree() -> dict:
    return jax.tree.map(lambda leaf: np.ones_like(np.asarray(leaf)), TREE)


def assert_same_bits(left: object, right: object) -> None:
    assert jax.tree.structure(left) == jax.tree.structure(right)  # type: ignore[operator]
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    checkpoint.save(path, TREE, {"step": 12, "note": "é"})
    tree, metadata = load(path, TREE)
    assert_same_bits(tree, TREE)
    assert metadata == {"step": 12, "note": "é"}
    assert checkpoint.load_metadata(path) == metadata
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "a", TREE, {"step": 1})
    checkpoint.save(tmp_path / "b", TREE, {"step": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A checkpoint of step 2, and the previous one of step 1."""
    checkpoint.save(tmp_path / "checkpoint", TREE, {"step": 1})
    checkpoint.save(tmp_path / "checkpoint", other_tree(), {"step": 2})
    return tmp_path / "checkpoint"


def test_any_damaged_byte_falls_back_to_the_previous(two: Path) -> None:
    whole = two.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        two.write_bytes(damaged)
        with pytest.warns(checkpoint.CheckpointWarning, match="previous one is used"):
            tree, metadata = load(two, TREE)
        assert metadata == {"step": 1}
    assert_same_bits(tree, TREE)


@pytest.mark.parametrize("keep", [0, 1, 8, 43, 44, 60, -1])
def test_truncation_falls_back_to_the_previous(two: Path, keep: int) -> None:
    two.write_bytes(two.read_bytes()[:keep])
    with pytest.warns(checkpoint.CheckpointWarning):
        assert load(two, TREE)[1] == {"step": 1}


def test_zeroed_and_missing_fall_back_to_the_previous(two: Path) -> None:
    two.write_bytes(bytes(two.stat().st_size))
    with pytest.warns(checkpoint.CheckpointWarning, match="not an actiongap checkpoint"):
        assert checkpoint.load_metadata(two) == {"step": 1}
    two.unlink()
    with pytest.warns(checkpoint.CheckpointWarning, match="missing"):
        assert checkpoint.load_metadata(two) == {"step": 1}


def test_a_damaged_one_never_replaces_a_good_previous(two: Path) -> None:
    two.write_bytes(two.read_bytes()[:-5])
    checkpoint.save(two, TREE, {"step": 3})
    assert checkpoint.load_metadata(two) == {"step": 3}
    assert checkpoint.load_metadata(checkpoint.previous(two)) == {"step": 1}


def test_a_fifo_in_its_place_is_replaced_and_never_waited_for(two: Path) -> None:
    two.unlink()
    os.mkfifo(two)
    checkpoint.save(two, TREE, {"step": 3})
    assert checkpoint.load_metadata(two)["step"] == 3
    assert checkpoint.load_metadata(checkpoint.previous(two))["step"] == 1


def test_both_damaged_is_an_error(two: Path) -> None:
    two.write_bytes(two.read_bytes()[:-5])
    checkpoint.previous(two).write_bytes(b"")
    with pytest.raises(checkpoint.CheckpointError, match=r"checksum.*not an actiongap checkpoint"):
        load(two, TREE)


def test_a_damaged_one_alone_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    checkpoint.save(path, TREE, {})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(checkpoint.CheckpointError, match="damaged: its checksum"):
        load(path, TREE)


def test_foreign_file_and_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with pytest.raises(checkpoint.CheckpointError, match="there is no checkpoint"):
        load(path, TREE)
    np.savez(path.with_suffix(".npz"), np.arange(100))
    path.with_suffix(".npz").rename(path)
    with pytest.raises(checkpoint.CheckpointError, match="is not an actiongap checkpoint"):
        load(path, TREE)


def test_a_newer_format_is_refused_even_with_a_previous_one(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_VERSION", 2)
    checkpoint.save(two, TREE, {"step": 3})
    monkeypatch.undo()
    assert struct.unpack_from("<I", two.read_bytes(), 8) == (2,)
    with pytest.raises(checkpoint.CheckpointError, match=r"format version 2.*upgrade"):
        load(two, TREE)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({**TREE, "special": np.zeros(4, np.float32)}, r"special.*float32\[3\] in the file.*float32\[4\]"),
        ({**TREE, "special": np.zeros(3, np.float64)}, r"special.*float32\[3\] in the file.*float64\[3\]"),
        ({**TREE, "more": np.zeros(3)}, "more.*absent in the file"),
        ({"weights": TREE["weights"], "replay": TREE["replay"]}, "special.*should be absent"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, like: dict, message: str) -> None:
    checkpoint.save(tmp_path / "checkpoint", TREE, {})
    with pytest.raises(checkpoint.CheckpointError, match=message):
        load(tmp_path / "checkpoint", like)


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="numbers only"):
        checkpoint.save(tmp_path / "checkpoint", {"a": np.asarray(object())}, {})


def test_a_disk_that_fills_up_leaves_the_last_good_one(tmp_path: Path) -> None:
    """The system itself refuses the write: no file of this process may grow beyond 64 kB."""
    path = tmp_path / "checkpoint"
    checkpoint.save(path, TREE, {"step": 1})
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, hard))
    try:
        with pytest.raises(checkpoint.CheckpointError, match=f"{os.strerror(errno.EFBIG)}; the last good one is kept"):
            checkpoint.save(path, np.zeros(100_000), {"step": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert checkpoint.load_metadata(path) == {"step": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    checkpoint.save(path, TREE, {"step": 1})
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(checkpoint.CheckpointError, match=os.strerror(errno.EFBIG)):
            checkpoint.save(path, {**TREE, "more": np.zeros(1_000)}, {"step": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert checkpoint.load_metadata(path) == {"step": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "checkpoint.partial").symlink_to(tmp_path / "victim")
    checkpoint.save(tmp_path / "checkpoint", TREE, {"step": 1})
    assert (tmp_path / "victim").read_text() == "precious"
    assert checkpoint.load_metadata(tmp_path / "checkpoint") == {"step": 1}


def test_some_arrays_are_read_without_the_others(two: Path) -> None:
    arrays, metadata = checkpoint.read(two, lambda name: "weights" in name)
    assert metadata == {"step": 2}
    assert list(arrays) == ["['weights'][0]", "['weights'][1]"]
    restored = checkpoint.arrange(arrays, TREE["weights"], two, "['weights']")
    assert_same_bits(restored, other_tree()["weights"])


def test_what_is_sealed_but_makes_no_sense_is_told_in_a_line(tmp_path: Path) -> None:
    """The checksum is right, and the header is not one that we write."""
    path = tmp_path / "checkpoint"
    entry = {"name": "a", "dtype": "float32", "shape": [2], "offset": 0}
    headers: list[object] = [
        [],
        {"arrays": []},
        {"arrays": [entry], "metadata": {}},
        {"arrays": [{**entry, "dtype": "object"}], "metadata": {}},
        {"arrays": [{**entry, "shape": [-1]}], "metadata": {}},
        {"arrays": [{**entry, "shape": [2**62, 2**62]}], "metadata": {}},
        {"arrays": [{**entry, "offset": -8}], "metadata": {}},
        {"arrays": 7, "metadata": {}},
        {"arrays": [], "metadata": [1]},
    ]
    for header in headers:
        text = json.dumps(header).encode()
        body = struct.pack("<Q", len(text)) + text
        digest = hashlib.blake2b(b"ACTNGAP\n" + struct.pack("<I", 1) + body, digest_size=32).digest()
        path.write_bytes(b"ACTNGAP\n" + struct.pack("<I", 1) + digest + body)
        with pytest.raises(checkpoint.CheckpointError, match="is not a checkpoint that actiongap wrote") as error:
            load(path, TREE)
        assert len(str(error.value).splitlines()) == 1


WRITER = """
import sys, numpy as np
from actiongap.training import checkpoint
step = 0
while True:
    checkpoint.save(sys.argv[1], np.full(200_000, step), {"step": step})
    print(step, flush=True)
    step += 1
"""


@pytest.mark.parametrize("moment", range(3))
def test_killed_while_writing_leaves_a_whole_checkpoint(tmp_path: Path, moment: int) -> None:
    """The writer does nothing but write, so that a kill falls into a write, after some milliseconds more each time."""
    path = tmp_path / "checkpoint"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = 0
    for _ in range(3 + 2 * moment):
        told = int(process.stdout.readline())
    process.kill()
    told = max([told, *(int(line) for line in process.stdout.read().split())])
    process.wait()
    process.stdout.close()
    # Killed between the two renames, the previous one is whole and is used, with a warning.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", checkpoint.CheckpointWarning)
        array, metadata = load(path, np.zeros(200_000, np.int64))
    assert metadata["step"] >= told
    assert (array == metadata["step"]).all()
