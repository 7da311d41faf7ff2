"""El cliente guardado: nada de casa se alcanza, nada desborda, nada se cuelga y nada se escapa."""

import gzip
import socket
import struct
import threading
import time
import traceback
import tracemalloc
import zlib
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.agent.web import ForbiddenAddressError, NetworkError, TooBigError, WebClient, WebError, WebResponse
from enlace.agent.web.connection import Deadline, Pinned
from enlace.errors import render
from tests.agent.server import Received, Sent, Server, serving, web_config
from tests.agent.web.wire import Internet, Talk, answer, client, drip, silent, talking
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
[100::1] [::127.0.0.1] [3fff::1] [::ffff:0:127.0.0.1] [2001:0:5db8:d822::80ff:fffe] [::1%25lo] [fe80::1%25lo] [::1%lo]
[fe80::5efe:10.0.0.1] 127.0.0.1. 0177.0.0.1. 127%2e0%2e0%2e1 １２７.０.０.１ 127。0。0。1 ①②⑦.0.0.1 ⑯⑨。254.169.254
0x0a.0.0.1 00000000.0.0.0 1.1.1.1@127.0.0.1 127.0.0.1\\@uno.example localhost LOCALHOST localhost. ｌocalhost
""".split()


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


def numeric(host: str, port: int) -> list[str]:
    """Lo que entiende este sistema por ese nombre, con todas sus rarezas, sin preguntar a ningún DNS."""
    if host.rstrip(".").endswith("localhost"):
        return ["127.0.0.1", "::1"]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return [str(address[0]) for *_, address in found]


def as_sent(url: str) -> str:
    """Una cabecera con esos caracteres en utf-8: la biblioteca del servidor solo admite los de latin-1."""
    return url.encode().decode("latin-1")


@pytest.mark.parametrize("host", INTERNAL)
def test_no_internal_address_is_reached(internet: Internet, host: str) -> None:
    for url in (f"http://{host}/", f"http://{host}:443/", f"https://{host}/"):
        with pytest.raises(WebError) as caught:
            WebClient(web_config(), resolve=numeric).get(url)
        # O se reconoce como de casa, o ni siquiera es una dirección para este sistema; conectarse, nunca.
        assert isinstance(caught.value, ForbiddenAddressError) or "no existe" in caught.value.what
    assert internet.tried == []


@pytest.mark.parametrize("host", INTERNAL)
def test_no_redirection_reaches_an_internal_address(internet: Internet, server: Server, host: str) -> None:
    internet.served["93.184.216.34", 80] = server
    with serving({"*": Sent(b"secreto")}) as secret:
        for port in (secret.origin.rsplit(":", 1)[1], "80", "443"):
            server.routes["/"] = Sent(status=302, headers={"Location": as_sent(f"http://{host}:{port}/")})
            with pytest.raises(WebError) as caught:
                WebClient(web_config(), allowed_origins=[secret.origin], resolve=numeric).get("http://93.184.216.34/")
            assert caught.value.exit_code == 9 or "no existe" in caught.value.what
    assert secret.received == []
    assert internet.tried == [("93.184.216.34", 80)] * 3


@pytest.mark.parametrize("name", ["localhost", "algo.localhost", "LOCALHOST.", "casa.local", "router"])
def test_a_name_is_judged_by_where_it_goes(internet: Internet, name: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        WebClient(web_config(), resolve=lambda *_: ["192.168.1.1"]).get(f"http://{name}/")
    assert internet.tried == []


@pytest.mark.parametrize("name", ["a..b", ".example", "a" * 64 + ".example", "a" * 300, "a%00b", "a b"])
def test_a_name_that_cannot_be_is_told(internet: Internet, name: str) -> None:
    with pytest.raises(WebError):
        WebClient(web_config(), resolve=numeric).get(f"http://{name}/")
    assert internet.tried == []


@pytest.mark.parametrize("params", [{"q": "\udcff"}, {"q": "a" * 70_000}])
def test_what_cannot_be_written_in_an_address_is_told(server: Server, params: dict[str, str]) -> None:
    with pytest.raises(WebError):
        client(server).get(f"{server.origin}/", params=params)
    assert server.received == []


def test_what_cannot_be_written_in_a_form_is_told(server: Server) -> None:
    with pytest.raises(WebError):
        client(server).post(f"{server.origin}/", {"q": "\udcff"})
    assert server.received == []


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


def bomb(kind: int, megabytes: int) -> bytes:
    """Ceros comprimidos. El mismo trozo tantas veces como haga falta, que hacerla entera tarda."""
    machine = zlib.compressobj(9, zlib.DEFLATED, kind)
    first = machine.compress(bytes(2**20)) + machine.flush(zlib.Z_FULL_FLUSH)
    again = machine.compress(bytes(2**20)) + machine.flush(zlib.Z_FULL_FLUSH)
    return first + again * (megabytes - 1)


@pytest.mark.parametrize(("encoding", "kind"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_a_bomb_does_not_go_off(server: Server, encoding: str, kind: int) -> None:
    server.routes["/"] = Sent(bomb(kind, 1024), headers={"Content-Encoding": encoding})
    asking = client(server, max_bytes=2_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(TooBigError):
            asking.get(f"{server.origin}/")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


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
        (zlib.compress(b"mate" * 99)[:-9], {"Content-Encoding": "deflate"}),
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


def reset(connection: socket.socket) -> None:
    """Empieza a contestar y corta de golpe."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nmedia")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize(
    "talk",
    [
        reset,
        lambda connection: None,
        answer(b""),
        answer(b"HTTP/1.1 200"),
        answer(b"SSH-2.0-OpenSSH\r\n\r\n"),
        answer(b"HTTP/1.1 101 Otro\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhola"),
        answer(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"),
        answer(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n"),
        answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nmedia\r\n"),
        answer(b"\x00\xff" * 500),
    ],
)
def test_what_is_not_a_whole_answer_is_told(talk: Talk) -> None:
    with talking(talk) as origin, pytest.raises(NetworkError) as caught:
        client(origin).get(f"{origin}/")
    assert not caught.value.timeout


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "talk",
    [
        drip(OK * 9, 0.05),
        drip(OK + b"\r\n" + bytes(200), 0.05),
        drip(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 99, 0.05),
        drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 99, 0.01),
        silent,
    ],
    ids=["headers", "body", "chunks", "informational", "silence"],
)
def test_a_server_that_drips_is_cut_at_the_deadline(talk: Talk) -> None:
    with talking(talk) as origin:
        start = time.monotonic()
        with pytest.raises(NetworkError) as caught:
            client(origin, timeout_seconds=0.3).get(f"{origin}/")
        assert time.monotonic() - start < 1
    assert caught.value.timeout and "a tiempo" in caught.value.what


