"""Los errores de sintaxis de PyYAML, en español y con la línea."""

import re

import yaml

from enlace.config.tree import printable

_REASONS = (
    (r"character '\\t'", "hay un tabulador: sangra con espacios"),
    (r"character '[@`%]'", "un valor no puede empezar por @, ` o %: ponlo entre comillas"),
    (r"mapping values are not allowed", "sobra un «:» (en un texto, ponlo entre comillas) o la sangría no cuadra"),
    (r"could not find expected ':'", "falta el «:» entre la clave y el valor"),
    (r"'<stream end>'|end of stream", "falta cerrar unas comillas, un corchete o una llave"),
    (r"expected ',' or '[]}]'", "falta una coma, o cerrar un corchete o una llave"),
    (r"expected <block end>", "la sangría no cuadra con las líneas de arriba"),
    (r"entries are not allowed|keys are not allowed", "aquí no puede empezar una lista o una clave"),
    (r"escape", "hay un escape \\ que no existe: usa comillas simples o \\\\"),
    (r"directive|YAML document", "las directivas de YAML («%…») no se admiten"),
    (r"tag|'!'|URI", "las etiquetas de YAML («!tipo») no se admiten"),
    (r"while scanning an (alias|anchor)", "las anclas y los alias de YAML («&», «*») no se admiten"),
)


def explain_syntax(error: Exception, text: str) -> tuple[int, str]:
    """Línea (desde 1) y causa, con el texto de la línea."""
    if isinstance(error, yaml.reader.ReaderError):
        # PyYAML no da aquí la línea, solo la posición del carácter prohibido (NUL y otros controles).
        line = text.count("\n", 0, error.position) + 1
        return line, f"hay un carácter que no es texto (U+{ord(text[error.position]):04X})"
    line = _line(error)
    return line, f"YAML mal escrito: {_reason(error)}{_excerpt(text, line)}"


def _line(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark else 1


def _reason(error: Exception) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return "hay un escape \\U que no es un carácter"
    english = f"{error.context} {error.problem}"
    return next((spanish for pattern, spanish in _REASONS if re.search(pattern, english)), "no se entiende esta línea")


def _excerpt(text: str, line: int) -> str:
    lines = text.splitlines()
    shown = lines[line - 1].strip() if line <= len(lines) else ""
    return f": «{printable(shown, 60)}»" if shown else ""
