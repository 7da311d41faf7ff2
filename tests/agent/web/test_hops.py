"""Cada salto se juzga solo: nada de lo permitido, lo comprobado ni lo secreto pasa al siguiente."""

import pytest

from enlace.agent.web import ForbiddenAddressError, NetworkError, WebClient
from tests.agent.server import Sent, Server, serving, web_config
from tests.agent.web.wire import Internet

CANARY = "canario-91c4"
PUBLIC, OTHER = "93.184.216.34", "8.8.8.8"
NAMES = {"uno.example": PUBLIC, "dos.example": OTHER}


def by_name(host: str, _port: int) -> list[str]:
    return [NAMES.get(host, host)]


def to(url: str) -> Sent:
    return Sent(status=302, headers={"Location": url})


def test_a_public_name_is_asked_at_the_address_that_was_checked(internet: Internet, server: Server) -> None:
    internet.served[PUBLIC, 80] = server
    assert WebClient(web_config(), resolve=by_name).get("http://uno.example/").text() == "hola, señora"
    assert internet.tried == [(PUBLIC, 80)]
    assert server.received[0].headers["host"] == "uno.example"


def test_a_name_that_changes_of_address_is_resolved_once_per_hop(internet: Internet, server: Server) -> None:
    internet.served[PUBLIC, 80] = server
    answers = [[PUBLIC], ["10.0.0.1"]]
    server.routes["/"] = to("/otra")
    with pytest.raises(ForbiddenAddressError):
        WebClient(web_config(), resolve=lambda *_: answers.pop(0)).get("http://uno.example/")
    assert (internet.tried, answers) == ([(PUBLIC, 80)], [])


def test_if_the_first_address_does_not_answer_the_next_one_is_tried(internet: Internet, server: Server) -> None:
    internet.served[PUBLIC, 80] = server
    assert WebClient(web_config(), resolve=lambda *_: [OTHER, PUBLIC]).get("http://uno.example/").status == 200
    assert internet.tried == [(OTHER, 80), (PUBLIC, 80)]


@pytest.mark.parametrize("private", ["10.0.0.1", "::1", "64:ff9b::7f00:1", "fe80::1%lo", "no es una dirección"])
def test_with_one_private_address_among_public_ones_nothing_is_tried(internet: Internet, private: str) -> None:
    for addresses in ([PUBLIC, private], [private, PUBLIC]):
        with pytest.raises(ForbiddenAddressError):
            WebClient(web_config(), resolve=lambda *_, found=addresses: found).get("http://uno.example/")
    assert internet.tried == []


def test_a_public_page_cannot_send_to_the_allowed_origin(internet: Internet, server: Server) -> None:
    with serving({"*": Sent(b"secreto de casa")}) as home:
        port = int(home.origin.rsplit(":", 1)[1])
        internet.served |= {(PUBLIC, 80): server, ("127.0.0.1", port): home}
        server.routes["/"] = to(f"{home.origin}/borrar")
        allowing = WebClient(web_config(), allowed_origins=[home.origin], resolve=by_name)
        with pytest.raises(ForbiddenAddressError):
            allowing.get("http://uno.example/")
        assert (home.received, internet.tried) == ([], [(PUBLIC, 80)])
        assert allowing.get(f"{home.origin}/").body == b"secreto de casa"


def test_the_allowed_origin_cannot_send_to_another_nor_be_sent_back_to(internet: Internet, server: Server) -> None:
    with serving({"*": Sent(b"otro")}) as other:
        origins = [server.origin, other.origin]
        internet.served |= {("127.0.0.1", int(each.origin.rsplit(":", 1)[1])): each for each in (server, other)}
        server.routes["/"] = to(f"{other.origin}/")
        with pytest.raises(ForbiddenAddressError):
            WebClient(web_config(), allowed_origins=origins).get(f"{server.origin}/")
        internet.served[PUBLIC, 80] = other
        other.routes["*"] = to(f"{server.origin}/borrar")
        server.routes["/"] = to("http://uno.example/")
        with pytest.raises(ForbiddenAddressError):
            WebClient(web_config(), allowed_origins=origins, resolve=by_name).get(f"{server.origin}/")
    assert [each.path for each in server.received] == ["/", "/"]


