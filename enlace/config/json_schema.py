"""JSON Schema de cada clase de fichero, para que el editor complete claves y señale las que no existen."""

from typing import Any

from enlace.config.compose import BASE, INCLUDE, INCLUDE_NAME
from enlace.config.load import ALONE
from enlace.config.schema import LAYERS, Run

_NAME = {"type": "string", "pattern": f"^{INCLUDE_NAME}$"}


def json_schemas() -> dict[str, dict[str, Any]]:
    """Nombre (`hardware`, `model`, `train`, `data`, `agent`, `corpus`, `run`) → JSON Schema de sus ficheros.

    Ninguna clave es obligatoria: cualquiera puede venir de la base de un fichero o de otra capa.
    """
    schemas = {name: schema.model_json_schema() for name, schema in {**LAYERS, **ALONE}.items()}
    schemas["run"] = Run.model_json_schema()
    for name, schema in schemas.items():
        schema["properties"][INCLUDE] = _run_include() if name == "run" else _NAME
        for group in (schema, *schema.get("$defs", {}).values()):
            group.pop("required", None)
    return schemas


def _run_include() -> dict[str, Any]:
    names = {name: _NAME for name in (*LAYERS, BASE)}
    return {"type": "object", "additionalProperties": False, "properties": names}
