"""One page for this machine alone: nothing else is served, to nobody else, under no other name."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actiongap.analysis.report.live import LivePage
from actiongap.analysis.report.server import Server

from .written_runs import write_grid


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    runs = write_grid(tmp_path_factory.mktemp("runs"), {"pixelcopter": {"dqn": [10.0, 11, 12]}})
    with Server(LivePage([runs])) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def ask(server: Server, method: str = "GET", path: str = "/", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def ask_raw(server: Server, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_the_page(server: Server) -> None:
    code, headers, content = ask(server)
    assert code == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert int(headers["Content-Length"]) == len(content)
    assert b"Learning curves" in content
    assert f"data-stamp={headers['ETag']}".encode() in content
    assert ask(server, "HEAD")[1]["ETag"] == headers["ETag"]
    assert ask(server, "HEAD")[2] == b""


def test_it_listens_on_this_machine_only(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.port}/"


@pytest.mark.parametrize(
    "path",
    [
        *("/index.html", "/settings.json", "/pixelcopter-dqn-0/", "/pixelcopter-dqn-0/metrics.csv", "/.", "/?a"),
        *("/../", "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/", "/etc/passwd", "*"),
    ],
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    code, headers, content = ask(server, path=path)
    assert code == 404
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert content == b"404 There is one page, /\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_get_and_head(server: Server, method: str) -> None:
    assert ask(server, method)[0] == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:{port}"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_another_name_is_refused(server: Server, method: str, host: str) -> None:
    code, _, content = ask(server, method, Host=host.format(port=server.port))
    assert code == 421
    assert b"Learning" not in content


def test_its_own_names_are_not_refused(server: Server) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert ask(server, Host=f"{host}:{server.port}")[0] == 200


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: evil\r\n\r\n",
        b"\x00\xff\r\n\r\n",
        b"GET <script> HTTP/9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=["no host", "HTTP/0.9", "two hosts", "nonsense", "markup", "long"],
)
def test_what_is_no_request_of_a_browser_gets_no_page(
    server: Server, request_line: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = ask_raw(server, request_line.replace(b"%d", str(server.port).encode()))
    assert b"Learning" not in answer
    assert b"<script>" not in answer
    assert ask(server)[0] == 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("path", ["/", "/other"])
def test_the_browser_is_told_to_keep_others_out(server: Server, path: str) -> None:
    _, headers, _ = ask(server, path=path)
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert not any("http" in sources or "*" in sources for sources in policy.values())
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"].strip() == "actiongap"


def test_a_browser_that_hangs_up_is_no_error(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # the next close is a reset
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        connection.close()
    assert ask(server)[0] == 200
    assert capfd.readouterr().err == ""


def test_a_port_that_cannot_be_had(server: Server, tmp_path: Path) -> None:
    page: Any = LivePage([tmp_path])
    with pytest.raises(ValueError, match=rf"port {server.port} is in use: choose another with --port"):
        Server(page, server.port)
    for port in (-1, 65_536):
        with pytest.raises(ValueError, match=f"port is {port}; it must be between 0 and 65535"):
            Server(page, port)
