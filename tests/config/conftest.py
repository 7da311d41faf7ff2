"""Una copia de las configuraciones de ejemplo, para estropearla."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

# Propias de las pruebas: afinar las de verdad no cambia líneas ni números de los mensajes esperados.
EXAMPLE = Path(__file__).parent / "configs"

Edit = Callable[[str, str, str], None]


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Carpeta de trabajo con `configs/` dentro; los problemas citan rutas relativas a ella."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLE, tmp_path / "configs")
    return Path("configs")


@pytest.fixture
def edit(configs: Path) -> Edit:
    """Cambia un trozo de un fichero: `edit("train/smoke", "steps: 900", "steps: -1")`."""

    def change(name: str, old: str, new: str) -> None:
        path = configs / f"{name}.yaml"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} en {path}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


@pytest.fixture
def put(configs: Path) -> Callable[[str, str], Path]:
    """Escribe un fichero entero: `put("train/otra", "include: smoke")`."""

    def write(name: str, text: str) -> Path:
        path = configs / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
