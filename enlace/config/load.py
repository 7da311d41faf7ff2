"""Carga una corrida completa, o dice todo lo que tiene mal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from enlace.config.compose import RUNS, Composer
from enlace.config.schema import LAYERS, Agent, Corpus, Run
from enlace.config.schema.base import Layer
from enlace.config.tree import Node, Origin, merge, printable, problem
from enlace.config.validate import suggest, validate
from enlace.config.yaml12 import is_file
from enlace.errors import ConfigError, NotFoundError, Problem

AGENT, CORPUS = "agent", "corpus"
# Ficheros que se leen solos, sin formar parte de una corrida: carpeta de configs/ → qué claves llevan.
ALONE: Mapping[str, type[Layer]] = MappingProxyType({AGENT: Agent, CORPUS: Corpus})

M = TypeVar("M", bound=Layer)


@dataclass(frozen=True)
class LoadedRun:
    """Una corrida válida y el árbol del que sale."""

    run: Run
    tree: Node

    @cached_property
    def origins(self) -> Mapping[str, Origin]:
        """Clave con puntos (los elementos de una lista, con su índice) → de dónde sale su valor."""
        return {key: node.origin for key, node in self.tree.leaves()}


def load_run(path: Path, overrides: Sequence[str] = ()) -> LoadedRun:
    """Compone y valida una corrida. overrides: argumentos `clave=valor`, el valor en YAML.

    ConfigError: con todos los problemas de todos los ficheros.
    """
    loaded, problems = _run(path, overrides)
    if loaded is None:
        raise ConfigError(problems)
    return loaded


def find_run(name_or_path: str) -> Path:
    """Fichero de una corrida, por su nombre (`smoke-cpu`) o por su ruta.

    NotFoundError: no existe; con los nombres parecidos.
    """
    return _find(RUNS, name_or_path, "la corrida")


def load_agent(name_or_path: str, overrides: Sequence[str] = ()) -> Agent:
    """La configuración del agente de una casa, por el nombre de su fichero en `configs/agent/` o por su ruta.

    overrides: argumentos `clave=valor`. No lee ningún secreto. NotFoundError: no existe; ConfigError: con todos los
    problemas.
    """
    return _load_alone(Agent, AGENT, _find(AGENT, name_or_path, "la casa"), overrides)


def load_corpus(name_or_path: str, overrides: Sequence[str] = ()) -> Corpus:
    """La configuración de un corpus, por el nombre de su fichero en `configs/corpus/` o por su ruta.

    overrides: argumentos `clave=valor`. NotFoundError: no existe; ConfigError: con todos los problemas.
    """
    return _load_alone(Corpus, CORPUS, _find(CORPUS, name_or_path, "el corpus"), overrides)


def _load_alone(schema: type[M], folder: str, path: Path, overrides: Sequence[str]) -> M:
    loaded, problems = _alone(schema, folder, path, overrides)
    if loaded is None:
        raise ConfigError(problems)
    return loaded


def _find(folder: str, name_or_path: str, what: str) -> Path:
    path = Path(name_or_path)
    if len(path.parts) < 2 and path.suffix != ".yaml":
        path = Path("configs") / folder / f"{name_or_path}.yaml"
    if not is_file(path):
        known = [file.stem for file in (Path("configs") / folder).glob("*.yaml")]
        hint = suggest(printable(path.stem), known) or "lanza la orden desde la raíz del repositorio"
        raise NotFoundError(f"no existe {what} {printable(name_or_path)}", where=printable(str(path)), fix=hint)
    return path


def check_all(configs_dir: Path) -> list[Path]:
    """Valida cada fichero YAML de la carpeta de configuración y devuelve los que ha visto.

    ConfigError: con los problemas de todos. NotFoundError: no hay ninguno.
    """
    files = sorted(file for file in configs_dir.rglob("*") if file.suffix in (".yaml", ".yml"))
    if not files:
        raise NotFoundError(
            "no hay ficheros de configuración",
            where=printable(str(configs_dir.absolute())),
            why="no existe esa carpeta, o no tiene ningún .yaml",
            fix="lanza la orden desde la raíz del repositorio",
        )
    problems = _unique(problem for file in files for problem in _check(file, configs_dir))
    if problems:
        raise ConfigError(problems)
    return files


def _run(path: Path, overrides: Sequence[str]) -> tuple[LoadedRun | None, list[Problem]]:
    composer = Composer()
    tree = composer.run(path, overrides)
    run, problems = validate(Run, tree, incomplete=composer.incomplete)
    problems = _unique(composer.problems + problems)
    return (LoadedRun(run, tree) if run and not problems else None), problems


def _alone(schema: type[M], folder: str, path: Path, overrides: Sequence[str]) -> tuple[M | None, list[Problem]]:
    composer = Composer()
    tree = merge(composer.layer(folder, path), composer.command(overrides))
    if folder in composer.incomplete:  # falta un fichero: de lo demás no se sabe
        return None, composer.problems
    loaded, problems = validate(schema, tree)
    problems = composer.problems + problems
    return (None if problems else loaded), problems


def _check(file: Path, configs_dir: Path) -> list[Problem]:
    folder, name = file.parent, file.parent.name
    if folder.parent != configs_dir or file.suffix == ".yml" or name not in (*LAYERS, RUNS, *ALONE):
        hint = f"Va en {', '.join(f'{layer}/' for layer in (*LAYERS, *ALONE))} o {RUNS}/, con extensión .yaml."
        return [problem(Origin(str(file)), "", "fichero fuera de sitio", hint)]
    if name == RUNS:
        return _run(file, ())[1]
    if name in ALONE:
        return _alone(ALONE[name], name, file, ())[1]
    composer = Composer()
    tree = composer.layer(name, file)
    _, problems = validate(LAYERS[name], tree, (name,), composer.incomplete)
    return composer.problems + problems


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    """Sin repetir: una capa rota la cuentan ella y todas las corridas que la usan."""
    return list({(problem.where, problem.key, problem.message): problem for problem in problems}.values())
