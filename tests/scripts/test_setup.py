"""scripts/setup.sh: el torch que toca, dicho antes de descargarlo, sin repetir nada y con errores en claro.

Corre el guion de verdad con un Python de pega que apunta lo que se le pide en vez de instalarlo. La instalación real la
ejercita la integración continua, que entra por la misma puerta en un clon limpio.
"""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = (
    "bash",
    "awk",
    "cat",
    "chmod",
    "cp",
    "cut",
    "df",
    "dirname",
    "env",
    "grep",
    "mkdir",
    "rm",
    "sha256sum",
    "touch",
)
MARKER = ".venv/.enlace-setup"

FAKE_PYTHON = """#!/usr/bin/env bash
here=$(dirname "$0")
case "$*" in
--version) echo "Python 3.12.0" ;;
*sys.version_info*) [ -z "${FAKE_OLD_PYTHON:-}" ] ;;
*importlib.metadata*) cat "$here/torch-version" 2>/dev/null ;;
"-m venv .venv")
    mkdir -p .venv/bin
    [ -z "${FAKE_NO_VENV:-}" ] || exit 1
    cp "$0" .venv/bin/python
    ;;
*--dry-run*) [ -n "${FAKE_LOCAL_WHEEL:-}" ] ;;
*uninstall*) echo "pip $*" >&2 && rm "$here/torch-version" ;;
*torch==*)
    echo "pip $*" >&2
    [ -z "${FAKE_NO_NETWORK:-}" ] || exit 1
    case "$*" in *===*) echo 2.13.0 ;; *) echo 2.13.0+cpu ;; esac >"$here/torch-version"
    ;;
*) echo "pip $*" >&2 ;;
esac
"""


