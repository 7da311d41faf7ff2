"""Por dónde entra lo de un desconocido: cada puerta recibe unos bytes y solo puede dejar salir un EnlaceError.

Las usan las pruebas rápidas con hypothesis, los casos guardados en `cases/` y atheris (`fuzz.py`).
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch

from enlace.config import load_run
from enlace.data.shards import open_shard_set, write_shard_set
from enlace.durable import Json, publish, to_json, verify
from enlace.durable.canonical import parse_json
from enlace.durable.log import read_log
from enlace.durable.manifest import encode_manifest
from enlace.errors import EnlaceError, render
from enlace.model.directory import KIND, load_model, model_files
from enlace.model.weights import read_tensors, tensor_chunks
from enlace.train.estimate import Estimate, estimate_run
from enlace.train.records import read_events, read_steps
from enlace.train.report import _figures, summarize
from enlace.train.state import Counters, _host_rng, read_state
from tests.model.shapes import random_model, shape

EXAMPLE = Path(__file__).parents[1] / "config" / "configs"
Files = dict[str, bytes]
Line = dict[str, Json]


def tensors(folder: Path, data: bytes) -> None:
    """Un fichero cualquiera, o una cabecera cualquiera con su longitud y sus datos bien puestos."""
    path = folder / "t.safetensors"
    header, _, body = data.partition(b"\n")
    for content in (data, len(header).to_bytes(8, "little") + header + body):
        path.write_bytes(content)
        refused_or(lambda: read_tensors(path))


def manifest(folder: Path, data: bytes) -> None:
    """Un manifiesto cualquiera y otro, con la misma forma, cuya huella es la suya."""
    (folder / "x").write_bytes(b"uno")
    (folder / "manifest.json").write_bytes(data)
    refused_or(lambda: verify(folder))
    if isinstance(body := loose(data), dict):
        body.pop("sha256", None)
        refused_or(lambda: (folder / "manifest.json").write_bytes(signed(body)))
        refused_or(lambda: verify(folder, "k"))


def log(folder: Path, data: bytes) -> None:
    """Un registro cualquiera: si se lee, se puede resumir y dibujar."""
    (folder / "log.jsonl").write_bytes(data)
    (folder / "events.jsonl").write_bytes(data)
    refused_or(lambda: read_log(folder / "log.jsonl"))

    def report() -> None:
        steps = read_steps(folder)
        summarize(steps, seconds=1.0, plan=plan(), best=None)
        _figures(steps)

    refused_or(report)
    refused_or(lambda: read_events(folder))


def json_text(folder: Path, data: bytes) -> None:
    """Un JSON cualquiera: si se lee, se escribe y se vuelve a leer igual."""
    del folder

    def round_trip() -> None:
        value = parse_json(data, "aquí")
        assert parse_json(to_json(value), "aquí") == value

    refused_or(round_trip)


def yaml_text(folder: Path, data: bytes) -> None:
    """Una corrida cualquiera, entre capas buenas."""
    if not (folder / "configs").exists():
        shutil.copytree(EXAMPLE, folder / "configs")
    run = folder / "configs" / "runs" / "smoke-2060.yaml"
    run.write_bytes(data)
    refused_or(lambda: load_run(run))


def shard(folder: Path, data: bytes) -> None:
    """Un conjunto de shards bien firmado, con cualquier cosa en su primer fichero."""
    files = dict(good_shards())
    files["train-00000.bin"] = data
    publish(folder / "s", files, kind="shards", info={"text_bytes": {"train": 3}}, overwrite=True)
    refused_or(lambda: open_shard_set("s", folder / "s", 301).train.n_samples(4))


def model_config(folder: Path, data: bytes) -> None:
    """Un modelo bien firmado con cualquier config.json."""
    publish(folder / "m", {**good_model(), "config.json": data}, kind=KIND, overwrite=True)
    refused_or(lambda: load_model(folder / "m"))


def model_weights(folder: Path, data: bytes) -> None:
    """Un modelo bien firmado con cualquier cosa por pesos."""
    publish(folder / "m", {**good_model(), "model.safetensors": data}, kind=KIND, overwrite=True)
    refused_or(lambda: load_model(folder / "m"))


def state(folder: Path, data: bytes) -> None:
    """Cualquier state.json."""
    (folder / "state.json").write_bytes(data)
    refused_or(lambda: read_state(folder))


TARGETS: dict[str, Callable[[Path, bytes], None]] = {
    "tensors": tensors,
    "manifest": manifest,
    "log": log,
    "json": json_text,
    "yaml": yaml_text,
    "shard": shard,
    "model_config": model_config,
    "model_weights": model_weights,
    "state": state,
}


def refused_or(action: Callable[[], object]) -> EnlaceError | None:
    """El rechazo, que se puede leer en cualquier terminal, o None si no lo hubo. Otra excepción es un defecto."""
    try:
        action()
    except EnlaceError as error:
        text = render(error)
        text.encode()
        assert all(char.isprintable() or char == "\n" for char in text)
        assert len(text) < 100_000
        return error
    return None


def loose(data: bytes) -> object:
    """JSON sin exigencias; None si no lo es."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def signed(body: dict[str, object]) -> bytes:
    """El manifiesto con su huella, como lo firmaría quien lo falsifica. EnlaceError si no cabe en JSON."""
    try:
        digest = hashlib.sha256(to_json(body)).hexdigest()  # type: ignore[arg-type]
        return to_json(body | {"sha256": digest})  # type: ignore[operator]
    except (ValueError, RecursionError) as error:
        raise EnlaceError("no cabe en JSON") from error


