"""Los optimizadores y sus grupos, y su estado como tensores con nombre (sin pickle)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from enlace.config.schema import Optimizer as OptimizerConfig
from enlace.errors import CorruptDataError
from enlace.train.muon import Muon
from enlace.train.parallel import part_like

Optimizers = Sequence[torch.optim.Optimizer]


@dataclass(frozen=True)
class ParameterGroups:
    """Los parámetros por su papel. Un embedding atado a la cabeza está una sola vez, como embedding."""

    matrices: list[nn.Parameter]
    embedding: list[nn.Parameter]
    head: list[nn.Parameter]
    norms: list[nn.Parameter]


def group_parameters(model: nn.Module) -> ParameterGroups:
    """Reparte los parámetros del Transformer por su nombre y su forma."""
    groups = ParameterGroups([], [], [], [])
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            groups.norms.append(parameter)
        elif name.endswith("embed_tokens.weight"):
            groups.embedding.append(parameter)
        elif name.endswith("lm_head.weight"):
            groups.head.append(parameter)
        else:
            groups.matrices.append(parameter)
    return groups


def build_optimizers(model: nn.Module, config: OptimizerConfig, *, muon_dtype: torch.dtype) -> Optimizers:
    """AdamW fundido con una tasa por grupo; si la receta lo dice, las matrices van con Muon.

    Solo las matrices y la cabeza suelta decaen. muon_dtype: tipo en que Muon ortogonaliza en esta placa.
    """
    groups = group_parameters(model)
    adamw = [
        (groups.embedding, config.embedding_learning_rate, 0.0),
        (groups.head, config.head_learning_rate, config.weight_decay),
        (groups.norms, config.norm_learning_rate, 0.0),
    ]
    if config.muon is None:
        adamw.insert(0, (groups.matrices, config.learning_rate, config.weight_decay))
        return (_adamw(adamw, config),)
    muon = Muon(
        groups.matrices,
        lr=config.learning_rate,
        momentum=config.muon.momentum,
        weight_decay=config.weight_decay,
        ns_steps=config.muon.ns_steps,
        dtype=muon_dtype,
    )
    return _remembering_peak(muon), _adamw(adamw, config)


def _adamw(groups: list[tuple[list[nn.Parameter], float, float]], config: OptimizerConfig) -> torch.optim.Optimizer:
    """AdamW con su estado ya creado, no en el primer paso: así el lote de prueba ya ocupa la memoria de verdad."""
    optimizer = torch.optim.AdamW(
        [{"params": params, "lr": rate, "weight_decay": decay} for params, rate, decay in groups if params],
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            optimizer.state[parameter] = {
                "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
    return _remembering_peak(optimizer)


def _remembering_peak(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    for group in optimizer.param_groups:
        group["peak_lr"] = group["lr"]
    return optimizer


def scale_learning_rates(optimizers: Optimizers, factor: float) -> None:
    """Pone cada grupo a esa fracción de su tasa máxima."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak_lr"] * factor


def state_tensors(optimizers: Optimizers, names: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """El estado de los optimizadores con nombres `parámetro.clave`, listo para safetensors."""
    states = {id(parameter): state for each in optimizers for parameter, state in each.state.items()}
    return {f"{name}.{key}": value for name, parameter in names for key, value in states[id(parameter)].items()}


def load_state_tensors(
    optimizers: Optimizers, names: Iterable[tuple[str, nn.Parameter]], tensors: Mapping[str, Tensor]
) -> None:
    """Copia en los optimizadores lo que dio `state_tensors`. CorruptDataError si falta o sobra algo."""
    expected = state_tensors(optimizers, names)
    if expected.keys() != tensors.keys():
        different = ", ".join(sorted(expected.keys() ^ tensors.keys())[:3])
        raise CorruptDataError(
            "el estado del optimizador no es el de este modelo", where=different, fix="reanuda con el mismo modelo"
        )
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(part_like(tensors[name], tensor))