@dataclass
class Machine:
    """Un clon en una carpeta con espacios y tildes, y una máquina donde solo hay lo que se pone en `bin`."""

    root: Path
    bin: Path
    environment: dict[str, str] = field(default_factory=dict)

    def install(self, name: str, script: str) -> None:
        path = self.bin / name
        # Puede ser un enlace a la herramienta de verdad: escribir a través de él la destrozaría.
        path.unlink(missing_ok=True)
        path.write_text(script)
        path.chmod(0o755)

    def driver(self, version: str) -> None:
        self.install("nvidia-smi", f"#!/usr/bin/env bash\necho {version}\n")

    def setup(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """Lo que el guion escribe, con las llamadas a pip en su sitio."""
        done = subprocess.run(
            [self.bin / "bash", self.root / "scripts" / "setup.sh", *arguments],
            cwd=self.bin,
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        return done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "mi año nuevo"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup.sh", root / "scripts")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root)
    machine = Machine(root, tmp_path / "bin")
    machine.bin.mkdir()
    for tool in TOOLS:
        (machine.bin / tool).symlink_to(shutil.which(tool) or tool)
    machine.install("python3", FAKE_PYTHON)
    return machine


without_driver = pytest.mark.skipif(Path("/sys/module/nvidia").exists(), reason="esta máquina sí tiene una GPU")


@without_driver
def test_without_a_board_takes_the_cpu_wheel_and_says_the_size_first(machine: Machine) -> None:
    lines = machine.setup().splitlines()
    said = next(i for i, line in enumerate(lines) if "torch 2.13.0 para CPU: descarga unos 190 MB" in line)
    asked = next(i for i, line in enumerate(lines) if "torch==2.13.0" in line)
    assert said < asked
    assert "--index-url https://download.pytorch.org/whl/cpu" in lines[asked]
    assert lines[-2].endswith("install -c constraints.txt -e .[agent,corpus]")


@without_driver
def test_the_cpu_index_can_be_changed(machine: Machine) -> None:
    assert "--index-url https://ejemplo.es/ruedas" in machine.setup(ENLACE_TORCH_INDEX="https://ejemplo.es/ruedas")


@without_driver
def test_a_local_wheel_needs_no_network(machine: Machine) -> None:
    text = machine.setup(FAKE_LOCAL_WHEEL="1")
    assert "sin descargar" in text
    assert "--no-index --no-deps torch==2.13.0" in text


@without_driver
def test_a_driver_tool_that_fails_counts_as_no_board(machine: Machine) -> None:
    machine.install("nvidia-smi", "#!/usr/bin/env bash\necho 'NVIDIA-SMI has failed'; exit 9\n")
    assert "torch 2.13.0 para CPU" in machine.setup()


@pytest.mark.parametrize("version", ["580.65.06", "610.10"])
def test_a_recent_driver_takes_the_cuda_wheel_never_a_local_cpu_one(machine: Machine, version: str) -> None:
    machine.driver(version)
    text = machine.setup(FAKE_LOCAL_WHEEL="1")
    assert "descarga unos 2,7 GB" in text
    assert "install -c constraints.txt torch===2.13.0" in text


def test_an_old_driver_is_explained_and_installs_nothing(machine: Machine) -> None:
    machine.driver("570.133.07")
    text = machine.setup(code=3)
    assert text.splitlines()[0] == "error: el controlador de NVIDIA es demasiado antiguo"
    assert "es el 570 y torch 2.13.0 necesita el 580" in text
    assert not (machine.root / ".venv").exists()
    assert "torch 2.13.0 para CPU" in machine.setup(ENLACE_TORCH="cpu")


def test_a_new_board_replaces_the_cpu_torch(machine: Machine) -> None:
    machine.setup(ENLACE_TORCH="cpu")
    machine.driver("590.1")
    text = machine.setup()
    assert text.index("uninstall --yes torch") < text.index("torch===2.13.0")


def test_the_cuda_torch_is_kept_when_only_the_cpu_is_wanted(machine: Machine) -> None:
    machine.setup(ENLACE_TORCH="cuda")
    assert "torch 2.13.0: ya está" in machine.setup(ENLACE_TORCH="cpu")


def test_repeating_does_nothing_until_something_changes(machine: Machine) -> None:
    machine.setup(ENLACE_TORCH="cpu")
    assert machine.setup(ENLACE_TORCH="cpu") == "▸ todo está instalado y al día\n"
    constraints = machine.root / "constraints.txt"
    constraints.write_text(constraints.read_text() + "nuevo==1.0\n")
    assert "install -c constraints.txt -e ." in machine.setup(ENLACE_TORCH="cpu")


def test_extras_accumulate(machine: Machine) -> None:
    machine.setup(ENLACE_TORCH="cpu")
    assert "-e .[agent,corpus,dev]\n" in machine.setup("--dev", ENLACE_TORCH="cpu")
    assert "-e .[agent,corpus,dev,tensorboard]\n" in machine.setup("--tensorboard", ENLACE_TORCH="cpu")
    for arguments in ((), ("--dev",), ("--tensorboard", "--dev")):
        assert machine.setup(*arguments, ENLACE_TORCH="cpu") == "▸ todo está instalado y al día\n"


def test_without_a_supported_python_says_what_to_install(machine: Machine) -> None:
    text = machine.setup(code=3, ENLACE_TORCH="cpu", FAKE_OLD_PYTHON="1")
    assert text.splitlines()[-1] == "pista: en Debian o Ubuntu: sudo apt install python3 python3-venv"


def test_without_the_venv_module_leaves_nothing_half_done(machine: Machine) -> None:
    text = machine.setup(code=3, ENLACE_TORCH="cpu", FAKE_NO_VENV="1")
    assert "sudo apt install python3-venv" in text
    assert not (machine.root / ".venv").exists()


def test_a_failed_download_is_explained_and_tried_again(machine: Machine) -> None:
    text = machine.setup(code=3, ENLACE_TORCH="cpu", FAKE_NO_NETWORK="1")
    assert "error: no se ha podido instalar torch" in text
    assert not (machine.root / MARKER).exists()
    machine.setup(ENLACE_TORCH="cpu")
    assert (machine.root / MARKER).exists()


def test_a_full_disk_is_said_before_downloading(machine: Machine) -> None:
    machine.install("df", "#!/usr/bin/env bash\nprintf 'cabecera\\n/dev/x 1 1 204800 99%% /\\n'\n")
    text = machine.setup(code=8, ENLACE_TORCH="cpu")
    assert "por qué: hacen falta 1500 MB y quedan 200 MB" in text
    assert "pip" not in text


@pytest.mark.parametrize(
    ("arguments", "environment"), [(("--prod",), {}), ((), {"ENLACE_TORCH": "rocm"})], ids=["argumento", "variable"]
)
def test_what_it_does_not_understand_is_a_usage_error(
    machine: Machine, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    lines = machine.setup(*arguments, code=2, **environment).splitlines()
    assert [line.split(":")[0] for line in lines] == ["error", "dónde", "por qué", "pista"]
