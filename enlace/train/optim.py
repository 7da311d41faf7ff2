"""AdamW con sus grupos, y su estado como tensores con nombre (sin pickle)."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from enlace.config.schema import Optimizer as OptimizerConfig
from enlace.errors import CorruptDataError

_STATE_KEYS = ("step", "exp_avg", "exp_avg_sq")


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW fundido con dos grupos: las matrices decaen; embeddings, normas y escalares no.

    El estado nace aquí, no en el primer paso: así el lote de prueba ya ocupa la memoria de verdad.
    """
    decayed, plain = split_parameters(model)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )
    for parameter in (*decayed, *plain):
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return optimizer


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """(los que decaen, los que no). Un peso compartido aparece una vez, como embedding."""
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for parameter in model.parameters():
        is_matrix = parameter.ndim >= 2 and id(parameter) not in embeddings
        (decayed if is_matrix else plain).append(parameter)
    return decayed, plain


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Fija la misma tasa en todos los grupos."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def state_tensors(optimizer: torch.optim.Optimizer, names: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """El estado del optimizador con nombres `parámetro.clave`, listo para safetensors."""
    return {f"{name}.{key}": optimizer.state[parameter][key] for name, parameter in names for key in _STATE_KEYS}


def load_state_tensors(
    optimizer: torch.optim.Optimizer, names: Iterable[tuple[str, nn.Parameter]], tensors: Mapping[str, Tensor]
) -> None:
    """Copia en el optimizador lo que dio `state_tensors`. CorruptDataError si falta o sobra algo."""
    expected = state_tensors(optimizer, names)
    if expected.keys() != tensors.keys():
        different = ", ".join(sorted(expected.keys() ^ tensors.keys())[:3])
        raise CorruptDataError(
            "el estado del optimizador no es el de este modelo", where=different, fix="reanuda con el mismo modelo"
        )
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(tensors[name])
