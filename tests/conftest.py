"""Lo común a todas las pruebas."""

import os

import pytest


@pytest.fixture(scope="session")
def long_run() -> bool:
    """True con `scripts/test.sh --long`: las pruebas aleatorias repiten muchas más veces."""
    return os.environ.get("ENLACE_LONG") == "1"
