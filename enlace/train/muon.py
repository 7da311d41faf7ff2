"""Muon: descenso con momento en el que cada matriz se actualiza con la matriz ortogonal más cercana a su gradiente.

Formas: M filas · N columnas de una matriz · K matrices de la misma forma, juntas.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from enlace.train.parallel import part_like, whole

# Quintica de Jordan et al. (2024): lleva los valores singulares de (0, 1] a un entorno de 1 lo más deprisa que puede.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
# El cuadrado de un gradiente menor que esto se queda en cero: dividir por su norma lo haría enorme.
SMALLEST_NORM = 1e-12


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024) con momento de Nesterov y decaimiento desacoplado, solo para matrices.

    La actualización se escala por √max(1, M/N), para que la tasa valga igual con cualquier ancho. dtype: tipo en el
    que se ortogonaliza. El estado nace aquí, no en el primer paso: así el lote de prueba ya ocupa la memoria de
    verdad.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        *,
        lr: float,
        momentum: float,
        weight_decay: float,
        ns_steps: int,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "ns_steps": ns_steps})
        self._dtype = dtype
        for group in self.param_groups:
            for matrix in group["params"]:
                self.state[matrix] = {"momentum": torch.zeros_like(matrix)}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Actualiza cada matriz con su gradiente; las que no lo tienen no se tocan."""
        for group in self.param_groups:
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            directions = [self._direction(matrix, group["momentum"]) for matrix in matrices]
            updates = orthogonalize_all([whole(direction) for direction in directions], group["ns_steps"], self._dtype)
            for matrix, update in zip(matrices, updates, strict=True):
                rows, columns = update.shape
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                matrix.add_(part_like(update, matrix), alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)

    def _direction(self, matrix: nn.Parameter, momentum: float) -> Tensor:
        """Media móvil del gradiente, adelantada un paso (Nesterov)."""
        buffer: Tensor = self.state[matrix]["momentum"]
        buffer.lerp_(matrix.grad, 1 - momentum)  # type: ignore[arg-type]
        return torch.lerp(matrix.grad, buffer, momentum)  # type: ignore[arg-type]


def orthogonalize_all(matrices: list[Tensor], steps: int, dtype: torch.dtype) -> list[Tensor]:
    """`orthogonalize` de cada una; las de la misma forma (o traspuesta) van juntas, que es mucho más rápido."""
    result = list(matrices)
    for shape in dict.fromkeys(_wide(matrix).shape for matrix in matrices):
        places = [place for place, matrix in enumerate(matrices) if _wide(matrix).shape == shape]
        together_KMN = orthogonalize(torch.stack([_wide(matrices[place]) for place in places]).to(dtype), steps)
        for place, update_MN in zip(places, together_KMN, strict=True):
            update = update_MN if _wide(matrices[place]) is matrices[place] else update_MN.mT
            result[place] = update.to(matrices[place].dtype)
    return result


def orthogonalize(g_KMN: Tensor, steps: int) -> Tensor:
    """La matriz casi ortogonal más cercana a cada una de [K, M, N] con M ≤ N (U·Vᵀ de su SVD), por Newton–Schulz.

    Cada paso aplica a los valores singulares el polinomio a·x + b·x³ + c·x⁵; con 5 pasos acaban entre 0,7 y 1,2. Una
    matriz de ceros, o casi, se queda en cero.
    """
    a, b, c = COEFFICIENTS
    x_KMN: Tensor = g_KMN / g_KMN.flatten(1).norm(dim=1).clamp(min=SMALLEST_NORM)[:, None, None]
    for _ in range(steps):
        gram_KMM = x_KMN @ x_KMN.mT
        polynomial_KMM = torch.baddbmm(gram_KMM, gram_KMM, gram_KMM, beta=b, alpha=c)
        x_KMN = torch.baddbmm(x_KMN, polynomial_KMM, x_KMN, beta=a)
    return x_KMN


def _wide(matrix: Tensor) -> Tensor:
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
