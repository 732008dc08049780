"""What processor this is, from what the system tells of it."""

from pathlib import Path

import pytest

from actiongap.training import processor

CORE = "processor : {}\nmodel name\t: Abacus 3000 @ 2 Hz\ncpu MHz : {}\nflags : beads rods\n\n"


@pytest.fixture
def details(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cpuinfo"
    path.write_text(CORE.format(0, 1.9) + CORE.format(1, 2.0))
    monkeypatch.setattr(processor, "_DETAILS", path)
    return path


def test_its_name_stands_once_however_many_cores_there_are(details):
    assert processor.name() == "Abacus 3000 @ 2 Hz"


def test_its_kind_is_its_instructions_and_not_its_speed_of_the_moment(details):
    kind = processor.kind()
    details.write_text(CORE.format(0, 1.2))
    assert processor.kind() == kind
    details.write_text(CORE.format(0, 1.2).replace("rods", "rods fused"))
    assert processor.kind() != kind


def test_generations_of_one_name_are_told_apart(details):
    details.write_text(CORE.format(0, 1.9).replace("cpu MHz", "cpu family\t: 7\nmodel\t\t: 2\ncpu MHz"))
    assert processor.name() == "Abacus 3000 @ 2 Hz, family 7, model 2"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("sse2", ()),
        ("sse2 avx2 fma", ("HASWELL",)),
        ("fma avx2 avx512f avx512bw avx512dq avx512vl", ("SKYLAKEX", "HASWELL")),
        ("fma avx2 avx512f", ("HASWELL",)),
    ],
)
def test_only_kernels_that_it_can_run_are_named(details, flags, expected):
    details.write_text(CORE.format(0, 1.9).replace("beads rods", flags))
    assert processor.blas_kernels() == expected


def test_where_the_system_tells_nothing_there_is_still_a_name(monkeypatch, tmp_path):
    monkeypatch.setattr(processor, "_DETAILS", tmp_path / "none")
    assert processor.name()
    assert processor.kind()
