"""Busca con atheris entradas que rompan las puertas de `targets.py`.

    .venv/bin/python -m tests.hostile.fuzz PUERTA -max_total_time=120

Las entradas que fallen quedan en la carpeta actual (`crash-…`, `timeout-…`): se copian a `tests/hostile/cases/`, con el
nombre de su puerta delante, y `test_fuzz.py` las repite siempre.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["enlace", "yaml", "json"]):
    import yaml  # noqa: F401

    from tests.hostile.targets import TARGETS, seeds


def main() -> None:
    """PUERTA y, después, las opciones de libFuzzer."""
    program, name, *options = sys.argv
    action = TARGETS[name]
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds(name)):
            (Path(corpus) / str(number)).write_bytes(seed)

        def one(data: bytes) -> None:
            action(Path(place), data)

        limits = ["-timeout=10", "-rss_limit_mb=3000", "-max_len=20000"]
        atheris.Setup([program, *limits, *options, corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
