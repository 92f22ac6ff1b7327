import contextlib
import http.server
import inspect
import ipaddress
import pickle
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_pictures import chart, encoded

from sensorium.core import ObservationError
from sensorium.observations import urls
from sensorium.observations.config import ReadConfig
from sensorium.observations.image import read_image
from sensorium.observations.urls import RefusedUrlError, UrlError, UrlLimitError, fetch, is_public
from sensorium.observations.values import ImageValue, ProblemValue

PICTURE = encoded(chart(60, 40))
CONFIG = ReadConfig(allow_urls=True, url_timeout_s=5.0, url_max_bytes=100_000, url_max_redirects=3)


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests: list[tuple[str, str]]

    def do_GET(self) -> None:
        self.requests.append((self.path, self.headers["Host"]))
        name = self.path.partition("?")[0].strip("/").replace("-", "_")
        getattr(self, f"answer_{name}", self.answer_missing)()

    def log_message(self, *_: Any) -> None:
        pass

    def send(self, body: bytes, status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content_Type": "image/png"} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def answer_missing(self) -> None:
        self.send(b"no", 404, Content_Type="text/plain")

    def answer_picture(self) -> None:
        self.send(PICTURE)

    def answer_chunked(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "image/png; charset=x")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (PICTURE[:100], PICTURE[100:]):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def answer_page(self) -> None:
        self.send(b"<html>", Content_Type="text/html")

    def answer_packed(self) -> None:
        self.send(b"x", Content_Encoding="gzip")

    def answer_cut_off(self) -> None:
        self.send(PICTURE[:50], length=len(PICTURE))

    def answer_promises_much(self) -> None:
        self.send(b"", length=10**9)

    def answer_endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(100):
                self.wfile.write(bytes(10_000))
        self.close_connection = True

    def answer_once(self) -> None:
        self.send(b"", 302, Location="/picture")

    def answer_round(self) -> None:
        self.send(b"", 307, Location="/round")

    def answer_nowhere(self) -> None:
        self.send(b"", 301)

    def answer_inside(self) -> None:
        self.send(b"", 302, Location="http://10.0.0.1/secret")

    def answer_file(self) -> None:
        self.send(b"", 302, Location="file:///etc/passwd")

    def answer_drip(self) -> None:
        """A byte now and then: each is in time, the whole never is."""
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(100):
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.05)
        self.close_connection = True

    def answer_drip_header(self) -> None:
        with contextlib.suppress(OSError):
            for letter in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 80:
                self.wfile.write(bytes([letter]))
                self.wfile.flush()
                time.sleep(0.05)
        self.close_connection = True


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    seen: list[tuple[str, str]] = []
    handler = type("Handler", (_Answers,), {"requests": seen})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.daemon_threads = True
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", seen
        running.shutdown()
        thread.join()


def load(url: str, config: ReadConfig = CONFIG) -> bytes:
    """Fetch with loopback allowed, and nothing else that is not public."""
    return fetch(url, config, _is_allowed=lambda address: address.is_loopback or is_public(address))


def test_a_picture_is_loaded(server: tuple[str, list[tuple[str, str]]]) -> None:
    base, seen = server
    assert load(f"{base}/picture?size=4#part") == PICTURE
    assert seen == [("/picture?size=4", base.removeprefix("http://"))]
    assert load(f"{base}/chunked") == PICTURE
    assert load(f"{base}/once") == PICTURE


@pytest.mark.parametrize(
    ("path", "error", "match"),
    [
        ("missing", UrlError, "status 404"),
        ("page", UrlError, "text/html"),
        ("packed", UrlError, "compressed"),
        ("cut-off", UrlError, "broke off"),
        ("nowhere", UrlError, "where to"),
        ("promises-much", UrlLimitError, "100,000 bytes"),
        ("endless", UrlLimitError, "100,000 bytes"),
        ("round", UrlLimitError, "3 redirects"),
        ("inside", RefusedUrlError, "10.0.0.1"),
        ("file", RefusedUrlError, "only http and https"),
    ],
)
def test_what_is_not_a_picture_within_limits_is_a_typed_error(
    server: tuple[str, list[tuple[str, str]]], path: str, error: type[UrlError], match: str
) -> None:
    with pytest.raises(error, match=match) as caught:
        load(f"{server[0]}/{path}")
    assert type(caught.value) is error
    assert isinstance(caught.value, ObservationError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("path", ["drip", "drip-header"])
def test_the_time_limit_holds_for_the_whole_answer(
    server: tuple[str, list[tuple[str, str]]], path: str
) -> None:
    with pytest.raises(UrlLimitError, match="in time"):
        load(f"{server[0]}/{path}", CONFIG.updated({"url_timeout_s": 0.3}))


def test_redirects_are_counted(server: tuple[str, list[tuple[str, str]]]) -> None:
    with pytest.raises(UrlLimitError, match="0 redirects"):
        load(f"{server[0]}/once", CONFIG.updated({"url_max_redirects": 0}))
    assert [path for path, _ in server[1]] == ["/once"]


def test_loopback_is_refused_and_no_setting_permits_it(server: tuple[str, list[tuple[str, str]]]) -> None:
    base, seen = server
    for config in (CONFIG, ReadConfig(allow_urls=True)):
        with pytest.raises(RefusedUrlError, match="public internet"):
            fetch(f"{base}/picture", config)
    (part,) = read_image(f"{base}/picture", part_id="p", config=CONFIG)
    assert isinstance(part.value, ProblemValue)
    assert seen == []
    assert "_is_allowed" not in inspect.signature(read_image).parameters


def test_without_permission_nothing_is_loaded(server: tuple[str, list[tuple[str, str]]]) -> None:
    with pytest.raises(RefusedUrlError, match="allow_urls"):
        load(f"{server[0]}/picture", ReadConfig())
    assert server[1] == []


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[2002:a00:1::1]",
        "[fe80::1]",
        "[fc00::1]",
        "[ff02::1]",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "localhost",
    ],
)
def test_addresses_inside_are_refused_however_they_are_written(host: str) -> None:
    with pytest.raises(RefusedUrlError, match="public internet"):
        fetch(f"http://{host}/a.png", CONFIG)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/a.png",
        "file:///etc/passwd",
        "gopher://example.org",
        "http://",
        "http:///a.png",
        "http://user:secret@example.org/a.png",
        "http://example.org:99999/",
        "http://exa mple.org/",
        "http://example.org/\r\nHost: other",
        "http://[::1/",
        "http://" + "a" * 300 + ".org/",
        "",
    ],
)
def test_malformed_and_foreign_addresses_are_refused_without_a_look_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _never)
    with pytest.raises(RefusedUrlError) as caught:
        fetch(url, CONFIG)
    assert "secret" not in str(caught.value)


