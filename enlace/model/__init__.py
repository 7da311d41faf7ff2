"""El Transformer: su grafo, su pérdida, lo que cuesta y cómo se guarda."""

from enlace.model.transformer import Transformer

__all__ = ["Transformer"]
