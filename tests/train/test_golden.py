"""La curva de oro: un cambio que no sea numérico deja estas pérdidas idénticas al bit.

Se entrena en otro proceso con las instrucciones más básicas de cada biblioteca (sin AVX, MKL en modo compatible),
para que el resultado no dependa de la CPU. Donde aun así los números no puedan ser los mismos (otra arquitectura u
otro torch) se compara con tolerancia y se avisa.

Si un cambio sí es numérico, se mira que la curva nueva no sea peor y se regenera, diciéndolo en el mensaje:

    ENLACE_REGENERAR=1 .venv/bin/python -m pytest tests/train/test_golden.py
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from enlace.durable import read_log
from tests.tiny import tiny_run

GOLDEN = Path(__file__).parent.parent / "golden" / "curva.json"
PLAIN_INSTRUCTIONS = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OMP_NUM_THREADS": "1",
}
CURVES: dict[str, dict[str, Any]] = {
    "float32": {"train__steps": 24, "hardware__attention": "flash"},
    "float16-acumulado-dropout": {
        "train__steps": 24,
        "train__dropout": 0.1,
        "hardware__dtype": "float16",
        "hardware__grad_scaler": True,
        "hardware__micro_batch_tokens": 32,
    },
}


def train_curve(root: Path, changes: dict[str, Any]) -> list[dict[str, str]]:
    run = tiny_run(root, **changes)
    config = root / "corrida.yaml"
    config.write_text(run.model_dump_json())
    command = [sys.executable, "-m", "enlace.train.train", str(config)]
    result = subprocess.run(command, env={**os.environ, **PLAIN_INSTRUCTIONS}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    log = read_log(Path(run.runs_dir) / run.name / "log.jsonl")
    return [{key: float(str(line[key])).hex() for key in ("loss", "grad_norm")} for line in log]


def fingerprint() -> dict[str, str]:
    return {"machine": platform.machine(), "system": platform.system(), "torch": torch.__version__.split("+")[0]}


@pytest.mark.parametrize("name", CURVES)
def test_the_loss_curve_is_the_golden_one(name: str, tmp_path: Path) -> None:
    curve = train_curve(tmp_path, CURVES[name])
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {"fingerprint": fingerprint(), "curves": {}}
    if os.environ.get("ENLACE_REGENERAR") == "1":
        golden["curves"][name] = curve
        GOLDEN.write_text(json.dumps(golden | {"fingerprint": fingerprint()}, indent=1) + "\n")
        return
    expected = golden["curves"][name]
    if golden["fingerprint"] == fingerprint():
        assert curve == expected
        return
    print(f"curva de oro comparada con tolerancia: es de {golden['fingerprint']}", file=sys.stderr)
    for ours, theirs in zip(curve, expected, strict=True):
        for key in ("loss", "grad_norm"):
            assert float.fromhex(ours[key]) == pytest.approx(float.fromhex(theirs[key]), rel=1e-2)
