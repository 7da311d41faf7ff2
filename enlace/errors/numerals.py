"""Los números como se escriben en español: coma decimal, punto de millares, horas y minutos."""

_TO_SPANISH = str.maketrans(",.", ".,")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def thousands(number: int) -> str:
    """1234567 → «1.234.567»."""
    return f"{number:,}".translate(_TO_SPANISH)


def decimal(value: float, digits: int) -> str:
    """1.2345 → «1,2345»."""
    return f"{value:,.{digits}f}".translate(_TO_SPANISH)


def power(value: float) -> str:
    """24500000000000 → «2,45·10¹³»."""
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits.translate(_TO_SPANISH)}·10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def percent(fraction: float, *, sign: bool = False) -> str:
    """0.125 → «12 %»; con signo, «+12 %»."""
    return f"{fraction * 100:{'+' if sign else ''}.0f} %".replace("-", "−")


def gib(size: int) -> str:
    """Bytes → «1,50 GiB»."""
    return f"{decimal(size / 2**30, 2)} GiB"


def duration(seconds: float | None) -> str:
    """11400 → «3 h 10 min»."""
    if seconds is None:
        return "desconocido"
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