def test_the_allowed_origin_keeps_its_permission_in_its_own_redirections(server: Server) -> None:
    server.routes["/a"] = to("/")
    assert WebClient(web_config(), allowed_origins=[server.origin]).get(f"{server.origin}/a").status == 200


@pytest.mark.parametrize("target", ["http://dos.example/", "http://uno.example:443/"])
def test_headers_do_not_travel_to_another_origin(internet: Internet, server: Server, target: str) -> None:
    with serving({"/": to("http://uno.example/fin")}) as other:
        internet.served |= {(PUBLIC, 80): server, (OTHER, 80): other, (PUBLIC, 443): other}
        server.routes |= {"/": to(target), "/fin": Sent(b"fin")}
        asking = WebClient(web_config(), resolve=by_name)
        assert asking.get("http://uno.example/", headers={"X-Clave": CANARY}).body == b"fin"
    first, back = server.received
    assert first.headers["x-clave"] == CANARY
    assert CANARY not in str(other.received) + str(back)


def test_headers_stay_within_their_origin(server: Server) -> None:
    server.routes["/a"] = to("/")
    allowing = WebClient(web_config(), allowed_origins=[server.origin])
    allowing.get(f"{server.origin}/a", headers={"X-Clave": CANARY})
    assert [each.headers["x-clave"] for each in server.received] == [CANARY, CANARY]


def test_no_cookie_is_kept(server: Server) -> None:
    server.routes["/a"] = Sent(status=302, headers={"Location": "/", "Set-Cookie": "a=1"})
    asking = WebClient(web_config(), allowed_origins=[server.origin])
    asking.get(f"{server.origin}/a")
    asking.get(f"{server.origin}/")
    assert not any("cookie" in each.headers for each in server.received)


@pytest.mark.parametrize(
    "target",
    "http://uno.example:0/ http://uno.example:8080/ //dos.example:25/ http://u:c@uno/ ftp://uno.example/ "
    "file:///x javascript:alert(1) data:,x http://[::1".split(),
)
def test_a_redirection_is_judged_like_any_other_address(internet: Internet, server: Server, target: str) -> None:
    internet.served[PUBLIC, 80] = server
    server.routes["/"] = to(target)
    with pytest.raises(ForbiddenAddressError):
        WebClient(web_config(), resolve=by_name).get("http://uno.example/")
    assert internet.tried == [(PUBLIC, 80)]


@pytest.mark.parametrize("port", [0, 1, 22, 25, 8080, 8443, 65535, 65616, 99999999999])
def test_no_other_port_is_tried(internet: Internet, port: int) -> None:
    for scheme in ("http", "https"):
        with pytest.raises(ForbiddenAddressError):
            WebClient(web_config(), resolve=by_name).get(f"{scheme}://uno.example:{port}/")
    assert internet.tried == []


def test_a_loop_ends(server: Server) -> None:
    server.routes |= {"/": to("/b"), "/b": to("/")}
    with pytest.raises(NetworkError, match="demasiadas veces"):
        WebClient(web_config(max_redirects=3), allowed_origins=[server.origin]).get(f"{server.origin}/")
    assert len(server.received) == 4


def test_an_address_of_a_redirection_may_bring_accents_as_they_are(server: Server) -> None:
    server.routes |= {"/a": to("/camión".encode().decode("latin-1")), "/cami%C3%B3n": Sent(b"aqu\xc3\xad")}
    asking = WebClient(web_config(), allowed_origins=[server.origin])
    assert asking.get(f"{server.origin}/a").text() == "aquí"
