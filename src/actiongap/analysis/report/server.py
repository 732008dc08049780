"""One page, served only to this machine: 127.0.0.1, GET and HEAD of `/`, and nothing else.

Another site's page in the same browser can neither read nor frame it: requests under any name but this machine's own
are refused, so DNS rebinding does not work.
"""

from __future__ import annotations

import errno
import os
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from actiongap.analysis.report.live import LivePage

ADDRESS = "127.0.0.1"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Server(socketserver.ThreadingTCPServer):
    """Serves a live page once `serve_forever` is called."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # elsewhere it would let two servers have one port

    def __init__(self, page: LivePage, port: int = 0) -> None:
        """At that port; 0 is any that is free."""
        if not 0 <= port <= 65535:
            raise ValueError(f"port is {port}; it must be between 0 and 65535, and 0 picks a free one")
        self.page = page
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            why = "is in use" if error.errno == errno.EADDRINUSE else f"is not available ({error.strerror or error})"
            raise ValueError(f"port {port} {why}: choose another with --port; 0 picks a free one") from None

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "actiongap", ""
    timeout = 10.0
    error_content_type, error_message_format = "text/plain; charset=utf-8", "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        names = [f"{name}:{self.server.port}" for name in (ADDRESS, "localhost")]
        if self.server.port == 80:
            names += [ADDRESS, "localhost"]
        if self.headers.get_all("Host") not in [[name] for name in names]:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "This server answers only to its own address")
        elif self.path != "/":
            self.send_error(HTTPStatus.NOT_FOUND, "There is one page, /")
        else:
            stamp, body = self.server.page.page() if with_body else (self.server.page.stamp(), b"")
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("ETag", f'"{stamp}"')
            if with_body:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def _refuse(self) -> None:
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD are answered")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the terminal is for people."""
