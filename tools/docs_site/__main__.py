"""The documentation as a site: `python -m tools.docs_site [FOLDER]`, into out/site by default.

What Sphinx reads is put together beside it, in FOLDER-source: docs/ as it is, and what comes from the code. A warning
is an error, and so is a link that leads nowhere.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from actiongap import playground
from tools.docs_site import links, pages, repository


def write_source(folder: Path) -> None:
    """All that Sphinx reads, in a new folder."""
    files = {place: text.encode() for place, text in pages.texts().items()}
    files |= {repository.picture_place(path): path.read_bytes() for path in repository.PICTURES}
    files |= {name: (repository.DOCS / name).read_bytes() for name in ("conf.py", "style/site.css")}
    files[f"extra/{pages.PLAYGROUND}"] = playground.render().encode()
    for place, content in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(content)


def build(site: Path) -> int:
    """Make the site anew, since Sphinx does not repeat its warnings of a page that it has read. 0: nothing is wrong."""
    from sphinx.cmd.build import build_main

    source, trees = (site.with_name(f"{site.name}-{kind}") for kind in ("source", "trees"))
    for folder in (site, source, trees):
        shutil.rmtree(folder, ignore_errors=True)
    write_source(source)
    code = build_main(["-q", "-W", "--keep-going", "-d", str(trees), str(source), str(site)])
    shutil.rmtree(trees)
    wrong = links.leading_nowhere(site.resolve(), own=(pages.PLAYGROUND,))
    for line in wrong:
        print(line, file=sys.stderr)
    return code or int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(build(Path(*sys.argv[1:] or ["out/site"])))
