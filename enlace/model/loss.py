"""Cabeza y pérdida por trozos: los logits de toda la pasada no existen nunca a la vez.

Formas: N tokens de la pasada · K tokens de un trozo · D ancho del flujo residual · V vocabulario.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

IGNORE = -100
"""Objetivo que no cuenta, ni en la pérdida ni en el gradiente."""


def chunked_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, z_loss: float, chunk_tokens: int
) -> tuple[Tensor, Tensor]:
    """Entropía cruzada y z-loss de los logits `hidden @ weight.T`, sumadas sobre los objetivos ≠ IGNORE.

    Devuelve (Σ −log p(objetivo), z_loss · Σ logsumexp²) en nats, en float32 (float64 si lo es la entrada). La z-loss
    (Chowdhery et al., 2022) frena el crecimiento de los logits. Multiplica en el tipo del autocast activo; la softmax
    y la suma del gradiente de los pesos van en float32.

    El gradiente de la suma de las dos se calcula ya en la ida, mientras existen los logits del trozo: repetirlos en
    la vuelta sería un tercio más lento. A cambio las dos deben llegar a la pérdida con el mismo factor, como en
    (nll + z) / tokens: con factores distintos la vuelta levanta ValueError.
    """
    # Dentro de la función ya no se ve si hay no_grad(): validar pagaría por un gradiente que nadie pide.
    training = torch.is_grad_enabled() and (hidden_ND.requires_grad or weight_VD.requires_grad)
    nll, z = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden_ND, weight_VD, targets_N, z_loss, chunk_tokens, training
    )
    return nll, z


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        z_loss: float,
        chunk_tokens: int,
        training: bool,
    ) -> tuple[Tensor, Tensor]:
        dtype = _matmul_dtype(weight_VD)
        exact = torch.promote_types(dtype, torch.float32)
        head_VD = weight_VD.to(dtype)
        grad_hidden_ND = torch.empty_like(hidden_ND if training else hidden_ND[:0])
        grad_weight_VD = torch.zeros_like(weight_VD if training else weight_VD[:0], dtype=exact)
        sums = hidden_ND.new_zeros(2, dtype=exact)
        with torch.autocast(hidden_ND.device.type, enabled=False):
            for start in range(0, len(targets_N), chunk_tokens):
                chunk = slice(start, start + chunk_tokens)
                hidden_KD = hidden_ND[chunk].to(dtype)
                logits_KV = (hidden_KD @ head_VD.T).to(exact)
                chunk_sums, grad_KV = _loss_and_gradient(logits_KV, targets_N[chunk], z_loss)
                sums += chunk_sums
                if training:
                    grad_KV = grad_KV.to(dtype)
                    grad_hidden_ND[chunk] = grad_KV @ head_VD
                    _add_product(grad_weight_VD, grad_KV.T, hidden_KD)
        ctx.save_for_backward(grad_hidden_ND, grad_weight_VD)
        ctx.z_loss = z_loss
        return sums[0], sums[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_nll: Tensor, grad_z: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        # Con (nll + z), autograd pasa dos veces el mismo tensor: mirar la dirección evita esperar al dispositivo.
        if ctx.z_loss and grad_nll.data_ptr() != grad_z.data_ptr() and not torch.equal(grad_nll, grad_z):
            raise ValueError("chunked_cross_entropy: las dos sumas deben llegar a la pérdida con el mismo factor")
        grad_hidden_ND, grad_weight_VD = ctx.saved_tensors
        return grad_hidden_ND * grad_nll, grad_weight_VD * grad_nll, None, None, None, None


def _matmul_dtype(weight: Tensor) -> torch.dtype:
    device = weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype


def _loss_and_gradient(logits_KV: Tensor, targets_K: Tensor, z_loss: float) -> tuple[Tensor, Tensor]:
    """([Σ nll, Σ z-loss], gradiente de su suma en los logits [K, V]). Reutiliza la memoria de los logits.

    ∂nll/∂logits = p − objetivo y ∂(c·lse²)/∂logits = 2c·lse·p, con p = softmax(logits) y lse = logsumexp(logits).
    """
    counts_K = targets_K != IGNORE
    index_K1 = targets_K.where(counts_K, 0).unsqueeze(1)
    target_K = logits_KV.gather(1, index_K1).squeeze(1)
    peak_K = logits_KV.amax(1)
    exp_KV = logits_KV.sub_(peak_K.unsqueeze(1)).exp_()
    total_K = exp_KV.sum(1)
    lse_K = peak_K + total_K.log()
    nll_K = (lse_K - target_K).where(counts_K, 0.0)
    z_K = (z_loss * lse_K.square()).where(counts_K, 0.0)
    scale_K = ((1.0 + 2.0 * z_loss * lse_K) / total_K).where(counts_K, 0.0)
    grad_KV = exp_KV.mul_(scale_K.unsqueeze(1)).scatter_add_(1, index_K1, -counts_K.to(exp_KV.dtype).unsqueeze(1))
    return torch.stack((nll_K.sum(), z_K.sum())), grad_KV


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total += a @ b, sin que el producto pase por la precisión reducida de a y b donde el dispositivo lo permite."""
    if total.dtype == a.dtype:
        total.addmm_(a, b)
    elif a.is_cpu:
        total += a @ b
    else:
        total += torch.mm(a, b, out_dtype=total.dtype)
