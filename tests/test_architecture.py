"""The rooms of the project: imports point one way, nothing imports in a circle, no file is two concepts long."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "actiongap"
FOLDERS = ("src", "tests", "benchmarks", "tools", "examples")
RANKS = [
    {"version", "arrays"},
    {"operators", "custom_operators"},
    {"tabular", "games"},
    {"registration", "envs"},
    {"learning"},
    {"training"},
    {"agent"},
    {"analysis"},
    {"experiments", "integrations"},
    {"playground"},
    {"cli"},
    {"command"},
    {"__main__"},
]
RANK = {room: place for place, rooms in enumerate(RANKS) for room in rooms}
MOST_LINES = 400


@functools.cache
def modules() -> dict[str, Path]:
    """All modules by their dotted name, without the package's."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(path: Path, deferred: bool) -> set[str]:
    """The modules of this package that a file imports; those inside of functions only if `deferred`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not deferred
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if is_function or is_for_types:
            skipped.update(ast.walk(node))
    found = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "actiongap":
            base = (node.module or "").removeprefix("actiongap").lstrip(".")
            found |= {f"{base}.{name.name}".lstrip(".") for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name.removeprefix("actiongap.") for name in node.names if name.name.startswith("actiongap.")}
    known = modules()
    return {name if name in known else name.rpartition(".")[0] for name in found} & known.keys()


def room(module: str) -> str:
    return module.split(".")[0]


@pytest.mark.parametrize("module", sorted(name for name in modules() if name))
def test_imports_point_one_way(module: str) -> None:
    upward = {
        other for other in imports(modules()[module], deferred=True) if other and RANK[room(other)] > RANK[room(module)]
    }
    assert not upward, f"{module} imports {', '.join(sorted(upward))}"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name: imports(path, deferred=False) for name, path in modules().items() if name}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path, name])
        if name not in done:
            for other in graph.get(name, ()):
                visit(other, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_the_gpl_folder_is_imported_by_games_alone() -> None:
    users = {
        name
        for name, path in modules().items()
        if any(other.startswith("games.minatar") for other in imports(path, deferred=True))
    }
    assert {name for name in users if not name.startswith("games.minatar")} <= {"games", "games.catalogue"}


def test_no_file_is_too_long() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 200
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_no_merge_left_its_marks() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").glob("*.md")]
    marked = [page.name for page in pages if re.search(r"^(<{7} |={7}$|>{7} )", page.read_text("utf-8"), re.MULTILINE)]
    assert marked == []
