"""The playground on the command line."""

from __future__ import annotations

import webbrowser
from pathlib import Path


def playground(out: Path = Path("out/playground/index.html"), state: str = "", open: bool = False) -> None:
    """Write the playground: a page where operators run side by side on an MDP of your choice, sweep by sweep.

    Args:
        out: Where to write it: a file that needs no server and no network.
        state: What it shows at first: a link copied from the page, or the part after its "#".
        open: Also open it in the browser.
    """
    from actiongap.playground import START, write

    page = write(out, state.rpartition("#")[2] or START)
    print(f"Playground: {page}")
    if open:
        webbrowser.open(page.resolve().as_uri())
