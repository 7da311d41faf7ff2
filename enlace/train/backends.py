"""El único fichero del entrenamiento que sabe de placas.

Contrasta el perfil de `configs/hardware/` con el dispositivo real antes de empezar y da al resto, como valores,
lo que depende de la placa: dispositivo, precisión, escalado, aleatoriedad, memoria y pico de cálculo.
"""

import ctypes
import math
import os
import random
import resource
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch.amp.autocast_mode import autocast
from torch.amp.grad_scaler import GradScaler

from enlace.config.schema import Hardware
from enlace.errors import InstallationError
from enlace.errors.numerals import decimal, gib
from enlace.train.check import Check

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}

# De malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

Capability = tuple[int, int]
TURING: Capability = (7, 5)
AMPERE: Capability = (8, 0)


@dataclass(frozen=True)
class Board:
    """Una placa tabulada. Pico = multiprocesadores × FMA por ciclo × 2 × GHz (con acumulación en float32)."""

    name: str
    multiprocessors: int
    boost_ghz: float
    tensor_fma: int
    float32_fma: int

    def peak_flops(self, dtype: str) -> float:
        """FLOP/s máximos en ese tipo numérico."""
        fma = self.float32_fma if dtype == "float32" else self.tensor_fma
        return self.multiprocessors * fma * 2 * self.boost_ghz * 1e9


# Fuentes: libros blancos de NVIDIA de Turing, Ampere (GA102), A100, Ada (AD102), Hopper y Blackwell (GB202).
# Las GeForce multiplican en 16 bits con acumulación float32 a la mitad de ritmo: ese es el pico que sirve de
# denominador honesto, porque es lo que usa el entrenamiento.
BOARDS = (
    Board("RTX 2060", 30, 1.680, 256, 64),
    Board("RTX 2060", 34, 1.650, 256, 64),  # la de 12 GB
    Board("RTX 2070", 36, 1.620, 256, 64),
    Board("RTX 2080", 46, 1.710, 256, 64),
    Board("RTX 3060", 28, 1.777, 256, 128),
    Board("RTX 3090", 82, 1.695, 256, 128),
    Board("RTX 4060", 24, 2.460, 256, 128),
    Board("RTX 4070", 46, 2.475, 256, 128),
    Board("RTX 4080", 76, 2.505, 256, 128),
    Board("RTX 4090", 128, 2.520, 256, 128),
    Board("RTX 5070", 48, 2.512, 256, 128),
    Board("RTX 5080", 84, 2.617, 256, 128),
    Board("RTX 5090", 170, 2.407, 256, 128),
    Board("A100", 108, 1.410, 1024, 64),
    Board("L4", 58, 2.040, 512, 128),
    Board("H100 PCIe", 114, 1.620, 2048, 128),
    Board("H100", 132, 1.830, 2048, 128),
    Board("H200", 132, 1.830, 2048, 128),
)


@dataclass(frozen=True)
class Device:
    """Lo que se ve del dispositivo real."""

    name: str
    capability: Capability | None
    multiprocessors: int
    memory_bytes: int
    architectures: tuple[str, ...]


def find_board(device_name: str, multiprocessors: int) -> Board | None:
    """La placa tabulada que es exactamente esa, o None: de una desconocida no se inventa el pico."""
    short = device_name.removeprefix("NVIDIA ").removeprefix("GeForce ")
    datacenter = short.split("-")[0].removesuffix(" 80GB HBM3").removesuffix(" 80GB PCIe")
    return next((b for b in BOARDS if b.multiprocessors == multiprocessors and b.name in (short, datacenter)), None)


def board_named(name: str) -> Board | None:
    """La placa tabulada de un perfil («RTX 2060 12 GB»), para estimar sin tenerla delante; de dos, la mayor."""
    return next((b for b in reversed(BOARDS) if f"{name} ".startswith(f"{b.name} ")), None)


def supported_dtypes(capability: Capability) -> tuple[str, ...]:
    """Tipos numéricos con unidades propias. La biblioteca dice que Turing admite bfloat16, pero lo emula."""
    return ("float32", "float16", "bfloat16") if capability >= AMPERE else ("float32", "float16")


def supported_attention(capability: Capability) -> tuple[str, ...]:
    """Núcleos de atención con paso hacia atrás que trae torch para esa arquitectura."""
    return ("math", "mem_efficient", "flash") if capability >= AMPERE else ("math", "mem_efficient")


def suitable_profile(capability: Capability) -> str:
    """El perfil de `configs/hardware/` que sirve para esa arquitectura."""
    if capability < AMPERE:
        return "turing-2060"
    return "h200" if capability[0] == 9 else "blackwell-5090"


