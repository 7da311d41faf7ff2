"""Una comprobación de la máquina; aparte de `backends.py` para que `doctor` funcione aunque falte torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """Qué se mira, si está bien, qué se ha visto, qué hacer y si impide trabajar."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    fatal: bool = False
