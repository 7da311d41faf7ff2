"""scripts/remote.sh contra un sshd y un tmux de verdad, en esta máquina: la conexión se corta y el entrenamiento sigue.

El servidor tiene su propia carpeta personal, sus claves y su tmux; nada de esto toca los de quien lanza las pruebas.
"""

import getpass
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from enlace.config import load_run
from tests.tiny import change, tiny_settings, write_documents

ROOT = Path(__file__).parents[2]
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
MISSING = [tool for tool in ("ssh", "ssh-keygen", "rsync", "tmux", "flock") if not shutil.which(tool)]
MISSING += [] if SSHD else ["sshd"]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"faltan {', '.join(MISSING)}: sudo apt install openssh-server rsync tmux util-linux"
)

# La carpeta del servidor, con todo lo que rompe a quien no entrecomilla.
FOLDER = "mi año; $(touch entró) 'nuevo' \"1\""
PROMPT = "Él dijo «no»; \"sí\", 'quizá' $(touch entró) `touch entró` \\ x#{pane_pid} %H ~ *;"
FOREVER = ("train.steps=100000", "train.checkpoints.every=100000", "train.evaluation.every=100000")


def wait_for(condition: Callable[[], object], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "no ha llegado a pasar"
        time.sleep(0.2)


@dataclass
class Server:
    """Un sshd en un puerto propio de esta máquina, y lo necesario para llegar a él."""

    base: Path
    port: int
    process: subprocess.Popen[bytes]
    bin: Path = field(init=False)
    home: Path = field(init=False)
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.base / "home"
        self.bin = self.base / "bin"
        self.folder = self.home / FOLDER

    def install(self, name: str, script: str) -> None:
        """Un programa que solo existe en el servidor."""
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def run_folder(self, name: str) -> Path:
        return self.folder / "runs" / name

    def log(self, name: str) -> list[bytes]:
        path = self.run_folder(name) / "log.jsonl"
        return path.read_bytes().splitlines() if path.exists() else []

    def processes(self) -> list[psutil.Process]:
        """Todo lo que corre en su carpeta."""
        return [each for each in psutil.process_iter(["cmdline", "cwd"]) if each.info["cwd"] == str(self.folder)]

    def trainings(self) -> list[psutil.Process]:
        return [each for each in self.processes() if (each.info["cmdline"] or [])[2:3] == ["train"]]

    def kill_tmux(self) -> None:
        for tmux in self.base.glob("tmux/*/*"):
            subprocess.run(["tmux", "-S", tmux, "kill-server"], capture_output=True, check=False)

    def cut_connections(self) -> None:
        """Mata, sin avisar, todos los procesos de sshd que atienden a alguien."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if child.name().startswith("sshd"):
                    child.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_server_files(base: Path, port: int) -> None:
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", base / key], check=True)
    for folder in ("home", "bin", "tmux"):
        (base / folder).mkdir()
    environment = {"HOME": base / "home", "TMUX_TMPDIR": base / "tmux", "PATH": f"{base / 'bin'}:{os.environ['PATH']}"}
    (base / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {base / 'host'}\nAuthorizedKeysFile {base / 'user.pub'}\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n"
        f"SetEnv {' '.join(f'{name}={value}' for name, value in environment.items())}\n"
    )
    (base / "config de ssh").write_text(
        f"Host servidor\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {base / 'user'}\n  IdentitiesOnly yes\n"
        "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Corta a propósito: la ruta de un socket de tmux no admite más de 107 letras.
    base = Path(tempfile.mkdtemp(prefix="enlace-", dir="/tmp"))
    port = free_port()
    write_server_files(base, port)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sin ella sshd no arranca como root
    assert SSHD
    with (base / "sshd.log").open("wb") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", base / "sshd_config"], stderr=log)
    server = Server(base, port, process)
    try:
        wait_for(lambda: b"listening" in (base / "sshd.log").read_bytes())
        yield server
    finally:
        server.kill_tmux()
        server.cut_connections()
        process.terminate()
        process.wait()
        shutil.rmtree(base, ignore_errors=True)


@dataclass
class Clone:
    """La carpeta desde la que se trabaja; también con espacios y tildes."""

    root: Path
    environment: dict[str, str]

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / "scripts" / "remote.sh", *arguments],
            cwd=self.root.parent,
            env={**os.environ, **self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def remote(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """Lo que escribe la orden, en stdout y en stderr."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=60)
        assert process.returncode == code, out + err
        return out + err


def make_clone(root: Path) -> None:
    for folder in ("scripts", "configs"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "enlace" / "viejo").mkdir(parents=True)
    (root / "enlace" / "viejo" / "ñandú.py").write_text("")
    # La instalación se prueba aparte: aquí solo cuenta que se lance.
    (root / "scripts" / "setup.sh").write_text("#!/bin/sh\necho instalado >> instalado.txt\n")
    write_documents(root / "data" / "mi texto")
    settings = change(tiny_settings(root, Path("data/mi texto/documentos.jsonl")), runs_dir="runs")
    del settings["name"]
    (root / "configs" / "runs" / "mi corrida.yaml").write_text(json.dumps({"name": "diminuta", **settings}))


@pytest.fixture
def clone(server: Server, tmp_path: Path) -> Clone:
    root = tmp_path / "aquí y ahora"
    make_clone(root)
    settings = {"HOST": "servidor", "DIR": f"~/{FOLDER}", "SSH_CONFIG": str(server.base / "config de ssh")}
    return Clone(root, {f"ENLACE_REMOTE_{name}": value for name, value in settings.items()})


@pytest.fixture
def ready(server: Server, clone: Clone) -> Iterator[Clone]:
    """El servidor con el código y los datos, y sin nada entrenando ni antes ni después."""
    shutil.rmtree(server.folder, ignore_errors=True)
    server.folder.mkdir()
    (server.folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    clone.remote("sync", "--data")
    yield clone
    for training in server.trainings():
        training.kill()
    wait_for(lambda: not server.processes())
    assert not list(server.base.rglob("entró")) and not list(clone.root.rglob("entró")), "se ha ejecutado un argumento"


RUN = "configs/runs/mi corrida.yaml"


# --- sync ---


def test_sync_sends_the_code_and_never_secrets_runs_or_data(server: Server, clone: Clone) -> None:
    shutil.rmtree(server.folder, ignore_errors=True)
    for private in (
        ".env",
        "enlace/.env.local",
        "runs/mía/log.jsonl",
        "var/casa.db",
        ".venv/x",
        ".git/config",
        "mis textos/1.txt",
    ):
        path = clone.root / private
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secreto")
    (clone.root / ".env.example").write_text("")
    output = clone.remote("sync")
    assert "envía enlace/viejo/ñandú.py" in output
    sent = {path.relative_to(server.folder).as_posix() for path in server.folder.rglob("*") if path.is_file()}
    assert {"scripts/remote.sh", RUN, "enlace/viejo/ñandú.py", ".env.example"} <= sent
    assert {name.split("/")[0] for name in sent} == {
        "scripts", "configs", "enlace", ".env.example", ".enlace-remoto", "instalado.txt"
    }  # fmt: skip
    assert "secreto" not in "".join((server.folder / name).read_text() for name in sent)
    assert "  envía " not in clone.remote("sync"), "ya estaba todo"
    clone.remote("sync", "--data")
    assert (server.folder / "data" / "mi texto" / "documentos.jsonl").is_file()


def test_sync_deletes_stale_code_and_nothing_else(server: Server, ready: Clone) -> None:
    kept = ("runs/una/log.jsonl", "data/otro/texto.txt", ".env", "var/casa.db", "apuntes.txt")
    for name in kept:
        path = server.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("del servidor")
    cache = server.folder / "enlace" / "viejo" / "__pycache__"
    cache.mkdir()
    (cache / "ñandú.pyc").write_text("")
    shutil.rmtree(ready.root / "enlace" / "viejo")
    (ready.root / "data" / "mi texto" / "documentos.jsonl").unlink()
    assert "borra enlace/viejo/ñandú.py" in ready.remote("sync", "--data")
    assert not (server.folder / "enlace" / "viejo").exists()
    assert {(server.folder / name).read_text() for name in kept} == {"del servidor"}
    assert (server.folder / "data" / "mi texto" / "documentos.jsonl").exists()
    assert (server.folder / ".venv").is_symlink()


def test_sync_refuses_a_folder_with_other_things(server: Server, clone: Clone) -> None:
    (server.home / "docs").mkdir(exist_ok=True)
    (server.home / "docs" / "carta.txt").write_text("mía")
    message = clone.remote("sync", code=9, ENLACE_REMOTE_DIR="~")
    assert "error: la carpeta del servidor ya tiene otras cosas" in message
    assert (server.home / "docs" / "carta.txt").read_text() == "mía"


def test_every_tracked_top_level_name_travels() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no es un clon de git: no hay lista de ficheros")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name.split("/")[0] for name in listed.split("\0") if name}
    array = re.search(r"^repository=\((.*?)\)", (ROOT / "scripts" / "remote_host.sh").read_text(), re.M | re.S)
    assert array
    assert tracked <= set(array.group(1).split())


# --- run, status, logs, attach, stop, fetch ---


def test_a_training_lives_without_the_connection_stops_resumes_and_comes_back(server: Server, ready: Clone) -> None:
    output = ready.remote("run", RUN, f"sample.prompt={PROMPT}", *FOREVER)
    assert re.search(r"paso \d+, pérdida \d", output)
    assert server.log("diminuta"), "ha vuelto sin que entrenara"
    assert "diminuta" in ready.remote("run", RUN, "name=otra", code=6)
    assert not server.run_folder("otra").exists()
    assert "«diminuta» está en marcha" in ready.remote("sync", code=6)
    assert re.search(r"entrenando \(pid \d+\) +diminuta", ready.remote("status"))

    watching = ready.start("logs")
    wait_for(lambda: psutil.Process(watching.pid).children())
    assert watching.stdout and "run 'configs/runs/mi corrida.yaml'" in watching.stdout.readline()
    steps = len(server.log("diminuta"))
    server.cut_connections()
    watching.communicate(timeout=30)
    assert watching.returncode == 1
    wait_for(lambda: len(server.log("diminuta")) > steps + 20)

    message = ready.remote("stop")
    command = shlex.split(message.split("para seguir: ")[1].splitlines()[0])
    assert command == ["scripts/remote.sh", "run", RUN, f"sample.prompt={PROMPT}", *FOREVER, "--resume", "auto"]
    steps = len(server.log("diminuta"))
    assert (server.run_folder("diminuta") / "checkpoints" / f"step-{steps:08d}").is_dir()
    assert "no hay ningún entrenamiento en marcha" in ready.remote("stop", code=5)

    ready.remote("run", RUN, "--resume", "auto", f"sample.prompt={PROMPT}", *FOREVER[1:], f"train.steps={steps + 3}")
    wait_for(lambda: not server.trainings())
    assert len(server.log("diminuta")) == steps + 3
    wait_for(lambda: "terminada" in ready.remote("status"))

    ready.remote("fetch", "diminuta")
    here = ready.root / "runs" / "diminuta"
    assert (here / "informe.html").is_file() and (here / "model" / "model.safetensors").is_file()
    assert load_run(here / "config.yaml").run.sample.prompt == PROMPT
    assert "código 0" in (here / "salida.log").read_text()
    assert not (here / "checkpoints").exists()
    ready.remote("fetch", "diminuta", "--checkpoints")
    assert list((here / "checkpoints").iterdir())


def test_cutting_the_connection_while_it_starts_does_not_stop_it(server: Server, ready: Clone) -> None:
    starting = ready.start("run", RUN)
    wait_for(server.trainings)
    os.killpg(starting.pid, signal.SIGKILL)
    server.cut_connections()
    starting.communicate()
    wait_for(lambda: (server.run_folder("diminuta") / "informe.md").exists())
    assert len(server.log("diminuta")) == 12
    wait_for(lambda: not list(server.home.glob(".cache/enlace/arranque.*")))


def test_a_session_killed_before_the_first_step_is_said(server: Server, ready: Clone) -> None:
    starting = ready.start("run", RUN)
    wait_for(server.trainings)
    server.kill_tmux()
    message = "".join(starting.communicate(timeout=60))
    assert starting.returncode == 1
    assert "no ha llegado a entrenar" in message


def test_of_two_simultaneous_runs_exactly_one_trains(server: Server, ready: Clone) -> None:
    both = {name: ready.start("run", RUN, f"name={name}", *FOREVER) for name in ("una", "otra")}
    messages = {name: "".join(process.communicate(timeout=60)) for name, process in both.items()}
    codes = {name: process.returncode for name, process in both.items()}
    assert sorted(codes.values()) == [0, 6], messages
    winner, loser = sorted(codes, key=lambda name: codes[name])
    assert f"por qué: es {winner}, en " in messages[loser]
    assert server.log(winner) and not server.log(loser)
    assert "«una»" in ready.remote("run", RUN, "name=una", *FOREVER, code=6) or winner == "otra"


def test_each_gpu_takes_one_training(server: Server, ready: Clone) -> None:
    server.install("nvidia-smi", 'case "$2" in 0 | 1) echo "$2" ;; *) echo "No devices were found"; exit 6 ;; esac')
    try:
        assert "no tiene la GPU 7" in ready.remote("run", RUN, "--gpu", "7", code=3)
        ready.remote("run", RUN, "name=una", *FOREVER, "--gpu", "1")
        (training,) = server.trainings()
        assert training.environ()["CUDA_VISIBLE_DEVICES"] == "1"
        training.suspend()  # dos entrenando sin fin dejarían sin CPU a todo lo demás
        assert "es una, en " in ready.remote("run", RUN, "name=dos", "--gpu", "1", code=6)
        ready.remote("run", RUN, "name=tres", *FOREVER)
        assert "varios en marcha: tres, una" in ready.remote("stop", code=2)
        training.resume()
        # Dos a la vez mandan una sola señal: con dos, el entrenamiento saldría sin guardar.
        stops = [ready.start("stop", "una") for _ in range(2)]
        messages = [process.communicate(timeout=60) for process in stops]
        assert {process.returncode for process in stops} <= {0, 5}, messages
        assert any("--gpu 1 --resume auto" in err for _, err in messages)
        assert list((server.run_folder("una") / "checkpoints").iterdir())
    finally:
        (server.bin / "nvidia-smi").unlink()


HOLD_LOCK = """
import sys
from pathlib import Path
from enlace.durable import lock
with lock(Path("runs/amano/.lock")):
    print(flush=True)
    sys.stdin.read()
"""


def test_a_training_started_by_hand_counts_too(server: Server, ready: Clone) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK], cwd=server.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as by_hand:
        assert by_hand.stdout and by_hand.stdout.readline()
        assert f"amano, con el pid {by_hand.pid}" in ready.remote("run", RUN, code=6)
        assert by_hand.stdin
        by_hand.stdin.close()


@contextmanager
def terminal(clone: Clone, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """La orden en un terminal de verdad, y el descriptor por el que se teclea y se lee."""
    keyboard, screen = pty.openpty()
    termios.tcsetwinsize(screen, (24, 80))
    with subprocess.Popen(
        [clone.root / "scripts" / "remote.sh", *arguments],
        env={**os.environ, **clone.environment, "TERM": "xterm"},
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
    ) as process:
        os.close(screen)
        try:
            yield process, keyboard
        finally:
            process.kill()
            os.close(keyboard)


def read_until(keyboard: int, text: bytes) -> None:
    """Espera a que salga el texto y la pantalla se quede quieta: tmux pierde las teclas de mientras se dibuja."""
    seen = b""
    deadline = time.monotonic() + 30
    while text not in seen or select.select([keyboard], [], [], 0.5)[0]:
        assert time.monotonic() < deadline and select.select([keyboard], [], [], 30)[0], seen
        seen += os.read(keyboard, 4096)


def test_attach_leaves_it_training_and_ctrl_c_inside_saves(server: Server, ready: Clone) -> None:
    ready.remote("run", RUN, *FOREVER)
    with terminal(ready, "attach") as (attached, keyboard):
        read_until(keyboard, b"enlace-")
        os.write(keyboard, b"\x02d")
        assert attached.wait(30) == 0
    steps = len(server.log("diminuta"))
    wait_for(lambda: len(server.log("diminuta")) > steps)
    with terminal(ready, "attach", "diminuta") as (_, keyboard):
        read_until(keyboard, b"enlace-")
        os.write(keyboard, b"\x03")
        wait_for(lambda: "termina con código" in (server.run_folder("diminuta") / "salida.log").read_text())
    assert "termina con código 0" in (server.run_folder("diminuta") / "salida.log").read_text()
    assert (server.run_folder("diminuta") / "checkpoints" / f"step-{len(server.log('diminuta')):08d}").is_dir()


def test_where_leaving_kills_everything_it_says_what_to_do(server: Server, ready: Clone) -> None:
    server.install("busctl", "echo 'b true'")
    server.install("loginctl", f"cat {server.base / 'linger'}")
    server.install(
        "systemd-run",
        f'echo "$@" >{server.base / "systemd-run.log"}; while [ "$1" != tmux ]; do shift; done; exec "$@"',
    )
    (server.base / "linger").write_text("no\n")
    try:
        message = ready.remote("run", RUN, code=3)
        assert message.splitlines()[-1] == "pista: una sola vez, en el servidor: loginctl enable-linger"
        (server.base / "linger").write_text("yes\n")
        ready.remote("run", RUN)
        assert "--user --scope --quiet tmux" in (server.base / "systemd-run.log").read_text()
    finally:
        for name in ("busctl", "loginctl", "systemd-run"):
            (server.bin / name).unlink()


def test_what_does_not_train_says_why_with_its_code(server: Server, ready: Clone) -> None:
    assert "train.stps" in ready.remote("run", RUN, "train.stps=3", code=4)
    assert "no existe la corrida" in ready.remote("run", "; touch entró", code=5)
    assert "runs_dir tiene que ser runs" in ready.remote("run", RUN, "runs_dir=otra", code=4)
    assert not (server.folder / "runs").exists()
    # Esto solo lo descubre el entrenamiento.
    message = ready.remote("run", RUN, "data.sources=[{name: x, path: no/está, weight: 1.0}]", code=5)
    assert "no/está" in message and "no ha llegado a entrenar" in message
    (server.folder / ".venv").unlink()
    assert "ENLACE no está instalado" in ready.remote("run", RUN, code=3)


def test_fetch_never_steps_on_local_work(server: Server, ready: Clone) -> None:
    there, here = server.run_folder("una"), ready.root / "runs" / "una"
    there.mkdir(parents=True)
    (there / "informe.md").write_text("de allí")
    here.mkdir(parents=True)
    (here / "informe.md").write_text("mío")
    assert "ya hay otra corrida en runs/una" in ready.remote("fetch", "una", code=9)
    shutil.rmtree(here)
    ready.remote("fetch", "una")
    ready.remote("fetch", "una")
    (here / ".traida").write_text("otro:/sitio\n")
    assert "ya hay otra corrida en runs/una" in ready.remote("fetch", "una", code=9)
    shutil.rmtree(here)
    ready.remote("fetch", "una")
    (here / "informe.md").write_text("cambiado aquí")
    assert "por qué: informe.md" in ready.remote("fetch", "una", code=9)
    assert (here / "informe.md").read_text() == "cambiado aquí"
    assert "no existe la corrida" in ready.remote("fetch", "dos", code=5)


# --- Lo que se rechaza sin llegar a ningún sitio ---


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOST", ""),
        ("DIR", ""),
        ("HOST", "-oProxyCommand=touch entró"),
        ("HOST", "servidor; touch entró"),
        ("HOST", "yo@-oProxyCommand=x"),
        ("DIR", "~otro/enlace"),
        ("DIR", "dos\nlíneas"),
    ],
)
def test_a_missing_or_hostile_setting_is_named(clone: Clone, variable: str, value: str) -> None:
    name = f"ENLACE_REMOTE_{variable}"
    message = clone.remote("status", code=4, **{name: value})
    assert message.startswith(f"error: falta {name}" if not value else f"error: {name} no vale")
    assert f"{name}=" in message or value
    assert not list(clone.root.parent.rglob("entró"))


