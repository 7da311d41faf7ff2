"""Los mensajes, palabra por palabra: fichero, línea, clave, qué se esperaba, qué hay y la pista."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, get_args

import pytest
from pydantic import BaseModel, Field, ValidationError, model_validator

from enlace.config import check_all, load_run
from enlace.config.messages import _EXPECTED
from enlace.config.schema import LAYERS, Run
from enlace.config.schema.base import Layer
from enlace.config.tree import Node, Origin
from enlace.config.validate import validate
from enlace.errors import ConfigError

Put = Callable[[str, str], Path]
Edit = Callable[[str, str, str], None]

RUN = Path("configs/runs/smoke-cpu.yaml")


def problems(path: Path = RUN, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_run(path, overrides)
    assert caught.value.exit_code == 4
    return [str(problem) for problem in caught.value.problems]


EDITS = [
    ("train/smoke", "steps: 900", "stepz: 900", [
        "configs/train/smoke.yaml:4: «train.steps»: falta este valor obligatorio",
        "configs/train/smoke.yaml:5: «train.stepz»: clave desconocida. ¿Quisiste decir «train.steps»?",
    ]),
    ("train/smoke", "dropout: 0.0", "dropout: 0.0\nmomento: 1", [
        "configs/train/smoke.yaml:12: «train.momento»: clave desconocida. Hay: anomalies, batch_size, checkpoints, "
        "dropout, evaluation, grad_clip, loss_chunk_tokens, optimizer, schedule, seed, sequence_length, steps, "
        "tensorboard, z_loss.",
    ]),
    ("train/smoke", "dropout: 0.0", "dropout: 0.0\nbeta1: 0.9", [
        "configs/train/smoke.yaml:12: «train.beta1»: clave desconocida. ¿Quisiste decir «train.optimizer.beta1»?",
    ]),
    ("train/smoke", "steps: 900", "steps: muchos", [
        "configs/train/smoke.yaml:5: «train.steps»: se esperaba un número entero y hay el texto «muchos»",
    ]),
    ("train/smoke", "steps: 900", "steps: '900'", [
        "configs/train/smoke.yaml:5: «train.steps»: se esperaba un número entero y hay el texto «900». "
        "Quita las comillas.",
    ]),
    ("train/smoke", "steps: 900", "steps: 1e3", [
        "configs/train/smoke.yaml:5: «train.steps»: se esperaba un número entero y hay 1000.0. "
        "Escribe 1000, sin decimales ni exponente.",
    ]),
    ("train/smoke", "steps: 900", "steps:", [
        "configs/train/smoke.yaml:5: «train.steps»: se esperaba un número entero y hay null",
    ]),
    ("train/smoke", "steps: 900", "steps: 0", [
        "configs/train/smoke.yaml:5: «train.steps»: tiene que ser mayor que 0 y hay 0",
    ]),
    ("train/smoke", "beta2: 0.98", "beta2: 1", [
        "configs/train/smoke.yaml:18: «train.optimizer.beta2»: tiene que ser menor que 1 y hay 1",
    ]),
    ("train/smoke", "final_ratio: 0.0", "final_ratio: -0.5", [
        "configs/train/smoke.yaml:26: «train.schedule.final_ratio»: tiene que ser 0 o más y hay -0.5",
    ]),
    ("train/smoke", "final_ratio: 0.0", "final_ratio: 1.5", [
        "configs/train/smoke.yaml:26: «train.schedule.final_ratio»: tiene que ser 1 o menos y hay 1.5",
    ]),
    ("train/smoke", "grad_clip: 1.0", "grad_clip: .inf", [
        "configs/train/smoke.yaml:9: «train.grad_clip»: se esperaba un número finito y hay .inf",
    ]),
    ("train/smoke", "grad_clip: 1.0", "grad_clip: mucho", [
        "configs/train/smoke.yaml:9: «train.grad_clip»: se esperaba un número y hay el texto «mucho»",
    ]),
    ("train/smoke", "keep_best: true", "keep_best: yes", [
        "configs/train/smoke.yaml:32: «train.checkpoints.keep_best»: se esperaba true o false y hay el texto «yes». "
        "En YAML 1.2 solo valen true y false.",
    ]),
    ("train/smoke", "keep_steps: []", "keep_steps: {}", [
        "configs/train/smoke.yaml:33: «train.checkpoints.keep_steps»: se esperaba una lista y hay un grupo de claves",
    ]),
    ("train/smoke", "keep_steps: []", "keep_steps:\n    - 1\n    - dos", [
        "configs/train/smoke.yaml:35: «train.checkpoints.keep_steps.1»: se esperaba un número entero y hay "
        "el texto «dos»",
    ]),
    ("train/smoke", "kind: wsd", "kind: wds", [
        "configs/train/smoke.yaml:23: «train.schedule.kind»: tiene que ser wsd o cosine y hay el texto «wds»",
    ]),
    ("hardware/cpu", "attention: flash", "attention: flahs", [
        "configs/hardware/cpu.yaml:7: «hardware.attention»: tiene que ser math, mem_efficient o flash y hay "
        "el texto «flahs»",
    ]),
    ("hardware/cpu", "board: CPU", "board: 2060", [
        "configs/hardware/cpu.yaml:4: «hardware.board»: se esperaba un texto y hay 2060. Ponlo entre comillas.",
    ]),
    ("data/smoke", "path: data/smoke", "path: ''", [
        "configs/data/smoke.yaml:6: «data.sources.0.path»: no puede estar vacío y hay un texto vacío",
    ]),
    ("runs/smoke-cpu", "model:\n  vocab_size: 288", "model: [288]", [
        "configs/runs/smoke-cpu.yaml:14: «model»: se esperaba un grupo de claves y hay una lista",
    ]),
    ("runs/smoke-cpu", "  data: smoke\n", "  data: smoke\ndata:\n  sources: []\n", [
        "configs/runs/smoke-cpu.yaml:12: «data.sources»: la lista tiene que tener al menos 1 y hay una lista vacía",
    ]),
    ("runs/smoke-cpu", "runs_dir: runs", "runs_dir: runs\nname: Mi corrida", [
        "configs/runs/smoke-cpu.yaml:13: «name»: solo puede llevar letras minúsculas sin acento, cifras, «-» y «_» "
        "y hay el texto «Mi corrida»",
    ]),
    ("runs/smoke-cpu", "  train: smoke\n", "", [
        "configs/runs/smoke-cpu.yaml:1: «train»: falta este valor obligatorio. "
        "Elige una capa: «train: nombre» dentro de «include:».",
    ]),
    # Inclusiones.
    ("runs/smoke-cpu", "train: smoke", "train: smok", [
        "configs/runs/smoke-cpu.yaml:9: «include.train»: no existe configs/train/smok.yaml. ¿Quisiste decir «smoke»?",
    ]),
    ("runs/smoke-cpu", "hardware: cpu", "hardware: portátil", [
        "configs/runs/smoke-cpu.yaml:7: «include.hardware»: se esperaba el nombre de un fichero (a-z, 0-9, «-» y «_», "
        "sin .yaml) y hay el texto «portátil»",
    ]),
    ("runs/smoke-cpu", "hardware: cpu", "hadware: cpu", [
        "configs/runs/smoke-cpu.yaml:7: «include.hadware»: no hay ninguna capa con ese nombre. "
        "¿Quisiste decir «hardware»?",
        "configs/runs/smoke-cpu.yaml:1: «hardware»: falta este valor obligatorio. "
        "Elige una capa: «hardware: nombre» dentro de «include:».",
    ]),
    ("runs/smoke-cpu", "  train: smoke", "  run: smoke-2060\n  train: smoke", [
        "configs/runs/smoke-2060.yaml:7: «include.run»: los ficheros se incluyen en círculo: "
        "configs/runs/smoke-cpu.yaml → configs/runs/smoke-2060.yaml → configs/runs/smoke-cpu.yaml",
    ]),
    ("train/smoke", "seed: 1", "seed: 1\ninclude: smoke", [
        "configs/train/smoke.yaml:5: «train.include»: los ficheros se incluyen en círculo: "
        "configs/train/smoke.yaml → configs/train/smoke.yaml",
    ]),
    ("train/smoke", "seed: 1", "seed: 1\ninclude: [smoke]", [
        "configs/train/smoke.yaml:5: «train.include»: se esperaba el nombre de un fichero (a-z, 0-9, «-» y «_», "
        "sin .yaml) y hay una lista",
    ]),
    # YAML.
    ("train/smoke", "seed: 1", "seed: 1\nseed: 2", [
        "configs/train/smoke.yaml:5: «train.seed»: clave repetida: ya estaba en la línea 4",
    ]),
    ("train/smoke", "  beta1: 0.9", "\tbeta1: 0.9", [
        "configs/train/smoke.yaml:17: «train»: YAML mal escrito: hay un tabulador: sangra con espacios: «beta1: 0.9»",
    ]),
    # Reglas entre claves: se cita cada una con su sitio.
    ("hardware/cpu", "grad_scaler: false", "grad_scaler: true", [
        "configs/hardware/cpu.yaml:8: «hardware.grad_scaler»: grad_scaler es true con float16 y false con los demás. "
        "«hardware.dtype» sale de configs/hardware/cpu.yaml:6.",
    ]),
    ("hardware/cpu", "attention: flash", "attention: mem_efficient", [
        "configs/hardware/cpu.yaml:7: «hardware.attention»: la CPU no tiene atención mem_efficient: usa flash o math. "
        "«hardware.device» sale de configs/hardware/cpu.yaml:5.",
    ]),
    ("model/nano", "head_dim: 64", "head_dim: 63", [
        "configs/model/nano.yaml:9: «model.head_dim»: head_dim (63) debe ser par: RoPE gira pares de componentes",
    ]),
    ("train/smoke", "decay_steps: 360", "decay_steps: 861", [
        "configs/train/smoke.yaml:5: «train.steps»: schedule.warmup_steps (40) + schedule.decay_steps (861) no caben "
        "en steps (900). «train.schedule.warmup_steps» sale de configs/train/smoke.yaml:24; "
        "«train.schedule.decay_steps» sale de configs/train/smoke.yaml:25.",
    ]),
    ("runs/smoke-cpu", "vocab_size: 288", "vocab_size: 300", [
        "configs/runs/smoke-cpu.yaml:15: «model.vocab_size»: leyendo bytes, model.vocab_size (300) tiene que ser 288: "
        "los 256 bytes y 32 ids especiales. «data.kind» sale de configs/data/smoke.yaml:3.",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "expected"), EDITS, ids=[edit[2][:30] for edit in EDITS])
def test_one_mistake_in_a_file(edit: Edit, name: str, old: str, new: str, expected: list[str]) -> None:
    edit(name, old, new)
    assert problems() == expected


COMMANDS = [
    ("train.sed=9", "«train.sed»: clave desconocida. ¿Quisiste decir «train.seed»?"),
    ("trian.seed=9", "«trian»: clave desconocida. ¿Quisiste decir «train»?"),
    ("seed=9", "«seed»: clave desconocida. ¿Quisiste decir «train.seed» o «sample.seed»?"),
    ("train.seed.x=9", "«train.seed»: se esperaba un número entero y hay un grupo de claves"),
    ("train=9", "«train»: se esperaba un grupo de claves y hay 9"),
    ("train.seed=", "«train.seed»: se esperaba un número entero y hay null"),
    ("sample.prompt=", "«sample.prompt»: se esperaba un texto y hay null. Un texto vacío se escribe ''."),
    ("train.seed=[1", "«train.seed»: YAML mal escrito: falta cerrar unas comillas, un corchete o una llave: «[1»"),
    ("train.seed=*a", "«train.seed»: los alias de YAML («*nombre») no se admiten: escribe el valor"),
    ("train.seed", "se esperaba clave=valor, por ejemplo train.seed=99"),
    ("=9", "se esperaba clave=valor, por ejemplo train.seed=99"),
    ("train..seed=9", "se esperaba clave=valor, por ejemplo train.seed=99"),
    ("train.seed =9", "se esperaba clave=valor, por ejemplo train.seed=99"),
    (f"{'a.' * 40}b=1", "se esperaba clave=valor, por ejemplo train.seed=99"),
    ("include.hardware=h20", "«include.hardware»: no existe configs/hardware/h20.yaml. ¿Quisiste decir «h200»?"),
    ("include.run=smoke-2060", "«include.run»: no hay ninguna capa con ese nombre. Hay: data, hardware, model, train."),
    ("include=cpu", "«include»: se esperaba un nombre por capa y hay el texto «cpu»"),
    ("data.sources={}", "«data.sources»: se esperaba una lista y hay un grupo de claves"),
]


@pytest.mark.parametrize(("argument", "expected"), COMMANDS, ids=[argument[:20] for argument, _ in COMMANDS])
def test_one_mistake_in_the_command_line(configs: Path, argument: str, expected: str) -> None:
    shown = argument if len(argument) <= 80 else f"{argument[:80]}…"
    assert f"línea de órdenes «{shown}»: {expected}" in problems(RUN, argument)


def test_a_broken_rule_names_the_file_behind_each_key(configs: Path) -> None:
    assert problems(RUN, "model.n_kv_heads=2", "train.dropout=0.5") == [
        "línea de órdenes «model.n_kv_heads=2»: «model.n_kv_heads»: n_kv_heads (2) debe dividir a n_heads (3). "
        "«model.n_heads» sale de configs/model/nano.yaml:7."
    ]
    assert problems(RUN, "train.sequence_length=2048") == [
        "línea de órdenes «train.sequence_length=2048»: «train.sequence_length»: train.sequence_length (2048) es mayor "
        "que model.max_sequence_length (1024). «model.max_sequence_length» sale de configs/model/nano.yaml:11."
    ]
    assert problems(RUN, "hardware.micro_batch_tokens=255") == [
        "configs/train/smoke.yaml:6: «train.sequence_length»: train.sequence_length (256) no cabe en "
        "hardware.micro_batch_tokens (255). «hardware.micro_batch_tokens» sale de "
        "línea de órdenes «hardware.micro_batch_tokens=255»."
    ]


def test_flash_attention_on_a_gpu_needs_sixteen_bits(configs: Path) -> None:
    assert problems(RUN, "include.hardware=h200", "hardware.dtype=float32") == [
        "configs/hardware/h200.yaml:6: «hardware.attention»: flash no admite float32 en la GPU: usa mem_efficient o "
        "math. «hardware.dtype» sale de línea de órdenes «hardware.dtype=float32»."
    ]


def test_rules_and_limits_without_a_text_of_their_own_are_still_told_in_spanish() -> None:
    class Group(Layer):
        even: int = Field(multiple_of=2)

        @model_validator(mode="after")
        def _is_positive(self) -> Self:
            if self.even < 0:
                raise ValueError("even no puede ser negativo")
            return self

    def first(value: int) -> str:
        even = Node(value, Origin("x.yaml", 3))
        _, (found,) = validate(Group, Node({"even": even}, Origin("x.yaml", 2)), ("grupo",))
        return str(found)

    assert first(-2) == "x.yaml:2: «grupo»: even no puede ser negativo"
    assert first(3) == "x.yaml:3: «grupo.even»: este valor no es válido (multiple_of): hay 3"


def test_every_problem_of_every_file_comes_out_at_once(configs: Path, edit: Edit) -> None:
    (configs / "train/smoke.yaml").write_bytes("seed: 1\nnota: año".encode("latin-1"))
    (configs / "data/smoke.yaml").write_text("kind: [bytes\n", encoding="utf-8")
    edit("model/nano", "d_model: 192", "d_model: -192\nd_model: 0")
    edit("runs/smoke-cpu", "top_k: 0", "top_k: cero\n  top_q: 1")
    assert problems(RUN, "hardware.dtype=float64") == [
        "configs/model/nano.yaml:6: «model.d_model»: clave repetida: ya estaba en la línea 5",
        "configs/train/smoke.yaml:2: no está en UTF-8 (byte 0xf1). Guárdalo como UTF-8 en tu editor.",
        "configs/data/smoke.yaml:2: «data»: YAML mal escrito: falta cerrar unas comillas, un corchete o una llave",
        "línea de órdenes «hardware.dtype=float64»: «hardware.dtype»: tiene que ser float32, float16 o bfloat16 "
        "y hay el texto «float64»",
        "configs/runs/smoke-cpu.yaml:21: «sample.top_k»: se esperaba un número entero y hay el texto «cero»",
        "configs/runs/smoke-cpu.yaml:22: «sample.top_q»: clave desconocida. "
        "¿Quisiste decir «sample.top_p» o «sample.top_k»?",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: el fichero está vacío: se esperaban líneas «clave: valor»"),
        ("- include", "1: se esperaban líneas «clave: valor» y hay una lista"),
        ("include: cpu", "1: «include»: se esperaba un nombre por capa y hay el texto «cpu»"),
        ("include: {run: otra}", "1: «include.run»: no existe configs/runs/otra.yaml. Hay: "),
    ],
)
def test_a_run_file_of_the_wrong_shape(put: Put, text: str, expected: str) -> None:
    path = put("runs/mia", text)
    assert problems(path)[0].startswith(f"configs/runs/mia.yaml:{expected}")


def test_a_missing_run_file_hides_nothing_and_invents_nothing(configs: Path) -> None:
    assert problems(configs / "runs/nada.yaml") == ["configs/runs/nada.yaml: no se puede leer: no existe"]


def test_check_all_tells_each_problem_once_and_finds_misplaced_files(put: Put, edit: Edit) -> None:
    edit("model/nano", "d_ff: 512", "d_ff: cero")
    put("perdida", "a: 1")
    with pytest.raises(ConfigError) as caught:
        check_all(Path("configs"))
    assert [str(problem) for problem in caught.value.problems] == [
        "configs/model/nano.yaml:10: «model.d_ff»: se esperaba un número entero y hay el texto «cero»",
        "configs/perdida.yaml: fichero fuera de sitio. "
        "Va en hardware/, model/, train/, data/, agent/, corpus/ o runs/, con extensión .yaml.",
    ]


WRONG_VALUES: list[Any] = [None, True, 7, -7, 10**12, 0.5, 1e300, float("nan"), "", "X Y", [], ["x"], {}, {"x": 1}]


def leaf_errors(schema: type[BaseModel]) -> Iterator[str]:
    """Tipos de error que da cada campo del esquema con valores de todas las clases."""
    for name, field in schema.model_fields.items():
        for value in WRONG_VALUES:
            try:
                schema.model_validate({name: value})
            except ValidationError as error:
                yield from (detail["type"] for detail in error.errors() if detail["loc"][:1] == (name,))
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from leaf_errors(inner)


def test_every_error_the_schema_can_give_has_its_text_in_spanish() -> None:
    reachable = set(leaf_errors(Run)) - {"missing", "extra_forbidden", "value_error"}
    assert reachable == set(_EXPECTED)


def test_every_layer_is_a_group_of_the_run() -> None:
    assert {name: Run.model_fields[name].annotation for name in LAYERS} == dict(LAYERS)
