"""Lo que se ve mientras se entrena: una barra viva en un terminal, una línea cada diez segundos si no lo es."""

import contextlib
import sys
import time
from collections import deque
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from enlace.errors import say
from enlace.errors.numerals import decimal, duration, percent, thousands

SECONDS_BETWEEN_LINES = 10.0
RECENT_STEPS = 50


class ProgressDisplay:
    """Muestra cada paso. Escribe en stderr: la salida de datos queda limpia."""

    def __init__(self, steps: int, first_step: int) -> None:
        self.steps = steps
        self._recent: deque[float] = deque(maxlen=RECENT_STEPS)
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        console = Console(stderr=True)
        # Un terminal que no sabe borrar (TERM=dumb) no vería nada hasta el final.
        if sys.stderr.isatty() and not console.is_dumb_terminal:
            # El texto va junto y lo menos importante al final: en 80 columnas se corta por ahí.
            self._bar = Progress(TextColumn("{task.description}"), BarColumn(bar_width=None), console=console)
            self._task = self._bar.add_task("", total=steps, completed=first_step)
            self._bar.start()

    def show(self, record: dict[str, Any]) -> None:
        """Enseña el registro de un paso recién dado."""
        self._recent.append(record["timing"]["seconds"])
        if self._bar is not None:
            self._bar.update(self._task, completed=record["step"], description=self._describe(record))
            return
        now = time.monotonic()
        if "validation" in record or record["step"] == self.steps or now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            say(self._describe(record))

    def close(self) -> None:
        """Deja el terminal como estaba."""
        if self._bar is not None:
            with contextlib.suppress(OSError):  # puede que la terminal ya no esté
                self._bar.stop()

    def _describe(self, record: dict[str, Any]) -> str:
        timing = record["timing"]
        left = (self.steps - record["step"]) * sum(self._recent) / len(self._recent)
        mfu = "desconocido" if timing["mfu"] is None else percent(timing["mfu"])
        parts = [
            f"paso {record['step']}/{self.steps}",
            f"faltan {duration(left)}",
            f"pérdida {_decimals(record['loss'])}",
            f"{_decimals(record['bits_per_byte'])} bits/byte",
            f"{thousands(round(timing['tokens_per_second']))} tokens/s",
            f"MFU {mfu}",
        ]
        if "validation" in record:
            parts.insert(4, f"validación {_decimals(record['validation'])}")
        if record["skipped"]:
            parts.append(f"paso saltado: {record['skipped']}")
        return " · ".join(parts)


def _decimals(value: float | str) -> str:
    """Tres decimales; lo no finito llega ya como texto («nan»)."""
    return value if isinstance(value, str) else decimal(value, 3)