@pytest.mark.parametrize("order", ["logs", "attach", "stop", "fetch"])
@pytest.mark.parametrize("name", ["; rm -rf x", "$(touch entró)", "../otra", "-oProxyCommand=x", "Ñandú", ""])
def test_a_name_that_cannot_be_one_is_refused(clone: Clone, order: str, name: str) -> None:
    assert clone.remote(order, name, code=2).startswith("error: «")


@pytest.mark.parametrize(
    "arguments",
    [(), ("entrena",), ("run",), ("run", "smoke-cpu", "--deprisa"), ("run", "smoke-cpu", "--gpu", "-1"),
     ("run", "smoke-cpu", "--resume"), ("sync", "--todo"), ("fetch",), ("status", "x"), ("logs", "a", "b")],
    ids=" ".join,
)  # fmt: skip
def test_a_badly_written_order_is_a_usage_error(clone: Clone, arguments: tuple[str, ...]) -> None:
    message = clone.remote(*arguments, code=2)
    assert [line.split(":")[0] for line in message.splitlines()] == ["error", "dónde", "por qué", "pista"]


def test_settings_come_from_the_file_without_running_it_and_the_environment_wins(server: Server, clone: Clone) -> None:
    values = clone.environment.copy()
    clone.environment = dict.fromkeys(values, "")
    (clone.root / ".env").write_text(
        "BRAVE_API_KEY=$(touch entró)\r\n# comentario\n"
        "ENLACE_REMOTE_HOST = no-este\nexport ENLACE_REMOTE_HOST=servidor  # el de casa\n"
        f'ENLACE_REMOTE_SSH_CONFIG="{values["ENLACE_REMOTE_SSH_CONFIG"]}"\r\n'
        "ENLACE_REMOTE_DIR='~/otra carpeta $(touch entró)'"
    )
    assert f"por qué: {server.home}/otra carpeta $(touch entró)" in clone.remote("status", code=5)
    assert f"por qué: {server.home}/mía" in clone.remote("status", code=5, ENLACE_REMOTE_DIR="mía")
    assert not list(clone.root.parent.rglob("entró")) and not list(server.base.rglob("entró"))


def test_a_server_that_does_not_answer_is_said(clone: Clone) -> None:
    (clone.root / "ssh").write_text(f"Host servidor\n  HostName 127.0.0.1\n  Port {free_port()}\n")
    message = clone.remote("status", code=1, ENLACE_REMOTE_SSH_CONFIG="ssh")
    assert "error: no se ha podido hablar con servidor" in message and "Connection refused" in message
