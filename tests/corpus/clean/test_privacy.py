"""Los datos personales se esconden; los números que no lo son se quedan."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enlace.config.schema import PrivacyKind
from enlace.corpus.clean.privacy import hide

ALL = get_args(PrivacyKind)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Escribe a jose.núñez(a)correo.es hoy.", "Escribe a [correo] hoy."),
        ("<ana+casa(a)mail.example.com>", "<[correo]>"),
        ("El DNI 12345678Z y el 12.345.678-Z.", "El DNI [documento] y el [documento]."),
        ("NIE X1234567L.", "NIE [documento]."),
        ("CUIT 20-12345678-6", "CUIT [documento]"),
        ("RUT 12.345.678-5", "RUT [documento]"),
        ("CURP HEGG560427MVZRRL04", "CURP [documento]"),
        ("IBAN ES91 2100 0418 4502 0005 1332.", "IBAN [iban]."),
        ("ES9121000418450200051332", "[iban]"),
        ("Tarjeta 4111 1111 1111 1111 y 4111111111111111", "Tarjeta [tarjeta] y [tarjeta]"),
        ("Llama al +34 600 123 456 o al +54 9 11 2345-6789.", "Llama al [teléfono] o al [teléfono]."),
        ("Teléfono: 945 12 34 56", "Teléfono: [teléfono]"),
        ("tel. 4321-8765", "tel. [teléfono]"),
        ("600 123 456", "[teléfono]"),
        ("El servidor 8.8.4.4 no contesta", "El servidor [ip] no contesta"),
        ("IP: 190.123.200.150", "IP: [ip]"),
        ("Es 2001:0db8:85a3:0000:0000:8a2e:0370:7334", "Es [ip]"),
    ],
)
def test_personal_data_is_hidden(text: str, hidden: str) -> None:
    assert hide(text.replace("(a)", "@"), ALL)[0] == hidden


@pytest.mark.parametrize(
    "text",
    [
        "Costó 1.123.200.150 pesos y 45.200.100.500 COP.",
        "El expediente 12345678A no existe; tampoco el 99999999B.",
        "ISBN 978-84-376-0494-7, ley 19.550, artículo 1.2.3.4 y versión 10.2.33.4.",
        "En 1492-1512 hubo 600 000 000 pesos, 1 200 000 habitantes y 3,1415926535.",
        "La tarjeta 4111 1111 1111 1112 no vale.",
        "ES91 2100 0418 4502 0005 1333",
        "De 8:30 a 10:45, del 12 al 15; 20/11/2026; 100.000.000 euros.",
        "192.168.1.1 y 127.0.0.1 son de casa.",
        "@usuario y a@b no son correos.",
        "RUT 12.345.678-9, CUIT 20-12345678-1",
        "El 112 y el 016 atienden siempre.",
        "Menor que 281 474 976 710 656, hasta 922 337 203,5807.",
        "12.3.14.1. Bloqueo de aula.",
        "Hicieron falta 10.000.000 K, y el apartado 3.2.1.4 lo explica.",
    ],
)
def test_ordinary_numbers_stay(text: str) -> None:
    assert hide(text, ALL) == (text, {})


def test_only_the_kinds_asked_for_are_hidden() -> None:
    text = "ana(a)correo.example, 600 123 456".replace("(a)", "@")
    assert hide(text, ["correo"])[0] == "[correo], 600 123 456"
    assert hide(text, [])[0] == text


@given(st.text(max_size=200) | st.from_regex(r"[\dA-Z .@:\-+]{0,80}", fullmatch=True))
def test_hiding_twice_is_hiding_once(text: str) -> None:
    once, _ = hide(text, ALL)
    assert hide(once, ALL)[0] == once
