"""Links of the finished site: every one inside of it leads to a file that is there, and to a place in it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page points to, and the places in it that can be pointed to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name == "id" and value:
                self.anchors.add(value)


def leading_nowhere(site: Path, own: tuple[str, ...] = ()) -> list[str]:
    """A line for each link that leads nowhere. The pages in `own` read what comes after # themselves."""
    pages = {
        path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html")) if path.name not in own
    }
    wrong = []
    for path, page in pages.items():
        for target in dict.fromkeys(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = anchor in pages[there].anchors if there in pages else True
            if not there.is_file() or (anchor and not known):
                wrong.append(f"{path.relative_to(site)}: {target} leads nowhere")
    return wrong