@cache
def plan() -> Estimate:
    """El plan de una corrida."""
    run = load_run(EXAMPLE / "runs" / "smoke-2060.yaml").run
    return estimate_run(run, peak_flops=None, measured_pass=None)


@cache
def good_model() -> Files:
    """Los ficheros de un modelo que se carga."""
    return {
        name: content if isinstance(content, bytes) else b"".join(content)
        for name, content in model_files(random_model(shape()), {}, {}, card="").items()
    }


@cache
def good_shards() -> Files:
    """Los ficheros de un conjunto de shards que se abre."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "s"
        write_shard_set(
            path,
            {"train": [np.arange(40, dtype=np.uint16)]},
            tokenizer_sha256="ab" * 32,
            end_of_text=300,
            text_bytes={"train": 40},
            shard_tokens=1000,
        )
        return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "manifest.json"}


GOOD_LINES: tuple[Line, ...] = (
    {
        "step": 7,
        "bits_per_byte": 2.5,
        "validation": 2.25,
        "learning_rate": 0.001,
        "grad_norm": "nan",
        "skipped": None,
        "timing": {"tokens_per_second": 1234.5},
    },
    {"time": "2026-01-01T00:00:00+00:00", "step": 7, "event": "empieza"},
)


def good_log(line: Line) -> bytes:
    """Un registro con esa línea, repetida."""
    return (to_json(line) + b"\n") * 3


@cache
def good_state() -> bytes:
    """Un state.json que se lee."""
    return to_json(
        {
            "counters": vars(Counters(step=3, best={"step": 2, "bits_per_byte": 1.5})),
            "validation": 1.5,
            "scaler": {},
            "log": {"bytes": 0, "sha256": ""},
            "host_rng": _host_rng(),
            "environment": {"torch": "2"},
            "identity": {"config": {}},
        }
    )


def seeds(target: str) -> list[bytes]:
    """Entradas buenas por las que empezar."""
    weights = b"".join(tensor_chunks({"a": torch.ones(2, 3), "b": torch.ones(5, dtype=torch.uint8)}))
    length = int.from_bytes(weights[:8], "little")
    run = (EXAMPLE / "runs" / "smoke-2060.yaml").read_bytes()
    state_text = good_state()
    entry = {"bytes": 3, "sha256": hashlib.sha256(b"uno").hexdigest()}
    body = json.loads(encode_manifest("k", {}, {"padre": "0" * 64}, {"step": 1})) | {"files": {"x": entry}}
    return {
        "tensors": [weights, weights[8 : 8 + length] + b"\n" + weights[8 + length :]],
        "manifest": [json.dumps(body).encode()],
        "log": [b'{"step":1,"loss":2.5}\n{"step":2}\n{"st', *map(good_log, GOOD_LINES)],
        "json": [b'{"a":[1,-2.5e3,"\\u00f1",null,true],"b":{}}', state_text],
        "yaml": [run, *(path.read_bytes() for path in EXAMPLE.rglob("*.yaml"))],
        "shard": [good_shards()["train-00000.bin"]],
        "model_config": [good_model()["config.json"]],
        "model_weights": [good_model()["model.safetensors"]],
        "state": [state_text],
    }[target]
