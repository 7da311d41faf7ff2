"""Lo común a todas las pruebas."""

import os

import pytest

from enlace.errors.spanish import speak_spanish

# Como al arrancar el programa: click guarda la ayuda de cada orden en el idioma de la primera vez que se pide.
speak_spanish()


@pytest.fixture(scope="session")
def long_run() -> bool:
    """True con `scripts/test.sh --long`: las pruebas aleatorias repiten muchas más veces."""
    return os.environ.get("ENLACE_LONG") == "1"
