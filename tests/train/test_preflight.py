"""La falta de memoria se ve antes del primer paso, con qué bajar; el lote de prueba no deja rastro."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import torch

from enlace.durable import AppendLog
from enlace.errors import ResourceError
from enlace.train.backends import open_backend
from enlace.train.estimate import Memory
from enlace.train.preflight import dry_batch, require_memory
from enlace.train.train import build_state
from tests.tiny import tiny_run

LIMIT_BYTES = 6 * 2**30
HUGE = {
    "model__d_model": 512,
    "model__n_layers": 8,
    "model__d_ff": 2048,
    "model__max_sequence_length": 4096,
    "train__sequence_length": 4096,
    "train__batch_size": 16,
    "hardware__micro_batch_tokens": 65536,
}
# Sin la estimación previa, que ya lo rechazaría: aquí se prueba que el lote de prueba también lo ve.
OUT_OF_MEMORY = """
import resource, sys
from enlace.train import train
train.require_memory = lambda *_: None
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
sys.exit(train.main(sys.argv[1:]))
"""


def run_limited(code: str, config: Path) -> tuple[int, str, float]:
    start = os.times()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code, str(config)], capture_output=True, text=True, env=environment, timeout=60
    )
    end = os.times()  # tiempo de CPU: lo que tarden los demás procesos de la máquina no cuenta
    spent = end.children_user + end.children_system - start.children_user - start.children_system
    return result.returncode, result.stderr, spent


def test_the_dry_batch_reports_out_of_memory_within_30_seconds_with_three_settings(tmp_path: Path) -> None:
    config = tmp_path / "enorme.yaml"
    config.write_text(tiny_run(tmp_path, **HUGE).model_dump_json())
    code, message, seconds = run_limited(OUT_OF_MEMORY.format(limit=LIMIT_BYTES), config)
    assert code == 8, message
    assert seconds < 30
    assert "no cabe en memoria" in message and "Traceback" not in message
    for setting in ("hardware.micro_batch_tokens=32768", "train.sequence_length=2048", "train.loss_chunk_tokens=32"):
        assert setting in message


def test_what_will_not_fit_is_refused_before_allocating_anything(tmp_path: Path) -> None:
    needed = Memory(weights=2**40, gradients=0, optimizer=0, activations=0)
    with pytest.raises(ResourceError) as caught:
        require_memory(tiny_run(tmp_path), needed, available=2**30)
    assert "1.024,00 GiB" in caught.value.why and "1,00 GiB" in caught.value.why
    assert len(caught.value.fix.splitlines()) == 3


def test_the_dry_batch_changes_neither_weights_nor_generators_nor_gradients(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, train__dropout=0.5)
    backend = open_backend(run.hardware, seed=1)
    with closing(AppendLog(tmp_path / "log.jsonl")) as log:
        state = build_state(run, backend, tmp_path, log)
    before = {name: tensor.clone() for name, tensor in state.model.state_dict().items()}
    rng = torch.get_rng_state()
    assert dry_batch(run, backend, state.objective) > 0
    assert torch.equal(rng, torch.get_rng_state())
    assert all(torch.equal(tensor, before[name]) for name, tensor in state.model.state_dict().items())
    assert all(parameter.grad is None for parameter in state.model.parameters())
