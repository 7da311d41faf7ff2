"""Un punto de control ajeno, con su manifiesto en regla, puede decir cualquier cosa: se rechaza, y nada se cae."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from enlace.config.schema import Run
from enlace.durable import publish
from enlace.errors import CorruptDataError
from enlace.model.weights import read_tensors, tensor_chunks
from enlace.train.checkpoint import list_checkpoints
from enlace.train.records import read_events, read_steps
from enlace.train.state import KIND, read_state
from enlace.train.train import train
from tests.hostile.targets import GOOD_LINES, good_log, good_state
from tests.tiny import tiny_run

WRONG = {
    "counters": [[], {}, None, {"step": 1}],
    "counters.step": ["3", -1, 3.5, True, None, 10**30],
    "counters.samples": [10**19, -1],
    "counters.seconds": ["mucho", None],
    "counters.anomalies": [{}, 3, [1]],
    "counters.best": [[], {}, {"step": 1}, {"step": 1, "bits_per_byte": "x"}, 3],
    "counters.otra": [1],
    "validation": ["x", [], True],
    "scaler": [None, [], {"scale": 1.0}, {"x": 1}],
    "log": [None, {}, []],
    "log.bytes": [-1, "0", 1.5],
    "log.sha256": [None, 3],
    "host_rng": [{}, []],
    "host_rng.python": [[], [3], [3, [1] * 625, "x"], [2, [1] * 625, None], [3, [-1] * 625, None]],
    "host_rng.numpy.1": [[], [1] * 3, [2**32] * 624, [1.5] * 624],
    "host_rng.numpy.2": [10**7, -1, 625, "x"],
    "host_rng.numpy.0": ["PCG64", None],
    "environment": [[], {"torch": 2}],
    "identity": [[], None],
    "otra": [1],
}
CASES = [(key, value) for key, values in WRONG.items() for value in values]


def changed(document: Any, key: str, value: object) -> Any:
    """El documento con otro valor en esa clave."""
    document = json.loads(json.dumps(document))
    target = document
    *groups, last = key.split(".")
    for group in groups:
        target = target[group]
    target[int(last) if isinstance(target, list) else last] = value
    return document


@pytest.mark.parametrize(("key", "value"), CASES, ids=[f"{key}-{str(value)[:20]}" for key, value in CASES])
def test_a_state_of_wrong_types_is_corrupt(key: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(json.dumps(changed(json.loads(good_state()), key, value)).encode())
    with pytest.raises(CorruptDataError) as caught:
        read_state(tmp_path)
    assert caught.value.where == str(tmp_path / "state.json") and caught.value.why


def test_the_good_state_is_read(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(good_state())
    assert read_state(tmp_path) == json.loads(good_state())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    run = tiny_run(tmp_path_factory.mktemp("corrida"), train__steps=3, train__schedule__decay_steps=0)
    assert train(run)
    return run, Path(run.runs_dir) / run.name


@pytest.fixture
def copy(trained: tuple[Run, Path], tmp_path: Path) -> tuple[Run, Path]:
    """La misma corrida en otra carpeta, y su punto de control, que la prueba puede falsificar."""
    run, folder = trained
    shutil.copytree(folder, tmp_path / run.name)
    (checkpoint,) = list_checkpoints(tmp_path / run.name / "checkpoints")
    settings = run.train.model_copy(update={"steps": 6})
    return run.model_copy(update={"runs_dir": str(tmp_path), "train": settings}), checkpoint


def forge(checkpoint: Path, name: str, content: bytes, info: dict[str, Any] | None = None) -> None:
    """Otro contenido para un fichero, con el manifiesto en regla."""
    files = {file.name: file.read_bytes() for file in checkpoint.iterdir() if file.name != "manifest.json"}
    publish(checkpoint, files | {name: content}, kind=KIND, info={"step": 3} if info is None else info, overwrite=True)


def forge_tensors(checkpoint: Path, name: str, tensors: dict[str, torch.Tensor]) -> None:
    forge(checkpoint, name, b"".join(tensor_chunks(tensors)))


def resumed(run: Run, resume: str = "auto") -> CorruptDataError:
    with pytest.raises(CorruptDataError) as caught:
        train(run, resume=resume)
    return caught.value


@pytest.mark.parametrize("change", ["shape", "broadcast", "dtype", "missing", "extra"])
def test_forged_moments_are_refused(copy: tuple[Run, Path], change: str) -> None:
    run, checkpoint = copy
    tensors = read_tensors(checkpoint / "optimizer.safetensors")
    name = max(tensors, key=lambda name: tensors[name].numel())
    match change:
        case "shape":
            tensors[name] = torch.zeros(3)
        case "broadcast":  # copy_ lo extendería sin decir nada
            tensors[name] = torch.zeros(1)
        case "dtype":
            tensors[name] = tensors[name].to(torch.int64)
        case "missing":
            del tensors[name]
        case "extra":
            tensors["otro"] = torch.zeros(1)
    forge_tensors(checkpoint, "optimizer.safetensors", dict(tensors))
    error = resumed(run)
    assert error.where.endswith("optimizer.safetensors")
    assert (name in error.why) == (change != "extra")


@pytest.mark.parametrize(
    "tensors",
    [{}, {"torch": torch.zeros(3, dtype=torch.uint8)}, {"torch": torch.zeros(5056)}, {"otro": torch.zeros(1)}],
    ids=["none", "short", "floats", "other name"],
)
def test_forged_generators_are_refused(copy: tuple[Run, Path], tensors: dict[str, torch.Tensor]) -> None:
    run, checkpoint = copy
    forge_tensors(checkpoint, "rng.safetensors", tensors)
    assert resumed(run).where.endswith("rng.safetensors")


def test_a_forged_position_of_numpy_never_reaches_numpy(copy: tuple[Run, Path]) -> None:
    # np.random.set_state no la comprueba: el siguiente número al azar saldría de fuera de su memoria (SIGSEGV).
    run, checkpoint = copy
    document = json.loads((checkpoint / "state.json").read_bytes())
    forge(checkpoint, "state.json", json.dumps(changed(document, "host_rng.numpy.2", 10**9)).encode())
    assert resumed(run).why == "no sirve host_rng.numpy.2"
    assert 0 <= np.random.random() < 1


@pytest.mark.parametrize(("key", "value"), [("steps", "muchos"), ("steps", -1), ("schedule", 3)])
def test_a_forged_recipe_is_refused_even_where_it_may_change(copy: tuple[Run, Path], key: str, value: object) -> None:
    run, checkpoint = copy
    document = json.loads((checkpoint / "state.json").read_bytes())
    forge(checkpoint, "state.json", json.dumps(changed(document, f"identity.config.train.{key}", value)).encode())
    with pytest.raises(Exception, match=r"receta guardada no es válida|no es la misma corrida") as caught:
        train(run, resume="auto")
    assert "train" in caught.value.why


@pytest.mark.parametrize("info", [{}, {"step": "x"}, {"step": -1}])
def test_what_the_manifest_says_of_the_step_is_not_trusted(copy: tuple[Run, Path], info: dict[str, Any]) -> None:
    run, checkpoint = copy
    forge(checkpoint, "state.json", (checkpoint / "state.json").read_bytes(), info)
    assert train(run, resume=str(checkpoint))


def test_a_log_that_is_not_the_saved_one_is_refused(copy: tuple[Run, Path]) -> None:
    run, checkpoint = copy
    document = json.loads((checkpoint / "state.json").read_bytes())
    forge(checkpoint, "state.json", json.dumps(changed(document, "log.bytes", 10**15)).encode())
    assert "registro" in resumed(run).what


def test_a_signed_log_that_cannot_be_reported_is_refused_before_training(copy: tuple[Run, Path]) -> None:
    run, checkpoint = copy
    log = b'{"step":1}\n'
    (checkpoint.parents[1] / "log.jsonl").write_bytes(log)
    document = json.loads((checkpoint / "state.json").read_bytes())
    position = {"bytes": len(log), "sha256": hashlib.sha256(log).hexdigest()}
    forge(checkpoint, "state.json", json.dumps(document | {"log": position}).encode())
    error = resumed(run)
    assert error.where.endswith("log.jsonl:1") and "no sirve" in error.why
    assert len(list_checkpoints(checkpoint.parent)) == 1


WRONG_LINES: dict[str, list[Any]] = {
    "step": [None, "1", 1.5, -1, 1 << 62, True],
    "bits_per_byte": [None, "x", [], 1e101, True],
    "validation": ["x", [], -1e101],
    "learning_rate": [None, "nan", {}],
    "grad_norm": [None, "x", 1e308],
    "skipped": [3, []],
    "timing": [None, [], {}, 3],
    "timing.tokens_per_second": [0, -1.0, "x", None, 1e308],
}


@pytest.mark.parametrize("key", WRONG_LINES)
def test_a_step_of_wrong_types_is_corrupt_with_its_line(key: str, tmp_path: Path) -> None:
    for value in WRONG_LINES[key]:
        (tmp_path / "log.jsonl").write_bytes(good_log(GOOD_LINES[0]) + good_log(changed(GOOD_LINES[0], key, value)))
        with pytest.raises(CorruptDataError) as caught:
            read_steps(tmp_path)
        assert caught.value.where == f"{tmp_path / 'log.jsonl'}:4" and f"no sirve {key}" in caught.value.why


@pytest.mark.parametrize("key", GOOD_LINES[1])
def test_an_event_of_wrong_types_is_corrupt_with_its_line(key: str, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(good_log(GOOD_LINES[1]))
    assert len(read_events(tmp_path)) == 3
    (tmp_path / "events.jsonl").write_bytes(good_log(changed(GOOD_LINES[1], key, None)))
    with pytest.raises(CorruptDataError) as caught:
        read_events(tmp_path)
    assert caught.value.where == f"{tmp_path / 'events.jsonl'}:1"
