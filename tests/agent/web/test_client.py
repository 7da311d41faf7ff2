"""El cliente guardado: nada de casa se alcanza, nada desborda, nada se cuelga y nada se escapa."""

import gzip
import socket
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.agent.web import ForbiddenAddressError, NetworkError, TlsError, TooBigError, WebClient, WebError
from enlace.agent.web.address import is_public
from enlace.errors import ConfigError, render
from tests.agent.server import Received, Sent, Server, serving, web_config
from tests.labels import label

CANARY = "canario-91c4"
# Formas de decir una dirección de casa, de esta máquina o de ningún sitio.
INTERNAL = """
127.0.0.1 127.1 127.0.1 0 0.0.0.0 127.255.255.254 2130706433 0x7f000001 0x7f.1 0x7f.0.0.1 0177.0.0.1 017700000001
0x7f.0x0.0x0.0x1 0177.0.0.0x1 10.0.0.1 10.1 0xa000001 167772161 012.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255
192.168.0.1 192.168.1.254 192.168.257 3232235777 0xc0a80101 0300.0250.1.1 169.254.169.254 169.254.1.1 2852039166
0xa9fea9fe 100.64.0.1 100.127.255.255 192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1
239.255.255.250 240.0.0.1 255.255.255.255 192.88.99.1 [::1] [::] [::ffff:127.0.0.1] [::ffff:10.0.0.1] [::ffff:7f00:1]
[::ffff:a9fe:a9fe] [0:0:0:0:0:ffff:c0a8:101] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::1]
[2002:7f00:1::] [2002:c0a8:101::1] [2001::1] [2001:db8::1] [fe80::1] [fec0::1] [fc00::1] [fd12:3456::1] [ff02::1]
[100::1] [::127.0.0.1] [3fff::1] localhost LOCALHOST
""".split()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(
        {"/": Sent("hola, señora".encode(), headers={"Content-Type": "text/plain; charset=utf-8"})}
    ) as running:
        yield running


def client(server: Server, **changes: object) -> WebClient:
    return WebClient(web_config(**changes), allowed_origins=[server.origin])


def test_it_asks_and_says_who_it_is(server: Server) -> None:
    response = client(server).get(f"{server.origin}/", params={"q": "ñandú & más"}, headers={"X-Una": "1"})
    assert (response.status, response.text(), response.url[:21]) == (200, "hola, señora", server.origin[:21])
    (request,) = server.received
    assert (request.form, request.headers["user-agent"], request.headers["x-una"]) == (
        {"q": "ñandú & más"},
        "ENLACE (prueba)",
        "1",
    )


def test_a_form_arrives_whole_and_its_redirection_is_not_followed(server: Server) -> None:
    server.routes["/"] = Sent(status=303, headers={"Location": "/otra"})
    assert client(server).post(f"{server.origin}/", {"q": "a=b&c", "b": ""}).status == 303
    assert [(each.method, each.form) for each in server.received] == [("POST", {"q": "a=b&c", "b": ""})]


def test_a_status_of_error_is_an_answer(server: Server) -> None:
    server.routes["/"] = Sent(b"no", status=503)
    assert client(server).get(f"{server.origin}/").status == 503


def test_there_are_sixty_forms_of_an_internal_address() -> None:
    assert len(set(INTERNAL)) >= 60


@pytest.mark.parametrize("host", INTERNAL)
def test_no_internal_address_is_reached(host: str) -> None:
    with pytest.raises(WebError) as caught:
        WebClient(web_config()).get(f"http://{host}/")
    # O se reconoce como de casa, o ni siquiera es una dirección para este sistema; conectarse, nunca.
    assert isinstance(caught.value, ForbiddenAddressError) or "no existe" in caught.value.what


