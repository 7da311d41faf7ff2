"""La carpeta de trabajo de la búsqueda: una copia de la configuración, sin credenciales y con su propio hogar."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Una casa recién puesta: la carpeta en la que se está, sin `.env`."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    monkeypatch.setenv("ENLACE_HOME", str(tmp_path / "hogar"))
    return tmp_path
