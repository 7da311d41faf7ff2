"""Lo que se minimiza: el modelo y su pérdida en un solo módulo, que es lo que se reparte entre procesos."""

from torch import Tensor, nn

from enlace.config.schema import Train
from enlace.model import Transformer
from enlace.model.loss import chunked_cross_entropy


class Objective(nn.Module):
    """De unas secuencias a (suma de la pérdida, suma de la z-loss), sin logits completos."""

    def __init__(self, model: Transformer, train: Train) -> None:
        super().__init__()
        self.model = model
        self.z_loss = train.z_loss
        self.chunk_tokens = train.loss_chunk_tokens

    def forward(self, tokens_BT: Tensor) -> tuple[Tensor, Tensor]:
        """Ids de secuencias de T+1 tokens; las dos sumas, en nats."""
        hidden_BTD = self.model.hidden(tokens_BT[:, :-1])
        nll, z_loss = chunked_cross_entropy(
            hidden_BTD.flatten(0, 1),
            self.model.head_weight,
            tokens_BT[:, 1:].flatten(),
            z_loss=self.z_loss,
            chunk_tokens=self.chunk_tokens,
        )
        return nll.clone(), z_loss.clone()  # son vistas del mismo par, y FSDP2 no las admite a la salida
