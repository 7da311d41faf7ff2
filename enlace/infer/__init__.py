"""Escribir texto con un modelo ya entrenado."""

from enlace.infer.generate import generate_text, sample_ids

__all__ = ["generate_text", "sample_ids"]
