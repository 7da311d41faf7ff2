"""Las clases de error y su código de salida."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class EnlaceError(Exception):
    """Error que una persona puede entender y arreglar.

    what: qué pasó · where: fichero:línea u orden · why: la causa · fix: qué hacer.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.fix = fix


class UsageError(EnlaceError):
    """La orden está mal escrita."""

    exit_code = 2


class InstallationError(EnlaceError):
    """A la instalación o a la máquina les falta algo."""

    exit_code = 3


@dataclass(frozen=True)
class Problem:
    """Un problema de configuración: dónde está (fichero:línea), qué clave, qué se esperaba y la pista."""

    where: str
    key: str
    message: str
    hint: str = ""

    @property
    def text(self) -> str:
        """Lo que pasa, sin decir dónde."""
        key = f"«{self.key}»: " if self.key else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{key}{self.message}{hint}"

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


class ConfigError(EnlaceError):
    """La configuración no es válida. Lleva todos los problemas encontrados, no solo el primero."""

    exit_code = 4

    most_shown: ClassVar[int] = 100

    def __init__(self, problems: Sequence[Problem], *, what: str = "", fix: str = "") -> None:
        count = len(problems)
        noun = "problema" if count == 1 else "problemas"
        super().__init__(
            what or f"la configuración no es válida: {count} {noun}",
            where=problems[0].where if problems else "",
            why=problems[0].text if count == 1 else self._listed(problems),
            fix=fix or "corrígelo y repite la orden",
        )
        self.problems = tuple(problems)

    def _listed(self, problems: Sequence[Problem]) -> str:
        rest = len(problems) - self.most_shown
        more = [f"… y {rest} más"] if rest > 0 else []
        return "\n".join([*map(str, problems[: self.most_shown]), *more])


class NotFoundError(EnlaceError):
    """No existe lo que se pide."""

    exit_code = 5


class LockedError(EnlaceError):
    """Otro proceso tiene el recurso."""

    exit_code = 6


class CorruptDataError(EnlaceError):
    """Los bytes leídos no son los que se escribieron."""

    exit_code = 7


class ResourceError(EnlaceError):
    """No hay espacio en disco o memoria suficiente."""

    exit_code = 8


class RefusedError(EnlaceError):
    """Se rechaza por seguridad."""

    exit_code = 9


class Cancelled(EnlaceError):
    """La persona ha cancelado la orden."""

    exit_code = 130
