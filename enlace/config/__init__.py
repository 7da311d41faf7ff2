"""Configuración por capas: ficheros YAML compuestos, validados y con el origen de cada valor."""

from enlace.config.json_schema import json_schemas
from enlace.config.load import LoadedRun, check_all, find_run, load_agent, load_corpus, load_run
from enlace.config.secrets import Secrets, read_secrets, require
from enlace.config.show import dump, explain
from enlace.config.tree import Origin

__all__ = [
    "LoadedRun",
    "Origin",
    "Secrets",
    "check_all",
    "dump",
    "explain",
    "find_run",
    "json_schemas",
    "load_agent",
    "load_corpus",
    "load_run",
    "read_secrets",
    "require",
]