def test_public_addresses_are_told_apart() -> None:
    for text in ("8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"):
        assert is_public(ipaddress.ip_address(text)), text
    assert not is_public(ipaddress.ip_address("2001:0:4136:e378:8000:63bf:3fff:fdd2"))  # Teredo


def test_a_name_is_resolved_once_and_the_checked_address_is_used(
    server: tuple[str, list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that answers with a public address first and with a private one later."""
    port = int(server[0].rpartition(":")[2])
    asked: list[str] = []
    connected: list[str] = []
    original = socket.create_connection

    def look_up(host: str, port_: int, **_: Any) -> list[Any]:
        asked.append(host)
        address = "93.184.216.34" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port_))]

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address[0])
        monkeypatch.setattr(socket, "getaddrinfo", real)  # connecting to a number looks nothing up
        return original(("127.0.0.1", port), timeout)

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    assert fetch(f"http://pictures.example:{port}/picture", CONFIG) == PICTURE
    assert asked == ["pictures.example"]
    assert connected == ["93.184.216.34"]
    assert server[1][0][1] == f"pictures.example:{port}"


def test_a_host_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", (address, port)) for address in ("93.184.216.34", "192.168.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", _never)
    with pytest.raises(RefusedUrlError, match=r"192\.168\.0\.1"):
        fetch("http://two-faced.example/a.png", CONFIG)


def test_names_that_are_unknown_or_never_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(UrlError, match="not known"):
        fetch("http://nowhere.example/a.png", CONFIG)
    release = threading.Event()

    def stuck(*_: Any, **__: Any) -> list[Any]:
        release.wait(5)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", stuck)
    with pytest.raises(UrlLimitError, match="not found in time"):
        fetch("http://slow.example/a.png", CONFIG.updated({"url_timeout_s": 0.05}))
    release.set()


def test_a_closed_port_and_a_server_without_tls(server: tuple[str, list[tuple[str, str]]]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(UrlError, match="cannot be reached"):
            load(f"http://127.0.0.1:{unused.getsockname()[1]}/picture")
    with pytest.raises(UrlError, match="cannot be reached"):
        load(server[0].replace("http:", "https:") + "/picture")


def test_a_secure_server_is_checked_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl program (apt-get install openssl) to make a certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = [
        openssl,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=pictures",
    ]
    command += [
        "-addext",
        "subjectAltName=DNS:pictures.example",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    handler = type("Handler", (_Answers,), {"requests": []})
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, port, *_, **__: [(2, 1, 6, "", ("127.0.0.1", port))]
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.handle_error = lambda *_: None  # type: ignore[method-assign]
        running.socket = context.wrap_socket(running.socket, server_side=True)
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        base = f"pictures.example:{running.server_port}"
        with pytest.raises(UrlError, match="certificate"):  # nobody vouches for it
            load(f"https://{base}/picture")
        monkeypatch.setattr(ssl, "create_default_context", lambda: trusting)
        assert load(f"https://{base}/picture") == PICTURE
        with pytest.raises(UrlError, match="certificate"):  # it is another host's
            load(f"https://other.example:{running.server_port}/picture")
        running.shutdown()


def test_an_address_is_read_as_a_picture_when_it_may_be(
    server: tuple[str, list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., bytes] = fetch
    monkeypatch.setattr(
        urls, "fetch", lambda url, config: original(url, config, _is_allowed=lambda address: True)
    )
    (part,) = read_image(f"{server[0]}/picture", part_id="p", config=CONFIG)
    assert isinstance(part.value, ImageValue)
    assert part.value.data == PICTURE
    assert part.value.url == f"{server[0]}/picture"


def _never(*_: Any, **__: Any) -> Any:
    raise AssertionError("must not be called")