@pytest.mark.parametrize("host", INTERNAL)
def test_no_redirection_reaches_an_internal_address(server: Server, host: str) -> None:
    with serving({"*": Sent(b"secreto")}) as secret:
        for port in (secret.origin.rsplit(":", 1)[1], "80"):
            server.routes["/"] = Sent(status=302, headers={"Location": f"http://{host}:{port}/"})
            with pytest.raises(ForbiddenAddressError) as caught:
                client(server).get(f"{server.origin}/")
            assert caught.value.exit_code == 9
    assert secret.received == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://casa.example/",
        "file:///etc/passwd",
        "javascript:1",
        "//casa.example",
        "casa.example",
        "",
        "http://",
        "http://[::1",
    ],
)
def test_only_http_and_https_addresses_are_asked(url: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        WebClient(web_config()).get(url)


@pytest.mark.parametrize("url", ["http://u:c@casa/", "http://casa.example@127.0.0.1/", "http://casa.example:22/"])
def test_neither_credentials_nor_other_ports(url: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        WebClient(web_config(), resolve=lambda *_: ["93.184.216.34"]).get(url)


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(ForbiddenAddressError):
        WebClient(web_config(), resolve=lambda *_: ["93.184.216.34", "10.0.0.1"]).get("http://casa.example/")


def test_a_name_is_resolved_once_and_the_connection_goes_where_it_was_checked(server: Server) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    port = server.origin.rsplit(":", 1)[1]
    origin = f"http://casa.example:{port}"
    found = WebClient(web_config(), allowed_origins=[origin], resolve=rebinding).get(f"{origin}/")
    assert (found.status, asked) == (200, ["casa.example"])
    assert server.received[0].headers["host"] == f"casa.example:{port}"


def test_only_the_exact_origin_is_allowed(server: Server) -> None:
    port = int(server.origin.rsplit(":", 1)[1])
    for url in (f"http://127.0.0.1:{port + 1}/", f"https://127.0.0.1:{port}/", f"http://localhost:{port}/"):
        with pytest.raises(ForbiddenAddressError):
            client(server).get(url)
    assert server.received == []


def test_redirections_are_followed_up_to_the_limit(server: Server) -> None:
    for number in range(9):
        server.routes[f"/{number}"] = Sent(status=301, headers={"Location": f"/{number + 1}"})
    server.routes["/9"] = Sent(b"fin")
    assert client(server).get(f"{server.origin}/6").body == b"fin"
    with pytest.raises(NetworkError, match="demasiadas veces"):
        client(server).get(f"{server.origin}/5")
    assert client(server).get(f"{server.origin}/6", redirects=False).status == 301


def test_headers_do_not_travel_to_another_origin(server: Server) -> None:
    with serving({"/": Sent(b"otra")}) as other:
        server.routes["/"] = Sent(status=302, headers={"Location": f"{other.origin}/"})
        both = WebClient(web_config(), allowed_origins=[server.origin, other.origin])
        assert both.get(f"{server.origin}/", headers={"X-Clave": CANARY}).body == b"otra"
    assert server.received[0].headers["x-clave"] == CANARY
    assert "x-clave" not in other.received[0].headers


@pytest.mark.parametrize("location", ["http://[", "http://\x7f/", "http://a b/"])
def test_a_broken_redirection_is_told(server: Server, location: str) -> None:
    server.routes["/"] = Sent(status=302, headers={"Location": location})
    with pytest.raises(WebError):
        client(server).get(f"{server.origin}/")


@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress, lambda raw: zlib.compress(raw, wbits=-15)], ids=label)
def test_what_comes_compressed_is_read(server: Server, packed: object) -> None:
    assert callable(packed)
    kind = "gzip" if packed is gzip.compress else "deflate"
    server.routes["/"] = Sent(packed(b"mate " * 100), headers={"Content-Encoding": kind})
    assert client(server).get(f"{server.origin}/").body == b"mate " * 100


def test_a_bomb_does_not_go_off(server: Server) -> None:
    bomb = gzip.compress(bytes(200_000_000))
    server.routes["/"] = Sent(bomb, headers={"Content-Encoding": "gzip"})
    with pytest.raises(TooBigError):
        client(server).get(f"{server.origin}/")


