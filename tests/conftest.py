"""Lo común a todas las pruebas."""

import os

import pytest
from hypothesis import settings

from enlace.errors.spanish import speak_spanish

# Ninguna prueba tiene plazo: en una máquina ocupada fallaría sin que nada esté mal.
settings.register_profile("enlace", deadline=None)
settings.load_profile("enlace")

# Como al arrancar el programa: click guarda la ayuda de cada orden en el idioma de la primera vez que se pide.
speak_spanish()


@pytest.fixture(scope="session")
def long_run() -> bool:
    """True con `scripts/test.sh --long`: las pruebas aleatorias repiten muchas más veces."""
    return os.environ.get("ENLACE_LONG") == "1"
