"""The live report on the command line."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import tyro

PORT = 8421


def serve(folders: tyro.conf.Positional[tuple[Path, ...]], port: int = PORT, open: bool = False) -> None:
    """Show the report on runs in the browser, kept up to date while they go on. Ctrl-C ends it.

    It only reads, and answers to this machine alone.

    Args:
        folders: Folders that hold runs, such as compare's --out.
        port: Of 127.0.0.1; 0 is any that is free.
        open: Open the page in the browser, too.
    """
    from actiongap.analysis.report.live import LivePage
    from actiongap.analysis.report.server import Server

    if not folders:
        raise ValueError("name at least one folder that holds runs, such as runs")
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder} is not a folder: name one that holds runs, such as compare's --out")
    with Server(LivePage(folders), port) as server:
        print(f"Report: {server.url} (Ctrl-C ends it)", flush=True)
        if open:
            webbrowser.open(server.url)
        server.serve_forever()
