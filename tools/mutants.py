"""Break the code in small ways, one at a time, and see whether the tests notice.

    python tools/mutants.py                 all of mutants.toml
    python tools/mutants.py --only NAME     those whose name contains it
    python tools/mutants.py --list          names, files and tests
    python tools/mutants.py --sound         the named tests without any mutation: they must pass

A mutant names a file below src/actiongap, a text that stands there exactly once, what takes its place, and the tests
that must fail then. The sources are copied for it; nothing here is changed. It is for those who change the tests: it
takes minutes, and `make test` never runs it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")
_PYTEST_FAILED = 1


class Mutant(NamedTuple):
    """One small change of the code, and the tests that must notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def read(path: Path = LIST) -> list[Mutant]:
    """The mutants of a list."""
    with open(path, "rb") as file:
        listed = tomllib.load(file)
    return [Mutant(name, each["file"], each["old"], each["new"], tuple(each["tests"])) for name, each in listed.items()]


def mutated(mutant: Mutant, source: Path) -> str:
    """The file's text with the change made; refused where the text to change is not there exactly once."""
    text = (source / "actiongap" / mutant.file).read_text()
    found = text.count(mutant.old)
    if found != 1:
        raise ValueError(f"{mutant.name}: its text stands {found} times in {mutant.file}; it must stand there once")
    return text.replace(mutant.old, mutant.new)


def judge(mutant: Mutant, source: Path = ROOT / "src") -> str:
    """Run the mutant's tests on a changed copy: killed, survived, or broken if pytest could not run them."""
    changed = mutated(mutant, source)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        (copy / "actiongap" / mutant.file).write_text(changed)
        code = _run_tests(mutant.tests, copy)
    return {0: "survived", _PYTEST_FAILED: "killed"}.get(code, f"broken (pytest ended with {code})")


def _run_tests(tests: tuple[str, ...], source: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:xdist", *tests]
    variables = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, check=False).returncode


def main() -> None:
    """Judge those asked for; the exit code is 1 if any was not killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME", help="those whose name contains it")
    parser.add_argument("--list", action="store_true", help="print names, files and tests, and run nothing")
    parser.add_argument("--sound", action="store_true", help="run the named tests on the code as it is")
    arguments = parser.parse_args()
    chosen = [mutant for mutant in read() if arguments.only in mutant.name]
    if not chosen:
        parser.error(f"no mutant's name contains {arguments.only!r}")
    if arguments.list:
        for mutant in chosen:
            print(f"{mutant.name}\n  {mutant.file}\n  {' '.join(mutant.tests)}")
        return
    if arguments.sound:
        tests = tuple(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
        sys.exit(_run_tests(tests, ROOT / "src"))
    alive = 0
    for mutant in chosen:
        verdict = judge(mutant)
        alive += verdict != "killed"
        print(f"{verdict:9} {mutant.name}", flush=True)
    print(f"{len(chosen) - alive} of {len(chosen)} killed")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
