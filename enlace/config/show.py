"""Escribe una configuración: para volver a cargarla o para ver de dónde sale cada valor."""

import re

import yaml

from enlace.config.load import LoadedRun
from enlace.config.messages import literal
from enlace.config.schema import Run
from enlace.config.tree import Node
from enlace.config.yaml12 import BOOL, FLOAT, INT, NULL


class _Dumper(yaml.SafeDumper):
    """Entrecomilla los textos que, según YAML 1.2, se leerían como otra cosa (`'3e-4'`)."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, object]]] = {}  # noqa: RUF012


for _tag, _pattern in (("null", NULL), ("bool", BOOL), ("int", INT), ("float", FLOAT)):
    # PyYAML usa match, no fullmatch.
    _whole = re.compile(rf"(?:{_pattern.pattern})\Z")
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole, None)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Solo entre comillas dobles escribe PyYAML con escape los saltos de línea raros (U+0085), que si no se pierden.
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _text)


def dump(run: Run) -> str:
    """Configuración resuelta, en YAML; cargarla da una corrida igual."""
    return yaml.dump(run.model_dump(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def explain(loaded: LoadedRun) -> str:
    """Una línea `clave = valor  ← origen` por valor, con las flechas alineadas."""
    rows = [(f"{key} = {_shown(node)}", node.origin) for key, node in loaded.tree.leaves()]
    width = max(len(text) for text, _ in rows)
    return "\n".join(f"{text:<{width}}  ← {origin}" for text, origin in rows)


def _shown(node: Node) -> str:
    if isinstance(node.value, list):
        return "[]"
    return repr(node.value) if isinstance(node.value, str) else literal(node.value)