def test_the_deadline_is_for_all_the_redirections_together() -> None:
    def slowly(connection: socket.socket) -> None:
        time.sleep(0.15)
        answer(b"HTTP/1.1 302 Mira\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")(connection)

    with talking(*[slowly] * 9) as origin:
        start = time.monotonic()
        with pytest.raises(NetworkError) as caught:
            client(origin, timeout_seconds=0.4, max_redirects=9).get(f"{origin}/")
        assert caught.value.timeout and time.monotonic() - start < 1


def test_who_reads_slowly_does_not_stretch_the_deadline() -> None:
    def read_slowly(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        while connection.recv(16384):
            time.sleep(0.001)

    with talking(read_slowly) as origin:
        port = int(origin.rsplit(":", 1)[1])
        stream = Pinned(["127.0.0.1"], Deadline(0.4)).connect_tcp("uno.example", port)
        start = time.monotonic()
        with pytest.raises(httpcore2.TimeoutException):
            stream.write(bytes(60_000_000))
        stream.close()
        assert time.monotonic() - start < 1


def test_who_does_not_take_the_connection_is_cut_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        port = full.getsockname()[1]
        for _ in range(4):  # llenan la cola: a los demás ni se les contesta
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        start = time.monotonic()
        with pytest.raises(NetworkError) as caught:
            client(f"http://127.0.0.1:{port}", timeout_seconds=0.3).get(f"http://127.0.0.1:{port}/")
        assert caught.value.timeout and time.monotonic() - start < 1


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


@pytest.mark.parametrize("bad", ["\r\nOtra: 1", "ñ", " ", "\0", "\N{RIGHT SINGLE QUOTATION MARK}", "\udcff"])
def test_a_key_that_cannot_be_sent_is_told_without_showing_it(server: Server, bad: str) -> None:
    for headers in ({"X-Clave": CANARY + bad}, {CANARY + bad: "1"}):
        with pytest.raises(WebError, match="cabecera") as caught:
            client(server).get(f"{server.origin}/", headers=headers)
        assert CANARY not in render(caught.value) + "".join(traceback.format_exception(caught.value))
    assert server.received == []


@pytest.mark.parametrize("echo", ["{}\r\n\r\n", "HTTP/1.1 200 OK\r\n{}:{}\0\r\n\r\n", "HTTP/1.1 200 OK\r\n {}\r\n\r\n"])
def test_a_server_that_repeats_what_it_was_told_does_not_put_it_in_the_error(echo: str) -> None:
    def repeat(connection: socket.socket) -> None:
        line = next(each for each in connection.recv(65536).decode().split("\r\n") if CANARY in each)
        connection.sendall(echo.format(line, line).encode())

    with talking(repeat) as origin, pytest.raises(NetworkError) as caught:
        client(origin).get(f"{origin}/", headers={"X-Clave": CANARY})
    assert CANARY not in render(caught.value) + "".join(traceback.format_exception(caught.value))


def ends(url: str, resolve: object) -> None:
    assert callable(resolve)
    try:
        assert isinstance(WebClient(web_config(), resolve=resolve).get(url), WebResponse)
    except WebError as error:
        assert error.what


@given(st.text(max_size=80), st.text("0123456789.:[]%@/\\x#?abcdef。１", max_size=40))
def test_any_text_as_an_address_ends_in_a_clear_error(url: str, host: str) -> None:
    def home(name: str, port: int) -> list[str]:
        numeric(name, port)  # los fallos de leer un nombre son los de verdad
        return ["127.0.0.1"]

    for text in (url, f"http://{url}/", f"http://{host}/", f"https://uno.example/{url}"):
        ends(text, home)


def test_it_looks_at_no_proxy_of_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
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
