"""The live report on the command line."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import tyro

PORT = 8421


def serve(folders: tyro.conf.Positional[tuple[Path, ...]], port: int = PORT, open: bool = False) -> None:
    """Serve a live report on runs, updated while they train. Ctrl-C stops it.

    It only reads files, and only answers requests from this machine.

    Args:
        folders: Folders that hold runs, such as compare's --out.
        port: The port on 127.0.0.1; 0 picks a free one.
        open: Also open the page in the browser.
    """
    from actiongap.analysis.report.live import LivePage
    from actiongap.analysis.report.server import Server

    if not folders:
        raise ValueError("give at least one folder that holds runs, such as runs")
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder} is not a folder: give one that holds runs, such as compare's --out")
    with Server(LivePage(folders), port) as server:
        print(f"Report: {server.url} (Ctrl-C stops it)", flush=True)
        if open:
            webbrowser.open(server.url)
        server.serve_forever()
