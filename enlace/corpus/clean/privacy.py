"""Los datos personales, cambiados por su nombre: `[correo]`, `[teléfono]`…

Cada número se comprueba con sus dígitos de control o por cómo se escribe: una cifra cualquiera se queda como está.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from enlace.config.schema import PrivacyKind

Replace = Callable[[re.Match[str]], bool]

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_CURP_ALPHABET = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
_AMOUNT = r"(?!\s*(?:[€$%]|euros?|pesos?|d[óo]lares|soles|bol[íi]vares|millones|mil\b|habitantes|COP|EUR|USD|ARS|MXN))"

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}(?![\w@])")
_IPV4 = re.compile(r"(?<![\d.,])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\d.]*\d)")
_IPV6 = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?![\w:])")
_IP_CONTEXT = re.compile(r"(?:\bip\b|servidor|host|direcci[óo]n|//|@)\W{0,3}(?:\w+\W{1,3}){0,2}$", re.IGNORECASE)
_NOT_IP_CONTEXT = re.compile(r"(?:versi[óo]n|\bv|secci[óo]n|apartado|art[íi]culo|cap[íi]tulo|§)\W*$", re.IGNORECASE)
_DNI = re.compile(r"(?<![\w.-])(?:(\d{8})[ -]?|(\d{2}\.\d{3}\.\d{3})-?)([A-Z])(?!\w)")
_NIE = re.compile(r"(?<![\w.-])([XYZ])-?(\d{7})-?([A-Z])(?!\w)")
_CUIT = re.compile(r"(?<![\w.-])(2[03-7]|3[034])([ -]?)(\d{8})\2(\d)(?![\w-])")
_CURP = re.compile(r"(?<!\w)[A-Z]{4}\d{6}[HMX][A-Z]{5}[0-9A-Z]\d(?!\w)")
_RUT = re.compile(r"(?<![\w.-])(\d{1,2}\.\d{3}\.\d{3}|\d{7,8})-([\dkK])(?![\w-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?!\w)")
_CARD = re.compile(r"(?<![\d.,-])(?:[2-6]\d{3}([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -]?)\d{6}\2\d{5})(?![\d-])")
_PHONE_WORD = r"(?:tel[ée]fonos?|telf?\.?|tfn?o\.?|m[óo]vil|celular|whatsapp|fax)"
_PHONES = (
    re.compile(r"(?<![\w+])\+\d{1,3}(?:[ .-]?\(?\d{1,4}\)?)(?:[ .-]?\d{2,4}){2,4}(?![\d.]*\d)"),
    re.compile(rf"(?<=\b){_PHONE_WORD}\W{{0,3}}(?:n[.ºo°]*\W?)?(?:[(+]?\d[\d ().-]{{6,16}}\d)(?!\d)", re.IGNORECASE),
    re.compile(
        rf"(?<![\w.,+-])(?<!\d )[6789]\d{{2}}(?:([ -])\d{{3}}\1\d{{3}}|([ -])\d{{2}}\2\d{{2}}\2\d{{2}})"
        rf"(?![\d-])(?! \d|[.,]\d){_AMOUNT}"
    ),
)
# Sin esto no hay número que esconder, y casi ningún texto lo tiene.
_NUMBER = re.compile(r"\d(?:[ .:()\-A-Fa-f]{0,3}\d){4}|\d\.\d{1,3}\.\d")
_PHONE_NUMBER = re.compile(r"[(+]?\d[\d ().-]{6,16}\d$")


def hide(text: str, kinds: Collection[PrivacyKind]) -> tuple[str, Counter[str]]:
    """El texto sin esos datos y cuántos había de cada clase."""
    found: Counter[str] = Counter()
    has_numbers = _NUMBER.search(text) is not None
    for kind in _ORDER:
        if kind in kinds and (has_numbers or kind == "correo"):
            text, count = _HIDERS[kind](text)
            if count:
                found[kind] += count
    return text, found


def _hide_all(text: str, pattern: re.Pattern[str], name: str, is_one: Replace) -> tuple[str, int]:
    count = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal count
        if not is_one(match):
            return match[0]
        count += 1
        return name

    return pattern.sub(replaced, text), count


def _hide_emails(text: str) -> tuple[str, int]:
    return _hide_all(text, _EMAIL, "[correo]", lambda _match: True) if "@" in text else (text, 0)


def _hide_ips(text: str) -> tuple[str, int]:
    text, four = _hide_all(text, _IPV4, "[ip]", _is_ip) if text.count(".") > 2 else (text, 0)
    text, six = _hide_all(text, _IPV6, "[ip]", lambda _match: True) if text.count(":") > 6 else (text, 0)
    return text, four + six


def _is_ip(match: re.Match[str]) -> bool:
    octets = [int(group) for group in match.groups()]
    if max(octets) > 255 or any(len(group) > 1 and group[0] == "0" for group in match.groups()):
        return False
    first, second = octets[:2]
    if first in (0, 10, 127, 255) or (first, second) == (192, 168) or (first == 172 and 16 <= second < 32):
        return False  # de una red de casa: no es de nadie
    before = match.string[max(0, match.start() - 40) : match.start()]
    # «1.123.200.150 pesos» también es una dirección válida: así se escriben los millones; y «3.2.1.4» y lo que abre
    # un renglón, los apartados.
    is_amount = all(len(group) == 3 for group in match.groups()[1:])
    if is_amount or max(octets) < 10 or before[-1:] in ("", "\n"):
        return _IP_CONTEXT.search(before) is not None
    return _NOT_IP_CONTEXT.search(before) is None


def _hide_documents(text: str) -> tuple[str, int]:
    total = 0
    for pattern, is_one in _DOCUMENTS:
        text, count = _hide_all(text, pattern, "[documento]", is_one)
        total += count
    return text, total


def _is_dni(match: re.Match[str]) -> bool:
    return _DNI_LETTERS[int((match[1] or match[2]).replace(".", "")) % 23] == match[3]


def _is_nie(match: re.Match[str]) -> bool:
    return _DNI_LETTERS[int(f"{'XYZ'.index(match[1])}{match[2]}") % 23] == match[3]


def _is_cuit(match: re.Match[str]) -> bool:
    digits = [int(digit) for digit in match[1] + match[3]]
    check = 11 - sum(a * b for a, b in zip(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2), strict=True)) % 11
    return {11: 0, 10: 9}.get(check, check) == int(match[4])


def _is_rut(match: re.Match[str]) -> bool:
    digits = match[1].replace(".", "")[::-1]
    check = 11 - sum(int(digit) * (2 + place % 6) for place, digit in enumerate(digits)) % 11
    return {11: "0", 10: "k"}.get(check, str(check)) == match[2].lower()


def _is_curp(match: re.Match[str]) -> bool:
    total = sum(_CURP_ALPHABET.index(char) * (18 - place) for place, char in enumerate(match[0][:17]))
    return (10 - total % 10) % 10 == int(match[0][17])


def _hide_ibans(text: str) -> tuple[str, int]:
    return _hide_all(text, _IBAN, "[iban]", _is_iban)


def _is_iban(match: re.Match[str]) -> bool:
    compact = re.sub(r"[ -]", "", match[0])
    moved = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def _hide_cards(text: str) -> tuple[str, int]:
    return _hide_all(text, _CARD, "[tarjeta]", _is_card)


def _is_card(match: re.Match[str]) -> bool:
    digits = [int(char) for char in match[0] if char.isdigit()][::-1]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return len(set(digits)) > 1 and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _hide_phones(text: str) -> tuple[str, int]:
    total = 0
    for pattern in _PHONES:
        text, count = _hide_numbers(text, pattern)
        total += count
    return text, total


def _hide_numbers(text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    """Esconde el número y deja la palabra que lo anuncia."""
    count = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal count
        number = _PHONE_NUMBER.search(match[0])
        digits = sum(char.isdigit() for char in number[0]) if number else 0
        if number is None or not 8 <= digits <= 15:
            return match[0]
        count += 1
        return match[0][: number.start()] + "[teléfono]"

    return pattern.sub(replaced, text), count


_DOCUMENTS = ((_DNI, _is_dni), (_NIE, _is_nie), (_CUIT, _is_cuit), (_CURP, _is_curp), (_RUT, _is_rut))
_HIDERS: Mapping[PrivacyKind, Callable[[str], tuple[str, int]]] = MappingProxyType(
    {
        "correo": _hide_emails,
        "iban": _hide_ibans,
        "tarjeta": _hide_cards,
        "documento": _hide_documents,
        "ip": _hide_ips,
        "telefono": _hide_phones,
    }
)
# Primero lo más largo: un IBAN lleva dentro lo que parece una tarjeta.
_ORDER: tuple[PrivacyKind, ...] = ("correo", "iban", "tarjeta", "documento", "ip", "telefono")