def test_more_than_the_limit_is_refused_whether_it_says_so_or_not(server: Server) -> None:
    server.routes["/"] = Sent(bytes(1_000_001))
    with pytest.raises(TooBigError):
        client(server).get(f"{server.origin}/")

    def endless(_request: Received, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(65536))

    server.routes["/"] = endless
    with pytest.raises(TooBigError):
        client(server).get(f"{server.origin}/")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"corta", {"Content-Length": "100"}),
        (gzip.compress(b"mate" * 99)[:-9], {"Content-Encoding": "gzip"}),
        (b"no es gzip", {"Content-Encoding": "gzip"}),
        (b"x", {"Content-Encoding": "br"}),
        (b"zz\r\nno", {"Transfer-Encoding": "chunked"}),
    ],
    ids=label,
)
def test_what_comes_cut_or_broken_is_told(server: Server, body: bytes, headers: dict[str, str]) -> None:
    def cut(_request: Received, handler: BaseHTTPRequestHandler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    server.routes["/"] = cut
    with pytest.raises(NetworkError):
        client(server).get(f"{server.origin}/")


def listen(answer: bytes, gap: float) -> tuple[str, threading.Thread]:
    """Un servidor que gotea byte a byte lo que contesta."""
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        with listener, listener.accept()[0] as connection:
            connection.settimeout(10)
            for byte in answer:
                try:
                    connection.send(bytes([byte]))
                except OSError:
                    return
                time.sleep(gap)

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", thread


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\n" * 9, b"HTTP/1.1 200 OK\r\n\r\n" + bytes(200), b""], ids=label
)
def test_a_server_that_drips_is_cut_at_the_deadline(answer: bytes) -> None:
    origin, thread = listen(answer or b"H", 0.05 if answer else 3.0)
    start = time.monotonic()
    with pytest.raises(NetworkError) as caught:
        WebClient(web_config(timeout_seconds=0.4), allowed_origins=[origin]).get(f"{origin}/")
    assert caught.value.timeout and "a tiempo" in caught.value.what
    assert time.monotonic() - start < 2
    thread.join(5)


def test_a_name_server_that_does_not_answer_is_cut_too() -> None:
    released = threading.Event()

    def stuck(_host: str, _port: int) -> list[str]:
        released.wait(10)
        return []

    start = time.monotonic()
    with pytest.raises(NetworkError) as caught:
        WebClient(web_config(timeout_seconds=0.2), resolve=stuck).get("http://casa.example/")
    assert caught.value.timeout and time.monotonic() - start < 2
    released.set()


def test_who_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        origin = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(NetworkError, match="no se llega"):
        WebClient(web_config(), allowed_origins=[origin]).get(f"{origin}/")
    with pytest.raises(NetworkError, match="no existe"):
        WebClient(web_config(), resolve=lambda *_: []).get("http://casa.example/")


def test_errors_do_not_tell_headers_nor_queries(server: Server) -> None:
    server.routes["/"] = Sent(b"corta", headers={"Content-Length": "100"})
    with pytest.raises(WebError) as caught:
        client(server).get(f"{server.origin}/", params={"clave": CANARY}, headers={"X-Clave": CANARY})
    assert CANARY not in render(caught.value)
    with pytest.raises(WebError) as caught:
        client(server).get(f"{server.origin}/", headers={"X-Clave": f"{CANARY}\r\nOtra: 1"})
    assert CANARY not in render(caught.value)


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("señal".encode("latin-1"), "text/html; charset=ISO-8859-1", "señal"),
        ("señal".encode("latin-1"), "text/html", "señal"),
        ("señal".encode(), "text/html; charset=no-existe", "señal"),
        ("\ufeffseñal".encode(), "text/html; charset=latin-1", "señal"),
        ("señal".encode("utf-16"), "text/html", "señal"),
        ('<meta charset="windows-1252">señal €'.encode("cp1252"), "text/html", '<meta charset="windows-1252">señal €'),
    ],
    ids=label,
)
def test_text_is_read_with_its_own_characters(server: Server, body: bytes, content_type: str, expected: str) -> None:
    server.routes["/"] = Sent(body, headers={"Content-Type": content_type})
    assert client(server).get(f"{server.origin}/").text() == expected


@given(st.binary(max_size=300), st.text(max_size=60))
def test_text_never_fails(body: bytes, content_type: str) -> None:
    from enlace.agent.web.body import decode

    assert isinstance(decode(body, {"content-type": content_type}), str)


@given(st.text(max_size=80))
def test_any_text_as_an_address_ends_in_a_clear_error(url: str) -> None:
    with pytest.raises(WebError):
        WebClient(web_config(), resolve=lambda *_: ["127.0.0.1"]).get(url)
    with pytest.raises(WebError):
        WebClient(web_config(), resolve=lambda *_: ["127.0.0.1"]).get(f"http://{url}/")


