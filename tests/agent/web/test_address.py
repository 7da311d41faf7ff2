"""Qué direcciones son de internet: ninguna de casa lo es, vaya metida donde vaya."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.agent.web.address import is_public

PRIVATE = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 198.18.0.0/15 "
    "224.0.0.0/4 240.0.0.0/4"
).split()
private = st.one_of([st.ip_addresses(v=4, network=block) for block in PRIVATE])


def embeddings(address: ipaddress.IPv4Address) -> list[str]:
    """Todas las maneras de llevar una IPv4 dentro de una IPv6."""
    number = int(address)
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    hidden = number ^ 0xFFFFFFFF  # Teredo la guarda al revés (RFC 4380)
    return [
        f"::ffff:{address}",
        f"::ffff:0:{address}",
        f"::{address}",
        f"64:ff9b::{address}",
        f"64:ff9b:1::{address}",
        f"2002:{high}:{low}::1",
        f"2001:0:5db8:d822:0:0:{hidden >> 16:x}:{hidden & 0xFFFF:x}",
        f"2001:0:{high}:{low}::1",
        f"fe80::5efe:{address}",
    ]


@given(private)
def test_a_private_address_is_not_public_alone_nor_inside_another(address: ipaddress.IPv4Address) -> None:
    assert [text for text in (str(address), *embeddings(address)) if is_public(text)] == []


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "8.8.8.8", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "2606:4700::1111"],
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", ["::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_inside_another_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address", ["", "hola", "fe80::1%eth0", "2606:4700::1111%eth0", "1.2.3", "1.2.3.4.5", "0177.0.0.1", "2130706433"]
)
def test_what_is_not_an_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@given(st.text(max_size=50))
def test_any_text_has_an_answer(text: str) -> None:
    assert isinstance(is_public(text), bool)
