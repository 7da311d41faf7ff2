"""Cifrado: lo que no se puede comprobar no se usa, y se dice qué le pasa."""

import shutil
import ssl
import subprocess
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from enlace.agent.web import ForbiddenAddressError, NetworkError, TlsError, WebClient
from enlace.errors import ConfigError, render
from tests.agent.server import Received, Sent, serving, web_config
from tests.agent.web.wire import Internet, Talk, answer, client, drip, silent, talking
from tests.labels import label

SIGNED = (
    ("bueno", "IP:127.0.0.1", 2),
    ("otra", "IP:127.0.0.2", 2),
    ("caducado", "IP:127.0.0.1", -1),
    ("nombre", "DNS:uno.example", 2),
    ("comodín", "DNS:*.casa.example", 2),
)


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Una autoridad propia y sus certificados: buenos, de otra dirección o nombre, caducado y firmado por sí mismo."""
    if shutil.which("openssl") is None:
        pytest.skip("no hay openssl en esta máquina: el cifrado queda sin probar")
    folder = tmp_path_factory.mktemp("certificados")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    alone = [
        "-keyout",
        "solo.key",
        "-out",
        "solo.pem",
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    openssl("req", "-x509", *new_key, *alone, cwd=folder)
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Casa", cwd=folder)
    for name, subject, days in SIGNED:
        (folder / "san").write_text(f"subjectAltName={subject}")
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
        ("bueno", False, "no conoces"),
        ("otra", True, "otra dirección"),
        ("nombre", True, "otra dirección"),
        ("caducado", True, "caducado"),
        ("solo", True, "se firma a sí mismo"),
        ("solo", False, "se firma a sí mismo"),
    ],
)
def test_a_certificate_that_is_not_valid_stops_it(certificates: Path, name: str, trusted: bool, reason: str) -> None:
    with serving({"/": Sent(b"no")}, secure(certificates, name)) as server:
        own = str(certificates / "ca.pem") if trusted else None
        with pytest.raises(TlsError, match=reason) as caught:
            client(server, ca_file=own).get(f"{server.origin}/")
        assert "web.ca_file" in caught.value.fix
    assert server.received == []


PUBLIC = "93.184.216.34"


@pytest.mark.parametrize(
    ("certificate", "host", "reason"),
    [
        ("nombre", "uno.example", ""),
        ("nombre", "UNO.example", ""),
        ("comodín", "dos.casa.example", ""),
        ("nombre", "dos.example", "otro nombre"),
        ("comodín", "a.dos.casa.example", "otro nombre"),
        ("bueno", "uno.example", "otro nombre"),
    ],
)
def test_the_certificate_has_to_be_of_the_name_asked_and_not_of_the_address(
    internet: Internet, certificates: Path, certificate: str, host: str, reason: str
) -> None:
    context, names = secure(certificates, certificate), []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with serving({"/": Sent(b"cifrado")}, context) as server:
        internet.served[PUBLIC, 443] = server
        asking = WebClient(web_config(ca_file=str(certificates / "ca.pem")), resolve=lambda *_: [PUBLIC])
        if reason:
            with pytest.raises(TlsError, match=reason):
                asking.get(f"https://{host}/")
        else:
            assert asking.get(f"https://{host}/").body == b"cifrado"
    assert (names, internet.tried) == ([host.lower()], [(PUBLIC, 443)])
    assert len(server.received) == (not reason)


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Mal\r\n\r\n", bytes(40), b"\x15\x03\x01\x00\x02\x02\x28"])
def test_encrypting_with_who_does_not_is_told(reply: bytes) -> None:
    with talking(answer(reply), scheme="https") as origin, pytest.raises(TlsError) as caught:
        client(origin).get(f"{origin}/?clave=canario-91c4")
    assert "https" in caught.value.fix and "canario" not in render(caught.value)


def test_an_old_encryption_is_refused(certificates: Path) -> None:
    old = secure(certificates, "bueno")
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with serving({"/": Sent(b"no")}, old) as server, pytest.raises(TlsError):
        client(server, ca_file=str(certificates / "ca.pem")).get(f"{server.origin}/")
    assert server.received == []


def test_an_encrypted_answer_that_is_cut_is_told(certificates: Path) -> None:
    routes = {"/": Sent(b"corta", headers={"Content-Length": "100"})}
    with serving(routes, secure(certificates, "bueno")) as server, pytest.raises(NetworkError):
        client(server, ca_file=str(certificates / "ca.pem")).get(f"{server.origin}/")


@pytest.mark.parametrize("talk", [drip(b"\x16\x03\x03\x40\x00\x02" + bytes(99), 0.05), silent], ids=["drip", "silence"])
def test_an_endless_handshake_is_cut_at_the_deadline(talk: Talk) -> None:
    with talking(talk, scheme="https") as origin:
        start = time.monotonic()
        with pytest.raises(NetworkError) as caught:
            client(origin, timeout_seconds=0.3).get(f"{origin}/")
        assert caught.value.timeout and time.monotonic() - start < 1


def test_an_encrypted_answer_that_drips_is_cut_at_the_deadline(certificates: Path) -> None:
    def slowly(_request: Received, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(40):
            handler.wfile.write(b"a")
            time.sleep(0.05)

    with serving({"/": slowly}, secure(certificates, "bueno")) as server:
        start = time.monotonic()
        with pytest.raises(NetworkError) as caught:
            client(server, ca_file=str(certificates / "ca.pem"), timeout_seconds=0.5).get(f"{server.origin}/")
        assert caught.value.timeout and time.monotonic() - start < 1.2


def test_the_environment_does_not_add_authorities(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(certificates))
    with serving({"/": Sent(b"no")}, secure(certificates, "bueno")) as server, pytest.raises(TlsError):
        client(server, ca_file=str(certificates / "nombre.pem")).get(f"{server.origin}/")


def test_a_redirection_that_removes_the_encryption_is_refused(internet: Internet, certificates: Path) -> None:
    with serving(
        {"/": Sent(status=302, headers={"Location": "http://uno.example/"})}, secure(certificates, "nombre")
    ) as safe:
        internet.served[PUBLIC, 443] = safe
        asking = WebClient(web_config(ca_file=str(certificates / "ca.pem")), resolve=lambda *_: [PUBLIC])
        with pytest.raises(ForbiddenAddressError, match="cifrado"):
            asking.get("https://uno.example/")
    assert internet.tried == [(PUBLIC, 443)]


@pytest.mark.parametrize("content", [None, b"", b"no es PEM"], ids=label)
def test_an_authority_file_that_is_not_one_is_told_at_once(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "casa.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        WebClient(web_config(ca_file=str(path)))
    assert caught.value.problems[0].key == "web.ca_file"
