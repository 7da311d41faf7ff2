"""Lo que la búsqueda comparte entre todos los procesos de la casa: memoria, turnos, descansos y cupos.

Los tiempos son segundos desde 1970 y los da quien llama.
"""

import secrets
from dataclasses import dataclass

from enlace.store.database import Database

# Mientras otro pregunta no se sabe cuánto tardará: se vuelve a mirar cada poco.
_POLL_SECONDS = 0.05
# Quien llama mira el reloj y luego espera la base: hasta aquí es esa espera; más allá, que el reloj ha vuelto atrás.
_CLOCK_SLACK = 60.0


@dataclass(frozen=True)
class Turn:
    """Un turno. wait: 0 si ya es tuyo, o segundos hasta que valga la pena volver a pedirlo; token: para devolverlo."""

    wait: float
    token: str


@dataclass(frozen=True)
class Pause:
    """Un descanso: hasta cuándo, por qué final, con qué motivo y tras cuántos bloqueos seguidos."""

    until: float
    outcome: str
    reason: str
    strikes: int


class SearchState:
    """El estado de la búsqueda en la base de datos del hogar. No guarda credenciales."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def cached(self, key: str, now: float) -> str | None:
        """La respuesta guardada con esa clave, si no ha caducado."""
        with self._database.reading() as connection:
            # También caduca si se guardó «en el futuro»: el reloj ha vuelto atrás y no se sabe cuánto vale.
            row = connection.execute(
                "SELECT answer FROM search_cache WHERE key = ? AND stored_at <= ? AND expires_at > ?", (key, now, now)
            ).fetchone()
        return None if row is None else str(row[0])

    def remember(self, key: str, answer: str, *, now: float, expires_at: float, max_entries: int) -> None:
        """Guarda una respuesta; se van las caducadas y, si no caben, las más viejas."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO search_cache (key, answer, stored_at, expires_at) VALUES (?, ?, ?, ?)",
                (key, answer, now, expires_at),
            )
            # Las «del futuro», de cuando el reloj estaba mal, no valen, y como las más nuevas echarían a las demás.
            connection.execute("DELETE FROM search_cache WHERE expires_at <= ? OR stored_at > ?", (now, now))
            connection.execute(
                "DELETE FROM search_cache WHERE key IN"
                " (SELECT key FROM search_cache ORDER BY stored_at DESC, key LIMIT -1 OFFSET ?)",
                (max_entries,),
            )

    def take_turn(self, service: str, now: float, lease_seconds: float) -> Turn:
        """Pide el turno de un servicio: uno a la vez y guardando la distancia.

        lease_seconds: si quien lo tiene muere sin devolverlo, caduca entonces.
        """
        token = secrets.token_hex(8)
        with self._database.transaction() as connection:
            row = connection.execute(
                "SELECT holder, lease_until, next_at, interval FROM search_turn WHERE service = ?", (service,)
            ).fetchone()
            holder, lease_until, next_at, interval = row or (None, now, now, 0.0)
            lease_until = _sane(lease_until, now, lease_seconds)
            next_at = _sane(next_at, now, interval)
            in_flight = holder is not None and lease_until > now
            wait = _POLL_SECONDS if in_flight else max(0.0, next_at - now)
            if wait == 0.0:
                holder, lease_until = token, now + lease_seconds
            kept = (holder, lease_until, next_at, interval)
            if kept != row:  # quien espera pregunta muchas veces, y escribir en el disco por cada una lo gasta
                connection.execute(
                    "INSERT OR REPLACE INTO search_turn (service, holder, lease_until, next_at, interval)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (service, *kept),
                )
        return Turn(wait, token)

    def end_turn(self, service: str, token: str, now: float, interval: float) -> None:
        """Devuelve el turno; el siguiente no será antes de `now + interval`. Uno ya caducado no quita el de otro."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE search_turn SET next_at = max(next_at, ?), interval = ? WHERE service = ?",
                (now + interval, interval, service),
            )
            connection.execute(
                "UPDATE search_turn SET holder = NULL WHERE service = ? AND holder = ?", (service, token)
            )

    def pause_of(self, service: str, now: float) -> Pause | None:
        """El descanso de un servicio, si sigue en él."""
        pause = self._pause(service)
        return pause if pause is not None and pause.until > now else None

    def strikes(self, service: str) -> int:
        """Los bloqueos seguidos que lleva un servicio."""
        pause = self._pause(service)
        return 0 if pause is None else pause.strikes

    def pause(self, service: str, pause: Pause) -> None:
        """Manda descansar a un servicio."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO search_pause (service, until, outcome, reason, strikes) VALUES (?, ?, ?, ?, ?)",
                (service, pause.until, pause.outcome, pause.reason, pause.strikes),
            )

    def forgive(self, service: str) -> None:
        """Ha contestado bien: ni descanso ni bloqueos en su cuenta."""
        if self._pause(service) is None:
            return
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM search_pause WHERE service = ?", (service,))

    def spend(self, service: str, month: str, limit: int) -> bool:
        """Cuenta una petición de ese mes («2026-12») si cabe en el tope; False si no cabe."""
        with self._database.transaction() as connection:
            counted = connection.execute(
                "INSERT INTO search_budget (service, month, spent) SELECT ?, ?, 1 WHERE ? > 0"
                " ON CONFLICT (service, month) DO UPDATE SET spent = spent + 1 WHERE spent < ?",
                (service, month, limit, limit),
            )
        return counted.rowcount == 1

    def spent(self, service: str, month: str) -> int:
        """Las peticiones de ese mes."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT spent FROM search_budget WHERE service = ? AND month = ?", (service, month)
            ).fetchone()
        return 0 if row is None else int(row[0])

    def _pause(self, service: str) -> Pause | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT until, outcome, reason, strikes FROM search_pause WHERE service = ?", (service,)
            ).fetchone()
        return None if row is None else Pause(*row)


def _sane(moment: float, now: float, longest: float) -> float:
    """Ese momento o, si el reloj ha vuelto atrás, el que sería empezando ahora."""
    return now + longest if moment > now + longest + _CLOCK_SLACK else moment
