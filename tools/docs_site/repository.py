"""Where files of the repository are on the site, and links that lead there.

Links are written for those who read the files in the repository. On the site they lead to its pages; where a file has
none, the words remain. A link to a file that does not exist is left as it is: Sphinx names it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "results"
REPORTS = sorted(path.parents[1] for path in RESULTS.rglob("report/tables.md"))
"""The folders of the experiments that are kept."""
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PICTURES = [
    *sorted(path for path in DOCS.rglob("*") if path.suffix in {".png", ".gif"}),
    *(each / "report/curves.png" for each in REPORTS),
]
OUTSIDE_OF_DOCS = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "results/README.md": "results/index.md",
    "examples/README.md": "examples/index.md",
}


def experiment_place(folder: Path) -> str:
    return "results/" + "-".join(folder.relative_to(RESULTS).parts)


def picture_place(path: Path) -> str:
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return "results/" + "-".join(path.relative_to(RESULTS).parts)


def texts() -> dict[str, str]:
    """The Markdown of the repository that is on the site as it is: its path, and its place there."""
    of_docs = {path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    return OUTSIDE_OF_DOCS | of_docs


def places() -> dict[str, str]:
    """All that a link can lead to: its path in the repository, and its place on the site."""
    found = texts() | {"results": "results/index.md", "examples": "examples/index.md"}
    found |= {path.relative_to(ROOT).as_posix(): picture_place(path) for path in PICTURES}
    found |= {folder.relative_to(ROOT).as_posix(): f"{experiment_place(folder)}.md" for folder in REPORTS}
    return found | {path.relative_to(ROOT).as_posix(): f"examples/{path.stem}.md" for path in EXAMPLES}


def turned(text: str, path: str, known: dict[str, str]) -> str:
    """The text of this file with its links turned; code is left alone."""
    link = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
    pieces = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    pieces[::2] = [link.sub(lambda found: _turned(found, path, known), piece) for piece in pieces[::2]]
    return "".join(pieces)


def _turned(link: re.Match[str], path: str, known: dict[str, str]) -> str:
    picture, words, target = link.groups()
    address, mark, anchor = target.partition("#")
    if not address or "://" in address:
        return link.group()
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), address))
    if wanted in known:
        there = posixpath.relpath(known[wanted], posixpath.dirname(known[path]) or ".")
        return f"{picture}[{words}]({there}{mark}{anchor})"
    return words if (ROOT / wanted).exists() else link.group()
