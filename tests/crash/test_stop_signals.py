"""SIGTERM y Ctrl-C en cualquier momento: se acaba, se guarda y seguir es exacto; o, antes de empezar, se cancela."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from enlace.config.schema import Run
from enlace.durable import AppendLog, Disk, read_log
from enlace.train.checkpoint import list_checkpoints
from enlace.train.train import launch, train
from tests.test_resume import exact_state, make_run

from .forks import IGNORE_FORK_WARNING, exit_as_a_command, start_child, wait_for

pytestmark = [pytest.mark.filterwarnings(IGNORE_FORK_WARNING), pytest.mark.timeout(3600)]
STOPS = (signal.SIGTERM, signal.SIGINT)
TO_GO_ON, CANCELLED = "Para seguir: enlace train", "error: cancelado"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """El final de la corrida que nadie para."""
    torch.set_num_threads(1)
    run = make_run(tmp_path_factory.mktemp("entera"), "entera")
    assert train(run)
    return exact_state(run)


def run_dir(run: Run) -> Path:
    return Path(run.runs_dir) / run.name


def start(run: Run, root: Path, before: Callable[[], None] = lambda: None) -> int:
    """La orden de entrenar de verdad, en un hijo; `before` se ejecuta en él antes."""
    config = root / f"{run.name}.yaml"
    config.write_text(run.model_dump_json())

    def command() -> None:
        before()
        launch(str(config), [], resume="auto")

    return start_child(lambda: exit_as_a_command(command, root / "salida"))


def stop_inside(owner: Any, name: str, number: int, when: Callable[[tuple[Any, ...]], bool], times: int = 1) -> None:
    """Desde ahora, la primera llamada a `owner.name` que cumpla `when` recibe la señal nada más entrar."""
    real, left = getattr(owner, name), [number] * times

    def wrapped(*arguments: Any, **options: Any) -> Any:
        if left and when(arguments):
            while left:
                os.kill(os.getpid(), left.pop())
        return real(*arguments, **options)

    setattr(owner, name, wrapped)


def named(text: str) -> Callable[[tuple[Any, ...]], bool]:
    """Si la llamada a un verbo de Disk es sobre una ruta, o un fichero abierto, que contiene `text`."""
    return lambda arguments: text in str(arguments[1] if isinstance(arguments[1], Path) else arguments[1].name)


def always(_arguments: tuple[Any, ...]) -> bool:
    return True


def after_steps(run: Run, steps: int) -> Callable[[tuple[Any, ...]], bool]:
    """Si el registro ya tiene esos pasos."""
    log = run_dir(run) / "log.jsonl"
    return lambda _arguments: log.exists() and log.read_bytes().count(b"\n") >= steps


MOMENTS: dict[str, Callable[[Run, int], None]] = {
    "paso": lambda run, number: stop_inside(torch.Tensor, "backward", number, after_steps(run, 4)),
    "evaluacion": lambda run, number: stop_inside(torch.nn.Module, "eval", number, after_steps(run, 4)),
    "registro": lambda run, number: stop_inside(AppendLog, "append", number, after_steps(run, 4)),
    "guardado": lambda run, number: stop_inside(Disk, "fsync", number, named("tmp-step-00000006")),
    "puesta": lambda run, number: stop_inside(Disk, "rename", number, named("tmp-step-00000006")),
    "borrado": lambda run, number: stop_inside(Disk, "unlink", number, named("del-step-")),
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stop_while_training_saves_this_step_and_the_rest_is_exact(
    moment: str, asynchronous: bool, expected: dict[str, Any], tmp_path: Path
) -> None:
    number = STOPS[(list(MOMENTS).index(moment) + asynchronous) % 2]
    run = make_run(tmp_path, "parada", train__checkpoints__asynchronous=asynchronous)
    code = wait_for(start(run, tmp_path, lambda: MOMENTS[moment](run, number)))
    said = (tmp_path / "salida").read_text()
    assert code == 0 and TO_GO_ON in said and "Traceback" not in said, said
    steps = len(read_log(run_dir(run) / "log.jsonl"))
    assert list_checkpoints(run_dir(run) / "checkpoints")[-1].name == f"step-{steps:08d}"
    assert 4 <= steps < run.train.steps, "la señal no cayó a mitad de la corrida"
    assert wait_for(start(run, tmp_path)) == 0
    assert exact_state(run) == expected


def break_stderr() -> None:
    """Desde ahora, escribir en stderr falla, como con la terminal cerrada."""
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)


def test_a_closed_terminal_saves_this_step_and_the_rest_is_exact(expected: dict[str, Any], tmp_path: Path) -> None:
    run = make_run(tmp_path, "parada")

    def hang_up() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # quien lanza las pruebas pudo usar nohup
        stop_inside(torch.Tensor, "backward", signal.SIGHUP, after_steps(run, 4))
        break_stderr()

    assert wait_for(start(run, tmp_path, hang_up)) == 0
    steps = len(read_log(run_dir(run) / "log.jsonl"))
    assert list_checkpoints(run_dir(run) / "checkpoints")[-1].name == f"step-{steps:08d}"
    assert 4 <= steps < run.train.steps
    assert wait_for(start(run, tmp_path)) == 0
    assert exact_state(run) == expected


def test_under_nohup_a_closed_terminal_changes_nothing(expected: dict[str, Any], tmp_path: Path) -> None:
    run = make_run(tmp_path, "parada")

    def hang_up() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        stop_inside(torch.Tensor, "backward", signal.SIGHUP, after_steps(run, 4))
        break_stderr()

    assert wait_for(start(run, tmp_path, hang_up)) == 0
    assert exact_state(run) == expected


BEGINNINGS: dict[str, Callable[[int], None]] = {
    "carpeta": lambda number: stop_inside(Disk, "append", number, named("log.jsonl")),
    "modelo": lambda number: stop_inside(torch.nn.Module, "train", number, always),
    "lote-de-prueba": lambda number: stop_inside(torch.Tensor, "backward", number, always),
    "configuracion": lambda number: stop_inside(Disk, "rename", number, named("config.yaml")),
}


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("moment", BEGINNINGS)
def test_a_stop_before_the_first_step_is_a_cancellation(moment: str, number: int, tmp_path: Path) -> None:
    run = make_run(tmp_path, "parada", train__steps=3, train__schedule__decay_steps=0)
    code = wait_for(start(run, tmp_path, lambda: BEGINNINGS[moment](number)))
    said = (tmp_path / "salida").read_text()
    assert code == 130 and said.endswith(CANCELLED + "\n") and "Traceback" not in said, said
    assert wait_for(start(run, tmp_path)) == 0
    assert not list(run_dir(run).rglob(".tmp-*"))


ENDINGS: dict[str, Callable[[int, int], None]] = {
    "modelo": lambda number, times: stop_inside(Disk, "fsync", number, named("tmp-model-"), times),
    "modelo-puesto": lambda number, times: stop_inside(Disk, "rename", number, named("tmp-model-"), times),
    "modelo-anterior": lambda number, times: stop_inside(Disk, "unlink", number, named("del-model-"), times),
    "informe": lambda number, times: stop_inside(Disk, "rename", number, named("informe.html"), times),
}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("moment", ENDINGS)
def test_a_stop_while_finishing_finishes_and_a_second_one_can_be_repeated(
    moment: str, times: int, expected: dict[str, Any], tmp_path: Path
) -> None:
    run = make_run(tmp_path, "parada")
    assert wait_for(start(run, tmp_path)) == 0
    (tmp_path / "salida").unlink()
    code = wait_for(start(run, tmp_path, lambda: ENDINGS[moment](signal.SIGTERM, times)))
    said = (tmp_path / "salida").read_text()
    assert code == (0 if times == 1 else 130) and "Traceback" not in said, said
    assert said.endswith(CANCELLED + "\n") is (times == 2)
    assert times == 2 or exact_state(run) == expected
    assert wait_for(start(run, tmp_path)) == 0
    assert exact_state(run) == expected


def test_stopped_at_random_instants_and_resumed_equals_never_stopped(
    expected: dict[str, Any], tmp_path: Path, long_run: bool
) -> None:
    dice, stops, attempt = random.Random(3), 0, 0
    while stops < (200 if long_run else 10):
        attempt += 1
        run = make_run(tmp_path, f"parada-{attempt}", train__checkpoints__asynchronous=bool(attempt % 2))
        # En una máquina cargada todas caerían antes del primer paso: a la quinta, se la deja acabar.
        for _ in range(5):
            if not stop_once(run, tmp_path, dice):
                break
            stops += 1
        assert wait_for(start(run, tmp_path)) == 0
        assert exact_state(run) == expected


def stop_once(run: Run, root: Path, dice: random.Random) -> bool:
    """Entrena y manda una señal a un instante al azar; si llegó a parar la corrida."""
    (root / "salida").unlink(missing_ok=True)
    reader, writer = os.pipe()
    child = start(run, root, lambda: os.close(writer))
    os.close(writer)
    os.read(reader, 1)  # hasta aquí el proceso aún no era la orden
    os.close(reader)
    time.sleep(dice.uniform(0, 0.4))
    os.kill(child, dice.choice(STOPS))
    asked = time.monotonic()
    code = wait_for(child)
    said = (root / "salida").read_text()
    assert time.monotonic() - asked < 10, "no acaba dentro de la gracia de `docker stop`"
    assert code in (0, 130) and "Traceback" not in said, said
    return code == 130 or TO_GO_ON in said
