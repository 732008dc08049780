"""What is handed out: the source and the wheel, with a compiler and without, installed apart and used there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Unix paths")]

ROOT = Path(__file__).parents[1]
NOT_SOURCE = shutil.ignore_patterns(".*", "build", "dist", "out", "runs", "results")
WITHOUT_COMPILER = {"CC": "false", "CXX": "false"}
NATIVE = "actiongap/learning/native"
QUICK = ("warmup_steps=500", "evaluation_period_steps=1000", "evaluation_episodes=1", "evaluation_limit_steps=100")


def run(*command: object, cwd: Path, **variables: str) -> str:
    # What the tests themselves run with must not be found by what was installed.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ACTIONGAP_NATIVE")}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**clean, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources without what was built from them: an old library must not find its way into a distribution."""
    folder = tmp_path_factory.mktemp("checkout") / "actiongap"
    shutil.copytree(ROOT, folder, ignore=lambda at, names: NOT_SOURCE(at, names) if Path(at) == ROOT else ())
    for leftover in [*folder.rglob("*.so"), *folder.rglob("*.egg-info")]:
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    return folder


@pytest.fixture(scope="module")
def distributions(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The source, the wheel made from it, and the wheel made from it without a compiler."""
    pytest.importorskip("build")
    if shutil.which(os.environ.get("CXX", "c++")) is None:
        pytest.skip("no C++ compiler")
    with_compiler, without = (tmp_path_factory.mktemp(name) for name in ("with", "without"))
    run(sys.executable, "-m", "build", "--outdir", with_compiler, ".", cwd=checkout)
    (source,) = with_compiler.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(without, filter="data")
    (unpacked,) = without.iterdir()
    run(sys.executable, "-m", "build", "--wheel", "--outdir", without, ".", cwd=unpacked, **WITHOUT_COMPILER)
    (wheel,), (pure_wheel,) = with_compiler.glob("*.whl"), without.glob("*.whl")
    return {"source": source, "wheel": wheel, "pure wheel": pure_wheel}


def test_the_source_has_all_that_is_built_from_and_no_tests(distributions: dict[str, Path]) -> None:
    with tarfile.open(distributions["source"]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    expected = {
        f"src/{path.relative_to(ROOT / 'src')}"
        for path in (ROOT / "src" / "actiongap").rglob("*")
        if path.is_file() and path.suffix != ".so" and "__pycache__" not in path.parts
    }
    assert expected - names == set()
    assert {f"src/{NATIVE}/image_layer.cc", f"src/{NATIVE}/kernel.h", f"src/{NATIVE}/patches.h"} <= names
    assert {"CITATION.cff", "LICENSE"} <= names
    assert [name for name in names if name.startswith(("tests", "benchmarks", "results")) or name.endswith(".so")] == []


def test_the_source_has_the_library_also_where_jax_is_missing(checkout: Path, tmp_path: Path) -> None:
    pytest.importorskip("build")
    made = tmp_path / "environment"
    venv.create(made, with_pip=True)
    run(made / "bin" / "pip", "install", "--quiet", "build", "setuptools>=77", cwd=tmp_path)
    command = (made / "bin" / "python", "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check")
    run(*command, "--outdir", tmp_path, ".", cwd=checkout)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert any(name.endswith(f"{NATIVE}/image_layer.cc") for name in archive.getnames())


def test_a_wheel_names_no_version_of_python_and_a_platform_only_where_it_must(distributions: dict[str, Path]) -> None:
    tags = {name: distributions[name].stem.split("-")[2:] for name in ("wheel", "pure wheel")}
    assert tags["wheel"][:2] == ["py3", "none"]
    assert tags["wheel"][2] != "any"
    assert tags["pure wheel"] == ["py3", "none", "any"]
    for name, libraries in (("wheel", [f"{NATIVE}/_image_layer.so"]), ("pure wheel", [])):
        with zipfile.ZipFile(distributions[name]) as archive:
            names = archive.namelist()
            (metadata,) = [each for each in names if each.endswith("/METADATA")]
            description = archive.read(metadata).decode("utf-8")
        assert [each for each in names if each.endswith(".so")] == libraries
        assert [each for each in names if each.endswith((".cc", ".h")) or "test" in each] == []
        # Links into the repository lead nowhere on a package index.
        assert "docs/operators.md" in description
        assert "](docs/" not in description


@pytest.mark.parametrize(
    ("name", "compiler"), [("source", True), ("source", False), ("wheel", False), ("pure wheel", True)]
)
def test_it_works_where_nothing_else_is_installed(
    name: str, compiler: bool, distributions: dict[str, Path], tmp_path: Path
) -> None:
    made, variables = tmp_path / "environment", {} if compiler else WITHOUT_COMPILER
    venv.create(made, with_pip=True)
    run(made / "bin" / "pip", "install", "--quiet", distributions[name], cwd=tmp_path, **variables)
    command = made / "bin" / "actiongap"
    told = run(command, "info", cwd=tmp_path, JAX_PLATFORMS="cpu")
    built = name == "wheel" or (name == "source" and compiler)
    assert f"image layer: {'C++ library' if built else 'XLA: the C++ library was not built'}" in told
    run(command, "chainwalk", "--out", "chainwalk", cwd=tmp_path)
    assert (tmp_path / "chainwalk" / "index.html").exists()
    training = ("train", "minatar/breakout", "--steps", "1500", "--out", "run", "--set", *QUICK)
    run(command, *training, cwd=tmp_path, JAX_PLATFORMS="cpu")
    assert (tmp_path / "run" / "metrics.csv").exists()