@given(st.ip_addresses(v=4, network="10.0.0.0/8") | st.ip_addresses(v=4, network="192.168.0.0/16"))
def test_a_private_address_inside_another_is_not_public(address: object) -> None:
    number = int(address)  # type: ignore[call-overload]
    for text in (
        str(address),
        f"::ffff:{address}",
        f"64:ff9b::{number:x}"[:0] or f"64:ff9b::{address}",
        f"::{address}",
    ):
        assert not is_public(text)
    assert not is_public(f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1")


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", ["", "hola", "fe80::1%eth0", "2606:4700::1111%eth0", "1.2.3", "1.2.3.4.5"])
def test_what_is_not_an_address_is_not_public(address: str) -> None:
    assert not is_public(address)


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Una autoridad propia y, firmados por ella, uno bueno, uno de otro nombre y uno caducado."""
    folder = tmp_path_factory.mktemp("certificados")
    new_key = ["-newkey", "rsa:2048", "-nodes"]
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Casa", cwd=folder)
    for name, address, days in (("bueno", "127.0.0.1", 2), ("otro", "127.0.0.2", 2), ("caducado", "127.0.0.1", -1)):
        (folder / "san").write_text(f"subjectAltName=IP:{address}")
        openssl("req", *new_key, "-keyout", f"{name}.key", "-out", "csr", "-subj", "/CN=x", cwd=folder)
        signer = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days), "-extfile", "san"]
        openssl("x509", "-req", "-in", "csr", "-out", f"{name}.pem", *signer, cwd=folder)
    return folder


def secure(certificates: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    return context


def test_a_house_authority_is_trusted_when_the_configuration_says_so(certificates: Path) -> None:
    with serving({"/": Sent(b"cifrado")}, secure(certificates, "bueno")) as server:
        trusted = client(server, ca_file=str(certificates / "ca.pem"))
        assert trusted.get(f"{server.origin}/").body == b"cifrado"


@pytest.mark.parametrize(
    ("name", "trusted", "reason"),
    [
        ("bueno", False, "quien firma|no conoces|se firma"),
        ("otro", True, "otra dirección|otro nombre"),
        ("caducado", True, "caducado"),
    ],
)
def test_a_certificate_that_is_not_valid_stops_it(certificates: Path, name: str, trusted: bool, reason: str) -> None:
    with serving({"/": Sent(b"no")}, secure(certificates, name)) as server:
        own = str(certificates / "ca.pem") if trusted else None
        with pytest.raises(TlsError, match=reason) as caught:
            client(server, ca_file=own).get(f"{server.origin}/")
        assert "web.ca_file" in caught.value.fix
    assert server.received == []


def test_encrypting_with_who_does_not_is_told(server: Server) -> None:
    origin = server.origin.replace("http:", "https:")
    with pytest.raises(TlsError):
        WebClient(web_config(), allowed_origins=[origin]).get(f"{origin}/")


def test_a_redirection_that_removes_the_encryption_is_refused(certificates: Path, server: Server) -> None:
    routes = {"/": Sent(status=302, headers={"Location": f"{server.origin}/"})}
    with serving(routes, secure(certificates, "bueno")) as safe:
        both = WebClient(web_config(ca_file=str(certificates / "ca.pem")), allowed_origins=[safe.origin, server.origin])
        with pytest.raises(ForbiddenAddressError, match="cifrado"):
            both.get(f"{safe.origin}/")
    assert server.received == []


@pytest.mark.parametrize("content", [None, b"", b"no es PEM"], ids=label)
def test_an_authority_file_that_is_not_one_is_told_at_once(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "casa.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        WebClient(web_config(ca_file=str(path)))
    assert caught.value.problems[0].key == "web.ca_file"


def test_it_looks_at_no_proxy_nor_certificate_of_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nada"))
    assert client(server).get(f"{server.origin}/").status == 200


def test_several_threads_share_one(server: Server) -> None:
    shared = client(server)
    bodies: list[bytes] = []
    threads = [threading.Thread(target=lambda: bodies.append(shared.get(f"{server.origin}/").body)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bodies == ["hola, señora".encode()] * 16