def check_profile(hardware: Hardware, device: Device) -> None:
    """Falla con InstallationError si el perfil pide algo que el dispositivo no tiene.

    Es una función pura de perfil y dispositivo: se prueba entera sin ninguna placa.
    """
    if device.capability is None:
        return  # lo que la CPU no tiene ya lo rechaza el esquema
    _check_architecture(device, device.capability)
    _require(hardware, device, device.capability, "dtype", supported_dtypes(device.capability))
    _require(hardware, device, device.capability, "attention", supported_attention(device.capability))


def _require(hardware: Hardware, device: Device, capability: Capability, key: str, allowed: tuple[str, ...]) -> None:
    value = getattr(hardware, key)
    if value in allowed:
        return
    raise InstallationError(
        f"el perfil «{hardware.board}» pide {key}={value} y esta placa no lo tiene",
        where=f"hardware.{key}",
        why=f"{device.name} (sm_{capability[0]}{capability[1]}) admite {', '.join(allowed)}; "
        f"aunque la biblioteca acepte {value}, lo emula",
        fix=f"usa el perfil de tu placa: include.hardware={suitable_profile(capability)}",
    )


def _check_architecture(device: Device, capability: Capability) -> None:
    major, minor = capability
    # Un binario sm_86 sirve para sm_89: dentro de la misma generación vale cualquiera igual o anterior.
    compiled = [a.removeprefix("sm_") for a in device.architectures if a.startswith("sm_")]
    if any(int(a[:-1]) == major and int(a[-1]) <= minor for a in compiled if a[-1].isdigit()):
        return
    raise InstallationError(
        f"este torch no trae código para {device.name} (sm_{major}{minor})",
        why=f"trae: {', '.join(device.architectures) or 'ninguna placa: es la versión de CPU'}",
        fix="borra .venv y ejecuta scripts/setup.sh, que elige el torch de esta máquina",
    )


def inspect_device(kind: str, index: int = 0) -> Device:
    """Mira el dispositivo número `index`. InstallationError si el perfil pide una GPU y torch no la ve."""
    if kind == "cpu":
        return Device("CPU", None, psutil.cpu_count(logical=False) or 1, psutil.virtual_memory().total, ())
    if not torch.cuda.is_available():
        raise InstallationError(
            "el perfil pide una GPU y torch no ve ninguna",
            where="hardware.device",
            why=f"torch {torch.__version__}; CUDA de compilación: {torch.version.cuda or 'ninguna'}",
            fix="revisa el controlador con «enlace doctor», o usa include.hardware=cpu",
        )
    if index >= torch.cuda.device_count():
        raise InstallationError(
            f"hay más procesos que GPU: no existe la número {index}",
            where="torchrun",
            why=f"torch ve {torch.cuda.device_count()}",
            fix=f"lanza torchrun con --nproc-per-node {torch.cuda.device_count()}",
        )
    properties = torch.cuda.get_device_properties(index)
    return Device(
        properties.name,
        (properties.major, properties.minor),
        properties.multi_processor_count,
        properties.total_memory,
        tuple(torch.cuda.get_arch_list()),
    )


