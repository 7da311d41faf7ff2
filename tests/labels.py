"""Cómo se llama cada caso de una prueba: los que son bytes pueden llevar la hora, y cambiarían en cada proceso."""


def label(value: object) -> str | None:
    """El nombre de un valor que no es texto: el de su tipo. De los demás, el de siempre."""
    return None if isinstance(value, str | int | float | bool | None) else type(value).__name__
