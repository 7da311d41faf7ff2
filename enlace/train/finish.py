"""El final de una corrida: el modelo listo para usar, una muestra de lo que escribe y el informe."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from enlace.config.schema import Run
from enlace.durable import Content, publish, verify
from enlace.errors import EnlaceError, say
from enlace.errors.numerals import decimal, duration, gib, percent, power, thousands
from enlace.infer.generate import generate_text
from enlace.model import Transformer
from enlace.model.directory import KIND as MODEL_KIND
from enlace.model.directory import generation_config, model_files
from enlace.tokenizer import ByteTokenizer
from enlace.train.checkpoint import checkpoint_path
from enlace.train.compiled import uncompiled
from enlace.train.estimate import Estimate
from enlace.train.records import read_steps
from enlace.train.report import Results, bits, summarize, write_report
from enlace.train.state import KIND, TrainingState, copy_whole

Facts = list[tuple[str, str]]


def finish(state: TrainingState, plan: Estimate) -> None:
    """Publica runs/<corrida>/model/, genera una muestra con él, escribe el informe y enseña las cifras.

    Se puede repetir: una corrida ya terminada que se reanuda vuelve a publicar lo mismo. Si el modelo está partido, lo
    reúnen todos los procesos y el principal hace el resto.
    """
    model = _whole_model(state)
    if model is None:
        return
    log = read_steps(state.run_dir)
    results = summarize(log, seconds=state.counters.seconds, plan=plan, best=state.counters.best)
    facts = _facts(state, plan)
    _publish_model(state, model, _card(state, results, facts))
    sample = _sample(state.run, model)
    command = shlex.join(["enlace", "train", str(state.run_dir / "config.yaml"), f"name={state.run.name}-repetida"])
    write_report(state.run_dir, f"la corrida «{state.run.name}»", log, results, facts, sample, command)
    say(_summary(state.run_dir, results, sample))


def _whole_model(state: TrainingState) -> Transformer | None:
    """El modelo entero en el proceso principal; None en los demás."""
    if state.processes.count == 1 or state.run.hardware.parallel != "shard":
        return state.model if state.processes.main else None
    weights = copy_whole(state, state.model.state_dict())
    if not state.processes.main:
        return None
    model = Transformer(state.run.model, attention=state.run.hardware.attention)
    model.load_state_dict(weights)
    return model.to(state.backend.device)


def _publish_model(state: TrainingState, model: Transformer, card: str) -> None:
    checkpoint = verify(checkpoint_path(state.run_dir / "checkpoints", state.counters.step), KIND)
    generation = generation_config(state.run.sample, ByteTokenizer.end_of_text)
    files: Mapping[str, Content] = model_files(model, _tokenizer_files(state), generation, card=card)
    parents = {"checkpoint": checkpoint.sha256, **checkpoint.parents}
    info = {"step": state.counters.step}
    publish(state.run_dir / "model", files, kind=MODEL_KIND, parents=parents, info=info, overwrite=True)


def _tokenizer_files(state: TrainingState) -> Mapping[str, bytes]:
    """Los del tokenizer de bytes; los shards traerán el suyo cuando la etapa 1 los escriba."""
    return ByteTokenizer().files() if state.run.data.kind == "bytes" else {}


def _sample(run: Run, model: Transformer) -> str:
    """Un párrafo con lo que dice la capa `sample`, o por qué no lo hay."""
    if run.data.kind != "bytes":
        return "(sin muestra: estos shards no traen su tokenizer)"
    try:
        with uncompiled(run.hardware):
            return run.sample.prompt + "".join(generate_text(model, ByteTokenizer(), run.sample))
    except EnlaceError as error:  # un modelo con valores no finitos también merece su informe
        return f"(sin muestra: {error.what})"


def _facts(state: TrainingState, plan: Estimate) -> Facts:
    """Con qué se entrenó: para el informe y para la ficha del modelo."""
    run, environment = state.run, state.backend.environment()
    peak = state.backend.peak_flops
    return [
        (
            "placa",
            f"{run.hardware.board}: {environment['device']}, {environment['threads']} hilos, {run.hardware.dtype}",
        ),
        ("pico", f"{thousands(round(peak / 1e9))} GFLOP/s" if peak else "desconocido"),
        ("torch", f"{environment['torch']} ({environment['instructions']})"),
        ("parámetros", thousands(plan.parameters)),
        ("tokens vistos", f"{thousands(state.counters.tokens)} ({decimal(_epochs(state), 2)} vueltas a los datos)"),
        ("cálculo", f"{power(plan.flops)} FLOP"),
        ("memoria", f"{gib(state.backend.peak_memory())} de máximo; estimada {gib(plan.memory.total)}"),
        ("tokenizer", state.data.tokenizer_sha256),
        *((f"datos: {name}", sha256) for name, sha256 in state.data.fingerprint.items()),
    ]


def _epochs(state: TrainingState) -> float:
    return state.counters.tokens / state.data.train.n_tokens


def _card(state: TrainingState, results: Results, facts: Facts) -> str:
    """La ficha del modelo: qué es, con qué se hizo, qué mide y qué no sabe hacer."""
    rows = "\n".join(f"- {label}: {value}" for label, value in facts)
    return f"""---
language: es
library_name: transformers
---
# {state.run.name}

Modelo de lenguaje en español entrenado desde cero con ENLACE (grafo denso de Qwen3).

- validación: {bits(results.validation_bits_per_byte)}
- entrenamiento: {bits(results.train_bits_per_byte)}
{rows}

Con `transformers` se abre como `Qwen3ForCausalLM`; cada texto empieza por `<|endoftext|>`, que hay que poner delante
del prompt porque así empezaba cada documento al entrenar.

## Límites

Solo predice texto: no ha aprendido a conversar, no sabe hechos y puede escribir cosas falsas u ofensivas.
Refleja los textos con los que se entrenó, cuyas huellas están arriba y en manifest.json.
"""


def _summary(run_dir: Path, results: Results, sample: str) -> str:
    rows = [
        ("entrenamiento", bits(results.train_bits_per_byte)),
        ("validación", bits(results.validation_bits_per_byte)),
        ("velocidad", f"{thousands(round(results.tokens_per_second))} tokens/s"),
        ("tiempo", f"{duration(results.seconds)} (estimado {duration(results.estimated_seconds)}{_error(results)})"),
        ("modelo", str(run_dir / "model")),
        ("informe", str(run_dir / "informe.html")),
    ]
    return "\n".join(["", *(f"{label:<14} {value}" for label, value in rows), "", sample])


def _error(results: Results) -> str:
    return "" if results.estimate_error is None else f"; error {percent(results.estimate_error, sign=True)}"
