"""Qué direcciones son de internet y cuáles de casa.

Con listas propias: la biblioteca estándar da por públicas las que llevan una privada dentro (NAT64, 6to4) y por no
privadas las de los operadores (100.64.0.0/10).
"""

import ipaddress

# Los registros de direcciones especiales de la IANA (RFC 6890 y posteriores), la difusión y las reservadas.
_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Lo único que se reparte en IPv6, menos lo especial: Teredo y otros (2001::/23), documentación y 6to4.
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
# Llevan una IPv4 en los últimos 32 bits: vale lo que valga ella (RFC 4291 y 6052).
_EMBEDDING_6 = tuple(ipaddress.IPv6Network(block) for block in ("::ffff:0:0/96", "64:ff9b::/96"))


def is_public(text: str) -> bool:
    """True si esa dirección IP, ya resuelta, es de internet. Lo que no se entiende no lo es."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return _is_public_4(address)
    if address.scope_id is not None:
        return False
    if any(address in block for block in _EMBEDDING_6):
        return _is_public_4(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _PUBLIC_6 and not any(address in block for block in _NOT_PUBLIC_6)


def _is_public_4(address: ipaddress.IPv4Address) -> bool:
    return not any(address in block for block in _NOT_PUBLIC_4)
