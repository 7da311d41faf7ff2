"""El perfil se contrasta con la placa antes de empezar; los picos son los de la placa o no son."""

import math
from pathlib import Path
from typing import Any

import pytest

from enlace.config.schema import Hardware
from enlace.errors import InstallationError
from enlace.train import backends
from enlace.train.backends import Device, check_profile, find_board

ALL_ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


def profile(**changes: Any) -> Hardware:
    values: dict[str, Any] = {
        "board": "prueba",
        "device": "cuda",
        "dtype": "bfloat16",
        "attention": "flash",
        "grad_scaler": False,
        "deterministic": True,
        "compile": False,
        "micro_batch_tokens": 1024,
        "parallel": "replicate",
        "process_timeout": 60,
        "threads": 0,
        "expected_mfu": 0.4,
    }
    return Hardware.model_validate(values | changes)


def device(capability: tuple[int, int] | None, architectures: tuple[str, ...] = ALL_ARCHITECTURES) -> Device:
    return Device("NVIDIA GeForce RTX 2060", capability, 34, 12 * 2**30, architectures)


def test_bfloat16_on_turing_fails_with_the_reason_and_the_profile_to_use() -> None:
    with pytest.raises(InstallationError) as caught:
        check_profile(profile(attention="math"), device((7, 5)))
    assert "bfloat16" in caught.value.what
    assert "sm_75" in caught.value.why and "emula" in caught.value.why
    assert "include.hardware=turing-2060" in caught.value.fix


def test_flash_on_turing_fails_instead_of_being_replaced() -> None:
    turing = profile(dtype="float16", grad_scaler=True)
    with pytest.raises(InstallationError, match="attention=flash"):
        check_profile(turing, device((7, 5)))


def test_the_turing_profile_is_accepted_on_turing() -> None:
    check_profile(profile(dtype="float16", grad_scaler=True, attention="mem_efficient"), device((7, 5)))


@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (8, 9), (9, 0), (12, 0)])
def test_bfloat16_and_flash_are_accepted_from_ampere_on(capability: tuple[int, int]) -> None:
    check_profile(profile(), device(capability))


def test_a_torch_without_code_for_the_board_is_refused() -> None:
    with pytest.raises(InstallationError, match="no trae código"):
        check_profile(profile(), device((12, 0), ("sm_75", "sm_80", "sm_90")))


def test_a_gpu_profile_without_gpu_names_the_cpu_profile() -> None:
    if backends.torch.cuda.is_available():
        pytest.skip("esta máquina sí tiene GPU")
    with pytest.raises(InstallationError) as caught:
        backends.inspect_device("cuda")
    assert "include.hardware=cpu" in caught.value.fix


@pytest.mark.parametrize(
    ("name", "multiprocessors", "dtype", "teraflops"),
    [  # cifras publicadas por NVIDIA (16 bits con acumulación en float32, sin dispersión)
        ("NVIDIA GeForce RTX 2060", 34, "float16", 28.7),
        ("NVIDIA GeForce RTX 2060", 34, "float32", 7.2),
        ("NVIDIA GeForce RTX 2070", 36, "float16", 29.9),
        ("NVIDIA GeForce RTX 2080", 46, "float16", 40.3),
        ("NVIDIA GeForce RTX 3060", 28, "float16", 25.5),
        ("NVIDIA GeForce RTX 3090", 82, "bfloat16", 71.2),
        ("NVIDIA GeForce RTX 4060", 24, "bfloat16", 30.2),
        ("NVIDIA GeForce RTX 4070", 46, "bfloat16", 58.3),
        ("NVIDIA GeForce RTX 4080", 76, "bfloat16", 97.5),
        ("NVIDIA GeForce RTX 4090", 128, "bfloat16", 165.2),
        ("NVIDIA GeForce RTX 5070", 48, "bfloat16", 61.7),
        ("NVIDIA GeForce RTX 5080", 84, "bfloat16", 112.6),
        ("NVIDIA GeForce RTX 5090", 170, "bfloat16", 209.5),
        ("NVIDIA A100-SXM4-80GB", 108, "bfloat16", 312.0),
        ("NVIDIA A100 80GB PCIe", 108, "bfloat16", 312.0),
        ("NVIDIA L4", 58, "bfloat16", 121.0),
        ("NVIDIA H100 80GB HBM3", 132, "bfloat16", 989.4),
        ("NVIDIA H100 PCIe", 114, "bfloat16", 756.4),
        ("NVIDIA H200", 132, "bfloat16", 989.4),
    ],
)
def test_peaks_match_the_published_figures(name: str, multiprocessors: int, dtype: str, teraflops: float) -> None:
    board = find_board(name, multiprocessors)
    assert board is not None
    assert board.peak_flops(dtype) / 1e12 == pytest.approx(teraflops, rel=0.005)


@pytest.mark.parametrize(
    ("name", "multiprocessors"),
    [
        ("NVIDIA GeForce RTX 3060 Ti", 38),
        ("NVIDIA GeForce RTX 4070 SUPER", 56),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", 30),
        ("NVIDIA GeForce RTX 2060", 40),
        ("Tesla T4", 40),
    ],
)
def test_an_unknown_board_has_no_invented_peak(name: str, multiprocessors: int) -> None:
    assert find_board(name, multiprocessors) is None


def test_the_cpu_peak_is_measured() -> None:
    assert backends.measure_cpu_flops(size=256, seconds=0.02) > 1e8


def test_seeds_make_the_generators_repeatable() -> None:
    cpu = profile(device="cpu", dtype="float32", attention="math", threads=1)
    first = backends.torch.rand(3) if backends.open_backend(cpu, seed=5) else None
    second = backends.torch.rand(3) if backends.open_backend(cpu, seed=5) else None
    assert first is not None and second is not None and backends.torch.equal(first, second)


@pytest.mark.parametrize(
    ("limit", "current", "left"),
    [("1000", "300", 700), ("1000", "1200", 0), ("max", "300", math.inf), ("?", "300", math.inf)],
)
def test_the_memory_limit_of_a_container_counts(limit: str, current: str, left: float, tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text(f"{current}\n")
    assert backends._container_memory(tmp_path) == left


def test_without_a_container_there_is_no_limit(tmp_path: Path) -> None:
    assert backends._container_memory(tmp_path) == math.inf
