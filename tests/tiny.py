"""Una corrida diminuta pero real, para las pruebas del entrenamiento: texto propio, modelo de juguete."""

import json
from pathlib import Path
from typing import Any

from enlace.config.schema import Run

SENTENCES = (
    "La casa amaneció en calma y el gato dormía junto a la ventana.",
    "¿Vendrás mañana a cenar? Traeré pan, queso y un poco de vino.",
    "El niño contó hasta veintidós antes de salir corriendo por el jardín.",
    "Según la abuela, la sopa sabe mejor al día siguiente.",
)


def write_documents(folder: Path, count: int = 60) -> Path:
    """Documentos JSONL escritos aquí mismo, todos distintos."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"id": f"doc-{i}", "text": " ".join(f"{i}.{j} {SENTENCES[(i + j) % len(SENTENCES)]}" for j in range(8))}
        for i in range(count)
    ]
    path = folder / "documentos.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n", encoding="utf-8")
    return path


def tiny_settings(root: Path, source: Path) -> dict[str, Any]:
    """Los valores de la corrida; las pruebas cambian lo que necesitan antes de construirla."""
    return {
        "name": "diminuta",
        "runs_dir": str(root / "runs"),
        "hardware": {
            "board": "CPU de pruebas",
            "device": "cpu",
            "dtype": "float32",
            "attention": "math",
            "grad_scaler": False,
            "deterministic": True,
            "compile": False,
            "micro_batch_tokens": 128,
            "parallel": "replicate",
            "process_timeout": 60,
            "threads": 1,
            "expected_mfu": 0.5,
        },
        "model": {
            "vocab_size": 288,
            "d_model": 32,
            "n_layers": 2,
            "n_heads": 4,
            "n_kv_heads": 2,
            "head_dim": 8,
            "d_ff": 64,
            "max_sequence_length": 32,
            "rope_theta": 10000.0,
            "norm_eps": 1e-6,
            "init_std": 0.02,
            "tie_embeddings": True,
        },
        "train": {
            "seed": 7,
            "steps": 12,
            "sequence_length": 32,
            "batch_size": 4,
            "loss_chunk_tokens": 64,
            "grad_clip": 1.0,
            "z_loss": 1e-4,
            "dropout": 0.0,
            "optimizer": {
                "learning_rate": 3e-3,
                "embedding_learning_rate": 3e-3,
                "head_learning_rate": 3e-3,
                "norm_learning_rate": 3e-3,
                "beta1": 0.9,
                "beta2": 0.95,
                "eps": 1e-8,
                "weight_decay": 0.1,
                "muon": None,
            },
            "schedule": {"kind": "wsd", "warmup_steps": 2, "decay_steps": 4, "final_ratio": 0.1},
            "anomalies": {"max_consecutive": 3},
            "checkpoints": {
                "every": 3,
                "keep_last": 2,
                "keep_best": False,
                "keep_steps": [],
                "asynchronous": False,
            },
            "evaluation": {"every": 6, "sequences": 4},
            "tensorboard": False,
        },
        "data": {
            "kind": "bytes",
            "sources": [{"name": "propio", "path": str(source), "weight": 1.0}],
            "validation_fraction": 0.2,
        },
        "sample": {
            "prompt": "La casa",
            "max_new_tokens": 8,
            "temperature": 0.8,
            "top_k": 0,
            "top_p": 1.0,
            "seed": 1,
        },
    }


def change(settings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Cambia valores por su clave con «__» en vez de puntos: train__steps=3."""
    for dotted, value in changes.items():
        *groups, key = dotted.split("__")
        target = settings
        for group in groups:
            target = target[group]
        target[key] = value
    return settings


def tiny_run(root: Path, **changes: Any) -> Run:
    """Corrida diminuta con su texto en `root`."""
    source = write_documents(root / "texto") if not (root / "texto").exists() else root / "texto" / "documentos.jsonl"
    return Run.model_validate(change(tiny_settings(root, source), **changes))