@dataclass(frozen=True)
class Backend:
    """El dispositivo ya comprobado y lo que depende de él."""

    hardware: Hardware
    device: torch.device
    description: Device
    peak_flops: float | None
    initial_memory: int

    def autocast(self) -> AbstractContextManager[Any]:
        """Contexto que multiplica en el tipo del perfil; los pesos maestros siguen en float32."""
        if self.hardware.dtype == "float32":
            return nullcontext()
        return autocast(self.device.type, dtype=DTYPES[self.hardware.dtype])

    def scaler(self) -> GradScaler:
        """Escalador de la pérdida (Micikevicius y otros, 2018); apagado es transparente."""
        return GradScaler(self.device.type, enabled=self.hardware.grad_scaler)

    @property
    def orthogonalization_dtype(self) -> torch.dtype:
        """Tipo en que Muon ortogonaliza: float16 se desbordaría."""
        return torch.bfloat16 if self.hardware.dtype == "bfloat16" else torch.float32

    def synchronize(self) -> None:
        """Espera a que el dispositivo acabe, para medir tiempos de verdad."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def available_memory(self) -> int:
        """Bytes libres en la memoria donde se entrena."""
        if self.device.type == "cuda":
            return int(torch.cuda.mem_get_info(self.device)[0])
        return int(min(psutil.virtual_memory().available, _container_memory()))

    def peak_memory(self) -> int:
        """Bytes que el entrenamiento ha usado como máximo: reservados en GPU; en CPU, residentes sin los de torch."""
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_reserved(self.device))
        return _peak_resident() - self.initial_memory

    def rng_tensors(self) -> dict[str, torch.Tensor]:
        """Estado de los generadores de torch (uint8)."""
        state = {"torch": torch.get_rng_state()}
        if self.device.type == "cuda":
            state["device"] = torch.cuda.get_rng_state(self.device)
        return state

    def set_rng_tensors(self, state: Mapping[str, torch.Tensor]) -> None:
        """Restaura lo que dio `rng_tensors`; el estado de otra placa no sirve y se ignora."""
        torch.set_rng_state(state["torch"])
        if self.device.type == "cuda" and "device" in state:
            torch.cuda.set_rng_state(state["device"], self.device)

    def environment(self) -> dict[str, str]:
        """Lo que, si cambia al reanudar, deja de ser exacto bit a bit."""
        return {
            "torch": torch.__version__,
            "device": self.description.name,
            "threads": str(torch.get_num_threads()),
            "instructions": torch.backends.cpu.get_cpu_capability(),
        }


def open_backend(hardware: Hardware, *, seed: int, local_rank: int = 0, local_count: int = 1) -> Backend:
    """Comprueba el perfil contra la máquina, fija hilos, determinismo y semillas, y devuelve el backend.

    local_rank, local_count: qué proceso es este de los que entrenan en la máquina, para darle su placa y sus hilos.
    """
    device = inspect_device(hardware.device, local_rank)
    check_profile(hardware, device)
    if hardware.device == "cpu":
        _keep_freed_memory()
    torch.set_num_threads(hardware.threads or max(1, available_threads() // local_count))
    if hardware.deterministic:
        # cuBLAS lee esta variable al crear su espacio de trabajo, en la primera multiplicación.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(hardware.deterministic)
    # Rellenar cada torch.empty con NaN delata lecturas sin escribir, pero cuesta tiempo en cada paso.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    peak = _peak_flops(hardware, device)
    placed = torch.device(hardware.device)
    if device.capability is not None:
        placed = torch.device(hardware.device, local_rank)
        torch.cuda.set_device(placed)
    return Backend(hardware, placed, device, peak, _peak_resident())


def _keep_freed_memory() -> None:
    """Que glibc no devuelva al sistema los bloques grandes: cada paso pagaría otra vez por sus páginas (un 3–6 %)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # solo glibc la tiene
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 2**30)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def available_threads() -> int:
    """Hilos que este proceso puede usar de verdad (respeta taskset y los contenedores)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _container_memory(folder: Path = Path("/sys/fs/cgroup")) -> int | float:
    """Bytes que quedan hasta el límite del contenedor (cgroup v2); infinito si no hay límite."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        return max(0, int(limit) - int((folder / "memory.current").read_text()))
    except (OSError, ValueError):  # no hay cgroup, o su límite es «max»
        return math.inf


def _peak_resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _peak_flops(hardware: Hardware, device: Device) -> float | None:
    if device.capability is None:
        return measure_cpu_flops()
    board = find_board(device.name, device.multiprocessors)
    return board.peak_flops(hardware.dtype) if board else None


def measure_cpu_flops(size: int = 1024, seconds: float = 0.2) -> float:
    """FLOP/s de la mejor de varias multiplicaciones float32 de `size`³: el techo real de esta CPU."""
    a = torch.ones(size, size)
    best, deadline = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < deadline or not best:
        start = time.perf_counter()
        a @ a
        best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


def is_out_of_memory(error: BaseException) -> bool:
    """True si el error es de memoria agotada, en GPU o en CPU."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def inspect_machine() -> list[Check]:
    """Lo que `enlace doctor` enseña de torch y de las placas."""
    checks = [Check("torch", True, f"{torch.__version__}, {available_threads()} hilos", fatal=True)]
    if not torch.cuda.is_available():
        detail = "ninguna visible: se entrena en CPU (perfil cpu)"
        return [*checks, Check("GPU", True, detail)]
    device = inspect_device("cuda")
    capability = device.capability or TURING
    board = find_board(device.name, device.multiprocessors)
    peak = f"{decimal(board.peak_flops('float16') / 1e12, 1)} TFLOP/s en 16 bits" if board else "pico desconocido"
    detail = f"{device.name}, {gib(device.memory_bytes)}, {peak}"
    checks.append(Check("GPU", True, detail, f"perfil: {suitable_profile(capability)}"))
    try:
        _check_architecture(device, capability)
    except InstallationError as error:
        return [*checks, Check("torch para la GPU", False, error.what, error.fix, fatal=True)]
    types = ", ".join(supported_dtypes(capability))
    return [*checks, Check("tipos numéricos", True, types)]
